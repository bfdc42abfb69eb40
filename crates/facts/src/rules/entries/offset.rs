//! Rules of copies between addresses that stand in device memory, and of the lengths that a copy task can hold.

use crate::rules::entries::prelude::*;

/// The most bytes of one such task: 4 GiB.
pub const MAX_COUNT: usize = 1 << 32;

/// Offsets have 48 bits.
const MAX_OFFSET: usize = (1 << 48) - 1;

pub static SIZE_LIMIT: Rule = Rule {
    number: 44,
    id: "SIZE-LIMIT",
    steps: &[Step::vendor(250, INDIRECT.or(SET_DESC))],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always")],
    statement: "count must not exceed 4 GiB",
    sources: &[Runtime("api_error.cc:2190 (offset), :2464 (descriptor); no document names the limit")],
    fix: "copy in several calls",
    check: size_limit,
    cases: cases![
        Case::bad(
            aclrtMemcpyAsyncWithOffset,
            "a byte more",
            &[LARGE, 1 << 33, 0, LARGE + 8, (1 << 32) + 1, 0, 6, STREAM],
        ),
        Case::bad(aclrtSetMemcpyDesc, "a byte more", &[DEVICE, 6, LARGE, LARGE + (1 << 33), (1 << 32) + 1, 0]),
        Case::good(aclrtMemcpyAsyncWithOffset, "4 GiB", &[LARGE, 1 << 33, 0, LARGE + 8, 1 << 32, 0, 6, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn size_limit(s: &Subject) -> Verdict {
    let (Form::Indirect { count, .. } | Form::SetDesc { count, .. }) = s.call.form else { return Verdict::Holds };
    Verdict::broken_if(count > MAX_COUNT, s.refusal(Role::Count, ACL_ERROR_RT_PARAM_INVALID))
}

pub static OFFSET_LIMIT: Rule = Rule {
    number: 45,
    id: "OFFSET-LIMIT",
    steps: &[Step::vendor(260, INDIRECT)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always")],
    statement: "srcDataOffset and dstDataOffset must fit into 48 bits",
    sources: &[Runtime("api_error.cc:2585; no document names the limit")],
    fix: "store an already advanced address in the device-side pointer, and pass a smaller offset",
    check: offset_limit,
    cases: cases![
        Case::bad(aclrtMemcpyAsyncWithOffset, "49 bits", &[LARGE, 64, 0, LARGE + 8, 64, 1 << 48, 6, STREAM]),
        Case::good(aclrtMemcpyAsyncWithOffset, "48 bits", &[LARGE, 64, 0, LARGE + 8, 64, (1 << 48) - 1, 6, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn offset_limit(s: &Subject) -> Verdict {
    let Form::Indirect { src_offset, dst_offset, .. } = s.call.form else { return Verdict::Holds };
    let role = if src_offset > MAX_OFFSET { Role::SrcOffset } else { Role::DstOffset };
    let is_over = src_offset > MAX_OFFSET || dst_offset > MAX_OFFSET;
    Verdict::broken_if(is_over, s.refusal(role, ACL_ERROR_RT_PARAM_INVALID))
}

pub static OFFSET_ROOM: Rule = Rule {
    number: 46,
    id: "OFFSET-ROOM",
    steps: &[Step::vendor(270, INDIRECT)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always")],
    statement: "dstDataOffset plus count must not exceed destMax",
    sources: &[Doc("aclrtMemcpyAsyncWithOffset, destMax"), Runtime("api_error.cc:2585")],
    fix: "pass the size of the whole destination as destMax, counted from the address in the device-side pointer",
    check: offset_room,
    cases: cases![
        Case::bad(aclrtMemcpyAsyncWithOffset, "beyond the end", &[LARGE, 64, 1, LARGE + 8, 64, 0, 6, STREAM]),
        Case::good(aclrtMemcpyAsyncWithOffset, "to the end", &[LARGE, 128, 64, LARGE + 8, 64, 0, 6, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn offset_room(s: &Subject) -> Verdict {
    let Form::Indirect { dst_max, dst_offset, count, .. } = s.call.form else { return Verdict::Holds };
    let is_over = dst_offset >= dst_max || count > dst_max - dst_offset;
    // What does not fit without the offset is DEST-MAX's, an offset beyond all bounds OFFSET-LIMIT's.
    let is_ours = count <= dst_max && dst_offset <= MAX_OFFSET;
    Verdict::broken_if(is_over && is_ours, s.refusal(Role::DstOffset, ACL_ERROR_RT_PARAM_INVALID))
}
