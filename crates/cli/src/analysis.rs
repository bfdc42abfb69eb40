//! The commands that show what was recorded.

pub mod diff;
pub mod explain;
pub mod export;
pub mod findings;
pub mod log;
pub mod report;
pub mod sarif;
pub mod stat;
