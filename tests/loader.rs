//! The loader's traps: locks that another thread holds, error messages of the program's own, small stacks.

mod support;

use std::path::PathBuf;
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

#[test]
fn a_weak_reference_to_what_an_earlier_plugin_brought_is_there() {
    let program = Build::new("hosts/loader_two.c").program();
    let first = Build::new("hosts/loader_ctor_plugin.c").link("ascendcl").library("plugin");
    let second = Build::new("hosts/loader_weak_plugin.c").arg("-fno-plt").library("weak");
    let output = same(|| Run::new(&program).arg(&first).arg(&second).sim());
    assert!(output.stdout.ends_with("aclrtMemcpyAsync is there\ngo 0\n"), "{}", output.stdout);
    assert_eq!(output.stat().total("calls"), 2);
}

#[test]
fn a_pointer_that_the_program_has_changed_stays_the_programs() {
    let library = Build::new("hosts/loader_probe.c").library("probe");
    for binding in ["-Wl,-z,lazy", "-Wl,-z,now"] {
        let program = Build::new("hosts/loader_pointer.c").arg(binding).link("ascendcl").program();
        let output = same(|| Run::new(&program).arg(&library).sim());
        assert_eq!(output.stdout, "1 1 1 77\n");
    }
}

#[test]
fn a_plugin_that_comes_back_elsewhere_without_a_lookup_reaches_the_real_function() {
    let program = Build::new("hosts/loader_reload.c").program();
    let vendor = Build::new("hosts/loader_tail_vendor.c").arg("-DRELOAD").library("tail");
    let plugin = Build::new("hosts/loader_ctor_copies.c").arg(&vendor).library("copies");
    let output = same(|| Run::new(&program).arg(&plugin).library_path(vendor.parent().unwrap()));
    assert_eq!((output.stdout.as_str(), output.stat().total("calls")), ("copied 0\n".repeat(5).as_str(), 5));
}

#[test]
fn a_library_of_the_program_does_not_see_what_a_plugin_brought_for_itself() {
    let helper = Build::new("hosts/loader_probe.c").library("probe");
    let program = Build::new("hosts/loader_probing.c").arg(&helper).program();
    let plugin = Build::new("hosts/loader_probing.c").arg("-DPLUGIN").arg(&helper).link("ascendcl").library("probing");
    let output = same(|| Run::new(&program).arg(&plugin).sim().library_path(helper.parent().unwrap()));
    assert_eq!(output.stdout, "seen: 0\nseen: 0\n");
}

#[test]
fn a_call_that_the_vendor_makes_by_a_jump_is_nested() {
    let vendor = Build::new("hosts/loader_tail_vendor.c").arg("-O2").library("ascendcl");
    let program = Build::new("hosts/loader_tail.c").arg(&vendor).program();
    let output = same(|| Run::new(&program).library_path(vendor.parent().unwrap()));
    let stat = output.stat();
    assert_eq!((stat.total("calls"), stat.total("nested"), stat.total("bytes")), (6, 5, 48));
}

#[test]
fn where_too_many_libraries_have_one_function_the_last_go_past_us_and_the_log_says_so_once() {
    let program = Build::new("hosts/loader_many.c").program();
    let library =
        |n: usize| Build::new("hosts/loader_tail_vendor.c").arg(format!("-DCOPY={n}")).library(&format!("vendor{n}"));
    let libraries: Vec<_> = (1..=8).map(library).collect();
    let output = same(|| libraries.iter().fold(Run::new(&program), |run, library| run.arg(library)));
    assert_eq!(output.stat().total("calls"), 5, "one by the export, four by private entries");
    let said: Vec<_> =
        output.log().into_iter().map(|line| line["event"].clone()).filter(|event| event == "bypassed").collect();
    assert_eq!(said, ["bypassed"]);
}

// ---- A library that a plugin brings, called by what the loader has bound, with no lookup afterwards ----

/// The modes in which calls go different ways.
const MODES: [(&str, &str); 4] =
    [("ACLSHIM_MODE", "observe"), ("ACLSHIM_MODE", "off"), ("ACLSHIM_MODE", "enforce"), ("ACLSHIM_DRAIN", "outside")];

/// A part of a vendor's library, which may be unloaded, and a plugin that brings it.
fn brought(argument: &str) -> (PathBuf, PathBuf) {
    let vendor = Build::new("hosts/unload_vendor.c").library("unload_vendor");
    let plugin = Build::new("hosts/unload_plugin.c").arg(argument).arg(&vendor).library("unload_plugin");
    (plugin, vendor.parent().unwrap().to_owned())
}

/// The program that opens it. It counts how often the list of loaded objects is read.
fn opener() -> PathBuf {
    Build::new("hosts/unload_host.c").arg("-rdynamic").program()
}

/// Runs it with and without the shim in each mode; what it shows is the same, but for how often the list is read.
#[track_caller]
fn same_in_all_modes(run: impl Fn() -> Run) -> Vec<String> {
    let without = run().run().ok();
    let with = MODES.map(|(name, value)| {
        let with = run().shim().env(name, value).run();
        let plain = |text: &str| text.replace("at times", "never").replace("each time", "never");
        assert_eq!((with.status.code(), plain(&with.stdout)), (Some(0), plain(&without.stdout)), "{name}={value}");
        assert_eq!(with.stderr, without.stderr, "{name}={value}");
        with.stdout
    });
    with.into()
}

#[test]
fn what_a_plugin_brings_is_not_searched_for_with_each_call() {
    let (plugin, folder) = brought("-UCOPIES");
    let program = opener();
    for stdout in same_in_all_modes(|| Run::new(&program).arg(&plugin).library_path(&folder)) {
        assert_eq!(stdout, "round 0: searched never\nunloaded after 2000 calls\n");
    }
    let plugin = Build::new("hosts/unload_plugin.c").link("ascendcl").library("unload_plugin");
    for stdout in same_in_all_modes(|| Run::new(&program).arg(&plugin).sim()) {
        assert_eq!(stdout, "round 0: searched never\n", "the simulated device");
    }
}

#[test]
fn a_library_that_lacks_some_functions_is_not_searched_for_with_each_call() {
    let vendor = Build::new("hosts/unload_vendor.c").library("unload_vendor");
    let (plugin, folder) = brought("-UCOPIES");
    // The program itself is linked to it.
    let program = Build::new("hosts/unload_host.c").arg("-rdynamic").arg(&vendor).program();
    for stdout in same_in_all_modes(|| Run::new(&program).arg(&plugin).library_path(&folder)) {
        assert_eq!(stdout, "round 0: searched never\nunloaded after 2000 calls\n");
    }
}

#[test]
fn what_a_plugin_brings_may_be_unloaded_and_come_back_elsewhere() {
    let (plugin, folder) = brought("-UCOPIES");
    let program = opener();
    for stdout in same_in_all_modes(|| Run::new(&program).arg(&plugin).arg("5").library_path(&folder)) {
        let round = |round: usize| format!("round {round}: searched never\nunloaded after 2000 calls\n");
        assert_eq!(stdout, (0..5).map(round).collect::<String>());
    }
    let output = Run::new(&program).arg(&plugin).arg("5").library_path(&folder).shim().run().ok();
    let stat = output.stat();
    assert_eq!((stat.total("calls") + stat.total("not_recorded"), stat.total("in_flight")), (10_000, 0));
}

#[test]
fn a_constructor_may_wait_for_a_thread_that_makes_many_copies() {
    let (plugin, folder) = brought("-DCOPIES=5000");
    let program = opener();
    for stdout in same_in_all_modes(|| Run::new(&program).arg(&plugin).library_path(&folder)) {
        assert_eq!(stdout, "copies of a thread: 0\nround 0: searched never\nunloaded after 7000 calls\n");
    }
}

#[test]
fn a_library_that_the_host_closes_stays_while_we_lead_to_it() {
    // Not the simulated one, which stays in any case.
    let vendor = Build::new("hosts/check_vendor.c").library("ascendcl");
    let second = Build::new("hosts/check_vendor.c").arg("-O2").library("second");
    let plugin = |vendor| Build::new("hosts/loader_pin.c").arg("-DPLUGIN").arg(vendor).library("plugin");
    let (of_vendor, of_second) = (plugin(&vendor), plugin(&second));
    let program = Build::new("hosts/loader_pin.c").program();
    for (how, library, first) in [
        ("handle", &vendor, None),
        ("default", &vendor, None),
        ("plugin", &of_vendor, None),
        ("bound", &of_vendor, None),
        ("handle", &second, Some(&vendor)),
        ("bound", &of_second, Some(&vendor)),
    ] {
        let run = Run::new(&program).arg(how).arg(library);
        let run = first.into_iter().fold(run, Run::arg).library_path(second.parent().unwrap());
        let output = run.library_path(vendor.parent().unwrap()).shim().run().ok();
        assert_eq!(output.stdout, "open: 0\nclosed: 0\n", "{how} {first:?}");
        assert_eq!(output.stat().total("calls"), 2, "{how} {first:?}");
    }
}

#[test]
fn pages_that_the_loader_has_made_read_only_are_so_behind_us() {
    let old = target("sim/no-batch");
    for binding in ["-Wl,-z,lazy", "-Wl,-z,now"] {
        let build = || Build::new("hosts/loader_relro.c").arg(binding).arg("-Wl,-z,relro");
        let program = build().arg("-fPIE").arg("-pie").program();
        // Pointers in the table of all, and in that of calls.
        for table in ["-fno-plt", "-fplt"] {
            let plugin = build().arg("-DPLUGIN").arg(table).link("ascendcl").library("plugin");
            let output = same(|| Run::new(&program).arg(&plugin).library_path(&old).env("ASCENDCL_SIM_CANN", "9.2"));
            assert!(output.stdout.starts_with("copied: 0\nbatches: 0\nplugin 0 r--p\n"), "{}", output.stdout);
            assert_eq!(output.stat().total("calls"), 1, "{binding} {table}: redirected");
        }
    }
}

#[test]
fn a_plugin_that_binds_past_us_is_redirected_each_time_that_it_comes_to_the_same_place() {
    let program = Build::new("hosts/loader_open.c").program();
    let plugin = Build::new("hosts/loader_relro.c").arg("-DPLUGIN").link("ascendcl").library("plugin");
    let output = same(|| Run::new(&program).arg(&plugin).arg("20").arg("deep").sim());
    assert_eq!(output.stat().total("calls"), 20);
}
