//! Rules of how far a copy reaches.

use super::batch::{THREE, THREE_NOW, entries};
use crate::rules::entries::prelude::*;

pub static OVERLAP: Rule = Rule {
    number: 11,
    id: "OVERLAP",
    steps: &[Step::advice(90, LINEAR.or(SET_DESC))],
    severity: Severity::Violation,
    statement: "source and destination must not overlap",
    sources: &[Ours(
        "no document says what overlapping ranges give, and nothing checks them; the copy engine moves large copies in pieces",
    )],
    fix: "copy by way of a third buffer, or in an order of your own",
    check: overlap,
    cases: cases![
        Case::bad(aclrtMemcpy, "half of it", &[DEVICE + 64, 128, DEVICE, 128, 3]),
        Case::good(aclrtMemcpy, "side by side", &[DEVICE + 128, 128, DEVICE, 128, 3]),
    ],
    ..Rule::DEFAULT
};

fn overlap(s: &Subject) -> Verdict {
    let (Some(dst), Some(src)) = (s.dst(), s.src()) else { return Verdict::Holds };
    let size = dst.size.unwrap_or(usize::MAX);
    let is_overlapping = dst.address.abs_diff(src.address) < size && dst.address != src.address;
    Verdict::broken_if(
        is_overlapping && dst.address != 0 && src.address != 0,
        s.finding(Role::Src, Severity::Violation),
    )
}

pub static RANGE_OVERFLOW: Rule = Rule {
    number: 12,
    id: "RANGE-OVERFLOW",
    steps: &[Step::advice(100, ALL.without(INDIRECT).without(DESCRIBED).without(DESC_SIZE))],
    severity: Severity::Violation,
    statement: "a range must end inside the address space",
    sources: &[
        Ours("an address plus a size, rows times a pitch, or N * 4 that wrap describe no memory"),
        Runtime("memory.cpp, aclrtMemsetD32: N * 4 is not looked at for overflow, and may pass for a small number"),
    ],
    fix: "look for an underflowed (negative) size_t, or for a size that counts something else than bytes",
    check: range_overflow,
    cases: cases![
        Case::bad(aclrtMemcpy, "an underflowed size_t", &[PAGEABLE, u64::MAX, PINNED, u64::MAX - 63, 0]),
        Case::bad(aclrtMemsetD32, "words that wrap", &[DEVICE, 64, 0, (1 << 62) + 1]),
        Case::bad(aclrtMemsetD32, "words that end nowhere", &[PINNED, u64::MAX - 3, 0, (1 << 62) - 1]),
        Case::bad(aclrtMemcpyBatch, "item 2 ends nowhere", THREE_NOW).within(Scene {
            dst_maxs: &[64, 64, usize::MAX],
            sizes: &[64, 64, usize::MAX],
            ..THREE
        }),
        Case::good(aclrtMemcpy, "a large size", &[PAGEABLE, 1 << 40, LARGE, 1 << 40, 2]),
    ],
    implies: &[
        ("OVERLAP", "two ranges that reach the end of the address space overlap"),
        ("MEMORY-ROOM", "such a range runs out of its memory too, where that is known"),
    ],
    ..Rule::DEFAULT
};

/// The first item of a batch of which a side, by its address and its size, `is_wrong`, as far as the items were read.
fn item_where(s: &Subject, is_wrong: impl Fn(usize, usize) -> bool) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    let (sizes, _) = entries(s.arrays.sizes, batch.items);
    let first = |array: Option<&[*mut core::ffi::c_void]>| {
        let (pointers, _) = entries(array, batch.items);
        pointers.iter().zip(sizes).position(|(pointer, size)| is_wrong(pointer.addr(), *size))
    };
    let (role, index) = match (first(s.arrays.dsts), first(s.arrays.srcs)) {
        (Some(dst), src) if src.is_none_or(|src| dst <= src) => (Role::Dst, dst),
        (_, Some(src)) => (Role::Src, src),
        _ => return Verdict::Holds,
    };
    Verdict::Broken(Finding { index: Some(index), ..s.finding(role, Severity::Violation) })
}

fn range_overflow(s: &Subject) -> Verdict {
    if matches!(s.call.form, Form::FillWords { words, .. } if words.checked_mul(4).is_none()) {
        return Verdict::Broken(s.finding(Role::Count, Severity::Violation));
    }
    if s.batch().is_some() {
        let wraps = |address: usize, size: usize| address != 0 && address.checked_add(size).is_none();
        return item_where(s, wraps);
    }
    let wraps = |side: &Side| side.size.is_none_or(|size| side.address.checked_add(size).is_none());
    let wraps = |side: Option<Side>| side.filter(|side| side.address != 0 && wraps(side));
    match wraps(s.dst()).or_else(|| wraps(s.src())) {
        Some(side) => Verdict::Broken(s.finding(side.role, Severity::Violation)),
        None => Verdict::Holds,
    }
}

pub static MEMORY_ROOM: Rule = Rule {
    number: 13,
    id: "MEMORY-ROOM",
    steps: &[
        Step::vendor(690, LINEAR.or(PITCHED).or(FROM_SYMBOL).or(FILL).or(FILL_WORDS)).part(dst_room),
        Step::vendor(710, LINEAR.or(PITCHED).or(TO_SYMBOL)).part(src_room),
        Step::vendor(720, LINEAR.or(PITCHED).or(SYMBOLS).or(FILL).or(FILL_WORDS)).part(host_room),
        Step::vendor(730, SET_DESC).part(desc_room),
        Step::item(BATCH),
        Step::advice(80, LINEAR.or(PITCHED).or(BATCH).or(SYMBOLS).or(FILL).or(FILL_WORDS)),
    ],
    severity: Severity::Error,
    grades: &[
        Grade::error("device memory that is too short, in a copy that is done at once"),
        Grade::accepted(
            Severity::Violation,
            "pinned or managed memory that is too short; on a stream device memory too",
        )
        .comes_to(Outcome::Said(
            "nobody is known to check it when the call is made: what lies behind is read or written, or the copy fails later",
        )),
    ],
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "device memory, done at once; failIndex of a batch stays SIZE_MAX")],
    statement: "what is copied or set must lie inside the allocations",
    sources: &[
        Driver("drvMemcpy: a range that runs out of its device memory is DRV_ERROR_INVALID_VALUE"),
        Runtime(
            "memory_memcpy_async_task.cc:526 (MemcpyAsyncTaskInitV3): on a stream a copy inside the device is handed to the copy engine as it is, and so is any copy of most chips; what the driver makes of it then is not public",
        ),
    ],
    fix: "allocate more, or copy less; aclrtMemGetAddressRange tells where an allocation ends",
    check: memory_room,
    cases: cases![
        Case::bad(aclrtMemcpy, "beyond the end of the destination", &[DEVICE + (1 << 20) - 64, 128, PINNED, 128, 1]),
        Case::bad(
            aclrtMemcpyAsync,
            "beyond the end of the source",
            &[PINNED, 128, DEVICE + (1 << 20) - 64, 128, 2, STREAM],
        ),
        Case::bad(aclrtMemset, "beyond the end", &[DEVICE + (1 << 20) - 64, 128, 0, 128]),
        Case::bad(aclrtMemcpyBatch, "beyond the end of the pinned source of item 1", THREE_NOW)
            .within(Scene { srcs: &[PINNED, PINNED + (1 << 20) - 32, PINNED + 128], ..THREE }),
        Case::bad(
            aclrtMemcpyFromSymbol,
            "beyond the end of a pinned destination",
            &[PINNED + (1 << 20) - 32, 64, SYMBOL, 64, 0, 2],
        ),
        Case::good(aclrtMemcpy, "to the last byte", &[DEVICE + (1 << 20) - 64, 64, PINNED, 64, 1]),
    ],
    ..Rule::DEFAULT
};

/// Whether the driver looks at lengths when the call is made; `None` where that is not known.
fn is_looked_at(s: &Subject) -> Option<bool> {
    match s.call.stream {
        None => Some(true),
        // What is done at once is done as if there were no stream.
        Some(_) => s.is_pageable().filter(|is_pageable| *is_pageable),
    }
}

fn memory_room(s: &Subject) -> Verdict {
    if s.batch().is_some() {
        return batch_room(s);
    }
    let is_short = |side: &Side| side.region.room.is_some_and(|room| side.size.is_none_or(|size| size > room));
    // Where malloc memory ends is not known here.
    let is_untold = |side: &Side| match side.region.place {
        Place::Unknown => true,
        Place::Device(_) | Place::Pinned | Place::Managed => side.region.room.is_none(),
        Place::Pageable | Place::Unallocated => false,
    };
    let sides = match s.call.form {
        // The descriptor functions move only the descriptor; how long a variable is, is SYMBOL-RANGE's.
        Form::SetDesc { .. } => [s.desc(), None],
        Form::FromSymbol { .. } => [s.dst(), None],
        Form::ToSymbol { .. } => [s.src(), None],
        _ => [s.dst(), s.src()],
    };
    match sides.iter().flatten().find(|side| is_short(side)) {
        Some(side) if matches!(side.region.place, Place::Device(_)) && is_looked_at(s) == Some(true) => {
            Verdict::Broken(s.refusal(side.role, ACL_ERROR_RT_PARAM_INVALID))
        }
        Some(side) => Verdict::Broken(s.finding(side.role, Severity::Violation)),
        None if sides.iter().flatten().any(is_untold) => Verdict::Unknown,
        None => Verdict::Holds,
    }
}

/// What the vendor does not check of the items of a batch: the walk over them finds what the driver refuses.
fn batch_room(s: &Subject) -> Verdict {
    if !s.world.memory.is_tracked() {
        return Verdict::Unknown;
    }
    let is_short = |address: usize, size: usize| {
        address != 0 && s.world.memory.region(address).room.is_some_and(|room| size > room)
    };
    item_where(s, is_short)
}

/// Whether the driver refuses one side for its length.
fn is_long_enough(s: &Subject, side: Option<Side>) -> Verdict {
    let Some(side) = side else { return Verdict::Holds };
    let fits = |room| side.size.is_some_and(|size| size <= room);
    match (side.region.place, side.region.room) {
        (Place::Device(_), Some(room)) if fits(room) => Verdict::Holds,
        (Place::Device(_), Some(_)) if is_looked_at(s) == Some(true) => {
            Verdict::Broken(s.refusal(side.role, ACL_ERROR_RT_PARAM_INVALID))
        }
        // The vendor does not check host memory.
        (Place::Pinned | Place::Managed | Place::Pageable, _) => Verdict::Holds,
        _ => Verdict::Unknown,
    }
}

/// The driver's look at the length of the destination.
fn dst_room(s: &Subject) -> Verdict {
    is_long_enough(s, s.dst())
}

/// The driver's look at the length of the source.
fn src_room(s: &Subject) -> Verdict {
    match is_long_enough(s, s.src()) {
        // Through a buffer the source is read at once, by whom is not known.
        Verdict::Broken(_) if s.kind() == Some(HOST_TO_BUF_TO_DEVICE) && s.call.stream.is_some() => Verdict::Unknown,
        verdict => verdict,
    }
}

/// What comes last: where host memory is not all there, the copy faults, or takes what lies behind.
fn host_room(s: &Subject) -> Verdict {
    let falls_short = |side: Side| {
        let is_host = matches!(side.region.place, Place::Pinned | Place::Managed | Place::Pageable);
        let ends = side.size.and_then(|size| side.address.checked_add(size)).is_some();
        let fits = |room| side.size.is_some_and(|size| size <= room);
        is_host && !(ends && side.region.room.is_none_or(fits))
    };
    if [s.dst(), s.src()].into_iter().flatten().any(falls_short) { Verdict::Unknown } else { Verdict::Holds }
}

/// The driver's look at the length of a descriptor.
fn desc_room(s: &Subject) -> Verdict {
    is_long_enough(s, s.desc())
}
