//! Traces that are cut off or changed anywhere: everything readable is read, nothing falls over, and `aclshim verify` says
//! where the damage is.

#[path = "support/keeping.rs"]
mod keeping;
mod support;

use aclshim_collect::interpreter::visitor::NoVisitor;
use aclshim_collect::trace_set::TraceSet;
use aclshim_trace::record::slot::{Head, Layout, Slot};
use aclshim_trace::ring::layout::{CONTROL, UNIT};
use aclshim_trace::segment::reader::SegmentReader;
use keeping::{answer, command, kept, kept_with, only};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use support::{limited, scratch};

/// A small whole trace, and where its opening and its blocks end.
fn sample() -> (Vec<u8>, Vec<usize>) {
    let output = kept(&["2", "12"]).ok();
    let bytes = fs::read(only(&output.scratch.join("out"), "acltrace")).unwrap();
    let mut reader = SegmentReader::open(&bytes[..]).unwrap();
    let mut ends = vec![reader.good() as usize];
    while reader.next_block().unwrap().is_some() {
        ends.push(reader.good() as usize);
    }
    assert!(ends.len() > 4 && bytes.len() < 60_000, "{ends:?}");
    (bytes, ends)
}

/// How many slots there are in the trace at `path`, and whether anything is said against it.
fn slots_read(path: &Path) -> (u64, bool) {
    let mut set = TraceSet::default();
    let read = set.read(&[path], &mut NoVisitor);
    set.finish(&mut NoVisitor);
    let slots = set.processes().map(|process| process.slots[0]).sum();
    (slots, read.is_err() || !set.troubles.is_empty())
}

/// The number of files that one process verifies.
const AT_ONCE: usize = 400;

/// A trace in a folder of its own: the others are no segments of the same process.
fn place(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name).join("a.acltrace");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

/// Verifies files, each by itself, and hands on what is said of each, by its place in the order.
fn judged(paths: &[PathBuf], mut check: impl FnMut(usize, i32, &Value)) {
    static RINGS: OnceLock<PathBuf> = OnceLock::new();
    let rings = RINGS.get_or_init(|| scratch("no-rings"));
    let (status, out, err) = answer(command(rings, &["verify", "--json", "--apart"]).args(paths));
    assert_eq!(err, "");
    let answer: Value = serde_json::from_str(&out).unwrap();
    let files = answer["files"].as_array().unwrap();
    assert_eq!(files.len(), paths.len());
    files.iter().enumerate().for_each(|(number, file)| check(number, status, file));
}

/// Writes and verifies many damaged files.
fn verified(folder: &Path, damaged: &[(String, Vec<u8>)], mut check: impl FnMut(&str, i32, &Value)) {
    for some in damaged.chunks(AT_ONCE) {
        let paths: Vec<PathBuf> = some.iter().map(|(name, bytes)| place(folder, name, bytes)).collect();
        judged(&paths, |number, status, file| check(&some[number].0, status, file));
        paths.iter().for_each(|path| fs::remove_dir_all(path.parent().unwrap()).unwrap());
    }
}

#[test]
fn wherever_a_trace_is_cut_off_the_rest_is_read_and_verify_fails_and_says_where() {
    let (whole, ends) = sample();
    let folder = scratch("cut");
    let cut_at = |path: &Path, cut: usize| {
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(cut as u64).unwrap();
    };
    // From the end on, so that each file is only ever made shorter.
    let cuts: Vec<usize> = (0..whole.len()).rev().collect();
    let path = place(&folder, "read", &whole);
    let (mut before, _) = slots_read(&path);
    for &cut in &cuts {
        cut_at(&path, cut);
        let (slots, is_said) = slots_read(&path);
        assert!(slots <= before, "cut at {cut}: the shorter the file, the less is read");
        assert_eq!(is_said, !ends.contains(&cut), "cut at {cut}");
        before = slots;
    }
    let paths: Vec<_> = (0..AT_ONCE).map(|number| place(&folder, &number.to_string(), &whole)).collect();
    for some in cuts.chunks(AT_ONCE) {
        some.iter().zip(&paths).for_each(|(&cut, path)| cut_at(path, cut));
        judged(&paths[..some.len()], |number, status, file| {
            let cut = some[number];
            assert_ne!(status, 0);
            assert_eq!(file["state"], "damaged", "cut at {cut}: {file}");
            let problems = file["problems"].as_array().unwrap();
            // Between two blocks nothing is wrong with what is there, but the end is missing.
            if ends.contains(&cut) {
                assert!(problems.iter().any(|one| one["what"].as_str().unwrap().contains("end is missing")), "{file}");
            } else {
                let begin = ends.iter().rev().find(|end| **end <= cut).map_or(0, |end| *end);
                assert!(problems.iter().any(|one| one["offset"] == begin), "cut at {cut}, {begin}: {file}");
            }
        });
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn whatever_bit_is_changed_the_rest_is_read_and_verify_fails_and_says_where() {
    let (whole, ends) = sample();
    let folder = scratch("flipped");
    let path = folder.join("flipped.acltrace");
    fs::write(&path, &whole).unwrap();
    let (all, is_said) = slots_read(&path);
    assert!(all > 20 && !is_said);
    // Every byte of every head, and of the rest each in its turn.
    let is_head = |at: usize| at < 64 || ends.iter().any(|end| (*end..end + 64).contains(&at));
    let mut flipped = Vec::new();
    for at in (0..whole.len()).filter(|at| is_head(*at) || at.is_multiple_of(37)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        let (slots, is_said) = slots_read(&path);
        assert!(is_said, "byte {at}");
        if at >= ends[0] {
            let end = ends.iter().position(|end| *end > at).unwrap();
            let lost = (ends[end] - ends[end - 1] - 64) as u64 / 64;
            assert!(slots + lost >= all, "byte {at}: {slots} slots of {all}, and one block has {lost}");
        }
        flipped.push((at.to_string(), bytes));
    }
    verified(&folder, &flipped, |name, status, file| {
        let at: usize = name.parse().unwrap();
        assert_ne!(status, 0);
        assert_ne!(file["state"], "whole", "byte {at}: {file}");
        let begin = ends.iter().rev().find(|end| **end <= at).map_or(0, |end| *end);
        // Of a file that does not begin as a trace does nothing else can be said.
        let is_named = file["problems"].as_array().unwrap().iter().any(|one| one["offset"] == begin);
        assert!(is_named || at < 8, "byte {at}, {begin}: {file}");
    });
}

#[test]
fn a_block_that_was_taken_out_or_put_in_twice_is_noticed() {
    let (whole, ends) = sample();
    let folder = scratch("taken");
    let mut spoilt = Vec::new();
    // But the last: that its end is missing is another test.
    for block in ends.windows(2).take(ends.len() - 2) {
        let [begin, end] = [block[0], block[1]];
        spoilt.push((format!("out-{begin}"), [&whole[..begin], &whole[end..]].concat()));
        spoilt.push((format!("twice-{begin}"), [&whole[..end], &whole[begin..]].concat()));
    }
    verified(&folder, &spoilt, |name, status, file| {
        assert_ne!(status, 0);
        assert_eq!(file["state"], "damaged", "{name}: {file}");
        let what = |one: &Value| one["what"].as_str().unwrap().contains("bytes of blocks before");
        assert!(file["problems"].as_array().unwrap().iter().any(what), "{name}: {file}");
    });
}

#[test]
fn whoever_reads_a_damaged_trace_is_told_the_file_the_place_and_what_helps() {
    let (whole, ends) = sample();
    let folder = scratch("told");
    let (path, copy) = (folder.join("damaged.acltrace"), folder.join("copy"));
    let rings = scratch("no-rings");
    for (spoilt, is_read) in [(ends[0] + 70, true), (70, false)] {
        let mut bytes = whole.clone();
        bytes[spoilt] ^= 1;
        fs::write(&path, bytes).unwrap();
        let (status, _, said) = answer(command(&rings, &["stat"]).arg(&path));
        assert_eq!(status == 0, is_read, "{said}");
        let place = format!("{}: the block at byte {} was damaged", path.display(), ends[0]);
        assert_eq!(said.contains(&place), is_read, "{said}");
        for what in ["verify", "recover --out DIR"] {
            assert!(said.contains(&format!("`aclshim {what} {}`", path.display())), "{said}");
        }
        // And so it is.
        let (status, _, said) = answer(command(&rings, &["recover", "--out"]).args([&copy, &path]));
        assert_eq!(status, 0, "{said}");
        let (status, _, said) = answer(command(&rings, &["stat"]).arg(copy.join("damaged.acltrace")));
        assert_eq!((status, said.as_str()), (0, ""));
        fs::remove_dir_all(&copy).unwrap();
    }
}

#[test]
fn a_ring_whose_newest_slot_is_another_from_each_place_is_read_to_an_end() {
    let output = kept_with(&["1", "4", "kill"], |run| run.env("ACLSHIM_DRAIN", "off"));
    let ring = only(&output.scratch, "ring");
    let mut bytes = fs::read(&ring).unwrap();
    let slots = &mut bytes[UNIT as usize + CONTROL..];
    slots.fill(0);
    // A number is known by its lowest 48 bits: from behind each of these the other is ahead, round and round.
    for (slot, number) in slots.chunks_mut(size_of::<Slot>()).zip([0, 1 << 47]) {
        slot[..8].copy_from_slice(&Head::done(number, Layout::Linear, 0).0.to_le_bytes());
    }
    let damaged = scratch("round").join("aclshim-1-1.ring");
    fs::write(&damaged, bytes).unwrap();
    for what in ["stat", "log", "findings", "verify"] {
        let (status, out, err) = answer(limited(command(damaged.parent().unwrap(), &[what]).arg(&damaged), 64 << 20));
        assert!(status < 2, "{what}: {status} {out}{err}");
    }
}
