//! The C edge: how arguments are read, results written and failures answered.

pub mod argument;
pub mod error;
