//! What is read of traces that are not like most: a clock that was set back, code without end.

use aclshim_collect::budget::Sizes;
use aclshim_collect::chain::Place;
use aclshim_collect::segment::TraceWriter;
use aclshim_collect::survey::{Process, Survey};
use aclshim_trace::layout::Header;
use aclshim_trace::segment::{Head, kind};
use aclshim_trace::slot::{self, Layout};
use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("aclshim-reading-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    dir
}

/// Writes a trace with calls of a function from these sites; the number of the first is in `head`.
fn write(dir: &Path, function: &str, head: Head, sites: &[u64]) {
    // SAFETY: zero is a valid header.
    let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
    header.functions = 1;
    header.names[0][..function.len()].copy_from_slice(function.as_bytes());
    // SAFETY: a plain structure, read as bytes.
    let header = unsafe { std::slice::from_raw_parts((&raw const *header).cast::<u8>(), size_of::<Header>()) };
    let call = |(number, site): (u64, &u64)| {
        // From a device to a host, 64 bytes, askew on both sides.
        let begun = slot::Head::done(number, Layout::Linear, 0).0;
        [begun, 1000 + number, 7, *site, 0x1008, 0x2008, 64, 0].map(u64::to_le_bytes)
    };
    let slots: Vec<_> = (head.first..).zip(sites).flat_map(call).collect();
    let place = Place { dir: dir.to_owned(), stem: "t".into(), sizes: Sizes::default() };
    let head = Head { kind: kind::SLOTS, flags: sites.len() as u32, ..head };
    TraceWriter::new(place, header).append(&head, slots.as_flattened()).unwrap();
}

/// Reads it back.
fn read(dir: &Path, look: impl FnOnce(&Process)) {
    let mut survey = Survey::default();
    survey.read(dir, &[]).unwrap();
    survey.settle();
    let [process] = &survey.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
    look(process);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_clock_that_was_set_back_between_two_segments_costs_no_call() {
    let dir = folder("back");
    for (first, realtime_ns) in (0..).zip([3000, 1000, 2000]) {
        write(&dir, "aclrtMemcpy", Head { first, ticks: 10 + first, realtime_ns, ..Head::default() }, &[1]);
    }
    read(&dir, |process| assert_eq!(process.account.total().calls, 3));
}

#[test]
fn findings_at_ever_new_call_sites_are_counted_and_not_all_told() {
    let dir = folder("sites");
    write(&dir, "aclrtMemcpyAsync", Head::default(), &(1..=5000).collect::<Vec<u64>>());
    read(&dir, |process| {
        let found: Vec<u64> = process.judge.totals().values().map(|total| total.found).collect();
        assert!(!found.is_empty() && found.iter().all(|found| *found == 5000), "{found:?}");
        assert_eq!(process.findings.len(), 4096);
    });
}
