//! The visitor that writes the log of a process while it runs.

mod arguments;
mod failures;
pub(crate) mod log_writer;
pub(crate) mod stderr;
