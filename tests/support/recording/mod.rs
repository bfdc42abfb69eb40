//! Hosts whose calls follow from a lane (a flow of calls) and a number, and what is recorded of them.
//!
//! Such a host keeps a page of [`truth`] about how far each lane is. What was recorded is read back slot by slot, from the
//! trace and from the ring ([`left`]), and each record is compared with the call that it says it is ([`content`]).
#![allow(dead_code)] // each test file uses its own part

pub mod balance;
pub mod content;
pub mod left;
pub mod ordered;
pub mod pattern;
pub mod stuck;
pub mod truth;

use crate::support::{Build, Output, Run};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// How a ring that is full is dealt with (`ACLSHIM_RECORD`).
pub const MODES: [&str; 3] = ["audit", "flight", "lossless"];

/// A host whose addresses are the same in each of its processes, linked to the vendor that only answers.
pub fn patterned(source: &str) -> PathBuf {
    Build::new(source).arg("-no-pie").link("ascendcl").program()
}

/// The folder of that vendor.
pub fn vendor() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let library = BUILT.get_or_init(|| Build::new("hosts/record_vendor.c").library("ascendcl"));
    library.parent().unwrap().to_owned()
}

/// Threads that call at full speed.
pub fn hammer() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| patterned("hosts/record_hammer.c")).clone()
}

/// A run of a patterned host with the shim.
pub fn watched(program: impl AsRef<OsStr>) -> Run {
    Run::new(program).library_path(vendor()).shim()
}

/// Runs a patterned host, or a program that starts one, without and with the shim; what it shows must be the same.
#[track_caller]
pub fn same(program: impl AsRef<OsStr>, prepare: impl Fn(Run) -> Run) -> Output {
    let without = prepare(Run::new(&program).library_path(vendor())).run();
    let with = prepare(watched(&program)).run();
    assert_eq!(with.seen(), without.seen(), "with the shim, and without it");
    assert_ne!(with.status.signal(), Some(libc::SIGALRM), "hung: {with:?}");
    with
}

/// The run of a host that must end with 0 and print no errors.
#[track_caller]
pub fn unharmed(program: impl AsRef<OsStr>, prepare: impl Fn(Run) -> Run) -> Output {
    let with = same(program, prepare);
    assert_eq!(with.stderr, "");
    with.ok()
}

/// The run of a host that leaves neither a ring nor a log: its standard error says how many calls were lost, and
/// nothing else.
#[track_caller]
pub fn unharmed_and_said(program: impl AsRef<OsStr>, prepare: impl Fn(Run) -> Run) -> Output {
    let without = prepare(Run::new(&program).library_path(vendor())).run();
    let mut with = prepare(watched(&program)).run();
    let lines: Vec<_> = with.stderr.lines().map(String::from).collect();
    let [first, last] = &lines[..] else { panic!("two lines: {with:?}") };
    assert!(first.starts_with("aclshim: calls are forwarded but not recorded: no file could be made in "), "{first}");
    assert_eq!(*last, format!("aclshim: {} calls were forwarded and not recorded", truth::made(&with)));
    with.stderr.clear();
    assert_eq!(with.seen(), without.seen(), "with the shim, and without it");
    with.ok()
}

/// The traces in a directory, by name.
pub fn traces(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).into_iter().flatten().map(|file| file.unwrap().path());
    let mut traces: Vec<_> = files.filter(|path| path.extension() == Some("acltrace".as_ref())).collect();
    traces.sort();
    traces
}

/// A folder that grew large is not left behind.
pub fn done(output: Output) {
    fs::remove_dir_all(output.scratch).unwrap();
}
