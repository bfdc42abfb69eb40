//! Rules of the items of a batch.

use super::{ONE, THREE, THREE_ASYNC, THREE_NOW, TO_DEVICE, TO_HOST, attribute, entries};
use crate::rules::entries::prelude::*;
use crate::vendor::abi::{aclError, aclrtMemLocation, aclrtMemcpyBatchAttr};

/// `ACL_MEM_LOCATION_TYPE_HOST`
pub const HOST: i32 = 0;
/// `ACL_MEM_LOCATION_TYPE_DEVICE`
pub const ON_DEVICE: i32 = 1;
/// `ACL_MEM_LOCATION_TYPE_UNREGISTERED`
pub const UNREGISTERED: i32 = 2;
/// `ACL_MEM_LOCATION_TYPE_MANAGED`
pub const MANAGED: i32 = 3;
/// `ACL_MEM_LOCATION_TYPE_HOST_NUMA`
pub const HOST_NUMA: i32 = 4;

pub static BATCH_ZERO_SIZE: Rule = Rule {
    number: 38,
    id: "BATCH-ZERO-SIZE",
    steps: &[Step::item(BATCH)],
    severity: Severity::Error,
    codes: &[(
        ACL_ERROR_RT_PARAM_INVALID,
        "always; failIndex names the item in the asynchronous functions and is SIZE_MAX in the others",
    )],
    statement: "sizes[i] must not be 0; exception since CANN 9.1: if all sizes are 0 the call succeeds and copies nothing",
    sources: &[
        Runtime("api_impl.cc:8881: on a stream the item is refused by the runtime"),
        Driver("devmm_svm.c:4736: halMemcpyBatch refuses the batch, and failIndex stays SIZE_MAX"),
        Runtime("memory.cpp:1743: all sizes 0 is success before any other check"),
    ],
    fix: "leave such items out of the batch",
    check: batch_zero_size,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "item 1 of nothing", THREE_NOW).within(Scene { sizes: &[64, 0, 64], ..THREE }),
        Case::bad(aclrtMemcpyBatchAsync, "item 1 of nothing", THREE_ASYNC)
            .within(Scene { sizes: &[64, 0, 64], ..THREE }),
        Case::good(aclrtMemcpyBatch, "nothing but nothing", THREE_NOW).within(Scene { sizes: &[0, 0, 0], ..THREE }),
    ],
    ..Rule::DEFAULT
};

fn batch_zero_size(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    match super::is_nothing(s) {
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

pub fn zero_size(s: &Subject, index: usize) -> Finding {
    let fail_index = if s.call.stream.is_some() { index } else { usize::MAX };
    let finding = s.failing(fail_index, s.refusal(Role::Count, ACL_ERROR_RT_PARAM_INVALID));
    Finding { index: Some(index), ..finding }
}

pub static BATCH_NULL_ITEM: Rule = Rule {
    number: 39,
    id: "BATCH-NULL-ITEM",
    steps: &[Step::item(BATCH)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; failIndex names the item")],
    statement: "no entry of dsts or srcs may be NULL",
    sources: &[
        Runtime("api_impl.cc:8881: on a stream"),
        Driver("devmm_svm.c:2601: drvMemGetAttribute(NULL) is DRV_ERROR_INVALID_VALUE, in the synchronous functions"),
    ],
    fix: "leave such items out of the batch",
    check: batch_null_item,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "no destination for item 1", THREE_NOW)
            .within(Scene { dsts: &[DEVICE, 0, DEVICE + 128], ..THREE }),
        Case::bad(aclrtMemcpyBatchAsync, "no source for item 2", THREE_ASYNC)
            .within(Scene { srcs: &[PINNED, PINNED + 64, 0], ..THREE }),
        Case::good(aclrtMemcpyBatch, "all there", THREE_NOW).within(THREE),
    ],
    ..Rule::DEFAULT
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
pub fn item_with(s: &Subject, role: Role, index: usize, code: aclError) -> Finding {
    Finding { index: Some(index), ..s.failing(index, s.refusal(role, code)) }
}

pub fn item(s: &Subject, role: Role, index: usize) -> Finding {
    item_with(s, role, index, ACL_ERROR_RT_PARAM_INVALID)
}

pub static BATCH_PLACE: Rule = Rule {
    number: 40,
    id: "BATCH-PLACE",
    steps: &[Step::item(BATCH)],
    severity: Severity::Error,
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
    cases: cases![
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
    ..Rule::DEFAULT
};

fn batch_place(s: &Subject) -> Verdict {
    match unknown_type(s) {
        Verdict::Holds | Verdict::Unknown => super::left_to_the_walk(s),
        verdict => verdict,
    }
}

pub fn unknown_type(s: &Subject) -> Verdict {
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

pub static BATCH_UNREGISTERED: Rule = Rule {
    number: 41,
    id: "BATCH-UNREGISTERED",
    steps: &[Step::item(BATCH)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; failIndex names the item")],
    statement: "describe every host pointer, also from malloc, as ACL_MEM_LOCATION_TYPE_HOST; \
                ACL_MEM_LOCATION_TYPE_UNREGISTERED is always refused, although the vendor's page suggests it",
    sources: &[
        Observed("UNREGISTERED in an attribute is 107000"),
        Doc("the page of aclrtMemLocationType calls malloc memory ACL_MEM_LOCATION_TYPE_UNREGISTERED"),
        Header("acl_rt.h:315 calls ACL_MEM_LOCATION_TYPE_HOST reserved, while documents and runtime use it"),
        Runtime("api_impl.cc:8791-8829: the memory is counted as HOST, the attribute is not"),
    ],
    fix: "pass ACL_MEM_LOCATION_TYPE_HOST for every host pointer",
    check: batch_unregistered,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "malloc memory by its own name", THREE_NOW).within(Scene {
            attrs: &[attribute((1, 0), (2, 0))],
            srcs: &[PAGEABLE, PAGEABLE + 64, PAGEABLE + 128],
            ..THREE
        }),
        Case::good(aclrtMemcpyBatch, "malloc memory as the host's", THREE_NOW)
            .within(Scene { srcs: &[PAGEABLE, PAGEABLE + 64, PAGEABLE + 128], ..THREE }),
    ],
    ..Rule::DEFAULT
};

fn batch_unregistered(s: &Subject) -> Verdict {
    attr_where(s, |attr| attr.dstLoc.type_ == UNREGISTERED || attr.srcLoc.type_ == UNREGISTERED)
}

pub static BATCH_DIRECTION: Rule = Rule {
    number: 42,
    id: "BATCH-DIRECTION",
    steps: &[Step::item(BATCH)],
    severity: Severity::Error,
    grades: &[
        Grade::error("an item from host to host, or from device to device"),
        Grade::accepted(
            Severity::Violation,
            "some items go to the device and others to the host: documented as one direction, and accepted",
        )
        .documented_as(ACL_ERROR_RT_PARAM_INVALID),
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
    cases: cases![
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
    ..Rule::DEFAULT
};

const BOTH_WAYS: &[u64] = &[ARRAY, ARRAY, ARRAY, ARRAY, 2, ARRAY, ARRAY, 2, ARRAY];

/// A location's type as the vendor compares it.
pub fn said(location: aclrtMemLocation) -> i32 {
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

pub static BATCH_UNORDERED: Rule = Rule {
    number: 43,
    id: "BATCH-UNORDERED",
    steps: &[Step::advice(40, BATCH)],
    severity: Severity::Violation,
    needs_item_addresses: true,
    statement: "the copies of a batch are made in no particular order, so no two of them may write the same bytes",
    sources: &[
        Doc("aclrtMemcpyBatchAsync, Restrictions: the memory copy in a batch is unordered"),
        crate::rules::rule::Source::Ours(
            "only neighbours are compared: what two items of a large batch share is not searched for",
        ),
    ],
    fix: "give each item a destination of its own, or make two batches",
    check: batch_unordered,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "items 1 and 2 write the same bytes", THREE_NOW)
            .within(Scene { dsts: &[DEVICE, DEVICE + 64, DEVICE + 96], ..THREE }),
        Case::good(aclrtMemcpyBatch, "side by side", THREE_NOW).within(THREE),
    ],
    ..Rule::DEFAULT
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
