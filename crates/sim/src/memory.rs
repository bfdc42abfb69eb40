//! Memory: what every address is, and the functions that give and take it.

pub mod malloc;
pub mod mapping;
pub mod query;
pub mod register;
