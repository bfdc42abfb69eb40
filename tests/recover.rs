//! `aclshim recover`: what ended processes have left, and the good part of damaged traces.

#[path = "support/keeping.rs"]
mod keeping;
mod support;
#[path = "support/traces.rs"]
mod traces;

use keeping::{answer, command, files, kept, kept_with, only, verify};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use support::{Run, Stat, scratch};
use traces::{CALLS, calls, killed};

// ---- recover ----

#[test]
fn what_a_killed_process_has_left_is_recovered_once() {
    let output = killed();
    let (out, other) = (output.scratch.join("out"), scratch("other"));
    assert_eq!(files(&out, "acltrace").len(), 0);
    let (status, said, err) = answer(command(&output.scratch, &["recover", "--out"]).arg(&other).arg(&output.scratch));
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(said.contains(&format!("{CALLS} calls written to {}", other.display())), "{said}");
    assert!(said.contains("keep_calls"), "{said}");
    assert_eq!((files(&output.scratch, "ring").len(), files(&out, "acltrace").len()), (0, 0));
    assert_eq!(calls(&other, &output.scratch), CALLS);
    assert_eq!(verify(&output.scratch, &[&other]).0, 0);
    let (status, said, _) = answer(command(&output.scratch, &["recover"]).arg(&output.scratch));
    assert!(status == 0 && said.contains("Nothing is left"), "{said}");
}

#[test]
fn what_runs_is_left_alone() {
    let rings = scratch("running");
    let (mut child, _) = Run::new(keeping::program())
        .arg("1")
        .arg("5")
        .arg("wait")
        .sim()
        .shim()
        .env("ACLSHIM_DRAIN", "off")
        .env("ACLSHIM_RING_DIR", &rings)
        .spawn();
    // It has called when it says so.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "waiting"));
    let ring = only(&rings, "ring");
    for arguments in [&["recover"][..], &["clean", "--force"]] {
        let (status, said, err) = answer(command(&rings, arguments).arg(&rings));
        assert_eq!((status, err.as_str()), (0, ""), "{said}");
        assert!(ring.exists(), "{arguments:?}: {said}");
    }
    let (_, said, _) = answer(command(&rings, &["recover"]).arg(&ring));
    assert!(said.contains("runs: left alone"), "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
    let (_, said, _) = answer(command(&rings, &["recover", "--out"]).arg(scratch("out")).arg(&ring));
    assert!(said.contains("10 calls written"), "{said}");
}

#[test]
fn the_good_part_of_a_damaged_trace_becomes_a_whole_one() {
    let output = kept_with(&["2", "5000"], |run| run.env("ACLSHIM_RECORD", "lossless")).ok();
    let trace = only(&output.scratch.join("out"), "acltrace");
    let all = calls(&trace, &output.scratch);
    let mut bytes = fs::read(&trace).unwrap();
    // The first record of a block before the middle.
    let middle = bytes.len() / 2;
    let is_block = |at: &usize| bytes[*at..].starts_with(b"BLK1\x01\0\0\0");
    let block = (0..middle).rev().find(is_block).unwrap();
    bytes[block + 64] ^= 1;
    let folder = scratch("broken");
    let broken = folder.join("broken.acltrace");
    fs::write(&broken, &bytes).unwrap();
    let other = scratch("whole");
    assert_eq!(verify(&folder, &[&broken]).0, 1);
    let (status, said, err) = answer(command(&folder, &["recover", "--out"]).arg(&other).arg(&broken));
    assert_eq!((status, err.as_str()), (0, ""), "{said}");
    let whole = other.join("broken.acltrace");
    let (status, answer_) = verify(&folder, &[&whole]);
    assert_eq!(status, 0, "{answer_}");
    // Nothing is lost in silence.
    let stat = Stat::of(&whole, &folder);
    assert!(stat.total("calls") < all && stat.total("overwritten") > 0);
    assert_eq!(stat.total("calls"), calls_with_trouble(&broken, &folder));
    // The header is that of another segment, or taken as it is.
    bytes[100] ^= 1;
    fs::write(folder.join("headless.acltrace"), &bytes).unwrap();
    fs::write(folder.join("broken.1.acltrace"), &bytes).unwrap();
    let (_, said, _) =
        answer(command(&folder, &["recover", "--out"]).arg(&other).arg(folder.join("broken.1.acltrace")));
    assert!(said.contains("it was taken from"), "{said}");
    let (status, said, _) =
        answer(command(&folder, &["recover", "--out"]).arg(&other).arg(folder.join("headless.acltrace")));
    assert!(status == 0 && said.contains("the header is damaged"), "{said}");
    assert_eq!(calls(&other.join("headless.acltrace"), &folder), stat.total("calls"));
    // Nothing is overwritten.
    let (status, _, err) = answer(command(&folder, &["recover", "--out"]).arg(&other).arg(&broken));
    assert!(status == 1 && err.contains("exists already"), "{err}");
    fs::remove_dir_all(output.scratch).unwrap();
}

#[test]
fn wherever_a_bit_is_wrong_the_copy_is_whole_and_tells_what_is_lost() {
    let output = kept(&["2", "12"]).ok();
    let trace = only(&output.scratch.join("out"), "acltrace");
    let slots = |path: &Path| {
        let stat = Stat::of(path, &output.scratch);
        (stat.0["slots"]["trace"].as_u64().unwrap(), stat.total("overwritten"))
    };
    let (all, _) = slots(&trace);
    let good = fs::read(&trace).unwrap();
    let blocks: Vec<usize> = (0..good.len()).filter(|at| good[*at..].starts_with(b"BLK1")).collect();
    let is_head = |at: usize| blocks.iter().any(|block| (*block..block + 64).contains(&at));
    // What stands before says what kind of a file it is.
    let step = good.len() / 120;
    for at in (16..good.len()).step_by(step).chain(blocks.iter().flat_map(|at| [at + 9, at + 64])) {
        let mut bytes = good.clone();
        let Some(byte) = bytes.get_mut(at) else { continue };
        *byte ^= 1 << (at % 8);
        let folder = scratch("flipped");
        fs::write(folder.join("flipped.acltrace"), &bytes).unwrap();
        let whole = folder.join("whole");
        let mut recover = command(&output.scratch, &["recover", "--out"]);
        let (status, said, err) = answer(recover.arg(&whole).arg(folder.join("flipped.acltrace")));
        assert_eq!((status, err.as_str()), (0, ""), "byte {at}: {said}");
        let (status, answer) = verify(&output.scratch, &[&whole]);
        assert_eq!(status, 0, "byte {at}: {answer}");
        // What a block with a wrong head held may not be known.
        let (left, lost) = slots(&whole.join("flipped.acltrace"));
        assert!(left + lost == all || is_head(at) && left + lost < all, "byte {at}: {left} and {lost} of {all}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn what_is_not_ours_is_kept_and_named() {
    let folder = scratch("named");
    let file = folder.join("notes.txt");
    fs::write(&file, "mine").unwrap();
    let (status, _, err) = answer(command(&folder, &["clean", "--force"]).arg(&file));
    assert!(status == 1 && err.contains("notes.txt: not a file of aclshim's") && file.exists(), "{err}");
}

/// The verdict on a file that has problems.
fn calls_with_trouble(path: &Path, rings: &Path) -> u64 {
    let (status, out, err) = answer(command(rings, &["stat", "--json"]).arg(path));
    assert!(status == 0 && err.contains("passed over"), "{err}");
    serde_json::from_str::<Value>(&out).unwrap()["calls"].as_u64().unwrap()
}
