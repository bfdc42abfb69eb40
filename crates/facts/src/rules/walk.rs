//! The walk over the items of a batch, in the order in which the vendor comes to them.

use super::entries::batch::item::{
    BATCH_DIRECTION, BATCH_NULL_ITEM, BATCH_PLACE, BATCH_UNREGISTERED, BATCH_ZERO_SIZE, HOST, HOST_NUMA, MANAGED,
    ON_DEVICE, UNREGISTERED, item, item_with, said, unknown_type, zero_size,
};
use super::entries::batch::{BATCH_LIMIT, MAX_ITEMS, entries};
use super::entries::capture::{CAPTURE_BLOCKS, CAPTURE_PAGEABLE};
use super::entries::memory::{DEVICE_CLOSED, UNALLOCATED};
use super::entries::range::MEMORY_ROOM;
use super::entries::stream::{STREAM_FOREIGN, queued_on_foreign};
use super::role::Role;
use super::rule::{Finding, Rule, Subject, Verdict};
use super::world::{Place, Region, Stream};
use crate::vendor::abi::{aclError, aclrtMemLocation};
use crate::vendor::code::{
    ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, ACL_ERROR_RT_DRV_INTERNAL_ERROR, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
    ACL_ERROR_RT_PARAM_INVALID,
};

/// What is wrong with the attributes and the items of a batch; of any other call nothing.
pub fn batch(s: &Subject, see: See) {
    if s.batch().is_none() {
        return;
    }
    attributes(s, see);
    if s.world.memory.is_tracked() {
        items(s, see);
    } else {
        items_unseen(s, see);
    }
}

/// What the attributes alone say, in one pass: each pair of types that comes is a bit, and only a pair that some rule
/// has a word about is searched for.
fn attributes(s: &Subject, see: See) {
    let Some(batch) = s.batch() else { return };
    let (attrs, _) = entries(s.arrays.attrs, batch.attr_count);
    let column = |location: aclrtMemLocation| (location.type_ as u32).min(7);
    let bit = |dst: u32, src: u32| 1u64 << (dst * 8 + src);
    let seen = attrs.iter().fold(0, |seen, attr| seen | bit(column(attr.dstLoc), column(attr.srcLoc)));
    let (host, device, numa) = (HOST as u32, ON_DEVICE as u32, HOST_NUMA as u32);
    let to_device = bit(device, host) | bit(device, numa);
    let to_host = bit(host, device) | bit(numa, device);
    if seen & !to_device == 0 || seen & !to_host == 0 {
        return;
    }
    for rule in [&BATCH_UNREGISTERED, &BATCH_DIRECTION] {
        see(rule, (rule.check)(s));
    }
    see(&BATCH_PLACE, unknown_type(s));
}

/// Looks at the items in the vendor's order and hands every verdict to `see`, which says whether to go on.
pub fn items(s: &Subject, see: See) {
    let _ = each(s, see);
}

/// Looks at the items where nothing is known of memory: only at what the arrays themselves say.
fn items_unseen(s: &Subject, see: See) {
    see(&BATCH_ZERO_SIZE, (BATCH_ZERO_SIZE.check)(s));
    see(&BATCH_NULL_ITEM, (BATCH_NULL_ITEM.check)(s));
    match s.call.stream {
        Some(_) if is_whole(s) => see(&STREAM_FOREIGN, queued_on_foreign(s)),
        // An item of pageable memory is not queued, and which ones are is not known.
        Some(_) => true,
        None => see(&DEVICE_CLOSED, closed(s, 0)),
    };
}

/// Whether the product looks at the stream and at all items of an asynchronous batch before it copies the first.
fn is_whole(s: &Subject) -> bool {
    s.call.stream.is_some() && s.world.product.is_some_and(|product| product.checks_batch_whole)
}

/// Whether the driver refuses to look at an item.
fn closed(s: &Subject, index: usize) -> Verdict {
    match super::entries::memory::device_closed(s) {
        Verdict::Broken(finding) => Verdict::Broken(Finding { index: Some(index), ..s.failing(index, finding) }),
        verdict => verdict,
    }
}

/// One item: what its two sides are, once they have been looked at.
#[derive(Clone, Copy)]
struct Item {
    index: usize,
    size: usize,
    dst: Region,
    src: Region,
}

impl Item {
    fn is_pageable(&self) -> bool {
        self.dst.place == Place::Pageable || self.src.place == Place::Pageable
    }
}

/// A refusal of one item that leaves `failIndex` at `SIZE_MAX`.
fn item_unnamed(s: &Subject, role: Role, index: usize, code: aclError) -> Finding {
    Finding { index: Some(index), ..s.failing(usize::MAX, s.refusal(role, code)) }
}

type See<'a> = &'a mut dyn FnMut(&'static Rule, Verdict) -> bool;

/// `None` ends the walk.
fn each(s: &Subject, see: See) -> Option<()> {
    let batch = s.batch()?;
    let is_on_stream = s.call.stream.is_some();
    let is_whole = is_whole(s);
    if is_whole {
        tell(see, &STREAM_FOREIGN, queued_on_foreign(s))?;
    }
    let mut attribute = 0;
    let mut has_pageable = false;
    // Never further than the arrays were read: numBatches is the caller's word.
    let read = |length: Option<usize>| length.unwrap_or(0).min(batch.items);
    let pointers = read(s.arrays.dsts.map(<[_]>::len)).min(read(s.arrays.srcs.map(<[_]>::len)));
    let count = pointers.min(read(s.arrays.sizes.map(<[_]>::len)));
    for index in 0..count {
        // As the vendor does: at most one attribute further an item.
        let next = s.arrays.attr_indexes.and_then(|indexes| indexes.get(attribute + 1));
        if attribute + 1 < batch.attr_count && next.is_some_and(|next| index >= *next) {
            attribute += 1;
        }
        let Some(item) = look(s, index, attribute, see)? else { continue };
        has_pageable |= item.is_pageable();
        if is_on_stream && !is_whole {
            if item.is_pageable() {
                tell(see, &CAPTURE_BLOCKS, capture(s, index))?;
            } else {
                tell(see, &STREAM_FOREIGN, queued_on_foreign(s))?;
            }
            let driver = if item.is_pageable() { Driver::Looks } else { Driver::Unknown };
            room(s, item, driver, see)?;
            host_room(item, see)?;
        }
    }
    if count < batch.items {
        tell(see, &BATCH_PLACE, Verdict::Unknown)?;
    }
    if is_whole && has_pageable {
        tell(see, &CAPTURE_PAGEABLE, captured(s))?;
        let finding = s.failing(usize::MAX, s.refusal(Role::Items, ACL_ERROR_RT_FEATURE_NOT_SUPPORT));
        tell(see, &BATCH_LIMIT, Verdict::broken_if(batch.items > MAX_ITEMS, finding))?;
    }
    if !is_on_stream {
        tell(see, &BATCH_ZERO_SIZE, (BATCH_ZERO_SIZE.check)(s))?;
    }
    if !is_on_stream || is_whole {
        let driver = if is_on_stream && !has_pageable { Driver::Unknown } else { Driver::Looks };
        for index in 0..count {
            room(s, sides(s, index)?, driver, see)?;
        }
        // Every item is looked at before the first byte moves.
        for index in 0..count {
            host_room(sides(s, index)?, see)?;
        }
    }
    Some(())
}

fn tell(see: See, rule: &'static Rule, verdict: Verdict) -> Option<()> {
    see(rule, verdict).then_some(())
}

fn capture(s: &Subject, index: usize) -> Verdict {
    match s.world.is_capture_in_the_way {
        Some(false) => Verdict::Holds,
        Some(true) => Verdict::Broken(item_unnamed(s, Role::Stream, index, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT)),
        None => Verdict::Unknown,
    }
}

fn captured(s: &Subject) -> Verdict {
    let finding = s.failing(usize::MAX, s.refusal(Role::Stream, ACL_ERROR_RT_PARAM_INVALID));
    match s.world.stream {
        Stream::Own { is_captured } | Stream::Foreign { is_captured } => Verdict::broken_if(is_captured, finding),
        Stream::Unknown => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}

/// Where the two sides of an item are; `None` if that must not be read.
fn sides(s: &Subject, index: usize) -> Option<Item> {
    let region = |array: Option<&[*mut core::ffi::c_void]>| match *array?.get(index)? as usize {
        0 => Some(Region { place: Place::Unknown, room: None }),
        address => Some(s.world.memory.region(address)),
    };
    let size = *s.arrays.sizes?.get(index)?;
    Some(Item { index, size, dst: region(s.arrays.dsts)?, src: region(s.arrays.srcs)? })
}

/// Looks at one item; `Some(None)` if it is refused, or not known, and the walk goes on.
fn look(s: &Subject, index: usize, attribute: usize, see: See) -> Option<Option<Item>> {
    let pointer = |array: Option<&[*mut core::ffi::c_void]>| array?.get(index).copied();
    let attr = s.arrays.attrs.and_then(|attrs| attrs.get(attribute));
    let (Some(dst), Some(src), Some(attr), Some(item)) =
        (pointer(s.arrays.dsts), pointer(s.arrays.srcs), attr, sides(s, index))
    else {
        tell(see, &BATCH_PLACE, Verdict::Unknown)?;
        return Some(None);
    };
    if s.call.stream.is_some() && item.size == 0 {
        tell(see, &BATCH_ZERO_SIZE, Verdict::Broken(zero_size(s, index)))?;
        return Some(None);
    }
    let null = if dst.is_null() { Some(Role::Dst) } else { src.is_null().then_some(Role::Src) };
    if dst.is_null() || (src.is_null() && s.call.stream.is_some()) {
        tell(see, &BATCH_NULL_ITEM, Verdict::Broken(self::item(s, null.unwrap_or(Role::Src), index)))?;
        return Some(None);
    }
    if s.call.stream.is_none() {
        let verdict = closed(s, index);
        let is_open = verdict == Verdict::Holds;
        tell(see, &DEVICE_CLOSED, verdict)?;
        if !is_open {
            return Some(None);
        }
    }
    for (role, region, location) in [(Role::Dst, item.dst, attr.dstLoc), (Role::Src, item.src, attr.srcLoc)] {
        if role == Role::Src && src.is_null() {
            tell(see, &BATCH_NULL_ITEM, Verdict::Broken(self::item(s, role, index)))?;
            return Some(None);
        }
        let (rule, verdict) = place(s, index, role, region, location);
        tell(see, rule, verdict)?;
        if verdict != Verdict::Holds {
            return Some(None);
        }
    }
    let is_one_place = real(item.dst.place) == real(item.src.place);
    tell(see, &BATCH_DIRECTION, Verdict::broken_if(is_one_place, self::item(s, Role::Src, index)))?;
    Some((!is_one_place).then_some(item))
}

/// The type of location that the runtime sees.
fn real(place: Place) -> i32 {
    match place {
        Place::Device(_) => ON_DEVICE,
        Place::Managed => MANAGED,
        _ => HOST,
    }
}

/// Whether one side is there, and where its attribute says.
fn place(
    s: &Subject,
    index: usize,
    role: Role,
    region: Region,
    location: aclrtMemLocation,
) -> (&'static Rule, Verdict) {
    let rule = if location.type_ == UNREGISTERED { &BATCH_UNREGISTERED } else { &BATCH_PLACE };
    let is_elsewhere = match region.place {
        Place::Unknown => return (rule, Verdict::Unknown),
        Place::Unallocated => {
            let finding = item_with(s, role, index, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
            return (&UNALLOCATED, Verdict::Broken(finding));
        }
        Place::Device(id) => id != location.id,
        _ => false,
    };
    let is_wrong = is_elsewhere || said(location) != real(region.place);
    (rule, Verdict::broken_if(is_wrong, item(s, role, index)))
}

/// What the driver does about lengths when the call is made.
#[derive(Clone, Copy)]
enum Driver {
    /// It looks at them: the copy is done at once.
    Looks,
    /// Not known: the copy goes to its stream.
    Unknown,
}

/// Whether both sides of an item are long enough.
fn room(s: &Subject, item: Item, driver: Driver, see: See) -> Option<()> {
    for (role, region) in [(Role::Dst, item.dst), (Role::Src, item.src)] {
        let verdict = match (region.place, region.room) {
            (Place::Device(_), Some(room)) if item.size <= room => Verdict::Holds,
            (Place::Device(_), Some(_)) if matches!(driver, Driver::Looks) => {
                Verdict::Broken(item_unnamed(s, role, item.index, ACL_ERROR_RT_PARAM_INVALID))
            }
            (Place::Device(_) | Place::Unknown, _) => Verdict::Unknown,
            // The vendor does not check host memory.
            _ => Verdict::Holds,
        };
        tell(see, &MEMORY_ROOM, verdict)?;
    }
    Some(())
}

/// What comes last: where host memory is not all there, what lies behind is read or written.
fn host_room(item: Item, see: See) -> Option<()> {
    let is_host = |region: Region| !matches!(region.place, Place::Device(_) | Place::Unknown);
    let falls_short = |region: Region| is_host(region) && region.room.is_some_and(|room| item.size > room);
    let verdict = if falls_short(item.dst) || falls_short(item.src) { Verdict::Unknown } else { Verdict::Holds };
    tell(see, &MEMORY_ROOM, verdict)
}
