//! The commands that check, repair, merge and remove recorded files.

pub mod clean;
pub mod merge;
pub mod recover;
pub mod verify;
