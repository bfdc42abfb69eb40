//! Drains outside sleep beside a process that does nothing: `aclshim collect` and `aclshim run`.

#[path = "support/collecting.rs"]
mod collecting;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use collecting::Folders;
use recording::ordered::{Ordered, steps};
use recording::vendor;
use std::fs;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{Run, aclshim, target, until};

/// The longest time from a call to its record in the trace: ten seconds, and what a busy machine adds.
const LAG: Duration = Duration::from_secs(20);
/// How long wake-ups are counted, and how many there may be.
const WINDOW: Duration = Duration::from_secs(10);
const MOST: u64 = 2;

/// A process and its descendants, as far as they are `aclshim`.
fn processes(pid: u32) -> Vec<u32> {
    let is_ours =
        |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == target("release/aclshim"));
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<u32> =
        lists.flat_map(|list| list.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    [pid].into_iter().filter(is_ours).chain(children.into_iter().flat_map(processes)).collect()
}

/// How often all threads of `aclshim` have gone to sleep. (An involuntary switch is no wake-up: the thread was running.)
fn sleeps(pid: u32) -> u64 {
    let tasks =
        processes(pid).into_iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten());
    let count = |task: fs::DirEntry| -> Option<u64> {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
    };
    tasks.flatten().filter_map(count).sum()
}

/// One call is written in time, and then the drain of process `pid` sleeps.
#[track_caller]
fn writes_and_sleeps(pid: u32, host: &mut Ordered) {
    host.order("calls 1");
    let called = Instant::now();
    host.until_drained();
    assert!(called.elapsed() < LAG, "{:?}", called.elapsed());
    until("it has reported that, and looked once more", || {
        let before = sleeps(pid);
        std::thread::sleep(Duration::from_millis(1500));
        sleeps(pid) == before
    });
    let before = sleeps(pid);
    assert!(before > 0);
    std::thread::sleep(WINDOW);
    let woken = sleeps(pid) - before;
    assert!(woken <= MOST, "{woken} wake-ups in {WINDOW:?}");
}

#[test]
fn a_collector_sleeps_beside_a_process_that_does_nothing() {
    let folders = Folders::new("idle");
    let socket = folders.metrics.join("metrics.sock");
    let mut command = aclshim();
    command.arg("collect").arg("--metrics-socket").arg(&socket).arg(&folders.rings).stdin(Stdio::null());
    let mut collector = command.spawn().unwrap();
    until("the collector answers", || UnixStream::connect(&socket).is_ok());
    let mut host = folders.host(steps());
    writes_and_sleeps(collector.id(), &mut host);
    // It is not asleep for good.
    host.order("calls 100000");
    host.end();
    folders.until_finished();
    let stat = folders.stat();
    assert_eq!(stat.total("calls") + stat.total("not_recorded"), 100_001);
    // SAFETY: our own child, which was not waited for.
    unsafe { libc::kill(collector.id() as i32, libc::SIGTERM) };
    assert!(collector.wait().unwrap().success());
}

#[test]
fn run_sleeps_beside_a_program_that_does_nothing() {
    let folders = Folders::new("idle");
    let run = |_: Run, pipe: &std::path::Path| {
        let run = Run::new(target("release/aclshim")).library_path(vendor()).arg("run").arg("--quiet");
        folders.run(run.arg("--").arg(steps()).arg(pipe))
    };
    let mut host = Ordered::new(run, steps()).with_rings(&folders.rings);
    let pid = host.id();
    writes_and_sleeps(pid, &mut host);
    host.order("calls 100000");
    assert!(host.end().status.success());
    let stat = folders.stat();
    assert_eq!(
        (stat.total("calls") + stat.total("not_recorded"), stat.0["slots"]["ring"].as_u64()),
        (100_001, Some(0))
    );
}
