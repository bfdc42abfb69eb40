//! `aclshim collect`: one service for all processes of a machine, in whatever namespace they are and however they end.

#[path = "support/collecting.rs"]
mod collecting;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use aclshim_trace::reader::{self, RingFile};
use collecting::{Collector, Folders, Short, as_stat_says};
use recording::balance::balanced_at_any_end;
use recording::ordered::{Ordered, steps};
use recording::truth::Truth;
use recording::{hammer, traces, watched};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use support::{Output, Run, has_that, target, until};

// ---- Many processes, and what ends ----

#[test]
fn many_processes_at_once_are_drained_by_one_collector_and_the_totals_are_exact() {
    let folders = Folders::new("collect");
    let collector = folders.collector();
    let spin = (0..8).map(|at| (1000u64 << (2 * at)).to_string()).collect::<Vec<_>>();
    let mut ending: Vec<_> = (0..12).map(|_| folders.hammer(&["2", "3000"])).collect();
    let mut killing: Vec<_> = spin.iter().map(|spin| folders.hammer(&["2", "0", spin])).collect();
    let mut killed: Vec<_> = (0..4).map(|_| folders.hammer(&["1", "0"])).collect();
    for (child, folder) in &mut killed {
        until("it has called", || Truth::of(folder).ended() > 2000);
        child.kill().unwrap();
    }
    let [mut begun, mut ended] = [0; 2];
    for (child, folder) in ending.iter_mut().chain(&mut killing).chain(&mut killed) {
        child.wait().unwrap();
        let truth = Truth::of(folder);
        begun += truth.begun();
        // A call that came while another thread made the file is counted there with its thread's next one.
        ended += truth.lanes().map(|lane| lane.ended).filter(|ended| *ended > 1).sum::<u64>();
    }
    folders.until_finished();
    let metrics = collector.end(libc::SIGTERM);
    let stat = folders.stat();
    assert!((16..=24).contains(&stat.total("processes")), "but for those that were killed at their first calls");
    let sum = stat.total("calls") + stat.total("not_recorded");
    // Of each thread that was killed one call may be under way, and be recorded or not yet.
    assert!((ended..=begun).contains(&sum) && begun - ended <= 40, "{ended} <= {sum} <= {begun}");
    assert_eq!(metrics.sum("aclshim_calls_total", &[]), stat.total("calls"));
    assert_eq!(metrics.sum("aclshim_calls_not_recorded_total", &[]), stat.total("not_recorded"));
    assert_eq!(metrics.sum("aclshim_processes", &[]), 0);
    assert_eq!(metrics.sum("aclshim_worker_failures_total", &[]), 0);
    assert!(!metrics.text.contains("pid="), "those of processes that are gone are not told");
}

/// How many slots of the rings in a folder have been given back.
fn given_back(rings: &Path) -> u64 {
    let files = reader::files(rings).unwrap();
    let of = |mut file: RingFile| -> u64 {
        let rings = (0..file.look_for_rings()).filter_map(|number| file.ring(number));
        rings.map(|ring| ring.control.drained.load(Ordering::Acquire)).sum()
    };
    files.iter().filter_map(|file| RingFile::open(file).ok()).map(of).sum()
}

#[test]
fn a_collector_that_is_killed_again_and_again_loses_nothing_and_doubles_nothing() {
    for seed in 1..=3u64 {
        let told = Short::new();
        let run = watched(hammer()).arg("3").arg("0").env("ACLSHIM_DRAIN", "outside");
        let (child, folder) = run
            .env("ACLSHIM_RECORD", "lossless")
            .env("ACLSHIM_RING_SIZE", "16K")
            .env("ACLSHIM_RING_LIMIT", "16K")
            .spawn();
        let mut random = seed;
        for _ in 0..8 {
            let before = given_back(&folder);
            let collector = Collector::new(&folder, &told);
            // However slow the machine is: one that never came to drain would have the host wait at every call.
            until("it drains", || given_back(&folder) != before);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            std::thread::sleep(std::time::Duration::from_micros(random % 20_000));
            collector.kill();
        }
        // SAFETY: our own child, which was not waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGUSR1) }, 0);
        let collector = Collector::new(&folder, &told).ready();
        let output = child.wait_with_output().unwrap();
        until("all is written", || reader::files(&folder).unwrap().is_empty());
        collector.end(libc::SIGTERM);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        let output = Output { status: output.status, stdout, stderr, scratch: folder }.ok();
        let found = balanced_at_any_end(&output);
        assert!(traces(&output.scratch.join("out")).len() >= 2, "{found:?}");
        recording::done(output);
    }
}

#[test]
fn two_collectors_at_once_share_the_work_and_one_takes_over_from_the_other() {
    let folders = Folders::new("collect");
    let first = folders.collector();
    let told = Short::new();
    let second = Collector::new(&folders.rings, &told).ready();
    let mut hosts: Vec<_> = (0..8).map(|_| folders.hammer(&["2", "2000"])).collect();
    let mut calls = 0;
    for (child, folder) in &mut hosts {
        child.wait().unwrap();
        calls += Truth::of(folder).begun();
    }
    folders.until_finished();
    // A process that lives on: the collector that drains it is ended, and then the other one drains it.
    let mut host = folders.host(steps());
    host.order("calls 100");
    host.until_drained();
    let first = first.end(libc::SIGINT);
    host.order("calls 100");
    host.until_drained();
    host.end();
    folders.until_finished();
    let second = second.end(libc::SIGTERM);
    let stat = folders.stat();
    assert_eq!(stat.total("calls") + stat.total("not_recorded"), calls + 200);
    as_stat_says(&[&first, &second], &stat);
}

#[test]
fn what_is_in_a_ring_is_written_when_the_collector_is_told_to_end() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let folders = Folders::new("collect");
        let mut host = folders.host(steps());
        host.order("calls 100");
        let collector = folders.collector();
        host.until_drained();
        host.order("calls 100");
        let metrics = collector.end(signal);
        assert_eq!(metrics.sum("aclshim_calls_total", &[]), 200, "signal {signal}");
        host.until_drained();
        assert_eq!(folders.stat().total("calls"), 200);
        host.end();
    }
}

#[test]
fn a_worker_that_does_not_end_is_killed_and_that_is_said() {
    let folders = Folders::new("collect");
    let mut host = folders.host(steps());
    host.order("calls 100");
    let mut collector = folders.collector();
    host.until_drained();
    // SAFETY: the only child of our own child.
    assert_eq!(unsafe { libc::kill(collector.worker(), libc::SIGSTOP) }, 0);
    assert_eq!(collector.ended(libc::SIGTERM).code(), Some(1));
    let errors = collector.errors();
    assert!(
        errors.contains("did not end within 10 s and was killed") && errors.contains("aclshim recover"),
        "{errors}"
    );
    host.end();
    assert_eq!(folders.stat().total("calls"), 100);
}

// ---- Other namespaces ----

#[test]
fn a_process_of_another_pid_namespace_is_not_declared_dead_while_it_lives_and_finished_when_it_is_gone() {
    let test = "a_process_of_another_pid_namespace_is_not_declared_dead_while_it_lives_and_finished_when_it_is_gone";
    let probe = Command::new("unshare").args(["-r", "--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    if !has_that(probe.is_ok_and(|status| status.success()), "a pid namespace", test) {
        return;
    }
    let folders = Folders::new("collect");
    let collector = folders.collector();
    let run = |run: Run, pipe: &Path| {
        let run = run.arg("-r").arg("--pid").arg("--fork").arg("--kill-child").arg(steps()).arg(pipe);
        folders.run_outside(run)
    };
    let mut host = Ordered::new(run, "unshare").with_rings(&folders.rings);
    for _ in 0..3 {
        host.order("calls 100");
        host.until_drained();
        let [ring] = &reader::files(&folders.rings).unwrap()[..] else { panic!("one ring") };
        let name = ring.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("aclshim-1-"), "{name}: it is the first of its namespace");
        // The file is written some 20 times a second, processes that ended are looked for five times.
        let file = collector.folder.join("metrics.prom");
        for _ in 0..20 {
            let inode = || fs::metadata(&file).map_or(0, |about| about.ino());
            let before = inode();
            until("the file is written again", || inode() != before);
        }
        assert!(ring.exists());
        assert_eq!(collector.metrics().sum("aclshim_processes", &[]), 1);
    }
    host.end();
    folders.until_finished();
    let metrics = collector.end(libc::SIGTERM);
    let stat = folders.stat();
    assert_eq!((stat.total("calls"), stat.total("not_recorded")), (300, 0));
    as_stat_says(&[&metrics], &stat);
    let lines = support::log(&folders.out);
    assert_eq!(lines.iter().filter(|line| line["event"] == "stopped").count(), 1, "{lines:?}");
}

#[test]
fn a_process_is_not_declared_dead_by_a_proc_of_another_pid_namespace() {
    let test = "a_process_is_not_declared_dead_by_a_proc_of_another_pid_namespace";
    let probe = Command::new("unshare").args(["-r", "--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    if !has_that(probe.is_ok_and(|status| status.success()), "a pid namespace", test) {
        return;
    }
    let folders = Folders::new("collect");
    let file = folders.metrics.join("metrics.prom");
    // Both in one namespace, where the host is the first process; under /proc that is another, which began long ago.
    let shell = "\"$1\" collect --metrics-file \"$2\" --metrics-interval 0.05 \"$3\" </dev/null >/dev/null & exec \"$4\" \"$5\"";
    let run = |run: Run, pipe: &Path| {
        let run = ["-r", "--pid", "--fork", "--kill-child", "sh", "-c", shell, "sh"].iter().fold(run, Run::arg);
        folders.run_outside(run.arg(target("release/aclshim")).arg(&file).arg(&folders.rings).arg(steps()).arg(pipe))
    };
    let mut host = Ordered::new(run, "unshare").with_rings(&folders.rings);
    for _ in 0..2 {
        host.order("calls 100");
        host.until_drained();
        let [ring] = &reader::files(&folders.rings).unwrap()[..] else { panic!("one ring") };
        assert!(ring.file_name().unwrap().to_str().unwrap().starts_with("aclshim-1-"), "{ring:?}");
        // The file is written some 20 times a second, processes that ended are looked for five times.
        for _ in 0..20 {
            let inode = || fs::metadata(&file).map_or(0, |about| about.ino());
            let before = inode();
            until("the file is written again", || inode() != before);
        }
        assert!(ring.exists());
    }
    host.end();
    assert_eq!(folders.stat().total("calls"), 200);
}
