//! Hosts that are run with and without the shim, and what must be equal.
#![allow(dead_code)] // each test file uses its own part

use crate::support::{Build, Output, Run};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs a host without and with the shim. What it shows must be the same; the run with the shim is given back.
#[track_caller]
pub fn same(host: &Path, prepare: impl Fn(Run) -> Run) -> Output {
    let without = prepare(Run::new(host).sim()).run();
    let with = prepare(Run::new(host).sim().shim()).run();
    assert_eq!(with.seen(), without.seen(), "with the shim, and without it");
    assert!(!with.status.to_string().contains("SIGALRM"), "hung: {with:?}");
    with
}

/// Runs a host that must end with 0 without and with the shim, and compares.
#[track_caller]
pub fn same_and_well(host: &Path, prepare: impl Fn(Run) -> Run) -> Output {
    same(host, prepare).ok()
}

/// Runs a host that leaves neither a ring nor a log, and compares; with the shim, its standard error has two lines about that.
#[track_caller]
pub fn same_and_said(host: &Path, calls: u64, prepare: impl Fn(Run) -> Run) -> Output {
    let without = prepare(Run::new(host).sim()).run();
    let mut with = prepare(Run::new(host).sim().shim()).run();
    let said = std::mem::take(&mut with.stderr);
    let [why, lost] = &said.lines().collect::<Vec<_>>()[..] else { panic!("two lines: {said}") };
    assert!(why.starts_with("aclshim: calls are forwarded but not recorded: no file could be made in "), "{why}");
    assert_eq!(*lost, format!("aclshim: {calls} calls were forwarded and not recorded"));
    assert_eq!(with.seen(), without.seen());
    with.ok()
}

/// What the program itself says it has called.
#[track_caller]
pub fn own(output: &Output) -> u64 {
    let lines = fs::read_to_string(output.scratch.join("own")).expect("the program's own count");
    lines.lines().map(|line| line.parse::<u64>().unwrap()).sum()
}

/// The count files of a run.
pub fn rings(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension() == Some("ring".as_ref())).collect()
}

/// Every call the program made is in `calls`, none is lost, nested or still open.
#[track_caller]
pub fn counted_exactly(output: &Output) {
    let stat = output.stat();
    let sums = ["calls", "nested", "not_recorded", "in_flight"].map(|key| stat.total(key));
    assert_eq!(sums, [own(output), 0, 0, 0], "calls, nested, not recorded, in flight");
}

/// Every call the program made is recorded or counted as not recorded: it calls faster than the drain writes.
#[track_caller]
pub fn balanced(output: &Output) {
    let stat = output.stat();
    let [calls, missed, nested, open] = ["calls", "not_recorded", "nested", "in_flight"].map(|key| stat.total(key));
    assert_eq!((calls + missed, nested, open), (own(output), 0, 0), "{calls} calls, {missed} not recorded");
    assert!(calls >= stat.total("processes"), "{calls} of {} calls", own(output));
}

/// The log's lines about an event: their subjects.
pub fn logged(output: &Output, event: &str) -> Vec<String> {
    let lines = output.log().into_iter().filter(|line| line["event"] == event);
    lines.map(|line| line["subject"].as_str().unwrap().to_owned()).collect()
}

pub fn plain_library() -> PathBuf {
    Build::new("hosts/guest_plain_lib.c").link("ascendcl").library("guest_plain")
}

/// A program that needs the vendor's functions and names no library for them.
pub fn missing() -> PathBuf {
    let library = Build::new("hosts/guest_missing_lib.c").library("guest_missing");
    let path = format!("-Wl,-rpath,{}", library.parent().unwrap().display());
    Build::new("hosts/guest_missing.c").arg(library).arg("-Wl,--allow-shlib-undefined").arg(path).program()
}
