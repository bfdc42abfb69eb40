//! Findings: what the rulebook says of recorded calls, and what of that is reported.

pub mod judge;
pub(crate) mod module_lookup;
pub mod modules;
pub mod mute;
pub mod platform;
pub(crate) mod quick_check;
pub mod rule_bits;
