//! A clean copy of a damaged trace.

use super::copy::SegmentCopy;
use super::coverage::{Coverage, numbers};
use crate::files;
use crate::output::progress;
use aclshim_collect::trace_set::process_key;
use aclshim_trace::origin::Origin;
use aclshim_trace::segment::format::{BLOCK_MAGIC, BlockHead, HEAD, Preamble, SLOT, kind};
use aclshim_trace::segment::order::SegmentOrder;
use aclshim_trace::segment::reader::{Damage, SegmentReader};
use aclshim_trace::version1::present_header;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::BufReader;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What a clean copy holds.
#[derive(Debug, Default)]
pub struct RecoveredTrace {
    /// The process id.
    pub pid: u32,
    /// Number of intact blocks.
    pub blocks: u64,
    /// Outermost calls in them.
    pub calls: u64,
    /// Bytes that were passed over.
    pub lost: u64,
    /// Slots between good blocks that are missing.
    pub missing: u64,
    /// What else is worth knowing.
    pub remarks: Vec<String>,
}

/// Copies the intact blocks of a trace to a new, valid file in which missing slots are recorded as lost.
pub fn clean(from: &Path, to: &Path) -> Result<RecoveredTrace> {
    let name = from.display();
    let file = progress::reading(from, files::open(from).with_context(|| name.to_string())?);
    let file = BufReader::with_capacity(1 << 20, file);
    let (mut reader, stop) = SegmentReader::open_anyway(file).with_context(|| name.to_string())?;
    let mut copied = RecoveredTrace::default();
    let mut header = reader.header.clone();
    if stop.is_some() {
        header = match better_header(from) {
            Some((better, whence)) => {
                copied.remarks.push(format!("the header is damaged; it was taken from {whence}"));
                better
            }
            // One wrong bit among thousands of bytes most likely stands in a field that is not used.
            None => {
                let what = "the header is damaged, and taken as it is; what it says of the process may be wrong";
                copied.remarks.push(what.into());
                header
            }
        };
    }
    copied.pid = Origin::from_bytes(&header).map_or(0, |origin| origin.pid);
    // Numbered as the first segment of a drain, so that none is expected before it; the count of evicted calls stays.
    let raw = reader.preamble;
    let evicted = if stop.is_some() { 0 } else { raw.evicted };
    let mut first_ns = if stop.is_some() { 0 } else { raw.first_ns };
    let starts = Starts::of(from, &header, &raw, stop.is_some());
    let before = if starts.are_zero() { 0 } else { raw.before.max(HEAD as u64) };
    let mut copy: Option<SegmentCopy> = None;
    let mut covered = Coverage::default();
    let mut totals = [0u64; 3];
    let mut last = BlockHead::default();
    while let Some(block) = reader.by_ref().find_map(Result::ok) {
        let head = block.head;
        if first_ns == 0 {
            first_ns = head.realtime_ns;
        }
        let copy = match &mut copy {
            Some(copy) => copy,
            none => none.insert(SegmentCopy::begin(to, &Preamble { segment: 0, first_ns, evicted, before }, &header)?),
        };
        covered.add(&block);
        if head.kind == kind::TOTALS {
            let words = block.payload.as_chunks().0;
            totals = [0, 1, 2].map(|at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word)).max(totals[at]));
        }
        match head.kind {
            kind::END => {}
            kind::HEADER => copy.block(&head, &present_header(&block.payload))?,
            _ => copy.block(&head, &block.payload)?,
        }
        if head.kind == kind::SLOTS {
            copied.calls += u64::from(head.flags);
        }
        copied.blocks += 1;
        last = head;
    }
    copied.lost = reader.lost();
    let Some(mut copy) = copy else { bail!("{name}: there is no good block in it") };
    let damaged = damaged_heads(from, reader.damages());
    for (ring, lost) in covered.gaps(&starts, &damaged) {
        let slots = lost.end - lost.start;
        copied.missing = copied.missing.saturating_add(slots);
        let head = BlockHead { kind: kind::LOSS, ring, first: lost.start, thread: 0, flags: 0, ..last };
        copy.block(&head, &slots.to_le_bytes())?;
    }
    // The block with the totals, or those that they are the sum of, may be among what is damaged.
    totals[0] = totals[0].max(covered.lost);
    let lost = covered.overwritten.saturating_add(copied.missing);
    totals[1] =
        if starts.are_zero() { totals[1].max(lost) } else { totals[1].saturating_add(copied.missing).max(lost) };
    let head = BlockHead { kind: kind::TOTALS, ring: 0, first: 0, thread: 0, flags: 0, ..last };
    copy.block(&head, totals.map(u64::to_le_bytes).as_flattened())?;
    copy.end(&last)?;
    copy.finish()?;
    Ok(copied)
}

/// The numbers with which the rings of a segment begin.
enum Starts {
    /// All at 0: nothing was before.
    Zero,
    /// Where the older segments of the process end, which lie beside it.
    At(BTreeMap<u32, u64>),
    /// Unknown: the older segments are not here.
    Unknown,
}

impl Starts {
    fn of(path: &Path, header: &[u8], preamble: &Preamble, is_damaged: bool) -> Self {
        let mut ends: Option<BTreeMap<u32, u64>> = None;
        let open = |path: &Path| Some(BufReader::with_capacity(1 << 20, files::open(path).ok()?));
        let own = open(path).and_then(|file| SegmentReader::open_anyway(file).ok());
        let turn = own.map_or(SegmentOrder::new(preamble, None), |(mut reader, _)| SegmentOrder::of(&mut reader));
        let whose = |header: &[u8]| Origin::from_bytes(header).map(|origin| process_key(&origin));
        let others =
            path.parent().and_then(|folder| files::with_extension(folder, "acltrace").ok()).unwrap_or_default();
        for other in others.iter().filter(|other| *other != path) {
            let read = || open(other).and_then(|file| SegmentReader::open(file).ok());
            let Some(mut reader) = read().filter(|reader| whose(&reader.header) == whose(header)) else { continue };
            if SegmentOrder::of(&mut reader) >= turn {
                continue;
            }
            let ends = ends.get_or_insert_default();
            for block in read().into_iter().flatten().filter_map(Result::ok) {
                let end = numbers(&block).map_or(0, |numbers| numbers.end);
                let known = ends.entry(block.head.ring).or_default();
                *known = end.max(*known);
            }
        }
        // Of a damaged preamble one word may be wrong.
        let is_first = match is_damaged {
            true => preamble.segment == 0 || preamble.before == 0,
            false => preamble.segment == 0 && preamble.evicted == 0 && preamble.before == 0,
        };
        match ends {
            Some(ends) => Starts::At(ends),
            None if is_first => Starts::Zero,
            None => Starts::Unknown,
        }
    }

    fn are_zero(&self) -> bool {
        matches!(self, Starts::Zero)
    }

    fn of_ring(&self, ring: u32) -> Option<u64> {
        match self {
            Starts::Zero => Some(0),
            Starts::At(ends) => Some(ends.get(&ring).copied().unwrap_or(0)),
            Starts::Unknown => None,
        }
    }
}

impl Coverage {
    /// Numbers that no good block accounts for: those before and between good blocks, and those behind the last one
    /// that heads of `damaged` blocks name.
    fn gaps(&mut self, starts: &Starts, damaged: &[BlockHead]) -> Vec<(u32, Range<u64>)> {
        let mut gaps = Vec::new();
        let mut ends = BTreeMap::new();
        for (ring, ranges) in &mut self.rings {
            ranges.sort_by_key(|range| (range.start, range.end));
            let first = ranges.first().map_or(0, |range| range.start);
            let mut end = starts.of_ring(*ring).unwrap_or(first);
            for range in ranges {
                if range.start > end {
                    gaps.push((*ring, end..range.start));
                }
                end = end.max(range.end);
            }
            ends.insert(*ring, end);
        }
        // The heads may be damaged too: only what goes on where the ring has ended is believed, and no more than the
        // damaged blocks can have held.
        let held = damaged.iter().fold(0u64, |sum, head| sum + u64::from(head.slots));
        let found = gaps.iter().fold(0u64, |sum, (_, gap)| sum.saturating_add(gap.end - gap.start));
        let mut left = held.saturating_sub(found);
        for head in damaged {
            let end = ends.get(&head.ring).copied().or_else(|| starts.of_ring(head.ring));
            if end == Some(head.first) && u64::from(head.slots) <= left {
                left -= u64::from(head.slots);
                let behind = head.first.saturating_add(head.slots.into());
                gaps.push((head.ring, head.first..behind));
                ends.insert(head.ring, behind);
            }
        }
        gaps
    }
}

/// The heads of blocks of slots among what was passed over, as far as they make sense.
fn damaged_heads(path: &Path, damages: &[Damage]) -> Vec<BlockHead> {
    let Ok(file) = files::open(path) else { return Vec::new() };
    let mut heads = Vec::new();
    // What is cut off may have been written once more by the next drain.
    for damage in damages.iter().filter(|damage| !damage.is_cut) {
        let mut at = damage.offset;
        let mut bytes = [0; HEAD];
        while at + (HEAD as u64) < damage.end && file.read_exact_at(&mut bytes, at).is_ok() {
            let head = BlockHead::from_bytes(&bytes);
            let end = at + HEAD as u64 + u64::from(head.bytes);
            if !bytes.starts_with(&BLOCK_MAGIC) || end > damage.end || head.bytes as usize / SLOT != head.slots as usize
            {
                break;
            }
            if head.kind == kind::SLOTS {
                heads.push(head);
            }
            at = end;
        }
    }
    heads
}

/// An intact header of the process: a copy later in the file, or that of another of its segments.
fn better_header(path: &Path) -> Option<(Vec<u8>, String)> {
    let (reader, _) = SegmentReader::open_anyway(BufReader::new(files::open(path).ok()?)).ok()?;
    let inside = reader.filter_map(Result::ok).find(|block| block.head.kind == kind::HEADER);
    if let Some(block) = inside {
        return Some((present_header(&block.payload).into_owned(), "a later block".into()));
    }
    let stem = |path: &Path| {
        let name = path.file_stem()?.to_str()?.to_owned();
        // `.1`, `+2` and `.1+2` are numbers of segments and turns.
        Some(name.split_once('.').or_else(|| name.split_once('+')).map_or(name.clone(), |(stem, _)| stem.to_owned()))
    };
    let others = files::with_extension(path.parent()?, "acltrace").ok()?;
    others.into_iter().filter(|other| other != path && stem(other) == stem(path)).find_map(|other| {
        let reader = SegmentReader::open(files::open(&other).ok()?).ok()?;
        Some((reader.header, other.display().to_string()))
    })
}
