//! What is kept: whether it is whole, what can be recovered, what can go, and several directories in one.

#[path = "support/keeping.rs"]
mod keeping;
mod support;

use aclshim_collect::storage::budget::Sizes;
use aclshim_collect::storage::rotation::OutputLocation;
use aclshim_collect::storage::segment::TraceWriter;
use aclshim_trace::record::slot::{self, Layout};
use aclshim_trace::ring::layout::Header;
use aclshim_trace::segment::format::{BlockHead, kind};
use aclshim_trace::system::namespace;
use keeping::{answer, command, files, kept, kept_with, only, verify};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use support::{Run, Stat, scratch};

/// What `keep_calls 2 12` has made.
const CALLS: u64 = 5 + 2 * 12;

/// A run whose process was killed and whose ring nothing drained.
fn killed() -> support::Output {
    let output = kept_with(&["2", "12", "kill"], |run| run.env("ACLSHIM_DRAIN", "off"));
    assert_eq!(output.status.signal(), Some(libc::SIGKILL));
    output
}

/// What is said of all files, problems or remarks.
fn said(answer: &Value, what: &str) -> String {
    let files = answer["files"].as_array().unwrap();
    let notes = files.iter().flat_map(|file| file[what].as_array().unwrap());
    notes.map(|note| note["what"].as_str().unwrap().to_owned() + "\n").collect()
}

fn calls(dir: &Path, rings: &Path) -> u64 {
    Stat::of(dir, rings).total("calls")
}

/// A trace of this process that is written here, a segment a call; it began so.
fn trace_of_us(dir: &Path, start_time: u64) -> TraceWriter {
    // SAFETY: zero is a valid header.
    let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
    let boot_id = fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    (header.pid, header.start_time) = (std::process::id(), start_time);
    (header.pid_ns, header.time_ns) = (namespace::pid(), namespace::time());
    header.boot_id[..36].copy_from_slice(&boot_id[..36]);
    header.functions = 1;
    header.names[0][..11].copy_from_slice(b"aclrtMemcpy");
    // SAFETY: a plain structure, read as bytes.
    let header = unsafe { std::slice::from_raw_parts((&raw const *header).cast::<u8>(), size_of::<Header>()) };
    let sizes = Sizes { segment: 1, budget: 1 << 30 };
    TraceWriter::new(OutputLocation { dir: dir.to_owned(), stem: "us".into(), sizes }, header)
}

/// The head of a block of that trace.
fn head(kind: u32, number: u64) -> BlockHead {
    BlockHead { kind, first: number, flags: 1, ticks: 1 + number, realtime_ns: 1000 + number, ..BlockHead::default() }
}

/// Writes one more segment to it, with a call of that number.
fn segment(trace: &mut TraceWriter, number: u64) -> PathBuf {
    let words = [slot::Head::done(number, Layout::Linear, 0).0, 1000, 7, 1, 2, 3, 64, 0];
    trace.append(&head(kind::SLOTS, number), words.map(u64::to_le_bytes).as_flattened()).unwrap();
    trace.path().unwrap().to_owned()
}

/// Makes a file look so old.
fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

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
    let output =
        kept_with(&["2", "3000", "kill"], |run| run.env("ACLSHIM_RECORD", "lossless").env("ACLSHIM_RING_SIZE", "64K"));
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
