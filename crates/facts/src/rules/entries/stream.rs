//! Rules of the thread's context and of streams.

use super::batch::{THREE, THREE_ASYNC, left_to_the_walk};
use crate::rules::entries::prelude::*;

pub static CONTEXT_MISSING: Rule = Rule {
    number: 16,
    id: "CONTEXT-MISSING",
    steps: &[
        Step::vendor(210, PITCHED.asynchronous()).part(default_stream_missing),
        Step::vendor(460, ALL.without(BATCH.synchronous()).without(DESC_SIZE)).part(context_is_there),
    ],
    severity: Severity::Error,
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
    cases: cases![
        Case::bad(aclrtMemcpy, "a thread that never called aclrtSetDevice", &[DEVICE, 64, PINNED, 64, 1])
            .within(WITHOUT),
        Case::bad(aclrtMemcpy2dAsync, "rows on its default stream", &[DEVICE, 64, PINNED, 64, 64, 2, 1, 0])
            .within(WITHOUT),
        Case::good(aclrtMemcpy, "after aclrtSetDevice", &[DEVICE, 64, PINNED, 64, 1]),
    ],
    ..Rule::DEFAULT
};

const WITHOUT: Scene = Scene { has_context: Some(false), ..Scene::PLAIN };

fn context_missing(s: &Subject) -> Verdict {
    match default_stream_missing(s) {
        Verdict::Holds => context_is_there(s),
        verdict => verdict,
    }
}

/// Asks for the thread's context.
fn context_is_there(s: &Subject) -> Verdict {
    let role = if s.call.stream.is_some() { Role::Stream } else { first_pointer(s) };
    let finding = s.refusal(role, ACL_ERROR_RT_CONTEXT_NULL);
    match s.world.has_context {
        Some(true) => Verdict::Holds,
        Some(false) => Verdict::Broken(s.failing(usize::MAX, finding)),
        None => Verdict::Unknown,
    }
}

/// The argument that stands for the call where no argument is to blame.
pub fn first_pointer(s: &Subject) -> Role {
    if s.desc().is_some() { Role::Desc } else { Role::Dst }
}

/// Rows on the default stream ask for it before they ask for a context.
fn default_stream_missing(s: &Subject) -> Verdict {
    match (s.function, s.world.stream, s.world.has_context) {
        (aclrtMemcpy2dAsync, Stream::Default, Some(false)) => {
            Verdict::Broken(s.refusal(Role::Stream, ACL_ERROR_RT_PARAM_INVALID))
        }
        (aclrtMemcpy2dAsync, Stream::Default, None) => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}

pub static STREAM_INVALID: Rule = Rule {
    number: 17,
    id: "STREAM-INVALID",
    steps: &[
        Step::vendor(190, ALL.without(SYMBOLS).without(FILL_WORDS).asynchronous()),
        Step::vendor(450, FILL_WORDS.asynchronous()),
        Step::vendor(510, SYMBOLS.asynchronous()),
    ],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_INVALID_HANDLE, "always; failIndex of a batch is left as it is")],
    statement: "the stream must be a live one, or NULL for the default stream",
    sources: &[Runtime(
        "runtime_handle_guard.cc:69-92: the magic number behind the handle is read; a handle that points nowhere is a segmentation fault",
    )],
    fix: "look for an early aclrtDestroyStream, or for a handle of another library",
    check: stream_invalid,
    cases: cases![
        Case::bad(aclrtMemcpyAsync, "a handle that was kept", &[DEVICE, 64, PINNED, 64, 1, STREAM])
            .within(Scene { stream: Stream::Invalid, ..Scene::PLAIN }),
        Case::good(aclrtMemcpyAsync, "the default stream", &[DEVICE, 64, PINNED, 64, 1, 0]),
    ],
    ..Rule::DEFAULT
};

fn stream_invalid(s: &Subject) -> Verdict {
    match s.world.stream {
        Stream::Invalid => Verdict::Broken(s.refusal(Role::Stream, ACL_ERROR_RT_INVALID_HANDLE)),
        Stream::Unknown => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}

pub static STREAM_FOREIGN: Rule = Rule {
    number: 18,
    id: "STREAM-FOREIGN",
    steps: &[Step::vendor(640, ALL.without(BATCH).asynchronous()), Step::item(BATCH.asynchronous())],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_STREAM_CONTEXT, "what is queued; failIndex of a batch is SIZE_MAX")],
    statement: "work that is queued on a stream must come from a thread of the stream's context; a copy of pageable memory \
                is not queued",
    sources: &[
        Runtime("api_impl.cc:2883"),
        Runtime(
            "api_error.cc:2256-2264, api_impl.cc:1715-1727: a copy of pageable memory waits for the stream, of any context, and copies at once",
        ),
        Runtime("api_impl.cc:8917: so does each pageable item of a batch; Ascend 950 refuses the batch as a whole"),
        Doc("FAQ: aclrtMemcpyAsync on a stream of another device fails"),
    ],
    fix: "make the stream's context the thread's with aclrtSetCurrentContext, or use a stream of this one",
    check: stream_foreign,
    cases: cases![
        Case::bad(aclrtMemcpyAsync, "a stream of another thread", &[DEVICE, 64, PINNED, 64, 1, STREAM]).within(FOREIGN),
        Case::bad(aclrtMemcpyAsync, "pageable memory called device to device", &[DEVICE, 64, PAGEABLE, 64, 3, STREAM])
            .within(FOREIGN),
        Case::bad(aclrtMemcpyAsync, "pageable memory", &[DEVICE, 64, PAGEABLE, 64, 1, STREAM])
            .within(Scene { tells_pageable: Some(false), ..FOREIGN }),
        Case::bad(aclrtMemcpyBatchAsync, "a pinned item behind pageable ones", THREE_ASYNC)
            .within(Scene { srcs: &[PAGEABLE, PAGEABLE + 64, PINNED], ..FOREIGN_BATCH }),
        Case::bad(aclrtMemcpyBatchAsync, "pageable items", THREE_ASYNC)
            .within(Scene { soc: Some("Ascend950"), ..FOREIGN_BATCH }),
        Case::good(aclrtMemcpyAsync, "its own", &[DEVICE, 64, PINNED, 64, 1, STREAM]),
        Case::good(aclrtMemcpyAsync, "pageable memory is copied at once", &[DEVICE, 64, PAGEABLE, 64, 1, STREAM])
            .within(FOREIGN),
        Case::good(aclrtMemcpy2dAsync, "pageable rows are too", &[DEVICE, 64, PAGEABLE, 64, 64, 2, 1, STREAM])
            .within(FOREIGN),
        Case::good(aclrtMemcpyBatchAsync, "pageable items are too", THREE_ASYNC).within(FOREIGN_BATCH),
        Case::good(aclrtMemsetD32Async, "pinned memory is set at once, on no stream", &[PINNED, 64, 0, 16, STREAM])
            .within(FOREIGN),
    ],
    ..Rule::DEFAULT
};

const FOREIGN: Scene = Scene { stream: Stream::Foreign { is_captured: false }, ..Scene::PLAIN };
const FOREIGN_BATCH: Scene =
    Scene { srcs: &[PAGEABLE, PAGEABLE + 64, PAGEABLE + 128], stream: Stream::Foreign { is_captured: false }, ..THREE };

fn stream_foreign(s: &Subject) -> Verdict {
    if let Form::Batch(_) = s.call.form {
        return left_to_the_walk(s);
    }
    match is_queued(s) {
        Some(true) => queued_on_foreign(s),
        Some(false) => Verdict::Holds,
        None => match s.world.stream {
            Stream::Foreign { .. } | Stream::Unknown => Verdict::Unknown,
            _ => Verdict::Holds,
        },
    }
}

/// Whether the call hands work to its stream, rather than do it at once.
fn is_queued(s: &Subject) -> Option<bool> {
    match s.call.form {
        Form::FillWords { .. } => match s.dst()?.region.place {
            Place::Device(_) => Some(true),
            Place::Unknown => None,
            _ => Some(false),
        },
        Form::Linear { .. } | Form::Pitched { .. } | Form::FromSymbol { .. } | Form::ToSymbol { .. } => {
            s.is_pageable().map(|is_pageable| !is_pageable)
        }
        _ => Some(true),
    }
}

/// Whether the stream that work is queued on is another context's.
pub fn queued_on_foreign(s: &Subject) -> Verdict {
    match s.world.stream {
        Stream::Foreign { .. } => {
            Verdict::Broken(s.failing(usize::MAX, s.refusal(Role::Stream, ACL_ERROR_RT_STREAM_CONTEXT)))
        }
        Stream::Unknown => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}

pub static CONDITION_DRIVER: Rule = Rule {
    number: 23,
    id: "CONDITION-DRIVER",
    steps: &[Step::vendor(470, LINEAR.asynchronous()).only(Support::Deprecated)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "always")],
    statement: "the function needs a driver that recognises malloc (pageable) memory; older drivers return 207000",
    sources: &[Runtime("api_error.cc:2814-2818: without FEATURE_SVM_GET_USER_MALLOC_ATTR")],
    fix: "use aclrtMemcpyAsync, and memory from aclrtMallocHost",
    check: condition_driver,
    cases: cases![
        Case::bad(aclrtMemcpyAsyncWithCondition, "with the condition", &[DEVICE, 64, PINNED, 64, 1, STREAM])
            .within(OLD_DRIVER),
        Case::good(aclrtMemcpyAsync, "without the condition", &[DEVICE, 64, PINNED, 64, 1, STREAM]).within(OLD_DRIVER),
    ],
    ..Rule::DEFAULT
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
