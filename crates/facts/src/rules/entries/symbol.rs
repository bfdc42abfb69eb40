//! Rules of copies from and to device variables.

use crate::rules::case;
use crate::rules::entries::prelude::*;

/// Symbol, count and offset of the call.
fn part(s: &Subject) -> Option<(usize, usize, usize)> {
    match s.call.form {
        Form::FromSymbol { symbol, count, offset, .. } | Form::ToSymbol { symbol, count, offset, .. } => {
            Some((symbol as usize, count, offset))
        }
        _ => None,
    }
}

pub static SYMBOL_UNKNOWN: Rule = Rule {
    number: 56,
    id: "SYMBOL-UNKNOWN",
    steps: &[Step::vendor(480, SYMBOLS)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_INVALID_SYMBOL, "always; the page does not list it")],
    statement: "symbol must name a device variable of this program",
    sources: &[Doc("aclrtMemcpyFromSymbol, symbol"), Runtime("errcode_manage.cc:240")],
    fix: "pass the address of the variable itself, not of a copy, and load its kernel binary first",
    check: symbol_unknown,
    cases: cases![
        Case::bad(aclrtMemcpyFromSymbol, "an ordinary address", &[PINNED, 64, DEVICE, 64, 0, 2]),
        Case::good(aclrtMemcpyFromSymbol, "a variable", &[PINNED, 64, case::SYMBOL, 64, 0, 2]),
    ],
    ..Rule::DEFAULT
};

fn symbol_unknown(s: &Subject) -> Verdict {
    match part(s) {
        None | Some((0, ..)) => Verdict::Holds,
        Some((symbol, ..)) => match s.world.memory.symbol(symbol) {
            Symbol::Unknown => Verdict::Unknown,
            Symbol::None => Verdict::Broken(s.refusal(Role::Symbol, ACL_ERROR_RT_INVALID_SYMBOL)),
            Symbol::Variable { .. } => Verdict::Holds,
        },
    }
}

pub static SYMBOL_OVERFLOW: Rule = Rule {
    number: 57,
    id: "SYMBOL-OVERFLOW",
    steps: &[Step::vendor(490, SYMBOLS)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_FAILURE, "always; the page does not list it")],
    statement: "offset plus count must not overflow",
    sources: &[Runtime("math_utils.h:50")],
    fix: "look for an underflowed (negative) offset",
    check: symbol_overflow,
    cases: cases![
        Case::bad(aclrtMemcpyToSymbol, "an offset below 0", &[case::SYMBOL, PINNED, 64, u64::MAX - 7, 1]),
        Case::good(aclrtMemcpyToSymbol, "an offset", &[case::SYMBOL, PINNED, 64, 8, 1]),
    ],
    ..Rule::DEFAULT
};

fn symbol_overflow(s: &Subject) -> Verdict {
    let overflows = part(s).is_some_and(|(_, count, offset)| offset.checked_add(count).is_none());
    Verdict::broken_if(overflows, s.refusal(Role::Offset, ACL_ERROR_FAILURE))
}

pub static SYMBOL_RANGE: Rule = Rule {
    number: 58,
    id: "SYMBOL-RANGE",
    steps: &[Step::vendor(500, SYMBOLS)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_INVALID_PARAM, "always")],
    statement: "offset plus count must not exceed the size of the variable",
    sources: &[
        Doc("aclrtMemcpyFromSymbol and aclrtMemcpyToSymbol, offset"),
        Runtime("memory.cpp, the symbol functions"),
    ],
    fix: "offset and count are in bytes, not in elements; aclrtGetSymbolSize tells the size",
    check: symbol_range,
    cases: cases![
        Case::bad(aclrtMemcpyToSymbol, "a byte too far", &[case::SYMBOL, PINNED, 64, 4096 - 63, 1]),
        Case::good(aclrtMemcpyToSymbol, "the last bytes", &[case::SYMBOL, PINNED, 64, 4096 - 64, 1]),
    ],
    ..Rule::DEFAULT
};

fn symbol_range(s: &Subject) -> Verdict {
    let Some((symbol, count, offset)) = part(s) else { return Verdict::Holds };
    // An overflow is SYMBOL-OVERFLOW's.
    let Some(end) = offset.checked_add(count) else { return Verdict::Holds };
    match s.world.memory.symbol(symbol) {
        Symbol::Variable { size, .. } => {
            Verdict::broken_if(end > size, s.refusal(Role::Offset, ACL_ERROR_INVALID_PARAM))
        }
        Symbol::Unknown => Verdict::Unknown,
        Symbol::None => Verdict::Holds,
    }
}
