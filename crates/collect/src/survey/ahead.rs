//! Reading a trace ahead: while its calls are added up here, what follows is read and summed up in a thread of its own.

use aclshim_trace::segment::reader::{Block, SegmentErrorKind, SegmentReader};
use std::fs::File;
use std::io::BufReader;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

type Reader = SegmentReader<BufReader<File>>;

/// A trace of which so much is left is worth a thread.
const MUCH: u64 = 4 << 20;
/// So many blocks are read ahead: enough that neither side often waits for the other.
const BLOCKS: usize = 32;

/// Whether so much is left of a trace.
pub fn is_much(reader: &Reader) -> bool {
    reader.get_ref().get_ref().metadata().is_ok_and(|about| about.len() >= reader.good() + MUCH)
}

/// Hands every block, in order, to `work`, and where reading goes on behind it. What is damaged is passed over, unless
/// the end is cut off and more is awaited.
pub fn each(reader: &mut Reader, follows: bool, mut work: impl FnMut(&Block, u64)) {
    if !is_much(reader) || !each_ahead(reader, follows, &mut work) {
        while let Some(block) = next(reader, follows) {
            work(&block, reader.good());
            reader.reuse(block);
        }
    }
}

/// The same with a thread; `false` if there is none to be had.
fn each_ahead(reader: &mut Reader, follows: bool, work: &mut impl FnMut(&Block, u64)) -> bool {
    thread::scope(|scope| {
        let (hand_on, blocks) = sync_channel(BLOCKS);
        let (give_back, used) = channel();
        let read_all = move || {
            while let Some(block) = next(reader, follows) {
                if hand_on.send((block, reader.good())).is_err() {
                    return;
                }
                if let Ok(block) = used.try_recv() {
                    reader.reuse(block);
                }
            }
        };
        if thread::Builder::new().name("aclshim-read".into()).spawn_scoped(scope, read_all).is_err() {
            return false;
        }
        for (block, good) in blocks {
            work(&block, good);
            _ = give_back.send(block);
        }
        true
    })
}

/// The next good block.
fn next(reader: &mut Reader, follows: bool) -> Option<Block> {
    loop {
        match reader.next_block() {
            Ok(block) => return block,
            Err(stop) if follows && matches!(stop.kind, SegmentErrorKind::Short { .. }) => return None,
            Err(_) => {} // the next good block is behind it
        }
    }
}
