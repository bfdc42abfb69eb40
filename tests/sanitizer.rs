//! Programs built with sanitizers: AddressSanitizer looks symbols up before libc works, ThreadSanitizer ends a fork child
//! that starts a thread and takes descriptors of a thread with a table of its own for the program's.

mod support;

use std::process::Command;
use support::{Build, Run, has_that, target};

#[test]
fn a_sanitized_program_runs_as_without_the_shim_and_is_counted() {
    let runtime = Command::new("cc").arg("-print-file-name=libasan.so").output().expect("cc").stdout;
    let runtime = String::from_utf8(runtime).unwrap().trim().to_owned();
    if !has_that(runtime.contains('/'), "libasan", "a_sanitized_program_runs_as_without_the_shim_and_is_counted") {
        return;
    }
    let program = Build::new("hosts/sanitizer.c").link("ascendcl").arg("-fsanitize=address").program();
    let run = || Run::new(&program).sim().env("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0");
    let alone = run().run().ok();
    assert_eq!(alone.stdout, "malloc 0\nlinked 0\nlooked up 0\n");
    for preloads in [&["shim"][..], &["asan", "shim"]] {
        let seen =
            preloads.iter().fold(run(), |run, &what| if what == "shim" { run.shim() } else { run.preload(&runtime) });
        let seen = seen.run();
        assert_eq!(seen.seen(), alone.seen(), "preloaded: {preloads:?}");
        assert_eq!(seen.stat().total("calls"), 2);
    }
}

#[test]
fn a_fork_child_of_a_threaded_program_under_thread_sanitizer_lives_and_its_calls_are_known() {
    let name = "a_fork_child_of_a_threaded_program_under_thread_sanitizer_lives_and_its_calls_are_known";
    let runtime = Command::new("cc").arg("-print-file-name=libtsan.so").output().expect("cc").stdout;
    if !has_that(String::from_utf8_lossy(&runtime).contains('/'), "libtsan", name) {
        return;
    }
    let program = Build::new("hosts/sanitizer_fork.c").link("ascendcl").arg("-fsanitize=thread").program();
    // Without it, a program under ThreadSanitizer waits a second at its end.
    let run = || Run::new(&program).sim().env("TSAN_OPTIONS", "atexit_sleep_ms=0");
    let alone = run().run();
    if !has_that(alone.status.success(), "a system on which ThreadSanitizer runs", name) {
        return;
    }
    // Threads of ours would show in one of ten runs only.
    for _ in 0..20 {
        let seen = run().shim().run();
        assert_eq!(seen.seen(), alone.seen());
        let stat = seen.stat();
        assert_eq!(["processes", "calls", "not_recorded"].map(|key| stat.total(key)), [2, 8, 0]);
        // The records stay in the rings of both processes, and that is said.
        assert_eq!(seen.events("not-draining").len(), 2);
    }
    // With a drain outside they are written.
    let outside = Run::new(target("release/aclshim")).sim().env("TSAN_OPTIONS", "atexit_sleep_ms=0");
    let outside = outside.arg("run").arg("--quiet").arg("--").arg(&program).run();
    assert_eq!(outside.seen(), alone.seen());
    assert_eq!(outside.stat().total("calls"), 8);
    assert_eq!(outside.events("not-draining").len(), 0);
}
