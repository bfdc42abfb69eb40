//! Trace segments: the files that a drain writes and every command reads.

mod block;
mod error;
pub mod format;
mod input;
pub mod order;
pub mod reader;
