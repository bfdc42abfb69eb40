//! We are guests: each call is counted across forks, in every thread and signal handler, and however a process ends.

#[path = "support/guests.rs"]
mod guests;
mod support;

use guests::{balanced, counted_exactly, own, plain_library, rings, same, same_and_well};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use support::{Build, Output, Run, has, has_that, host};

// ---- fork, clone, exec ----

#[test]
fn children_of_a_threaded_process_record_for_themselves_and_nothing_is_lost() {
    // Small rings, so that the thread that calls all the while does not fill the disk; and whatever it does is kept.
    let run = |run: Run| {
        run.arg("warm")
            .arg(plain_library())
            .env("ACLSHIM_RING_SIZE", "4K")
            .env("ACLSHIM_RING_LIMIT", "4K")
            .env("ACLSHIM_BUDGET", "8G")
    };
    let output = same_and_well(&host("hosts/guest_fork.c"), run);
    balanced(&output);
    assert_eq!(output.stat().total("processes"), 201);
    fs::remove_dir_all(&output.scratch).unwrap();
}

#[test]
fn a_child_whose_first_call_comes_after_a_fork_amid_dlopen_does_not_hang() {
    let output = same_and_well(&host("hosts/guest_fork.c"), |run| run.arg("cold").arg(plain_library()));
    balanced(&output);
    assert_eq!(output.stat().total("processes"), 200);
    fs::remove_dir_all(&output.scratch).unwrap();
}

#[test]
fn the_child_of_a_raw_clone_counts_for_itself() {
    let output = same_and_well(&host("hosts/guest_clone.c"), |run| run);
    counted_exactly(&output);
    assert_eq!(output.stat().total("processes"), 2);
}

#[test]
fn calls_before_and_after_an_exec_are_all_counted() {
    let output = same_and_well(&host("hosts/guest_exec.c"), |run| run);
    counted_exactly(&output);
    assert_eq!(output.stat().total("processes"), 4);
}

#[test]
fn programs_started_by_spawn_vfork_and_system_count_for_themselves() {
    let output = same_and_well(&host("hosts/guest_spawn.c"), |run| run);
    assert_eq!(output.stdout, "system gave 0\n");
    counted_exactly(&output);
    assert_eq!(output.stat().total("processes"), 4);
}

// ---- Ends ----

#[test]
fn however_a_process_ends_its_calls_stay_counted() {
    let program = host("hosts/guest_end.c");
    for how in ["return", "exit", "_exit", "quick_exit", "abort", "fault", "kill", "pthread_exit"] {
        let output = same(&program, |run| run.arg(how));
        counted_exactly(&output);
    }
}

/// How far the four threads of `guest_killed.c` are: calls begun (0) or ended (1).
fn truth(folder: &Path, at: usize) -> [u64; 4] {
    let bytes = fs::read(folder.join("truth")).unwrap_or_default();
    let word = |at: usize| bytes.get(8 * at..8 * at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap()));
    [0, 1, 2, 3].map(|thread| word(8 * thread + at))
}

#[track_caller]
fn counted_to_the_last(output: &Output) {
    let (begun, ended): (u64, u64) = (truth(&output.scratch, 0).iter().sum(), truth(&output.scratch, 1).iter().sum());
    let stat = output.stat();
    // Who comes while another thread makes the file waits a little, and is then counted as not recorded.
    let calls = stat.total("calls") + stat.total("not_recorded");
    assert!((ended..=begun).contains(&calls), "{ended} <= {calls} <= {begun}");
    assert_eq!(stat.total("nested"), 0);
    assert!(stat.total("in_flight") <= 4, "{:?}", stat.0);
}

#[test]
fn a_process_killed_amid_calls_of_four_threads_has_counted_each_of_them() {
    let program = host("hosts/guest_killed.c");
    for round in 1..=10 {
        let (mut child, scratch) = Run::new(&program).sim().shim().spawn();
        // Until each of them is well on its way.
        while truth(&scratch, 1).iter().any(|&ended| ended < 500 * round) {
            assert!(child.try_wait().unwrap().is_none(), "ended by itself");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        let status = child.wait().unwrap();
        counted_to_the_last(&Output { status, stdout: String::new(), stderr: String::new(), scratch });
    }
}

#[test]
fn a_process_whose_main_returns_amid_calls_of_four_threads_has_counted_each_of_them() {
    let program = host("hosts/guest_killed.c");
    for _ in 0..10 {
        counted_to_the_last(&same_and_well(&program, |run| run.arg("return")));
    }
}

#[test]
fn calls_that_neither_a_ring_nor_the_log_can_tell_of_are_counted_on_standard_error() {
    let name = "calls_that_neither_a_ring_nor_the_log_can_tell_of_are_counted_on_standard_error";
    // SAFETY: asks for a number.
    if !has_that(unsafe { libc::geteuid() } == 0, "root, who may chroot", name) {
        return;
    }
    let jail = support::scratch("jail");
    let run =
        || Run::new(host("hosts/guest_jail.c")).sim().shim().arg(&jail).arg("280").env("ACLSHIM_RING_DIR", "/dev/shm");
    let output = run().run().ok();
    assert_eq!(output.stdout, "called\n");
    let [first, last] = &output.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{output:?}") };
    assert!(
        first.starts_with("aclshim: calls are forwarded but not recorded: no file could be made in /dev/shm: "),
        "{first}"
    );
    assert_eq!(*last, "aclshim: 280 calls were forwarded and not recorded");
    assert_eq!(fs::read_dir(&jail).unwrap().count(), 0, "nothing is left there");
    // Not where it is switched off, nor into a file of the program's that has got the number.
    let output = run().env("ACLSHIM_STDERR", "off").run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("called\n", ""));
    let file = support::scratch("own").join("file");
    let output = run().arg(&file).run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("called\n", ""));
    assert_eq!(fs::read_to_string(file).unwrap(), "");
}

#[test]
fn a_fork_child_does_not_count_what_its_parent_missed() {
    let output = Run::new(host("hosts/guest_early_fork.c")).sim().shim().env("ACLSHIM_DRAIN", "off").run().ok();
    assert_eq!(output.stdout, "1\n1\n");
    let stat = output.stat();
    assert_eq!(own(&output), 6);
    assert_eq!(["processes", "calls", "not_recorded"].map(|key| stat.total(key)), [2, 3, 3]);
}

// ---- Signals, early and late calls, threads ----

#[test]
fn calls_in_a_signal_handler_are_all_counted() {
    let program = host("hosts/guest_signal.c");
    for how in ["warm", "cold", "stack"] {
        let output = same_and_well(&program, |run| run.arg(how));
        assert_eq!(output.stdout, "handled\n");
        let stat = output.stat();
        let counted = ["calls", "nested", "not_recorded"].map(|key| stat.total(key));
        assert_eq!(counted.iter().sum::<u64>(), own(&output), "{how}: {counted:?}");
        assert_eq!(stat.total("in_flight"), 0, "{how}");
    }
}

#[test]
fn a_signal_handler_that_calls_between_any_two_instructions_of_a_call_loses_nothing() {
    let program = host("hosts/guest_step.c");
    for stack in ["here", "stack"] {
        // Between all of them, and further apart, so that different ones of the first call are met while it is cold.
        for every in ["1", "7", "211", "499", "1009", "2003", "3989", "7919"] {
            // Without a thread of ours, which would be started with the processor's trap flag set.
            let run = Run::new(&program).sim().shim().arg(stack).arg(every).env("ACLSHIM_DRAIN", "off");
            let output = run.env("ASCENDCL_SIM_FAULT", "fail=5@aclrtMemset:*").run().ok();
            assert_eq!(output.stdout, "0 wrong\n", "{stack} {every}");
            let stat = output.stat();
            let [calls, nested, missed] = ["calls", "nested", "not_recorded"].map(|key| stat.total(key));
            assert_eq!(calls + nested + missed, own(&output), "{stack} {every}: {:?}", stat.0);
            assert_eq!(stat.total("errors"), calls, "{stack} {every}: each of them failed");
            assert_eq!(stat.total("in_flight"), 0, "{stack} {every}");
        }
    }
}

#[test]
fn calls_from_constructors_and_destructors_of_every_kind_are_counted() {
    let library = Build::new("hosts/guest_early_lib.c").link("ascendcl").library("guest_early");
    let folder = library.parent().unwrap();
    let search = format!("-L{}", folder.display());
    let program = Build::new("hosts/guest_early.c").arg(search).link("guest_early").link("ascendcl").program();
    let output = same_and_well(&program, |run| run.library_path(folder));
    assert_eq!(output.stdout, "early code 0, 3 rounds\n");
    counted_exactly(&output);
}

#[test]
fn calls_from_static_and_thread_local_objects_are_counted() {
    if !has("c++", "calls_from_static_and_thread_local_objects_are_counted") {
        return;
    }
    counted_exactly(&same_and_well(&host("hosts/guest_late.cpp"), |run| run));
}

#[test]
fn a_call_that_comes_while_the_file_is_made_is_counted_although_nobody_calls_again() {
    // Its own function is to be found by the shim.
    let program = Build::new("hosts/guest_making.c").arg("-rdynamic").link("ascendcl").program();
    let counts = |what: &str| {
        let stat = Run::new(&program).arg(what).sim().shim().run().ok().stat();
        ["calls", "not_recorded", "notes_lost"].map(|key| stat.total(key))
    };
    assert_eq!(counts("copy"), [1, 1, 0]);
    assert_eq!(counts("mark"), [2, 0, 1], "a mark is counted with the next call");
}

#[test]
fn an_attach_asks_after_few_threads_however_many_live() {
    for threads in [100, 1000] {
        let run = Run::new(host("hosts/guest_attach.c")).sim().shim().arg(threads.to_string());
        let output = run.env("ACLSHIM_RING_SIZE", "8K").env("ACLSHIM_RING_LIMIT", "8K").run().ok();
        counted_exactly(&output);
        let asked: u64 = output.stdout.trim().parse().unwrap();
        assert!(asked <= 8 * threads, "{threads} threads: asked {asked} times");
    }
}

#[test]
fn five_thousand_threads_alive_at_once_have_a_ring_each() {
    let run = Run::new(host("hosts/guest_attach.c")).sim().shim().arg("5000");
    let output =
        run.env("ACLSHIM_RING_SIZE", "8K").env("ACLSHIM_RING_LIMIT", "8K").env("ACLSHIM_DRAIN", "off").run().ok();
    counted_exactly(&output);
}

#[test]
fn a_thread_gets_a_ring_of_its_own_rather_than_one_that_is_nearly_full() {
    // A ring has 128 slots: what the first leaves would not do for the second.
    let prepare =
        |run: Run| run.arg("short").arg("4").arg("100").env("ACLSHIM_RING_SIZE", "8K").env("ACLSHIM_RING_LIMIT", "8K");
    let output = same_and_well(&host("hosts/guest_threads.c"), |run| prepare(run).env("ACLSHIM_DRAIN", "off"));
    counted_exactly(&output);
}

#[test]
fn ten_thousand_short_threads_are_counted_in_one_file_of_four_mib_at_most() {
    let program = host("hosts/guest_threads.c");
    let size = |output: &Output| {
        let [file] = &rings(&output.scratch)[..] else { panic!("one file") };
        // Not its length: rings have room to grow, which takes no memory.
        512 * fs::metadata(file).unwrap().blocks()
    };
    let one = same_and_well(&program, |run| run.arg("short").arg("1"));
    let many = same_and_well(&program, |run| run.arg("short").arg("10000"));
    // While the drain has no turn calls find no ring, rather than more rings than that.
    balanced(&many);
    assert!(size(&many) <= size(&one).max(4 << 20), "{} for one, {} for many", size(&one), size(&many));
}

#[test]
fn two_hundred_threads_alive_at_once_are_counted_exactly() {
    let output = same_and_well(&host("hosts/guest_threads.c"), |run| run.arg("alive").arg("200"));
    counted_exactly(&output);
    assert_eq!(rings(&output.scratch).len(), 1);
}
