//! The numbers of slots that the blocks of a trace account for.

use aclshim_trace::record::slot::{Head, Layout, Words};
use aclshim_trace::record::{Entry, decode};
use aclshim_trace::segment::format::kind;
use aclshim_trace::segment::reader::Block;
use std::collections::BTreeMap;
use std::ops::Range;

/// What blocks account for.
#[derive(Default)]
pub struct Coverage {
    /// Ranges of numbers by ring, in the order of the blocks.
    pub rings: BTreeMap<u32, Vec<Range<u64>>>,
    /// Overwritten slots according to blocks of kind LOSS.
    pub overwritten: u64,
    /// Calls that are lost according to records.
    pub lost: u64,
}

impl Coverage {
    /// Adds a good block.
    pub fn add(&mut self, block: &Block) {
        let Some(numbers) = numbers(block) else { return };
        match block.head.kind {
            kind::LOSS => self.overwritten = self.overwritten.saturating_add(numbers.end - numbers.start),
            kind::SLOTS => self.lost = block.slots().filter_map(lost).fold(self.lost, u64::saturating_add),
            _ => {}
        }
        let ranges = self.rings.entry(block.head.ring).or_default();
        match ranges.last_mut() {
            Some(last) if (last.start..=last.end).contains(&numbers.start) => last.end = last.end.max(numbers.end),
            _ => ranges.push(numbers),
        }
    }
}

/// The numbers that a block accounts for.
pub fn numbers(block: &Block) -> Option<Range<u64>> {
    let count = match block.head.kind {
        kind::SLOTS => block.head.slots.into(),
        kind::LOSS | kind::NEVER => u64::from_le_bytes(*block.payload.first_chunk()?),
        _ => return None,
    };
    Some(block.head.first..block.head.first.saturating_add(count))
}

/// The number of calls that a slot says are lost.
fn lost(slot: Words) -> Option<u64> {
    let is_note = Head(slot[0]).layout() == Layout::Note;
    match is_note.then(|| decode(&[slot], 0))?? {
        (Entry::Lost { calls, .. }, _) => Some(calls),
        _ => None,
    }
}
