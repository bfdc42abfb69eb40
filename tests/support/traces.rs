//! Traces of killed and running processes, and what commands say of them.
#![allow(dead_code)] // each test file uses its own part

use crate::keeping::kept_with;
use crate::support::Stat;
use aclshim_collect::storage::budget::Sizes;
use aclshim_collect::storage::rotation::OutputLocation;
use aclshim_collect::storage::segment::TraceWriter;
use aclshim_trace::record::slot::{self, Layout};
use aclshim_trace::ring::layout::Header;
use aclshim_trace::segment::format::{BlockHead, kind};
use aclshim_trace::system::namespace;
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

/// What `keep_calls 2 12` has made.
pub const CALLS: u64 = 5 + 2 * 12;

/// A run whose process was killed and whose ring nothing drained.
pub fn killed() -> crate::support::Output {
    let output = kept_with(&["2", "12", "kill"], |run| run.env("ACLSHIM_DRAIN", "off"));
    assert_eq!(output.status.signal(), Some(libc::SIGKILL));
    output
}

/// What is said of all files, problems or remarks.
pub fn said(answer: &Value, what: &str) -> String {
    let files = answer["files"].as_array().unwrap();
    let notes = files.iter().flat_map(|file| file[what].as_array().unwrap());
    notes.map(|note| note["what"].as_str().unwrap().to_owned() + "\n").collect()
}

pub fn calls(dir: &Path, rings: &Path) -> u64 {
    Stat::of(dir, rings).total("calls")
}

/// A trace of this process that is written here, a segment a call; it began so.
pub fn trace_of_us(dir: &Path, start_time: u64) -> TraceWriter {
    // SAFETY: zero is a valid header.
    let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
    let boot_id = fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    (header.pid, header.start_time) = (std::process::id(), start_time);
    (header.pid_ns, header.time_ns) = (namespace::pid(), namespace::time());
    header.boot_id[..36].copy_from_slice(&boot_id[..36]);
    header.functions = 1;
    header.names[..11].copy_from_slice(b"aclrtMemcpy");
    // SAFETY: a plain structure, read as bytes.
    let header = unsafe { std::slice::from_raw_parts((&raw const *header).cast::<u8>(), size_of::<Header>()) };
    let sizes = Sizes { segment: 1, budget: 1 << 30 };
    TraceWriter::new(OutputLocation { dir: dir.to_owned(), stem: "us".into(), sizes }, header)
}

/// The head of a block of that trace.
pub fn head(kind: u32, number: u64) -> BlockHead {
    BlockHead { kind, first: number, flags: 1, ticks: 1 + number, realtime_ns: 1000 + number, ..BlockHead::default() }
}

/// Writes one more segment to it, with a call of that number.
pub fn segment(trace: &mut TraceWriter, number: u64) -> PathBuf {
    let words = [slot::Head::done(number, Layout::Linear, 0).0, 1000, 7, 1, 2, 3, 64, 0];
    trace.append(&head(kind::SLOTS, number), words.map(u64::to_le_bytes).as_flattened()).unwrap();
    trace.path().unwrap().to_owned()
}
