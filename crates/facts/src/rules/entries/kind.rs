//! Rules of the kind: which values there are, which a function takes, and which fit the places.

use crate::rules::entries::prelude::*;
use crate::vendor::abi::KINDS;

pub static KIND_RANGE: Rule = Rule {
    number: 4,
    id: "KIND-RANGE",
    steps: &[Step::vendor(110, ALL.without(BATCH).without(FILL).without(FILL_WORDS))],
    severity: Severity::Error,
    codes: &[
        (ACL_ERROR_INVALID_PARAM, "every function but the next"),
        (ACL_ERROR_RT_PARAM_INVALID, "aclrtMemcpyAsyncWithOffset"),
    ],
    statement: "kind must be a value of aclrtMemcpyKind, 0 to 7",
    sources: &[
        Header("acl_rt.h: aclrtMemcpyKind has eight values"),
        Runtime("memory.cpp:161 (linear), :239 (2d), :1387 (descriptor); api_c_standard_soc.cc:965 (offset)"),
        Doc("aclrtMemcpy says that kind has no effect; the runtime refuses an unknown one all the same"),
    ],
    fix: "pass the kind that names the two sides, or ACL_MEMCPY_DEFAULT",
    check: kind_range,
    cases: cases![
        Case::bad(aclrtMemcpy, "no such kind", &[DEVICE, 64, PINNED, 64, 8]),
        Case::bad(aclrtMemcpyAsync, "a negative kind", &[DEVICE, 64, PINNED, 64, u64::MAX, STREAM]),
        Case::bad(aclrtGetMemcpyDescSize, "no such kind", &[8, DEVICE]),
        Case::good(aclrtMemcpy, "by the addresses", &[DEVICE, 64, PINNED, 64, 4]),
    ],
    ..Rule::DEFAULT
};

fn kind_range(s: &Subject) -> Verdict {
    let code = match s.function {
        aclrtMemcpyAsyncWithOffset => ACL_ERROR_RT_PARAM_INVALID,
        _ => ACL_ERROR_INVALID_PARAM,
    };
    let is_one = s.kind().is_none_or(|kind| (0..KINDS.len() as i32).contains(&kind));
    Verdict::broken_if(!is_one, s.refusal(Role::Kind, code))
}

pub static KIND_FUNCTION: Rule = Rule {
    number: 5,
    id: "KIND-FUNCTION",
    steps: &[
        Step::vendor(160, ALL.without(BATCH).without(DESCRIBED).without(FILL).without(FILL_WORDS)),
        Step::vendor(200, DESCRIBED),
    ],
    severity: Severity::Error,
    codes: &[
        (ACL_ERROR_INVALID_PARAM, "linear copies, 2D copies, symbol copies"),
        (ACL_ERROR_RT_PARAM_INVALID, "aclrtMemcpyAsyncWithOffset"),
        (ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the descriptor functions"),
    ],
    statement: "the function must take this kind: linear copies 0 to 5; 2D copies 1 to 4; from a symbol 2 and 4; to a symbol \
                1 and 4; offsets and descriptors only 6, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE",
    sources: &[
        Doc(
            "aclrtMemcpyAsyncWithOffset, aclrtSetMemcpyDesc: only ACL_MEMCPY_INNER_DEVICE_TO_DEVICE; the symbol functions: their own direction or DEFAULT",
        ),
        Doc("aclrtMemcpy2dAsync: a kind that is not supported returns ACL_ERROR_INVALID_PARAM"),
        Runtime(
            "memory.cpp:162-203 (linear), :239-268 (2d); api_c_standard_soc.cc:965 (offset); api_error.cc:2464 (descriptor)",
        ),
        Observed("aclrtMemcpy refuses kinds 6 and 7, although its page calls kind ineffective"),
    ],
    fix: "pass a kind of the list, or call the function that the kind is for",
    check: kind_function,
    cases: cases![
        Case::bad(aclrtMemcpy, "the kind of the offset and descriptor functions", &[DEVICE, 64, DEVICE + 64, 64, 6]),
        Case::bad(aclrtMemcpy2d, "rows inside the host", &[PINNED, 64, PINNED + 4096, 64, 64, 2, 0]),
        Case::bad(aclrtMemcpyToSymbol, "the wrong way round", &[SYMBOL, PINNED, 64, 0, 2]),
        Case::bad(aclrtMemcpyAsyncWithOffset, "a plain kind", &[LARGE, 64, 0, LARGE + 8, 64, 0, 3, STREAM]),
        Case::bad(aclrtMemcpyAsyncWithDesc, "a plain kind", &[DEVICE, 3, STREAM]),
        Case::good(aclrtMemcpy, "through a buffer", &[DEVICE, 64, PINNED, 64, 5]),
        Case::good(aclrtMemcpyAsyncWithDesc, "its own kind", &[DEVICE, 6, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn kind_function(s: &Subject) -> Verdict {
    let Some(kind) = s.kind() else { return Verdict::Holds };
    let (is_taken, code) = match s.call.form {
        Form::Linear { .. } => (kind <= HOST_TO_BUF_TO_DEVICE, ACL_ERROR_INVALID_PARAM),
        Form::Pitched { .. } => ((HOST_TO_DEVICE..=DEFAULT).contains(&kind), ACL_ERROR_INVALID_PARAM),
        Form::FromSymbol { .. } => (matches!(kind, DEVICE_TO_HOST | DEFAULT), ACL_ERROR_INVALID_PARAM),
        Form::ToSymbol { .. } => (matches!(kind, HOST_TO_DEVICE | DEFAULT), ACL_ERROR_INVALID_PARAM),
        Form::Indirect { .. } => (kind == INNER_DEVICE_TO_DEVICE, ACL_ERROR_RT_PARAM_INVALID),
        _ => (kind == INNER_DEVICE_TO_DEVICE, ACL_ERROR_RT_FEATURE_NOT_SUPPORT),
    };
    // A value that is no kind at all is KIND-RANGE's.
    let is_kind = (0..KINDS.len() as i32).contains(&kind);
    Verdict::broken_if(is_kind && !is_taken, s.refusal(Role::Kind, code))
}

pub static KIND_PLACE: Rule = Rule {
    number: 6,
    id: "KIND-PLACE",
    steps: &[Step::vendor(550, LINEAR.asynchronous().or(PITCHED))],
    severity: Severity::Error,
    grades: &[
        Grade::error("one side is pageable memory and the kind does not fit"),
        Grade::accepted(
            Severity::Portability,
            "the runtime knows both sides and replaces the kind: a driver that cannot tell pageable memory takes it at its word",
        ),
    ],
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "one side is pageable memory and the kind does not fit")],
    statement: "kind must match where src and dst are; between device and pinned memory a wrong kind is silently corrected; if \
                one side is malloc memory it is refused (107000)",
    sources: &[
        Doc("aclrtMemcpyAsync, kind: names the direction of the copy"),
        Runtime(
            "api_error.cc:2695-2748, MemcpyKindReviseMap: device and pinned memory force the kind; device to malloc memory takes D2H and D2D, malloc memory to device H2D and D2D, and so on",
        ),
        Observed(
            "malloc memory to the device with kind HOST_TO_HOST is 107000; device to device with kind HOST_TO_HOST is 0",
        ),
        Doc(
            "aclrtMemcpy2dAsync: an unsupported kind is ACL_ERROR_INVALID_PARAM; a kind that does not fit the memory is 107000",
        ),
    ],
    fix: "pass the kind that names where source and destination are, or ACL_MEMCPY_DEFAULT",
    check: kind_place,
    cases: cases![
        Case::bad(
            aclrtMemcpyAsync,
            "from malloc memory, said to be from the device",
            &[DEVICE, 64, PAGEABLE, 64, 2, STREAM],
        ),
        Case::bad(aclrtMemcpy2d, "to malloc memory, said to be to the device", &[PAGEABLE, 64, DEVICE, 64, 64, 2, 1]),
        Case::bad(
            aclrtMemcpyAsync,
            "inside the device, said to be from the host: replaced",
            &[DEVICE + 64, 64, DEVICE, 64, 1, STREAM],
        ),
        Case::good(aclrtMemcpyAsync, "from malloc memory to the device", &[DEVICE, 64, PAGEABLE, 64, 1, STREAM]),
        Case::good(aclrtMemcpyAsync, "left open", &[DEVICE, 64, PAGEABLE, 64, 4, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn kind_place(s: &Subject) -> Verdict {
    match s.effective_kind() {
        EffectiveKind::Unknown => Verdict::Unknown,
        EffectiveKind::Misfit => Verdict::Broken(s.refusal(Role::Kind, ACL_ERROR_RT_PARAM_INVALID)),
        EffectiveKind::Settled { is_replaced, .. } => {
            Verdict::broken_if(is_replaced, s.finding(Role::Kind, Severity::Portability))
        }
    }
}

pub static BUFFER_PLACE: Rule = Rule {
    number: 7,
    id: "BUFFER-PLACE",
    steps: &[Step::vendor(540, LINEAR.asynchronous())],
    scope: Scope { run_modes: &[RunMode::EndPoint], ..Scope::ALL },
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always")],
    statement: "ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE needs a source that is not device memory and a destination that is",
    sources: &[
        Runtime("api_error.cc:4310"),
        Header("acl_rt.h, aclrtMemcpyKind: the host buffer may be freed when the call returns"),
    ],
    fix: "use this kind only from the host to the device",
    check: buffer_place,
    cases: cases![
        Case::bad(aclrtMemcpyAsync, "from the device", &[DEVICE, 64, DEVICE + 64, 64, 5, STREAM]),
        Case::bad(aclrtMemcpyAsync, "to the host", &[PINNED, 64, PINNED + 64, 64, 5, STREAM]),
        Case::good(aclrtMemcpyAsync, "from malloc memory to the device", &[DEVICE, 64, PAGEABLE, 64, 5, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn buffer_place(s: &Subject) -> Verdict {
    if s.kind() != Some(HOST_TO_BUF_TO_DEVICE) || s.world.run_mode == Some(RunMode::RootComplex) {
        return Verdict::Holds;
    }
    let (Some(src), Some(dst), Some(_)) = (s.src(), s.dst(), s.world.run_mode) else { return Verdict::Unknown };
    let role = match (src.region.place, dst.region.place) {
        (Place::Device(_), _) => Role::Src,
        (_, Place::Pinned | Place::Pageable | Place::Managed) => Role::Dst,
        (Place::Unknown, _) | (_, Place::Unknown) => return Verdict::Unknown,
        _ => return Verdict::Holds,
    };
    Verdict::Broken(s.refusal(role, ACL_ERROR_RT_PARAM_INVALID))
}

pub static ASYNC_HOST_TO_HOST: Rule = Rule {
    number: 8,
    id: "ASYNC-HOST-TO-HOST",
    steps: &[
        Step::vendor(570, LINEAR.asynchronous()).part(host_to_host_refused),
        Step::advice(10, LINEAR.asynchronous()),
    ],
    scope: Scope { run_modes: &[RunMode::EndPoint], ..Scope::ALL },
    severity: Severity::Error,
    grades: &[
        Grade::error("both sides are host memory as far as the runtime can tell"),
        Grade::accepted(
            Severity::Violation,
            "kind says host to host, and the runtime replaces it, or the places are not known",
        )
        .comes_to(Outcome::Perhaps(ACL_ERROR_RT_FEATURE_NOT_SUPPORT))
        .documented_as(ACL_ERROR_RT_FEATURE_NOT_SUPPORT),
    ],
    codes: &[(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "after the kind was corrected by the places")],
    statement: "an asynchronous copy inside the host is not supported on Ascend EP: kind ACL_MEMCPY_HOST_TO_HOST returns ACL_ERROR_RT_FEATURE_NOT_SUPPORT",
    sources: &[
        Doc(
            "aclrtMemcpyAsync and aclrtMemcpyAsyncWithCondition, Restrictions: kind ACL_MEMCPY_HOST_TO_HOST returns ACL_ERROR_RT_FEATURE_NOT_SUPPORT on Ascend EP",
        ),
        Runtime("api_error.cc:2246 tests the kind after it was corrected by the places"),
        Observed(
            "pinned to pinned is 207000 with any kind; device to device with kind HOST_TO_HOST is 0; malloc to malloc with kind HOST_TO_DEVICE is 0, done at once; on a driver that cannot tell pageable memory it is as documented",
        ),
    ],
    fix: "copy inside the host with memcpy, or with aclrtMemcpy",
    check: async_host_to_host,
    cases: cases![
        Case::bad(aclrtMemcpyAsync, "between pinned buffers", &[PINNED, 64, PINNED + 4096, 64, 0, STREAM]),
        Case::bad(
            aclrtMemcpyAsyncWithCondition,
            "between pinned buffers, left open",
            &[PINNED, 64, PINNED + 4096, 64, 4, STREAM],
        ),
        Case::bad(
            aclrtMemcpyAsync,
            "documented as refused, though the runtime makes it device to device",
            &[DEVICE, 64, DEVICE + 64, 64, 0, STREAM],
        ),
        Case::good(aclrtMemcpyAsync, "from pinned memory to the device", &[DEVICE, 64, PINNED, 64, 1, STREAM]),
        Case::good(aclrtMemcpyAsync, "on the device's own processor", &[PINNED, 64, PINNED + 4096, 64, 3, STREAM])
            .within(Scene { run_mode: Some(RunMode::RootComplex), ..Scene::PLAIN }),
    ],
    ..Rule::DEFAULT
};

fn async_host_to_host(s: &Subject) -> Verdict {
    match host_to_host_refused(s) {
        // The documents forbid the word, whatever the runtime makes of it.
        Verdict::Holds | Verdict::Unknown
            if s.world.run_mode == Some(RunMode::EndPoint) && s.kind() == Some(HOST_TO_HOST) =>
        {
            Verdict::Broken(s.finding(Role::Kind, Severity::Violation))
        }
        verdict => verdict,
    }
}

/// Whether the runtime comes to host to host and refuses it.
fn host_to_host_refused(s: &Subject) -> Verdict {
    match (s.world.run_mode, s.effective_kind()) {
        (Some(RunMode::RootComplex), _) | (_, EffectiveKind::Misfit) => Verdict::Holds,
        (None, _) | (_, EffectiveKind::Unknown) => Verdict::Unknown,
        (_, EffectiveKind::Settled { kind, .. }) => {
            Verdict::broken_if(kind == HOST_TO_HOST, s.refusal(Role::Kind, ACL_ERROR_RT_FEATURE_NOT_SUPPORT))
        }
    }
}

pub static KIND_ROOT_COMPLEX: Rule = Rule {
    number: 9,
    id: "KIND-ROOT-COMPLEX",
    steps: &[Step::advice(110, LINEAR.asynchronous())],
    scope: Scope { run_modes: &[RunMode::RootComplex], ..Scope::ALL },
    severity: Severity::Portability,
    statement: "on Ascend RC, and where the device's control CPU is open, the kinds H2D, D2H and H2H are carried out as a copy inside the device",
    sources: &[Doc(
        "aclrtMemcpyAsyncWithCondition, Restrictions, Atlas 200I/500 A2, Ascend RC; aclrtMemcpyAsync, Atlas inference series with an open control CPU",
    )],
    fix: "pass ACL_MEMCPY_DEVICE_TO_DEVICE on such a board",
    check: kind_root_complex,
    cases: cases![
        Case::bad(aclrtMemcpyAsync, "a host's kind on the board", &[DEVICE, 64, DEVICE + 64, 64, 1, STREAM])
            .within(ON_BOARD),
        Case::good(aclrtMemcpyAsync, "inside the device", &[DEVICE, 64, DEVICE + 64, 64, 3, STREAM]).within(ON_BOARD),
    ],
    ..Rule::DEFAULT
};

const ON_BOARD: Scene = Scene { soc: Some("Ascend310B1"), run_mode: Some(RunMode::RootComplex), ..Scene::PLAIN };

fn kind_root_complex(s: &Subject) -> Verdict {
    let is_hosts = matches!(s.kind(), Some(HOST_TO_HOST | HOST_TO_DEVICE | DEVICE_TO_HOST));
    let is_on_board = s.world.run_mode == Some(RunMode::RootComplex);
    Verdict::broken_if(is_hosts && is_on_board, s.finding(Role::Kind, Severity::Portability))
}
