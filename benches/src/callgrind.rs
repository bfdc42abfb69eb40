//! Instructions a call, counted by valgrind's callgrind on the calling thread.

use crate::rounds::Measured;
use crate::scratch::Scratch;
use crate::variant::Ready;
use crate::{host, progress};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::process::Command;

/// Two runs differ by so many calls and nothing else: what start and end cost is in both.
const CALLS: u64 = 1000;

/// Fills in `instructions`, if valgrind is installed.
pub fn count(variants: &[Ready], scratch: &Scratch, all: &mut [Measured]) -> Result<()> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("left out: instructions: valgrind is not installed");
        return Ok(());
    }
    for (variant, measured) in variants.iter().zip(all) {
        progress::show(format_args!("instructions of {}", variant.row.name));
        let [fewer, more] = [CALLS, 2 * CALLS].map(|calls| total(variant, scratch, calls));
        measured.instructions = Some((more? - fewer?) as f64 / CALLS as f64);
    }
    progress::clear();
    Ok(())
}

/// The instructions of a whole run with so many calls.
fn total(variant: &Ready, scratch: &Scratch, calls: u64) -> Result<i64> {
    let name = variant.row.name;
    let counts = scratch.ring.join("callgrind");
    let output = host::command("valgrind", variant, scratch)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        // A thread has its own file: a library's own thread is not what the caller waits for.
        .args(["--tool=callgrind", "--separate-threads=yes"])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(&scratch.host)
        .args(["calls", &calls.to_string()])
        .output()?;
    ensure!(output.status.success(), "{name}: valgrind: {}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(counts.with_file_name("callgrind-01"))?;
    scratch.sweep()?;
    let totals = text.lines().find_map(|line| line.strip_prefix("totals: "));
    totals.and_then(|total| total.trim().parse().ok()).with_context(|| format!("{name}: callgrind wrote no totals"))
}
