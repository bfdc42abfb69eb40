//! What a process leaves in shared memory, and how it is read back.
//!
//! [`layout`] and [`slot`] are the format. [`ring`] and [`file`] write it inside the host: no heap, no
//! lock, and no [`descriptor`] that stays. [`reader`], [`ring_file`] and [`record`] read it, inside and outside;
//! [`origin`] tells whose it is.
//! [`segment`], [`segment_reader`] and [`turn`] are the files that a drain makes of it.

#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
pub mod descriptor;
#[cfg(not(loom))]
pub mod documents;
#[cfg(not(loom))]
pub mod file;
pub mod generation;
pub mod layout;
#[cfg(not(loom))]
pub mod namespace;
#[cfg(not(loom))]
pub mod origin;
pub mod reader;
pub mod record;
pub mod ring;
#[cfg(not(loom))]
pub mod ring_file;
#[cfg(not(loom))]
pub mod ring_reader;
#[cfg(all(test, not(loom)))]
mod sample;
pub mod segment;
pub mod segment_reader;
pub mod slot;
pub mod sync;
pub mod told;
pub mod turn;
