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
    /// In kv.c: what stands there once, and what takes its place.
    edit: (&'static str, &'static str),
    /// Parts of lines, in the output of each program.
    said: &'static [&'static str],
    /// Whether the bytes are right all the same, so that a test which only looks at these passes.
    is_unnoticed: bool,
}

const UPLOAD: &str = "aclrtMemcpyAsync(to, kv->size, from, kv->size, ACL_MEMCPY_HOST_TO_DEVICE, kv->stream);";
const NONE_OF_THREE: &str = "expected 3 calls of \"aclrtMemcpyAsync direction=h2d size=4096 stream=kv\", saw 0";

const CHANGES: [Change; 7] = [
    Change {
        what: "a copy is added",
        edit: (
            UPLOAD,
            "aclrtMemcpyAsync(to, kv->size, from, kv->size, ACL_MEMCPY_HOST_TO_DEVICE, kv->stream);
             code = aclrtMemcpyAsync(to, kv->size, from, kv->size, ACL_MEMCPY_HOST_TO_DEVICE, kv->stream);",
        ),
        said: &[
            "expected 3 calls, saw 6",
            "#5 aclrtMemcpyAsync(dst=cache+0x5000, destMax=4096, src=home+0x5000, count=4096, kind=HOST_TO_DEVICE, stream=kv) = 0",
        ],
        is_unnoticed: true,
    },
    Change {
        what: "a copy is dropped",
        edit: ("i = 0; i < count; i++) {\n        uint8_t", "i = 1; i < count; i++) {\n        uint8_t"),
        said: &[
            "expected 3 calls, saw 2",
            "#0 aclrtMemcpyAsync(dst=cache+0x2000",
            "#1 aclrtMemcpyAsync(dst=cache+0x5000",
        ],
        is_unnoticed: false,
    },
    Change {
        what: "a copy is enlarged",
        edit: ("(to, kv->size, from, kv->size,", "(to, kv->size + 64, from, kv->size + 64,"),
        said: &[NONE_OF_THREE, "destMax=4160, src=home+0x1000, count=4160"],
        is_unnoticed: true,
    },
    Change {
        what: "copies are misaligned",
        edit: ("(blocks + 63) / 64 * 64", "blocks"),
        said: &[
            "expected no finding of severity portability or worse, saw 3",
            "portability ALIGN-64: aclrtMemcpyAsync(",
            "Source and destination must be aligned to 64 bytes",
            "Fix: allocate with aclrtMalloc or aclrtMallocHost",
        ],
        is_unnoticed: true,
    },
    Change {
        what: "copies are sent the wrong way",
        edit: ("from, kv->size, ACL_MEMCPY_HOST_TO_DEVICE", "from, kv->size, ACL_MEMCPY_DEVICE_TO_HOST"),
        said: &[NONE_OF_THREE, "dst=cache+0x1000, destMax=4096, src=home+0x1000, count=4096, kind=DEVICE_TO_HOST"],
        is_unnoticed: true,
    },
    Change {
        what: "an item of a batch is dropped",
        edit: ("srcs, sizes, count, &down", "srcs, sizes, count - 1, &down"),
        said: &[
            "the calls are not those of",
            "-  aclrtMemcpyBatchAsync(numBatches=3,",
            "+  aclrtMemcpyBatchAsync(numBatches=2,",
            "-    [2] dst=home+0x5000 destMax=4096 src=cache+0x5000 size=4096",
        ],
        is_unnoticed: false,
    },
    Change {
        what: "rows are left out",
        edit: ("KV_HEADER, kv->blocks,", "KV_HEADER, kv->blocks - 2,"),
        said: &["the calls are not those of", "width=64, height=6, kind=DEVICE_TO_HOST, stream=kv) = ACL_SUCCESS"],
        is_unnoticed: true,
    },
];

/// What each framework itself says of a failing scope.
const OWN_WORDS: [&str; 3] =
    ["Assertion `aclshim_scope_end(scope) == 0' failed.", "[  FAILED  ] a", "[  FAILED  ] Kv.A"];

#[test]
fn a_change_of_the_copies_fails_each_test_with_a_message_that_says_what_happened() {
    if !has_frameworks("a_change_of_the_copies_fails_each_test_with_a_message_that_says_what_happened") {
        return;
    }
    let copy = Copy::new();
    copy.make(&[]);
    let original = fs::read_to_string(copy.folder().join("kv.c")).unwrap();
    for Change { what, edit: (from, to), said, is_unnoticed } in CHANGES {
        copy.change("kv.c", from, to);
        copy.make(&[]);
        for (program, own) in PROGRAMS.into_iter().zip(OWN_WORDS) {
            let output = copy.tested(program);
            let all = format!("{}{}", output.stdout, output.stderr);
            assert!(!output.status.success(), "{what}, and {program} passes:\n{all}");
            for part in said.iter().chain(&[own]) {
                assert!(all.contains(part), "{what}, and {program} does not say {part}:\n{all}");
            }
        }
        assert_eq!(copy.run("test_kv").run().status.success(), is_unnoticed, "{what}, and nobody watches");
        fs::write(copy.folder().join("kv.c"), &original).unwrap();
    }
    // And it was the changes that failed.
    copy.make(&["check"]);
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
