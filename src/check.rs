//! The rules, applied to a call before and after it is forwarded.

pub mod arrays;
pub mod judgement;
pub mod look;
pub mod stack;
pub mod world;
