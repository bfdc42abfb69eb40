//! Parsers of the values in settings, selectors and command lines. They allocate nothing.

use crate::call::direction::Direction;
use crate::vendor::abi::KINDS;
use crate::vendor::code;

/// What a kind may be written as.
pub const KIND: &str = "a kind, as in HOST_TO_DEVICE, H2D or 1";
/// What a code may be written as.
pub const CODE: &str = "a code, as in 107000 or ACL_ERROR_RT_PARAM_INVALID";
/// What a number of bytes may be written as.
pub const SIZE: &str = "bytes, as in 4096, 64K, 1M or 2G";
/// What a time may be written as.
pub const SPAN: &str = "a time, as in 500ns, 20us, 3ms or 1s";
/// What an address may be written as.
pub const ADDRESS: &str = "an address, as in 0x7f001000";

/// A number in digits.
pub fn number(text: &[u8]) -> Option<u64> {
    in_base(text, 10)
}

/// A number in digits, or in hexadecimal ones behind `0x`.
pub fn address(text: &[u8]) -> Option<u64> {
    match text.strip_prefix(b"0x") {
        Some(digits) => in_base(digits, 16),
        None => number(text),
    }
}

fn in_base(digits: &[u8], base: u32) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, &digit| {
        let digit = char::from(digit).to_digit(base)?;
        sum.checked_mul(base.into())?.checked_add(digit.into())
    })
}

/// A number with a sign if it is below 0.
pub fn signed(text: &[u8]) -> Option<i32> {
    let (digits, sign) = match text.strip_prefix(b"-") {
        Some(digits) => (digits, -1),
        None => (text, 1),
    };
    i32::try_from(sign * i64::try_from(number(digits)?).ok()?).ok()
}

/// A number and a unit, in upper or lower case.
fn with_unit(text: &[u8], units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.iter().position(|letter| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(unit))?;
    number(digits)?.checked_mul(*factor)
}

/// A number of bytes.
pub fn size(text: &[u8]) -> Option<u64> {
    with_unit(text, &[("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)])
}

/// A time, in nanoseconds.
pub fn span(text: &[u8]) -> Option<u64> {
    with_unit(text, &[("ns", 1), ("us", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)])
}

/// The short names of the first kinds.
const SHORT_KINDS: [&str; 4] = ["H2H", "H2D", "D2H", "D2D"];

/// A kind of copy: the vendor's name with or without `ACL_MEMCPY_`, a short one, or any number.
pub fn kind(text: &[u8]) -> Option<i32> {
    let head = b"ACL_MEMCPY_";
    let name = match text.split_at_checked(head.len()) {
        Some((front, name)) if front.eq_ignore_ascii_case(head) => name,
        _ => text,
    };
    let position = |names: &[&str]| names.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name));
    let known = position(&KINDS).or_else(|| position(&SHORT_KINDS));
    known.map(|kind| kind as i32).or_else(|| signed(text))
}

/// A code: the vendor's name, or any number.
pub fn code(text: &[u8]) -> Option<i32> {
    let named = code::all().find(|(_, name, _)| name.as_bytes().eq_ignore_ascii_case(text)).map(|(code, ..)| code);
    named.or_else(|| text.eq_ignore_ascii_case(b"ACL_SUCCESS").then_some(code::ACL_SUCCESS)).or_else(|| signed(text))
}

/// A direction: `h2d`, or any spelling of the kind of that name.
pub fn direction(text: &[u8]) -> Option<Direction> {
    let named = Direction::ALL.into_iter().find(|one| one.short().as_bytes().eq_ignore_ascii_case(text));
    let by_kind = || kind(text).filter(|_| signed(text).is_none()).map(Direction::of_kind);
    named.or_else(|| by_kind().filter(|one| *one != Direction::Unknown))
}

/// Whether a name matches a pattern, in which `*` stands for anything.
pub fn is_like(pattern: &[u8], name: &[u8]) -> bool {
    // Where the last `*` stood, and how much of the name it has taken.
    let (mut at, mut in_name, mut star) = (0, 0, None);
    while in_name < name.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, in_name));
        } else if pattern.get(at) == name.get(in_name) {
            (at, in_name) = (at + 1, in_name + 1);
        } else if let Some((behind, taken)) = star {
            star = Some((behind, taken + 1));
            (at, in_name) = (behind, taken + 1);
        } else {
            return false;
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|letter| *letter == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_names() {
        for (pattern, is) in [
            ("aclrtMemcpy", false),
            ("aclrtMemcpy*", true),
            ("*Async", true),
            ("*c*py*c", true),
            ("*", true),
            ("**", true),
            ("*Sync", false),
            ("aclrtMemcpyAsync*", true),
            ("aclrtMemcpyAsync?", false),
            ("", false),
        ] {
            assert_eq!(is_like(pattern.as_bytes(), b"aclrtMemcpyAsync"), is, "{pattern}");
        }
        assert!(is_like(b"", b"") && is_like(b"*", b"") && !is_like(b"a", b""));
        // In time: every `*` once more for each letter would take for ever.
        assert!(!is_like("*a".repeat(40).as_bytes(), "a".repeat(39).as_bytes()));
    }

    #[test]
    fn sizes_spans_and_addresses_are_read() {
        assert_eq!([size(b"7"), size(b"64k"), size(b"2G")], [Some(7), Some(65_536), Some(2 << 30)]);
        assert_eq!([span(b"5ns"), span(b"20us"), span(b"1S")], [Some(5), Some(20_000), Some(1_000_000_000)]);
        assert_eq!([address(b"0x1F"), address(b"31"), address(b"0")], [Some(31), Some(31), Some(0)]);
        for bad in
            [size(b"x"), size(b""), size(b"99999999999G"), size(b"+5"), span(b"5"), address(b"0xg"), address(b"0x")]
        {
            assert_eq!(bad, None);
        }
    }

    #[test]
    fn kinds_codes_and_directions_have_names_and_numbers() {
        let kinds = [kind(b"host_to_device"), kind(b"ACL_MEMCPY_DEFAULT"), kind(b"9"), kind(b"-3"), kind(b"d2h")];
        assert_eq!(kinds, [Some(1), Some(4), Some(9), Some(-3), Some(2)]);
        assert_eq!([kind(b"sideways"), kind(b""), kind(b"99999999999"), kind(b"ACL_MEMCPY_")], [None; 4]);
        let codes = [code(b"107000"), code(b"acl_error_rt_param_invalid"), code(b"-1"), code(b"ACL_SUCCESS")];
        assert_eq!(codes, [Some(107_000), Some(107_000), Some(-1), Some(0)]);
        assert_eq!(code(b"ACL_ERROR_NO_SUCH"), None);
        let directions = [direction(b"H2D"), direction(b"DEVICE_TO_HOST"), direction(b"unknown")];
        assert_eq!(
            directions,
            [Some(Direction::HostToDevice), Some(Direction::DeviceToHost), Some(Direction::Unknown)]
        );
        assert_eq!([direction(b"1"), direction(b"DEFAULT"), direction(b"")], [None; 3]);
    }
}
