//! The arrays of a batch before it is forwarded, read as the vendor itself reads them: in its order, and never further.
//!
//! A program may pass arrays that end before their count does, and be told so by the vendor, which stops at the first
//! thing that is wrong. So do we: each array comes as far as the vendor would have looked.

use aclshim_facts::abi::aclrtMemcpyBatchAttr;
use aclshim_facts::call::{Batch, Call, Form};
use aclshim_facts::product::Version;
use aclshim_facts::rule::Arrays;
use aclshim_facts::world::World;
use core::slice;

/// The release that first looks whether there is anything to copy at all.
const NOTHING_FIRST: Version = Version { major: 9, minor: 1 };

/// The most items of a synchronous batch.
const MOST: usize = 4096;

/// The arrays of a call, as far as they may be read.
///
/// # Safety
/// The arguments are those of a call that is about to be forwarded: what the vendor would read may be read.
pub unsafe fn before<'a>(call: &Call, world: &World<'_>) -> Arrays<'a> {
    let Form::Batch(batch) = &call.form else { return Arrays::default() };
    // SAFETY: the caller's promise.
    unsafe { of(batch, call.stream.is_some(), world) }.unwrap_or_default()
}

/// `None` where the vendor reads no array at all, or one that lies too strangely for us to read.
unsafe fn of<'a>(batch: &Batch, is_on_stream: bool, world: &World<'_>) -> Option<Arrays<'a>> {
    let looks_first = world.cann.is_some_and(|cann| cann >= NOTHING_FIRST);
    let arrays: [*const (); 6] = [
        batch.dsts.cast(),
        batch.dst_maxs.cast(),
        batch.srcs.cast(),
        batch.sizes.cast(),
        batch.attrs.cast(),
        batch.attr_indexes.cast(),
    ];
    let is_any_null = arrays.iter().any(|array| array.is_null());
    let is_index_null = batch.fail_index.is_some_and(|index| index.is_null());
    let is_strange = arrays.iter().any(|array| !array.addr().is_multiple_of(align_of::<usize>()));
    let items = batch.items;
    if is_index_null || items == 0 || items > isize::MAX as usize / 8 || is_strange || batch.sizes.is_null() {
        return None;
    }
    if is_any_null && !looks_first {
        return None;
    }
    // SAFETY: the vendor looks for the first size that is not 0; or it compares all from the first one on, and those
    // of 0 fit.
    let first = unsafe { scan(items, |at| *batch.sizes.add(at) == 0) };
    // SAFETY: so far it was read.
    let sizes = unsafe { prefix(batch.sizes, first, items) };
    let mut found = Arrays { sizes: Some(sizes), ..Arrays::default() };
    if is_any_null || first == items {
        return Some(found);
    }
    // SAFETY: the vendor compares them one by one, up to the first that does not fit.
    let fitting = unsafe { scan(items, |at| *batch.dst_maxs.add(at) >= *batch.sizes.add(at)) };
    // SAFETY: so far they were read.
    unsafe {
        found.sizes = Some(prefix(batch.sizes, first.max(fitting), items));
        found.dst_maxs = Some(prefix(batch.dst_maxs, fitting, items));
    }
    if fitting < items || batch.attr_count > isize::MAX as usize / size_of::<aclrtMemcpyBatchAttr>() {
        return Some(found);
    }
    let count = batch.attr_count;
    // SAFETY: the vendor looks at the reserved bytes one by one, up to the first that is not 0.
    let clean = unsafe { scan(count, |at| (*batch.attrs.add(at)).rsv == [0; 16]) };
    // SAFETY: as above.
    found.attrs = Some(unsafe { prefix(batch.attrs, clean, count) });
    let is_refused = clean < count || count == 0 || count > items || (!is_on_stream && items > MOST);
    // A chip without batches refuses here; where it is not known, it may be one.
    if is_refused || !world.product.is_some_and(|product| product.has_batch) {
        return Some(found);
    }
    // SAFETY: the vendor compares each with the one before, up to the first that is not in order.
    let ordered = unsafe {
        scan(count, |at| {
            let index = *batch.attr_indexes.add(at);
            if at == 0 { index == 0 } else { index > *batch.attr_indexes.add(at - 1) && index < items }
        })
    };
    // SAFETY: as above.
    found.attr_indexes = Some(unsafe { prefix(batch.attr_indexes, ordered, count) });
    Some(found)
}

/// How many entries hold, from the first on.
#[inline(always)]
unsafe fn scan(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    (0..count).position(|at| !holds(at)).unwrap_or(count)
}

/// The entries up to the one at `last`, or all.
unsafe fn prefix<'a, T>(array: *const T, last: usize, count: usize) -> &'a [T] {
    // SAFETY: the caller has read so far.
    unsafe { slice::from_raw_parts(array, last.saturating_add(1).min(count)) }
}
