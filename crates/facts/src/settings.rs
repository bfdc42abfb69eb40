//! The settings table: one row a setting. Parser, documents and the record of what is in force
//! are made from it.

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// The environment variable.
    pub variable: &'static str,
    /// What it may be.
    pub value: Value,
    /// One sentence for people.
    pub sentence: &'static str,
}

/// What a setting may hold.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// One of these words; the first is the default.
    Choice(&'static [&'static str]),
    /// A path, and what holds when it is not set.
    Path(&'static str),
}

impl Setting {
    /// The words of a choice, and none for a path.
    pub const fn choices(&self) -> &'static [&'static str] {
        match self.value {
            Value::Choice(words) => words,
            Value::Path(_) => &[],
        }
    }
}

/// What the shim does with a call.
pub static MODE: Setting = Setting {
    variable: "ACLSHIM_MODE",
    value: Value::Choice(&["observe", "enforce", "off"]),
    sentence: "observe forwards every call and counts it; enforce is for rules that refuse a call, and does the same \
               while there are none; off forwards only",
};

/// Where logs go, and the name under which a process's counts are found.
pub static DIR: Setting = Setting {
    variable: "ACLSHIM_DIR",
    value: Value::Path("aclshim-out in the working directory at load"),
    sentence: "where logs and traces go, and the path that `aclshim stat` is given",
};

/// The real library.
pub static REAL: Setting = Setting {
    variable: "ACLSHIM_REAL",
    value: Value::Path("found by itself"),
    sentence: "path of the real library, where it cannot be found by itself",
};

/// Where the shared memory files are.
pub static RING_DIR: Setting = Setting {
    variable: "ACLSHIM_RING_DIR",
    value: Value::Path("/dev/shm"),
    sentence: "a directory in memory (tmpfs) for the file that each process keeps its counts in",
};

/// Whether objects opened with RTLD_DEEPBIND are mended.
pub static DEEPBIND: Setting = Setting {
    variable: "ACLSHIM_DEEPBIND",
    value: Value::Choice(&["fix", "off"]),
    sentence: "fix redirects objects that were opened with RTLD_DEEPBIND, and so bind past every preload, to the \
               shim; off leaves them alone",
};

/// All settings.
pub static SETTINGS: &[&Setting] = &[&MODE, &DIR, &REAL, &RING_DIR, &DEEPBIND];
