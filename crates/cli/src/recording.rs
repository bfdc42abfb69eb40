//! The commands that start, observe and prepare programs so that their calls are recorded.

pub mod collect;
pub mod doctor;
pub mod dropin;
pub mod run;
pub mod test;
