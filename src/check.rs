//! The rules, applied to a call before and after it is forwarded.

pub mod judgement;
pub mod policy;
pub mod post_call;
pub mod pre_call;
mod stack;
pub mod world;
