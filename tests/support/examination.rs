//! The doctor about a program, and what its report says.
#![allow(dead_code)] // each test file uses its own part

use crate::support::{Build, Run, runnable, scratch, target};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the doctor said.
pub struct Told {
    pub json: Value,
    pub exit: Option<i32>,
    /// Where the program would have left its mark.
    pub mark: PathBuf,
}

/// The doctor, on the simulated device.
pub fn doctor() -> Run {
    Run::new(target("release/aclshim")).arg("doctor").arg("--json").sim()
}

/// The doctor about a program.
pub fn about(program: impl AsRef<Path>) -> Run {
    doctor().arg("--").arg(program.as_ref())
}

#[track_caller]
pub fn told(run: Run) -> Told {
    let mark = scratch("mark").join("mark");
    let output = run.env("DOCTOR_MARK", &mark).run();
    // What is preloaded may print something behind it.
    let json = serde_json::Deserializer::from_str(&output.stdout).into_iter().next();
    let json = json.and_then(Result::ok).unwrap_or_else(|| panic!("{output:?}"));
    Told { json, exit: output.status.code(), mark }
}

impl Told {
    /// The lines of an id.
    pub fn lines(&self, id: &str) -> Vec<&Value> {
        self.json["lines"].as_array().unwrap().iter().filter(|line| line["id"] == id).collect()
    }

    /// That there is a line of this id and level which holds all these words, in what was seen or in the remedy.
    #[track_caller]
    pub fn says(&self, id: &str, level: &str, words: &[&str]) -> &Self {
        let holds = |line: &&&Value| {
            let text = format!("{} {}", line["seen"], line["remedy"]);
            line["level"] == level && words.iter().all(|word| text.contains(word))
        };
        let found = self.lines(id);
        assert!(found.iter().find(holds).is_some(), "{id} {level} {words:?}: {:#}", self.json);
        self
    }

    /// That nothing is in the way.
    #[track_caller]
    pub fn is_well(&self) -> &Self {
        assert_eq!((self.exit, &self.json["problems"]), (Some(0), &0.into()), "{:#}", self.json);
        self
    }

    /// That something is in the way, and the calls are not seen.
    #[track_caller]
    pub fn is_not_well(&self) -> &Self {
        assert_eq!(self.exit, Some(1), "{:#}", self.json);
        for line in self.json["lines"].as_array().unwrap().iter().filter(|line| line["level"] != "ok") {
            assert!(line["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "a remedy for each: {line}");
        }
        self
    }

    /// Whether the calls will be seen.
    #[track_caller]
    pub fn sees(&self, what: &str) -> &Self {
        assert_eq!(self.json["seen"], what, "{:#}", self.json);
        self
    }

    /// That the program was not run.
    #[track_caller]
    pub fn has_not_run(&self) -> &Self {
        assert!(!self.mark.exists(), "the program was run");
        self
    }
}

pub fn build(arguments: &[&str]) -> PathBuf {
    arguments.iter().fold(Build::new("hosts/doctor_host.c"), Build::arg).program()
}

pub fn linked() -> PathBuf {
    build(&["-lascendcl"])
}

/// A copy of a file with some bytes changed.
pub fn changed(file: &Path, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let copy = scratch("changed").join(file.file_name().unwrap());
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    runnable(&copy, &bytes);
    copy
}

pub fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|part| part == from).expect("what is to be replaced");
    bytes[at..at + to.len()].copy_from_slice(to);
}

pub fn script(first_line: &str, rest: &str) -> PathBuf {
    let file = scratch("script").join("script");
    runnable(&file, format!("{first_line}\n{rest}\n").as_bytes());
    file
}

/// A library or program of some lines of C in a folder.
pub fn compiled(file: &Path, source: &str, arguments: &[&str]) {
    let code = file.with_extension("c");
    fs::write(&code, source).unwrap();
    let folder = format!("-L{}", file.parent().unwrap().display());
    let made = Command::new("cc").arg("-o").args([file, &code]).arg(folder).args(arguments).status().unwrap();
    assert!(made.success(), "{}", file.display());
}
