//! Reading all calls in the order of time, over all threads and processes.
//!
//! The first pass reads every file for what it says about its process and for the offsets of each ring's slots. The second
//! pass merges the rings by the begin of their next calls, one block of each ring at a time. Memory grows with the number of
//! rings, not with their length.

use super::{Cause, FileError, Trace, TraceSet, add_slots, learn};
use crate::interpreter::visitor::{AnnotationView, CallView, CallVisitor, Lost};
use crate::trace_set::process::From;
use aclshim_facts::Function;
use aclshim_trace::record::Call;
use aclshim_trace::record::annotation::Annotation;
use aclshim_trace::record::slot::Words;
use aclshim_trace::segment::format::kind;
use aclshim_trace::segment::reader::{Block, SegmentReader};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Where slots of a ring are stored.
enum Piece {
    /// In a block of a trace, at this byte.
    Block { file: usize, offset: u64 },
    /// In memory: they come from a ring.
    Slots { first: u64, slots: Vec<Words> },
}

/// What is to be shown, taken out of its block.
#[allow(clippy::large_enum_variant)] // nearly all of them are calls
enum Item {
    Call { thread: u32, function: Function, call: Call, rules: u128, is_left: bool },
    Lost { thread: u32, calls: u64, notes: u64, from_ns: Option<u64>, to_ns: Option<u64> },
    AnnotationView { thread: u32, ticks: u64, what: Annotation },
}

/// Maximum number of files that are open at a time.
const MOST_OPEN: usize = 64;
/// Size of each file's read buffer.
const BUFFER: usize = 1 << 17;

/// The traces that blocks are read from in any order.
#[derive(Default)]
struct Files {
    paths: Vec<PathBuf>,
    /// The open ones, most recently used first.
    open: VecDeque<(usize, SegmentReader<BufReader<File>>)>,
}

impl Files {
    /// The block at a byte of a file.
    fn block(&mut self, file: usize, offset: u64) -> Option<Block> {
        match self.open.iter().position(|(number, _)| *number == file) {
            Some(0) => {}
            Some(at) => {
                let used = self.open.remove(at)?;
                self.open.push_front(used);
            }
            None => {
                self.open.truncate(MOST_OPEN - 1);
                let opened = File::open(self.paths.get(file)?).ok()?;
                self.open.push_front((file, SegmentReader::open(BufReader::with_capacity(BUFFER, opened)).ok()?));
            }
        }
        let (_, reader) = self.open.front_mut()?;
        reader.go_to(offset).ok()?;
        reader.next_block().ok().flatten()
    }
}

/// The part of a process's ring that is not shown yet.
#[derive(Default)]
struct Lane {
    pieces: VecDeque<Piece>,
    ready: VecDeque<(u64, Item)>,
    is_finished: bool,
}

/// Collects what one block shows.
struct Collect<'a>(&'a mut VecDeque<(u64, Item)>);

impl CallVisitor for Collect<'_> {
    fn call(&mut self, seen: &CallView<'_>) {
        let CallView { whose, function, call, rules, is_left } = *seen;
        let item = Item::Call { thread: whose.thread, function, call: call.clone(), rules, is_left };
        self.0.push_back((seen.time_ns().unwrap_or(0), item));
    }

    fn lost(&mut self, lost: &Lost<'_>) {
        let Lost { whose, calls, notes, from_ns, to_ns } = *lost;
        self.0.push_back((from_ns.unwrap_or(0), Item::Lost { thread: whose.thread, calls, notes, from_ns, to_ns }));
    }

    fn remark(&mut self, remark: &AnnotationView<'_>) {
        let AnnotationView { whose, ticks, what } = *remark;
        let item = Item::AnnotationView { thread: whose.thread, ticks, what: what.clone() };
        self.0.push_back((remark.time_ns().unwrap_or(0), item));
    }
}

impl TraceSet {
    /// Reads all of `paths` to the end, and shows every call in the order in which they began.
    pub(super) fn read_by_time<W: CallVisitor + ?Sized>(
        &mut self,
        paths: &[impl AsRef<Path>],
        visitor: &mut W,
    ) -> Result<(), FileError> {
        let mut lanes: BTreeMap<(usize, u32), Lane> = BTreeMap::new();
        let mut files = Files::default();
        let sources = self.sources(paths)?;
        for trace in sources.traces {
            match self.index(&trace, files.paths.len(), &mut lanes) {
                Err(cause) => self.failed(paths, trace, cause)?,
                Ok(()) => files.paths.push(trace),
            }
        }
        for snapshot in sources.rings {
            self.process_of(&snapshot);
            self.names_of(&snapshot);
            let process = self.number(&snapshot.origin);
            for (ring, first, slots) in snapshot.runs {
                lanes.entry((process, ring)).or_default().pieces.push_back(Piece::Slots { first, slots });
            }
        }
        let mut heap = BinaryHeap::new();
        for (key, lane) in &mut lanes {
            heap.extend(self.refill(*key, lane, &mut files).map(|time| Reverse((time, *key))));
        }
        while let Some(Reverse((_, key))) = heap.pop() {
            let Some(lane) = lanes.get_mut(&key) else { continue };
            // Until another ring has the earliest call.
            let until = heap.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
            while lane.ready.front().is_some_and(|(time, _)| *time <= until) {
                if let Some((_, item)) = lane.ready.pop_front() {
                    self.show(key, item, visitor);
                }
            }
            heap.extend(self.refill(key, lane, &mut files).map(|time| Reverse((time, key))));
        }
        Ok(())
    }

    /// Takes over what a trace says about its process, and notes the offsets of its calls.
    fn index(&mut self, path: &Path, file: usize, lanes: &mut BTreeMap<(usize, u32), Lane>) -> Result<(), Cause> {
        let Trace { mut reader, process, moment } = self.open(path)?;
        loop {
            match reader.next_block() {
                Ok(Some(block)) if block.head.kind == kind::SLOTS => {
                    let piece = Piece::Block { file, offset: reader.began() };
                    lanes.entry((process, block.head.ring)).or_default().pieces.push_back(piece);
                    self.processes[process].block(&block.head);
                    self.processes[process].names(&block);
                }
                Ok(Some(block)) => learn(&mut self.processes[process], &block, moment),
                Ok(None) => break,
                Err(_) => {} // the next good block is behind it
            }
        }
        self.damaged(path, &reader);
        Ok(())
    }

    /// Reads a ring until a call is ready, and returns when that call began.
    fn refill(&mut self, (process, ring): (usize, u32), lane: &mut Lane, files: &mut Files) -> Option<u64> {
        while lane.ready.is_empty() {
            let process = self.processes.get_mut(process)?;
            let visitor = &mut Collect(&mut lane.ready);
            match lane.pieces.pop_front() {
                Some(Piece::Slots { first, slots }) => process.add(ring, first, &slots, From::Ring, visitor),
                Some(Piece::Block { file, offset }) => {
                    let Some(block) = files.block(file, offset) else {
                        let path = files.paths.get(file).cloned().unwrap_or_default();
                        self.trouble(path, Cause::BlockVanished { offset });
                        continue;
                    };
                    add_slots(process, &block.head, &block.slots().collect::<Vec<_>>(), visitor);
                    if let Some(progress) = &mut self.options.progress {
                        progress(block.payload.len() as u64);
                    }
                }
                None if lane.is_finished => return None,
                None => {
                    process.finish(ring, visitor);
                    lane.is_finished = true;
                }
            }
        }
        lane.ready.front().map(|(time, _)| *time)
    }

    fn show<W: CallVisitor + ?Sized>(&self, (process, ring): (usize, u32), item: Item, visitor: &mut W) {
        let process = &self.processes[process];
        match item {
            Item::Call { thread, function, call, rules, is_left } => {
                visitor.call(&CallView { whose: process.whose(ring, thread), function, call: &call, rules, is_left });
            }
            Item::Lost { thread, calls, notes, from_ns, to_ns } => {
                visitor.lost(&Lost { whose: process.whose(ring, thread), calls, notes, from_ns, to_ns });
            }
            Item::AnnotationView { thread, ticks, what } => {
                visitor.remark(&AnnotationView { whose: process.whose(ring, thread), ticks, what: &what });
            }
        }
    }
}
