//! `aclshim verify`: whether what was kept is whole, and what is missing.

#[path = "support/keeping.rs"]
mod keeping;
mod support;
#[path = "support/traces.rs"]
mod traces;

use aclshim_trace::segment::format::kind;
use keeping::{answer, command, files, kept, kept_with, only, verify};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use support::{Run, scratch};
use traces::{CALLS, head, killed, said, segment, trace_of_us};

// ---- verify ----

#[test]
fn what_a_program_that_ended_in_order_has_left_is_whole() {
    let output = kept(&["2", "12"]).ok();
    let out = output.scratch.join("out");
    let (status, answer) = verify(&output.scratch, &[&out]);
    assert_eq!((status, said(&answer, "problems"), said(&answer, "remarks")), (0, String::new(), String::new()));
    let process = &answer["processes"][0];
    assert_eq!((&process["calls"], &process["missing"], &process["ended"]), (&CALLS.into(), &0.into(), &true.into()));
    // The process that removes its ring has nothing to add.
    let (status, said, _) = self::answer(command(&output.scratch, &["recover"]).arg(&output.scratch));
    assert!(status == 0 && said.contains("all had been written"), "{said}");
    let left =
        ["ring", "acltrace", "jsonl"].map(|end| files(if end == "ring" { &output.scratch } else { &out }, end).len());
    assert_eq!(left, [0, 1, 1]);
    // The trace alone too, wherever it is.
    let elsewhere = scratch("elsewhere").join("a.acltrace");
    fs::copy(only(&out, "acltrace"), &elsewhere).unwrap();
    assert_eq!(verify(&scratch("none"), &[&elsewhere]).0, 0);
}

#[test]
fn many_segments_follow_each_other_and_one_that_is_missing_is_named() {
    let output =
        kept_with(&["2", "50000"], |run| run.env("ACLSHIM_SEGMENT", "1M").env("ACLSHIM_RECORD", "lossless")).ok();
    let out = output.scratch.join("out");
    let traces = files(&out, "acltrace");
    assert!(traces.len() > 5, "{traces:?}");
    let (status, answer) = verify(&output.scratch, &[&out]);
    assert_eq!((status, said(&answer, "problems")), (0, String::new()));
    // Each alone, among the others: what follows it is there.
    let middle = traces.iter().find(|path| path.to_str().unwrap().ends_with(".2.acltrace")).unwrap();
    let (status, answer) = verify(&output.scratch, &[middle]);
    assert!(status == 0 && said(&answer, "remarks").contains(".3.acltrace"), "{answer}");
    // But not elsewhere.
    let elsewhere = scratch("elsewhere").join("a.acltrace");
    fs::copy(middle, &elsewhere).unwrap();
    let (status, answer) = verify(&scratch("none"), &[&elsewhere]);
    assert!(status == 1 && said(&answer, "problems").contains("segments 0 to 1 are missing before"), "{answer}");
    assert!(said(&answer, "problems").contains("its end is missing"), "{answer}");
    // The last good block of one cut off at its end: nothing is wrong with what is there.
    let whole = fs::read(middle).unwrap();
    let mut reader = aclshim_trace::segment::reader::SegmentReader::open(&whole[..]).unwrap();
    while reader.next_block().unwrap().is_some() {}
    fs::write(middle, &whole[..reader.began() as usize]).unwrap();
    let (status, answer) = verify(&output.scratch, &[&out]);
    assert!(status == 1 && said(&answer, "problems").contains("the next segment tells of"), "{answer}");
    fs::remove_file(middle).unwrap();
    let (status, answer) = verify(&output.scratch, &[&out]);
    assert!(status == 1 && said(&answer, "problems").contains("segment 2 is missing"), "{answer}");
    assert!(said(&answer, "problems").contains("are in no file"), "{answer}");
    fs::remove_dir_all(output.scratch).unwrap();
}

#[test]
fn what_went_for_the_budget_is_no_damage_though_only_the_last_segment_tells_of_it() {
    let out = scratch("budget");
    let mut trace = trace_of_us(&out, 1);
    let paths: Vec<PathBuf> = (0..3).map(|number| segment(&mut trace, number)).collect();
    fs::remove_file(&paths[0]).unwrap();
    segment(&mut trace, 3);
    trace.end(&head(kind::END, 4)).unwrap();
    let (status, answer) = verify(&scratch("none"), &[&out]);
    assert_eq!((status, said(&answer, "problems")), (0, String::new()), "{answer}");
    assert!(said(&answer, "remarks").contains("before number 1 were removed, with 1 calls"), "{answer}");
    // Its ring is drained by another one, and then all of the first one's go.
    let mut later = trace_of_us(&out, 1);
    segment(&mut later, 4);
    files(&out, "acltrace").iter().filter(|path| *path != later.path().unwrap()).for_each(|path| {
        fs::remove_file(path).unwrap();
    });
    segment(&mut later, 5);
    later.end(&head(kind::END, 6)).unwrap();
    let (status, answer) = verify(&scratch("none"), &[&out]);
    assert_eq!((status, said(&answer, "problems")), (0, String::new()), "{answer}");
    assert_eq!(answer["processes"][0]["evicted"], 4);
}

#[test]
fn what_went_for_the_budget_is_said_and_is_no_damage() {
    let budget = |run: Run| run.env("ACLSHIM_BUDGET", "4M").env("ACLSHIM_RECORD", "lossless");
    let output = kept_with(&["2", "60000"], budget).ok();
    let (status, answer) = verify(&output.scratch, &[&output.scratch.join("out")]);
    assert_eq!((status, said(&answer, "problems")), (0, String::new()), "{answer}");
    assert!(said(&answer, "remarks").contains("were removed"), "{answer}");
    assert!(answer["processes"][0]["evicted"].as_u64().unwrap() > 0);
    fs::remove_dir_all(output.scratch).unwrap();
}

#[test]
fn a_killed_process_is_whole_as_long_as_its_ring_is_there() {
    // Its drain has written something, and then it was killed.
    let output = kept_with(&["2", "3000", "kill"], |run| {
        run.env("ACLSHIM_RECORD", "lossless").env("ACLSHIM_RING_SIZE", "64K").env("ACLSHIM_RING_LIMIT", "64K")
    });
    let out = output.scratch.join("out");
    let (status, answer) = verify(&output.scratch, &[&out]);
    assert_eq!((status, said(&answer, "problems")), (0, String::new()), "{answer}");
    assert!(said(&answer, "remarks").contains("did not end in order"), "{answer}");
    // Without it, it cannot be known what is missing.
    let (status, answer) = verify(&scratch("none"), &[&out]);
    let problems = said(&answer, "problems");
    // By whether it was killed while its drain wrote.
    let is_said = ["its end is missing", "cut off at byte"].iter().any(|end| problems.contains(end));
    assert!(status == 1 && is_said, "{answer}");
    // What was drained, and is in no file.
    fs::remove_file(&files(&out, "acltrace")[0]).unwrap();
    fs::copy(only(&killed().scratch, "ring"), out.join("aclshim-1-1.ring")).unwrap();
    let (status, answer) = verify(&output.scratch, &[&out]);
    assert_eq!(status, 0, "a ring alone: nobody can tell what was drained to where {answer}");
}

#[test]
fn a_cut_trace_whose_records_another_has_written_is_no_damage() {
    let output = killed();
    let out = output.scratch.join("out");
    // As its drain would have left it: within its first block.
    let (status, _, err) = answer(&mut command(&output.scratch, &["recover"]));
    assert_eq!((status, err.as_str()), (0, ""));
    let good = only(&out, "acltrace");
    let bytes = fs::read(&good).unwrap();
    let torn = out.join("torn.acltrace");
    let mut reader = aclshim_trace::segment::reader::SegmentReader::open(&bytes[..]).unwrap();
    let mut preamble = reader.preamble;
    preamble.first_ns -= 1;
    let opening = reader.good() as usize;
    while reader.next_block().unwrap().is_some_and(|block| block.head.kind != 1) {}
    let cut = [&preamble.to_bytes(&reader.header)[..], &bytes[opening..reader.good() as usize - 9]].concat();
    fs::write(&torn, cut).unwrap();
    let (status, answer) = verify(&output.scratch, &[&out]);
    assert_eq!((status, said(&answer, "problems")), (0, String::new()), "{answer}");
    assert!(said(&answer, "remarks").contains("another went on"), "{answer}");
    // Alone it is damaged.
    let alone = scratch("alone").join("torn.acltrace");
    fs::copy(&torn, &alone).unwrap();
    assert_eq!(verify(&scratch("none"), &[&alone]).0, 1);
}

#[test]
fn a_clock_that_goes_backwards_and_a_bad_line_in_a_log_are_named() {
    use aclshim_trace::segment::format::{BlockHead, kind};
    let output = kept(&["1", "5"]).ok();
    let out = output.scratch.join("out");
    let trace = only(&out, "acltrace");
    let bytes = fs::read(&trace).unwrap();
    let mut reader = aclshim_trace::segment::reader::SegmentReader::open(&bytes[..]).unwrap();
    let mut spoilt = bytes[..reader.good() as usize].to_vec();
    let calibration = |ticks| BlockHead { kind: kind::CALIBRATION, ticks, realtime_ns: 1, ..BlockHead::default() };
    for ticks in [9_000_000_000_000_000_000, 5] {
        spoilt.extend(calibration(ticks).to_bytes(&[9; 8]));
        spoilt.extend([9; 8]);
    }
    let backwards = spoilt.len() - 72;
    while let Some(block) = reader.next_block().unwrap().filter(|block| block.head.kind != kind::END) {
        spoilt.extend(block.head.to_bytes(&block.payload));
        spoilt.extend(&block.payload);
    }
    fs::write(&trace, spoilt).unwrap();
    let log = only(&out, "jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let second = text.find('\n').unwrap() + 1;
    fs::write(&log, format!("{}nonsense\n{}{{\"half", &text[..second], &text[second..])).unwrap();
    let (status, answer) = verify(&output.scratch, &[&out]);
    assert_eq!(status, 1);
    let at = |kind: &str, what: &str| {
        let files = answer["files"].as_array().unwrap().iter().filter(|file| file["kind"] == kind);
        let notes = files
            .flat_map(|file| file["problems"].as_array().unwrap().iter().chain(file["remarks"].as_array().unwrap()));
        notes
            .filter(|note| note["what"].as_str().unwrap().contains(what))
            .map(|note| note["offset"].as_u64().unwrap())
            .next()
    };
    assert_eq!(at("trace", "backwards"), Some(backwards as u64), "{answer}");
    assert_eq!(at("log", "not a JSON object"), Some(second as u64), "{answer}");
    assert_eq!(at("log", "cut off"), Some(text.len() as u64 + 9), "{answer}");
}

#[test]
fn what_cannot_be_read_at_all_is_told_from_what_is_damaged() {
    let folder = scratch("unreadable");
    let output = kept(&["1", "5"]).ok();
    let mut newer = fs::read(only(&output.scratch.join("out"), "acltrace")).unwrap();
    newer[8] = 9;
    fs::write(folder.join("newer.acltrace"), newer).unwrap();
    fs::write(folder.join("foreign.acltrace"), "hello world, this is not a trace").unwrap();
    for (name, what) in
        [("newer.acltrace", "version 9"), ("foreign.acltrace", "not a file"), ("missing", "No such file"), ("", "")]
    {
        let (status, answer) = verify(&folder, &[folder.join(name)]);
        assert_eq!(status, 2, "{name}: {answer}");
        assert!(said(&answer, "problems").contains(what), "{name}: {answer}");
    }
    assert_eq!(verify(&folder, &[scratch("empty")]).0, 2);
    // Others read what they can beside it, and say what they could not.
    let mixed = scratch("mixed");
    fs::copy(only(&output.scratch.join("out"), "acltrace"), mixed.join("good.acltrace")).unwrap();
    fs::copy(folder.join("newer.acltrace"), mixed.join("newer.acltrace")).unwrap();
    let calls = output.stat().total("calls");
    let (status, counted, err) = answer(command(&folder, &["stat", "--json"]).arg(&mixed));
    let counted: Value = serde_json::from_str(&counted).unwrap();
    assert_eq!((status, counted["calls"].as_u64()), (0, Some(calls)), "{err}");
    assert!(err.contains("newer.acltrace: format version 9") && err.lines().count() == 1, "{err}");
    let (status, lines, err) = answer(command(&folder, &["log", "--json"]).arg(&mixed));
    assert!(status == 0 && lines.lines().count() as u64 >= calls && err.contains("format version 9"), "{err}");
    // A ring that is cut off.
    let killed = killed();
    let ring = fs::read(only(&killed.scratch, "ring")).unwrap();
    fs::write(folder.join("cut.ring"), &ring[..ring.len() - 5000]).unwrap();
    let (status, answer) = verify(&folder, &[folder.join("cut.ring")]);
    assert!(status == 1 && said(&answer, "problems").contains("is missing"), "{answer}");
    // And one with a slot that is not where it belongs.
    let mut moved = ring.clone();
    let at = 65_536 + 4096;
    moved.copy_within(at..at + 64, at + 640);
    fs::write(folder.join("moved.ring"), moved).unwrap();
    let (status, answer) = verify(&folder, &[folder.join("moved.ring")]);
    assert!(status == 1 && said(&answer, "problems").contains("belongs elsewhere"), "{answer}");
    let text = answer_text(&folder, &folder.join("moved.ring"));
    assert!(text.contains("damaged") && text.contains(&format!("byte {}", at + 640)), "{text}");
}

/// What `aclshim verify` prints as text.
fn answer_text(rings: &Path, path: &Path) -> String {
    answer(command(rings, &["verify"]).arg(path)).1
}
