//! What the operating system and the processor are asked for: time, namespaces, descriptors, and which process this is.
//!
//! All of it is also called inside the host: nothing here allocates or locks.

pub mod clock;
#[cfg(not(loom))]
pub mod contents;
#[cfg(not(loom))]
pub mod descriptor;
pub mod generation;
#[cfg(not(loom))]
pub mod namespace;
