//! A copy of c-examples/testing somewhere else, as a user has it, and how he builds it.
#![allow(dead_code)] // each test file uses its own part

use crate::support::{Output, Run, aclshim, root, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The test programs: one in plain C and one for each framework.
pub const PROGRAMS: [&str; 3] = ["test_kv", "test_kv_cmocka", "test_kv_gtest"];

/// A folder outside of the tree, gone at the end.
pub struct Outside(pub PathBuf);

impl Outside {
    /// An empty one.
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("aclshim-examples-{}-{number}", std::process::id()));
        // Of an earlier process with the same number.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A command in a folder with what a user has exported, and nothing of ours. It must not touch this machine's `/dev/shm`.
pub fn user(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["ACLSHIM_", "ASCEND", "LD_", "CARGO", "RUST", "MAKE", "MFLAGS"].iter().any(|ours| text.starts_with(ours)) {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).env("PKG_CONFIG_PATH", target("")).env("ACLSHIM_RING_DIR", folder);
    command
}

/// Runs a command of a user's; what it printed.
#[track_caller]
pub fn done(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{command:?}: {:?}\n{stdout}\n{stderr}", output.status);
    stdout + &stderr
}

/// The examples, copied.
pub struct Copy {
    outside: Outside,
}

impl Copy {
    /// A fresh copy of what is committed.
    pub fn new() -> Self {
        let (outside, from) = (Outside::new(), root().join("c-examples/testing"));
        copied(&from, &outside.0);
        Self { outside }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.outside.0
    }

    /// Changes a text that occurs once in a file, as a programmer would.
    #[track_caller]
    pub fn change(&self, file: &str, from: &str, to: &str) {
        let path = self.folder().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{file}: {from}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    /// `make`, with a word or none.
    #[track_caller]
    pub fn make(&self, words: &[&str]) -> String {
        let mut make = user("make", self.folder());
        make.args(words);
        done(make)
    }

    /// By `aclshim test`.
    pub fn tested(&self, program: &str) -> Output {
        let mut command = user(aclshim().get_program().to_str().unwrap(), self.folder());
        let output = command.args(["test", "--"]).arg(self.folder().join(program)).output().expect("aclshim test");
        Output {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            scratch: self.folder().into(),
        }
    }

    /// A run from its folder, where the golden file is found.
    pub fn run(&self, program: &str) -> Run {
        Run::new("sh").arg("-c").arg("cd \"$0\" && exec \"./$1\"").arg(self.folder()).arg(program).sim()
    }
}

/// Copies a folder.
pub fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let place = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copied(&entry.path(), &place),
            false => drop(fs::copy(entry.path(), place).unwrap()),
        }
    }
}
