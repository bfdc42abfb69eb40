//! Traces of a host with batches, findings, notes and several threads, for tests that damage, move and compare them.
#![allow(dead_code)] // each test file uses its own part

use crate::support::{Output, Run, aclshim, host};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// `hosts/keep_calls.c`.
pub fn program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| host("hosts/keep_calls.c")).clone()
}

/// Runs it with the shim.
pub fn kept(arguments: &[&str]) -> Output {
    kept_with(arguments, |run| run)
}

/// Runs it with the shim and with further settings.
pub fn kept_with(arguments: &[&str], prepare: impl Fn(Run) -> Run) -> Output {
    let run = arguments.iter().fold(Run::new(program()), Run::arg);
    prepare(run.sim().shim().env("ACLSHIM_RING_SIZE", "1M").env("ACLSHIM_RING_LIMIT", "1M")).run()
}

/// The files in a folder whose names end so.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension() == Some(extension.as_ref())).collect();
    files.sort();
    files
}

/// The only file of a folder whose name ends so.
#[track_caller]
pub fn only(folder: &Path, extension: &str) -> PathBuf {
    let [file] = &files(folder, extension)[..] else { panic!("{:?}", files(folder, extension)) };
    file.clone()
}

/// A command of ours that looks for rings in a folder, and nowhere else but in /dev/shm.
pub fn command(rings: &Path, arguments: &[&str]) -> Command {
    let mut command = aclshim();
    command.env("ACLSHIM_RING_DIR", rings).args(arguments);
    command
}

/// What a command answered: its exit status, and what it printed.
#[track_caller]
pub fn answer(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("no signal"), text(&output.stdout), text(&output.stderr))
}

/// The answer of `aclshim verify --json`, and its exit status.
#[track_caller]
pub fn verify(rings: &Path, paths: &[impl AsRef<OsStr>]) -> (i32, Value) {
    let (status, out, err) = answer(command(rings, &["verify", "--json"]).args(paths));
    (status, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}")))
}
