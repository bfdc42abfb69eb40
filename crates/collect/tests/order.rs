//! The order in which the segments of a process are read.

use aclshim_collect::budget::Sizes;
use aclshim_collect::chain::Place;
use aclshim_collect::segment::TraceWriter;
use aclshim_collect::survey::Survey;
use aclshim_trace::layout::Header;
use aclshim_trace::segment::{Head, kind};
use aclshim_trace::slot::{self, Layout};
use std::fs;

#[test]
fn a_clock_that_was_set_back_between_two_segments_costs_no_call() {
    let dir = std::env::temp_dir().join(format!("aclshim-order-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    // SAFETY: zero is a valid header.
    let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
    header.functions = 1;
    header.names[0][..11].copy_from_slice(b"aclrtMemcpy");
    // SAFETY: a plain structure, read as bytes.
    let header = unsafe { std::slice::from_raw_parts((&raw const *header).cast::<u8>(), size_of::<Header>()) };
    for (number, realtime_ns) in [3000, 1000, 2000].into_iter().enumerate() {
        let place = Place { dir: dir.clone(), stem: "t".into(), sizes: Sizes::default() };
        let number = number as u64;
        let words = [slot::Head::done(number, Layout::Linear, 0).0, 1000, 7, 1, 2, 3, 64, 0];
        let ticks = 10 + number;
        let head = Head { kind: kind::SLOTS, ring: 0, first: number, flags: 1, ticks, realtime_ns, ..Head::default() };
        TraceWriter::new(place, header).append(&head, words.map(u64::to_le_bytes).as_flattened()).unwrap();
    }
    let mut survey = Survey::default();
    survey.read(&dir, &[]).unwrap();
    let [process] = &survey.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
    assert_eq!(process.account.total().calls, 3);
    fs::remove_dir_all(dir).unwrap();
}
