//! One segment of a trace, read to its end, and its facts that must agree with other segments.

use super::coverage::Coverage;
use super::verdict::{FileNote, FileVerdict};
use crate::files;
use aclshim_collect::drain::blocks::outermost_calls;
use aclshim_trace::origin::Origin;
use aclshim_trace::record::slot::Head;
use aclshim_trace::segment::format::{HEAD, MAGIC, Preamble, kind};
use aclshim_trace::segment::order::SegmentOrder;
use aclshim_trace::segment::reader::{Block, SegmentErrorKind, SegmentReader};
use std::io::{BufReader, Read};
use std::path::Path;

/// The facts of one segment.
pub struct CheckedSegment {
    /// Its process.
    pub origin: Origin,
    /// Its preamble.
    pub preamble: Preamble,
    /// Where it stands among the others of its process.
    pub turn: SegmentOrder,
    /// Bytes of its good blocks.
    pub bytes: u64,
    /// Whether an orderly end is the last that stands in it.
    pub is_ended: bool,
    /// The note about where it is cut off.
    pub cut: Option<FileNote>,
    /// Numbers that it accounts for, and what it says of losses.
    pub coverage: Coverage,
    /// Number of outermost calls.
    pub calls: u64,
    /// The last totals: calls not recorded, slots overwritten.
    pub totals: Option<[u64; 2]>,
    /// The first and the last moment: ticks and CLOCK_MONOTONIC.
    pub moments: Option<[[u64; 2]; 2]>,
}

const RECOVER: &str = "`aclshim recover FILE --out DIR` writes what is good to a new file";

/// Reads a segment. Returns `None` if nothing of it can be read; the verdict says why.
pub fn read(path: &Path, verdict: &mut FileVerdict, mut progress: impl FnMut(u64)) -> Option<CheckedSegment> {
    let file = match files::open(path) {
        Ok(file) => file,
        Err(error) => {
            verdict.unreadable(FileNote::new(error.to_string(), ""));
            return None;
        }
    };
    let mut reader = match SegmentReader::open(BufReader::with_capacity(1 << 20, file)) {
        Ok(reader) => reader,
        Err(stop) => {
            let note = FileNote::new(stop.to_string(), "").at(stop.offset);
            match stop.kind {
                SegmentErrorKind::Header => verdict.problem(FileNote { remedy: RECOVER.into(), ..note }),
                SegmentErrorKind::Short { .. } => verdict.problem(note),
                _ if is_beginning(path) => verdict.problem(FileNote::new("cut off within its first bytes", "").at(0)),
                _ => verdict.unreadable(note),
            }
            return None;
        }
    };
    let Some(origin) = Origin::from_bytes(&reader.header) else {
        verdict.problem(
            FileNote::new("the header is too short: nobody can tell whose trace it is", RECOVER).at(HEAD as u64),
        );
        return None;
    };
    let opening = reader.good();
    let mut segment = CheckedSegment {
        origin,
        preamble: reader.preamble,
        turn: SegmentOrder::new(&reader.preamble, None),
        bytes: 0,
        is_ended: false,
        cut: None,
        coverage: Coverage::default(),
        calls: 0,
        totals: None,
        moments: None,
    };
    let mut is_first = true;
    loop {
        match reader.next_block() {
            Ok(Some(block)) => {
                if std::mem::take(&mut is_first) {
                    segment.turn = SegmentOrder::new(&segment.preamble, Some(&block.head));
                }
                let began = reader.began();
                segment.bytes = began - opening - reader.lost();
                segment.block(&block, began, verdict);
                progress(reader.good());
            }
            Ok(None) => break,
            Err(_) => segment.is_ended = false,
        }
    }
    segment.bytes = reader.good() - opening - reader.lost();
    for damage in reader.damages() {
        let note = FileNote::new(damage.to_string(), RECOVER).at(damage.offset);
        if damage.is_cut {
            segment.cut = Some(note);
        } else {
            verdict.problem(note);
        }
    }
    if reader.skipped() > 0 {
        let what = format!("{} blocks are of a kind that this version of aclshim does not know", reader.skipped());
        verdict.remark(FileNote::new(what, "a newer aclshim reads them"));
    }
    Some(segment)
}

/// Whether a file is too short even to say what it is.
fn is_beginning(path: &Path) -> bool {
    files::first_bytes(path).is_ok_and(|bytes| bytes.len() < MAGIC.len() && MAGIC.starts_with(&bytes))
}

impl CheckedSegment {
    fn block(&mut self, block: &Block, began: u64, verdict: &mut FileVerdict) {
        let head = &block.head;
        let word = |at: usize| block.payload.as_chunks().0.get(at).map(|word| u64::from_le_bytes(*word));
        self.is_ended = head.kind == kind::END;
        self.coverage.add(block);
        if head.kind != kind::SLOTS && head.kind <= kind::TOTALS && word(0).is_none() {
            verdict.problem(FileNote::new(format!("a block of kind {} is too short", head.kind), RECOVER).at(began));
        }
        match (head.kind, word(0)) {
            (kind::SLOTS, _) => self.records(block, began, verdict),
            (kind::TOTALS, Some(not_recorded)) => self.totals = Some([not_recorded, word(1).unwrap_or(0)]),
            (kind::CALIBRATION, Some(monotonic)) => {
                let moment = [head.ticks, monotonic];
                let [_, last] = self.moments.unwrap_or([moment; 2]);
                if is_backwards(last, moment) {
                    let what = format!("the clock goes backwards: ticks and nanoseconds {last:?}, then {moment:?}");
                    verdict.problem(FileNote::new(what, "times of these calls are not to be trusted").at(began));
                }
                self.moments = Some([self.moments.map_or(moment, |[first, _]| first), moment]);
            }
            (kind::END, Some(said)) => {
                let found = self.preamble.before.saturating_add(self.bytes);
                if said != found {
                    let what = format!("its end tells of {said} bytes of blocks before, and {found} are there");
                    verdict.problem(
                        FileNote::new(what, "something was taken out or put in; look for another copy").at(began),
                    );
                }
            }
            _ => {}
        }
    }

    /// Numbers that follow each other, and as many calls as the head says.
    fn records(&mut self, block: &Block, began: u64, verdict: &mut FileVerdict) {
        let (head, slots) = (&block.head, block.as_slots());
        let said = |at: usize| Head(slots[at][0]).number(head.first.wrapping_add(at as u64));
        let wrong = (0..slots.len()).find(|at| said(*at) != head.first.wrapping_add(*at as u64));
        let calls = outermost_calls(&slots[..wrong.unwrap_or(slots.len())]);
        if let Some(at) = wrong {
            let what = format!("slot {at} of the block says that its number is {}", said(at));
            let number = head.first.wrapping_add(at as u64);
            verdict.problem(FileNote::new(what, RECOVER).at(began).of(head.ring, number));
        } else if calls != u64::from(head.flags) {
            let what = format!("the block's head tells of {} calls, and {calls} are in it", head.flags);
            verdict.problem(FileNote::new(what, RECOVER).at(began).of(head.ring, head.first));
        }
        self.calls += calls;
    }
}

/// Whether a moment (ticks, CLOCK_MONOTONIC) is before another. Ticks of 0 are those of another boot.
pub fn is_backwards(before: [u64; 2], after: [u64; 2]) -> bool {
    before[0] != 0 && after[0] != 0 && (after[0] < before[0] || after[1] < before[1])
}

/// A log: lines that do not parse.
pub fn log(path: &Path, verdict: &mut FileVerdict) {
    use std::io::BufRead;
    let file = match files::open(path) {
        Ok(file) => file,
        Err(error) => return verdict.unreadable(FileNote::new(error.to_string(), "")),
    };
    /// No line of ours is longer.
    const LONGEST: u64 = 1 << 20;
    let mut from = BufReader::new(file);
    let (mut offset, mut line) = (0u64, Vec::new());
    let mut bad = 0;
    loop {
        line.clear();
        match from.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(length) => {
                let is_object = serde_json::from_slice::<serde_json::Value>(&line).is_ok_and(|value| value.is_object());
                if line.last() != Some(&b'\n') && (length as u64) < LONGEST {
                    verdict.remark(FileNote::new("the last line was cut off, as a kill does", "").at(offset));
                } else if !is_object && bad < 100 {
                    bad += 1;
                    verdict.problem(FileNote::new("not a JSON object", "the other lines can be used").at(offset));
                }
                offset += length as u64;
            }
            Err(error) => return verdict.problem(FileNote::new(error.to_string(), "").at(offset)),
        }
    }
}
