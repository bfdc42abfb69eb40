//! Every way of binding: all functions reach the vendor exactly once and are counted exactly once.
//!
//! The hosts (`tests/hosts/bind_*`) make the same call of each and differ in how they found the functions. Each runs
//! without the shim and with it, and must not notice: output, errors and exit are the same. The last tests show that
//! the counts can come out otherwise.

mod support;
#[path = "support/ways.rs"]
mod ways;

use aclshim_facts::FUNCTIONS;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use support::{Output, Run, Stat, has, sim};
use ways::*;

/// Number of functions in the table.
const ALL: u64 = FUNCTIONS.len() as u64;

/// Every line `name code=0 vendor=1 bytes=N`: every function, each entered once. Gives the bytes.
#[track_caller]
fn reached_once(output: &Output) -> BTreeMap<String, u64> {
    let told = output.stdout.lines().filter_map(|line| line.split_once(" code=0 vendor=1 bytes="));
    let told: BTreeMap<_, _> = told.map(|(name, bytes)| (name.to_owned(), bytes.parse().unwrap())).collect();
    assert!(told.keys().map(String::as_str).eq(names()), "{:?}\n{}{}", output.status, output.stdout, output.stderr);
    told
}

fn names() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<_> = FUNCTIONS.iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.into_iter()
}

/// Runs both and checks that the host notices nothing and each function was counted once.
#[track_caller]
fn seen_once(plain: Run, shimmed: Run, nested: u64) -> (Stat, Output) {
    let (plain, shimmed) = (plain.run(), shimmed.run());
    reached_once(&plain);
    assert_eq!(shimmed.seen(), plain.seen(), "the host notices the shim");
    let stat = shimmed.stat();
    let once: BTreeMap<_, _> = names().map(|name| (name.to_owned(), 1)).collect();
    assert_eq!(stat.calls(), once, "counted");
    let totals = ["processes", "calls", "nested", "errors", "not_recorded", "in_flight"].map(|key| stat.total(key));
    assert_eq!(totals, [1, ALL, nested, 0, 0, 0], "{}", stat.0);
    (stat, shimmed)
}

/// Runs it and checks that each function reached the vendor once and nothing was counted: there is no file at all.
#[track_caller]
fn unseen(plain: Run, shimmed: Run) {
    let (plain, shimmed) = (plain.run(), shimmed.run());
    reached_once(&plain);
    assert_eq!(shimmed.seen(), plain.seen(), "the host notices the shim");
    let left: Vec<_> = fs::read_dir(&shimmed.scratch).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A test for each way of binding, with the shim preloaded; `nested ALL` where a call is to be seen nested too.
macro_rules! preloaded {
    ($($name:ident: $way:expr $(, nested $nested:expr)?;)*) => {$(
        #[test]
        fn $name() {
            let way: Way = $way;
            seen_once(way.run(), way.run().shim(), 0 $(+ $nested)?);
        }
    )*};
}

/// A test for each host, with a drop-in folder instead of a preload.
macro_rules! dropped_in {
    ($($name:ident: $way:expr;)*) => {$(
        #[test]
        fn $name() {
            let way: Way = $way;
            seen_once(way.run(), dropped_in(&way, dropin()), 0);
        }
    )*};
}

/// A test for each host, with another interposer in front of the shim or behind it.
macro_rules! interposed {
    ($($name:ident: $way:expr, $interposer:expr, $place:ident $(, nested $nested:expr)?;)*) => {$(
        #[test]
        fn $name() {
            let (way, other): (Way, PathBuf) = ($way, $interposer);
            let both = interposed!(@$place way.run(), &other);
            seen_once(way.run().preload(&other), both, 0 $(+ $nested)?);
        }
    )*};
    (@in_front $run:expr, $other:expr) => { $run.preload($other).shim() };
    (@behind $run:expr, $other:expr) => { $run.shim().preload($other) };
}

preloaded! {
    a_program_linked_lazily_is_seen: linked("bind_linked.c", &[LAZY]);
    a_program_linked_with_bind_now_is_seen: linked("bind_linked.c", &[NOW]);
    a_program_linked_without_a_linkage_table_is_seen: linked("bind_linked.c", &["-fno-plt"]);
    a_program_linked_at_a_fixed_address_is_seen: linked("bind_linked.c", &["-fno-pie", FIXED]);
    a_program_with_pointers_in_static_data_is_seen: linked("bind_static.c", &[]);
    a_program_at_a_fixed_address_with_pointers_in_static_data_is_seen: linked("bind_static.c", &["-fno-pie", FIXED]);

    a_lookup_by_soname_is_seen: lookup("libascendcl.so", "local", "handle");
    a_lookup_in_a_global_library_is_seen: lookup("libascendcl.so", "global", "handle");
    a_lookup_by_absolute_path_is_seen: lookup(sim().join("libascendcl.so"), "local", "handle");
    a_lookup_by_the_newer_name_is_seen: lookup("libacl_rt.so", "local", "handle");
    a_lookup_by_the_absolute_path_of_the_newer_name_is_seen: lookup(sim().join("libacl_rt.so"), "local", "handle");
    a_lookup_on_the_handle_of_a_dependent_library_is_seen: lookup(dependent(), "local", "handle");
    a_default_lookup_of_a_global_library_is_seen: lookup("libascendcl.so", "global", "default");
    a_default_lookup_of_a_linked_program_is_seen: Way {
        program: build("bind_lookup.c", &[VENDOR]).program(), ..lookup("libascendcl.so", "local", "default")
    };
    a_versioned_lookup_is_seen: lookup(versioned(), "local", "version"), nested ALL;

    a_local_plugin_linked_lazily_is_seen: plugin("local", "bind_linked.c", &[LAZY, VENDOR], &[]);
    a_local_plugin_linked_with_bind_now_is_seen: plugin("local", "bind_linked.c", &[NOW, VENDOR], &[]);
    a_local_plugin_with_pointers_in_static_data_is_seen: plugin("local,now", "bind_static.c", &[VENDOR], &[]);
    a_default_lookup_of_a_local_plugin_is_seen:
        plugin("local", "bind_lookup.c", &[VENDOR], &["libascendcl.so", "local", "default"]);
    a_default_lookup_of_a_library_that_a_local_plugin_needs_is_seen: needed_by_a_local_plugin();
    a_lookup_of_a_local_plugin_on_a_handle_is_seen:
        plugin("local", "bind_lookup.c", &[], &["libascendcl.so", "local", "handle"]);

    a_deepbind_plugin_linked_lazily_is_seen: plugin("deepbind", "bind_linked.c", &[LAZY, VENDOR], &[]);
    a_deepbind_plugin_opened_with_now_is_seen: plugin("deepbind,now", "bind_linked.c", &[LAZY, VENDOR], &[]);
    a_deepbind_plugin_linked_with_bind_now_is_seen: plugin("deepbind", "bind_linked.c", &[NOW, VENDOR], &[]);
    a_deepbind_plugin_without_a_linkage_table_is_seen: plugin("deepbind", "bind_linked.c", &["-fno-plt", VENDOR], &[]);
    a_deepbind_plugin_with_pointers_in_static_data_is_seen: plugin("deepbind", "bind_static.c", &[VENDOR], &[]);
    a_lazy_deepbind_plugin_that_looks_up_is_seen:
        plugin("deepbind", "bind_lookup.c", &[LAZY], &["libascendcl.so", "local", "handle"]);
    a_bind_now_deepbind_plugin_that_looks_up_is_seen:
        plugin("deepbind,now", "bind_lookup.c", &[NOW], &["libascendcl.so", "local", "handle"]);
    a_default_lookup_of_a_deepbind_plugin_is_seen:
        plugin("deepbind", "bind_lookup.c", &[VENDOR], &["libascendcl.so", "local", "default"]);
    a_versioned_lookup_of_a_deepbind_plugin_is_seen: plugin(
        "deepbind", "bind_lookup.c", &[], &[&versioned().to_string_lossy(), "local", "version"]), nested ALL;
    a_lazy_deepbind_plugin_of_a_fixed_program_is_seen:
        in_a_fixed_program(plugin("deepbind", "bind_linked.c", &[LAZY, VENDOR], &[]));
    a_bind_now_deepbind_plugin_of_a_fixed_program_is_seen:
        in_a_fixed_program(plugin("deepbind", "bind_linked.c", &[NOW, VENDOR], &[]));
    a_deepbind_plugin_of_a_fixed_program_that_looks_up_is_seen: in_a_fixed_program(
        plugin("deepbind", "bind_lookup.c", &[], &["libascendcl.so", "local", "handle"]));

    a_lookup_cached_before_our_constructor_is_seen: early(&[]);
    calls_before_our_constructor_are_seen: early(&["-DBIND_CALL_EARLY"]);
}

interposed! {
    an_interposer_in_front_that_asks_for_the_next: linked("bind_linked.c", &[LAZY]), interposer(BY_NEXT), in_front;
    an_interposer_in_front_that_looks_up: linked("bind_linked.c", &[LAZY]), interposer(BY_LOOKUP), in_front;
    an_interposer_behind_that_asks_for_the_next: linked("bind_linked.c", &[LAZY]), interposer(BY_NEXT), behind;
    an_interposer_behind_that_looks_up: linked("bind_linked.c", &[LAZY]), interposer(BY_LOOKUP), behind, nested ALL;
    a_lookup_past_an_interposer_in_front: lookup("libascendcl.so", "local", "handle"), interposer(BY_LOOKUP), in_front;
    a_lookup_past_an_interposer_behind: lookup("libascendcl.so", "local", "handle"), interposer(BY_LOOKUP), behind;
    a_default_lookup_of_an_interposer_in_front:
        lookup("libascendcl.so", "global", "default"), interposer(BY_LOOKUP), in_front;
    a_default_lookup_of_an_interposer_behind:
        lookup("libascendcl.so", "global", "default"), interposer(BY_LOOKUP), behind, nested ALL;
    a_bind_now_deepbind_plugin_past_an_interposer_in_front:
        plugin("deepbind", "bind_linked.c", &[NOW, VENDOR], &[]), interposer(BY_NEXT), in_front;
    a_bind_now_deepbind_plugin_past_an_interposer_behind:
        plugin("deepbind", "bind_linked.c", &[NOW, VENDOR], &[]), interposer(BY_NEXT), behind;
}

dropped_in! {
    a_drop_in_under_a_lazy_program_is_seen: linked("bind_linked.c", &[LAZY]);
    a_drop_in_under_a_bind_now_program_is_seen: linked("bind_linked.c", &[NOW]);
    a_drop_in_under_static_data_is_seen: linked("bind_static.c", &[]);
    a_drop_in_under_a_lookup_is_seen: lookup("libascendcl.so", "local", "handle");
    a_drop_in_under_a_default_lookup_is_seen: lookup("libascendcl.so", "global", "default");
    a_drop_in_under_the_newer_name_is_seen: lookup("libacl_rt.so", "local", "handle");
    a_drop_in_under_a_dependent_library_is_seen: lookup(dependent(), "local", "handle");
    a_drop_in_under_a_local_plugin_is_seen: plugin("local", "bind_linked.c", &[LAZY, VENDOR], &[]);
    a_drop_in_under_a_deepbind_plugin_is_seen: plugin("deepbind", "bind_linked.c", &[NOW, VENDOR], &[]);
    a_drop_in_under_a_cached_lookup_is_seen: early(&[]);
}

#[test]
fn a_program_linked_to_the_shim_before_the_vendor_is_seen() {
    let folder = copy_of_the_shim().parent().unwrap().to_owned();
    for binding in [LAZY, NOW] {
        let program = build("bind_linked.c", &[binding, "-laclshim", VENDOR]).program();
        let both = Way { libraries: vec![folder.clone()], ..Way::new(program, &[]) };
        seen_once(linked("bind_linked.c", &[binding]).run(), both.run(), 0);
    }
}

#[test]
fn a_python_program_that_opens_the_library_by_ctypes_is_seen() {
    if has("python3", "a_python_program_that_opens_the_library_by_ctypes_is_seen") {
        let way = Way::new(python(), &[&support::root().join("tests/hosts/bind_ctypes.py").to_string_lossy()]);
        seen_once(way.run(), way.run().shim(), 0);
        seen_once(way.run(), dropped_in(&way, dropin()), 0);
    }
}

#[test]
fn a_cpp_program_that_looks_up_in_a_static_initialiser_is_seen() {
    if has("c++", "a_cpp_program_that_looks_up_in_a_static_initialiser_is_seen") {
        let way = Way::new(build("bind_table.cpp", &[]).program(), &[]);
        seen_once(way.run(), way.run().shim(), 0);
        let way = plugin("local", "bind_table.cpp", &[], &[]);
        seen_once(way.run(), way.run().shim(), 0);
    }
}

#[test]
fn the_bytes_of_each_function_are_those_that_it_was_asked_for() {
    let way = linked("bind_linked.c", &[LAZY]);
    let (stat, output) = seen_once(way.run(), way.run().shim(), 0);
    let asked = reached_once(&output);
    let functions = stat.0["functions"].as_object().unwrap();
    let counted: BTreeMap<_, _> =
        functions.iter().map(|(name, of)| (name.clone(), of["bytes"].as_u64().unwrap())).collect();
    assert_eq!(counted, asked);
    assert_eq!(stat.total("bytes"), asked.values().sum::<u64>());
}

#[test]
fn the_early_library_is_initialised_before_the_shim() {
    let output = early(&[]).run().shim().env("LD_DEBUG", "files").run().ok();
    let place = |library: &str| {
        let mut starts = output.stderr.lines().filter(|line| line.contains("calling init:"));
        starts.position(|line| line.contains(library)).unwrap_or_else(|| panic!("no start of {library}"))
    };
    assert!(place("libearly.so") < place("libaclshim.so"), "{}", output.stderr);
}

#[test]
fn a_second_preloaded_copy_stays_passive() {
    let ways = [
        linked("bind_linked.c", &[LAZY]),
        lookup("libascendcl.so", "local", "handle"),
        lookup("libascendcl.so", "global", "default"),
        plugin("local", "bind_linked.c", &[LAZY, VENDOR], &[]),
        plugin("deepbind", "bind_linked.c", &[NOW, VENDOR], &[]),
    ];
    for way in ways {
        seen_once(way.run(), way.run().shim().preload(copy_of_the_shim()), 0);
    }
}

/// A test for each host, with the shim preloaded and a drop-in folder too.
macro_rules! both {
    ($($name:ident: $way:expr;)*) => {$(
        #[test]
        fn $name() {
            let way: Way = $way;
            seen_once(way.run(), dropped_in(&way, dropin()).shim(), 0);
            seen_once(way.run(), dropped_in(&way, dropin()).preload(copy_of_the_shim()), 0);
        }
    )*};
}

both! {
    a_preload_and_a_drop_in_count_a_linked_program_once: linked("bind_linked.c", &[LAZY]);
    a_preload_and_a_drop_in_count_a_bind_now_program_once: linked("bind_linked.c", &[NOW]);
    a_preload_and_a_drop_in_count_a_local_lookup_once: lookup("libascendcl.so", "local", "handle");
    a_preload_and_a_drop_in_count_a_global_lookup_once: lookup("libascendcl.so", "global", "handle");
    a_preload_and_a_drop_in_count_a_default_lookup_once: lookup("libascendcl.so", "global", "default");
    a_preload_and_a_drop_in_count_a_local_plugin_once: plugin("local", "bind_linked.c", &[LAZY, VENDOR], &[]);
    a_preload_and_a_drop_in_count_a_deepbind_plugin_once: plugin("deepbind", "bind_linked.c", &[NOW, VENDOR], &[]);
}

#[test]
fn with_the_mode_off_everything_is_forwarded_and_nothing_counted() {
    let ways = [
        linked("bind_linked.c", &[LAZY]),
        linked("bind_static.c", &[NOW]),
        lookup("libascendcl.so", "local", "handle"),
        lookup("libascendcl.so", "global", "default"),
        plugin("local", "bind_linked.c", &[LAZY, VENDOR], &[]),
        plugin("deepbind", "bind_linked.c", &[LAZY, VENDOR], &[]),
    ];
    for way in ways {
        unseen(way.run(), way.run().shim().env("ACLSHIM_MODE", "off"));
    }
}

#[test]
fn without_the_fix_a_deepbind_plugin_goes_past_us() {
    let ways = [
        plugin("deepbind", "bind_linked.c", &[LAZY, VENDOR], &[]),
        plugin("deepbind", "bind_linked.c", &[NOW, VENDOR], &[]),
        plugin("deepbind", "bind_static.c", &[VENDOR], &[]),
        plugin("deepbind", "bind_lookup.c", &[], &["libascendcl.so", "local", "handle"]),
    ];
    for way in ways {
        unseen(way.run(), way.run().shim().env("ACLSHIM_DEEPBIND", "off"));
    }
}

/// A blind spot that the documents name: nothing of ours runs between the loading of an object and its constructor.
#[test]
fn a_deepbind_plugin_that_looks_up_in_its_constructor_goes_past_us() {
    let way = plugin("deepbind", "bind_early.c", &[], &[]);
    unseen(way.run(), way.run().shim());
}

/// Another one: what the loader would bind cannot be known, and the interposer's share must not change.
#[test]
fn beside_another_interposer_a_lazy_deepbind_plugin_is_left_to_the_loader() {
    let way = plugin("deepbind", "bind_linked.c", &[LAZY, VENDOR], &[]);
    for other in [interposer(BY_NEXT), interposer(BY_LOOKUP)] {
        unseen(way.run().preload(&other), way.run().preload(&other).shim());
        unseen(way.run().preload(&other), way.run().shim().preload(&other));
    }
}

/// The vendor's library is here, but not where a default lookup searches. (Which object the message names may differ.)
#[test]
fn a_default_lookup_that_finds_nothing_without_us_finds_nothing_with_us() {
    let ways = [
        lookup("libascendcl.so", "local", "default"),
        plugin("local", "bind_lookup.c", &[], &["libascendcl.so", "local", "default"]),
        plugin("deepbind", "bind_lookup.c", &[], &["libascendcl.so", "local", "default"]),
    ];
    for way in ways {
        for run in [way.run(), way.run().shim()] {
            let output = run.run();
            let undefined = output.stderr.ends_with("undefined symbol: aclrtMemcpy\n");
            assert_eq!((output.status.code(), output.stdout.as_str(), undefined), (Some(2), "", true), "{output:?}");
        }
    }
}
