//! The faults a test may ask for in `ASCENDCL_SIM_FAULT`.

use super::functions;

/// FaultKind goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// A C++ exception of type `int`, value 42.
    Throw,
    /// A long jump to the buffer of `ascendclSimSetJump`.
    LongJump,
    /// The function first calls its own public name.
    Reenter,
    /// The call never comes back.
    Hang,
    /// The call answers this code at once.
    Fail(i32),
    /// errno is this value from here on.
    Errno(i32),
}

/// One fault: its kind, in which function, and at which of its calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// FaultKind goes wrong.
    pub kind: FaultKind,
    /// The index of the function in `functions::NAMES`.
    pub function: usize,
    /// The number of the call, from 1; `None` is every call.
    pub nth: Option<u64>,
}

/// Reads `WHAT@FUNCTION:N,...`; an entry that makes no sense is left out.
pub fn parse(text: &str) -> Vec<Fault> {
    text.split(',').filter_map(|entry| one(entry.trim())).collect()
}

fn one(entry: &str) -> Option<Fault> {
    let (kind, target) = entry.split_once('@')?;
    let (function, nth) = target.split_once(':').unwrap_or((target, "*"));
    Some(Fault {
        kind: kind_of(kind)?,
        function: functions::NAMES.iter().position(|name| name.to_bytes() == function.as_bytes())?,
        nth: match nth {
            "*" => None,
            number => Some(number.parse().ok()?),
        },
    })
}

fn kind_of(text: &str) -> Option<FaultKind> {
    match text.split_once('=') {
        Some(("fail", code)) => Some(FaultKind::Fail(code.parse().ok()?)),
        Some(("errno", value)) => Some(FaultKind::Errno(value.parse().ok()?)),
        Some(_) => None,
        None => match text {
            "throw" => Some(FaultKind::Throw),
            "longjmp" => Some(FaultKind::LongJump),
            "reenter" => Some(FaultKind::Reenter),
            "hang" => Some(FaultKind::Hang),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_place_and_its_call() {
        let faults = parse("throw@aclrtMemcpy:1, fail=107000@aclrtMemset:*,errno=4@aclrtMemcpyAsync:20");
        let expected = [
            Fault { kind: FaultKind::Throw, function: functions::index("aclrtMemcpy"), nth: Some(1) },
            Fault { kind: FaultKind::Fail(107_000), function: functions::index("aclrtMemset"), nth: None },
            Fault { kind: FaultKind::Errno(4), function: functions::index("aclrtMemcpyAsync"), nth: Some(20) },
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn an_entry_that_makes_no_sense_is_left_out() {
        let text =
            ",throw,throw@aclrtMalloc:1,hang@aclrtMemcpy:x,fail=x@aclrtMemcpy:1,boom@aclrtMemcpy:1,hang@aclrtMemset:2";
        let only = Fault { kind: FaultKind::Hang, function: functions::index("aclrtMemset"), nth: Some(2) };
        assert_eq!(parse(text), [only]);
    }
}
