//! Reading a long trace with two threads, each of which reads blocks and adds up their calls.
//!
//! Data that one core has read need not move to the other. The threads take turns twice: at reading, because the offset of a
//! block is known only from the blocks before it, and at all work that depends on the order of blocks. They check slots and
//! add up calls of the common kind, which nearly all calls are, without waiting for each other.
//!
//! Damage ends parallel reading: behind the last intact block the trace is read with one thread.

use super::trace::{Progress, learn};
use crate::findings::quick_check::Run;
use crate::interpreter::side::Side;
use crate::interpreter::visitor::ParallelVisitor;
use crate::trace_set::process::{From, Process};
use aclshim_trace::record::slot::Words;
use aclshim_trace::segment::format::{BlockHead, HEAD, SLOT, kind};
use aclshim_trace::segment::reader::{Block, BlockChecksum, SegmentErrorKind, as_slots, expected};
use std::borrow::Cow;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Number of bytes that one thread reads at once, extended to the end of a block: small enough to stay in a core's cache until
/// the calls are added up, large enough to make up for waiting for the other thread.
const AT_ONCE: usize = 256 << 10;

/// The state that the threads use in turn, for all work that depends on the order of blocks.
pub struct Turn<'a, W> {
    /// The process that the trace is of.
    pub process: &'a mut Process,
    /// The visitor that is shown its calls.
    pub visitor: &'a mut W,
    /// Reports how far the trace was read.
    pub progress: Progress<'a>,
    /// The trace's last moment: see [`learn`].
    pub moment: [u64; 3],
    /// Offset behind the last block that was taken.
    pub good: u64,
    /// Number of blocks that were taken.
    pub blocks: u64,
}

impl<W: ParallelVisitor> Turn<'_, W> {
    /// Takes a block, except for the calls that are ceded to the worker: their turn is between the two turns used here.
    fn take(&mut self, piece: &mut Piece, bytes: &[u8]) {
        let (head, turn) = (piece.head, 3 * self.blocks);
        self.blocks += 1;
        if head.kind != kind::SLOTS {
            let payload = bytes[piece.place.start + HEAD..piece.place.end].to_vec();
            return learn(self.process, &Block { head, payload }, self.moment);
        }
        let slots = piece.slots(bytes);
        self.visitor.at(turn);
        self.process.next_in_file(head.ring, self.visitor);
        let thread = self.process.cede(&head, &slots, &piece.run, self.visitor);
        piece.ceded = thread.map(|thread| (thread, turn + 1));
        self.visitor.at(turn + 2);
        let ceded = if thread.is_some() { piece.run.count } else { 0 };
        let rest = BlockHead { first: head.first.saturating_add(ceded as u64), ..head };
        self.process.add(&rest, &slots[ceded..], From::Trace, self.visitor);
        self.process.block(&head);
    }
}

/// Takes the intact blocks from `turn.good` on, and returns the offset behind the last of them.
pub fn read<W: ParallelVisitor>(file: &File, turn: Turn<'_, W>) -> u64 {
    let [mut here, mut there] = [(); 2].map(|()| Worker::new(file, &turn));
    let ([reads_here, reads_there], [takes_here, takes_there]) = (relays(turn.good), relays(()));
    let turn = Mutex::new(turn);
    thread::scope(|scope| {
        let beside = || there.work(&turn, reads_there, takes_there);
        // Without a second thread the caller reads the whole trace.
        if thread::Builder::new().name("aclshim-read".into()).spawn_scoped(scope, beside).is_ok() {
            here.work(&turn, reads_here, takes_here);
        }
    });
    let Turn { process, visitor, good, .. } = turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    visitor.join([here, there].map(|worker| worker.end(process)).into());
    good
}

/// A token that two threads hand to each other: the one that holds it has its turn.
struct Relay<T> {
    from: Receiver<T>,
    to: Sender<T>,
}

/// The two ends of a relay, the first of which holds the token. When one is dropped, the other stops waiting.
fn relays<T>(first: T) -> [Relay<T>; 2] {
    let ((to_one, from_other), (to_other, from_one)) = (channel(), channel());
    _ = to_one.send(first);
    [Relay { from: from_other, to: to_other }, Relay { from: from_one, to: to_one }]
}

/// A block of a batch.
struct Piece {
    head: BlockHead,
    /// Where its head and its payload are in the bytes of the batch.
    place: Range<usize>,
    /// The calls of the common kind that it begins with.
    run: Run,
    /// Thread and turn of these calls, if they were ceded.
    ceded: Option<(u32, u64)>,
}

impl Piece {
    fn slots<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [Words]> {
        as_slots(&bytes[self.place.start + HEAD..self.place.end])
    }

    /// Checks its sum and finds its calls of the common kind; returns `false` if the block is damaged.
    fn look(&mut self, bytes: &[u8], aside: &Side) -> bool {
        let Some((head, payload)) = bytes[self.place.clone()].split_first_chunk() else { return false };
        let mut proof = BlockChecksum::of_block(head, payload.len());
        if self.head.kind != kind::SLOTS {
            return proof.holds(payload);
        }
        let slots = as_slots(payload);
        self.run = aside.look(&slots, |slot| proof.add_slot(slot));
        proof.holds(&payload[slots.len() * SLOT..])
    }
}

/// Complete blocks in the order of the file.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
    /// Offset in the file behind the last of them.
    end: u64,
}

impl Batch {
    /// Reads the blocks at offset `begin`; none if the first is incomplete.
    fn read(&mut self, file: &File, begin: u64) {
        self.pieces.clear();
        let (mut at, mut there) = (0, self.fill(file, begin, 0..AT_ONCE));
        while at < there {
            let (head, next) = match expected(&self.bytes[at..there]) {
                Ok((head, len)) if head.is_known() => (Some(head), at + HEAD + len),
                Err(SegmentErrorKind::Short { .. }) => (None, at + HEAD),
                _ => break,
            };
            match head.filter(|_| next <= there) {
                Some(head) => {
                    self.pieces.push(Piece { head, place: at..next, run: Run::default(), ceded: None });
                    at = next;
                }
                None => there = self.fill(file, begin, there..next),
            }
            if at < next && there < next {
                break; // it is cut off
            }
        }
        self.end = begin + at as u64;
    }

    /// Fills `place` of the buffer with the bytes that far behind `begin`, and returns where they end. The buffer grows with
    /// the bytes that exist, not with what a damaged length claims.
    fn fill(&mut self, file: &File, begin: u64, place: Range<usize>) -> usize {
        let mut at = place.start;
        while at < place.end {
            let room = place.end.min(self.bytes.len().max(at + AT_ONCE));
            self.bytes.resize(self.bytes.len().max(room), 0);
            match file.read_at(&mut self.bytes[at..room], begin + at as u64) {
                Ok(0) => break,
                Ok(count) => at += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The single-threaded reader meets the error again and reports it.
                Err(_) => break,
            }
        }
        at
    }

    /// Drops a damaged block and all blocks behind it.
    fn end_before(&mut self, piece: usize) {
        if let Some(last) = self.pieces.last() {
            self.end -= (last.place.end - self.pieces[piece].place.start) as u64;
        }
        self.pieces.truncate(piece);
    }
}

/// One of the two threads.
struct Worker<'a, W> {
    file: &'a File,
    batch: Batch,
    aside: Side,
    visitor: W,
}

impl<'a, W: ParallelVisitor> Worker<'a, W> {
    fn new(file: &'a File, turn: &Turn<'_, W>) -> Self {
        Self { file, batch: Batch::default(), aside: Side::new(turn.process), visitor: turn.visitor.another() }
    }

    fn work(&mut self, turn: &Mutex<Turn<'_, W>>, reads: Relay<u64>, takes: Relay<()>) {
        while let Ok(begin) = reads.from.recv() {
            self.batch.read(self.file, begin);
            if self.batch.pieces.is_empty() {
                return;
            }
            _ = reads.to.send(self.batch.end);
            let is_good = self.look();
            if takes.from.recv().is_err() {
                return; // the other thread has met damage
            }
            self.take(&mut turn.lock().unwrap_or_else(PoisonError::into_inner));
            if is_good {
                _ = takes.to.send(());
            }
            self.show();
            if !is_good {
                return;
            }
        }
    }

    /// Checks every slot; returns `false` if a block is damaged.
    fn look(&mut self) -> bool {
        let Batch { bytes, pieces, .. } = &mut self.batch;
        for (at, piece) in pieces.iter_mut().enumerate() {
            if !piece.look(bytes, &self.aside) {
                self.batch.end_before(at);
                return false;
            }
        }
        true
    }

    /// Takes the blocks, except for the calls that are ceded.
    fn take(&mut self, turn: &mut Turn<'_, W>) {
        for at in 0..self.batch.pieces.len() {
            if !self.aside.is_current(turn.process) {
                // Ceded calls are shown with the state in which they were checked; the blocks that follow are checked again.
                self.show();
                self.aside.renew(turn.process);
                let Batch { bytes, pieces, .. } = &mut self.batch;
                pieces[at..].iter_mut().for_each(|piece| _ = piece.look(bytes, &self.aside));
            }
            turn.take(&mut self.batch.pieces[at], &self.batch.bytes);
        }
        turn.good = self.batch.end;
        turn.progress.at(turn.good);
        if self.aside.is_current(turn.process) {
            self.aside.renew(turn.process);
        }
    }

    /// Adds up and shows the calls that were ceded.
    fn show(&mut self) {
        let Batch { bytes, pieces, .. } = &mut self.batch;
        for piece in pieces {
            if let Some((thread, turn)) = piece.ceded.take() {
                let BlockHead { ring, first, .. } = piece.head;
                self.visitor.at(turn);
                self.aside.show(ring, thread, first, &piece.slots(bytes)[..piece.run.count], &mut self.visitor);
            }
        }
    }

    /// Adds its sums to the process, and returns the visitor that was shown the calls.
    fn end(self, process: &mut Process) -> W {
        self.aside.join(process);
        self.visitor
    }
}
