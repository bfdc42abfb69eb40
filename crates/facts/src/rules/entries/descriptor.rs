//! Rules of copies by descriptor.

use super::offset::MAX_COUNT;
use crate::rules::entries::prelude::*;

const ALIGNMENT: usize = 64;

pub static DESC_ALIGN: Rule = Rule {
    number: 47,
    id: "DESC-ALIGN",
    steps: &[Step::vendor(360, SET_DESC), Step::vendor(440, DESCRIBED)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always")],
    statement: "a descriptor must be aligned to 64 bytes",
    sources: &[
        Runtime("api_error.cc:2464; no document says so"),
        Runtime(
            "api_c_memory.cc:343: aclrtGetMemcpyDescSize returns 32 on most products, so descriptors of that size in a row are not all aligned",
        ),
    ],
    fix: "put descriptors at multiples of 64 bytes, whatever aclrtGetMemcpyDescSize returns",
    check: desc_align,
    cases: cases![
        Case::bad(
            aclrtSetMemcpyDesc,
            "the second of two in a row of 32 bytes each",
            &[DEVICE + 32, 6, DEVICE + 4096, DEVICE + 8192, 64, 0],
        ),
        Case::bad(aclrtMemcpyAsyncWithDesc, "the second of two in a row of 32 bytes each", &[DEVICE + 32, 6, STREAM]),
        Case::good(aclrtSetMemcpyDesc, "64 bytes on", &[DEVICE + 64, 6, DEVICE + 4096, DEVICE + 8192, 64, 0]),
    ],
    ..Rule::DEFAULT
};

fn desc_align(s: &Subject) -> Verdict {
    let is_off = s.desc().is_some_and(|desc| desc.address % ALIGNMENT != 0);
    Verdict::broken_if(is_off, s.refusal(Role::Desc, ACL_ERROR_RT_PARAM_INVALID))
}

pub static DESC_STREAM_NULL: Rule = Rule {
    number: 48,
    id: "DESC-STREAM-NULL",
    steps: &[Step::vendor(140, DESCRIBED)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_INVALID_PARAM, "always")],
    statement: "the stream must not be NULL: this function does not take the default stream",
    sources: &[Runtime(
        "memory.cpp:1415; every other function takes NULL as the default stream, and no document says that this one does not",
    )],
    fix: "pass a stream, for example that of aclrtCtxGetCurrentDefaultStream",
    check: desc_stream_null,
    cases: cases![
        Case::bad(aclrtMemcpyAsyncWithDesc, "the default stream", &[DEVICE, 6, 0]),
        Case::good(aclrtMemcpyAsyncWithDesc, "a stream", &[DEVICE, 6, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn desc_stream_null(s: &Subject) -> Verdict {
    let is_null = s.call.stream.is_some_and(|stream| stream.is_null()) || s.world.stream == Stream::Default;
    Verdict::broken_if(is_null, s.refusal(Role::Stream, ACL_ERROR_INVALID_PARAM))
}

pub static DESC_PLACE: Rule = Rule {
    number: 49,
    id: "DESC-PLACE",
    steps: &[Step::vendor(420, SET_DESC.or(DESCRIBED))],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always")],
    statement: "a descriptor must be in device memory",
    sources: &[Doc("aclrtSetMemcpyDesc, desc"), Runtime("api_error.cc:2464")],
    fix: "allocate the descriptor with aclrtMalloc",
    check: desc_place,
    cases: cases![
        Case::bad(aclrtMemcpyAsyncWithDesc, "in pinned memory", &[PINNED, 6, STREAM]),
        Case::good(aclrtMemcpyAsyncWithDesc, "in device memory", &[DEVICE, 6, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn desc_place(s: &Subject) -> Verdict {
    match s.desc().map(|desc| desc.region.place) {
        Some(Place::Pinned | Place::Pageable | Place::Managed) => {
            Verdict::Broken(s.refusal(Role::Desc, ACL_ERROR_RT_PARAM_INVALID))
        }
        Some(Place::Unknown) => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}

pub static DESC_SIDES: Rule = Rule {
    number: 50,
    id: "DESC-SIDES",
    steps: &[Step::vendor(430, SET_DESC)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always")],
    statement: "source and destination of a descriptor must be memory of one device",
    sources: &[Doc("aclrtSetMemcpyDesc, kind: only ACL_MEMCPY_INNER_DEVICE_TO_DEVICE"), Runtime("api_error.cc:2464")],
    fix: "use aclrtMemcpyAsync between devices, and from and to the host",
    check: desc_sides,
    cases: cases![
        Case::bad(aclrtSetMemcpyDesc, "from the host", &[DEVICE, 6, PINNED, DEVICE + 4096, 64, 0]),
        Case::bad(aclrtSetMemcpyDesc, "to another device", &[DEVICE, 6, DEVICE + 4096, OTHER, 64, 0]),
        Case::good(aclrtSetMemcpyDesc, "inside one device", &[DEVICE, 6, DEVICE + 4096, DEVICE + 8192, 64, 0]),
    ],
    ..Rule::DEFAULT
};

fn desc_sides(s: &Subject) -> Verdict {
    let (Some(dst), Some(src)) = (s.dst(), s.src()) else { return Verdict::Holds };
    let role = match (dst.region.place, src.region.place) {
        (Place::Device(dst), Place::Device(src)) if dst == src => return Verdict::Holds,
        (Place::Unknown | Place::Unallocated, _) | (_, Place::Unknown | Place::Unallocated) => return Verdict::Unknown,
        (Place::Device(_), _) => Role::Src,
        _ => Role::Dst,
    };
    Verdict::Broken(s.refusal(role, ACL_ERROR_RT_PARAM_INVALID))
}

pub static DESC_CONFIG: Rule = Rule {
    number: 51,
    id: "DESC-CONFIG",
    steps: &[Step::vendor(130, SET_DESC)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_INVALID_PARAM, "always")],
    statement: "config must be NULL",
    sources: &[Doc("aclrtSetMemcpyDesc, config: reserved, must be NULL"), Runtime("memory.cpp:1387")],
    fix: "pass NULL",
    check: desc_config,
    cases: cases![
        Case::bad(aclrtSetMemcpyDesc, "something", &[DEVICE, 6, DEVICE + 4096, DEVICE + 8192, 64, PINNED]),
        Case::good(aclrtSetMemcpyDesc, "NULL", &[DEVICE, 6, DEVICE + 4096, DEVICE + 8192, 64, 0]),
    ],
    ..Rule::DEFAULT
};

fn desc_config(s: &Subject) -> Verdict {
    let is_set = matches!(s.call.form, Form::SetDesc { config, .. } if !config.is_null());
    Verdict::broken_if(is_set, s.refusal(Role::Config, ACL_ERROR_INVALID_PARAM))
}

pub static SIZE_TRUNCATED: Rule = Rule {
    number: 52,
    id: "SIZE-TRUNCATED",
    steps: &[Step::advice(50, SET_DESC)],
    severity: Severity::Violation,
    statement: "a descriptor's length has 32 bits: exactly 4 GiB passes the check and is stored as 0, so that nothing is copied",
    sources: &[Runtime(
        "api_error.cc:2464 lets 4 GiB pass; context.cc:2967 stores it in 32 bits; no document names either",
    )],
    fix: "copy at most 4 GiB - 1 by one descriptor",
    check: size_truncated,
    cases: cases![
        Case::bad(aclrtSetMemcpyDesc, "exactly 4 GiB", &[DEVICE, 6, LARGE, LARGE + (1 << 33), 1 << 32, 0]),
        Case::good(aclrtSetMemcpyDesc, "a byte less", &[DEVICE, 6, LARGE, LARGE + (1 << 33), (1 << 32) - 1, 0]),
    ],
    ..Rule::DEFAULT
};

fn size_truncated(s: &Subject) -> Verdict {
    let is_cut = matches!(s.call.form, Form::SetDesc { count: MAX_COUNT, .. });
    Verdict::broken_if(is_cut, s.finding(Role::Count, Severity::Violation))
}
