//! How fast ticks were on another boot, or another machine: the trace alone tells.

use aclshim_collect::interpreter::visitor::NoVisitor;
use aclshim_collect::storage::budget::Sizes;
use aclshim_collect::storage::rotation::OutputLocation;
use aclshim_collect::storage::segment::TraceWriter;
use aclshim_collect::trace_set::TraceSet;
use aclshim_trace::record::slot::{self, Layout};
use aclshim_trace::ring::layout::{Header, Moment};
use aclshim_trace::segment::format::{BlockHead, kind};
use std::fs;
use std::sync::atomic::Ordering;

fn set(moment: &Moment, values: [u64; 3]) {
    let fields = [&moment.ticks, &moment.realtime_ns, &moment.monotonic_ns];
    fields.iter().zip(values).for_each(|(field, value)| field.store(value, Ordering::Relaxed));
}

#[test]
fn the_pace_of_another_boot_is_that_of_the_moments_farthest_apart() {
    let dir = std::env::temp_dir().join(format!("aclshim-pace-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    // SAFETY: zero is a valid header.
    let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
    header.functions = 1;
    header.names[..11].copy_from_slice(b"aclrtMemcpy");
    header.boot_id[..8].copy_from_slice(b"not here");
    // Two ticks a nanosecond; but whoever took the second moment was held up for as long as lies between them.
    set(&header.born, [1000, 500, 100]);
    set(&header.later, [1000 + 4_000_000, 500 + 4_000_000, 100 + 4_000_000]);
    // SAFETY: a plain structure, read as bytes.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const *header).cast::<u8>(), size_of::<Header>()) };
    let place = OutputLocation { dir: dir.clone(), stem: "t".into(), sizes: Sizes::default() };
    let mut trace = TraceWriter::new(place, bytes);
    let mut append = |head: BlockHead, payload: &[u8]| trace.append(&head, payload).unwrap();
    let slots = |first| BlockHead { kind: kind::SLOTS, first, ..BlockHead::default() };
    let call = |number| [slot::Head::done(number, Layout::Linear, 0).0, 2000, 2_000_000, 1, 2, 3, 64, 0];
    append(slots(0), call(0).map(u64::to_le_bytes).as_flattened());
    append(BlockHead { kind: kind::HEADER, ..BlockHead::default() }, bytes);
    append(slots(1), call(1).map(u64::to_le_bytes).as_flattened());
    // The system's time was set back meanwhile.
    let minute =
        BlockHead { kind: kind::CALIBRATION, ticks: 1000 + 2_000_000_000, realtime_ns: 400, ..BlockHead::default() };
    append(minute, &(100u64 + 1_000_000_000).to_le_bytes());

    let mut set = TraceSet::default();
    set.read(&[&dir], &mut NoVisitor).unwrap();
    let process = set.processes().next().unwrap();
    for percent in [50, 100] {
        let duration = process.totals.total().durations.percentile(percent).unwrap();
        assert!(duration.abs_diff(1_000_000) <= 1_000_000 / 16, "{percent}: {duration}");
    }
    assert_eq!(process.origin.calibration.unwrap().at_ns(1000 + 2_000_000), 500 + 1_000_000);
    fs::remove_dir_all(dir).unwrap();
}
