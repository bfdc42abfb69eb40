//! An event, as its handle names it, and what changes of it.

use super::object::Head;
use std::time::Instant;

/// The magic number of an event.
pub const MAGIC: u64 = 0x0074_6e65_7665_4353;

/// An event. Leaked; ended by its head. What changes of it is its `EventState`.
#[repr(C)]
pub struct Event {
    /// Its identity and whether it lives.
    pub head: Head,
    /// Made by `aclrtCreateEventExWithFlag`: a wait before the first record is over at once.
    pub extended: bool,
}

/// What changes of an event. Each record has a ticket, from 1.
#[derive(Default)]
pub struct EventState {
    /// The last ticket that was given.
    pub issued: u64,
    /// The last ticket that was recorded.
    pub done: u64,
    /// Records up to this ticket no longer count.
    pub reset: u64,
    /// Number of streams that wait for it.
    pub waiting: u32,
    /// The time of the last record.
    pub when: Option<Instant>,
    /// The model that captured the last record.
    pub capture: Option<u64>,
    /// The stream whose captured record was the last.
    pub captured_on: Option<u64>,
}

impl EventState {
    /// Whether it is recorded.
    pub fn is_complete(&self) -> bool {
        self.issued > self.reset && self.done >= self.issued
    }
}
