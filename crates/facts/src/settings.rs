//! The settings table: one row a setting. Parser, documents and the record of what is in force
//! are made from it. A setting is an environment variable and a key in the settings [`file`].

pub mod file;

use crate::written;
use core::fmt;

/// What every variable begins with.
pub const PREFIX: &str = "ACLSHIM_";

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
    /// Some text; the default.
    Text(&'static str),
    /// A number of bytes (64K, 1M, 2G): default, least, most.
    Bytes(u64, u64, u64),
    /// A number: default, least, most.
    Count(u64, u64, u64),
}

/// A setting's key in the settings file, to be shown: `ring_size` for `ACLSHIM_RING_SIZE`.
#[derive(Clone, Copy)]
pub struct Key(&'static str);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| fmt::Write::write_char(f, letter.to_ascii_lowercase()))
    }
}

impl Setting {
    /// Its key in the settings file.
    pub fn key(&self) -> Key {
        Key(self.variable.strip_prefix(PREFIX).unwrap_or(self.variable))
    }

    /// Whether that is its key: small letters.
    pub fn has_key(&self, key: &[u8]) -> bool {
        self.key().0.as_bytes().eq_ignore_ascii_case(key) && !key.iter().any(u8::is_ascii_uppercase)
    }

    /// The words of a choice, and none for anything else.
    pub const fn choices(&self) -> &'static [&'static str] {
        match self.value {
            Value::Choice(words) => words,
            _ => &[],
        }
    }

    /// The number that `given` stands for, if it makes sense here.
    pub fn number(&self, given: &[u8]) -> Option<u64> {
        let (least, most, units): (u64, u64, &[u8]) = match self.value {
            Value::Bytes(_, least, most) => (least, most, b"KMG"),
            Value::Count(_, least, most) => (least, most, b""),
            _ => return None,
        };
        let unit = given.last().and_then(|last| units.iter().position(|unit| unit == last));
        let (digits, shift) = match unit {
            Some(unit) => (given.split_last()?.1, 10 * (unit as u32 + 1)),
            None => (given, 0),
        };
        written::number(digits)?.checked_mul(1 << shift).filter(|number| (least..=most).contains(number))
    }

    /// What holds when a number is not set.
    pub const fn default_number(&self) -> u64 {
        match self.value {
            Value::Bytes(default, ..) | Value::Count(default, ..) => default,
            _ => 0,
        }
    }
}

/// The settings file.
pub static CONFIG: Setting = Setting {
    variable: "ACLSHIM_CONFIG",
    value: Value::Path("none"),
    sentence: "a settings file (aclshim.toml); a variable that is set comes before what the file says",
};

/// What the shim does with a call.
pub static MODE: Setting = Setting {
    variable: "ACLSHIM_MODE",
    value: Value::Choice(&["observe", "enforce", "off"]),
    sentence: "observe forwards every call and records it; enforce returns the vendor's code for a call that the vendor \
               would refuse by its arguments, without forwarding it; off forwards only",
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
    sentence: "a directory in memory (tmpfs) for the file that each process keeps its records in until they are drained",
};

/// Whether objects opened with RTLD_DEEPBIND are mended.
pub static DEEPBIND: Setting = Setting {
    variable: "ACLSHIM_DEEPBIND",
    value: Value::Choice(&["fix", "off"]),
    sentence: "fix redirects objects that were opened with RTLD_DEEPBIND, and so bind past every preload, to the \
               shim; off leaves them alone",
};

/// What happens when a thread's ring is full.
pub static RECORD: Setting = Setting {
    variable: "ACLSHIM_RECORD",
    value: Value::Choice(&["audit", "flight", "lossless", "off"]),
    sentence: "what becomes of a call when its thread's ring is full: audit does not record it and counts it; flight \
               overwrites the oldest record and counts that; lossless makes the caller wait, 100 ms at most, and then does as \
               audit; off records nothing",
};

/// The size of a thread's ring.
pub static RING_SIZE: Setting = Setting {
    variable: "ACLSHIM_RING_SIZE",
    value: Value::Bytes(64 << 10, 4 << 10, 64 << 20),
    sentence: "shared memory for each thread that copies, 64 bytes a slot; taken down to a power of two",
};

/// Who drains the rings.
pub static DRAIN: Setting = Setting {
    variable: "ACLSHIM_DRAIN",
    value: Value::Choice(&["auto", "inside", "outside", "off"]),
    sentence: "who writes the records to files: auto and inside start one thread in the program at its first copy; with \
               outside another process does it (`aclshim collect`); off leaves them in the ring",
};

/// How long the end of a program may take for the drain's sake.
pub static END_WAIT: Setting = Setting {
    variable: "ACLSHIM_END_WAIT",
    value: Value::Count(200, 0, 600_000),
    sentence: "how many milliseconds a program whose records are drained inside waits at its end, at most, for the last of \
               them to be written; what is not written by then stays in the ring",
};

/// What is written of each call.
pub static CALLS: Setting = Setting {
    variable: "ACLSHIM_CALLS",
    value: Value::Choice(&["trace", "json", "off"]),
    sentence: "where every call goes: trace is the binary trace; json is the JSON log as well; off writes neither, and the \
               log tells of failed calls only",
};

/// How much of a batch is recorded.
pub static BATCH_ITEMS: Setting = Setting {
    variable: "ACLSHIM_BATCH_ITEMS",
    value: Value::Count(64, 0, 4096),
    sentence: "how many items of a batch are recorded one by one, as far as a quarter of the ring goes; the summary of all \
               of them always is",
};

/// The names of output files.
pub static FILE: Setting = Setting {
    variable: "ACLSHIM_FILE",
    value: Value::Text("aclshim-%p-%t"),
    sentence: "the names of traces and logs without their ending: %p process, %h host, %e executable, %t time of birth, \
               %r rank (RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID or RANK_ID)",
};

/// When the next file is begun.
pub static SEGMENT: Setting = Setting {
    variable: "ACLSHIM_SEGMENT",
    value: Value::Bytes(64 << 20, 1 << 20, 1 << 40),
    sentence: "the size at which a trace or log is closed and the next one begun",
};

/// What all files may take.
pub static BUDGET: Setting = Setting {
    variable: "ACLSHIM_BUDGET",
    value: Value::Bytes(1 << 30, 4 << 20, 1 << 50),
    sentence: "the bytes that all traces and logs in the directory may take together; beyond that the oldest are removed, \
               and the log says so",
};

/// What each rule does.
pub static RULES: Setting = Setting {
    variable: "ACLSHIM_RULES",
    value: Value::Text(""),
    sentence: "what is done about a rule, as RULE=ACTION with commas between: off, log, warn (the log, and standard error \
               where ACLSHIM_STDERR asks for it), refuse (return the vendor's code and do not forward the call) or abort (end \
               the program)",
};

/// The product, where the real library is not to be asked.
pub static SOC: Setting = Setting {
    variable: "ACLSHIM_SOC",
    value: Value::Text(""),
    sentence: "the product, as aclrtGetSocName names it (Ascend910B1); not set, the real library is asked after the first copy",
};

/// Where the program runs.
pub static FORM: Setting = Setting {
    variable: "ACLSHIM_FORM",
    value: Value::Choice(&["auto", "ep", "rc"]),
    sentence: "where the program runs: ep on a host beside the device, rc on the device's own processor; auto asks the real \
               library after the first copy",
};

/// The release of CANN.
pub static CANN: Setting = Setting {
    variable: "ACLSHIM_CANN",
    value: Value::Text(""),
    sentence: "the CANN release (9.1.0); not set, the real library is asked after the first copy",
};

/// Other products.
pub static AS: Setting = Setting {
    variable: "ACLSHIM_AS",
    value: Value::Text(""),
    sentence: "other products to judge the run for, with commas between (Ascend310P3,Ascend950): what would be refused there",
};

/// Findings that are not told.
pub static MUTE: Setting = Setting {
    variable: "ACLSHIM_MUTE",
    value: Value::Text(""),
    sentence: "findings that are counted but not told, with commas between: RULE, RULE@MODULE or RULE@MODULE+0xOFFSET; * is \
               every rule",
};

/// Findings that are known already.
pub static BASELINE: Setting = Setting {
    variable: "ACLSHIM_BASELINE",
    value: Value::Path("none"),
    sentence: "a file of known findings, as `aclshim findings --baseline` prints them: those of the same rule, function and \
               call site are counted but not told",
};

/// Faults that are put into calls.
pub static INJECT: Setting = Setting {
    variable: "ACLSHIM_INJECT",
    value: Value::Text(""),
    sentence: "faults that are put into calls on purpose, with semicolons between: which calls, when, and what \
               (`aclrtMemcpyBatchAsync nth=2 return=207000`); docs/injecting.md has them all",
};

/// What a kind of use asks for.
pub static PRESET: Setting = Setting {
    variable: "ACLSHIM_PRESET",
    value: Value::Choice(&["none", "production"]),
    sentence: "production refuses injections, wherever they come from",
};

/// More of the call's stack.
pub static STACK: Setting = Setting {
    variable: "ACLSHIM_STACK",
    value: Value::Choice(&["off", "findings"]),
    sentence: "findings records some return addresses more with a call that breaks a rule: under a framework every copy comes \
               from the same place",
};

/// What goes to the program's standard error.
pub static STDERR: Setting = Setting {
    variable: "ACLSHIM_STDERR",
    value: Value::Choice(&["losses", "off", "findings", "all"]),
    sentence: "what is also written to the program's standard error as text: losses that calls are not recorded, where \
               neither a ring nor the log can say so, off nothing, findings what breaks a rule, all failed calls too; with \
               the last two the descriptor is kept open",
};

/// Where tests say how they went.
pub static RESULTS: Setting = Setting {
    variable: "ACLSHIM_RESULTS",
    value: Value::Path("none"),
    sentence: "a file that each scope of a test program (`aclshim.h`) appends one line of JSON to when it ends: what it saw, \
               and which expectations were not met; `aclshim test` reads it",
};

/// What is done about golden files.
pub static GOLDEN: Setting = Setting {
    variable: "ACLSHIM_GOLDEN",
    value: Value::Choice(&["check", "update"]),
    sentence: "what aclshim_expect_golden does: check compares the calls of a scope with those that its file holds; update \
               writes the file",
};

/// All settings.
pub static SETTINGS: &[&Setting] = &[
    &CONFIG,
    &MODE,
    &RULES,
    &SOC,
    &FORM,
    &CANN,
    &AS,
    &MUTE,
    &BASELINE,
    &INJECT,
    &PRESET,
    &STACK,
    &STDERR,
    &DIR,
    &REAL,
    &RING_DIR,
    &RING_SIZE,
    &RECORD,
    &DRAIN,
    &END_WAIT,
    &CALLS,
    &BATCH_ITEMS,
    &FILE,
    &SEGMENT,
    &BUDGET,
    &DEEPBIND,
    &RESULTS,
    &GOLDEN,
];

/// A number of bytes as people write it: the largest unit that divides it.
pub fn bytes_text(bytes: u64) -> (u64, &'static str) {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let unit = units.into_iter().find(|(unit, _)| bytes != 0 && bytes.is_multiple_of(*unit));
    unit.map_or((bytes, ""), |(unit, name)| (bytes / unit, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_with_a_unit_and_within_bounds() {
        let cases: [(&[u8], Option<u64>); 9] = [
            (b"64K", Some(64 << 10)),
            (b"4096", Some(4096)),
            (b"1M", Some(1 << 20)),
            (b"1", None),
            (b"99999999999999999999999", None),
            (b"-1", None),
            (b"K", None),
            (b"", None),
            (b"64k", None),
        ];
        for (given, number) in cases {
            assert_eq!(RING_SIZE.number(given), number, "{:?}", core::str::from_utf8(given));
        }
        assert_eq!((BATCH_ITEMS.number(b"0"), BATCH_ITEMS.number(b"1K")), (Some(0), None));
    }
}
