//! The harness and what ends without it: the process, threads, calls, and its own work.

mod support;

use std::path::Path;
use support::{Build, Run, host};

/// A program under the shim, without a thread of ours beside it.
fn seen(program: &Path, argument: &str) -> Run {
    Run::new(program).arg(argument).sim().shim().env("ACLSHIM_DRAIN", "off")
}

#[test]
fn a_scope_that_a_handler_for_the_end_ends_was_ended_whenever_the_status_was_asked_for() {
    let program = host("hosts/harness_ends_exit.c");
    let output = seen(&program, "before").run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("teardown 0\n", ""));
    let output = seen(&program, "unmet").run();
    assert_eq!((output.status.code(), output.stdout.as_str()), (Some(9), "teardown 1\n"), "{}", output.stderr);
    let output = seen(&program, "back").run();
    assert_eq!((output.status.code(), output.stdout.as_str()), (Some(0), "teardown 1\n"), "{}", output.stderr);
}

#[test]
fn the_exit_status_can_be_asked_for_in_a_handler() {
    let output = seen(&host("hosts/harness_ends_exit.c"), "handler").run();
    assert_eq!((output.status.code(), output.stdout.as_str()), (Some(9), "handler 1\n"), "{}", output.stderr);
}

#[test]
fn an_injection_of_a_thread_that_is_gone_does_not_strike_the_next_one_at_its_place() {
    let output = seen(&host("hosts/harness_ends_thread.c"), "inject").run().ok();
    assert_eq!(output.stdout, "set 1\nown 5\nsame place 1\nother 0\nin a scope 0\nend 0\n");
}

#[test]
fn a_call_that_was_struck_and_left_is_known_as_both() {
    let run = seen(&host("hosts/harness_ends_thread.c"), "left").env("ASCENDCL_SIM_FAULT", "longjmp@aclrtMemcpy:1");
    assert_eq!(run.run().ok().stdout, "state 2 flags 1\nend 0\n");
}

/// Each of them would wait for seconds, and the program be killed.
#[test]
#[cfg(target_arch = "x86_64")]
fn nobody_waits_for_a_thread_that_has_left_the_harness_and_what_was_not_judged_has_failed() {
    let program = host("hosts/harness_ends_jump.c");
    for (what, again) in [("jump", -5), ("silent", 0), ("exit", 0)] {
        let output = seen(&program, what).run();
        assert_eq!(output.stdout, format!("again {again}\ncopied 300 sent away 600\n"), "{what}: {}", output.stderr);
        assert_eq!(output.status.code(), Some(9), "{what}: {}", output.stderr);
        assert!(output.stderr.contains("could not be judged"), "{what}: {}", output.stderr);
    }
}

#[test]
fn a_scope_counts_the_same_when_there_is_no_room_for_records_any_more() {
    let library = Build::new("hosts/harness_ends_vendor.c").link("ascendcl").library("ends");
    let folder = library.parent().unwrap();
    let search = format!("-L{}", folder.display());
    let program = Build::new("hosts/harness_ends_full.c").arg(search).link("ends").link("ascendcl").program();
    let output = seen(&program, "")
        .library_path(folder)
        .env("ACLSHIM_RING_SIZE", "4K")
        .env("ACLSHIM_RING_LIMIT", "4K")
        .run()
        .ok();
    assert_eq!(output.stdout, "with room 3\nend 0\nwithout 3\nend 0\n", "{}", output.stderr);
}
