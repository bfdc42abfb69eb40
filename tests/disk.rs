//! Where nothing can be written, or no longer, or only sometimes: the host goes on as without the shim, and what was lost
//! is counted and said.

#[path = "support/places.rs"]
mod places;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use aclshim_trace::reader;
use places::{AS_ANOTHER, FullDisk, as_another, has_another, has_disks, on_a_disk};
use recording::ordered::{Ordered, steps};
use recording::stuck::Stuck;
use recording::truth::{made, tally};
use recording::{hammer, patterned, traces, unharmed, unharmed_and_said};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use support::{Output, Run, Stat, has_that, host, log, scratch, target};

/// Nothing could be recorded: the log says why, and how many calls that were.
#[track_caller]
fn not_recording(output: &Output) {
    let [why] = &output.events("not-recording")[..] else { panic!("one line: {:?}", output.log()) };
    assert!(!why["message"].as_str().unwrap().is_empty());
    let [lost] = &output.events("not-recorded")[..] else { panic!("one line: {:?}", output.log()) };
    assert_eq!(lost["subject"], made(output).to_string());
    assert_eq!(output.stat().total("processes"), 0);
}

// ---- The folder of the ring ----

#[test]
fn without_a_folder_for_the_ring_the_log_says_why_and_how_many_calls_were_not_recorded() {
    let folder = scratch("ring");
    fs::write(folder.join("file"), "mine").unwrap();
    symlink(folder.join("nowhere"), folder.join("link")).unwrap();
    for name in ["missing", "file", "link", "missing/below"] {
        let run = |run: Run| run.arg("2").arg("250").env("ACLSHIM_RING_DIR", folder.join(name));
        let output = unharmed(hammer(), run);
        assert_eq!(made(&output), 501);
        not_recording(&output);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "{name}: nothing was made");
    }
    assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "mine");
}

#[test]
fn in_a_ring_folder_that_is_not_ours_to_write_to_nothing_is_recorded_and_that_is_said() {
    if !has_another("in_a_ring_folder_that_is_not_ours_to_write_to_nothing_is_recorded_and_that_is_said") {
        return;
    }
    let folder = scratch("ring");
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o555)).unwrap();
    let run = |run: Run| as_another(run, &hammer()).arg("2").arg("250").env("ACLSHIM_RING_DIR", &folder);
    let output = unharmed("sh", run);
    not_recording(&output);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_ring_folder_may_be_reached_by_a_link() {
    let folder = scratch("ring");
    fs::create_dir(folder.join("real")).unwrap();
    symlink(folder.join("real"), folder.join("link")).unwrap();
    let output = unharmed(hammer(), |run| run.arg("2").arg("250").env("ACLSHIM_RING_DIR", folder.join("link")));
    let sums = tally(&output, &Stat::of(&output.scratch.join("out"), &folder.join("link")));
    assert_eq!(sums, [501, 0, 0]);
    assert_eq!(reader::files(&folder.join("real")).unwrap().len(), 1);
}

#[test]
fn on_a_full_ring_disk_nothing_is_recorded_and_that_is_said() {
    if !has_disks("on_a_full_ring_disk_nothing_is_recorded_and_that_is_said") {
        return;
    }
    let disk = scratch("disk");
    let run = |run: Run| on_a_disk(run, "16k", &disk, &hammer()).arg("2").arg("250").env("ACLSHIM_RING_DIR", &disk);
    not_recording(&unharmed("unshare", run));
}

#[test]
fn threads_that_find_no_room_for_a_ring_are_forwarded_and_counted() {
    if !has_disks("threads_that_find_no_room_for_a_ring_are_forwarded_and_counted") {
        return;
    }
    let disk = scratch("disk");
    // Enough that some are counted in the header while the drain writes that count.
    let run = |run: Run| on_a_disk(run, "400k", &disk, &hammer()).arg("16").arg("50000").env("ACLSHIM_RING_DIR", &disk);
    let output = unharmed("unshare", run);
    let [calls, missed, _] = tally(&output, &output.stat());
    assert!(calls >= 200 && missed >= 200, "{calls} calls, {missed} not recorded");
    let lost = output.events("lost").into_iter().filter(|line| line["reason"] == "there was no ring");
    let said: u64 = lost.map(|line| line["calls"].as_u64().unwrap()).sum();
    assert!((1..=missed).contains(&said), "{said} of {missed}: {:?}", output.log());
    assert_eq!(output.events("stopped")[0]["not_recorded"], missed);
}

// ---- The folder of the trace ----

#[test]
fn without_a_folder_for_the_trace_records_stay_in_the_ring_and_the_rest_is_counted() {
    let folder = scratch("dir");
    fs::write(folder.join("file"), "mine").unwrap();
    for dir in [folder.join("missing/out"), folder.join("file"), PathBuf::from("/proc/nothing")] {
        for (calls, fits) in [("300", true), ("5000", false)] {
            let output = unharmed(hammer(), |run| {
                run.arg("1").arg(calls).env("ACLSHIM_DIR", &dir).env("ACLSHIM_RING_LIMIT", "64K")
            });
            let [ring] = &reader::files(&output.scratch).unwrap()[..] else { panic!("one ring") };
            let [recorded, missed, _] = tally(&output, &Stat::of(ring, &output.scratch));
            assert_eq!(missed == 0, fits, "{}: {recorded} recorded, {missed} not", dir.display());
            assert!(!folder.join("missing").exists());
        }
    }
    assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "mine");
}

#[test]
fn in_a_folder_that_is_not_ours_to_write_to_no_trace_is_made_and_records_stay_in_the_ring() {
    if !has_another("in_a_folder_that_is_not_ours_to_write_to_no_trace_is_made_and_records_stay_in_the_ring") {
        return;
    }
    let dir = scratch("dir");
    fs::set_permissions(&dir, PermissionsExt::from_mode(0o555)).unwrap();
    let output = unharmed("sh", |run| {
        as_another(run, &hammer()).arg("1").arg("5000").env("ACLSHIM_DIR", &dir).env("ACLSHIM_RING_LIMIT", "64K")
    });
    // By its name: where the directory is root's, a ring of another user does not count for it.
    let [ring] = &reader::files(&output.scratch).unwrap()[..] else { panic!("one ring") };
    let [recorded, missed, _] = tally(&output, &Stat::of(ring, &output.scratch));
    assert!(recorded > 0 && missed > 0, "{recorded} recorded, {missed} not");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn a_umask_that_takes_the_owners_own_rights_away_takes_no_record() {
    if !has_another("a_umask_that_takes_the_owners_own_rights_away_takes_no_record") {
        return;
    }
    let script = format!("umask 277; {AS_ANOTHER}");
    let output = unharmed("sh", |run| run.arg("-c").arg(&script).arg("sh").arg(hammer()).arg("1").arg("100"));
    assert_eq!(tally(&output, &output.stat()), [100, 0, 0]);
}

// ---- A disk that is full for a while ----

#[test]
fn while_the_disk_is_full_records_wait_and_then_all_of_them_are_written() {
    if !has_disks("while_the_disk_is_full_records_wait_and_then_all_of_them_are_written") {
        return;
    }
    let mut full = FullDisk::new();
    full.host.order("calls 300");
    full.make_room();
    let (output, stat, dir) = full.end();
    assert_eq!(tally(&output, &stat), [400, 0, 0]);
    assert_eq!(stat.0["slots"]["ring"], 0, "all is in the trace");
    let log = log(&dir);
    let is_said = |line: &serde_json::Value| line["event"] == "write_failed" && line["errno"] == libc::ENOSPC;
    // Once for each file that had to wait: the trace, and perhaps the log.
    let said: Vec<_> = log.iter().filter(|line| is_said(line)).map(|line| line["file"].as_str()).collect();
    let files: BTreeSet<_> = said.iter().collect();
    assert!(!said.is_empty() && said.len() == files.len(), "{log:?}");
}

#[test]
fn what_does_not_fit_into_the_ring_while_the_disk_is_full_is_counted_and_said() {
    if !has_disks("what_does_not_fit_into_the_ring_while_the_disk_is_full_is_counted_and_said") {
        return;
    }
    let mut full = FullDisk::new();
    full.host.order("calls 3000");
    full.make_room();
    full.host.order("calls 10");
    let (output, stat, dir) = full.end();
    let [_, missed, _] = tally(&output, &stat);
    assert!(missed > 1000, "{missed}");
    let log = log(&dir);
    let lost = log.iter().filter(|line| line["event"] == "lost").map(|line| line["calls"].as_u64().unwrap());
    assert_eq!(lost.sum::<u64>(), missed, "{log:?}");
}

#[test]
fn a_host_that_ends_while_the_disk_is_full_ends_as_it_would_and_its_records_stay_in_the_ring() {
    if !has_disks("a_host_that_ends_while_the_disk_is_full_ends_as_it_would_and_its_records_stay_in_the_ring") {
        return;
    }
    let mut full = FullDisk::new();
    full.host.order("calls 300");
    let (output, stat, _) = full.end();
    assert_eq!(tally(&output, &stat), [400, 0, 0]);
}

#[test]
fn a_host_whose_drain_is_stuck_ends_all_the_same_and_its_records_stay_in_the_ring() {
    let mut host = Ordered::new(|run, pipe| run.arg(pipe).env("ACLSHIM_END_WAIT", "200"), steps());
    host.order("calls 100");
    host.until_drained();
    let stuck = Stuck::stop(&host);
    if !has_that(stuck.is_some(), "ptrace", "a_host_whose_drain_is_stuck_ends_all_the_same") {
        return drop(host.end());
    }
    host.order("calls 50");
    // It waits for its drain, but not for ever: else its alarm would end it.
    let output = host.end_when(|| stuck.unwrap().until_ended());
    let stat = output.stat();
    assert_eq!(tally(&output, &stat), [150, 0, 0]);
    assert!(stat.0["slots"]["ring"].as_u64().unwrap() >= 50, "{}", stat.0);
}

#[test]
fn a_run_onto_a_full_disk_tells_what_was_called_with_and_without_a_trace() {
    if !has_disks("a_run_onto_a_full_disk_tells_what_was_called_with_and_without_a_trace") {
        return;
    }
    // What stays on the disk is only what had its place already.
    let fill = "mkdir \"$DISK/out\"; head -c 64k /dev/zero >\"$DISK/ballast\" 2>/dev/null; exec \"$@\"";
    let [with, without] = ["trace", "off"].map(|calls| {
        let disk = scratch("disk");
        let run = on_a_disk(Run::new("unshare"), "16k", &disk, Path::new("sh")).arg("-c").arg(fill).arg("sh");
        let run = run.arg(target("release/aclshim")).arg("run").arg("--sim").arg("--out").arg(disk.join("out"));
        let run = run.arg("--require-calls").arg("--").arg(host("hosts/guest_calls.c")).arg("30");
        let output = run.env("ACLSHIM_CALLS", calls).run().ok();
        assert_eq!(reader::files(&output.scratch).unwrap().len(), 1, "{}", output.stderr);
        output.stderr
    });
    for said in [&with, &without] {
        assert!(said.starts_with("aclshim: 30 calls, 0 B, 0 errors in 1 process\n"), "{said}");
        assert!(said.contains(" still in memory\n") && said.contains(" recover --out "), "{said}");
    }
    assert!(without.contains("has ended, and not all that it did is in its log\n"), "{without}");
}

#[test]
fn where_neither_trace_nor_log_can_be_written_findings_still_go_to_standard_error() {
    let run = Run::new(host("hosts/keep_calls.c")).sim().shim().arg("1").arg("50").env("ACLSHIM_DIR", "/proc/none");
    let output = run.env("ACLSHIM_CALLS", "off").env("ACLSHIM_STDERR", "findings").run().ok();
    assert!(output.stderr.contains("aclshim: ") && output.stderr.contains("DEST-MAX"), "{}", output.stderr);
}

// ---- Limits of the system ----

#[test]
fn under_a_limit_of_file_size_the_host_gets_no_signal_and_what_was_recorded_is_in_balance() {
    let program = patterned("hosts/record_limits.c");
    for (size, has_ring) in [("0", false), ("4096", false), ("100000", true), ("200000", true), ("1000000", true)] {
        // Without a loss, so that there is more to write than one file may hold.
        let prepare = |run: Run| run.arg("fsize").arg(size).arg("5000").env("ACLSHIM_RECORD", "lossless");
        let is_said = size == "0";
        let output = if is_said { unharmed_and_said(&program, prepare) } else { unharmed(&program, prepare) };
        assert_eq!(reader::files(&output.scratch).unwrap().len(), usize::from(has_ring), "{size}");
        match size {
            // Not even a line of the log may be written.
            "0" => assert_eq!(output.log().len(), 0),
            "4096" => not_recording(&output),
            _ => {}
        }
        if has_ring {
            let [calls, ..] = tally(&output, &output.stat());
            assert_eq!(
                calls > 0,
                size != "100000",
                "{size}: the first of them has room for the count, and for no ring"
            );
            let limit = size.parse::<u64>().unwrap();
            let traces = traces(&output.scratch.join("out"));
            assert!(traces.iter().all(|path| fs::metadata(path).unwrap().len() <= limit), "{size}");
        }
    }
}

#[test]
fn under_a_limit_of_descriptors_the_host_runs_and_what_was_recorded_is_in_balance() {
    let program = patterned("hosts/record_limits.c");
    for (most, has_ring) in [("0", false), ("3", false), ("4", true), ("5", true), ("6", true), ("7", true)] {
        let prepare = |run: Run| run.arg("nofile").arg(most).arg("5000");
        let output = if has_ring { unharmed(&program, prepare) } else { unharmed_and_said(&program, prepare) };
        assert_eq!(reader::files(&output.scratch).unwrap().len(), usize::from(has_ring), "{most}");
        if has_ring {
            let [calls, ..] = tally(&output, &output.stat());
            assert!(calls > 0, "{most}");
        } else {
            // Without a descriptor all that can be said is on the host's own.
            assert_eq!(output.log().len(), 0, "{most}");
        }
    }
}

#[test]
fn where_no_thread_can_be_started_records_stay_in_the_ring_and_that_is_said() {
    let name = "where_no_thread_can_be_started_records_stay_in_the_ring_and_that_is_said";
    // SAFETY: asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !has_that(is_root, "root, who can be another user", name) || !has_another(name) {
        return;
    }
    let program = patterned("hosts/record_limits.c");
    let output = unharmed("sh", |run| {
        as_another(run, &program).arg("nproc").arg("1").arg("5000").env("ACLSHIM_RING_LIMIT", "64K")
    });
    let [calls, missed, _] = tally(&output, &output.stat());
    assert!(calls > 0 && missed > 0, "{calls} calls, {missed} not recorded");
    assert_eq!(output.events("not-draining").len(), 1, "{:?}", output.log());
    assert_eq!(traces(&output.scratch.join("out")).len(), 0);
}

/// What comes of it where a system call is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// A trace and a log.
    Trace,
    /// The ring; the log says why there is no trace.
    Ring,
    /// The ring, without a reason.
    RingAlone,
    /// A log that says what was lost.
    Log,
    /// Nothing but two lines on standard error.
    Stderr,
}

#[test]
fn whatever_system_call_is_refused_the_host_runs_and_what_was_lost_is_counted_and_said() {
    let program = patterned("hosts/record_refused.c");
    let calls = [
        ("none", Left::Trace),
        ("openat", Left::Stderr),
        ("clone", Left::Ring),
        ("close_range", Left::Trace),
        // Without descriptors of its own the drain would meet the host's.
        ("unshare", Left::Ring),
        // Without it libc ends what has threads.
        ("futex", Left::Ring),
        ("flock", Left::Trace),
        ("mmap", Left::Log),
        ("write", Left::RingAlone),
        ("truncate", Left::Log),
        ("mkdir", Left::RingAlone),
        ("stat", Left::Log),
        ("statx", Left::Trace),
        ("unlink", Left::Trace),
        ("sigmask", Left::Trace),
        ("prctl", Left::Trace),
    ];
    for (call, left) in calls {
        for error in [libc::EPERM, libc::ENOSYS] {
            let prepare = |run: Run| run.arg(call).arg("3000").arg(error.to_string()).env("ACLSHIM_RING_LIMIT", "64K");
            let is_said = left == Left::Stderr;
            let output = if is_said { unharmed_and_said(&program, prepare) } else { unharmed(&program, prepare) };
            assert_eq!(output.stdout, if call == "write" { "" } else { "called\n" }, "{call}");
            let has_ring = !matches!(left, Left::Log | Left::Stderr);
            assert_eq!(reader::files(&output.scratch).unwrap().len(), usize::from(has_ring), "{call}");
            if has_ring {
                // More than a ring holds: without a drain, the rest is counted.
                let [calls, missed, _] = tally(&output, &output.stat());
                let is_lost = missed > 0 || left == Left::Trace;
                assert!(calls > 0 && is_lost, "{call}: {calls} calls, {missed} not recorded");
            }
            let has_trace =
                traces(&output.scratch.join("out")).iter().any(|path| fs::metadata(path).unwrap().len() > 0);
            assert_eq!(has_trace, left == Left::Trace, "{call}: {:?}", output.log());
            match left {
                Left::Trace => assert_eq!(output.events("stopped").len(), 1, "{call}: {:?}", output.log()),
                Left::Ring => assert_eq!(output.events("not-draining").len(), 1, "{call}: {:?}", output.log()),
                Left::Log => {
                    let [lost] = &output.events("not-recorded")[..] else { panic!("{call}: {:?}", output.log()) };
                    assert_eq!(lost["subject"], made(&output).to_string(), "{call}");
                }
                Left::RingAlone | Left::Stderr => assert_eq!(output.log().len(), 0, "{call}"),
            }
        }
    }
}
