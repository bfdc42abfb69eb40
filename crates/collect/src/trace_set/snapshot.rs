//! A copy of what a ring file holds at one moment.

use super::error::Cause;
use crate::liveness::{self, Liveness};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{ReadMode, RingReader};
use aclshim_trace::record::slot::{self, State, Words};
use aclshim_trace::segment::format::BlockHead;
use std::sync::atomic::Ordering;

/// Number of slots that the records of a ring file may claim beyond twice the number that is written in it.
const SPARE: usize = 1 << 16;

/// What a ring file held at one moment.
pub(super) struct Snapshot {
    pub origin: Origin,
    pub liveness: Liveness,
    pub write_failures: u64,
    pub not_recorded: u64,
    pub notes_lost: u64,
    pub overwritten: u64,
    /// Slots that were overwritten since: the ring, the first number, and the count.
    pub lost: Vec<(u32, u64, u64)>,
    /// Slots that could be read, as blocks: ring, first number and thread stand in the head.
    pub runs: Vec<(BlockHead, Vec<Words>)>,
}

impl Snapshot {
    /// Copies a ring file; also returns what is wrong with the file. With `follow`, a call in flight and all slots behind it
    /// are left for the next snapshot.
    pub fn take(file: &RingReader, follow: bool) -> (Self, Option<Cause>) {
        let origin = Origin::new(file.header());
        let liveness = liveness::of_ring(file.file(), &origin);
        let mut snapshot = Self {
            origin,
            liveness,
            write_failures: file.header().write_failures.load(Ordering::Relaxed),
            not_recorded: file.header().not_recorded.load(Ordering::Relaxed),
            notes_lost: 0,
            overwritten: 0,
            lost: Vec::new(),
            runs: Vec::new(),
        };
        let mut wrong = None;
        // A record of a call in flight may claim more slots than are written of it. In a malicious file these claims would
        // add up to far more memory than the file itself takes.
        let mut left = SPARE;
        let waits = follow && liveness != Liveness::Gone;
        for number in 0..file.rings() {
            let copy = match file.ring(number) {
                Ok(Some(copy)) => copy,
                Ok(None) => continue,
                Err(error) => {
                    wrong = Some(Cause::Ring { number, error });
                    continue;
                }
            };
            let ring = copy.ring();
            left += 2 * copy.written_count();
            let mut from = copy.drained;
            while from < copy.end {
                // To the end of the copy, not to the end that the ring now shows: in a damaged ring each lies beyond the last.
                let mut run = ring.read_to(copy.end, from, ReadMode::Peek, left);
                if run.next == from {
                    break;
                }
                run.slots.shrink_to_fit();
                left = left.saturating_sub(run.slots.len());
                let mut is_last = run.jumped() == 0;
                if waits {
                    let is_open = |slot: &Words| slot::Head(slot[0]).state() == State::InFlight;
                    let open = run.slots.iter().position(is_open);
                    is_last |= open.is_some();
                    run.slots.truncate(open.unwrap_or(run.slots.len()));
                } else {
                    // Slots that a drain has released in the meantime are in the trace, and were free to be overwritten.
                    let released = ring.control.drained.load(Ordering::Acquire);
                    let (first, lost) = never_drained(from, run.overwritten, released);
                    snapshot.overwritten = snapshot.overwritten.saturating_add(lost);
                    snapshot.lost.push((number as u32, first, lost));
                }
                // Skipped slots may be about to be written.
                let is_skipped = run.first > from && run.overwritten == 0;
                if !(waits && is_skipped) {
                    let thread = ring.owner().filter(|(_, since)| run.first >= *since).map_or(0, |(owner, _)| owner);
                    let head = BlockHead { ring: number as u32, first: run.first, thread, ..BlockHead::default() };
                    snapshot.runs.push((head, run.slots));
                }
                if waits && is_last {
                    break;
                }
                from = run.next;
            }
            let load = |count: &aclshim_trace::sync::AtomicU64| count.load(Ordering::Relaxed);
            snapshot.not_recorded = snapshot.not_recorded.saturating_add(load(&ring.control.not_recorded));
            snapshot.notes_lost = snapshot.notes_lost.saturating_add(load(&ring.control.notes_lost));
            snapshot.overwritten = snapshot.overwritten.saturating_add(load(&ring.control.overwritten));
        }
        if left == 0 {
            wrong = Some(Cause::RecordsExceedFile);
        }
        (snapshot, wrong)
    }
}

/// Of `overwritten` slots from number `from` on, those that no drain has released: the first number, and the count.
fn never_drained(from: u64, overwritten: u64, released: u64) -> (u64, u64) {
    let end = from.saturating_add(overwritten);
    let first = released.clamp(from, end);
    (first, end - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_drain_gives_back_while_the_ring_is_read_is_not_lost() {
        assert_eq!(never_drained(100, 0, 100), (100, 0), "nothing was overwritten");
        assert_eq!(never_drained(100, 40, 100), (100, 40), "no drain runs");
        assert_eq!(never_drained(100, 40, 130), (130, 10));
        assert_eq!(never_drained(100, 40, 900), (140, 0), "it is far ahead of us");
        assert_eq!(never_drained(100, 40, 7), (100, 40), "a damaged ring");
    }
}
