//! One trace that is read, and what its blocks without slots say about its process.

use super::Process;
use crate::findings::modules::Modules;
use aclshim_trace::origin::Origin;
use aclshim_trace::segment::format::kind;
use aclshim_trace::segment::reader::{Block, SegmentReader};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Number of bytes that are read between two calls of [`ReadOptions::progress`](super::ReadOptions::progress).
const STEP: u64 = 1 << 24;

/// Reports now and then how far a trace was read.
pub(super) struct Progress<'a> {
    pub report: Option<&'a mut Box<dyn FnMut(u64) + Send>>,
    /// Offset up to which that was reported.
    pub reported: u64,
}

impl Progress<'_> {
    pub fn at(&mut self, good: u64) {
        if let Some(report) = self.report.as_mut().filter(|_| good - self.reported >= STEP) {
            report(good - self.reported);
            self.reported = good;
        }
    }
}

/// A trace that is being read.
pub(super) struct Trace {
    pub reader: SegmentReader<BufReader<File>>,
    pub process: usize,
    /// Its last moment, where the pace of the ticks is derived from that.
    pub moment: [u64; 3],
}

/// Takes over what a block without slots says about its process.
pub(super) fn learn(process: &mut Process, block: &Block, moment: [u64; 3]) {
    match block.head.kind {
        kind::LOSS => {
            if let Some(slots) = block.payload.first_chunk() {
                process.overwrote(block.head.ring, block.head.first, u64::from_le_bytes(*slots));
            }
        }
        kind::HEADER => {
            if let Some(origin) = Origin::with_moment(&block.payload, moment) {
                process.renew(origin);
            }
        }
        kind::MODULES => _ = process.judge.modules().learn(Modules::from_bytes(&block.payload)),
        kind::TOTALS => {
            if let Some([not_recorded, overwritten, notes_lost]) = totals(&block.payload) {
                process.not_recorded = process.not_recorded.max(not_recorded);
                process.notes_lost = process.notes_lost.max(notes_lost);
                process.said_overwritten = process.said_overwritten.max(overwritten);
            }
        }
        _ => {}
    }
}

/// The last moment that is recorded in a trace behind its header: ticks, realtime and monotonic.
pub(super) fn last_moment(path: &Path) -> Option<[u64; 3]> {
    // A small buffer: most of the file is skipped.
    let mut reader = SegmentReader::open(BufReader::with_capacity(512, File::open(path).ok()?)).ok()?;
    let mut last = None;
    while let Ok(Some(block)) = reader.next_without_slots() {
        if block.head.kind == kind::CALIBRATION
            && let Some(monotonic) = block.payload.first_chunk()
        {
            last = Some([block.head.ticks, block.head.realtime_ns, u64::from_le_bytes(*monotonic)]);
        }
    }
    last
}

/// The counts in a block of totals: calls not recorded, slots overwritten, notes lost.
fn totals(payload: &[u8]) -> Option<[u64; 3]> {
    let (words, _) = payload.as_chunks::<8>();
    let notes_lost = words.get(2).copied().unwrap_or_default();
    Some([*words.first()?, *words.get(1)?, notes_lost].map(u64::from_le_bytes))
}
