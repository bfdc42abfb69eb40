//! Instructions a call, counted by valgrind's callgrind on the calling thread.

use crate::measured::Measured;
use crate::preload::Ready;
use crate::scratch::Scratch;
use crate::{compiler, host, progress};
use anyhow::{Context, Result, ensure};
use std::fs;

/// Fills in `instructions`, if valgrind is installed.
pub fn count(variants: &[Ready], scratch: &Scratch, all: &mut [Measured]) {
    if !compiler::runs("valgrind") {
        eprintln!("left out: instructions: valgrind is not installed");
        return;
    }
    for (variant, measured) in variants.iter().zip(all) {
        progress::show(format_args!("instructions of {}", variant.name));
        // Two runs differ in their calls and in nothing else: what start and end cost is in both.
        let [fewer, more] = variant.row.load.counted;
        match total(variant, scratch, fewer).and_then(|less| Ok(total(variant, scratch, more)? - less)) {
            Ok(difference) => measured.instructions = Some(difference as f64 / (more - fewer) as f64),
            // What was measured before is not to be lost by it.
            Err(error) => eprintln!("left out: instructions of {}: {error:#}", variant.name),
        }
    }
    progress::clear();
}

/// Number of instructions of a whole run with `calls` calls.
fn total(variant: &Ready, scratch: &Scratch, calls: u64) -> Result<i64> {
    let counts = scratch.ring.join("callgrind");
    let output = host::command("valgrind", variant, scratch)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        // A thread has its own file: a library's own thread is not what the caller waits for.
        .args(["--tool=callgrind", "--separate-threads=yes"])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(&scratch.host)
        .args(["calls", &calls.to_string()])
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(counts.with_file_name("callgrind-01"));
    scratch.sweep()?;
    let text = text?;
    let totals = text.lines().find_map(|line| line.strip_prefix("totals: "));
    totals.and_then(|total| total.trim().parse().ok()).context("callgrind wrote no totals")
}
