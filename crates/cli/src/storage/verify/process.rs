//! What is left of one process, taken together: whether its segments follow each other, and whether every number is
//! accounted for.

use super::segment::{CheckedSegment, is_backwards};
use super::verdict::{FileNote, FileVerdict};
use crate::files;
use aclshim_collect::drain::blocks::outermost_calls;
use aclshim_collect::liveness::{self, Liveness};
use aclshim_collect::trace_set::process_key;
use aclshim_facts::settings::Calls;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{ReadMode, RingReader};
use aclshim_trace::record::slot::State;
use aclshim_trace::segment::order::SegmentOrder;
use aclshim_trace::segment::reader::SegmentReader;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Slots of a ring that are read at once.
const PIECE: usize = 1 << 14;

/// What is left of a process.
pub struct ProcessFiles {
    /// The identity of the process.
    pub origin: Origin,
    /// Whether it runs.
    pub liveness: Liveness,
    /// Its segments, and the numbers of the verdicts about them.
    pub segments: Vec<(usize, CheckedSegment)>,
    /// Its ring file.
    pub ring: Option<RingContent>,
    /// Whether there are older segments of it that were not asked about.
    pub is_part: bool,
    /// A segment of it that was not asked about and is newer than all of these.
    pub goes_on_in: Option<PathBuf>,
}

/// What a ring file held at one moment.
pub struct RingContent {
    /// The number of the verdict about it, if it was asked about.
    pub verdict: Option<usize>,
    /// Where it is.
    pub path: PathBuf,
    /// By ring: the first number that has not been drained, and the end.
    lanes: BTreeMap<u32, Range<u64>>,
    /// Calls that it holds and no trace does.
    pub calls: u64,
    not_recorded: u64,
    overwritten: u64,
}

impl RingContent {
    /// Reads a ring file. Problems are added to the verdict, if there is one.
    pub fn new(file: &RingReader, mut verdict: Option<(usize, &mut FileVerdict)>) -> Self {
        let mut seen = Self {
            verdict: verdict.as_ref().map(|(number, _)| *number),
            path: file.path.clone(),
            lanes: BTreeMap::new(),
            calls: 0,
            not_recorded: file.header().not_recorded.load(Ordering::Relaxed),
            overwritten: 0,
        };
        let (first, stride, slots) = (file.header().first, file.header().stride, u64::from(file.header().slots));
        let size = std::fs::metadata(&file.path).map_or(0, |about| about.len());
        for number in 0..file.rings() {
            let begin = (number as u64).checked_mul(stride).and_then(|at| at.checked_add(first));
            let copy = file.ring(number).unwrap_or_else(|error| {
                if let Some((_, verdict)) = &mut verdict {
                    let what = format!("ring {number} cannot be read, and what it holds is not known: {error}");
                    verdict.problem(FileNote::new(what, ""));
                }
                None
            });
            let Some(copy) = copy else {
                // One that is just being made has no owner yet; one that is cut off has no slots.
                if let Some((_, verdict)) = &mut verdict
                    && begin.is_none_or(|begin| begin.saturating_add(4096 + slots * 64) > size)
                {
                    let what = format!("ring {number} is missing: the file ends before it, after {size} bytes");
                    verdict.problem(FileNote::new(what, "what the other rings hold is read").at(size));
                }
                continue;
            };
            let (ring, drained, end) = (copy.ring(), copy.drained, copy.end);
            let strange = copy.written().find_map(|(at, slot)| {
                let head = slot.head();
                let number = head.number(drained);
                (head.state() != State::Free && number & (slots - 1) != at as u64).then_some((at, number))
            });
            if let (Some((_, verdict)), Some((at, strange))) = (&mut verdict, strange) {
                let offset = begin.unwrap_or(0) + 4096 + at as u64 * 64;
                let what = format!("slot {at} of ring {number} holds number {strange}, which belongs elsewhere");
                verdict.problem(
                    FileNote::new(what, "this record cannot be trusted").at(offset).of(number as u32, strange),
                );
            }
            let mut from = drained;
            while from < end {
                let run = ring.read_to(end, from, ReadMode::Peek, PIECE);
                if run.next <= from {
                    break;
                }
                seen.overwritten = seen.overwritten.saturating_add(run.overwritten);
                seen.calls += outermost_calls(&run.slots);
                from = run.next;
            }
            seen.lanes.insert(number as u32, drained..end);
            let load = |of: &aclshim_trace::sync::AtomicU64| of.load(Ordering::Relaxed);
            seen.not_recorded = seen.not_recorded.saturating_add(load(&ring.control.not_recorded));
            seen.overwritten = seen.overwritten.saturating_add(load(&ring.control.overwritten));
        }
        seen
    }
}

/// The balance of a process.
#[derive(Debug, Serialize)]
pub struct Balance {
    /// The process.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// Outermost calls in traces; those that are in two of them count twice.
    pub calls: u64,
    /// Outermost calls that are only in the ring.
    pub in_ring: u64,
    /// Calls that were forwarded and not recorded.
    pub not_recorded: u64,
    /// Slots that were overwritten.
    pub overwritten: u64,
    /// Calls that went with older segments.
    pub evicted: u64,
    /// Slots that nothing accounts for.
    pub missing: u64,
    /// Whether the trace ends in order.
    pub ended: bool,
}

impl ProcessFiles {
    /// Nothing is known yet but who it is.
    pub fn new(origin: Origin) -> Self {
        let liveness = liveness::liveness(&origin);
        Self { origin, liveness, segments: Vec::new(), ring: None, is_part: false, goes_on_in: None }
    }

    /// Compares all files of the process, adds problems to their verdicts, and returns the balance.
    pub fn judge(mut self, verdicts: &mut [FileVerdict]) -> Balance {
        self.sort();
        self.follow(verdicts);
        self.end(verdicts);
        let missing = self.gaps(verdicts);
        let all = || self.segments.iter().map(|(_, segment)| segment);
        let in_ring = |of: fn(&RingContent) -> u64| self.ring.as_ref().map_or(0, of);
        let totals = |at: usize| all().filter_map(|segment| Some(segment.totals?[at])).max().unwrap_or(0);
        let not_recorded = totals(0).max(in_ring(|ring| ring.not_recorded));
        let reported: u64 = all().fold(0, |sum, segment| sum.saturating_add(segment.coverage.lost));
        let last = self.segments.last();
        // While it runs, what was lost last is not in the totals yet; and without its end they are old.
        let is_ended = last.is_some_and(|(_, segment)| segment.is_ended);
        if reported > not_recorded && (is_ended || self.ring.is_some()) && self.liveness != Liveness::Alive {
            let what = format!("records tell of {reported} calls that were lost, and the totals of {not_recorded}");
            if let Some((verdict, _)) = last {
                verdicts[*verdict].problem(FileNote::new(what, "look for another copy"));
            }
        }
        Balance {
            pid: self.origin.pid,
            host: self.origin.host.clone(),
            calls: all().map(|segment| segment.calls).sum(),
            in_ring: in_ring(|ring| ring.calls),
            not_recorded,
            overwritten: totals(1).max(in_ring(|ring| ring.overwritten)),
            evicted: self.evicted(),
            missing,
            ended: is_ended,
        }
    }

    /// Brings segments into the order in which they were written. One without a whole block has no ticks, and goes to where
    /// its time belongs.
    fn sort(&mut self) {
        let time = |segment: &CheckedSegment| (segment.preamble.first_ns, segment.preamble.segment);
        let all = std::mem::take(&mut self.segments);
        let (mut empty, mut sorted): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, segment)| segment.bytes == 0);
        empty.sort_by_key(|(_, segment)| time(segment));
        sorted.sort_by_key(|(_, segment)| segment.turn);
        for one in empty {
            let behind = sorted.iter().position(|(_, other)| time(other) > time(&one.1));
            sorted.insert(behind.unwrap_or(sorted.len()), one);
        }
        self.segments = sorted;
    }

    /// Calls that went with older segments, the oldest first; each segment has the count of the time when it began.
    fn evicted(&self) -> u64 {
        self.segments.iter().map(|(_, segment)| segment.preamble.evicted).max().unwrap_or(0)
    }

    /// Whether segments follow each other, each with all that stood before it.
    fn follow(&self, verdicts: &mut [FileVerdict]) {
        let mut before: Option<(usize, &CheckedSegment)> = None;
        let mut last_moment = None;
        for (verdict, segment) in &self.segments {
            let number = segment.preamble.segment;
            // Number 0 is the first of another drain.
            match before.filter(|_| number > 0) {
                Some((of, one)) if one.preamble.segment + 1 == number => {
                    let found = one.preamble.before + one.bytes;
                    if segment.preamble.before != found {
                        let what = format!(
                            "the next segment tells of {} bytes of blocks up to here, and {found} are there",
                            segment.preamble.before
                        );
                        verdicts[of].problem(FileNote::new(what, "its end is missing; look for another copy"));
                    }
                }
                None if number > 0 && self.evicted() > 0 => {
                    let calls = self.evicted();
                    let what = format!("the segments before number {number} were removed, with {calls} calls");
                    verdicts[*verdict].remark(FileNote::new(what, "ACLSHIM_BUDGET says how much is kept"));
                }
                None if number == 0 || self.is_part => {}
                other => {
                    let from = other.map_or(0, |(_, one)| one.preamble.segment + 1);
                    let name = if from + 1 == number {
                        format!("segment {from} is")
                    } else {
                        format!("segments {from} to {} are", number - 1)
                    };
                    let what = format!("{name} missing before this one, which is number {number}");
                    verdicts[*verdict]
                        .problem(FileNote::new(what, "was it removed, or left behind when the others were copied?"));
                }
            }
            if let Some([first, last]) = segment.moments {
                if last_moment.is_some_and(|before| is_backwards(before, first)) {
                    let what = "the clock goes backwards from the segment before to this one";
                    verdicts[*verdict].problem(FileNote::new(what, "times of these calls are not to be trusted"));
                }
                last_moment = Some(last);
            }
            before = Some((*verdict, segment));
        }
    }

    /// Whether what is written comes to an end, and where not, whether the rest is elsewhere.
    fn end(&mut self, verdicts: &mut [FileVerdict]) {
        let rest = match (&self.ring, self.liveness) {
            (Some(_), Liveness::Alive) => Some("the process runs, and is being written down".to_owned()),
            (Some(ring), _) => {
                Some(format!("the process did not end in order; the rest is in {}", ring.path.display()))
            }
            (None, Liveness::Alive) => Some("the process runs".to_owned()),
            (None, _) => None,
        };
        let remedy = match (&self.ring, self.liveness) {
            (Some(ring), Liveness::Gone) if ring.calls > 0 => "`aclshim recover` writes it to a file",
            _ => "",
        };
        let mut is_followed = None;
        for (verdict, segment) in self.segments.iter_mut().rev() {
            let verdict = &mut verdicts[*verdict];
            let cut = segment.cut.take();
            match (cut, is_followed) {
                // What a killed drain did not write its successor has.
                (Some(note), Some(0)) => verdict.remark(FileNote {
                    what: format!("{}: whoever wrote it was killed, and another went on", note.what),
                    remedy: String::new(),
                    ..note
                }),
                (Some(note), None) => match &rest {
                    Some(rest) => verdict.remark(FileNote {
                        what: format!("{}: {rest}", note.what),
                        remedy: remedy.into(),
                        ..note
                    }),
                    None => verdict.problem(note),
                },
                (Some(note), Some(_)) => verdict.problem(note),
                (None, None) if !segment.is_ended => match (&rest, &self.goes_on_in) {
                    (_, Some(path)) => verdict.remark(FileNote::new(format!("goes on in {}", path.display()), "")),
                    (Some(rest), _) => verdict.remark(FileNote::new(rest, remedy)),
                    (None, None) => verdict.problem(FileNote::new(
                        "its end is missing: the file was cut, or its process was killed and its ring file is not here",
                        "if the ring file is elsewhere, name its folder by ACLSHIM_RING_DIR",
                    )),
                },
                _ => {}
            }
            is_followed = Some(segment.preamble.segment);
        }
    }

    /// Numbers that nothing accounts for; how many.
    fn gaps(&self, verdicts: &mut [FileVerdict]) -> u64 {
        // Calls may have been asked to be in no trace.
        if self.origin.calls == Calls::Off {
            return 0;
        }
        let all = || self.segments.iter().map(|(_, segment)| segment);
        // The recovered copy of a later segment has number 0 too, and so has the first one of a later drain.
        let is_first = |segment: &CheckedSegment| segment.preamble.segment == 0 && segment.preamble.before == 0;
        let is_first_here = !self.is_part && self.evicted() == 0 && all().next().is_none_or(is_first);
        let mut rings: BTreeMap<u32, Vec<(Range<u64>, usize)>> = BTreeMap::new();
        for (verdict, segment) in &self.segments {
            for (ring, ranges) in &segment.coverage.rings {
                rings.entry(*ring).or_default().extend(ranges.iter().map(|range| (range.clone(), *verdict)));
            }
        }
        // Between these segments and the ring there may be others.
        if let Some(ring) = self.ring.as_ref().filter(|_| self.goes_on_in.is_none()) {
            for (number, range) in &ring.lanes {
                // Without a trace it is unknown what was drained.
                let verdict = ring.verdict.or_else(|| self.segments.last().map(|(verdict, _)| *verdict));
                if let Some(verdict) = verdict.filter(|_| !self.segments.is_empty()) {
                    rings.entry(*number).or_default().push((range.clone(), verdict));
                }
            }
        }
        // A kill between the count and the block that records it.
        let said: u64 = all().fold(0, |sum, segment| sum.saturating_add(segment.coverage.overwritten));
        let mut excused = match &self.ring {
            Some(ring) if is_first_here => ring.overwritten.saturating_sub(said),
            _ => 0,
        };
        let mut missing = 0u64;
        for (ring, mut ranges) in rings {
            ranges.sort_by_key(|(range, _)| (range.start, range.end));
            let mut end = if is_first_here { 0 } else { ranges.first().map_or(0, |(range, _)| range.start) };
            for (range, verdict) in ranges {
                if range.start > end {
                    let count = range.start - end;
                    if excused >= count {
                        excused -= count;
                    } else {
                        missing = missing.saturating_add(count);
                        let what = format!("{count} slots up to number {} are in no file", range.start - 1);
                        let remedy = "they were lost with what is damaged or missing; calls in them are not counted";
                        verdicts[verdict].problem(FileNote::new(what, remedy).of(ring, end));
                    }
                }
                end = end.max(range.end);
            }
        }
        missing
    }
}

/// Whether the directory holds older segments of the process, and a newer one, if there is one.
pub fn beside(path: &Path, of: &CheckedSegment) -> (bool, Option<PathBuf>) {
    let others = path.parent().and_then(|folder| files::with_extension(folder, "acltrace").ok()).unwrap_or_default();
    let (mut has_older, mut newer) = (false, None::<(SegmentOrder, PathBuf)>);
    for other in others {
        let opened = files::open(&other).ok().and_then(|file| SegmentReader::open(BufReader::new(file)).ok());
        let Some(mut opened) = opened else { continue };
        let is_same = |origin: Origin| process_key(&origin) == process_key(&of.origin);
        if !Origin::from_bytes(&opened.header).is_some_and(is_same) {
            continue;
        }
        let there = SegmentOrder::of(&mut opened);
        has_older |= there < of.turn;
        if there > of.turn && newer.as_ref().is_none_or(|(next, _)| there < *next) {
            newer = Some((there, other));
        }
    }
    (has_older, newer.map(|(_, path)| path))
}
