//! Rules of rows at a distance.

use crate::rules::entries::prelude::*;

/// The widest row.
pub const MAX_WIDTH: usize = 5_000_000;

/// The most rows.
pub const MAX_HEIGHT: usize = 5 * 1024 * 1024;

pub static PITCH_WIDTH: Rule = Rule {
    number: 24,
    id: "PITCH-WIDTH",
    steps: &[Step::vendor(100, PITCHED)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_INVALID_PARAM, "always")],
    statement: "width must not exceed spitch, nor dpitch",
    sources: &[Doc("aclrtMemcpy2dAsync, width"), Runtime("memory.cpp:225")],
    fix: "a pitch is the distance from one row to the next in bytes, at least the width of a row",
    check: pitch_width,
    cases: cases![
        Case::bad(aclrtMemcpy2d, "rows wider than the destination's pitch", &[DEVICE, 63, PINNED, 64, 64, 2, 1]),
        Case::bad(
            aclrtMemcpy2dAsync,
            "rows wider than the source's pitch",
            &[DEVICE, 64, PINNED, 63, 64, 2, 1, STREAM],
        ),
        Case::good(aclrtMemcpy2d, "rows without a gap", &[DEVICE, 64, PINNED, 64, 64, 2, 1]),
    ],
    ..Rule::DEFAULT
};

fn pitch_width(s: &Subject) -> Verdict {
    let Form::Pitched { dst_pitch, src_pitch, width, .. } = s.call.form else { return Verdict::Holds };
    let role = if width > src_pitch { Role::SrcPitch } else { Role::DstPitch };
    Verdict::broken_if(width > src_pitch || width > dst_pitch, s.refusal(role, ACL_ERROR_INVALID_PARAM))
}

pub static PITCH_LIMIT: Rule = Rule {
    number: 25,
    id: "PITCH-LIMIT",
    steps: &[Step::vendor(280, PITCHED)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always")],
    statement: "width must not exceed 5000000 bytes, nor height 5242880 (5 x 1024 x 1024) rows",
    sources: &[
        Doc("aclrtMemcpy2dAsync, width and height; the page of aclrtMemcpy2d names no limit"),
        Runtime("api_error.cc:2973-3011: both functions"),
        Observed("107000 of both functions"),
    ],
    fix: "copy in several calls, or rows without a gap by aclrtMemcpy",
    check: pitch_limit,
    cases: cases![
        Case::bad(aclrtMemcpy2d, "a row too many", &[LARGE, 64, PINNED, 64, 1, 5_242_881, 1]),
        Case::bad(
            aclrtMemcpy2dAsync,
            "a byte too wide",
            &[LARGE, 5_000_064, LARGE + (1 << 30), 5_000_064, 5_000_001, 1, 3, STREAM],
        ),
        Case::good(
            aclrtMemcpy2dAsync,
            "the widest row",
            &[LARGE, 5_000_000, LARGE + (1 << 30), 5_000_000, 5_000_000, 1, 3, STREAM],
        ),
    ],
    implies: &[("MEMORY-ROOM", "so many rows do not fit into the memory of the example")],
    ..Rule::DEFAULT
};

fn pitch_limit(s: &Subject) -> Verdict {
    let Form::Pitched { width, height, .. } = s.call.form else { return Verdict::Holds };
    let role = if height > MAX_HEIGHT { Role::Height } else { Role::Width };
    let is_over = height > MAX_HEIGHT || width > MAX_WIDTH;
    Verdict::broken_if(is_over, s.refusal(role, ACL_ERROR_RT_PARAM_INVALID))
}

pub static PITCH_KIND: Rule = Rule {
    number: 26,
    id: "PITCH-KIND",
    steps: &[
        Step::vendor(180, PITCHED).part(pitch_kind_known),
        Step::vendor(290, PITCHED.synchronous()).part(pitch_kind_refused),
        Step::advice(20, PITCHED),
    ],
    severity: Severity::Error,
    grades: &[
        Grade::error("aclrtMemcpy2d inside the device, and on CANN 8.x aclrtMemcpy2dAsync too"),
        Grade::accepted(Severity::Violation, "ACL_MEMCPY_DEFAULT: not on the page, and accepted")
            .documented_as(ACL_ERROR_INVALID_PARAM),
    ],
    codes: &[
        (ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "aclrtMemcpy2d with ACL_MEMCPY_DEVICE_TO_DEVICE, since CANN 9.0"),
        (ACL_ERROR_INVALID_PARAM, "both functions with ACL_MEMCPY_DEVICE_TO_DEVICE, before CANN 9.0"),
    ],
    statement: "2D copies take HOST_TO_DEVICE and DEVICE_TO_HOST; DEVICE_TO_DEVICE only in aclrtMemcpy2dAsync since CANN 9.0, \
                on Ascend 950, Atlas A3 and Atlas A2; DEFAULT works but is not documented",
    sources: &[
        Doc("CANN 8.x, aclrtMemcpy2dAsync, Restrictions: only HOST_TO_DEVICE and DEVICE_TO_HOST"),
        Doc("present pages: aclrtMemcpy2d the same two; aclrtMemcpy2dAsync also DEVICE_TO_DEVICE on 950, A3 and A2"),
        Runtime("api_error.cc:3022: aclrtMemcpy2d inside the device is 207000; ACL_MEMCPY_DEFAULT is taken"),
        Runtime("f2281586c, in 9.0.0 and not in 8.5.0: before it the outer layer of both functions knows no such kind"),
    ],
    fix: "name the direction; inside a device copy row by row, or by aclrtMemcpy2dAsync",
    check: pitch_kind,
    cases: cases![
        Case::bad(aclrtMemcpy2d, "inside the device", &[DEVICE, 64, DEVICE + 4096, 64, 64, 2, 3]),
        Case::bad(
            aclrtMemcpy2dAsync,
            "by the addresses: accepted, not documented",
            &[DEVICE, 64, PINNED, 64, 64, 2, 4, STREAM],
        ),
        Case::bad(
            aclrtMemcpy2dAsync,
            "inside the device, before it could",
            &[DEVICE, 64, DEVICE + 4096, 64, 64, 2, 3, STREAM],
        )
        .within(Scene { cann: Some(Version { major: 8, minor: 5 }), ..Scene::PLAIN }),
        Case::good(aclrtMemcpy2dAsync, "inside the device", &[DEVICE, 64, DEVICE + 4096, 64, 64, 2, 3, STREAM]),
    ],
    implies: &[("PITCH-PLACE", "both sides are then on the device, which aclrtMemcpy2d does not take either")],
    ..Rule::DEFAULT
};

fn pitch_kind(s: &Subject) -> Verdict {
    match (pitch_kind_known(s), pitch_kind_refused(s)) {
        (Verdict::Holds, Verdict::Holds) => {
            Verdict::broken_if(s.kind() == Some(DEFAULT), s.finding(Role::Kind, Severity::Violation))
        }
        (broken @ Verdict::Broken(_), _) | (_, broken @ Verdict::Broken(_)) => broken,
        _ => Verdict::Unknown,
    }
}

/// Whether the outer layer knows the kind: inside a device since CANN 9.0.
fn pitch_kind_known(s: &Subject) -> Verdict {
    match s.world.cann {
        _ if s.kind() != Some(DEVICE_TO_DEVICE) => Verdict::Holds,
        Some(release) => Verdict::broken_if(release < Version::V9_0, s.refusal(Role::Kind, ACL_ERROR_INVALID_PARAM)),
        None => Verdict::Unknown,
    }
}

/// Whether the function refuses the kind.
fn pitch_kind_refused(s: &Subject) -> Verdict {
    let is_refused = s.function == aclrtMemcpy2d && s.kind() == Some(DEVICE_TO_DEVICE);
    Verdict::broken_if(is_refused, s.refusal(Role::Kind, ACL_ERROR_RT_FEATURE_NOT_SUPPORT))
}

pub static PITCH_PLACE: Rule = Rule {
    number: 27,
    id: "PITCH-PLACE",
    steps: &[Step::vendor(560, PITCHED)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always")],
    statement: "a 2D copy must be host-to-device or device-to-host (aclrtMemcpy2dAsync also device-to-device), judged by where \
                the pointers really are; host-to-host is refused",
    sources: &[
        Runtime(
            "api_error.cc:3036 (aclrtMemcpy2d), :3072 (aclrtMemcpy2dAsync): tested after the kind was corrected by the places",
        ),
        Observed("DEFAULT with both sides on the host is 107000"),
    ],
    fix: "copy rows inside the host with memcpy; name the direction where memory is managed",
    check: pitch_place,
    cases: cases![
        Case::bad(aclrtMemcpy2d, "both sides pinned", &[PINNED, 64, PINNED + 4096, 64, 64, 2, 1]),
        Case::bad(aclrtMemcpy2dAsync, "both sides pinned", &[PINNED, 64, PINNED + 4096, 64, 64, 2, 2, STREAM]),
        Case::good(aclrtMemcpy2d, "managed memory, and a direction", &[MANAGED, 64, PINNED, 64, 64, 2, 1]),
    ],
    ..Rule::DEFAULT
};

fn pitch_place(s: &Subject) -> Verdict {
    match s.effective_kind() {
        // A kind that rows do not have is KIND-FUNCTION's.
        _ if !s.kind().is_some_and(|kind| (HOST_TO_DEVICE..=DEFAULT).contains(&kind)) => Verdict::Holds,
        EffectiveKind::Unknown => Verdict::Unknown,
        EffectiveKind::Misfit => Verdict::Holds,
        EffectiveKind::Settled { kind, .. } => {
            let is_taken = match kind {
                HOST_TO_DEVICE | DEVICE_TO_HOST => true,
                DEVICE_TO_DEVICE => s.function == aclrtMemcpy2dAsync,
                _ => false,
            };
            Verdict::broken_if(!is_taken, s.refusal(Role::Kind, ACL_ERROR_RT_PARAM_INVALID))
        }
    }
}

pub static PITCH_PRODUCT: Rule = Rule {
    number: 28,
    id: "PITCH-PRODUCT",
    steps: &[Step::advice(30, PITCHED.asynchronous())],
    scope: Scope { products: &["Atlas inference series", "Atlas 200I/500 A2", "Atlas training series"], ..Scope::ALL },
    severity: Severity::Violation,
    grades: &[Grade::accepted(Severity::Violation, "always")
        .comes_to(Outcome::Said("nothing checks it: what the copy engine makes of it is not known"))
        .documented_as(ACL_ERROR_INVALID_PARAM)],
    statement: "a 2D copy inside the device is for Ascend 950, Atlas A3 and Atlas A2 only",
    sources: &[
        Doc("aclrtMemcpy2dAsync, kind: DEVICE_TO_DEVICE on 950, A3 and A2"),
        Runtime(
            "api_error.cc:3058, api_impl.cc:6790, memory_memcpy_async_task.cc:458 (MemcpyAsyncTaskInitV2): no check of the product, each row is handed to the copy engine",
        ),
    ],
    fix: "copy row by row with aclrtMemcpyAsync",
    check: pitch_product,
    cases: cases![
        Case::bad(aclrtMemcpy2dAsync, "rows inside the device", &[DEVICE, 64, DEVICE + 4096, 64, 64, 2, 3, STREAM])
            .within(Scene { soc: Some("Ascend310P3"), ..Scene::PLAIN }),
        Case::good(
            aclrtMemcpy2dAsync,
            "rows inside an Ascend910B1",
            &[DEVICE, 64, DEVICE + 4096, 64, 64, 2, 3, STREAM],
        ),
    ],
    ..Rule::DEFAULT
};

fn pitch_product(s: &Subject) -> Verdict {
    let is_inside = match s.effective_kind() {
        EffectiveKind::Settled { kind, .. } => kind == DEVICE_TO_DEVICE,
        // The documents go by the word, wherever the memory is.
        EffectiveKind::Unknown if s.kind() == Some(DEVICE_TO_DEVICE) => true,
        EffectiveKind::Unknown => return Verdict::Unknown,
        EffectiveKind::Misfit => false,
    };
    match s.world.product {
        _ if !is_inside => Verdict::Holds,
        Some(product) => Verdict::broken_if(!product.has_rows_on_device, s.finding(Role::Kind, Severity::Violation)),
        None => Verdict::Unknown,
    }
}

pub static PITCH_ROOT_COMPLEX: Rule = Rule {
    number: 29,
    id: "PITCH-ROOT-COMPLEX",
    steps: &[Step::vendor(660, PITCHED)],
    scope: Scope { run_modes: &[RunMode::RootComplex], ..Scope::ALL },
    severity: Severity::Error,
    grades: &[
        Grade::error("between host and device: the driver on the board has no halMemcpy2D"),
        Grade::accepted(
            Severity::Violation,
            "aclrtMemcpy2dAsync inside the device: documented, and nothing asks the driver for a 2D copy",
        )
        .documented_as(ACL_ERROR_RT_FEATURE_NOT_SUPPORT),
    ],
    codes: &[(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "between host and device: the driver on the board has no halMemcpy2D")],
    statement: "there are no 2D copies in the Ascend RC form, nor where the device's control CPU is open",
    sources: &[
        Doc("aclrtMemcpy2dAsync, Restrictions: not supported in the Ascend RC form"),
        Runtime("npu_driver_mem.cc:2341: a driver without halMemcpy2D is 207000"),
        Runtime("memory_memcpy_async_task.cc:485: rows inside the device go to the copy engine without halMemcpy2D"),
    ],
    fix: "copy row by row with aclrtMemcpy",
    check: pitch_root_complex,
    cases: cases![
        Case::bad(aclrtMemcpy2d, "on the board", &[DEVICE, 64, PINNED, 64, 64, 2, 1]).within(ON_BOARD),
        Case::bad(
            aclrtMemcpy2dAsync,
            "inside the device: documented, and not checked",
            &[DEVICE, 64, DEVICE + 4096, 64, 64, 2, 3, STREAM],
        )
        .within(Scene { soc: Some("Ascend910B1"), ..ON_BOARD }),
        Case::good(aclrtMemcpy, "row by row", &[DEVICE, 64, PINNED, 64, 1]).within(ON_BOARD),
    ],
    ..Rule::DEFAULT
};

const ON_BOARD: Scene = Scene { soc: Some("Ascend310B1"), run_mode: Some(RunMode::RootComplex), ..Scene::PLAIN };

fn pitch_root_complex(s: &Subject) -> Verdict {
    match s.world.run_mode {
        Some(RunMode::RootComplex) if s.function == aclrtMemcpy2dAsync && s.kind() == Some(DEVICE_TO_DEVICE) => {
            Verdict::Broken(s.finding(Role::Kind, Severity::Violation))
        }
        Some(RunMode::RootComplex) => Verdict::Broken(s.refusal(Role::Kind, ACL_ERROR_RT_FEATURE_NOT_SUPPORT)),
        Some(RunMode::EndPoint) => Verdict::Holds,
        None => Verdict::Unknown,
    }
}
