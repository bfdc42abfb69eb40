//! What comes amid our own work, a signal, a fork, a lack of memory, is the host's, and each of its calls is counted.

#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use recording::left::calls_of_all;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use support::{Build, Output, Run, host};

/// Runs a host without and with the shim. What it shows must be the same; the run with the shim is given back.
#[track_caller]
fn same(program: &std::path::Path, prepare: impl Fn(Run) -> Run) -> Output {
    let without = prepare(Run::new(program).sim()).run();
    let with = prepare(Run::new(program).sim().shim()).run();
    assert_eq!(with.seen(), without.seen(), "with the shim, and without it");
    with.ok()
}

/// Calls, and calls that were not recorded.
fn counts(output: &Output) -> [u64; 2] {
    let stat = output.stat();
    ["calls", "not_recorded"].map(|key| stat.total(key))
}

// ---- Signals ----

#[test]
fn a_sandbox_that_answers_our_system_calls_by_a_signal_reaches_the_handler_of_the_host() {
    let program = host("hosts/edge_trap.c");
    // Of the thread that copies; without a file where there is no room.
    let by_copier =
        [("getppid", Some(100)), ("getppid blocked", Some(100)), ("fallocate", None), ("fallocate blocked", None)];
    // Of the threads of ours.
    let by_drain = [("sched_setaffinity", Some(100)), ("flock", Some(100))];
    for (what, calls) in by_copier.into_iter().chain(by_drain) {
        let output = same(&program, |run| what.split(' ').fold(run, Run::arg));
        assert_eq!(output.stdout, "100 copies\n");
        let trapped = fs::read(output.scratch.join("trapped")).unwrap();
        assert_ne!(trapped, [0; 8], "{what}: nothing of ours was trapped");
        if let Some(calls) = calls {
            assert_eq!(counts(&output), [calls, 0], "{what}");
        }
    }
}

#[test]
fn signals_that_the_host_holds_back_stay_pending_while_we_work() {
    let output = same(&host("hosts/edge_pending.c"), |run| run);
    assert_eq!(output.stdout, "held back: 0 handled\nlet through: 8 handled\n");
    assert_eq!(counts(&output), [100, 0]);
}

#[test]
fn no_thread_is_started_in_a_signal_handler_which_may_have_interrupted_the_allocator() {
    let output = Run::new(host("hosts/edge_handler.c")).sim().shim().run().ok();
    assert_eq!(output.stdout, "after the handler: one\nafter the program: more\n");
    assert_eq!(counts(&output), [510, 0]);
}

// ---- No memory ----

#[test]
fn calls_for_which_there_was_no_memory_are_counted_as_soon_as_there_is_some() {
    let output = same(&host("hosts/edge_early.c"), |run| run.arg("3"));
    assert_eq!(counts(&output), [3, 5]);
    // And said where there never is.
    let output = same(&host("hosts/edge_early.c"), |run| run.arg("0"));
    let said: Vec<_> = output.events("not-recorded").iter().map(|line| line["subject"].clone()).collect();
    assert_eq!(said, ["5"], "{:?}", output.log());
}

// ---- Forks ----

#[test]
fn a_call_that_a_fork_child_has_ended_stays_in_flight_in_its_parent() {
    // By the short way, which a call takes whose target is pinned, and by the long one.
    for short in [Some("-DPINNED"), None] {
        let vendor = short.into_iter().fold(Build::new("hosts/record_forking_vendor.c"), Build::arg);
        let vendor = vendor.library("ascendcl");
        let program = Build::new("hosts/record_forking.c").arg(&vendor).program();
        for drain in ["auto", "off"] {
            // As the first call of the process, and later; of one slot, and of two.
            for arguments in ["0 0 0", "20 0 0", "20 0 1", "20 3 0"] {
                let run = Run::new(&program).library_path(vendor.parent().unwrap()).shim();
                let run = arguments.split(' ').fold(run, Run::arg);
                let output = run.env("ACLSHIM_DRAIN", drain).run();
                assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{output:?}");
                let told = calls_of_all(&output);
                let ends: Vec<_> = told.iter().filter(|call| call.arguments[3] == 77).map(|call| call.end).collect();
                assert_eq!(ends, [None], "{drain}, {arguments}, {short:?}");
            }
        }
    }
}
