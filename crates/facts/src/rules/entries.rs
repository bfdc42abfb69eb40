//! The rules, by subject.

pub mod argument;
pub mod batch;
pub mod capture;
pub mod descriptor;
pub mod kind;
pub mod memory;
pub mod offset;
pub mod pitch;
mod prelude;
pub mod range;
pub mod stream;
pub mod support;
pub mod symbol;
pub mod words;
