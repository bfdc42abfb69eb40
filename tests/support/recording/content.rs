//! Every record compared with the call that it says it is.

use super::left::Left;
use super::pattern::{code_of, identify};
use super::truth::{LANES, Truth};
use aclshim_trace::record::slot::{Head, State};
use aclshim_trace::record::{Entry, decode};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// What a run has left, found to be right.
#[derive(Debug, Default, PartialEq, Clone)]
pub struct Content {
    /// How many processes.
    pub processes: u64,
    /// Calls that are recorded.
    pub calls: u64,
    /// Of these, calls that had not ended.
    pub open: u64,
    /// Slots that are missing between others.
    pub missing: u64,
    /// Calls that were not recorded, as is said.
    pub not_recorded: u64,
    /// Slots that were overwritten, as is said.
    pub overwritten: u64,
    /// Calls that went with older traces, as is said.
    pub evicted: u64,
    /// Lost calls that in-band records tell of.
    pub told: u64,
    /// Slots that are in two places.
    pub twice: u64,
    /// Traces that end before their end.
    pub torn: u64,
    /// Slots of all kinds.
    pub slots: u64,
    /// By lane: how many calls, and the last one's number.
    pub lanes: BTreeMap<usize, (u64, u64)>,
}

impl AddAssign for Content {
    fn add_assign(&mut self, other: Self) {
        for (mine, more) in [
            (&mut self.processes, other.processes),
            (&mut self.calls, other.calls),
            (&mut self.open, other.open),
            (&mut self.missing, other.missing),
            (&mut self.not_recorded, other.not_recorded),
            (&mut self.overwritten, other.overwritten),
            (&mut self.evicted, other.evicted),
            (&mut self.told, other.told),
            (&mut self.twice, other.twice),
            (&mut self.torn, other.torn),
            (&mut self.slots, other.slots),
        ] {
            *mine += more;
        }
        for (lane, of) in other.lanes {
            assert!(self.lanes.insert(lane, of).is_none(), "lane {lane} is in two processes");
        }
    }
}

/// What was seen of a lane so far.
#[derive(Clone, Copy)]
struct Seen {
    calls: u64,
    last: u64,
    /// When its last call had ended, in ticks.
    until: u64,
}

/// Compares every record of a process with the call that it says it is.
#[track_caller]
pub fn compare(left: &Left, truth: &Truth) -> Content {
    let mut content = Content {
        processes: 1,
        not_recorded: left.not_recorded,
        overwritten: left.overwritten - left.written_before,
        evicted: left.evicted,
        twice: left.twice,
        torn: left.torn,
        ..Content::default()
    };
    let code = truth.word(0)..=truth.word(1);
    // Calls of these lanes after the last one that is recorded.
    let behind = |owners: &[usize], lanes: &BTreeMap<usize, Seen>| -> u64 {
        let next = |lane| lanes.get(lane).map_or(0, |seen: &Seen| seen.last + 1);
        owners.iter().map(|lane| truth.lane(*lane).begun - next(lane)).sum()
    };
    let mut lanes: BTreeMap<usize, Seen> = BTreeMap::new();
    for (ring, pieces) in &left.rings {
        let mut thread = None;
        let mut open: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        let (mut next, mut told, mut skipped) = (0, 0, 0);
        // The lanes of the ring's owner: more than one where a handler calls too.
        let mut owners: Vec<usize> = Vec::new();
        for piece in pieces {
            content.missing += piece.first - next;
            // Who took the ring may stand in what is missing; or nowhere, where there was no room for that.
            thread = if piece.first > next { piece.thread } else { piece.thread.or(thread) };
            next = piece.end();
            content.slots += piece.slots.len() as u64;
            let mut at = 0;
            while at < piece.slots.len() {
                let number = piece.first + at as u64;
                let place = || format!("ring {ring}, slot {number} of process {}", left.origin.pid);
                let (entry, count) =
                    decode(&piece.slots[at..], number).unwrap_or_else(|| panic!("no record: {}", place()));
                for (nth, slot) in piece.slots[at..at + count].iter().enumerate() {
                    let near = number + nth as u64;
                    assert_eq!(Head(slot[0]).number(near), near, "{}", place());
                    assert!(nth == 0 || Head(slot[0]).state() == State::Done, "{}", place());
                }
                at += count;
                match entry {
                    Entry::Thread { id, .. } => {
                        skipped += behind(&owners, &lanes);
                        let is_its = |lane: &usize| truth.lane(*lane).thread == u64::from(id);
                        owners = (0..LANES).filter(is_its).collect();
                        thread = Some(id);
                    }
                    Entry::Lost { from, to, calls, .. } => {
                        assert!(from <= to && calls > 0, "{}", place());
                        told += calls;
                    }
                    Entry::End { of, end } => {
                        let (lane, n) = open.remove(&of).unwrap_or_else(|| panic!("no open call {of}: {}", place()));
                        assert_eq!(end.code, code_of(0x5A << 56 | (lane as u64) << 40 | n), "{}", place());
                    }
                    Entry::Finding { .. } | Entry::Stack { .. } => panic!("a finding: {}", place()),
                    Entry::Annotation { .. } => panic!("the program tells nothing: {}", place()),
                    // Beside the calls that the program counts.
                    Entry::Tracked(_) => {}
                    Entry::Skip { to, .. } => {
                        assert!(at == piece.slots.len() && to > number, "{}: to {to}", place());
                        next = to;
                    }
                    Entry::Call(call) => {
                        let function = &left.origin.functions[usize::from(call.function)];
                        let (lane, n) = identify(&call, function).unwrap_or_else(|why| panic!("{}: {why}", place()));
                        assert_eq!(call.number, number, "{}", place());
                        let of = truth.lane(lane);
                        assert!(n < of.begun, "{}: call {n} was not made, of {}", place(), of.begun);
                        assert_eq!(u64::from(left.origin.pid), of.process, "{}", place());
                        if let Some(thread) = thread {
                            assert_eq!(u64::from(thread), of.thread, "{}", place());
                        }
                        assert!(code.contains(&call.site), "{}: called from {:x}", place(), call.site);
                        assert!(!call.is_nested && call.findings == 0 && call.flags == 0 && call.scope == 0);
                        let seen = lanes.entry(lane).or_insert(Seen { calls: 0, last: u64::MAX, until: 0 });
                        assert!(seen.calls == 0 || n > seen.last, "{}: call {n} after {}", place(), seen.last);
                        assert!(call.begin >= seen.until, "{}: begins before the last one ended", place());
                        skipped += n.wrapping_sub(seen.last) - 1;
                        seen.calls += 1;
                        seen.last = n;
                        match call.end {
                            Some(end) => {
                                assert_eq!(end.code, code_of(0x5A << 56 | (lane as u64) << 40 | n), "{}", place());
                                seen.until = call.begin + end.duration;
                            }
                            None => {
                                seen.until = call.begin;
                                open.insert(number, (lane, n));
                            }
                        }
                        content.calls += 1;
                    }
                }
            }
        }
        content.open += open.len() as u64;
        content.told += told;
        skipped += behind(&owners, &lanes);
        // A thread that found its ring full from its first call to its last is in no record, but its losses are recorded.
        let is_alone = owners.len() <= 1 && left.rings.len() >= truth.lanes().count();
        assert!(told <= skipped || !is_alone, "ring {ring}: {told} lost, {skipped} missing");
        if let Some(said) = left.told.get(ring).filter(|_| left.evicted + left.overwritten == 0) {
            assert_eq!(told, *said, "ring {ring}: lost calls that records tell of");
        }
    }
    content.lanes = lanes.into_iter().map(|(lane, seen)| (lane, (seen.calls, seen.last))).collect();
    content
}
