//! Reading a trace ahead: while its calls are added up here, what follows is read and summed up in a thread of its own.

use aclshim_trace::segment::{Head, kind};
use aclshim_trace::segment_reader::{Block, SegmentReader, Wrong};
use aclshim_trace::slot::Words;
use std::fs::File;
use std::io::BufReader;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;

type Reader = SegmentReader<BufReader<File>>;

/// What a trace consists of.
pub enum Piece<'a> {
    /// Slots of a ring.
    Slots(&'a Head, &'a [Words]),
    /// Anything else.
    Other(&'a Block),
}

/// What was read, and where reading goes on.
struct Read {
    what: What,
    good: u64,
}

enum What {
    Slots(Head, Vec<Words>),
    Other(Block),
}

impl Read {
    /// Shows it to `work`; what is left is room for other slots.
    fn show(self, work: &mut impl FnMut(Piece<'_>, u64)) -> Vec<Words> {
        match self.what {
            What::Slots(head, slots) => {
                work(Piece::Slots(&head, &slots), self.good);
                slots
            }
            What::Other(block) => {
                work(Piece::Other(&block), self.good);
                Vec::new()
            }
        }
    }
}

/// A trace of which so much is left is worth a thread.
const MUCH: u64 = 4 << 20;
/// So many blocks are read ahead.
const BLOCKS: usize = 4;

/// Hands every block, in order, to `work`, and where reading goes on behind it. What is damaged is passed over, unless
/// the end is cut off and more is awaited.
pub fn each(reader: &mut Reader, follows: bool, mut work: impl FnMut(Piece<'_>, u64)) {
    let is_much = reader.get_ref().get_ref().metadata().is_ok_and(|about| about.len() >= reader.good() + MUCH);
    if !is_much || !each_ahead(reader, follows, &mut work) {
        let mut slots = Vec::new();
        while let Some(read) = next(reader, follows, slots) {
            slots = read.show(&mut work);
        }
    }
}

/// The same with a thread; `false` if there is none to be had.
fn each_ahead(reader: &mut Reader, follows: bool, work: &mut impl FnMut(Piece<'_>, u64)) -> bool {
    thread::scope(|scope| {
        let (hand_on, reads) = sync_channel(BLOCKS);
        let (give_back, spare) = channel();
        let read_all = move || {
            let used = |spare: &Receiver<Vec<Words>>| spare.try_recv().unwrap_or_default();
            while let Some(read) = next(reader, follows, used(&spare)) {
                if hand_on.send(read).is_err() {
                    return;
                }
            }
        };
        if thread::Builder::new().name("aclshim-read".into()).spawn_scoped(scope, read_all).is_err() {
            return false;
        }
        for read in reads {
            _ = give_back.send(read.show(work));
        }
        true
    })
}

/// The next block, its slots in the place of `slots`.
fn next(reader: &mut Reader, follows: bool, mut slots: Vec<Words>) -> Option<Read> {
    loop {
        match reader.next_block() {
            Ok(block) => {
                let block = block?;
                let what = if block.head.kind == kind::SLOTS {
                    slots.clear();
                    slots.extend(block.slots());
                    let head = block.head;
                    reader.reuse(block);
                    What::Slots(head, slots)
                } else {
                    What::Other(block)
                };
                return Some(Read { what, good: reader.good() });
            }
            Err(stop) if follows && matches!(stop.wrong, Wrong::Short { .. }) => return None,
            Err(_) => {} // the next good block is behind it
        }
    }
}
