//! The records of a process: how they lie in shared memory and in trace files, how they are written and read back.
//!
//! The story of one record:
//!
//! 1. A thread of the host claims slots through its [`ring::cursor::RingCursor`], stores the call's arguments and shows
//!    the record as in flight ([`record::slot`]). The ring lies in a file on tmpfs ([`ring::file`], [`ring::layout`]),
//!    so that nothing has to be flushed and SIGKILL loses nothing.
//! 2. When the call returns, the thread stores code and duration, and shows the record as done.
//! 3. A drain, in this process or in another one, maps the ring file and copies whole records out of it ([`reader`]).
//!    A command that only looks takes a snapshot instead, and leaves the ring as it is.
//! 4. The drain appends them as blocks to a trace segment ([`mod@segment`]).
//! 5. A reader of either decodes slots to typed entries ([`record::decode`]); [`origin`] names the process that wrote them.
//!
//! The memory order that steps 1 to 3 rely on is described in [`mod@ring`].
//!
//! Rooms depend on each other in this order: `sync`, [`system`], [`record`], [`mod@ring`], [`version1`], [`origin`],
//! [`reader`], [`mod@segment`]. What runs inside the host ([`system`], [`mod@ring`]) uses no heap and no lock, and leaves
//! no descriptor open.

#[cfg(not(loom))]
pub mod origin;
pub mod reader;
pub mod record;
pub mod ring;
pub mod segment;
pub mod sync;
pub mod system;
#[cfg(all(test, not(loom)))]
mod tests;
pub mod version1;
