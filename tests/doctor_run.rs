//! `aclshim doctor --run`: what a run of the program has shown.

#[path = "support/examination.rs"]
mod examination;
mod support;
#[allow(dead_code)]
#[path = "support/ways.rs"]
mod ways;

use examination::{about, build, doctor, linked, script, told};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use support::{Run, has, scratch};

// ---- With --run ----

/// As the linker's own tool has it.
fn build_id(library: &Path) -> String {
    let notes = Command::new("readelf").env("LC_ALL", "C").arg("-n").arg(library).output().unwrap().stdout;
    let notes = String::from_utf8_lossy(&notes).into_owned();
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    id.unwrap_or_else(|| panic!("{}: {notes}", library.display())).into()
}

fn run_of(program: &Path, arguments: &[&str]) -> Run {
    let run = doctor().arg("--run").arg("--").arg(program);
    arguments.iter().fold(run, Run::arg)
}

#[test]
fn a_run_tells_what_was_seen_and_whom_the_calls_were_passed_on_to() {
    let ways = [linked(), build(&["-DDOCTOR_LOOKUP"])];
    let in_a_script = script("#!/bin/sh", &format!("{0}\n{0}", linked().display()));
    for (program, calls) in [(&ways[0], 1), (&ways[1], 1), (&in_a_script, 2)] {
        let told = told(run_of(program, &[]));
        told.is_well().sees("yes");
        assert!(told.mark.exists(), "it was run");
        let run = &told.json["run"];
        assert_eq!(run["calls"], serde_json::json!({ "aclrtMemcpy": calls }), "{:#}", told.json);
        assert_eq!(run["status"], 0);
        let process = &run["processes"][0];
        assert_eq!(process["product"], "Ascend910B1");
        let library = process["library"].as_str().unwrap();
        assert!(library.ends_with("/sim/libascendcl.so"), "{process}");
        if has("readelf", "a_run_tells_what_was_seen_and_whom_the_calls_were_passed_on_to") {
            assert_eq!(process["build_id"], build_id(Path::new(library)), "{process}");
        }
        assert!(process["cann"].as_str().unwrap().starts_with("9."), "{process}");
        told.says("calls", "ok", &["seen"]);
    }
}

#[test]
fn a_run_shows_what_could_not_be_known_before() {
    let way = ways::plugin("now,deepbind", "bind_linked.c", &[ways::VENDOR], &[]);
    let arguments: Vec<&str> = way.arguments.iter().map(String::as_str).collect();
    told(about(&way.program)).is_well().sees("unknown").says("opens", "ok", &["RTLD_DEEPBIND or not"]);
    let told_of_off = told(about(&way.program).env("ACLSHIM_DEEPBIND", "off"));
    told_of_off.says("opens", "warning", &["binds past the shim", "unset ACLSHIM_DEEPBIND"]);
    let told = told(run_of(&way.program, &arguments));
    told.is_well().sees("yes").says("calls", "ok", &["aclrtMemcpyBatch"]);
}

#[test]
fn a_run_in_which_nothing_happens_is_not_taken_for_a_good_one() {
    let idle = told(run_of(Path::new("true"), &[]));
    idle.is_well().sees("unknown").says("calls", "warning", &["the shim was loaded", "nothing was copied"]);
    let unreached = told(run_of(&build(&["-static", "-DDOCTOR_OWN"]), &[]));
    unreached.is_not_well().sees("no").says("calls", "problem", &["was not loaded"]);
    let failing = told(run_of(Path::new("false"), &[]));
    failing.is_well().says("run", "warning", &["exit status: 1"]);
}

#[test]
fn a_run_leaves_nothing_behind_and_what_the_program_prints_stays_apart() {
    let talking = script("#!/bin/sh", "echo spoken");
    let temporary = scratch("tmp");
    let rings = scratch("rings");
    let run = run_of(&talking, &[]).env("TMPDIR", &temporary).env("ACLSHIM_RING_DIR", &rings);
    let output = run.run().ok();
    assert!(output.stderr.contains("spoken") && !output.stdout.contains("spoken\n"), "{output:?}");
    for folder in [temporary, rings] {
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{}", folder.display());
    }
}

#[test]
fn a_run_that_is_interrupted_leaves_nothing_behind_either() {
    let (temporary, rings) = (scratch("tmp"), scratch("rings"));
    let waiting = script("#!/bin/sh", "echo here; exec sleep 60");
    let run = run_of(&waiting, &[]).env("TMPDIR", &temporary).env("ACLSHIM_RING_DIR", &rings);
    let (mut child, _) = run.spawn();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "here"));
    assert_eq!(fs::read_dir(&rings).unwrap().count(), 1);
    // SAFETY: a child of ours.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    for folder in [temporary, rings] {
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{}", folder.display());
    }
}
