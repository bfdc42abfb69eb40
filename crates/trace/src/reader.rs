//! Reading rings of living and of dead processes, to drain them or only to look.
//!
//! A drain maps the ring file ([`RingFile`]) and reads whole records from each [`Ring`]. A command that only looks takes a
//! [`RingSnapshot`] with a [`RingReader`], which maps nothing.

#[cfg(not(loom))]
mod allocation;
#[cfg(not(loom))]
mod mapped;
#[cfg(not(loom))]
mod opening;
mod plain_run;
#[cfg(not(loom))]
mod snapshot;
mod view;

#[cfg(not(loom))]
pub use allocation::allocate_ahead;
#[cfg(not(loom))]
pub use mapped::{RingFile, SharedHeader, files, is_alone, is_ring, lock};
#[cfg(not(loom))]
pub use opening::{MOST_RINGS, RingFileError};
#[cfg(not(loom))]
pub use snapshot::{RingReader, RingSnapshot};
pub use view::{ReadMode, Ring, SlotRun};
