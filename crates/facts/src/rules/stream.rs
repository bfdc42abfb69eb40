//! Rules of the thread's context, of streams and of captures.

use super::direction::{Direction, HOST_TO_BUF_TO_DEVICE};
use super::role::Role;
use crate::call::Form;
use crate::case::{Case, DEVICE, PAGEABLE, PINNED, STREAM, SYMBOL, Scene};
use crate::code::{
    ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, ACL_ERROR_RT_CONTEXT_NULL,
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT, ACL_ERROR_RT_INVALID_HANDLE, ACL_ERROR_RT_PARAM_INVALID,
    ACL_ERROR_RT_STREAM_CONTEXT,
};
use crate::functions::Function::{self, *};
use crate::rule::Source::{Doc, Observed, Runtime};
use crate::rule::{Rule, Scope, Severity, Subject, Verdict};
use crate::world::{Place, Stream};

/// CONTEXT-MISSING
pub static CONTEXT_MISSING: Rule = Rule {
    number: 16,
    id: "CONTEXT-MISSING",
    functions: &[
        aclrtMemcpy,
        aclrtMemcpyAsync,
        aclrtMemcpyAsyncWithCondition,
        aclrtMemcpy2d,
        aclrtMemcpy2dAsync,
        aclrtMemcpyBatchAsync,
        aclrtMemcpyBatchAsyncV2,
        aclrtMemcpyAsyncWithOffset,
        aclrtMemcpyAsyncWithDesc,
        aclrtMemcpyFromSymbol,
        aclrtMemcpyFromSymbolAsync,
        aclrtMemcpyToSymbol,
        aclrtMemcpyToSymbolAsync,
        aclrtSetMemcpyDesc,
        aclrtMemset,
        aclrtMemsetAsync,
        aclrtMemsetD32,
        aclrtMemsetD32Async,
    ],
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[
        (ACL_ERROR_RT_CONTEXT_NULL, "every function but the next"),
        (ACL_ERROR_RT_PARAM_INVALID, "aclrtMemcpy2dAsync on the default stream"),
    ],
    statement: "the calling thread must have a context",
    sources: &[
        Runtime("api_impl.cc:2750 (synchronous), api_error.cc:2220 (on a stream)"),
        Runtime("api_impl.cc:8760: the synchronous batch copies ask for none"),
        Observed(
            "api_error.cc:3063: aclrtMemcpy2dAsync with a NULL stream and no context is 107000, every other call 107002",
        ),
    ],
    fix: "call aclrtSetDevice or aclrtSetCurrentContext on this thread first: a context is a thread's own",
    check: context_missing,
    cases: &[
        Case::bad(aclrtMemcpy, "on a thread without a device", &[DEVICE, 64, PINNED, 64, 1]).within(WITHOUT),
        Case::bad(aclrtMemcpy2dAsync, "rows on its default stream", &[DEVICE, 64, PINNED, 64, 64, 2, 1, 0])
            .within(WITHOUT),
        Case::good(aclrtMemcpy, "after aclrtSetDevice", &[DEVICE, 64, PINNED, 64, 1]),
    ],
    implies: &[],
};

const WITHOUT: Scene = Scene { has_context: Some(false), ..Scene::PLAIN };

fn context_missing(s: &Subject) -> Verdict {
    match default_stream_missing(s) {
        Verdict::Holds => context_is_there(s),
        verdict => verdict,
    }
}

/// Asks for the thread's context.
pub fn context_is_there(s: &Subject) -> Verdict {
    let role = if s.call.stream.is_some() { Role::Stream } else { first_pointer(s) };
    let finding = s.refusal(role, ACL_ERROR_RT_CONTEXT_NULL);
    match s.world.has_context {
        Some(true) => Verdict::Holds,
        Some(false) => Verdict::Broken(s.failing(usize::MAX, finding)),
        None => Verdict::Unknown,
    }
}

fn first_pointer(s: &Subject) -> Role {
    if s.desc().is_some() { Role::Desc } else { Role::Dst }
}

/// Rows on the default stream ask for it before they ask for a context.
pub fn default_stream_missing(s: &Subject) -> Verdict {
    match (s.function, s.world.stream, s.world.has_context) {
        (aclrtMemcpy2dAsync, Stream::Default, Some(false)) => {
            Verdict::Broken(s.refusal(Role::Stream, ACL_ERROR_RT_PARAM_INVALID))
        }
        (aclrtMemcpy2dAsync, Stream::Default, None) => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}

/// STREAM-INVALID
pub static STREAM_INVALID: Rule = Rule {
    number: 17,
    id: "STREAM-INVALID",
    functions: super::group::ON_STREAM,
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[(ACL_ERROR_RT_INVALID_HANDLE, "always; failIndex of a batch is left as it is")],
    statement: "the stream must be a live one, or NULL for the default stream",
    sources: &[Runtime(
        "runtime_handle_guard.cc:69-92: the magic number behind the handle is read; a handle that points nowhere is a segmentation fault",
    )],
    fix: "look for an early aclrtDestroyStream, or for a handle of another library",
    check: stream_invalid,
    cases: &[
        Case::bad(aclrtMemcpyAsync, "a destroyed stream", &[DEVICE, 64, PINNED, 64, 1, STREAM])
            .within(Scene { stream: Stream::Invalid, ..Scene::PLAIN }),
        Case::good(aclrtMemcpyAsync, "the default stream", &[DEVICE, 64, PINNED, 64, 1, 0]),
    ],
    implies: &[],
};

fn stream_invalid(s: &Subject) -> Verdict {
    match s.world.stream {
        Stream::Invalid => Verdict::Broken(s.refusal(Role::Stream, ACL_ERROR_RT_INVALID_HANDLE)),
        Stream::Unknown => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}

/// STREAM-FOREIGN
pub static STREAM_FOREIGN: Rule = Rule {
    number: 18,
    id: "STREAM-FOREIGN",
    functions: super::group::ON_STREAM,
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[(ACL_ERROR_RT_STREAM_CONTEXT, "always; failIndex of a batch is SIZE_MAX")],
    statement: "the stream must belong to the thread's context",
    sources: &[Runtime("api_impl.cc:2883"), Doc("FAQ: aclrtMemcpyAsync on a stream of another device fails")],
    fix: "make the stream's context the thread's with aclrtSetCurrentContext, or use a stream of this one",
    check: stream_foreign,
    cases: &[
        Case::bad(aclrtMemcpyAsync, "another context's stream", &[DEVICE, 64, PINNED, 64, 1, STREAM])
            .within(Scene { stream: Stream::Foreign { is_captured: false }, ..Scene::PLAIN }),
        Case::good(aclrtMemcpyAsync, "its own", &[DEVICE, 64, PINNED, 64, 1, STREAM]),
        Case::good(aclrtMemsetD32Async, "pinned memory is set at once, on no stream", &[PINNED, 64, 0, 16, STREAM])
            .within(Scene { stream: Stream::Foreign { is_captured: false }, ..Scene::PLAIN }),
    ],
    implies: &[],
};

/// Asks whether the stream is the thread's.
pub fn stream_foreign(s: &Subject) -> Verdict {
    if let (Form::FillWords { .. }, Some(dst)) = (s.call.form, s.dst()) {
        // Only device memory is set on the stream.
        match dst.region.place {
            Place::Device(_) => {}
            Place::Unknown => return Verdict::Unknown,
            _ => return Verdict::Holds,
        }
    }
    match s.world.stream {
        Stream::Foreign { .. } => {
            Verdict::Broken(s.failing(usize::MAX, s.refusal(Role::Stream, ACL_ERROR_RT_STREAM_CONTEXT)))
        }
        Stream::Unknown => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}

/// CAPTURE-SYNC
pub static CAPTURE_SYNC: Rule = Rule {
    number: 19,
    id: "CAPTURE-SYNC",
    functions: &[
        aclrtMemcpy,
        aclrtMemcpy2d,
        aclrtMemcpyFromSymbol,
        aclrtMemcpyToSymbol,
        aclrtSetMemcpyDesc,
        aclrtMemset,
    ],
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "always")],
    statement: "a synchronous copy is not permitted while a capture is under way that is not relaxed",
    sources: &[
        Runtime("api_impl.cc:2750-2757, context_aclgraph.cc:230-262"),
        Runtime("api_impl.cc:8760: the synchronous batch copies do not ask"),
    ],
    fix: "use the asynchronous function on the captured stream, or capture in relaxed mode, or set this thread's mode with aclmdlRICaptureThreadExchangeMode",
    check: capture_sync,
    cases: &[
        Case::bad(aclrtMemcpy, "while a graph is captured", &[DEVICE, 64, PINNED, 64, 1]).within(CAPTURING),
        Case::bad(aclrtMemcpyFromSymbol, "while a graph is captured", &[PINNED, 64, SYMBOL, 64, 0, 2])
            .within(CAPTURING),
        Case::good(aclrtMemcpyAsync, "on a stream", &[DEVICE, 64, PINNED, 64, 1, STREAM]).within(CAPTURING),
    ],
    implies: &[],
};

const CAPTURING: Scene = Scene { is_capture_in_the_way: Some(true), ..Scene::PLAIN };

fn capture_sync(s: &Subject) -> Verdict {
    match s.world.is_capture_in_the_way {
        Some(true) => Verdict::Broken(s.refusal(first_pointer(s), ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT)),
        Some(false) => Verdict::Holds,
        None => Verdict::Unknown,
    }
}

const MAY_BLOCK: &[Function] = &[
    aclrtMemcpyAsync,
    aclrtMemcpyAsyncWithCondition,
    aclrtMemcpy2dAsync,
    aclrtMemcpyBatchAsync,
    aclrtMemcpyBatchAsyncV2,
    aclrtMemcpyFromSymbolAsync,
    aclrtMemcpyToSymbolAsync,
];

/// CAPTURE-PAGEABLE
pub static CAPTURE_PAGEABLE: Rule = Rule {
    number: 20,
    id: "CAPTURE-PAGEABLE",
    functions: MAY_BLOCK,
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; a batch only on Ascend 950, with failIndex SIZE_MAX")],
    statement: "a copy of pageable memory cannot be captured",
    sources: &[
        Runtime("api_error.cc:2257: the copy would be done at once, not when the graph runs"),
        Runtime("api_impl_david.cc:803-879: a batch on Ascend 950"),
    ],
    fix: "use pinned memory, from aclrtMallocHost or registered with aclrtHostRegister",
    check: capture_pageable,
    cases: &[
        Case::bad(aclrtMemcpyAsync, "from malloc memory on a captured stream", &[DEVICE, 64, PAGEABLE, 64, 1, STREAM])
            .within(CAPTURED),
        Case::good(aclrtMemcpyAsync, "from pinned memory", &[DEVICE, 64, PINNED, 64, 1, STREAM]).within(CAPTURED),
    ],
    implies: &[],
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

/// CAPTURE-BLOCKS
pub static CAPTURE_BLOCKS: Rule = Rule {
    number: 21,
    id: "CAPTURE-BLOCKS",
    functions: MAY_BLOCK,
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[
        (ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC, "every function but the batches"),
        (ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "the batches, except on Ascend 950; failIndex is SIZE_MAX"),
    ],
    statement: "a copy of pageable memory is done at once, which a capture under way elsewhere forbids",
    sources: &[Runtime("api_error.cc:2265; context_aclgraph.cc:230-262")],
    fix: "use pinned memory, or let the capture be relaxed",
    check: capture_blocks,
    cases: &[
        Case::bad(
            aclrtMemcpyAsync,
            "from malloc memory while another stream is captured",
            &[DEVICE, 64, PAGEABLE, 64, 1, STREAM],
        )
        .within(CAPTURING),
        Case::good(aclrtMemcpyAsync, "from pinned memory", &[DEVICE, 64, PINNED, 64, 1, STREAM]).within(CAPTURING),
    ],
    implies: &[],
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
        match self.direction() {
            Direction::Unknown => None,
            Direction::Misfit => Some(false),
            Direction::Settled { is_pageable, .. } => Some(is_pageable),
        }
    }
}

/// ASYNC-PAGEABLE
pub static ASYNC_PAGEABLE: Rule = Rule {
    number: 22,
    id: "ASYNC-PAGEABLE",
    functions: MAY_BLOCK,
    scope: Scope::ALL,
    severity: Severity::Perf,
    grades: &[],
    codes: &[],
    statement: "with host memory that is not page-locked an asynchronous copy returns only when it is done",
    sources: &[
        Doc("aclrtMemcpyAsync, aclrtMemcpyBatchAsync: with memory from malloc the call returns after the copy"),
        Runtime("api_error.cc:2789: the stream is waited for, then the copy is done at once"),
    ],
    fix: "use memory from aclrtMallocHost, or register yours with aclrtHostRegister",
    check: async_pageable,
    cases: &[
        Case::bad(aclrtMemcpyAsync, "from malloc memory", &[DEVICE, 64, PAGEABLE, 64, 1, STREAM]),
        Case::good(aclrtMemcpyAsync, "from pinned memory", &[DEVICE, 64, PINNED, 64, 1, STREAM]),
        Case::good(aclrtMemcpyAsync, "through a buffer", &[DEVICE, 64, PAGEABLE, 64, 5, STREAM]),
    ],
    implies: &[],
};

fn async_pageable(s: &Subject) -> Verdict {
    if let Form::Batch(_) = s.call.form {
        return super::item::pageable(s);
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

/// CONDITION-DRIVER
pub static CONDITION_DRIVER: Rule = Rule {
    number: 23,
    id: "CONDITION-DRIVER",
    functions: &[aclrtMemcpyAsyncWithCondition],
    scope: Scope::ALL,
    severity: Severity::Error,
    grades: &[],
    codes: &[(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "always")],
    statement: "the driver must be able to tell pageable memory",
    sources: &[Runtime("api_error.cc:2814-2818: without FEATURE_SVM_GET_USER_MALLOC_ATTR")],
    fix: "use aclrtMemcpyAsync, and memory from aclrtMallocHost",
    check: condition_driver,
    cases: &[
        Case::bad(aclrtMemcpyAsyncWithCondition, "an old driver", &[DEVICE, 64, PINNED, 64, 1, STREAM])
            .within(OLD_DRIVER),
        Case::good(aclrtMemcpyAsync, "without the condition", &[DEVICE, 64, PINNED, 64, 1, STREAM]).within(OLD_DRIVER),
    ],
    implies: &[],
};

const OLD_DRIVER: Scene = Scene { tells_pageable: Some(false), ..Scene::PLAIN };

fn condition_driver(s: &Subject) -> Verdict {
    match s.world.tells_pageable {
        _ if s.kind() == Some(HOST_TO_BUF_TO_DEVICE) => Verdict::Holds,
        Some(true) => Verdict::Holds,
        Some(false) => Verdict::Broken(s.refusal(Role::Stream, ACL_ERROR_RT_FEATURE_NOT_SUPPORT)),
        None => Verdict::Unknown,
    }
}
