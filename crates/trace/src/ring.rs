//! Rings as the recording process makes and writes them.

pub mod annotate;
pub mod cursor;
#[cfg(not(loom))]
pub mod file;
pub mod layout;
