//! Output for people: escaped texts, quantities, times, progress bars, and files that appear when they are complete.

#[macro_use]
pub mod escape;
pub mod file;
pub mod progress;
pub mod quantity;
pub mod time;
