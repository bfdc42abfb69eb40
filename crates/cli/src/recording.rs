//! The commands that start, observe and prepare programs so that their calls are recorded.

pub mod collect;
pub mod doctor;
mod drain_loop;
pub mod dropin;
mod executable;
pub mod run;
pub mod test;
