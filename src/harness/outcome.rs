//! The end of a scope: expectations are judged, and the result is reported.

pub mod end;
pub mod exit;
pub mod expect;
mod file;
mod golden;
mod results;
mod wording;
