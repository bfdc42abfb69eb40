//! The arrays of a batch, read as the vendor itself reads them: in its order, and never further.
//!
//! A program may pass arrays that end before their count does, and get an error: the vendor stops at the first thing that
//! is wrong. So do we: each array is read as far as the vendor would have read it.

use aclshim_facts::abi::aclrtMemcpyBatchAttr;
use aclshim_facts::call::{Batch, Call, Form};
use aclshim_facts::code::ACL_SUCCESS;
use aclshim_facts::direction::Direction;
use aclshim_facts::product::Version;
use aclshim_facts::rule::Arrays;
use aclshim_facts::world::World;
use core::ffi::c_void;
use core::slice;

/// The most items of a synchronous batch.
const MOST: usize = 4096;

/// The arrays of a call that is about to be forwarded, as far as they may be read.
///
/// # Safety
/// What the vendor would read may be read.
pub unsafe fn before_call<'a>(call: &Call, world: &World<'_>) -> Arrays<'a> {
    let Form::Batch(batch) = &call.form else { return Arrays::default() };
    // A stream that is none is refused before the indexes are read, and so is everything on a chip without batches.
    let may_be_a_stream = call.stream.is_none_or(|stream| stream.is_null());
    let comes_to_indexes = may_be_a_stream && world.product.is_some_and(|product| product.has_batch);
    // SAFETY: the caller's promise.
    unsafe { of(batch, call.stream.is_some(), world, comes_to_indexes) }.unwrap_or_default()
}

/// The arrays of a batch that the vendor has refused with the inner layer's code for a bad parameter: stream and product
/// were right then.
///
/// # Safety
/// What the vendor has read may be read.
pub unsafe fn after_refusal<'a>(call: &Call, world: &World<'_>) -> Arrays<'a> {
    let Form::Batch(batch) = &call.form else { return Arrays::default() };
    // SAFETY: the caller's promise.
    let mut found = unsafe { of(batch, call.stream.is_some(), world, true) }.unwrap_or_default();
    let is_laid_out = found.attr_indexes.is_some_and(|indexes| {
        // SAFETY: they were read to the last or to the first that is not in order.
        indexes.len() == batch.attr_count && unsafe { ordered(batch) } == batch.attr_count
    });
    // The inner layer writes it first of all, and an item only when it has come to that one.
    let place = batch.fail_index.filter(|place| !place.is_null() && is_laid_out);
    // SAFETY: the vendor has written there.
    let failed = place.map(|place| unsafe { place.read_unaligned() }).filter(|failed| *failed < batch.items);
    let Some(failed) = failed else { return found };
    // On a stream the size comes first, and an item of nothing is refused for that.
    let is_read =
        call.stream.is_none() || found.sizes.and_then(|sizes| sizes.get(failed)).is_some_and(|size| *size > 0);
    let dsts = if is_read { failed + 1 } else { failed };
    // SAFETY: so far the vendor has read them: the destination of an item before its source.
    let is_there = is_read && !unsafe { batch.dsts.add(failed).read() }.is_null();
    let srcs = if is_there { failed + 1 } else { failed };
    // SAFETY: as above.
    unsafe {
        found.dsts = Some(slice::from_raw_parts(batch.dsts, dsts));
        found.srcs = Some(slice::from_raw_parts(batch.srcs, srcs));
    }
    found
}

/// The arrays of a batch that the vendor has accepted, where it has copied something: all that it has read.
///
/// # Safety
/// What the vendor has read may be read.
pub unsafe fn after_success<'a>(batch: &Batch) -> Arrays<'a> {
    if !is_well_formed(batch) {
        return Arrays::default();
    }
    // SAFETY: the caller's promise.
    unsafe {
        Arrays {
            dsts: Some(slice::from_raw_parts(batch.dsts, batch.items)),
            sizes: Some(slice::from_raw_parts(batch.sizes, batch.items)),
            ..Arrays::default()
        }
    }
}

/// Writes an index to the `failIndex` of a batch that is answered in the vendor's place; nothing for another call.
///
/// # Safety
/// The arguments of `call` are the caller's.
pub unsafe fn write_fail_index(call: &Call, index: Option<usize>) {
    if let (Form::Batch(batch), Some(index)) = (&call.form, index)
        && let Some(place) = batch.fail_index.filter(|place| !place.is_null())
    {
        // SAFETY: the caller's promise, as the vendor takes it.
        unsafe { place.write_unaligned(index) };
    }
}

/// What a batch that was accepted has copied. The arrays are the caller's still.
pub struct Copied<'a> {
    /// All sizes.
    pub sizes: &'a [usize],
    /// The rest is empty where all sizes are 0: the vendor has not read it.
    pub dsts: &'a [*mut c_void],
    srcs: &'a [*mut c_void],
    dst_maxs: &'a [usize],
    /// And so are these where there are none.
    pub attrs: &'a [aclrtMemcpyBatchAttr],
    /// As many.
    pub attr_indexes: &'a [usize],
}

/// An item of a batch.
#[allow(missing_docs)] // the vendor's arguments by role
pub struct Item {
    pub dst: *const c_void,
    pub src: *const c_void,
    pub dst_max: usize,
    pub size: usize,
}

impl<'a> Copied<'a> {
    /// What the rules look at: nothing of a batch that has copied nothing.
    pub fn arrays(&self) -> Arrays<'a> {
        let is_any = !self.dsts.is_empty();
        Arrays { dsts: is_any.then_some(self.dsts), sizes: is_any.then_some(self.sizes), ..Arrays::default() }
    }

    /// The item at that place.
    pub fn item(&self, at: usize) -> Option<Item> {
        let (dst, src) = (self.dsts.get(at)?.cast_const(), self.srcs.get(at)?.cast_const());
        Some(Item { dst, src, dst_max: *self.dst_maxs.get(at)?, size: *self.sizes.get(at)? })
    }

    /// The direction of all items, if it is one.
    pub fn direction(&self) -> Direction {
        let of = |attr: &aclrtMemcpyBatchAttr| Direction::of_places(attr.dstLoc.type_, attr.srcLoc.type_);
        match self.attrs.split_first() {
            Some((first, rest)) if rest.iter().all(|other| of(other) == of(first)) => of(first),
            _ => Direction::Unknown,
        }
    }

    /// Reads all of it once: a fault, if there is one, is here and now.
    pub fn touch(&self) {
        let sizes = self.sizes.iter().fold(0, |sum, size| sum ^ size);
        let items = (0..self.dsts.len()).filter_map(|at| self.item(at));
        let items = items.fold(0, |sum, item| sum ^ item.dst.addr() ^ item.src.addr() ^ item.dst_max);
        let indexes = self.attr_indexes.iter().fold(0, |sum, index| sum ^ index);
        core::hint::black_box((sizes, items, indexes, self.direction()));
    }
}

/// What a batch has copied for which the vendor has returned `code`.
///
/// # Safety
/// What the vendor has read may be read.
pub unsafe fn copied<'a>(batch: &Batch, code: i32) -> Option<Copied<'a>> {
    let most = isize::MAX as usize / size_of::<aclrtMemcpyBatchAttr>();
    let is_array = |array: *const ()| !array.is_null() && !is_misaligned(&array);
    if code != ACL_SUCCESS || !(1..=most).contains(&batch.items) || !is_array(batch.sizes.cast()) {
        return None;
    }
    // An index that the vendor writes amid the sizes makes them others than it has read.
    let from = batch.sizes as usize;
    let sizes = from.wrapping_sub(7)..from.saturating_add(8 * batch.items);
    if batch.fail_index.is_some_and(|index| sizes.contains(&(index as usize))) {
        return None;
    }
    // SAFETY: the vendor has accepted the call, so it has read this array to its end.
    let sizes = unsafe { slice::from_raw_parts(batch.sizes, batch.items) };
    let is_nothing = sizes.iter().all(|size| *size == 0);
    if is_nothing || !addresses(batch).into_iter().all(is_array) || batch.attr_count > most {
        return Some(Copied { sizes, dsts: &[], srcs: &[], dst_maxs: &[], attrs: &[], attr_indexes: &[] });
    }
    // SAFETY: as above, since it copies something.
    unsafe {
        Some(Copied {
            sizes,
            dsts: slice::from_raw_parts(batch.dsts, batch.items),
            srcs: slice::from_raw_parts(batch.srcs, batch.items),
            dst_maxs: slice::from_raw_parts(batch.dst_maxs, batch.items),
            attrs: slice::from_raw_parts(batch.attrs, batch.attr_count),
            attr_indexes: slice::from_raw_parts(batch.attr_indexes, batch.attr_count),
        })
    }
}

/// The arrays as addresses.
fn addresses(batch: &Batch) -> [*const (); 6] {
    [
        batch.dsts.cast(),
        batch.dst_maxs.cast(),
        batch.srcs.cast(),
        batch.sizes.cast(),
        batch.attrs.cast(),
        batch.attr_indexes.cast(),
    ]
}

/// Whether an address is one that we can read an array at; what is strange may please the vendor.
fn is_misaligned(array: &*const ()) -> bool {
    !array.addr().is_multiple_of(align_of::<usize>())
}

/// Whether all arrays are there, and none is too long to be one.
pub fn is_well_formed(batch: &Batch) -> bool {
    let most = isize::MAX as usize / size_of::<aclrtMemcpyBatchAttr>();
    batch.fail_index.is_none_or(|index| !index.is_null())
        && addresses(batch).iter().all(|array| !array.is_null() && !is_misaligned(array))
        && (1..=most).contains(&batch.items)
        && batch.attr_count <= most
}

/// How many of the indexes are in order, from the first on.
///
/// # Safety
/// The vendor would compare each with the one before, up to the first that is not in order.
pub unsafe fn ordered(batch: &Batch) -> usize {
    // SAFETY: the caller's promise.
    let index = |at: usize| unsafe { *batch.attr_indexes.add(at) };
    scan(
        batch.attr_count,
        |at| {
            if at == 0 { index(0) == 0 } else { index(at) > index(at - 1) && index(at) < batch.items }
        },
    )
}

/// `None` where the vendor reads no array at all, or one that lies too strangely for us to read.
unsafe fn of<'a>(batch: &Batch, is_on_stream: bool, world: &World<'_>, comes_to_indexes: bool) -> Option<Arrays<'a>> {
    let looks_first = world.cann.is_some_and(|cann| cann >= Version::V9_1);
    let arrays = addresses(batch);
    let is_any_null = arrays.iter().any(|array| array.is_null());
    let is_index_null = batch.fail_index.is_some_and(|index| index.is_null());
    // More than there can be: a reader that goes on to the end of these gets no further than the vendor.
    let most = |size: usize| isize::MAX as usize / size;
    let items = batch.items.min(most(size_of::<usize>()));
    if is_index_null || items == 0 || arrays.iter().any(is_misaligned) || batch.sizes.is_null() {
        return None;
    }
    if is_any_null && !looks_first {
        return None;
    }
    // SAFETY: the vendor looks for the first size that is not 0; or it compares all from the first one on, and those
    // of 0 fit.
    let first = scan(items, |at| unsafe { *batch.sizes.add(at) } == 0);
    // SAFETY: so far it was read.
    let sizes = unsafe { prefix(batch.sizes, first, items) };
    let mut found = Arrays { sizes: Some(sizes), ..Arrays::default() };
    // A batch of nothing is accepted here, but for older releases.
    let is_nothing = first == items && (looks_first || world.cann.is_none());
    if is_any_null || is_nothing {
        return Some(found);
    }
    // SAFETY: the vendor compares them one by one, up to the first that does not fit.
    let fitting = scan(items, |at| unsafe { *batch.dst_maxs.add(at) >= *batch.sizes.add(at) });
    // SAFETY: so far they were read.
    unsafe {
        found.sizes = Some(prefix(batch.sizes, first.max(fitting), items));
        found.dst_maxs = Some(prefix(batch.dst_maxs, fitting, items));
    }
    if fitting < items {
        return Some(found);
    }
    let count = batch.attr_count.min(most(size_of::<aclrtMemcpyBatchAttr>()));
    // SAFETY: the vendor looks at the reserved bytes one by one, up to the first that is not 0.
    let clean = scan(count, |at| unsafe { (*batch.attrs.add(at)).rsv } == [0; 16]);
    // SAFETY: as above.
    found.attrs = Some(unsafe { prefix(batch.attrs, clean, count) });
    let is_refused = clean < count || count == 0 || count > items || (!is_on_stream && items > MOST);
    if is_refused || !comes_to_indexes {
        return Some(found);
    }
    // SAFETY: the vendor comes to them; and so far they were read.
    found.attr_indexes = Some(unsafe { prefix(batch.attr_indexes, ordered(batch), count) });
    Some(found)
}

/// How many entries hold, from the first on.
#[inline(always)]
fn scan(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    (0..count).position(|at| !holds(at)).unwrap_or(count)
}

/// The entries up to the one at `last`, or all.
unsafe fn prefix<'a, T>(array: *const T, last: usize, count: usize) -> &'a [T] {
    // SAFETY: the caller has read so far.
    unsafe { slice::from_raw_parts(array, last.saturating_add(1).min(count)) }
}
