//! A stream, as its handle names it.

use super::object::Head;
use std::sync::Condvar;

/// The magic number of a stream.
pub const MAGIC: u64 = 0x6d61_6572_7473_4353;

/// A stream. Leaked; ended by its head. What changes of it is its `Queue`.
#[repr(C)]
pub struct Stream {
    /// Its identity and whether it lives.
    pub head: Head,
    /// The identity of its context.
    pub context: u64,
    /// The device of its context.
    pub device: u32,
    /// Notified when something of its queue changes.
    pub changed: Condvar,
}
