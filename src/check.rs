//! The rules, applied to a call before and after it is forwarded.

pub mod judgement;
pub mod stack;
pub mod world;
