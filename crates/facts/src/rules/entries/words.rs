//! Rules of setting 32-bit words.

use crate::rules::entries::prelude::*;

pub static WORDS_ALIGN: Rule = Rule {
    number: 53,
    id: "WORDS-ALIGN",
    steps: &[Step::vendor(70, FILL_WORDS)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_INVALID_PARAM, "always")],
    statement: "ptr must be aligned to 4 bytes",
    sources: &[Runtime("memory.cpp, aclrtMemsetD32; no document says so")],
    fix: "begin at a multiple of 4, or set bytes with aclrtMemset",
    check: words_align,
    cases: cases![
        Case::bad(aclrtMemsetD32, "2 bytes off", &[DEVICE + 2, 64, 0, 8]),
        Case::good(aclrtMemsetD32, "4 bytes on", &[DEVICE + 4, 64, 0, 8]),
    ],
    ..Rule::DEFAULT
};

fn words_align(s: &Subject) -> Verdict {
    let is_off = matches!(s.call.form, Form::FillWords { dst, .. } if !(dst as usize).is_multiple_of(4));
    Verdict::broken_if(is_off, s.refusal(Role::Dst, ACL_ERROR_INVALID_PARAM))
}

pub static WORDS_PLACE: Rule = Rule {
    number: 54,
    id: "WORDS-PLACE",
    steps: &[Step::vendor(410, FILL_WORDS)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_INVALID_PARAM, "always")],
    statement: "aclrtMemsetD32 sets device memory or pinned host memory only",
    sources: &[Runtime("memory.cpp, aclrtMemsetD32: UNREGISTERED and MANAGED memory is refused")],
    fix: "set such memory on the host, by a loop",
    check: words_place,
    cases: cases![
        Case::bad(aclrtMemsetD32, "malloc memory", &[PAGEABLE, 64, 0, 16]),
        Case::bad(aclrtMemsetD32, "managed memory", &[MANAGED, 64, 0, 16]),
        Case::good(aclrtMemsetD32, "pinned memory", &[PINNED, 64, 0, 16]),
    ],
    ..Rule::DEFAULT
};

fn words_place(s: &Subject) -> Verdict {
    match s.dst().map(|dst| dst.region.place) {
        Some(Place::Pageable | Place::Managed) => Verdict::Broken(s.refusal(Role::Dst, ACL_ERROR_INVALID_PARAM)),
        Some(Place::Unknown) => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}

pub static WORDS_IGNORED: Rule = Rule {
    number: 55,
    id: "WORDS-IGNORED",
    steps: &[Step::always(30, FILL_WORDS)],
    scope: Scope { products: &["Atlas inference series", "Atlas 200I/500 A2", "Atlas training series"], ..Scope::ALL },
    severity: Severity::Violation,
    grades: &[Grade::accepted(Severity::Violation, "always")
        .comes_to(Outcome::Said("it returns 0 and sets nothing in device memory"))
        .documented_as(ACL_ERROR_RT_FEATURE_NOT_SUPPORT)],
    statement: "aclrtMemsetD32 works on Ascend 950, Atlas A3 and Atlas A2 only; elsewhere it returns 0 and sets nothing in device memory",
    sources: &[
        Doc("aclrtMemsetD32: 950, A3 and A2"),
        Runtime("memory.cpp:817-819, :872-874: the inner layer's 207000 is swallowed"),
    ],
    fix: "use aclrtMemset, or copy the words from the host",
    check: words_ignored,
    cases: cases![
        Case::bad(aclrtMemsetD32, "device memory", &[DEVICE, 64, 7, 16]).within(INFERENCE),
        Case::good(aclrtMemsetD32, "pinned memory", &[PINNED, 64, 7, 16]).within(INFERENCE),
        Case::good(aclrtMemsetD32, "on an Ascend910B1", &[DEVICE, 64, 7, 16]),
    ],
    ..Rule::DEFAULT
};

const INFERENCE: Scene = Scene { soc: Some("Ascend310P3"), ..Scene::PLAIN };

fn words_ignored(s: &Subject) -> Verdict {
    let is_unlisted = s.world.product.is_some_and(|product| !product.has_words);
    let is_ignored = match is_ignored(s) {
        Some(is_ignored) => is_ignored,
        // Wherever the memory is: the page does not list the product, and almost always it is the device's.
        None if is_unlisted => true,
        None => return Verdict::Unknown,
    };
    let has_work = s.is_nothing() == Some(false);
    Verdict::broken_if(is_ignored && has_work, s.finding(Role::Dst, Severity::Violation))
}

/// Whether the call returns 0 and sets nothing.
pub fn is_ignored(s: &Subject) -> Option<bool> {
    match (s.dst()?.region.place, s.world.product) {
        (Place::Device(_), product) => Some(!product?.has_words),
        (Place::Unknown, Some(product)) if product.has_words => Some(false),
        (Place::Unknown, _) => None,
        _ => Some(false),
    }
}
