//! What a process leaves in shared memory, and how it is read back.
//!
//! [`page`] is the layout, [`writer`] runs inside the host (no heap, no lock), [`reader`] outside.

pub mod page;
pub mod reader;
pub mod text;
pub mod writer;
