//! `aclshim clean` and `aclshim merge`: what can go, and several directories in one.

#[path = "support/keeping.rs"]
mod keeping;
mod support;
#[path = "support/traces.rs"]
mod traces;

use keeping::{answer, command, files, kept, only, verify};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};
use support::{Stat, scratch};
use traces::{CALLS, calls, killed, said, segment, trace_of_us};

/// Makes a file look so old.
fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

// ---- clean ----

#[test]
fn only_what_nobody_needs_is_removed() {
    let output = killed();
    let (rings, out) = (&output.scratch, output.scratch.join("out"));
    let ring = only(rings, "ring");
    let (status, said, _) = answer(command(rings, &["clean"]).arg(rings));
    assert!(status == 0 && ring.exists() && said.contains(&format!("{CALLS} calls")), "{said}");
    // What a kill leaves, what looks like it, and what is none of ours.
    fs::create_dir_all(&out).unwrap();
    let whole = fs::read(only(&kept(&["1", "5"]).ok().scratch.join("out"), "acltrace")).unwrap();
    let victim = scratch("victim").join("victim");
    fs::write(&victim, "").unwrap();
    let keep: [(&str, &[u8]); 4] = [
        ("whole.acltrace", &whole),
        ("foreign.acltrace", b"hello world"),
        ("notes.jsonl", b"{\"mine\":1}\n"),
        ("foreign.ring", b"hello"),
    ];
    let go: [(&str, &[u8]); 3] =
        [("empty.acltrace", b""), ("headless.acltrace", &whole[..5000]), ("torn.acltrace", &whole[..13_400])];
    for (name, bytes) in keep.into_iter().chain(go) {
        fs::write(out.join(name), bytes).unwrap();
        age(&out.join(name), 100);
    }
    fs::write(out.join("young.acltrace"), b"").unwrap();
    symlink(&victim, out.join("link.acltrace")).unwrap();
    let there = |name: &str| out.join(name).exists();
    let (_, said, _) = answer(command(rings, &["clean", "--dry-run", "--force"]).args([rings, &out]));
    assert!(
        ring.exists() && go.iter().all(|(name, _)| there(name)) && said.contains("4 files would be removed"),
        "{said}"
    );
    let (status, said, err) = answer(command(rings, &["clean", "--force"]).args([rings, &out]));
    assert_eq!((status, err.as_str()), (0, ""), "{said}");
    assert!(!ring.exists() && said.contains("4 files removed"), "{said}");
    for (name, _) in go {
        assert!(!there(name), "{name}: {said}");
    }
    for name in keep.map(|(name, _)| name).into_iter().chain(["young.acltrace", "link.acltrace"]) {
        assert!(there(name), "{name}: {said}");
    }
}

#[test]
fn with_an_age_old_traces_and_logs_of_ours_go() {
    let output = kept(&["1", "5"]).ok();
    let out = output.scratch.join("out");
    let (trace, log) = (only(&out, "acltrace"), only(&out, "jsonl"));
    let foreign = [out.join("notes.jsonl"), out.join("foreign.acltrace")];
    foreign.iter().for_each(|path| fs::write(path, "{\"mine\":1}\n").unwrap());
    [&trace, &log, &foreign[0], &foreign[1]].iter().for_each(|path| age(path, 3 * 86_400));
    let clean = |age: &str| answer(command(&output.scratch, &["clean", "--older-than", age]).arg(&out)).1;
    assert!(clean("4d").contains("0 files removed") && trace.exists() && log.exists());
    // A file that is written to is locked by its writer.
    let held = fs::File::open(&trace).unwrap();
    // SAFETY: a descriptor of ours.
    let lock = |how| assert_eq!(unsafe { libc::flock(std::os::fd::AsRawFd::as_raw_fd(&held), how) }, 0);
    lock(libc::LOCK_EX);
    assert!(clean("2d").contains("1 files removed") && trace.exists() && !log.exists());
    // Not by closing it: a child that another test starts just now may still have it.
    lock(libc::LOCK_UN);
    assert!(clean("2d").contains("1 files removed") && !trace.exists());
    assert!(foreign.iter().all(|path| path.exists()));
    let (status, _, err) = answer(command(&output.scratch, &["clean", "--older-than", "soon"]).arg(&out));
    assert!(status != 0 && err.contains("7d"), "{err}");
}

#[test]
fn old_segments_of_a_process_that_runs_stay() {
    let out = scratch("running");
    let mut running = trace_of_us(&out, 0);
    let old = segment(&mut running, 0);
    segment(&mut running, 1);
    age(&old, 3 * 86_400);
    let clean = || answer(command(&scratch("none"), &["clean", "--older-than", "2d"]).arg(&out)).1;
    assert!(clean().contains("0 files removed") && old.exists());
    // Of one that had our number before us.
    fs::remove_file(&old).unwrap();
    let old = segment(&mut trace_of_us(&out, 1), 0);
    age(&old, 3 * 86_400);
    assert!(clean().contains("1 files removed") && !old.exists());
}

// ---- merge ----

#[test]
fn nothing_is_written_through_a_link_that_somebody_has_put_there() {
    let output = kept(&["1", "5"]).ok();
    let trace = only(&output.scratch.join("out"), "acltrace");
    let name = trace.file_name().unwrap().to_str().unwrap().to_owned();
    for command_line in [&["merge", "-o"][..], &["recover", "--out"]] {
        let (to, victim) = (scratch("to"), scratch("victim").join("victim"));
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, to.join(format!("{name}.unfinished"))).unwrap();
        let (status, _, err) = answer(command(&scratch("none"), command_line).arg(&to).arg(&trace));
        assert_eq!((status, err.as_str()), (0, ""));
        assert_eq!(fs::read(&victim).unwrap(), b"mine", "{command_line:?}");
        assert!(to.join(&name).symlink_metadata().unwrap().is_file());
    }
}

#[test]
fn several_directories_in_one_add_up_and_doubles_count_once() {
    let (one, two, killed) = (kept(&["2", "12"]).ok(), kept(&["3", "7"]).ok(), killed());
    let dirs = [&one, &two, &killed].map(|output| output.scratch.join("out"));
    // The same process once more, and another one under the same name.
    let copies = scratch("copies");
    fs::copy(only(&dirs[0], "acltrace"), copies.join("copy.acltrace")).unwrap();
    fs::copy(only(&dirs[1], "acltrace"), copies.join(only(&dirs[0], "acltrace").file_name().unwrap())).unwrap();
    let all = scratch("merged").join("all");
    let mut merge = command(&killed.scratch, &["merge", "-o"]);
    let (status, said, err) = answer(merge.arg(&all).args(&dirs).arg(&copies));
    assert_eq!((status, err.as_str()), (0, ""), "{said}");
    assert_eq!(files(&all, "acltrace").len(), 3, "{said}");
    let none = scratch("none");
    let stat = Stat::of(&all, &none);
    assert_eq!(stat.total("processes"), 3);
    let parts = [calls(&dirs[0], &one.scratch), calls(&dirs[1], &two.scratch), calls(&dirs[2], &killed.scratch)];
    assert_eq!(stat.total("calls"), parts.iter().sum::<u64>());
    assert_eq!(parts[2], CALLS);
    assert!(only(&killed.scratch, "ring").exists(), "the originals stay");
    let (status, answer_) = verify(&none, &[&all]);
    assert_eq!((status, said_problems(&answer_)), (0, String::new()));
    // Once more changes nothing.
    let (status, said, _) = answer(command(&none, &["merge", "-o"]).arg(&all).args(&dirs[..2]));
    assert!(status == 0 && said.contains("0 traces and 0 logs copied"), "{said}");
    assert_eq!(Stat::of(&all, &none).total("calls"), stat.total("calls"));
}

fn said_problems(answer: &Value) -> String {
    said(answer, "problems")
}

#[test]
fn of_two_copies_the_better_one_is_taken_and_a_damaged_one_is_said() {
    let output = kept(&["2", "12"]).ok();
    let out = output.scratch.join("out");
    let bytes = fs::read(only(&out, "acltrace")).unwrap();
    let cut = scratch("cut");
    fs::write(cut.join("a.acltrace"), &bytes[..bytes.len() - 100]).unwrap();
    let all = scratch("better");
    let (status, _, err) = answer(command(&output.scratch, &["merge", "-o"]).arg(&all).arg(&cut).arg(&out));
    assert!(status == 1 && err.contains("cut off"), "{err}");
    assert_eq!(fs::read(only(&all, "acltrace")).unwrap(), bytes);
}
