//! What is read of traces that are not like most: a clock that was set back, code without end.

use aclshim_collect::findings::rule_bits::rule_ids;
use aclshim_collect::interpreter::visitor::{CallView, CallVisitor, NoVisitor};
use aclshim_collect::storage::budget::Sizes;
use aclshim_collect::storage::rotation::OutputLocation;
use aclshim_collect::storage::segment::TraceWriter;
use aclshim_collect::trace_set::{Process, TraceSet};
use aclshim_facts::rule::Severity;
use aclshim_trace::record::slot::{self, Layout, Note, Words, end_word};
use aclshim_trace::record::{Extent, RecordedFinding, found_words};
use aclshim_trace::ring::layout::Header;
use aclshim_trace::segment::format::{BlockHead, kind};
use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("aclshim-reading-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    dir
}

/// Writes a trace with calls of a function from these sites; the number of the first is in `head`.
fn write(dir: &Path, function: &str, head: BlockHead, sites: &[u64]) {
    let call = |(number, site): (u64, &u64)| {
        // From a device to a host, 64 bytes, misaligned on both sides.
        let begun = slot::Head::done(number, Layout::Linear, 0).0;
        [begun, 1000 + number, 7, *site, 0x1008, 0x2008, 64, 0]
    };
    write_slots(dir, function, head, &(head.first..).zip(sites).map(call).collect::<Vec<_>>());
}

/// Writes a trace with these slots.
fn write_slots(dir: &Path, function: &str, head: BlockHead, slots: &[Words]) {
    // SAFETY: zero is a valid header.
    let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
    header.functions = 1;
    header.names[..function.len()].copy_from_slice(function.as_bytes());
    // SAFETY: a plain structure, read as bytes.
    let header = unsafe { std::slice::from_raw_parts((&raw const *header).cast::<u8>(), size_of::<Header>()) };
    let bytes: Vec<_> = slots.iter().flatten().map(|word| word.to_le_bytes()).collect();
    let place = OutputLocation { dir: dir.to_owned(), stem: "t".into(), sizes: Sizes::default() };
    let head = BlockHead { kind: kind::SLOTS, flags: slots.len() as u32, ..head };
    TraceWriter::new(place, header).append(&head, bytes.as_flattened()).unwrap();
}

/// Reads it back.
fn read(dir: &Path, look: impl FnOnce(&Process)) {
    let mut set = TraceSet::default();
    set.read(&[dir], &mut NoVisitor).unwrap();
    set.finish(&mut NoVisitor);
    let [process] = &set.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
    look(process);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_clock_that_was_set_back_between_two_segments_costs_no_call() {
    let dir = folder("back");
    for (first, realtime_ns) in (0..).zip([3000, 1000, 2000]) {
        write(&dir, "aclrtMemcpy", BlockHead { first, ticks: 10 + first, realtime_ns, ..BlockHead::default() }, &[1]);
    }
    read(&dir, |process| assert_eq!(process.totals.total().calls, 3));
}

#[test]
fn findings_at_ever_new_call_sites_are_counted_and_not_all_told() {
    let dir = folder("sites");
    write(&dir, "aclrtMemcpyAsync", BlockHead::default(), &(1..=5000).collect::<Vec<u64>>());
    read(&dir, |process| {
        let found: Vec<u64> = process.judge.totals().values().map(|total| total.found).collect();
        assert!(!found.is_empty() && found.iter().all(|found| *found == 5000), "{found:?}");
        assert_eq!(process.findings.len(), 4096);
    });
}

#[test]
fn findings_at_one_call_site_are_all_counted_and_told_once() {
    let dir = folder("site");
    let call = |number: u64| {
        let head = slot::Head::in_flight(number, Layout::Linear, 0, 1).ended().0;
        [head, 1000 + number, 7, 0x40, 0x1008, 0x2000, 64, 0]
    };
    write_slots(&dir, "aclrtMemcpyAsync", BlockHead::default(), &(0..100).map(call).collect::<Vec<_>>());
    read(&dir, |process| {
        let totals: Vec<_> = process.judge.totals().values().collect();
        assert!(totals.iter().any(|total| (total.found, total.told) == (100, 1)), "{totals:?}");
        assert!(totals.iter().all(|total| total.by_severity.iter().sum::<u64>() == total.found), "{totals:?}");
    });
}

#[test]
fn what_is_noted_of_a_failed_call_is_told_whether_another_stands_between_or_not_unless_it_is_too_long_ago() {
    let finding =
        RecordedFinding { rule: 3, argument: 0, severity: 3, index: None, values: [0; 2], code: 7, fail_index: None };
    for (between, is_told) in [(0, true), (1, true), (3, true), (4, false)] {
        let dir = folder(&format!("noted-{between}"));
        let failed = |number: u64| {
            let begun = slot::Head::done(number, Layout::Linear, 0).0;
            [begun, 1000 + number, end_word(7, 107_000), 0x40, 0x1000, 0x2000, 64, 0]
        };
        let mut slots: Vec<Words> = (0..=between).map(failed).collect();
        let [of, what, index, one, other, code, fail_index] = finding.words(0);
        let head = slot::Head::done(between + 1, Layout::Note, Note::Finding as u16).0;
        slots.extend([[head, of, what, index, one, other, code, fail_index], failed(between + 2)]);
        write_slots(&dir, "aclrtMemcpy", BlockHead::default(), &slots);
        read(&dir, |process| {
            let total = process.totals.total();
            assert_eq!((total.calls, total.errors), (between + 2, between + 2));
            let told: Vec<u64> = process.findings.iter().map(|found| found.number).collect();
            assert_eq!(told, if is_told { vec![0] } else { vec![] }, "{between} stand between");
        });
    }
}

/// What a trace set shows of each call: the rules that it breaks.
#[derive(Default)]
struct Broken(Vec<u128>);

impl CallVisitor for Broken {
    fn call(&mut self, seen: &CallView<'_>) {
        self.0.push(seen.rules);
    }
}

#[test]
fn a_finding_of_a_rule_beyond_the_64th_is_counted_and_named_although_this_release_does_not_know_it() {
    let dir = folder("beyond");
    let first = slot::Head::in_flight(0, Layout::Long, 0, 0).ended().0;
    let more = slot::Head::done(1, Layout::More, 0).0;
    let mut slots = vec![
        [first, 1000, end_word(7, 0), 0x40, 0x1000, 64, 0x2000, 64],
        [more, 0, 0, Extent::new(2, 0, 0).0, 1, 0x57, 0, 0],
    ];
    for (word, value) in found_words(1 << 65 | 1 << 70 | 1 << 127, Extent::new(0, 0, 0)) {
        slots[1][word] |= value;
    }
    let noted =
        RecordedFinding { rule: 70, argument: 0, severity: 3, index: None, values: [0; 2], code: 7, fail_index: None };
    let [of, what, index, one, other, code, fail_index] = noted.words(0);
    let note = slot::Head::done(2, Layout::Note, Note::Finding as u16).0;
    slots.push([note, of, what, index, one, other, code, fail_index]);
    write_slots(&dir, "aclrtMemcpyAsync", BlockHead::default(), &slots);

    let mut broken = Broken::default();
    let mut set = TraceSet::default();
    set.read(&[&dir], &mut broken).unwrap();
    set.finish(&mut broken);
    let [rules] = broken.0[..] else { panic!("one call, {:?}", broken.0) };
    let names: Vec<_> = rule_ids(rules).collect();
    assert_eq!(names, ["UNKNOWN-RULE-65", "UNKNOWN-RULE-70", "UNKNOWN-RULE-127"]);
    let [process] = &set.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
    let totals = process.judge.totals().iter().map(|(name, total)| (name.as_str(), total.found, total.worst));
    let [violation, error] = [Severity::Violation, Severity::Error].map(Some);
    let expected =
        [("UNKNOWN-RULE-127", 1, violation), ("UNKNOWN-RULE-65", 1, violation), ("UNKNOWN-RULE-70", 1, error)];
    assert_eq!(totals.collect::<Vec<_>>(), expected);
    fs::remove_dir_all(dir).unwrap();
}
