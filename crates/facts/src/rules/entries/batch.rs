//! Rules of a batch as a whole: its arrays, its counts and the layout of its attributes.
//!
//! The arrays are looked at in plain passes over slices, so that a batch of a thousand items costs no more than a few
//! nanoseconds an item.

pub mod item;
pub mod layout;

use crate::call::Batch;
use crate::rules::entries::prelude::*;
use crate::vendor::abi::{aclrtMemLocation, aclrtMemcpyBatchAttr};

/// The most items of a synchronous batch (`DEVMM_MEMCPY_BATCH_MAX_COUNT`).
pub const MAX_ITEMS: usize = 4096;

/// An attribute: type and id of the destination, then of the source.
pub const fn attribute(dst: (i32, u32), src: (i32, u32)) -> aclrtMemcpyBatchAttr {
    aclrtMemcpyBatchAttr {
        dstLoc: aclrtMemLocation { id: dst.1, type_: dst.0 },
        srcLoc: aclrtMemLocation { id: src.1, type_: src.0 },
        rsv: [0; 16],
    }
}

/// From the host to device 0.
pub const TO_DEVICE: aclrtMemcpyBatchAttr = attribute((1, 0), (0, 0));
/// From device 0 to the host.
pub const TO_HOST: aclrtMemcpyBatchAttr = attribute((0, 0), (1, 0));

/// One item from pinned memory to the device.
pub const ONE: Scene = Scene {
    dsts: &[DEVICE],
    dst_maxs: &[64],
    srcs: &[PINNED],
    sizes: &[64],
    attrs: &[TO_DEVICE],
    attr_indexes: &[0],
    ..Scene::PLAIN
};

/// Three items from pinned memory to the device.
pub const THREE: Scene = Scene {
    dsts: &[DEVICE, DEVICE + 64, DEVICE + 128],
    dst_maxs: &[64, 64, 64],
    srcs: &[PINNED, PINNED + 64, PINNED + 128],
    sizes: &[64, 64, 64],
    attrs: &[TO_DEVICE],
    attr_indexes: &[0],
    ..Scene::PLAIN
};

/// The arguments of [`THREE`] for `aclrtMemcpyBatch`.
pub const THREE_NOW: &[u64] = &[ARRAY, ARRAY, ARRAY, ARRAY, 3, ARRAY, ARRAY, 1, ARRAY];
/// Arguments of `aclrtMemcpyBatchAsync` for [`THREE`].
pub const THREE_ASYNC: &[u64] = &[ARRAY, ARRAY, ARRAY, ARRAY, 3, ARRAY, ARRAY, 1, ARRAY, STREAM];
impl Subject<'_> {
    /// The arguments of a batch.
    pub fn batch(&self) -> Option<&Batch> {
        match &self.call.form {
            Form::Batch(batch) => Some(batch),
            _ => None,
        }
    }
}

/// The first `count` entries of an array, and whether these are all.
pub fn entries<T>(array: Option<&[T]>, count: usize) -> (&[T], bool) {
    match array {
        Some(array) => (array.get(..count).unwrap_or(array), array.len() >= count),
        None => (&[], count == 0),
    }
}

/// `Holds` if everything was looked at.
pub fn as_far(is_whole: bool) -> Verdict {
    if is_whole { Verdict::Holds } else { Verdict::Unknown }
}

/// Whether all sizes are 0, and the release accepts that before it looks at anything else.
pub fn is_nothing(s: &Subject) -> Option<bool> {
    let Some(batch) = s.batch() else { return Some(false) };
    let (sizes, is_whole) = entries(s.arrays.sizes, batch.items);
    if batch.items == 0 || sizes.iter().any(|size| *size != 0) {
        return Some(false);
    }
    match s.accepts_nothing() {
        Some(false) => Some(false),
        accepts => accepts.filter(|_| is_whole),
    }
}

pub static BATCH_EMPTY: Rule = Rule {
    number: 30,
    id: "BATCH-EMPTY",
    steps: &[Step::vendor(30, BATCH)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_INVALID_PARAM, "always; failIndex is left as it is")],
    statement: "numBatches must not be 0",
    sources: &[Runtime("memory.cpp:1740-1741")],
    fix: "leave the call out where there is nothing to copy",
    check: batch_empty,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "no item", &[ARRAY, ARRAY, ARRAY, ARRAY, 0, ARRAY, ARRAY, 1, ARRAY]).within(ONE),
        Case::good(aclrtMemcpyBatch, "one item", &[ARRAY, ARRAY, ARRAY, ARRAY, 1, ARRAY, ARRAY, 1, ARRAY]).within(ONE),
    ],
    implies: &[("BATCH-ATTRS", "numAttrs is then greater than numBatches, or 0")],
    ..Rule::DEFAULT
};

fn batch_empty(s: &Subject) -> Verdict {
    let is_empty = s.batch().is_some_and(|batch| batch.items == 0);
    Verdict::broken_if(is_empty, s.refusal(Role::Items, ACL_ERROR_INVALID_PARAM))
}

pub static BATCH_DEST_MAX: Rule = Rule {
    number: 31,
    id: "BATCH-DEST-MAX",
    steps: &[Step::vendor(50, BATCH)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_INVALID_PARAM, "always; failIndex is left as it is")],
    statement: "destMaxs[i] must not be less than sizes[i]",
    sources: &[
        Doc(
            "aclrtMemcpyBatchAsync, destMaxs: the most memory of each copy; failIndex: SIZE_MAX where the error is not about one item",
        ),
        Runtime("memory.cpp:1705: found before the item is looked at, and failIndex is not written at all"),
        Observed("failIndex keeps the caller's value"),
    ],
    fix: "pass the real size of each destination",
    check: batch_dest_max,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "item 1 is a byte too long", THREE_NOW)
            .within(Scene { dst_maxs: &[64, 63, 64], ..THREE }),
        Case::good(aclrtMemcpyBatch, "all just fit", THREE_NOW).within(THREE),
    ],
    ..Rule::DEFAULT
};

fn batch_dest_max(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    let (sizes, is_whole) = entries(s.arrays.sizes, batch.items);
    let (maxs, is_whole_too) = entries(s.arrays.dst_maxs, batch.items);
    // First whether, without a branch an item; then which.
    let is_over = sizes.iter().zip(maxs).fold(false, |over, (size, max)| over | (size > max));
    if !is_over {
        return as_far(is_whole && is_whole_too);
    }
    let index = sizes.iter().zip(maxs).position(|(size, max)| size > max);
    Verdict::Broken(Finding { index, ..s.refusal(Role::DstMax, ACL_ERROR_INVALID_PARAM) })
}

pub static BATCH_RESERVED: Rule = Rule {
    number: 32,
    id: "BATCH-RESERVED",
    steps: &[Step::vendor(60, BATCH)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_INVALID_PARAM, "always; failIndex is left as it is")],
    statement: "the reserved bytes of every attribute must be 0",
    sources: &[Runtime("memory.cpp:1721")],
    fix: "clear aclrtMemcpyBatchAttr before you fill it: aclrtMemcpyBatchAttr attr = {0}",
    check: batch_reserved,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "an attribute that was not cleared", THREE_NOW).within(Scene {
            attrs: &[aclrtMemcpyBatchAttr { rsv: [0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], ..TO_DEVICE }],
            ..THREE
        }),
        Case::good(aclrtMemcpyBatch, "the id of a host location is not looked at", THREE_NOW)
            .within(Scene { attrs: &[attribute((1, 0), (0, 0xdead))], ..THREE }),
    ],
    ..Rule::DEFAULT
};

fn batch_reserved(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    let (attrs, is_whole) = entries(s.arrays.attrs, batch.attr_count);
    let is_set = |attr: &aclrtMemcpyBatchAttr| u128::from_ne_bytes(attr.rsv) != 0;
    if !attrs.iter().fold(false, |any, attr| any | is_set(attr)) {
        return as_far(is_whole);
    }
    match attrs.iter().position(is_set) {
        Some(index) => {
            let finding = s.refusal(Role::Attrs, ACL_ERROR_INVALID_PARAM);
            Verdict::Broken(Finding { index: Some(index), ..finding })
        }
        None => as_far(is_whole),
    }
}

pub static BATCH_LIMIT: Rule = Rule {
    number: 34,
    id: "BATCH-LIMIT",
    steps: &[Step::vendor(310, BATCH.synchronous()), Step::item(BATCH.asynchronous())],
    severity: Severity::Error,
    codes: &[
        (ACL_ERROR_RT_PARAM_INVALID, "the synchronous functions; failIndex is SIZE_MAX"),
        (
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            "on Ascend 950 a batch on a stream with pageable memory, which is done at once",
        ),
    ],
    statement: "a synchronous batch takes at most 4096 items",
    sources: &[
        Runtime(
            "api_error.cc:7298: numBatches > 4096 (DEVMM_MEMCPY_BATCH_MAX_COUNT); no document names the limit, and the asynchronous functions have none",
        ),
        Driver("devmm_svm.c:4736: halMemcpyBatch takes 4096"),
        Observed("4097 items are 107000 in the synchronous form"),
    ],
    fix: "split the batch, or use aclrtMemcpyBatchAsync with pinned memory",
    check: batch_limit,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "4097 items", &[ARRAY, ARRAY, ARRAY, ARRAY, 4097, ARRAY, ARRAY, 1, ARRAY])
            .within(ONE),
        Case::good(aclrtMemcpyBatch, "4096 items", &[ARRAY, ARRAY, ARRAY, ARRAY, 4096, ARRAY, ARRAY, 1, ARRAY])
            .within(ONE),
        Case::good(
            aclrtMemcpyBatchAsync,
            "4097 items on a stream",
            &[ARRAY, ARRAY, ARRAY, ARRAY, 4097, ARRAY, ARRAY, 1, ARRAY, STREAM],
        )
        .within(ONE),
    ],
    ..Rule::DEFAULT
};

fn batch_limit(s: &Subject) -> Verdict {
    let is_over = s.call.stream.is_none() && s.batch().is_some_and(|batch| batch.items > MAX_ITEMS);
    Verdict::broken_if(is_over, s.failing(usize::MAX, s.refusal(Role::Items, ACL_ERROR_RT_PARAM_INVALID)))
}

/// The verdict of a rule that only the walk over the items finds broken: unknown where nothing is known of memory.
pub fn left_to_the_walk(s: &Subject) -> Verdict {
    if s.world.memory.is_tracked() { Verdict::Holds } else { Verdict::Unknown }
}
