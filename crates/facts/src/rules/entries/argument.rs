//! Rules of pointers and sizes that every form has.

use crate::rules::entries::prelude::*;

pub static NULL_POINTER: Rule = Rule {
    number: 0,
    id: "NULL-POINTER",
    steps: &[Step::vendor(20, ALL.without(INDIRECT)), Step::vendor(220, INDIRECT)],
    severity: Severity::Error,
    codes: &[
        (ACL_ERROR_INVALID_PARAM, "every function but the next"),
        (ACL_ERROR_RT_PARAM_INVALID, "aclrtMemcpyAsyncWithOffset"),
    ],
    statement: "pointers and arrays must not be NULL",
    sources: &[
        Runtime("memory.cpp:657 (linear), :220 (2d), :1697 (batch), :1387 (descriptor)"),
        Runtime("api_error.cc:2190: aclrtMemcpyAsyncWithOffset is checked by the inner layer, hence its other code"),
        Runtime("memory.cpp:653: since 9.1 a copy of nothing is accepted before any pointer is looked at"),
    ],
    fix: "pass an address; a copy of nothing needs no call",
    check: null_pointer,
    cases: cases![
        Case::bad(aclrtMemcpy, "no destination", &[0, 64, PINNED, 64, 1]),
        Case::bad(aclrtMemcpyFromSymbol, "no symbol", &[PINNED, 64, 0, 64, 0, 2]),
        Case::bad(aclrtMemcpyBatch, "nowhere to write failIndex", &[ARRAY, ARRAY, ARRAY, ARRAY, 1, ARRAY, ARRAY, 1, 0])
            .within(super::batch::ONE),
        Case::good(aclrtMemcpy, "since 9.1 nothing to copy needs no pointers", &[0, 0, 0, 0, 1]),
        Case::good(aclrtMemcpy, "both there", &[DEVICE, 64, PINNED, 64, 1]),
    ],
    ..Rule::DEFAULT
};

fn null_pointer(s: &Subject) -> Verdict {
    let code = match s.function {
        aclrtMemcpyAsyncWithOffset => ACL_ERROR_RT_PARAM_INVALID,
        _ => ACL_ERROR_INVALID_PARAM,
    };
    let first = |pointers: &[(Role, usize)]| {
        let null = pointers.iter().find(|(_, address)| *address == 0);
        null.map_or(Verdict::Holds, |(role, _)| Verdict::Broken(s.refusal(*role, code)))
    };
    match s.call.form {
        Form::Linear { dst, src, .. } => first(&[(Role::Dst, dst as usize), (Role::Src, src as usize)]),
        Form::Pitched { dst, src, .. } => first(&[(Role::Dst, dst as usize), (Role::Src, src as usize)]),
        Form::Indirect { dst, src, .. } => first(&[(Role::Dst, dst as usize), (Role::Src, src as usize)]),
        Form::Described { desc, .. } => first(&[(Role::Desc, desc as usize)]),
        Form::FromSymbol { dst, symbol, .. } => first(&[(Role::Symbol, symbol as usize), (Role::Dst, dst as usize)]),
        Form::ToSymbol { src, symbol, .. } => first(&[(Role::Symbol, symbol as usize), (Role::Src, src as usize)]),
        Form::DescSize { size, .. } => first(&[(Role::DescSize, size as usize)]),
        Form::SetDesc { desc, src, dst, .. } => {
            first(&[(Role::Desc, desc as usize), (Role::Src, src as usize), (Role::Dst, dst as usize)])
        }
        Form::Fill { dst, .. } | Form::FillWords { dst, .. } => first(&[(Role::Dst, dst as usize)]),
        Form::Batch(batch) => {
            let before = [
                (Role::FailIndex, batch.fail_index.map_or(usize::MAX, |index| index as usize)),
                (Role::Count, batch.sizes as usize),
            ];
            let after = [
                (Role::Dst, batch.dsts as usize),
                (Role::DstMax, batch.dst_maxs as usize),
                (Role::Src, batch.srcs as usize),
                (Role::Attrs, batch.attrs as usize),
                (Role::AttrIndexes, batch.attr_indexes as usize),
            ];
            match (first(&before), first(&after)) {
                (Verdict::Holds, broken @ Verdict::Broken(_)) => match super::batch::is_nothing(s) {
                    // Where all sizes are 0 the vendor looks at no other array since 9.1.
                    Some(true) => Verdict::Holds,
                    Some(false) => broken,
                    None => Verdict::Unknown,
                },
                (Verdict::Holds, verdict) | (verdict, _) => verdict,
            }
        }
    }
}

pub static ZERO_SIZE: Rule = Rule {
    number: 1,
    id: "ZERO-SIZE",
    steps: &[
        Step::vendor(90, PITCHED),
        Step::vendor(120, SET_DESC),
        Step::vendor(240, LINEAR.or(INDIRECT).or(FILL)),
        Step::always(10, LINEAR.or(PITCHED).or(INDIRECT).or(FILL)),
    ],
    severity: Severity::Error,
    grades: &[
        Grade::error("before CANN 9.1; aclrtSetMemcpyDesc in every release"),
        Grade::accepted(Severity::Portability, "since 9.1, or where the release is not known")
            .comes_to(Outcome::Said("CANN 9.1 and later accept it, earlier releases do not")),
    ],
    codes: &[
        (
            ACL_ERROR_RT_PARAM_INVALID,
            "before 9.1: linear copies, aclrtMemcpyAsyncWithOffset, aclrtMemset and aclrtMemsetAsync",
        ),
        (ACL_ERROR_INVALID_PARAM, "before 9.1: aclrtMemcpy2d and aclrtMemcpy2dAsync; aclrtSetMemcpyDesc always"),
    ],
    statement: "there must be something to copy: a count, width or height of 0 is refused before CANN 9.1, and always by aclrtSetMemcpyDesc",
    sources: &[
        Runtime(
            "memory.cpp:653, :688, :216: a size of 0 is success before any other check since 9.1 (93f9f113d); the documents do not say so",
        ),
        Runtime("memory.cpp:1387: aclrtSetMemcpyDesc refuses 0 in every release"),
        Driver("devmm_svm.c:2013: drvMemsetD8 refuses 0"),
    ],
    fix: "leave the call out where there is nothing to copy",
    check: zero_size,
    cases: cases![
        Case::bad(aclrtMemcpy, "nothing to copy", &[DEVICE, 64, PINNED, 0, 1]).within(BEFORE_9_1),
        Case::bad(aclrtMemcpy2d, "rows of nothing", &[DEVICE, 64, PINNED, 64, 0, 4, 1]).within(BEFORE_9_1),
        Case::bad(aclrtSetMemcpyDesc, "a descriptor of nothing", &[DEVICE, 6, DEVICE + 64, DEVICE + 128, 0, 0]),
        Case::bad(aclrtMemcpy, "accepted since 9.1, refused before", &[DEVICE, 64, PINNED, 0, 1]),
        Case::good(aclrtMemcpy, "one byte", &[DEVICE, 64, PINNED, 1, 1]).within(BEFORE_9_1),
    ],
    ..Rule::DEFAULT
};

const BEFORE_9_1: Scene = Scene { cann: Some(Version::V9_0), ..Scene::PLAIN };

fn zero_size(s: &Subject) -> Verdict {
    let (role, code, is_refused) = match s.call.form {
        Form::Linear { count: 0, .. } | Form::Indirect { count: 0, .. } | Form::Fill { count: 0, .. } => {
            (Role::Count, ACL_ERROR_RT_PARAM_INVALID, s.accepts_nothing() == Some(false))
        }
        Form::Pitched { width: 0, .. } => (Role::Width, ACL_ERROR_INVALID_PARAM, s.accepts_nothing() == Some(false)),
        Form::Pitched { height: 0, .. } => (Role::Height, ACL_ERROR_INVALID_PARAM, s.accepts_nothing() == Some(false)),
        Form::SetDesc { count: 0, .. } => (Role::Count, ACL_ERROR_INVALID_PARAM, true),
        _ => return Verdict::Holds,
    };
    Verdict::Broken(if is_refused { s.refusal(role, code) } else { s.finding(role, Severity::Portability) })
}

impl Subject<'_> {
    /// Whether the release accepts a copy of nothing before it looks at anything else.
    pub fn accepts_nothing(&self) -> Option<bool> {
        Some(self.world.cann? >= Version::V9_1)
    }

    /// Whether there is nothing to copy or set, and the vendor says so before it looks at anything else.
    pub fn is_nothing(&self) -> Option<bool> {
        match self.call.form {
            Form::Linear { count: 0, .. }
            | Form::Indirect { count: 0, .. }
            | Form::Fill { count: 0, .. }
            | Form::Pitched { width: 0, .. }
            | Form::Pitched { height: 0, .. } => self.accepts_nothing(),
            // These came with the release that accepts nothing.
            Form::FromSymbol { count: 0, .. } | Form::ToSymbol { count: 0, .. } | Form::FillWords { words: 0, .. } => {
                Some(true)
            }
            _ => Some(false),
        }
    }
}

pub static DEST_MAX: Rule = Rule {
    number: 2,
    id: "DEST-MAX",
    steps: &[
        Step::vendor(80, FROM_SYMBOL.or(FILL_WORDS)),
        Step::vendor(230, LINEAR.or(INDIRECT).or(FILL.asynchronous())),
        Step::vendor(600, FILL.synchronous()),
    ],
    severity: Severity::Error,
    codes: &[
        (ACL_ERROR_RT_PARAM_INVALID, "linear copies, aclrtMemcpyAsyncWithOffset, aclrtMemset and aclrtMemsetAsync"),
        (ACL_ERROR_INVALID_PARAM, "copies from a symbol, aclrtMemsetD32 and aclrtMemsetD32Async"),
    ],
    statement: "destMax (dstMax, maxCount, memSize) must be greater than 0 and at least the number of bytes copied or set",
    sources: &[
        Doc("aclrtMemcpyAsync, destMax: the most memory at the destination, in bytes"),
        Runtime("api_error.cc:2135, :2138 (linear), :2184 (on a stream), :2190 (offset), :3134 (aclrtMemsetAsync)"),
        Runtime(
            "memory.cpp: aclrtMemcpyFromSymbol and aclrtMemsetD32 check it in the outer layer; N * 4 may wrap unseen",
        ),
        Driver("devmm_svm.c:2013: aclrtMemset leaves it to drvMemsetD8"),
    ],
    fix: "pass the real size of the destination, and copy no more than that",
    check: dest_max,
    cases: cases![
        Case::bad(aclrtMemcpy, "one byte too many", &[DEVICE, 63, PINNED, 64, 1]),
        Case::bad(aclrtMemcpyFromSymbol, "one byte too many", &[PINNED, 63, SYMBOL, 64, 0, 2]),
        Case::bad(aclrtMemsetD32, "16 words need 64 bytes", &[DEVICE, 63, 7, 16]),
        Case::bad(aclrtMemset, "one byte too many", &[DEVICE, 63, 0, 64]),
        Case::good(aclrtMemcpy, "exactly as much", &[DEVICE, 64, PINNED, 64, 1]),
        Case::good(aclrtMemcpyAsyncWithOffset, "exactly as much", &[LARGE, 64, 0, LARGE + 8, 64, 0, 6, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn dest_max(s: &Subject) -> Verdict {
    let (needed, max, code) = match s.call.form {
        Form::Linear { count, dst_max, .. } => {
            // Only the synchronous copy looks at a room of 0 by itself.
            let needed = if s.call.stream.is_none() { count.max(1) } else { count };
            (needed, dst_max, ACL_ERROR_RT_PARAM_INVALID)
        }
        Form::Indirect { count, dst_max, .. } => (count, dst_max, ACL_ERROR_RT_PARAM_INVALID),
        Form::Fill { count, dst_max, .. } => (count, dst_max, ACL_ERROR_RT_PARAM_INVALID),
        Form::FromSymbol { count, dst_max, .. } => (count, dst_max, ACL_ERROR_INVALID_PARAM),
        Form::FillWords { words, dst_max, .. } => (words.wrapping_mul(4), dst_max, ACL_ERROR_INVALID_PARAM),
        _ => return Verdict::Holds,
    };
    Verdict::broken_if(needed > max, s.refusal(Role::DstMax, code))
}

pub static SAME_ADDRESS: Rule = Rule {
    number: 3,
    id: "SAME-ADDRESS",
    steps: &[Step::always(20, LINEAR)],
    severity: Severity::Perf,
    grades: &[Grade::accepted(Severity::Perf, "always")
        .comes_to(Outcome::Said("it copies nothing; on a stream and inside the host it is refused all the same"))],
    statement: "a copy onto itself is accepted and copies nothing",
    sources: &[
        Runtime("api_error.cc:2144, :2249: dst == src answers 0 without a copy; no document says so"),
        Observed("0, and nothing copied; not so for the 2d functions"),
    ],
    fix: "leave the call out",
    check: same_address,
    cases: cases![
        Case::bad(aclrtMemcpy, "onto itself", &[DEVICE, 64, DEVICE, 64, 3]),
        Case::good(aclrtMemcpy, "to its neighbour", &[DEVICE + 64, 64, DEVICE, 64, 3]),
    ],
    ..Rule::DEFAULT
};

fn same_address(s: &Subject) -> Verdict {
    match s.call.form {
        Form::Linear { dst, src, count, .. } if core::ptr::eq(dst, src) && count != 0 && !dst.is_null() => {
            Verdict::Broken(s.finding(Role::Src, Severity::Perf))
        }
        _ => Verdict::Holds,
    }
}

/// Whether source and destination are equal, and the vendor accepts the call for that without a copy.
pub fn is_same(s: &Subject) -> Option<bool> {
    match s.call.form {
        Form::Linear { dst, src, .. } => Some(core::ptr::eq(dst, src)),
        Form::FromSymbol { .. } | Form::ToSymbol { .. } => {
            let (dst, src) = (s.dst()?, s.src()?);
            let is_host = |place| !matches!(place, Place::Device(_) | Place::Unknown);
            match (dst.address, src.address) {
                // Where the variable lies is not known; it is device memory.
                (0, _) | (_, 0) => (is_host(dst.region.place) || is_host(src.region.place)).then_some(false),
                (dst, src) => Some(dst == src),
            }
        }
        _ => Some(false),
    }
}
