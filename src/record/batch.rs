//! What the arrays of a batch hold: a summary always, and the first items one by one.
//!
//! The arrays are read when the vendor has accepted the call, and so has read them itself.

use crate::settings::settings;
use aclshim_core::summary::BatchSummary;
use aclshim_facts::abi::aclrtMemcpyBatchAttr;
use aclshim_facts::call::Batch;
use aclshim_facts::code::ACL_SUCCESS;
use aclshim_trace::record::slot::{Head, Layout};
use aclshim_trace::record::{ATTRIBUTES, Follows, batch_slots};
use aclshim_trace::ring::cursor::Slots;
use core::slice;

/// How many attributes and items are recorded.
#[derive(Clone, Copy)]
struct Share {
    attributes: u64,
    items: u64,
}

impl Share {
    fn of(batch: &Batch) -> Self {
        // A record takes a quarter of the ring at most.
        let room = 2 * (u64::from(settings().slots()) / 4 - batch_slots(ATTRIBUTES, 0));
        Self {
            attributes: (batch.attr_count as u64).min(ATTRIBUTES),
            items: (batch.items as u64).min(settings().batch_items).min(room),
        }
    }
}

/// How many slots the record of a batch takes.
pub fn slots(batch: &Batch) -> u64 {
    let Share { attributes, items } = Share::of(batch);
    batch_slots(attributes, items)
}

/// What all sizes add up to, where that was not seen before the call.
#[cold]
fn sum(sizes: &[usize]) -> BatchSummary {
    let sizes = || sizes.iter().map(|size| *size as u64);
    BatchSummary {
        total: sizes().fold(0, u64::saturating_add),
        smallest: sizes().min().unwrap_or(0),
        largest: sizes().max().unwrap_or(0),
    }
}

/// How many items do not fit into their room.
#[cold]
fn too_large(sizes: &[usize], rooms: &[usize]) -> u64 {
    sizes.iter().zip(rooms).filter(|(size, room)| room < size).count() as u64
}

/// A place as a word: id in the lower half, type in the upper.
fn word(of: &aclshim_facts::abi::aclrtMemLocation) -> u64 {
    u64::from(of.id) | (of.type_ as u32 as u64) << 32
}

/// The direction of all items, if it is one.
fn direction(attributes: &[aclrtMemcpyBatchAttr]) -> Option<(u8, u8)> {
    let of = |attribute: &aclrtMemcpyBatchAttr| (attribute.dstLoc.type_ as u8, attribute.srcLoc.type_ as u8);
    let (first, rest) = attributes.split_first()?;
    rest.iter().all(|other| of(other) == of(first)).then(|| of(first))
}

/// Completes the record of a batch that begins at `number`.
///
/// # Safety
/// The calling thread's ring and record; the vendor has returned `code` for these arguments.
#[inline(never)]
pub unsafe fn complete(ring: Slots, number: u64, batch: &Batch, code: i32, known: Option<BatchSummary>) {
    let items = batch.items;
    if code != ACL_SUCCESS || items == 0 || items > isize::MAX as usize / 8 {
        return;
    }
    // An index that the vendor writes amid the sizes makes them others than it has read.
    let is_overwritten = batch.fail_index.is_some_and(|index| {
        let from = batch.sizes as usize;
        (from.wrapping_sub(7)..from.saturating_add(8 * items)).contains(&(index as usize))
    });
    if !is_array(batch.sizes.cast()) || is_overwritten {
        return;
    }
    // SAFETY: the vendor has accepted the call, so it has read this array to its end.
    let sizes = unsafe { slice::from_raw_parts(batch.sizes, items) };
    let summary = known.unwrap_or_else(|| sum(sizes));
    // All sizes zero: the vendor has looked at nothing else.
    let arrays: [*const (); 3] = [batch.dst_maxs.cast(), batch.dsts.cast(), batch.srcs.cast()];
    let is_read = summary.largest > 0 && arrays.into_iter().all(is_array);
    let share = if is_read { Share::of(batch) } else { Share { attributes: 0, items: 0 } };
    // SAFETY: as above, since it copies something.
    let rooms = if is_read { unsafe { slice::from_raw_parts(batch.dst_maxs, items) } } else { &[] };
    let has_attributes = share.attributes > 0 && is_array(batch.attrs.cast()) && is_array(batch.attr_indexes.cast());
    let (attributes, indexes) = if has_attributes {
        // SAFETY: as above.
        unsafe {
            let count = batch.attr_count;
            (slice::from_raw_parts(batch.attrs, count), slice::from_raw_parts(batch.attr_indexes, count))
        }
    } else {
        (&[][..], &[][..])
    };
    let at = |nth: u64, layout: Layout, words: &[u64]| {
        // SAFETY: the caller's promise; that many slots were claimed.
        let slot = unsafe { &*ring.at(number + nth) };
        slot.put(Head::done(number + nth, layout, 0), words);
    };
    let mut nth = 3;
    let taken = attributes.len().min(share.attributes as usize);
    for (attributes, indexes) in attributes[..taken].chunks(2).zip(indexes[..taken].chunks(2)) {
        let mut words = [0; 7];
        for (half, (attribute, index)) in attributes.iter().zip(indexes).enumerate() {
            words[3 * half..3 * half + 3].copy_from_slice(&[
                *index as u64,
                word(&attribute.dstLoc),
                word(&attribute.srcLoc),
            ]);
        }
        at(nth, Layout::Attributes, &words);
        nth += 1;
    }
    for first in (0..share.items as usize).step_by(2) {
        let mut words = [0; 7];
        for half in 0..(share.items as usize - first).min(2) {
            let item = first + half;
            // SAFETY: as above.
            let (dst, src) = unsafe { (*batch.dsts.add(item), *batch.srcs.add(item)) };
            words[3 * half..3 * half + 3].copy_from_slice(&[dst as u64, src as u64, sizes[item] as u64]);
            words[6] |= u64::from(room(rooms[item], sizes[item]) as u32) << (32 * half);
        }
        at(nth, Layout::Items, &words);
        nth += 1;
    }
    let follows =
        Follows { items: share.items as u32, attributes: taken as u8, direction: direction(attributes), is_read: true };
    // SAFETY: as above. Its arguments were stored when the call began.
    let slot = unsafe { &*ring.at(number + 2) };
    let too_large = if known.is_some() { 0 } else { too_large(sizes, rooms) };
    let words = [summary.total, summary.smallest, summary.largest, follows.word(), too_large];
    for (word, value) in (1..).zip(words) {
        slot.set(word, value);
    }
}

/// Whether a pointer can be that of an array of ours to read; a strange one may please the vendor, not us.
fn is_array(at: *const ()) -> bool {
    !at.is_null() && at.addr().is_multiple_of(align_of::<usize>())
}

/// How many bytes are left at a destination, held within 32 bits.
fn room(max: usize, size: usize) -> i32 {
    (max as i128 - size as i128).clamp(i32::MIN.into(), i32::MAX.into()) as i32
}
