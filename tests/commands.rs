//! What people type: make, and the aclshim command.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::{aclshim, root, scratch, shim, sim};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A search path on which only these commands are found.
fn only(commands: &[&str]) -> PathBuf {
    let folder = scratch("path");
    let path = std::env::var_os("PATH").unwrap();
    for command in commands {
        let found = std::env::split_paths(&path).map(|at| at.join(command)).find(|at| at.exists()).expect(command);
        symlink(found, folder.join(command)).unwrap();
    }
    folder
}

fn make(goal: &str, path: &Path) -> Output {
    make_with(&[goal], path)
}

fn make_with(arguments: &[&str], path: &Path) -> Output {
    Command::new("make")
        .args(arguments)
        .current_dir(root())
        .env("PATH", path)
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .output()
        .expect("make")
}

#[test]
fn without_cargo_or_a_compiler_make_says_so_in_one_line() {
    for (there, missing) in [(&["sh", "make"][..], "cargo"), (&["sh", "make", "cargo"], "a C compiler")] {
        for goal in ["demo", "test"] {
            let output = make(goal, &only(there));
            let said = text(&output.stderr);
            assert!(!output.status.success() && output.stdout.is_empty());
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.contains(missing) && said.contains("aclshim needs"), "{said}");
        }
    }
}

#[test]
fn the_demo_shows_what_an_unmodified_program_copied() {
    shim();
    let output = make("demo", Path::new(&std::env::var_os("PATH").unwrap()));
    let (shown, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{shown}{errors}");
    let row = |name: &str| {
        let line = shown.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|calls| calls.parse::<u64>().ok()).unwrap_or(0)
    };
    assert!(row("aclrtMemcpyBatchAsync") > 0 && row("aclrtMemcpyAsync") > 0, "{shown}");
    let functions = shown.lines().filter(|line| line.trim_start().starts_with("aclrt"));
    let sum: u64 = functions.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum();
    assert_eq!(row("total"), sum, "{shown}");
    assert!(shown.contains(" 0 not recorded"), "{shown}");
    let page = Path::new(shown.lines().last().unwrap_or_default().trim());
    assert!(page.ends_with("report.html") && page.is_file(), "the page is named last: {shown}");
}

#[test]
fn what_is_installed_runs_from_there_and_may_be_installed_again_over_itself() {
    let folder = scratch("installed");
    let destination = format!("DESTDIR={}", folder.display());
    let install = || {
        let output =
            make_with(&["install", "PREFIX=/opt/aclshim", &destination], Path::new(&std::env::var_os("PATH").unwrap()));
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    };
    shim();
    install();
    let prefix = folder.join("opt/aclshim");
    // Elsewhere, and by what was installed alone.
    let program = support::host("hosts/guest_calls.c");
    let mut command = Command::new(prefix.join("bin/aclshim"));
    command.args(["run", "--sim", "--require-calls", "--out", "seen", "--"]).arg(&program).arg("5");
    let run = command.current_dir(&folder).env("ACLSHIM_RING_DIR", &folder).output().unwrap();
    assert!(run.status.success() && text(&run.stderr).starts_with("aclshim: 5 calls, "), "{}", text(&run.stderr));
    for part in [
        "include/aclshim.h",
        "share/aclshim/python/aclshim.py",
        "share/man/man1/aclshim-run.1",
        "share/bash-completion/completions/aclshim",
        "lib/aclshim/sim/libacl_rt.so",
        "lib/aclshim/sim/include/acl/acl.h",
    ] {
        assert!(fs::metadata(prefix.join(part)).is_ok_and(|about| about.len() > 0), "{part}");
    }
    for package in ["aclshim", "aclshim-sim"] {
        let said = fs::read_to_string(prefix.join(format!("lib/pkgconfig/{package}.pc"))).unwrap();
        let names_place = said.lines().any(|line| line.starts_with("libdir=/opt/aclshim/lib"));
        assert!(names_place && !said.contains('@') && !said.contains(folder.to_str().unwrap()), "{said}");
    }
    // A process that has the old one mapped keeps it as it is.
    let library = prefix.join("lib/libaclshim.so");
    let old = fs::File::open(&library).unwrap();
    install();
    let [old, new] = [old.metadata().unwrap(), fs::metadata(&library).unwrap()];
    assert!(old.ino() != new.ino() && old.nlink() == 0 && old.len() == new.len(), "overwritten in place");
    let left = fs::read_dir(prefix.join("lib")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains(".new.")));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn stat_of_a_directory_that_nobody_named_says_what_to_check() {
    let rings = scratch("rings");
    let output = aclshim().env("ACLSHIM_RING_DIR", &rings).arg("stat").arg(rings.join("nothing")).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("nothing") && said.contains("LD_PRELOAD") && said.lines().count() == 1, "{said}");

    let output = aclshim().env("ACLSHIM_RING_DIR", &rings).args(["stat", "--json"]).arg(&rings).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &answer["processes"], &answer["calls"]), (Some(0), &0.into(), &0.into()));
    assert!(text(&output.stderr).contains("LD_PRELOAD"));
}

#[test]
fn stat_of_a_file_that_is_not_ours_names_it_and_says_why() {
    let file = scratch("junk").join("junk.ring");
    fs::write(&file, "junk").unwrap();
    let output = aclshim().arg("stat").arg(&file).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("junk.ring: not an aclshim file"), "{said}");
}

#[test]
fn dropin_refuses_what_is_not_the_vendors_library() {
    let folder = scratch("dropin");
    for (real, why) in [(shim(), "does not define aclInit"), (folder.join("none.so"), "none.so")] {
        let output = aclshim().arg("dropin").arg(folder.join("out")).arg("--real").arg(&real).output().unwrap();
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{said}");
    }
    let output = aclshim().arg("dropin").arg(sim()).arg("--real").arg(sim().join("libascendcl.so")).output().unwrap();
    assert!(text(&output.stderr).contains("choose another"), "{}", text(&output.stderr));
}

#[test]
fn dropin_finds_the_real_library_by_itself() {
    let folder = scratch("dropin");
    let run = |variable: &str, value: &Path| {
        aclshim()
            .arg("dropin")
            .arg(folder.join(variable))
            .env_remove("ASCEND_HOME_PATH")
            .env_remove("LD_LIBRARY_PATH")
            .env(variable, value)
            .output()
            .unwrap()
    };
    let home = folder.join("home");
    fs::create_dir(&home).unwrap();
    symlink(sim(), home.join("lib64")).unwrap();
    for (variable, value) in [("LD_LIBRARY_PATH", sim()), ("ASCEND_HOME_PATH", home)] {
        let output = run(variable, &value);
        assert!(output.status.success(), "{}", text(&output.stderr));
        for name in ["libascendcl.so", "libacl_rt.so", "libaclshim.so"] {
            assert!(folder.join(variable).join(name).exists(), "{variable}: {name}");
        }
    }
    let none = run("NOTHING", Path::new(""));
    assert!(text(&none.stderr).contains("--real PATH"), "{}", text(&none.stderr));
}
