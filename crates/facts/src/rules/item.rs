//! Rules of the items of a batch, and the order in which the vendor comes to them.

use super::batch::{
    self, BATCH_LIMIT, MAX_ITEMS, ONE, THREE, THREE_ASYNC, THREE_NOW, TO_DEVICE, TO_HOST, attribute, entries,
};
use super::group::BATCH;
use super::memory::{DEVICE_CLOSED, MEMORY_ROOM, UNALLOCATED};
use super::role::Role;
use super::stream::{CAPTURE_BLOCKS, CAPTURE_PAGEABLE, STREAM_FOREIGN, stream_foreign};
use crate::abi::{aclError, aclrtMemLocation, aclrtMemcpyBatchAttr};
use crate::case::{ARRAY, Case, DEVICE, OTHER, PAGEABLE, PINNED, Scene};
use crate::code::{
    ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, ACL_ERROR_RT_DRV_INTERNAL_ERROR, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
    ACL_ERROR_RT_PARAM_INVALID,
};
use crate::functions::Function::*;
use crate::rule::Source::{Doc, Driver, Header, Observed, Runtime};
use crate::rule::{Finding, Rule, Scope, Severity, Subject, Verdict};
use crate::world::{Place, Region, Stream};

/// `ACL_MEM_LOCATION_TYPE_HOST`
const HOST: i32 = 0;
/// `ACL_MEM_LOCATION_TYPE_DEVICE`
const ON_DEVICE: i32 = 1;
/// `ACL_MEM_LOCATION_TYPE_UNREGISTERED`
const UNREGISTERED: i32 = 2;
/// `ACL_MEM_LOCATION_TYPE_MANAGED`
const MANAGED: i32 = 3;
/// `ACL_MEM_LOCATION_TYPE_HOST_NUMA`
const HOST_NUMA: i32 = 4;

/// BATCH-ZERO-SIZE
pub static BATCH_ZERO_SIZE: Rule = Rule {
    number: 38,
    id: "BATCH-ZERO-SIZE",
    functions: BATCH,
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[(
        ACL_ERROR_RT_PARAM_INVALID,
        "always; failIndex names the item in the asynchronous functions and is SIZE_MAX in the others",
    )],
    statement: "no item may be of size 0; only a batch of nothing but such items is accepted, since CANN 9.1",
    sources: &[
        Runtime("api_impl.cc:8881: on a stream the item is refused by the runtime"),
        Driver("devmm_svm.c:4736: halMemcpyBatch refuses the batch, and failIndex stays SIZE_MAX"),
        Runtime("memory.cpp:1743: all sizes 0 is success before any other check"),
    ],
    fix: "leave such items out of the batch",
    check: batch_zero_size,
    cases: &[
        Case::bad(aclrtMemcpyBatch, "item 1 of nothing", THREE_NOW).within(Scene { sizes: &[64, 0, 64], ..THREE }),
        Case::bad(aclrtMemcpyBatchAsync, "item 1 of nothing", THREE_ASYNC)
            .within(Scene { sizes: &[64, 0, 64], ..THREE }),
        Case::good(aclrtMemcpyBatch, "nothing but nothing", THREE_NOW).within(Scene { sizes: &[0, 0, 0], ..THREE }),
    ],
    implies: &[],
};

fn batch_zero_size(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    match batch::is_nothing(s) {
        Some(false) => {}
        Some(true) => return Verdict::Holds,
        None => return Verdict::Unknown,
    }
    let (sizes, is_whole) = entries(s.arrays.sizes, batch.items);
    let has_zero = sizes.iter().fold(false, |has, size| has | (*size == 0));
    match sizes.iter().position(|size| has_zero && *size == 0) {
        Some(index) => Verdict::Broken(zero_size(s, index)),
        None if is_whole => Verdict::Holds,
        None => Verdict::Unknown,
    }
}

fn zero_size(s: &Subject, index: usize) -> Finding {
    let fail_index = if s.call.stream.is_some() { index } else { usize::MAX };
    let finding = s.failing(fail_index, s.refusal(Role::Count, ACL_ERROR_RT_PARAM_INVALID));
    Finding { index: Some(index), ..finding }
}

/// BATCH-NULL-ITEM
pub static BATCH_NULL_ITEM: Rule = Rule {
    number: 39,
    id: "BATCH-NULL-ITEM",
    functions: BATCH,
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; failIndex names the item")],
    statement: "no entry of dsts or srcs may be NULL",
    sources: &[
        Runtime("api_impl.cc:8881: on a stream"),
        Driver("devmm_svm.c:2601: drvMemGetAttribute(NULL) is DRV_ERROR_INVALID_VALUE, in the synchronous functions"),
    ],
    fix: "leave such items out of the batch",
    check: batch_null_item,
    cases: &[
        Case::bad(aclrtMemcpyBatch, "no destination for item 1", THREE_NOW)
            .within(Scene { dsts: &[DEVICE, 0, DEVICE + 128], ..THREE }),
        Case::bad(aclrtMemcpyBatchAsync, "no source for item 2", THREE_ASYNC)
            .within(Scene { srcs: &[PINNED, PINNED + 64, 0], ..THREE }),
        Case::good(aclrtMemcpyBatch, "all there", THREE_NOW).within(THREE),
    ],
    implies: &[],
};

fn batch_null_item(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    let (dsts, is_whole) = entries(s.arrays.dsts, batch.items);
    let (srcs, is_whole_too) = entries(s.arrays.srcs, batch.items);
    let null = |array: &[*mut core::ffi::c_void]| array.iter().position(|pointer| pointer.is_null());
    match (null(dsts), null(srcs)) {
        (Some(dst), src) if src.is_none_or(|src| dst < src) => Verdict::Broken(item(s, Role::Dst, dst)),
        (_, Some(src)) => Verdict::Broken(item(s, Role::Src, src)),
        _ if is_whole && is_whole_too => Verdict::Holds,
        _ => Verdict::Unknown,
    }
}

/// A refusal of one item that `failIndex` names.
fn item_with(s: &Subject, role: Role, index: usize, code: aclError) -> Finding {
    Finding { index: Some(index), ..s.failing(index, s.refusal(role, code)) }
}

fn item(s: &Subject, role: Role, index: usize) -> Finding {
    item_with(s, role, index, ACL_ERROR_RT_PARAM_INVALID)
}

/// A refusal of one item that leaves `failIndex` at `SIZE_MAX`.
fn item_unnamed(s: &Subject, role: Role, index: usize, code: aclError) -> Finding {
    Finding { index: Some(index), ..s.failing(usize::MAX, s.refusal(role, code)) }
}

/// BATCH-PLACE
pub static BATCH_PLACE: Rule = Rule {
    number: 40,
    id: "BATCH-PLACE",
    functions: BATCH,
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; failIndex names the item")],
    statement: "each item must be where its attribute says: the type of both locations, and the id of a device",
    sources: &[
        Doc("aclrtMemcpyBatchAsync, failIndex: memory attribute and direction are checked"),
        Runtime(
            "api_impl.cc:8791-8829: malloc memory counts as the host's, HOST_NUMA as HOST; the id of a host location is not looked at",
        ),
    ],
    fix: "describe the memory in attrs as it is, and let attrsIndexes begin a new range where that changes",
    check: batch_place,
    cases: &[
        Case::bad(aclrtMemcpyBatch, "item 1 is on another device", THREE_NOW)
            .within(Scene { dsts: &[DEVICE, OTHER, DEVICE + 128], ..THREE }),
        Case::bad(aclrtMemcpyBatchAsync, "the attribute has the sides the wrong way round", THREE_ASYNC)
            .within(Scene { attrs: &[TO_HOST], ..THREE }),
        Case::bad(aclrtMemcpyBatch, "a type that is none", THREE_NOW)
            .within(Scene { attrs: &[attribute((1, 0), (9, 0))], ..THREE }),
        Case::good(aclrtMemcpyBatch, "malloc memory counts as the host's", THREE_NOW)
            .within(Scene { srcs: &[PAGEABLE, PINNED, PAGEABLE + 64], ..THREE }),
        Case::good(aclrtMemcpyBatch, "the id of a host location is not looked at", THREE_NOW)
            .within(Scene { attrs: &[attribute((1, 0), (4, 77))], ..THREE }),
    ],
    implies: &[],
};

fn batch_place(s: &Subject) -> Verdict {
    match unknown_type(s) {
        Verdict::Holds | Verdict::Unknown => first_of(s, &BATCH_PLACE),
        verdict => verdict,
    }
}

fn unknown_type(s: &Subject) -> Verdict {
    let is_none = |location: aclrtMemLocation| !(HOST..=HOST_NUMA).contains(&location.type_);
    attr_where(s, |attr| is_none(attr.dstLoc) || is_none(attr.srcLoc))
}

/// The first attribute of which `is_wrong`; the first item of its range is then refused, if none before it is.
fn attr_where(s: &Subject, is_wrong: impl Fn(&aclrtMemcpyBatchAttr) -> bool) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    let (attrs, is_whole) = entries(s.arrays.attrs, batch.attr_count);
    match attrs.iter().position(is_wrong) {
        Some(index) => {
            let first = s.arrays.attr_indexes.and_then(|indexes| indexes.get(index)).copied();
            let finding = s.refusal(Role::Attrs, ACL_ERROR_RT_PARAM_INVALID);
            let finding = first.map_or(finding, |first| s.failing(first, finding));
            Verdict::Broken(Finding { index: Some(index), ..finding })
        }
        None if is_whole => Verdict::Holds,
        None => Verdict::Unknown,
    }
}

/// What the attributes alone say, in one pass: each pair of types that comes is a bit, and only a pair that some rule
/// has a word about is searched for.
pub fn attributes(s: &Subject, see: &mut dyn FnMut(&'static Rule, Verdict) -> bool) {
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

/// BATCH-UNREGISTERED
pub static BATCH_UNREGISTERED: Rule = Rule {
    number: 41,
    id: "BATCH-UNREGISTERED",
    functions: BATCH,
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; failIndex names the item")],
    statement: "an attribute must name host memory ACL_MEM_LOCATION_TYPE_HOST, also memory from malloc: ACL_MEM_LOCATION_TYPE_UNREGISTERED never fits",
    sources: &[
        Doc("the page of aclrtMemLocationType calls malloc memory ACL_MEM_LOCATION_TYPE_UNREGISTERED"),
        Header("acl_rt.h:315 calls ACL_MEM_LOCATION_TYPE_HOST reserved, while documents and runtime use it"),
        Runtime("api_impl.cc:8791-8829: the memory is counted as HOST, the attribute is not"),
        Observed("UNREGISTERED in an attribute is 107000"),
    ],
    fix: "pass ACL_MEM_LOCATION_TYPE_HOST for every host pointer",
    check: batch_unregistered,
    cases: &[
        Case::bad(aclrtMemcpyBatch, "malloc memory by its own name", THREE_NOW).within(Scene {
            attrs: &[attribute((1, 0), (2, 0))],
            srcs: &[PAGEABLE, PAGEABLE + 64, PAGEABLE + 128],
            ..THREE
        }),
        Case::good(aclrtMemcpyBatch, "malloc memory as the host's", THREE_NOW)
            .within(Scene { srcs: &[PAGEABLE, PAGEABLE + 64, PAGEABLE + 128], ..THREE }),
    ],
    implies: &[],
};

fn batch_unregistered(s: &Subject) -> Verdict {
    attr_where(s, |attr| attr.dstLoc.type_ == UNREGISTERED || attr.srcLoc.type_ == UNREGISTERED)
}

/// BATCH-DIRECTION
pub static BATCH_DIRECTION: Rule = Rule {
    number: 42,
    id: "BATCH-DIRECTION",
    functions: BATCH,
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[
        (Severity::Error, "an item from host to host, or from device to device"),
        (
            Severity::Violation,
            "some items go to the device and others to the host: documented as one direction, and accepted",
        ),
    ],
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "an item from host to host, or from device to device; failIndex names it")],
    statement: "a batch copies from host to device, or from device to host, and all of its items the same way",
    sources: &[
        Doc("aclrtMemcpyBatchAsync, Restrictions: only one of \"from host to device\" and \"from device to host\""),
        Runtime("api_impl.cc:8791-8829: each item by itself needs one side on the host and one on a device"),
        Observed("items in both directions are accepted in one call"),
    ],
    fix: "make one batch for each direction; copy inside a device with aclrtMemcpyAsync",
    check: batch_direction,
    cases: &[
        Case::bad(aclrtMemcpyBatchAsync, "inside the device", THREE_ASYNC).within(Scene {
            srcs: &[DEVICE + 4096, DEVICE + 8192, DEVICE + 12288],
            attrs: &[attribute((1, 0), (1, 0))],
            ..THREE
        }),
        Case::bad(aclrtMemcpyBatch, "both ways in one batch: accepted, not documented", BOTH_WAYS).within(Scene {
            dsts: &[DEVICE, PINNED + 4096],
            dst_maxs: &[64, 64],
            srcs: &[PINNED, DEVICE + 4096],
            sizes: &[64, 64],
            attrs: &[TO_DEVICE, TO_HOST],
            attr_indexes: &[0, 1],
            ..ONE
        }),
        Case::good(aclrtMemcpyBatch, "two devices, one direction", BOTH_WAYS).within(Scene {
            dsts: &[DEVICE, OTHER],
            dst_maxs: &[64, 64],
            srcs: &[PINNED, PINNED + 64],
            sizes: &[64, 64],
            attrs: &[TO_DEVICE, attribute((1, 1), (0, 0))],
            attr_indexes: &[0, 1],
            ..ONE
        }),
    ],
    implies: &[],
};

const BOTH_WAYS: &[u64] = &[ARRAY, ARRAY, ARRAY, ARRAY, 2, ARRAY, ARRAY, 2, ARRAY];

/// A location's type as the vendor compares it.
fn said(location: aclrtMemLocation) -> i32 {
    if location.type_ == HOST_NUMA { HOST } else { location.type_ }
}

fn batch_direction(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    let one_place = |attr: &aclrtMemcpyBatchAttr| {
        said(attr.dstLoc) == said(attr.srcLoc) && matches!(said(attr.srcLoc), HOST | ON_DEVICE | MANAGED)
    };
    let verdict = match attr_where(s, one_place) {
        broken @ Verdict::Broken(_) => return broken,
        verdict => verdict,
    };
    let (attrs, _) = entries(s.arrays.attrs, batch.attr_count);
    let way = |attr: &aclrtMemcpyBatchAttr| (said(attr.dstLoc), said(attr.srcLoc));
    let is_plain = |way: &(i32, i32)| matches!(way, (HOST, ON_DEVICE) | (ON_DEVICE, HOST));
    let Some(first) = attrs.first().map(way).filter(is_plain) else { return verdict };
    match attrs.iter().position(|attr| is_plain(&way(attr)) && way(attr) != first) {
        Some(index) => Verdict::Broken(Finding { index: Some(index), ..s.finding(Role::Attrs, Severity::Violation) }),
        None => verdict,
    }
}

/// BATCH-UNORDERED
pub static BATCH_UNORDERED: Rule = Rule {
    number: 43,
    id: "BATCH-UNORDERED",
    functions: BATCH,
    scope: Scope::ALL,
    severity: Severity::Violation,
    grades: &[],
    codes: &[],
    statement: "the copies of a batch are made in no particular order, so no two of them may write the same bytes",
    sources: &[
        Doc("aclrtMemcpyBatchAsync, Restrictions: the memory copy in a batch is unordered"),
        crate::rule::Source::Ours(
            "only neighbours are compared: what two items of a large batch share is not searched for",
        ),
    ],
    fix: "give each item a destination of its own, or make two batches",
    check: batch_unordered,
    cases: &[
        Case::bad(aclrtMemcpyBatch, "items 1 and 2 write the same bytes", THREE_NOW)
            .within(Scene { dsts: &[DEVICE, DEVICE + 64, DEVICE + 96], ..THREE }),
        Case::good(aclrtMemcpyBatch, "side by side", THREE_NOW).within(THREE),
    ],
    implies: &[],
};

fn batch_unordered(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    let (dsts, _) = entries(s.arrays.dsts, batch.items);
    let (sizes, _) = entries(s.arrays.sizes, batch.items);
    let items = || dsts.iter().zip(sizes);
    let shares = |((a, size_a), (b, size_b)): ((&*mut _, &usize), (&*mut _, &usize))| {
        let (a, b): (usize, usize) = (*a as *mut u8 as usize, *b as *mut u8 as usize);
        let first_size = if a <= b { *size_a } else { *size_b };
        a.abs_diff(b) < first_size && a != 0 && b != 0 && *size_a != 0 && *size_b != 0
    };
    match items().zip(items().skip(1)).position(shares) {
        Some(before) => {
            Verdict::Broken(Finding { index: Some(before + 1), ..s.finding(Role::Dst, Severity::Violation) })
        }
        None => Verdict::Holds,
    }
}

/// Looks at the items in the vendor's order and hands every verdict to `see`, which says whether to go on.
pub fn walk(s: &Subject, see: &mut dyn FnMut(&'static Rule, Verdict) -> bool) {
    let _ = items(s, see);
}

/// The same where nothing is known of memory: only what the arrays themselves say.
pub fn walk_unseeing(s: &Subject, see: &mut dyn FnMut(&'static Rule, Verdict) -> bool) {
    see(&BATCH_ZERO_SIZE, batch_zero_size(s));
    see(&BATCH_NULL_ITEM, batch_null_item(s));
    match s.call.stream {
        Some(_) => see(&STREAM_FOREIGN, stream_foreign(s)),
        None => see(&DEVICE_CLOSED, closed(s, 0)),
    };
}

/// Whether the driver refuses to look at an item.
fn closed(s: &Subject, index: usize) -> Verdict {
    match super::memory::device_closed(s) {
        Verdict::Broken(finding) => Verdict::Broken(Finding { index: Some(index), ..s.failing(index, finding) }),
        verdict => verdict,
    }
}

/// What the walk says of one rule: its first break.
fn first_of(s: &Subject, rule: &'static Rule) -> Verdict {
    let mut first = Verdict::Holds;
    if !s.world.memory.tells() {
        return Verdict::Unknown;
    }
    walk(s, &mut |seen, verdict| {
        if let Verdict::Broken(_) = verdict
            && core::ptr::eq(seen, rule)
        {
            first = verdict;
            return false;
        }
        true
    });
    first
}

/// The first item of pageable memory.
pub fn pageable(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    if !s.world.memory.tells() {
        return Verdict::Unknown;
    }
    let (dsts, _) = entries(s.arrays.dsts, batch.items);
    let (srcs, _) = entries(s.arrays.srcs, batch.items);
    let is_pageable = |pointer: &*mut _| s.world.memory.region(*pointer as *mut u8 as usize).place == Place::Pageable;
    let is_pageable = |pointer: &*mut core::ffi::c_void| !pointer.is_null() && is_pageable(pointer);
    match dsts.iter().zip(srcs).position(|(dst, src)| is_pageable(dst) || is_pageable(src)) {
        Some(index) => {
            let is_dst = dsts.get(index).is_some_and(is_pageable);
            let finding = s.finding(if is_dst { Role::Dst } else { Role::Src }, Severity::Perf);
            Verdict::Broken(Finding { index: Some(index), ..finding })
        }
        None => Verdict::Holds,
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

type See<'a> = &'a mut dyn FnMut(&'static Rule, Verdict) -> bool;

/// `None` ends the walk.
fn items(s: &Subject, see: See) -> Option<()> {
    let batch = s.batch()?;
    let is_on_stream = s.call.stream.is_some();
    let is_whole = is_on_stream && s.world.product.is_some_and(|product| product.checks_batch_whole);
    if is_whole {
        tell(see, &STREAM_FOREIGN, stream_foreign(s))?;
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
            tell(see, &STREAM_FOREIGN, stream_foreign(s))?;
            if item.is_pageable() {
                tell(see, &CAPTURE_BLOCKS, capture(s, index))?;
            }
            room(s, item, see)?;
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
        tell(see, &BATCH_ZERO_SIZE, batch_zero_size(s))?;
    }
    if !is_on_stream || is_whole {
        for index in 0..count {
            room(s, sides(s, index)?, see)?;
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

/// Looks at one item; `Some(None)` if it is refused, or not known, and the walk goes on all the same.
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

/// Whether both sides of an item are long enough.
fn room(s: &Subject, item: Item, see: See) -> Option<()> {
    for (role, region) in [(Role::Dst, item.dst), (Role::Src, item.src)] {
        let verdict = match (region.place, region.room) {
            (Place::Device(_), Some(room)) => {
                Verdict::broken_if(item.size > room, item_unnamed(s, role, item.index, ACL_ERROR_RT_PARAM_INVALID))
            }
            (Place::Device(_) | Place::Unknown, _) => Verdict::Unknown,
            // Nobody checks host memory: what lies behind is read or written.
            (_, Some(room)) if item.size > room => Verdict::Unknown,
            _ => Verdict::Holds,
        };
        tell(see, &MEMORY_ROOM, verdict)?;
    }
    Some(())
}
