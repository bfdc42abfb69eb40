//! Hosts that break rules on the simulated device, and what is said of them.
#![allow(dead_code)] // each test file uses its own part

use crate::support::{Output, Run, aclshim, host};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Calls of a kind, several times from one call site: `hosts/check_one.c`.
pub fn one() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| host("hosts/check_one.c")).clone()
}

/// One bad call of many kinds: `hosts/check_calls.c`.
pub fn many() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| host("hosts/check_calls.c")).clone()
}

/// A run with the shim, on the simulated device, and with rings that hold all that these hosts do: whatever the machine
/// does meanwhile, nothing is lost.
pub fn watched(program: impl AsRef<OsStr>) -> Run {
    Run::new(program).sim().shim().env("ACLSHIM_RING_SIZE", "1M").env("ACLSHIM_RING_LIMIT", "1M")
}

/// A run of [`one`] with the shim; the cases are separated by blanks.
pub fn cases(cases: &str) -> Run {
    words(watched(one()), cases)
}

/// With these arguments.
pub fn words(run: Run, words: &str) -> Run {
    words.split_whitespace().fold(run, Run::arg)
}

/// Runs a host without and with the shim; what it shows must be the same.
#[track_caller]
pub fn same(program: PathBuf, prepare: impl Fn(Run) -> Run) -> Output {
    let without = prepare(Run::new(&program).sim()).run();
    let with = prepare(watched(&program)).run();
    for (with, without) in with.stdout.lines().zip(without.stdout.lines()) {
        assert_eq!(with, without, "with the shim, and without it");
    }
    assert_eq!(with.seen(), without.seen(), "with the shim, and without it");
    assert_ne!(with.status.signal(), Some(libc::SIGALRM), "hung: {with:?}");
    with
}

/// What `aclshim findings` prints of a run.
#[track_caller]
pub fn printed(output: &Output, how: &[&str]) -> String {
    let mut command = aclshim();
    command.env("ACLSHIM_RING_DIR", &output.scratch).arg("findings").args(how).arg(output.scratch.join("out"));
    let printed = command.output().expect("aclshim findings");
    assert!(printed.status.success(), "aclshim findings: {}", String::from_utf8_lossy(&printed.stderr));
    String::from_utf8(printed.stdout).expect("text")
}

/// The findings of a run.
#[track_caller]
pub fn findings(output: &Output) -> Vec<Value> {
    let lines = printed(output, &["--json"]);
    lines.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
}

/// Of these, the ids of the rules, in order.
#[track_caller]
pub fn rules(output: &Output) -> Vec<String> {
    ids(&findings(output))
}

/// The ids of the rules, in order.
pub fn ids(findings: &[Value]) -> Vec<String> {
    findings.iter().map(|finding| text(&finding["rule"]).to_owned()).collect()
}

/// A text that must be there.
#[track_caller]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// What `aclshim stat` counts of a rule.
#[track_caller]
pub fn counted(output: &Output, rule: &str) -> u64 {
    output.stat().0["findings"][rule].as_u64().unwrap_or(0)
}

/// The lines of an event about a topic.
pub fn about(output: &Output, event: &str, topic: &str) -> Vec<Value> {
    output.events(event).into_iter().filter(|line| line["topic"] == topic).collect()
}

/// The log in short: events with what they say.
pub fn said(output: &Output) -> Vec<String> {
    let short = |line: Value| format!("{} {} {} {}", line["event"], line["topic"], line["rule"], line["message"]);
    output.log().into_iter().map(short).collect()
}
