//! Rules of captures, and of copies that block because their memory is pageable.

use super::batch::entries;
use super::stream::first_pointer;
use crate::rules::entries::prelude::*;

pub static CAPTURE_SYNC: Rule = Rule {
    number: 19,
    id: "CAPTURE-SYNC",
    steps: &[Step::vendor(590, LINEAR.or(PITCHED).or(SYMBOLS).or(FILL).synchronous())],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "always")],
    statement: "a synchronous copy is not permitted while a capture is under way that is not relaxed",
    sources: &[
        Runtime("api_impl.cc:2750-2757, context_aclgraph.cc:230-262"),
        Runtime(
            "api_impl.cc:8760: the synchronous batch copies do not ask; nor does aclrtSetMemcpyDesc (:3131, context.cc:2962), which hands its descriptor to the driver itself",
        ),
    ],
    fix: "use the asynchronous function on the captured stream, or capture in relaxed mode, or set this thread's mode with aclmdlRICaptureThreadExchangeMode",
    check: capture_sync,
    cases: cases![
        Case::bad(aclrtMemcpy, "while a graph is made", &[DEVICE, 64, PINNED, 64, 1]).within(CAPTURING),
        Case::bad(aclrtMemcpyFromSymbol, "while a graph is made", &[PINNED, 64, SYMBOL, 64, 0, 2]).within(CAPTURING),
        Case::good(aclrtMemcpyAsync, "on a stream", &[DEVICE, 64, PINNED, 64, 1, STREAM]).within(CAPTURING),
        Case::good(aclrtSetMemcpyDesc, "a descriptor", &[DEVICE, 6, DEVICE + 64, DEVICE + 128, 64, 0])
            .within(CAPTURING),
    ],
    ..Rule::DEFAULT
};

const CAPTURING: Scene = Scene { is_capture_in_the_way: Some(true), ..Scene::PLAIN };

fn capture_sync(s: &Subject) -> Verdict {
    match s.world.is_capture_in_the_way {
        Some(true) => Verdict::Broken(s.refusal(first_pointer(s), ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT)),
        Some(false) => Verdict::Holds,
        None => Verdict::Unknown,
    }
}

pub static CAPTURE_PAGEABLE: Rule = Rule {
    number: 20,
    id: "CAPTURE-PAGEABLE",
    steps: &[Step::vendor(610, LINEAR.or(PITCHED).or(SYMBOLS).asynchronous()), Step::item(BATCH.asynchronous())],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; a batch only on Ascend 950, with failIndex SIZE_MAX")],
    statement: "a copy of pageable memory cannot be captured",
    sources: &[
        Runtime("api_error.cc:2257: the copy would be done at once, not when the graph runs"),
        Runtime("api_impl_david.cc:803-879: a batch on Ascend 950"),
    ],
    fix: "use pinned memory, from aclrtMallocHost or registered with aclrtHostRegister",
    check: capture_pageable,
    cases: cases![
        Case::bad(aclrtMemcpyAsync, "from malloc memory on a captured stream", &[DEVICE, 64, PAGEABLE, 64, 1, STREAM])
            .within(CAPTURED),
        Case::good(aclrtMemcpyAsync, "from pinned memory", &[DEVICE, 64, PINNED, 64, 1, STREAM]).within(CAPTURED),
    ],
    ..Rule::DEFAULT
};

const CAPTURED: Scene = Scene { stream: Stream::Own { is_captured: true }, ..Scene::PLAIN };

fn capture_pageable(s: &Subject) -> Verdict {
    match (s.is_pageable(), s.world.stream) {
        (Some(false), _) => Verdict::Holds,
        (None, _) | (_, Stream::Unknown) => Verdict::Unknown,
        (Some(true), Stream::Own { is_captured: true } | Stream::Foreign { is_captured: true }) => {
            Verdict::Broken(s.refusal(Role::Stream, ACL_ERROR_RT_PARAM_INVALID))
        }
        _ => Verdict::Holds,
    }
}

pub static CAPTURE_BLOCKS: Rule = Rule {
    number: 21,
    id: "CAPTURE-BLOCKS",
    steps: &[Step::vendor(650, LINEAR.or(PITCHED).or(SYMBOLS).asynchronous()), Step::item(BATCH.asynchronous())],
    severity: Severity::Error,
    codes: &[
        (ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC, "every function but the batches"),
        (ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "the batches, except on Ascend 950; failIndex is SIZE_MAX"),
    ],
    statement: "an asynchronous copy of malloc memory runs synchronously, and synchronous copies are forbidden while a \
                non-relaxed stream capture is active",
    sources: &[Runtime("api_error.cc:2265; context_aclgraph.cc:230-262")],
    fix: "use pinned memory, or capture in relaxed mode",
    check: capture_blocks,
    cases: cases![
        Case::bad(
            aclrtMemcpyAsync,
            "from malloc memory while another stream is captured",
            &[DEVICE, 64, PAGEABLE, 64, 1, STREAM],
        )
        .within(CAPTURING),
        Case::good(aclrtMemcpyAsync, "from pinned memory", &[DEVICE, 64, PINNED, 64, 1, STREAM]).within(CAPTURING),
    ],
    ..Rule::DEFAULT
};

fn capture_blocks(s: &Subject) -> Verdict {
    match (s.is_pageable(), s.world.is_capture_in_the_way) {
        (Some(false), _) | (_, Some(false)) => Verdict::Holds,
        (Some(true), Some(true)) => Verdict::Broken(s.refusal(Role::Stream, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC)),
        _ => Verdict::Unknown,
    }
}

impl Subject<'_> {
    /// Whether a call on a stream copies pageable memory, which the runtime does at once.
    pub fn is_pageable(&self) -> Option<bool> {
        match self.effective_kind() {
            EffectiveKind::Unknown => None,
            EffectiveKind::Misfit => Some(false),
            EffectiveKind::Settled { is_pageable, .. } => Some(is_pageable),
        }
    }
}

pub static ASYNC_PAGEABLE: Rule = Rule {
    number: 22,
    id: "ASYNC-PAGEABLE",
    steps: &[Step::advice(70, LINEAR.or(PITCHED).or(BATCH).or(SYMBOLS).asynchronous())],
    severity: Severity::Perf,
    statement: "with host memory that is not page-locked an asynchronous copy returns only when it is done",
    sources: &[
        Doc("aclrtMemcpyAsync, aclrtMemcpyBatchAsync: with memory from malloc the call returns after the copy"),
        Runtime("api_error.cc:2789: the stream is waited for, then the copy is done at once"),
    ],
    fix: "use memory from aclrtMallocHost, or register yours with aclrtHostRegister",
    check: async_pageable,
    cases: cases![
        Case::bad(aclrtMemcpyAsync, "from malloc memory", &[DEVICE, 64, PAGEABLE, 64, 1, STREAM]),
        Case::good(aclrtMemcpyAsync, "from pinned memory", &[DEVICE, 64, PINNED, 64, 1, STREAM]),
        Case::good(aclrtMemcpyAsync, "through a buffer", &[DEVICE, 64, PAGEABLE, 64, 5, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn async_pageable(s: &Subject) -> Verdict {
    if let Form::Batch(_) = s.call.form {
        return pageable_item(s);
    }
    match s.is_pageable() {
        None => Verdict::Unknown,
        Some(is_pageable) => {
            let is_dst = s.dst().is_some_and(|dst| dst.region.place == Place::Pageable);
            let role = if is_dst { Role::Dst } else { Role::Src };
            Verdict::broken_if(is_pageable, s.finding(role, Severity::Perf))
        }
    }
}

/// The first item of pageable memory.
fn pageable_item(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    if !s.world.memory.is_tracked() {
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
