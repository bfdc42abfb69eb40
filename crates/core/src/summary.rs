//! The summary of a batch, made in one pass over its arrays before it is forwarded, if nothing is wrong with them.
//!
//! That is the batch that nearly every batch is. Anything else is read once more, slowly and in the vendor's own order
//! ([`arrays`]), and judged rule by rule.

use crate::arrays;
use aclshim_facts::abi::aclrtMemcpyBatchAttr;
use aclshim_facts::call::Batch;
use aclshim_facts::product::Version;
use aclshim_facts::world::World;

/// The sizes of a batch.
#[derive(Clone, Copy)]
pub struct BatchSummary {
    /// Their sum.
    pub total: u64,
    /// The smallest.
    pub smallest: u64,
    /// The largest.
    pub largest: u64,
}

/// The most items of a synchronous batch.
const MOST: usize = 4096;
/// What can be read is read by the page: its size, or a part of it.
const PAGE: usize = 4096;

/// The summary of a batch; `None` if something is wrong with it, or may be.
///
/// # Safety
/// What the vendor would read of the arrays may be read.
pub unsafe fn summarize(batch: &Batch, is_on_stream: bool, world: &World<'_>) -> Option<BatchSummary> {
    let is_new = world.cann.is_none_or(|cann| cann >= Version::V9_1);
    let is_served = world.product.is_none_or(|product| product.has_batch);
    let is_short = batch.attr_count <= batch.items && (is_on_stream || batch.items <= MOST);
    if !arrays::is_well_formed(batch) || !is_new || !is_served || !is_short || batch.attr_count == 0 {
        return None;
    }
    // Of a batch of nothing the vendor reads the sizes only.
    // SAFETY: the caller's promise: the first size is read in any case.
    if unsafe { *batch.sizes } == 0 {
        return None;
    }
    // SAFETY: the caller's promise.
    let summary = unsafe { sizes(batch) }.filter(|summary| summary.smallest > 0)?;
    // SAFETY: all sizes fit, so the vendor comes to the attributes.
    unsafe { have_one_direction(batch) }.then_some(())?;
    // A stream that is none is refused before the indexes are read, and it is not known whether it is one.
    let may_read = world.product.is_some() && !is_on_stream;
    // SAFETY: as above, and on to the indexes.
    (!may_read || unsafe { arrays::ordered(batch) } == batch.attr_count).then_some(summary)
}

/// The sum of all sizes, if each fits into its room. Page by page, because the vendor stops at the first that does not:
/// within a page, what it does not read can be read without a fault.
unsafe fn sizes(batch: &Batch) -> Option<BatchSummary> {
    let mut all = BatchSummary { total: 0, smallest: u64::MAX, largest: 0 };
    let mut at = 0;
    let mut has_wrapped = false;
    while at < batch.items {
        let (sizes, rooms) = (batch.sizes.wrapping_add(at), batch.dst_maxs.wrapping_add(at));
        let in_page = |array: *mut usize| (PAGE - array.addr() % PAGE) / size_of::<usize>();
        let count = (batch.items - at).min(in_page(sizes)).min(in_page(rooms));
        let mut too_large = false;
        let mut total = 0u64;
        for nth in 0..count {
            // SAFETY: the vendor reads the first of these, as all before it fit, and the others lie on these pages.
            let (size, room) = unsafe { (*sizes.add(nth), *rooms.add(nth)) };
            too_large |= room < size;
            let size = size as u64;
            let sum = total.wrapping_add(size);
            has_wrapped |= sum < total;
            total = sum;
            all.smallest = all.smallest.min(size);
            all.largest = all.largest.max(size);
        }
        if too_large {
            return None;
        }
        all.total = all.total.saturating_add(total);
        at += count;
    }
    if has_wrapped {
        all.total = u64::MAX;
    }
    Some(all)
}

/// Whether all attributes name one direction, between a host and a device, and nothing else.
unsafe fn have_one_direction(batch: &Batch) -> bool {
    const HOST: i32 = 0;
    const DEVICE: i32 = 1;
    // SAFETY: the caller's promise; one by one, up to the first that is not.
    let attribute = |at: usize| unsafe { &*batch.attrs.add(at) };
    let direction = |attribute: &aclrtMemcpyBatchAttr| (attribute.dstLoc.type_, attribute.srcLoc.type_);
    let first = direction(attribute(0));
    matches!(first, (HOST, DEVICE) | (DEVICE, HOST))
        && (0..batch.attr_count).all(|at| attribute(at).rsv == [0; 16] && direction(attribute(at)) == first)
}
