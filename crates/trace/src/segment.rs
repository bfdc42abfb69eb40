//! Trace segments: the files that a drain writes and every command reads.

pub mod format;
pub mod order;
pub mod reader;
