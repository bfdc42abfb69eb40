//! Files of one process: their names, how large they may become, rotation, and the trace.

pub mod budget;
pub(crate) mod directory;
pub mod failure;
pub mod file_names;
pub mod rotation;
pub mod segment;
#[cfg(test)]
mod tests;
mod usage;
