//! Reading a trace ahead: while one thread adds up calls, another reads and verifies the blocks that follow.

use aclshim_trace::segment::reader::{Block, SegmentErrorKind, SegmentReader};
use std::fs::File;
use std::io::BufReader;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

type Reader = SegmentReader<BufReader<File>>;

/// Number of unread bytes from which on a second thread pays off.
const LONG: u64 = 4 << 20;
/// Number of blocks that are read ahead: enough that neither thread often waits for the other.
const BLOCKS: usize = 32;

/// Whether enough of a trace is unread to use a second thread.
pub fn is_long(reader: &Reader) -> bool {
    reader.get_ref().get_ref().metadata().is_ok_and(|about| about.len() >= reader.good() + LONG)
}

/// Calls `work` with every block in order, and with the offset behind it. Damaged blocks are skipped; with `follow`, reading
/// stops at a block that is cut off.
pub fn each(reader: &mut Reader, follow: bool, mut work: impl FnMut(&Block, u64)) {
    if !is_long(reader) || !each_ahead(reader, follow, &mut work) {
        while let Some(block) = next(reader, follow) {
            work(&block, reader.good());
            reader.reuse(block);
        }
    }
}

/// Does the work of [`each`] with a second thread; returns `false` if none can be started.
fn each_ahead(reader: &mut Reader, follow: bool, work: &mut impl FnMut(&Block, u64)) -> bool {
    thread::scope(|scope| {
        let (hand_on, blocks) = sync_channel(BLOCKS);
        let (give_back, used) = channel();
        let read_all = move || {
            while let Some(block) = next(reader, follow) {
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

/// The next intact block.
fn next(reader: &mut Reader, follow: bool) -> Option<Block> {
    loop {
        match reader.next_block() {
            Ok(block) => return block,
            Err(stop) if follow && matches!(stop.kind, SegmentErrorKind::Short { .. }) => return None,
            Err(_) => {} // the next intact block is behind it
        }
    }
}
