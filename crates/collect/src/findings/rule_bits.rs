//! Sets of rules, a bit each by their numbers.

use aclshim_facts::rules::RULES;
use std::borrow::Cow;

/// The bits of the rules that this release knows.
pub(super) const KNOWN: u128 = u128::MAX >> (u128::BITS as usize - RULES.len());

/// The numbers of the bits that are set.
pub(super) fn numbers(mut bits: u128) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let number = (bits != 0).then(|| bits.trailing_zeros() as u8);
        bits &= bits.wrapping_sub(1);
        number
    })
}

/// The ids of rules, by their bits. A rule of a later release, which the host may be of, has none here: its number stands
/// for it, so that what it found is not lost.
pub fn rule_ids(bits: u128) -> impl Iterator<Item = Cow<'static, str>> {
    numbers(bits).map(rule_id)
}

pub(super) fn rule_id(number: u8) -> Cow<'static, str> {
    match RULES.get(usize::from(number)) {
        Some(rule) => rule.id.into(),
        None => format!("UNKNOWN-RULE-{number}").into(),
    }
}
