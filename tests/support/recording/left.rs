//! Everything that processes have left, read back slot by slot.

use super::traces;
use crate::support::Output;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, ReadMode, RingFile};
use aclshim_trace::record::slot::Words;
use aclshim_trace::record::{Call, Entry, decode};
use aclshim_trace::segment::format::{MAGIC, kind};
use aclshim_trace::segment::reader::{SegmentError, SegmentErrorKind, SegmentReader};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Slots that follow each other.
pub struct Piece {
    /// The number of the first.
    pub first: u64,
    /// The slots.
    pub slots: Vec<Words>,
    /// The thread, as the block in the trace or the ring says.
    pub thread: Option<u32>,
}

impl Piece {
    /// The number behind the last.
    pub fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }
}

/// Everything that is left of one process.
pub struct Left {
    /// Who it was.
    pub origin: Origin,
    /// By ring, in order.
    pub rings: BTreeMap<u32, Vec<Piece>>,
    /// By ring: how many lost calls in-band records tell of, as the ring itself says.
    pub told: BTreeMap<u32, u64>,
    /// Calls that were not recorded, as is said.
    pub not_recorded: u64,
    /// Slots that were overwritten before they were given back, as is said.
    pub overwritten: u64,
    /// Of these, slots that had been written to the trace.
    pub written_before: u64,
    /// Slots that are in two traces, or in the trace and in the ring.
    pub twice: u64,
    /// Calls that went with older traces, as is said.
    pub evicted: u64,
    /// Traces that end in the middle of a block.
    pub torn: u64,
}

impl Left {
    fn new(origin: Origin) -> Self {
        Self {
            origin,
            rings: BTreeMap::new(),
            told: BTreeMap::new(),
            not_recorded: 0,
            overwritten: 0,
            written_before: 0,
            twice: 0,
            evicted: 0,
            torn: 0,
        }
    }
}

/// Everything that is left of all processes.
pub struct Remains {
    /// One by one.
    pub processes: Vec<Left>,
    /// Traces that end within their beginning: it cannot be known whose they are.
    pub cut: u64,
}

/// Opens a trace. `None`: its writer was killed within its beginning. There is no record in it, and its slots were
/// not given back.
pub fn open(path: &Path) -> Result<Option<SegmentReader<BufReader<File>>>, SegmentError> {
    match SegmentReader::open(BufReader::with_capacity(1 << 20, File::open(path).unwrap())) {
        Ok(trace) => Ok(Some(trace)),
        Err(SegmentError { kind: SegmentErrorKind::Short { .. }, .. }) => Ok(None),
        // Too short even to say what it is.
        Err(_) if MAGIC.starts_with(&fs::read(path).unwrap()) => Ok(None),
        Err(stop) => Err(stop),
    }
}

/// Reads all traces in `out` and all rings in `rings`.
#[track_caller]
pub fn left(out: &Path, rings: &Path) -> Remains {
    let mut processes: BTreeMap<(u32, u64), Left> = BTreeMap::new();
    let (mut opened, mut cut) = (Vec::new(), 0);
    for path in traces(out) {
        match open(&path) {
            Ok(Some(trace)) => opened.push((trace, path)),
            Ok(None) => cut += 1,
            Err(stop) => damaged(&path, &stop),
        }
    }
    opened.sort_by_key(|(trace, _)| (trace.preamble.first_ns, trace.preamble.segment));
    for (mut trace, path) in opened {
        let origin = Origin::from_bytes(&trace.header).expect("a whole header");
        let left = processes.entry((origin.pid, origin.born_ns)).or_insert_with(|| Left::new(origin));
        left.evicted = left.evicted.max(trace.preamble.evicted);
        while let Some(block) = trace.next_block().unwrap_or_else(|stop| match stop.kind {
            SegmentErrorKind::Short { .. } => {
                left.torn += 1;
                None
            }
            _ => damaged(&path, &stop),
        }) {
            let words: Vec<u64> = block.payload.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            match block.head.kind {
                kind::SLOTS => {
                    let pieces = left.rings.entry(block.head.ring).or_default();
                    let thread = Some(block.head.thread).filter(|thread| *thread != 0);
                    left.twice +=
                        add(pieces, Piece { first: block.head.first, slots: block.slots().collect(), thread });
                }
                kind::LOSS => {
                    let pieces = left.rings.entry(block.head.ring).or_default();
                    left.written_before += known(pieces, block.head.first, words[0]);
                }
                kind::TOTALS => {
                    left.not_recorded = left.not_recorded.max(words[0]);
                    left.overwritten = left.overwritten.max(words[1]);
                }
                _ => {}
            }
        }
    }
    for path in reader::files(rings).unwrap() {
        let Ok(mut file) = RingFile::open(&path) else { continue };
        let origin = Origin::new(file.header());
        if origin.dir != out {
            continue;
        }
        let left = processes.entry((origin.pid, origin.born_ns)).or_insert_with(|| Left::new(origin));
        (left.not_recorded, left.overwritten) = (file.header().not_recorded.load(Ordering::Relaxed), 0);
        for number in 0..file.look_for_rings() {
            let Some(ring) = file.ring(number) else { continue }; // killed while it was made
            let load = |of: &aclshim_trace::sync::AtomicU64| of.load(Ordering::Relaxed);
            left.not_recorded += load(&ring.control.not_recorded);
            left.overwritten += load(&ring.control.overwritten);
            left.told.insert(number as u32, load(&ring.control.told));
            let pieces = left.rings.entry(number as u32).or_default();
            let (owner, since) = (ring.control.owner.load(Ordering::Relaxed), load(&ring.control.since));
            let mut from = load(&ring.control.drained);
            while from < ring.end(from) {
                let run = ring.read(from, ReadMode::Peek, usize::MAX);
                assert!(run.next > from, "reading goes on");
                left.overwritten += run.overwritten;
                left.written_before += known(pieces, from, run.overwritten);
                from = run.next;
                let thread = (run.first >= since).then_some(owner);
                left.twice += add(pieces, Piece { first: run.first, slots: run.slots, thread });
            }
        }
    }
    Remains { processes: processes.into_values().collect(), cut }
}

/// How many of the slots from number `first` on are there.
fn known(pieces: &[Piece], first: u64, slots: u64) -> u64 {
    let common = |piece: &Piece| piece.end().min(first + slots).saturating_sub(piece.first.max(first));
    pieces.iter().map(common).sum()
}

/// Adds what is new in a piece; how many slots are not. A drain that is killed between writing a block and giving its slots
/// back leaves them in the ring as well, and the next drain writes them once more.
fn add(pieces: &mut Vec<Piece>, mut piece: Piece) -> u64 {
    let end = pieces.last().map_or(0, Piece::end);
    let known = end.saturating_sub(piece.first).min(piece.slots.len() as u64);
    piece.slots.drain(..known as usize);
    piece.first += known;
    if known > 0 {
        piece.thread = None; // that was at its beginning
    }
    if !piece.slots.is_empty() {
        pieces.push(piece);
    }
    known
}

/// A writer that is killed does not leave such a file.
#[track_caller]
fn damaged(path: &Path, stop: &SegmentError) -> ! {
    panic!("{}: {stop}", path.display())
}

/// All records of the only process, in the order of its rings.
pub fn entries(output: &Output) -> Vec<Entry> {
    let all = left(&output.scratch.join("out"), &output.scratch).processes;
    let [left] = &all[..] else { panic!("{} processes", all.len()) };
    entries_of(left)
}

/// How many slots are missing before the last of each ring.
pub fn missing(output: &Output) -> u64 {
    let jumped = |piece: &Piece| match piece.slots.last().and_then(|slot| decode(&[*slot], piece.end() - 1)) {
        Some((Entry::Skip { to, .. }, _)) => to - piece.end(),
        _ => 0,
    };
    let of = |pieces: &Vec<Piece>| {
        let slots: u64 = pieces.iter().map(|piece| piece.slots.len() as u64 + jumped(piece)).sum();
        pieces.last().map_or(0, |last| last.end() + jumped(last)) - slots
    };
    let all = left(&output.scratch.join("out"), &output.scratch).processes;
    all.iter().flat_map(|left| left.rings.values()).map(of).sum()
}

fn entries_of(left: &Left) -> Vec<Entry> {
    let mut entries = Vec::new();
    for piece in left.rings.values().flatten() {
        let mut at = 0;
        while let Some((entry, count)) = decode(&piece.slots[at..], piece.first + at as u64) {
            entries.push(entry);
            at += count;
        }
    }
    entries
}

/// Of these the calls.
pub fn calls(output: &Output) -> Vec<Call> {
    calls_among(entries(output))
}

/// The calls of all processes.
pub fn calls_of_all(output: &Output) -> Vec<Call> {
    let all = left(&output.scratch.join("out"), &output.scratch).processes;
    all.iter().flat_map(|left| calls_among(entries_of(left))).collect()
}

fn calls_among(entries: Vec<Entry>) -> Vec<Call> {
    entries.into_iter().filter_map(|entry| if let Entry::Call(call) = entry { Some(call) } else { None }).collect()
}
