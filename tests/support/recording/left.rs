//! Everything that processes have left, read back slot by slot.

use super::traces;
use crate::support::Output;
use aclshim_collect::format::kind;
use aclshim_collect::segment_reader::SegmentReader;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, Reading, RingFile};
use aclshim_trace::record::{Call, Entry, decode};
use aclshim_trace::slot::Words;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
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
    /// Slots that were overwritten, as is said.
    pub overwritten: u64,
    /// Slots that are in the trace, and in the ring as well.
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
            twice: 0,
            evicted: 0,
            torn: 0,
        }
    }
}

/// Reads all traces in `out` and all rings in `rings`.
pub fn left(out: &Path, rings: &Path) -> Vec<Left> {
    let mut processes: BTreeMap<(u32, u64), Left> = BTreeMap::new();
    let open = |path: PathBuf| {
        let file = File::open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        match SegmentReader::open(BufReader::with_capacity(1 << 20, file)) {
            Ok(trace) => Some(trace),
            // Whoever is killed between making a file and writing its first bytes leaves an empty one.
            Err(stop) => (length > 0).then(|| panic!("{}: {stop}", path.display())),
        }
    };
    let mut traces: Vec<_> = traces(out).into_iter().filter_map(open).collect();
    traces.sort_by_key(|trace| (trace.preamble.first_ns, trace.preamble.segment));
    for mut trace in traces {
        let origin = Origin::from_bytes(&trace.header).expect("a whole header");
        let left = processes.entry((origin.pid, origin.born_ns)).or_insert_with(|| Left::new(origin));
        left.evicted = left.evicted.max(trace.preamble.evicted);
        while let Some(block) = trace.next_block().unwrap_or_else(|_| {
            left.torn += 1;
            None
        }) {
            let words: Vec<u64> = block.payload.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            match block.head.kind {
                kind::SLOTS => {
                    let pieces = left.rings.entry(block.head.ring).or_default();
                    let thread = Some(block.head.thread).filter(|thread| *thread != 0);
                    let piece = Piece { first: block.head.first, slots: block.slots().collect(), thread };
                    let end = pieces.last().map_or(0, Piece::end);
                    assert!(piece.first >= end, "slot {} is in the trace twice", piece.first);
                    pieces.push(piece);
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
                let run = ring.read(from, Reading::Look, usize::MAX);
                assert!(run.next > from, "reading goes on");
                from = run.next;
                left.overwritten += run.overwritten;
                // Whoever is killed between writing a block and giving its slots back leaves them twice.
                let known = pieces.last().map_or(0, Piece::end).saturating_sub(run.first).min(run.slots.len() as u64);
                left.twice += known;
                let slots = run.slots[known as usize..].to_vec();
                if !slots.is_empty() {
                    let first = run.first + known;
                    pieces.push(Piece { first, slots, thread: (first >= since).then_some(owner) });
                }
            }
        }
    }
    processes.into_values().collect()
}

/// All records of the only process, in the order of its rings.
pub fn entries(output: &Output) -> Vec<Entry> {
    let all = left(&output.scratch.join("out"), &output.scratch);
    let [left] = &all[..] else { panic!("{} processes", all.len()) };
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
    let calls = entries(output).into_iter();
    calls.filter_map(|entry| if let Entry::Call(call) = entry { Some(call) } else { None }).collect()
}
