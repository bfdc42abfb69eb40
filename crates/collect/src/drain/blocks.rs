//! Slots that were read from a ring, as the blocks of a trace.

use aclshim_trace::reader::SlotRun;
use aclshim_trace::record::slot::{Head, Words};
use aclshim_trace::segment::format::{BlockHead, kind};
use std::borrow::Cow;

/// The blocks that a run of slots is written as, which was read from number `from` on: slots that were overwritten, slots that
/// were never written, the records, and the slots behind them that the writer has jumped over. Ring, thread and time stand in
/// `head`.
pub fn blocks(run: &SlotRun, from: u64, head: BlockHead) -> impl Iterator<Item = (BlockHead, Cow<'_, [u8]>)> {
    let unread = if run.slots.is_empty() { run.next } else { run.first } - from;
    let never = unread.saturating_sub(run.overwritten);
    let missing = move |kind, first, slots: u64| {
        (slots > 0).then(|| (BlockHead { kind, first, ..head }, Cow::Owned(slots.to_le_bytes().to_vec())))
    };
    let records = (!run.slots.is_empty()).then(|| {
        let flags = outermost_calls(&run.slots) as u32;
        (BlockHead { kind: kind::SLOTS, first: run.first, flags, ..head }, Cow::Borrowed(little_endian(&run.slots)))
    });
    let overwritten = missing(kind::LOSS, from, run.overwritten);
    let jumped = missing(kind::NEVER, run.first + run.slots.len() as u64, run.jumped());
    [overwritten, missing(kind::NEVER, from + run.overwritten, never), records, jumped].into_iter().flatten()
}

/// Number of outermost calls that begin in these slots.
pub fn outermost_calls(slots: &[Words]) -> u64 {
    // One test of bits says so of nearly all slots, and most blocks hold nothing else.
    let exact = slots.iter().position(|slot| !Head(slot[0]).is_exact()).unwrap_or(slots.len());
    (exact + slots[exact..].iter().filter(|slot| Head(slot[0]).is_outermost_call()).count()) as u64
}

/// Slots as bytes. All processors that we run on have the file's order of bytes.
fn little_endian(slots: &[Words]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little")) };
    // SAFETY: whole words, read as bytes.
    unsafe { std::slice::from_raw_parts(slots.as_ptr().cast(), size_of_val(slots)) }
}
