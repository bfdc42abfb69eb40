//! The drain: what brings records to disk, as a binary trace ([`segment`]) and a JSON log
//! ([`log`]).
//!
//! It runs on one thread inside somebody else's process, or in the `aclshim` command. So it prints
//! nothing, starts no thread, reads no environment, raises no signal and returns every failure as
//! a value ([`failure`]); what it needs to know comes in as [`chain::Place`] and [`names::Who`].
//!
//! | | |
//! |---|---|
//! | [`drain`] | rings into files: what both sides share |
//! | [`inside`], [`outside`] | the loops of a thread in the host and of the command |
//! | [`life`], [`adoption`] | whether a process runs, and what dead ones have left |
//! | [`names`], [`budget`], `usage`, [`chain`] | file names, how large files may become, what they take now, a row of files that are appended to |
//! | [`segment`] | writing the trace; its layout and reading are [`aclshim_trace::segment::format`] |
//! | [`line`], [`lines`], [`log`], [`schema`] | the log: how lines are declared, which there are, writing, the page |
//! | [`interpreter`] | records into typed events: the one place that remembers open calls |
//! | `log_writer`, `failures`, `shape` | the visitor that writes the log of a process, of its failed calls, and of a call's arguments |
//! | [`judge`], `quick_check`, [`mute`], [`modules`], `module_lookup`, `stderr` | findings: what the rulebook says of the calls, and what is reported of that |
//! | [`ownership`] | whose rings count for a directory |
//! | [`account`], [`trace_set`], `process`, `common`, [`visitor`] | what records add up to, and reading them back from a directory call by call |

pub mod account;
pub mod adoption;
pub mod budget;
pub mod chain;
mod common;
mod directory;
pub mod drain;
pub mod failure;
mod failures;
pub mod inside;
pub mod interpreter;
pub mod json;
pub mod judge;
pub mod labels;
pub mod life;
pub mod line;
pub mod lines;
pub mod log;
mod log_writer;
mod module_lookup;
pub mod modules;
pub mod mute;
pub mod names;
pub mod outside;
pub mod ownership;
mod process;
mod quick_check;
pub mod schema;
#[cfg(test)]
mod scratch;
pub mod segment;
mod shape;
mod stderr;
mod subscriber;
pub mod trace_set;
mod usage;
pub mod visitor;

pub use subscriber::install;
