//! A block of a trace segment: its slots and its checksum.

use crate::record::slot::Words;
use crate::segment::error::{SegmentErrorKind, short};
use crate::segment::format::{BLOCK_MAGIC, BlockHead, Checksum, HEAD, LONGEST_PAYLOAD, SLOT, word};
use std::borrow::Cow;

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its head.
    pub head: BlockHead,
    /// The bytes behind the head.
    pub payload: Vec<u8>,
}

impl Block {
    /// The slots, borrowed where the payload is aligned for words.
    pub fn as_slots(&self) -> Cow<'_, [Words]> {
        as_slots(&self.payload)
    }

    /// The slots, as words.
    pub fn slots(&self) -> impl Iterator<Item = Words> {
        slots(&self.payload)
    }
}

/// The slots of a payload, borrowed where it is aligned for words.
pub fn as_slots(payload: &[u8]) -> Cow<'_, [Words]> {
    // SAFETY: any bytes are words.
    let (before, words, _) = unsafe { payload.align_to::<Words>() };
    if before.is_empty() && cfg!(target_endian = "little") {
        Cow::Borrowed(words)
    } else {
        Cow::Owned(slots(payload).collect())
    }
}

fn slots(payload: &[u8]) -> impl Iterator<Item = Words> {
    let (slots, _) = payload.as_chunks::<SLOT>();
    slots.iter().map(|slot| {
        let (words, _) = slot.as_chunks::<8>();
        std::array::from_fn(|at| u64::from_le_bytes(words[at]))
    })
}

/// Decodes a head and checks its lengths; returns it with the length of its payload.
pub fn expected(head: &[u8]) -> Result<(BlockHead, usize), SegmentErrorKind> {
    let magic = head.get(..BLOCK_MAGIC.len()).unwrap_or(head);
    if !BLOCK_MAGIC.starts_with(magic) {
        return Err(SegmentErrorKind::NoBlock);
    }
    let about = BlockHead::from_bytes(head.first_chunk().ok_or_else(|| short(HEAD, head.len()))?);
    let len = about.bytes as usize;
    if len > LONGEST_PAYLOAD || about.slots as usize != len / SLOT {
        return Err(SegmentErrorKind::Block);
    }
    Ok((about, len))
}

/// The check of a block's checksum, for a caller that goes through its slots anyway.
pub struct BlockChecksum {
    sum: Checksum,
    said: u64,
}

impl BlockChecksum {
    /// Begins the check of the block with this head and a payload of `len` bytes.
    pub fn of_block(head: &[u8; HEAD], len: usize) -> Self {
        Self::new(head, 48, len)
    }

    /// Begins the check of a checksum that stands at `at` and was calculated with a zero there.
    fn new(head: &[u8; HEAD], at: usize, len: usize) -> Self {
        let (mut copy, mut sum) = (*head, Checksum::new(HEAD + len));
        copy[at..at + 8].fill(0);
        sum.add(&copy);
        Self { sum, said: word(head, at) }
    }

    /// Adds the next slot of the payload.
    #[inline(always)]
    pub fn add_slot(&mut self, slot: &Words) {
        self.sum.add_slot(slot);
    }

    /// Whether the checksum is right, with the rest of the payload.
    pub fn holds(mut self, rest: &[u8]) -> bool {
        self.sum.add(rest);
        self.sum.end() == self.said
    }
}

/// Whether the bytes are as they were written: the checksum at `at` is right.
pub(super) fn is_well_formed(head: &[u8], at: usize, rest: &[u8]) -> bool {
    head.first_chunk().is_some_and(|head| BlockChecksum::new(head, at, rest.len()).holds(rest))
}
