//! The loader's traps: locks that somebody else holds, messages that are somebody else's, small stacks.

mod support;

use support::{Build, Output, Run, host, sim, target};

/// Runs it with and without the shim; both must be the same.
#[track_caller]
fn same(run: impl Fn() -> Run) -> Output {
    let (without, with) = (run().run(), run().shim().run());
    assert_eq!(with.seen(), without.seen());
    with
}

#[test]
fn a_pending_cancellation_does_not_act_in_our_part_of_a_copy() {
    let program = host("hosts/loader_cancel.c");
    let output = same(|| Run::new(&program).sim());
    assert_eq!(output.stdout, "copied 1, ended by itself\n");
    assert_eq!(output.stat().total("calls"), 1);
}

#[test]
fn a_constructor_may_wait_for_a_thread_that_makes_the_first_copy() {
    let program = Build::new("hosts/loader_open.c").program();
    let plugin = Build::new("hosts/loader_ctor_plugin.c").link("ascendcl").library("plugin");
    let output = same(|| Run::new(&program).arg(&plugin).sim());
    assert!(output.stdout.starts_with("copy 0\ncall 0\npending: no-such-library.so: "), "{}", output.stdout);
    assert_eq!(output.stat().total("calls"), 2);
}

#[test]
fn a_plugin_that_is_closed_and_opened_again_finds_the_real_function_again() {
    let program = Build::new("hosts/loader_open.c").program();
    let plugin = Build::new("hosts/loader_ctor_plugin.c").link("ascendcl").library("plugin");
    let output = same(|| Run::new(&program).arg(&plugin).arg("20").sim());
    assert_eq!(output.stat().total("calls"), 40);
}

#[test]
fn a_fork_child_may_look_symbols_up_whatever_other_threads_were_doing() {
    let program = Build::new("hosts/loader_fork.c").program();
    let output = same(|| Run::new(&program).sim());
    assert_eq!(output.stdout, "ended 200\n");
}

#[test]
fn a_weak_reference_is_null_where_it_is_without_the_shim() {
    for arguments in [&["-fPIE", "-pie"][..], &["-fPIE", "-pie", "-Wl,-z,now"], &["-fPIE", "-pie", "-Wl,-z,lazy"]] {
        let build = || arguments.iter().fold(Build::new("hosts/loader_weak.c"), |build, argument| build.arg(argument));
        let (alone, linked) = (build().program(), build().link("ascendcl").program());
        for mode in ["observe", "off"] {
            let nothing = same(|| Run::new(&alone).env("ACLSHIM_MODE", mode));
            assert!(nothing.stdout.starts_with("aclrtMemcpy 0 0\n"), "{}", nothing.stdout);
            let old = same(|| Run::new(&linked).library_path(target("sim/no-batch")).env("ACLSHIM_MODE", mode));
            assert!(old.stdout.contains("aclrtMemcpy 1 1\naclrtMemcpyBatch 0 0\n"), "{}", old.stdout);
            let new = same(|| Run::new(&linked).library_path(sim()).env("ACLSHIM_MODE", mode));
            assert!(new.stdout.contains("aclrtMemcpyBatchV2 1\n"), "{}", new.stdout);
        }
    }
}

#[test]
fn the_first_copy_fits_on_a_small_stack() {
    let program = host("hosts/loader_stack.c");
    for stack in ["thread", "handler"] {
        let run = || Run::new(&program).arg(stack).sim();
        same(run);
        same(|| run().env("ACLSHIM_RING_DIR", "/nonexistent"));
    }
}

#[test]
fn a_backtrace_amid_a_lookup_reaches_the_program() {
    let program = Build::new("hosts/loader_profile.c").program();
    let output = same(|| Run::new(&program).sim());
    assert_eq!(output.stdout, "found 1, cut rarely or never\n");
}
