//! A program that looks symbols up finds, misses and gets as messages what it would without the shim.

mod support;

use std::path::Path;
use support::{Build, Output, Run, host, root, sim, target};

/// Runs a host without and with the shim, with the vendor's library in `vendor`; what it shows must be the same.
#[track_caller]
fn same_with(vendor: &Path, host: &Path, prepare: impl Fn(Run) -> Run) -> Output {
    let without = prepare(Run::new(host).library_path(vendor)).run().ok();
    let with = prepare(Run::new(host).library_path(vendor).shim()).run().ok();
    for (with, without) in with.stdout.lines().zip(without.stdout.lines()) {
        assert_eq!(with, without, "with the shim, and without it");
    }
    assert_eq!(with.seen(), without.seen());
    let off = prepare(Run::new(host).library_path(vendor).shim()).env("ACLSHIM_MODE", "off").run();
    assert_eq!(off.seen(), without.seen(), "with ACLSHIM_MODE=off");
    with
}

#[track_caller]
fn same(host: &Path, prepare: impl Fn(Run) -> Run) -> Output {
    same_with(&sim(), host, prepare)
}

/// The lines about `name`, each without its name.
fn about<'a>(output: &'a Output, name: &str) -> Vec<&'a str> {
    let lines = output.stdout.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(first, _)| *first == name).map(|(_, rest)| rest).collect()
}

#[test]
fn a_function_that_this_vendor_lacks_is_null_by_every_lookup_and_undefined_in_dlerror() {
    for (vendor, missing) in [("sim/no-batch", 10), ("sim/cann-8.5", 2)] {
        let program = Build::new("hosts/truth_lookup.c").program();
        let without = Run::new(&program).library_path(target(vendor)).run().ok();
        for mode in ["observe", "off"] {
            let with = Run::new(&program).library_path(target(vendor)).shim().env("ACLSHIM_MODE", mode).run().ok();
            assert_eq!(with.stdout.lines().count(), without.stdout.lines().count());
            let mut absent = 0;
            for (with, without) in with.stdout.lines().zip(without.stdout.lines()) {
                // Which object the message names is the one thing that may differ, where the shim hides its own export.
                let told = |line: &str| match (line.split_once(", "), line.rsplit_once("undefined symbol")) {
                    (Some((lookup, _)), Some((_, error))) => format!("{lookup}: undefined symbol{error}"),
                    _ => line.to_owned(),
                };
                // "Behind the program" is passed on as it is, and our export is there.
                if with.contains("behind the program: ") && without.contains("behind the program: NULL") {
                    continue;
                }
                assert_eq!(told(with), told(without), "{vendor} {mode}");
                absent += usize::from(with.contains(" by handle: NULL"));
            }
            assert!(absent >= missing, "{vendor}: {absent} functions are missing");
        }
        let with = Run::new(&program).library_path(target(vendor)).shim().run().ok();
        for line in about(&with, "aclrtMemcpyBatchV2").iter().filter(|line| !line.contains("behind the program")) {
            assert!(line.contains(": NULL, ") && line.contains("undefined symbol: aclrtMemcpyBatchV2"), "{line}");
        }
    }
}

#[test]
fn the_message_of_a_failed_lookup_by_handle_is_the_very_same() {
    let program = Build::new("hosts/truth_lookup.c").program();
    let run = |run: Run| run.library_path(target("sim/no-batch")).arg("aclrtMemcpyBatch").run().ok();
    let (without, with) = (run(Run::new(&program)), run(Run::new(&program).shim()));
    for way in ["by handle", "by the other name's handle", "in libc", "by version and handle"] {
        let line = |output: &Output| {
            about(output, "aclrtMemcpyBatch").into_iter().find(|l| l.starts_with(way)).map(str::to_owned)
        };
        assert!(line(&with).is_some_and(|line| line.contains("undefined symbol")), "{way}");
        assert_eq!(line(&with), line(&without), "{way}");
    }
}

#[test]
fn a_function_that_is_there_is_found_by_every_lookup_and_dlerror_says_nothing() {
    let output = same(&host("hosts/truth_lookup.c"), |run| run);
    for line in about(&output, "aclrtMemcpyBatch")
        .iter()
        .filter(|line| !line.starts_with("in libc") && !line.contains("version"))
    {
        assert!(line.contains(": found, no error, in libascendcl.so as aclrtMemcpyBatch"), "{line}");
    }
    // Nothing of the vendor is linked here: the lookups by default must not see our export.
    let output = same(&Build::new("hosts/truth_lookup.c").program(), |run| run.arg("aclInit").arg("ascendclSimCalls"));
    assert!(output.stdout.contains("aclInit by default: NULL"), "{}", output.stdout);
}

#[test]
fn names_that_are_none_of_ours_are_looked_up_as_without_us() {
    let names = [
        "none_such",
        "",
        "a",
        "aclrt",
        "aclrtMemcp",
        "aclrtMemcpyX",
        "aclrtMemcpyBatchAsyncV3",
        "aclrtmemcpy",
        "strlen",
        "malloc",
        "aclInit",
        "aclrtMalloc",
        "environ",
        "_ZTIi",
    ];
    for program in [host("hosts/truth_lookup.c"), Build::new("hosts/truth_lookup.c").program()] {
        let output = same(&program, |run| names.iter().fold(run, |run, name| run.arg(name)));
        assert!(output.stdout.contains(": undefined symbol: none_such"), "{}", output.stdout);
        assert!(!output.stdout.contains("aclshim"), "{}", output.stdout);
    }
}

#[test]
fn pointers_to_one_function_are_equal_where_they_are_without_the_shim() {
    for kind in [
        &["-pie", "-fPIE"][..],
        &["-no-pie", "-fno-pie"],
        &["-pie", "-fPIE", "-Wl,-z,lazy"],
        &["-pie", "-fPIE", "-Wl,-z,now"],
    ] {
        let build = Build::new("hosts/truth_equal.c").link("ascendcl");
        let program = kind.iter().fold(build, |build, argument| build.arg(argument)).program();
        for call_first in [false, true] {
            let output = same(&program, |run| if call_first { run.arg("call") } else { run });
            if kind[0] == "-pie" {
                assert!(
                    output.stdout.contains("aclrtMemcpy: 0 0 0 0 0 0 - - 0 0, linked as aclrtMemcpy\n"),
                    "{}",
                    output.stdout
                );
            }
        }
    }
}

#[test]
fn dladdr_of_a_copy_function_names_the_vendors_file() {
    let program = Build::new("hosts/truth_dladdr.c").arg("-pie").arg("-fPIE").link("ascendcl").program();
    let output = same(&program, |run| run);
    let file = sim().join("libascendcl.so");
    for pointer in ["linked aclrtMemcpy", "aclrtMemcpy by handle", "aclrtMemcpy by default"] {
        let line = format!("{pointer}: 1 file {} symbol aclrtMemcpy,", file.display());
        assert!(output.stdout.contains(&line), "{line}\n{}", output.stdout);
    }
    let program = Build::new("hosts/truth_dladdr.c").arg("-no-pie").arg("-fno-pie").link("ascendcl").program();
    same(&program, |run| run);
}

#[test]
fn behind_me_still_means_behind_the_caller() {
    let library =
        |who: &str| Build::new("hosts/truth_next_lib.c").arg(format!("-DWHO={who}")).library(&format!("truth_{who}"));
    let (first, second) = (library("first"), library("second"));
    let folders = [first.parent().unwrap(), second.parent().unwrap()];
    let build = folders
        .iter()
        .fold(Build::new("hosts/truth_next.c"), |build, folder| build.arg(format!("-L{}", folder.display())));
    let program = build.link("truth_first").link("ascendcl").link("truth_second").program();
    let output = same(&program, |run| run.library_path(folders[0]).library_path(folders[1]));
    assert!(output.stdout.contains("truth_mark behind first: /libtruth_second.so, no error"), "{}", output.stdout);
    assert!(output.stdout.contains("aclrtMemcpy behind first: /libascendcl.so, no error"), "{}", output.stdout);
    assert!(output.stdout.contains("aclrtMemcpy behind second: /-, "), "{}", output.stdout);
    assert!(output.stdout.contains("the program's next is what it calls: 1"), "{}", output.stdout);
}

#[test]
fn what_a_plugin_brought_is_seen_by_whom_it_would_be_without_the_shim() {
    let plugin = Build::new("hosts/truth_plugin_lib.c").link("ascendcl").library("truth_plugin");
    let program = Build::new("hosts/truth_plugin.c").program();
    for scope in ["local", "global"] {
        let output = same(&program, |run| run.arg(&plugin).arg(scope));
        assert!(output.stdout.contains("before: aclrtMemcpy NULL, undefined symbol: aclrtMemcpy"), "{}", output.stdout);
        assert!(output.stdout.contains("plugin: aclrtMemcpy found, no error"), "{}", output.stdout);
        let seen = if scope == "local" { "after: aclrtMemcpy NULL" } else { "after: aclrtMemcpy found" };
        assert!(output.stdout.contains(seen), "{}", output.stdout);
    }
}

#[test]
fn each_version_of_a_function_is_found_by_its_name_and_version() {
    let script = root().join("tests/hosts/truth_versions.map");
    let build = Build::new("hosts/truth_versioned_lib.c").arg(format!("-Wl,--version-script={}", script.display()));
    let vendor = build.library("ascendcl");
    let folder = vendor.parent().unwrap();
    let linked = Build::new("hosts/truth_versions.c").arg("-DLINKED").arg(&vendor).program();
    for program in [linked, Build::new("hosts/truth_versions.c").program()] {
        let output = same_with(folder, &program, |run| run);
        assert!(output.stdout.contains("handle aclrtMemcpy CANN_1: no error, answers 1"), "{}", output.stdout);
        assert!(output.stdout.contains("handle aclrtMemcpy CANN_2: no error, answers 2"), "{}", output.stdout);
    }
}

#[test]
fn a_call_through_the_programs_own_handle_is_one_call() {
    for kind in [["-pie", "-fPIE"], ["-no-pie", "-fno-pie"]] {
        let program = Build::new("hosts/truth_self.c").link("ascendcl").arg(kind[0]).arg(kind[1]).program();
        let output = same(&program, |run| run);
        let stat = output.stat();
        assert_eq!((stat.total("calls"), stat.total("nested")), (3, 0), "{kind:?}");
    }
}

#[test]
fn a_weak_reference_is_null_where_it_is_without_the_shim() {
    let linked = host("hosts/truth_weak.c");
    assert_eq!(same(&linked, |run| run).stdout, "set 1 batch 1 second 1\n");
    assert_eq!(same_with(&target("sim/no-batch"), &linked, |run| run).stdout, "set 1 batch 0 second 0\n");
    let alone = Build::new("hosts/truth_weak.c").program();
    assert_eq!(same(&alone, |run| run).stdout, "set 0 batch 0 second 0\n");
}
