//! python/aclshim.py in real Python programs (`tests/python/`), on the simulated device.

mod support;

use std::path::PathBuf;
use support::{Build, Output, Run, aclshim, has, root, scratch, sim};

fn program(name: &str) -> PathBuf {
    root().join("tests/python").join(name)
}

/// A run of a program, with the module on its path.
fn python(name: &str) -> Run {
    let run = Run::new("python3").arg(program(name));
    run.env("PYTHONPATH", root().join("python")).env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONWARNINGS", "error")
}

#[track_caller]
fn quietly_done(output: &Output) {
    assert_eq!(output.seen(), (Some(0), None, "done\n", ""), "{output:?}");
}

#[test]
fn a_scope_sees_what_its_block_copies_and_answers_until_it_ends() {
    if !has("python3", "a_scope_sees_what_its_block_copies_and_answers_until_it_ends") {
        return;
    }
    let output = python("scopes.py").sim().shim().run().ok();
    assert_eq!(output.stdout, "done\n");
    let lines: Vec<_> = output.stderr.lines().collect();
    assert!(lines.len() == 1 && lines[0].contains("sise"), "only the nonsense is told of: {}", output.stderr);
}

#[test]
fn what_is_not_met_is_an_assertion_error_but_never_hides_another_exception() {
    if !has("python3", "what_is_not_met_is_an_assertion_error_but_never_hides_another_exception") {
        return;
    }
    let output = python("failing.py").sim().shim().run();
    let lines: Vec<_> = output.stdout.lines().collect();
    let expected = [
        "NotMet 2 scope \"prefill\": 2 expectations were not met; standard error says what happened",
        "KeyError 'of the program'",
        "failures 3",
    ];
    assert_eq!(lines, expected, "{output:?}");
    for told in
        ["scope \"prefill\": expected 2 calls of \"aclrtMemcpyAsync direction=h2d\", saw 1", "with an exception"]
    {
        assert!(output.stderr.contains(told), "{}", output.stderr);
    }
    assert!(!output.stderr.contains("\"inside\"") && !output.stderr.contains("\"afterwards\""), "{}", output.stderr);
    assert_eq!(output.status.code(), Some(7), "asked for by fail_exit: {output:?}");
}

#[test]
fn scopes_of_threads_do_not_see_each_other_and_one_of_the_process_sees_all() {
    if !has("python3", "scopes_of_threads_do_not_see_each_other_and_one_of_the_process_sees_all") {
        return;
    }
    quietly_done(&python("threads.py").sim().shim().run());
}

#[test]
fn without_the_shim_and_with_one_that_is_off_nothing_happens() {
    if !has("python3", "without_the_shim_and_with_one_that_is_off_nothing_happens") {
        return;
    }
    quietly_done(&python("absent.py").sim().run());
    quietly_done(&python("absent.py").sim().shim().env("ACLSHIM_MODE", "off").run());
}

#[test]
fn a_shim_that_a_drop_in_library_brings_along_is_found() {
    if !has("python3", "a_shim_that_a_drop_in_library_brings_along_is_found") {
        return;
    }
    let folder = scratch("dropin");
    let made = aclshim().arg("dropin").arg(&folder).arg("--real").arg(sim().join("libascendcl.so")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let output = python("scopes.py").library_path(&folder).run().ok();
    assert_eq!(output.stdout, "done\n", "{output:?}");
}

#[test]
fn a_shim_that_is_older_or_newer_than_the_module_is_asked_only_for_what_both_know() {
    if !has("python3", "a_shim_that_is_older_or_newer_than_the_module_is_asked_only_for_what_both_know") {
        return;
    }
    let older = Build::new("python/other_shim.c").arg("-DFEWER").library("older");
    let newer = Build::new("python/other_shim.c").library("newer");
    for (shim, age) in [(older, "older"), (newer, "newer")] {
        quietly_done(&python("another_age.py").arg(age).preload(shim).run());
    }
}
