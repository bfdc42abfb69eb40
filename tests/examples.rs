//! The examples of test programs: built and run as a user does, and changed as a careless one would.

#[path = "examples/copy.rs"]
mod copy;
mod support;

use copy::{Copy, PROGRAMS, done, user};
use std::fs;
use std::path::Path;
use support::{has, has_that, root, target};

/// Whether all that the examples are written for is installed.
#[track_caller]
fn has_frameworks(test: &str) -> bool {
    let header = |path: &str| {
        Path::new("/usr/include").join(path).exists() || Path::new("/usr/local/include").join(path).exists()
    };
    ["pkg-config", "c++"].iter().all(|tool| has(tool, test))
        && has_that(header("cmocka.h"), "cmocka.h", test)
        && has_that(header("gtest/gtest.h"), "gtest/gtest.h", test)
}

#[test]
fn the_examples_build_by_make_without_a_warning_and_pass_under_aclshim_test() {
    if !has_frameworks("the_examples_build_by_make_without_a_warning_and_pass_under_aclshim_test") {
        return;
    }
    let copy = Copy::new();
    let built = copy.make(&[]);
    for strict in ["-std=c99 -Wall -Wextra -Wpedantic -Werror", "-std=c++17 -Wall -Wextra -Wpedantic -Werror"] {
        assert!(built.contains(strict), "{built}");
    }
    assert!(!built.contains("warning") && !built.contains("not built"), "{built}");
    copy.make(&["check"]);
    for program in PROGRAMS {
        copy.tested(program).ok();
    }
}

#[test]
fn the_examples_build_by_cmake_and_pass_under_ctest() {
    let test = "the_examples_build_by_cmake_and_pass_under_ctest";
    if !has_frameworks(test) || !has("cmake", test) || !has("ctest", test) {
        return;
    }
    let copy = Copy::new();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = user(program, copy.folder());
        command.args(arguments);
        done(command)
    };
    let configured = run("cmake", &["-B", "build"]);
    assert!(!configured.contains("not built") && !configured.contains("Warning"), "{configured}");
    let built = run("cmake", &["--build", "build", "--verbose"]);
    assert!(built.contains("-std=c99") && built.contains("-std=c++17") && built.contains("-Werror"), "{built}");
    let tested = run("ctest", &["--test-dir", "build", "--output-on-failure"]);
    assert!(tested.contains("100% tests passed, 0 tests failed out of 3"), "{tested}");
    // And a test that fails there fails for what it says.
    copy.change("kv.c", "i = 0; i < count; i++) {\n        uint8_t", "i = 1; i < count; i++) {\n        uint8_t");
    run("cmake", &["--build", "build"]);
    let failed = user("ctest", copy.folder()).args(["--test-dir", "build", "--output-on-failure"]).output().unwrap();
    let said = String::from_utf8_lossy(&failed.stdout);
    assert!(!failed.status.success() && said.contains("0% tests passed, 3 tests failed out of 3"), "{said}");
    assert!(said.contains("aclshim: scope \"upload\": expected 3 calls, saw 2"), "{said}");
}

#[test]
fn the_examples_pass_under_a_plain_preload_and_unwatched_without_the_shim() {
    if !has_frameworks("the_examples_pass_under_a_plain_preload_and_unwatched_without_the_shim") {
        return;
    }
    let copy = Copy::new();
    copy.make(&[]);
    for program in PROGRAMS {
        let watched = copy.run(program).shim().run().ok();
        let unwatched = copy.run(program).run().ok();
        for (output, nobody) in [(&watched, false), (&unwatched, true)] {
            let skipped = output.stdout.to_lowercase().contains("skipped");
            assert_eq!(skipped, nobody, "{program}: {output:?}");
        }
        assert!(!watched.stderr.contains("aclshim:"), "{program}: {watched:?}");
        // The same binary in both: nothing of the shim is linked.
        let needed = done({
            let mut readelf = user("readelf", copy.folder());
            readelf.args(["-d", program]);
            readelf
        });
        assert!(needed.contains("libascendcl.so") && !needed.contains("libaclshim"), "{needed}");
    }
    assert!(copy.run("test_kv").run().ok().stdout.contains("nobody watched the copies"));
}

#[test]
fn the_golden_file_is_the_one_that_the_examples_make() {
    if !has_frameworks("the_golden_file_is_the_one_that_the_examples_make") {
        return;
    }
    let committed = fs::read_to_string(root().join("c-examples/testing/golden/round_trip.txt")).unwrap();
    let copy = Copy::new();
    copy.make(&[]);
    for program in PROGRAMS {
        let file = copy.folder().join("golden/round_trip.txt");
        fs::remove_file(&file).unwrap();
        copy.run(program).shim().env("ACLSHIM_GOLDEN", "update").run().ok();
        assert_eq!(fs::read_to_string(&file).unwrap(), committed, "{program}");
    }
    assert!(!committed.contains("0x7f"), "an address: {committed}");
}

/// A change to the library under test, and what the messages say of it.
struct Change {
    what: &'static str,
    edits: &'static [(&'static str, &'static str)],
    /// Lines, or parts of them, in the output of each program.
    said: &'static [&'static str],
}

/// All but the second leave the bytes right: no other test would notice.
const CHANGES: [Change; 5] = [
    Change {
        what: "a copy is added",
        edits: &[(
            "        kv->table[which[i]] = 1;\n",
            "        kv->table[which[i]] = 1;\n        code = aclrtMemcpyAsync(to, kv->size, from, kv->size, ACL_MEMCPY_HOST_TO_DEVICE, kv->stream);\n",
        )],
        said: &["expected 3 calls, saw 6"],
    },
    Change {
        what: "a copy is dropped",
        edits: &[("i = 0; i < count; i++) {\n        uint8_t", "i = 1; i < count; i++) {\n        uint8_t")],
        said: &["expected 3 calls, saw 2"],
    },
    Change {
        what: "a copy is enlarged",
        edits: &[("(to, kv->size, from, kv->size,", "(to, kv->size + 64, from, kv->size + 64,")],
        said: &["expected 3 calls of \"aclrtMemcpyAsync direction=h2d size=4096 stream=kv\", saw 0", "count=4160"],
    },
    Change { what: "copies are misaligned", edits: &[("(blocks + 63) / 64 * 64", "blocks")], said: &["ALIGN-64"] },
    Change {
        what: "copies are sent the wrong way",
        edits: &[("from, kv->size, ACL_MEMCPY_HOST_TO_DEVICE", "from, kv->size, ACL_MEMCPY_DEVICE_TO_HOST")],
        said: &[
            "expected 3 calls of \"aclrtMemcpyAsync direction=h2d size=4096 stream=kv\", saw 0",
            "kind=DEVICE_TO_HOST",
        ],
    },
];

#[test]
fn a_change_of_the_copies_fails_each_test_with_a_message_that_says_what_happened() {
    if !has_frameworks("a_change_of_the_copies_fails_each_test_with_a_message_that_says_what_happened") {
        return;
    }
    let copy = Copy::new();
    copy.make(&[]);
    let original = fs::read_to_string(copy.folder().join("kv.c")).unwrap();
    for change in CHANGES {
        for (from, to) in change.edits {
            copy.change("kv.c", from, to);
        }
        copy.make(&[]);
        for program in PROGRAMS {
            let output = copy.tested(program);
            let all = format!("{}{}", output.stdout, output.stderr);
            assert!(!output.status.success(), "{}, {program} passes:\n{all}", change.what);
            println!("== {}, {program}:\n{all}", change.what);
            for part in change.said {
                assert!(all.contains(part), "{}, {program} does not say {part}:\n{all}", change.what);
            }
        }
        // Unwatched, the same change goes unnoticed.
        assert!(copy.run("test_kv").run().status.success() || change.what.contains("dropped"), "{}", change.what);
        fs::write(copy.folder().join("kv.c"), &original).unwrap();
    }
}

#[test]
fn pkg_config_knows_the_version_and_where_things_are() {
    let test = "pkg_config_knows_the_version_and_where_things_are";
    if !has("pkg-config", test) {
        return;
    }
    let asked = |arguments: &[&str]| {
        let mut command = user("pkg-config", &root());
        command.args(arguments);
        done(command).trim().to_owned()
    };
    assert_eq!(asked(&["--modversion", "aclshim"]), env!("CARGO_PKG_VERSION"));
    assert_eq!(asked(&["--libs", "aclshim"]), "", "there is nothing to link");
    for (variable, place) in
        [("shim", "release/libaclshim.so"), ("command", "release/aclshim"), ("includedir", "include")]
    {
        let found = asked(&[&format!("--variable={variable}"), "aclshim"]);
        assert_eq!(Path::new(&found), target(place), "{variable}");
        assert!(Path::new(&found).exists(), "{found}");
    }
    let python = asked(&["--variable=python", "aclshim"]);
    assert!(Path::new(&python).join("aclshim.py").exists(), "{python}");
    // The header stands alone: ours of the vendor's must not be found before the vendor's own.
    let headers: Vec<_> = fs::read_dir(target("include")).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(headers, ["aclshim.h"]);
}
