//! Records on their way from rings to files, and what is read from both.
//!
//! It runs on one thread inside a foreign process, or in the `aclshim` command. So it prints nothing, starts no thread, reads no
//! environment, raises no signal and returns every failure as a value ([`storage::failure`]); what it needs to know comes in
//! as [`storage::rotation::OutputLocation`] and [`storage::file_names::FileNameValues`].
//!
//! | room | concern |
//! |---|---|
//! | [`drain`] | rings into files: what both sides share, the loops of a thread in the host and of the command, rings of dead processes |
//! | `live_log` | the visitor that writes the log of a process |
//! | [`trace_set`] | reading traces and rings back from a directory, call by call |
//! | [`interpreter`] | records into typed events: the one place that remembers open calls; their visitors and totals |
//! | [`findings`] | what the rulebook says of the calls, and what is reported of that |
//! | [`log`] | the log: how lines are declared, which there are, writing |
//! | [`storage`] | files: names, rotation, budget, the trace writer; a trace's layout is [`aclshim_trace::segment::format`] |
//! | [`liveness`], [`ownership`] | whether the process of a ring runs, and whose rings count for a directory |

pub mod drain;
pub mod findings;
pub mod interpreter;
pub mod json;
mod live_log;
pub mod liveness;
pub mod log;
pub mod ownership;
#[cfg(test)]
mod scratch;
pub mod storage;
pub mod trace_set;
