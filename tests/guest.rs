//! We are guests: a program with the shim shows, returns and leaves what it does without it, and each of its calls is
//! counted, whatever it does to itself.

#[path = "support/guests.rs"]
mod guests;
mod support;

use aclshim_facts::FUNCTIONS;
use guests::{counted_exactly, logged, missing, own, plain_library, rings, same_and_said, same_and_well};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Build, Output, Run, has, has_that, host, root, scratch, shim, sim, target};

// ---- The examples ----

fn examples() -> Vec<String> {
    let sources = fs::read_dir(root().join("c-examples")).unwrap().map(|file| file.unwrap().path());
    let sources = sources.filter(|path| path.extension() == Some("c".as_ref()));
    let mut names: Vec<_> = sources.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    assert!(names.len() >= 6, "{names:?}");
    names
}

#[test]
fn every_example_prints_and_ends_the_same_with_the_shim_watching_and_with_it_off() {
    for name in examples() {
        let example = target("c-examples").join(&name);
        let without = Run::new(&example).sim().run();
        assert!(without.status.success() && !without.stdout.is_empty(), "{name}: {without:?}");
        let off = Run::new(&example).sim().shim().env("ACLSHIM_MODE", "off").run();
        assert_eq!(off.seen(), without.seen(), "{name} with ACLSHIM_MODE=off");
        assert_eq!(rings(&off.scratch).len(), 0, "{name} was told to be off");
        let with = Run::new(&example).sim().shim().run();
        assert_eq!(with.seen(), without.seen(), "{name}");
        assert_eq!(rings(&with.scratch).len(), 1, "{name} was seen");
    }
}

#[test]
fn every_call_of_every_example_is_counted_as_the_vendor_counts_it() {
    let teller = Build::new("hosts/guest_vendor_count.c").library("guest_vendor_count");
    for name in examples() {
        let file = scratch("vendor").join("count");
        // Behind the shim in the list, so that its end comes before the shim's would.
        let run = Run::new(target("c-examples").join(&name)).sim().shim().preload(&teller);
        let output = run.env("VENDOR_COUNT", &file).run().ok();
        let told = fs::read_to_string(file).unwrap();
        let told = told.lines().map(|line| line.split_once(' ').unwrap());
        let told: BTreeMap<String, u64> = told.map(|(name, calls)| (name.into(), calls.parse().unwrap())).collect();
        assert_eq!(told.len(), FUNCTIONS.len());
        let called: BTreeMap<_, _> = told.into_iter().filter(|(_, calls)| *calls > 0).collect();
        assert!(!called.is_empty(), "{name}");
        assert_eq!(output.stat().calls(), called, "{name}");
    }
}

// ---- What leaves a call by another way than its end ----

#[test]
fn an_exception_of_the_vendor_is_caught_by_the_host_and_later_calls_are_outermost() {
    if !has("c++", "an_exception_of_the_vendor_is_caught_by_the_host_and_later_calls_are_outermost") {
        return;
    }
    let faults = "throw@aclrtMemcpy:2,throw@aclrtMemcpy:5";
    let output = same_and_well(&host("hosts/guest_throw.cpp"), |run| run.env("ASCENDCL_SIM_FAULT", faults));
    assert_eq!(output.stdout.matches("caught 42").count(), 2, "{}", output.stdout);
    counted_exactly(&output);
}

#[test]
fn after_a_longjmp_out_of_the_vendor_later_calls_are_outermost() {
    let faults = "longjmp@aclrtMemcpy:2,longjmp@aclrtMemcpy:5";
    let output = same_and_well(&host("hosts/guest_longjmp.c"), |run| run.env("ASCENDCL_SIM_FAULT", faults));
    assert_eq!(output.stdout.matches("jumped").count(), 2, "{}", output.stdout);
    counted_exactly(&output);
}

#[test]
fn a_jump_out_of_a_coroutine_whose_stack_is_then_given_back_leaves_nothing_behind() {
    let fault = "longjmp@aclrtMemcpy:1";
    let output = same_and_well(&host("hosts/guest_coroutine.c"), |run| run.env("ASCENDCL_SIM_FAULT", fault));
    assert_eq!(output.stdout, "jumped\nreturned 0\nreturned 0\n");
    counted_exactly(&output);
}

#[test]
fn a_thread_that_ends_inside_a_call_ends_as_without_the_shim_and_the_others_go_on() {
    let program = host("hosts/guest_cancel.c");
    for (how, ending) in [("cancel", "cleaned up\nended with -1\n"), ("exit", "cleaned up\nended with 7\n")] {
        let output = same_and_well(&program, |run| run.arg(how).env("ASCENDCL_SIM_FAULT", "hang@aclrtMemcpy:2"));
        assert_eq!(output.stdout, ending, "{how}");
        let stat = output.stat();
        assert_eq!((stat.total("calls"), stat.total("nested")), (own(&output), 0), "{how}");
        assert!(stat.total("in_flight") <= 1, "{how}: the call that never ended");
    }
    let output = same_and_well(&program, |run| run.arg("jump").env("ASCENDCL_SIM_FAULT", "hang@aclrtMemcpy:2"));
    assert_eq!(output.stdout, "ended with 8\n");
    counted_exactly(&output);
}

#[test]
fn a_call_that_the_vendor_makes_inside_another_is_nested() {
    let output =
        same_and_well(&host("hosts/guest_reenter.c"), |run| run.env("ASCENDCL_SIM_FAULT", "reenter@aclrtMemcpy:1"));
    let stat = output.stat();
    assert_eq!((stat.total("calls"), stat.total("nested")), (2, 1));
}

#[test]
fn errno_is_the_hosts_until_the_vendor_sets_it() {
    let program = host("hosts/guest_errno.c");
    let untouched = same_and_well(&program, |run| run);
    for who in ["main", "thread", "child"] {
        for (call, code) in [(0, 0), (1, 0), (2, 100_000)] {
            let line = format!("{who} call {call}: code {code} errno {}\n", 70 + call);
            assert!(untouched.stdout.contains(&line), "{line}{}", untouched.stdout);
        }
    }
    let set = same_and_well(&program, |run| run.env("ASCENDCL_SIM_FAULT", "errno=33@aclrtMemcpy:*"));
    assert_eq!(set.stdout.matches("errno 33\n").count(), 9, "{}", set.stdout);
}

// ---- No real library, or ourselves in its place ----

#[test]
fn without_a_real_library_a_call_answers_207000_and_the_log_says_so_once_a_function() {
    let program = missing();
    let output = Run::new(&program).shim().run().ok();
    assert_eq!(output.stdout, "copy 207000 errno 77\ncopy 207000 errno 77\ncopy 207000 errno 77\nset 207000\n");
    assert_eq!(output.stderr, "");
    assert_eq!(logged(&output, "unavailable"), ["aclrtMemcpy", "aclrtMemset"]);
}

#[test]
fn a_function_that_the_real_library_lacks_answers_207000_and_the_log_says_so_once() {
    let program = Build::new("hosts/guest_lacking.c").arg("-Wl,-z,lazy").link("ascendcl").program();
    let old = target("sim/no-batch");
    let without = Run::new(&program).library_path(&old).run();
    assert!(!without.status.success() && without.stderr.contains("aclrtMemcpyBatch"), "{without:?}");
    let with = Run::new(&program).library_path(&old).shim().env("ASCENDCL_SIM_CANN", "9.2").run().ok();
    assert_eq!(with.stdout, "copy 0\nbatch 207000\nbatch 207000\nbatch 207000\nat 5\n");
    assert_eq!(logged(&with, "unavailable"), ["aclrtMemcpyBatch"]);
    assert_eq!(with.stat().total("calls"), 4);
}

#[test]
fn the_shim_is_never_taken_for_the_real_library() {
    let program = missing();
    let folder = scratch("impostor");
    fs::copy(shim(), folder.join("libascendcl.so")).unwrap();
    let linked = scratch("impostor-link");
    std::os::unix::fs::symlink(shim(), linked.join("libascendcl.so")).unwrap();
    let plain = || Run::new(&program).shim();
    let runs = [
        ("ACLSHIM_REAL is the shim", plain().env("ACLSHIM_REAL", shim())),
        ("ACLSHIM_REAL is a copy of the shim", plain().env("ACLSHIM_REAL", folder.join("libascendcl.so"))),
        ("a copy of the shim has the vendor's name", plain().library_path(&folder)),
        ("a link to the shim has the vendor's name", plain().library_path(&linked)),
        ("a copy of the shim is preloaded too", plain().preload(folder.join("libascendcl.so"))),
        ("a copy is preloaded and ACLSHIM_REAL", {
            plain().preload(folder.join("libascendcl.so")).env("ACLSHIM_REAL", folder.join("libascendcl.so"))
        }),
    ];
    for (what, run) in runs {
        let output = run.run();
        assert_eq!(output.status.code(), Some(0), "{what}: {output:?}");
        assert_eq!(
            output.stdout, "copy 207000 errno 77\ncopy 207000 errno 77\ncopy 207000 errno 77\nset 207000\n",
            "{what}"
        );
    }
}

#[test]
fn a_copy_of_the_shim_under_the_vendors_name_does_not_hide_the_real_library() {
    let folder = scratch("impostor");
    fs::copy(shim(), folder.join("libascendcl.so")).unwrap();
    let program = missing();
    let real = sim().join("libascendcl.so");
    let output = Run::new(&program).shim().library_path(&folder).env("ACLSHIM_REAL", real).run().ok();
    assert_eq!(output.stdout, "copy 0 errno 77\ncopy 0 errno 77\ncopy 0 errno 77\nset 0\n");
    assert_eq!(output.stat().total("calls"), 4);
}

// ---- The loader ----

#[test]
fn lookups_beside_a_thread_that_opens_and_closes_libraries_never_hang() {
    let library = plain_library();
    let program = host("hosts/guest_loader.c");
    let output = same_and_well(&program, |run| run.arg(&library));
    assert_eq!(output.stdout, "both ran\n");
    counted_exactly(&output);
}

// ---- A host that gives us nothing ----

#[test]
fn under_limits_of_the_system_the_host_runs_as_without_the_shim() {
    let program = host("hosts/guest_limits.c");
    for (name, value) in
        [("fsize", "0"), ("fsize", "4096"), ("fsize", "100000"), ("nofile", "0"), ("nofile", "3"), ("as", "0")]
    {
        let prepare = |run: Run| run.arg(name).arg(value);
        let is_said = [("fsize", "0"), ("nofile", "0"), ("nofile", "3")].contains(&(name, value));
        let output = if is_said { same_and_said(&program, 100, prepare) } else { same_and_well(&program, prepare) };
        assert_eq!(output.stdout, "100 copies\n", "{name} {value}");
        if name == "fsize" && value == "0" {
            assert_eq!(rings(&output.scratch).len(), 0, "no file may be made");
        }
    }
}

#[test]
fn a_log_that_is_as_long_as_a_file_may_be_is_left_alone() {
    let program = host("hosts/guest_limits.c");
    let run = |run: Run| run.arg("fsize").arg("1048576").arg("full").env("ACLSHIM_RING_DIR", "/nonexistent");
    assert_eq!(same_and_said(&program, 100, run).stdout, "100 copies\n");
}

#[test]
fn where_no_count_file_can_be_made_the_log_says_not_recording() {
    let program = host("hosts/guest_calls.c");
    let missing = scratch("ring").join("missing");
    let file = scratch("ring").join("file");
    fs::write(&file, "mine").unwrap();
    for folder in
        [missing.as_path(), &file, Path::new("/proc"), Path::new("/dev/null"), Path::new("/proc/self/nothing")]
    {
        let output = same_and_well(&program, |run| run.arg("20").env("ACLSHIM_RING_DIR", folder));
        assert_eq!(logged(&output, "not-recording"), [folder.to_str().unwrap()]);
        assert!(!missing.exists());
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }
}

#[test]
fn what_stands_where_the_log_would_be_is_left_alone() {
    let program = host("hosts/guest_trap.c");
    let missing = scratch("ring").join("missing");
    for what in ["link", "fifo", "folder"] {
        let output = same_and_said(&program, 5, |run| run.arg(what).env("ACLSHIM_RING_DIR", &missing));
        assert_eq!(output.stdout, "made 0\ncopied\n", "{what}");
        assert!(!output.scratch.join("victim").exists(), "written through the link");
    }
}

#[test]
fn a_full_ring_directory_changes_nothing_but_the_log() {
    let name = "a_full_ring_directory_changes_nothing_but_the_log";
    let mount = "mount -t tmpfs -o size=16k none \"$FULL\" && exec \"$@\"";
    let full = scratch("full");
    let mut probe = Command::new("unshare");
    probe.args(["-rm", "sh", "-c", mount, "sh", "true"]).env("FULL", &full).stderr(Stdio::null());
    if !has_that(probe.status().is_ok_and(|status| status.success()), "a mount namespace", name) {
        return;
    }
    let program = host("hosts/guest_calls.c");
    let run = |run: Run| {
        let run = run.arg("-rm").arg("sh").arg("-c").arg(mount).arg("sh").env("FULL", &full).arg(&program).arg("20");
        run.sim().env("ACLSHIM_RING_DIR", &full).run().ok()
    };
    let (without, with) = (run(Run::new("unshare")), run(Run::new("unshare").shim()));
    assert_eq!(with.seen(), without.seen());
    assert_eq!(logged(&with, "not-recording"), [full.to_str().unwrap()]);
}

#[test]
fn where_opening_files_is_refused_copies_still_work() {
    let output = same_and_said(&host("hosts/guest_filter.c"), 100, |run| run.arg("refuse"));
    assert_eq!(output.stdout, "100 copies\n");
    assert_eq!(rings(&output.scratch).len(), 0);
}

#[test]
fn a_warm_thread_makes_no_system_call() {
    let output = same_and_well(&host("hosts/guest_filter.c"), |run| run.arg("strict"));
    assert_eq!(output.stdout, "1000 copies\n");
    counted_exactly(&output);
}

#[test]
fn garbage_in_a_setting_changes_nothing_for_the_host() {
    use std::os::unix::ffi::OsStrExt;
    let program = host("hosts/guest_calls.c");
    let long = "x".repeat(5000);
    let long_path = format!("/{}", "y/".repeat(4000));
    let values: [&[u8]; 9] = [
        b"",
        b"nonsense",
        b"99999999999999999999999999",
        b"-1",
        b"\xff\xfe\x80/\xc3",
        b"two\nlines\x1b[31m\"{}",
        b"%s%n%s%n",
        long.as_bytes(),
        long_path.as_bytes(),
    ];
    let settings = [
        "ACLSHIM_MODE",
        "ACLSHIM_DIR",
        "ACLSHIM_CONFIG",
        "ACLSHIM_REAL",
        "ACLSHIM_RING_DIR",
        "ACLSHIM_RING_SIZE",
        "ACLSHIM_RECORD",
        "ACLSHIM_DRAIN",
        "ACLSHIM_CALLS",
        "ACLSHIM_DEEPBIND",
        "ACLSHIM_STDERR",
        "ACLSHIM_NONE_SUCH",
    ];
    let without = Run::new(&program).sim().arg("20").run().ok();
    for setting in settings {
        for value in values {
            let value = std::ffi::OsStr::from_bytes(value);
            if setting == "ACLSHIM_RING_DIR" && value.is_empty() {
                continue; // is not set, and this test leaves nothing in /dev/shm
            }
            let with = Run::new(&program).sim().shim().arg("20").env(setting, value).run();
            assert_eq!(with.seen(), without.seen(), "{setting}={value:?}");
            with.log(); // every line is JSON
            if !["ACLSHIM_DIR", "ACLSHIM_RING_DIR"].contains(&setting) {
                assert_eq!(with.stat().total("calls"), 20, "{setting}={value:?}");
            }
            fs::remove_dir_all(with.scratch).unwrap();
        }
    }
}

#[test]
fn a_word_that_makes_no_sense_is_named_once_in_the_log() {
    let output = same_and_well(&host("hosts/guest_calls.c"), |run| run.env("ACLSHIM_MODE", "Observe"));
    assert_eq!(logged(&output, "setting"), ["ACLSHIM_MODE"]);
    counted_exactly(&output);
}

#[test]
fn a_process_that_never_copies_gets_no_file_no_thread_and_no_output() {
    let output = same_and_well(&host("hosts/guest_idle.c"), |run| run.arg("idle").env("ACLSHIM_MODE", "nonsense"));
    assert!(output.stdout.contains("found 1\nthreads 1\n"), "{}", output.stdout);
    assert_eq!(fs::read_dir(&output.scratch).unwrap().count(), 0, "nothing was written");

    let output = Run::new("true").shim().run().ok();
    assert_eq!(output.seen(), (Some(0), None, "", ""));
    assert_eq!(fs::read_dir(&output.scratch).unwrap().count(), 0, "nothing was written");
}

#[test]
fn descriptors_and_threads_are_the_hosts_own_after_copies_too() {
    let program = host("hosts/guest_idle.c");
    for who in ["off", "outside"] {
        counted_exactly(&same_and_well(&program, |run| run.arg("copies").env("ACLSHIM_DRAIN", who)));
    }
    // With a drain inside there are up to two threads of ours; everything else is as without the shim.
    let parted = |output: &Output| -> (Vec<String>, Vec<String>) {
        output.stdout.lines().map(str::to_owned).partition(|line| line.starts_with("threads"))
    };
    for how in ["copies", "closes"] {
        let without = Run::new(&program).sim().arg(how).run().ok();
        let with = Run::new(&program).sim().shim().arg(how).run().ok();
        let ((plain, rest), (ours, same)) = (parted(&without), parted(&with));
        assert_eq!((plain.as_slice(), &rest), (&["threads 1".to_owned()][..], &same), "{how}");
        assert!(ours == ["threads 2"] || ours == ["threads 3"], "{how}: {ours:?}");
        counted_exactly(&with);
        if how == "closes" {
            assert_eq!(fs::read_to_string(with.scratch.join("mine")).unwrap(), "my own");
        }
    }
}

#[test]
fn a_count_file_is_for_its_owner_only() {
    let output = same_and_well(&host("hosts/guest_calls.c"), |run| run);
    let [file] = &rings(&output.scratch)[..] else { panic!("one file") };
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
}
