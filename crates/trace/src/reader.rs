//! ReadMode rings: of threads that run and of threads that are gone, to drain them or only to look.

#[cfg(not(loom))]
mod mapped;
#[cfg(not(loom))]
mod snapshot;
mod view;

#[cfg(not(loom))]
pub use mapped::{MOST_RINGS, RingFile, RingFileError, files, is_alone, is_ring, lock};
#[cfg(not(loom))]
pub use snapshot::{RingReader, RingSnapshot};
pub use view::{ReadMode, Ring, SlotRun};
