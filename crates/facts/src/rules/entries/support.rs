//! Rules of the functions themselves: which product and release has them, and which are on their way in or out.

use super::batch::{ONE, THREE, THREE_ASYNC};
use crate::rules::case;
use crate::rules::entries::prelude::*;

pub static DEPRECATED: Rule = Rule {
    number: 59,
    id: "DEPRECATED",
    steps: &[Step::always(40, ALL).only(Support::Deprecated)],
    severity: Severity::Portability,
    statement: "the function is deprecated and may go in a later release",
    sources: &[
        Header("acl_rt.h:2393: deprecated"),
        Runtime("with a present driver it does the same as aclrtMemcpyAsync"),
    ],
    fix: "call aclrtMemcpyAsync",
    check: deprecated,
    cases: cases![
        Case::bad(aclrtMemcpyAsyncWithCondition, "the old function", &[DEVICE, 64, PINNED, 64, 1, STREAM]),
        Case::good(aclrtMemcpyAsync, "the present one", &[DEVICE, 64, PINNED, 64, 1, STREAM]),
    ],
    ..Rule::DEFAULT
};

fn deprecated(s: &Subject) -> Verdict {
    let is_old = s.function.row().support == Support::Deprecated;
    Verdict::broken_if(is_old, s.finding(Role::Dst, Severity::Portability))
}

pub static EXPERIMENTAL: Rule = Rule {
    number: 60,
    id: "EXPERIMENTAL",
    steps: &[Step::always(50, ALL).only(Support::Experimental)],
    scope: Scope { before: Some(Version::V9_0), ..Scope::ALL },
    severity: Severity::Portability,
    statement: "the function is for trial use, may change in later releases, and is not for commercial products",
    sources: &[
        Doc(
            "CANN 8.x, aclrtMemcpyBatchAsync: for trial use, may be changed in later versions, not available in commercial products",
        ),
        Doc("the present page says nothing of it"),
    ],
    fix: "keep a way without it, for example one aclrtMemcpyAsync an item",
    check: experimental,
    cases: cases![
        Case::bad(aclrtMemcpyBatchAsync, "in an old release", THREE_ASYNC)
            .within(Scene { cann: Some(Version { major: 8, minor: 5 }), ..THREE }),
        Case::good(aclrtMemcpyBatchAsync, "on CANN 9.1", THREE_ASYNC).within(THREE),
    ],
    ..Rule::DEFAULT
};

fn experimental(s: &Subject) -> Verdict {
    match s.world.cann {
        Some(release) => {
            let is_trial = s.function.row().support == Support::Experimental && release < Version::V9_0;
            Verdict::broken_if(is_trial, s.finding(Role::Dst, Severity::Portability))
        }
        None => Verdict::Unknown,
    }
}

pub static UNSUPPORTED_PRODUCT: Rule = Rule {
    number: 61,
    id: "UNSUPPORTED-PRODUCT",
    steps: &[
        Step::vendor(150, BATCH.or(DESC_SIZE).or(SET_DESC).or(DESCRIBED)),
        Step::vendor(170, INDIRECT),
        Step::always(70, SYMBOLS),
    ],
    scope: Scope { products: &["Atlas inference series", "Atlas 200I/500 A2", "Atlas training series"], ..Scope::ALL },
    severity: Severity::Error,
    grades: &[
        Grade::error("batches, offsets and descriptors"),
        Grade::accepted(Severity::Violation, "symbols: the page does not list the product, and nothing checks it")
            .documented_as(ACL_ERROR_RT_FEATURE_NOT_SUPPORT),
    ],
    codes: &[(
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "batches, offsets and descriptors; failIndex of a batch is left as it is",
    )],
    is_absence: true,
    statement: "the product must have the function: batches Ascend 950, Atlas A3 and A2; offsets these and the Atlas \
                training series; descriptors 950, A3, A2 and Atlas 200I/500 A2; symbols 950, A3, A2 and the \
                Atlas inference series",
    sources: &[
        Doc("the table of products on each page; the seed page of aclrtMemcpyBatchAsync lists A3 and A2"),
        Runtime(
            "api_c_memory.cc:749 (batch), api_c_standard_soc.cc:965 (offset), api_c_memory.cc:343 (descriptor); dev_info_reg.cc of each chip",
        ),
        Observed("failIndex is not written"),
    ],
    fix: "if the call returns 207000, fall back to aclrtMemcpy or aclrtMemcpyAsync per item",
    check: unsupported_product,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "a batch", &[ARRAY, ARRAY, ARRAY, ARRAY, 1, ARRAY, ARRAY, 1, ARRAY])
            .within(Scene { soc: Some("Ascend310P3"), ..ONE }),
        Case::bad(aclrtMemcpyAsyncWithOffset, "an offset", &[LARGE, 64, 0, LARGE + 8, 64, 0, 6, STREAM])
            .within(Scene { soc: Some("Ascend310B1"), ..Scene::PLAIN }),
        Case::bad(aclrtMemcpyFromSymbol, "a variable: not listed, and accepted", &[PINNED, 64, case::SYMBOL, 64, 0, 2])
            .within(Scene { soc: Some("Ascend910A"), ..Scene::PLAIN }),
        Case::good(aclrtMemcpyAsyncWithOffset, "an offset", &[LARGE, 64, 0, LARGE + 8, 64, 0, 6, STREAM])
            .within(Scene { soc: Some("Ascend910A"), ..Scene::PLAIN }),
    ],
    ..Rule::DEFAULT
};

/// Whether the product has the function by the documents, and whether the runtime refuses it where it has not.
fn support(s: &Subject) -> Option<(bool, bool)> {
    let product = s.world.product?;
    Some(match s.call.form {
        Form::Batch(_) => (product.has_batch, true),
        Form::Indirect { .. } => (product.has_offset, true),
        Form::Described { .. } | Form::DescSize { .. } | Form::SetDesc { .. } => (product.has_descriptor, true),
        Form::FromSymbol { .. } | Form::ToSymbol { .. } => (product.has_symbols, false),
        _ => (true, true),
    })
}

fn unsupported_product(s: &Subject) -> Verdict {
    // The kind is in every form but the batch, and says the least about a call.
    let role = if s.batch().is_some() { Role::Dst } else { Role::Kind };
    match support(s) {
        None => Verdict::Unknown,
        Some((true, _)) => Verdict::Holds,
        Some((false, true)) => Verdict::Broken(s.refusal(role, ACL_ERROR_RT_FEATURE_NOT_SUPPORT)),
        Some((false, false)) => Verdict::Broken(s.finding(role, Severity::Violation)),
    }
}

pub static UNSUPPORTED_RELEASE: Rule = Rule {
    number: 62,
    id: "UNSUPPORTED-RELEASE",
    steps: &[Step::always(60, ALL).only(Support::Since9_1)],
    scope: Scope { before: Some(Version::V9_1), ..Scope::ALL },
    severity: Severity::Violation,
    grades: &[Grade::accepted(Severity::Violation, "always")
        .comes_to(Outcome::Said(
            "a library of such a release does not have it: the program does not start or its lookup fails, and where only \
             this shim has it a call returns 207000 (ACL_ERROR_RT_FEATURE_NOT_SUPPORT)",
        ))
        .documented_as(ACL_ERROR_RT_FEATURE_NOT_SUPPORT)],
    codes: &[(
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "in the place of a library that does not have it; the vendor itself returns nothing",
    )],
    is_absence: true,
    statement: "the function came with CANN 9.1; a library before that does not have it",
    sources: &[Runtime(
        "e0e8337af (batch V2), 8df06d663 (aclrtMemsetD32), 91019d250 (symbols): in 9.1.0, not in 9.0.1",
    )],
    fix: "look the function up with dlsym, and keep a way without it",
    check: unsupported_release,
    cases: cases![
        Case::bad(aclrtMemsetD32, "before its release", &[DEVICE, 64, 0, 16])
            .within(Scene { cann: Some(Version::V9_0), ..Scene::PLAIN }),
        Case::good(aclrtMemsetD32, "on CANN 9.1", &[DEVICE, 64, 0, 16]),
    ],
    ..Rule::DEFAULT
};

fn unsupported_release(s: &Subject) -> Verdict {
    let is_new = s.function.row().support == Support::Since9_1;
    match s.world.cann {
        None => Verdict::Unknown,
        Some(release) => {
            let role = if matches!(s.call.form, Form::FromSymbol { .. } | Form::ToSymbol { .. }) {
                Role::Symbol
            } else {
                Role::Dst
            };
            Verdict::broken_if(is_new && release < Version::V9_1, s.finding(role, Severity::Violation))
        }
    }
}
