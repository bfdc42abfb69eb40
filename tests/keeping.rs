//! No call is lost, however busy the machine is; where memory for rings is short, each lost call is counted.

#[path = "support/places.rs"]
mod places;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use places::{has_disks, on_a_disk};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use support::{Build, Output, Run, Stat, host, scratch, target};

fn program() -> PathBuf {
    host("hosts/keeping_calls.c")
}

/// A run with the shim and a vendor's library that returns at once.
fn watched(program: impl AsRef<std::ffi::OsStr>) -> Run {
    let vendor = Build::new("hosts/keeping_vendor.c").library("ascendcl");
    Run::new(program).library_path(vendor.parent().unwrap()).shim()
}

/// Processes that use all processors, twice as many as there are, for one test at a time; ended with the test.
struct BusyLoops {
    children: Vec<Child>,
    _turn: MutexGuard<'static, ()>,
}

impl BusyLoops {
    fn start() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        // A test that has failed has ended its loops.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = Build::new("hosts/keeping_vendor.c").library("ascendcl").parent().unwrap().to_owned();
        let count = 2 * std::thread::available_parallelism().unwrap().get();
        let spin = |_| {
            let mut command = Command::new(program());
            command.arg("spin").env("LD_LIBRARY_PATH", &folder).stdin(Stdio::null()).spawn().unwrap()
        };
        Self { children: (0..count).map(spin).collect(), _turn: turn }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Calls that are recorded, and calls that are counted as not recorded: together all that the host has made.
#[track_caller]
fn balance(output: Output, expected: u64) -> [u64; 2] {
    let output = output.ok();
    assert_eq!((output.stdout.trim(), output.stderr.as_str()), (expected.to_string().as_str(), ""));
    let stat = output.stat();
    let sums = ["calls", "not_recorded"].map(|key| stat.total(key));
    assert_eq!(sums.iter().sum::<u64>(), expected, "calls, not recorded: {sums:?}");
    assert_eq!(["nested", "in_flight", "evicted"].map(|key| stat.total(key)), [0; 3]);
    recording::done(output);
    sums
}

#[test]
fn threads_that_call_back_to_back_beside_busy_loops_lose_no_call() {
    let _busy = BusyLoops::start();
    let output = watched(program()).arg("1").arg("8").arg("16384").run();
    assert_eq!(balance(output, 8 * 16384), [8 * 16384, 0]);
}

#[test]
fn a_thread_with_a_thousand_calls_a_millisecond_beside_busy_loops_loses_no_call() {
    let _busy = BusyLoops::start();
    // No more than a ring of the largest size holds: however slow the drain is, there is room.
    let output = watched(program()).arg("1").arg("1").arg("50000").arg("1000").run();
    assert_eq!(balance(output, 50_000), [50_000, 0]);
}

#[test]
fn with_16_mib_for_rings_threads_that_call_back_to_back_lose_no_call() {
    if !has_disks("with_16_mib_for_rings_threads_that_call_back_to_back_lose_no_call") {
        return;
    }
    let _busy = BusyLoops::start();
    assert_eq!(balance(on_a_disk_of("16m", ["1", "8", "16384"]), 8 * 16384), [8 * 16384, 0]);
}

#[test]
fn with_2_mib_for_rings_each_call_is_recorded_or_counted() {
    if !has_disks("with_2_mib_for_rings_each_call_is_recorded_or_counted") {
        return;
    }
    let _busy = BusyLoops::start();
    let [recorded, lost] = balance(on_a_disk_of("2m", ["1", "16", "50000"]), 16 * 50_000);
    assert!(recorded > 0, "{lost} lost");
}

/// Runs a host, and says what its rings hold while the file system with them is there.
const THEN_STAT: &str = "\"$@\" && \"$ACLSHIM\" stat --json \"$DISK\"/*";

#[test]
fn what_2_mib_of_rings_cannot_hold_is_counted_where_nothing_is_drained() {
    if !has_disks("what_2_mib_of_rings_cannot_hold_is_counted_where_nothing_is_drained") {
        return;
    }
    let disk = scratch("disk");
    let run = on_a_disk(watched("unshare"), "2m", &disk, Path::new("sh")).arg("-c").arg(THEN_STAT).arg("sh");
    let run = run.env("ACLSHIM_RING_DIR", &disk).env("ACLSHIM_DRAIN", "off").env("ACLSHIM", target("release/aclshim"));
    let output = run.arg(program()).arg("1").arg("16").arg("50000").run().ok();
    let (made, stat) = output.stdout.split_once('\n').expect("a number, then an object");
    assert_eq!(made, "800000");
    let stat = Stat(serde_json::from_str(stat).unwrap());
    let [recorded, lost] = ["calls", "not_recorded"].map(|key| stat.total(key));
    assert_eq!(recorded + lost, 800_000);
    assert!(recorded > 0 && lost > 0, "{recorded} recorded, {lost} lost");
}

#[test]
fn of_64_processes_with_64_mib_for_rings_each_call_is_recorded_or_counted() {
    if !has_disks("of_64_processes_with_64_mib_for_rings_each_call_is_recorded_or_counted") {
        return;
    }
    let [recorded, lost] = balance(on_a_disk_of("64m", ["64", "4", "2000"]), 64 * 4 * 2000);
    assert!(recorded > 0, "{lost} lost");
}

/// A run whose rings are in a file system of a given size.
fn on_a_disk_of(size: &str, arguments: [&str; 3]) -> Output {
    let disk = scratch("disk");
    let run = on_a_disk(watched("unshare"), size, &disk, &program()).env("ACLSHIM_RING_DIR", &disk);
    arguments.into_iter().fold(run, Run::arg).run()
}
