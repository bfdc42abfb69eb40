//! Reading all calls in the order of time, over all threads and processes.
//!
//! The first pass reads every file for what it says about its process and for the offsets of each ring's slots. The second
//! pass [merges](crate::interpreter::merge) the rings, one block of each ring at a time. Memory grows with the number of
//! rings, not with their length.

use super::trace::{Trace, learn};
use super::{Cause, FileError, TraceSet};
use crate::interpreter::merge::{Merger, RingKey};
use crate::interpreter::visitor::CallVisitor;
use crate::trace_set::process::From;
use aclshim_trace::record::slot::Words;
use aclshim_trace::segment::format::{BlockHead, kind};
use aclshim_trace::segment::reader::{Block, SegmentReader};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Where slots of a ring are stored.
enum Piece {
    /// In a block of a trace, at this byte.
    Block { file: usize, offset: u64 },
    /// In memory: they come from a ring.
    Slots(BlockHead, Vec<Words>),
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

/// The slots of each ring that are not read yet.
type Unread = BTreeMap<RingKey, VecDeque<Piece>>;

impl TraceSet {
    /// Reads all of `paths` to the end, and shows every call in the order in which they began.
    pub(super) fn read_by_time<W: CallVisitor + ?Sized>(
        &mut self,
        paths: &[impl AsRef<Path>],
        visitor: &mut W,
    ) -> Result<(), FileError> {
        let mut unread = Unread::new();
        let mut files = Files::default();
        let sources = self.sources(paths)?;
        for trace in sources.traces {
            match self.index(&trace, files.paths.len(), &mut unread) {
                Err(cause) => self.failed(paths, trace, cause)?,
                Ok(()) => files.paths.push(trace),
            }
        }
        for snapshot in sources.rings {
            self.process_of(&snapshot);
            self.names_of(&snapshot);
            let process = self.number(&snapshot.origin);
            for (head, slots) in snapshot.runs {
                unread.entry((process, head.ring)).or_default().push_back(Piece::Slots(head, slots));
            }
        }
        let mut merger = Merger::offline(visitor.wants_merged_events());
        unread.keys().for_each(|ring| merger.add_ring(*ring));
        while let Some(ring) = merger.slowest() {
            match unread.get_mut(&ring).and_then(VecDeque::pop_front) {
                Some(piece) => self.piece(ring, piece, &mut files, &mut merger),
                None => {
                    self.processes[ring.0].finish(ring.1, &mut merger);
                    merger.end(ring);
                }
            }
            merger.release(|(process, ring), thread| self.processes[process].whose(ring, thread), visitor);
        }
        Ok(())
    }

    /// Takes over what a trace says about its process, and notes the offsets of its calls.
    fn index(&mut self, path: &Path, file: usize, unread: &mut Unread) -> Result<(), Cause> {
        let Trace { mut reader, process, moment } = self.open(path)?;
        loop {
            match reader.next_block() {
                Ok(Some(block)) if block.head.kind == kind::SLOTS => {
                    let piece = Piece::Block { file, offset: reader.began() };
                    unread.entry((process, block.head.ring)).or_default().push_back(piece);
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

    /// Reads the next slots of a ring.
    fn piece(&mut self, ring: RingKey, piece: Piece, files: &mut Files, merger: &mut Merger) {
        let process = &mut self.processes[ring.0];
        match piece {
            Piece::Slots(head, slots) => process.add(&head, &slots, From::Ring, merger),
            Piece::Block { file, offset } => {
                let Some(block) = files.block(file, offset) else {
                    let path = files.paths.get(file).cloned().unwrap_or_default();
                    return self.trouble(path, Cause::BlockVanished { offset });
                };
                process.add(&block.head, &block.as_slots(), From::Trace, merger);
                if let Some(progress) = &mut self.options.progress {
                    progress(block.payload.len() as u64);
                }
            }
        }
        merger.read_to_last(ring);
    }
}
