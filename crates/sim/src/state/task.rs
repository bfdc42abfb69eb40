//! One piece of work on a stream.

use super::event::Event;
use super::stream::Stream;
use crate::edge::error::Outcome;
use std::ffi::c_void;
use std::sync::Arc;

/// A function of the program that a stream calls.
pub type HostFunction = extern "C-unwind" fn(*mut c_void);

/// Work that may be done more than once: a captured task runs at each execution.
#[derive(Clone)]
pub enum Task {
    /// Moves or sets bytes.
    Move(Arc<dyn Fn(Clock) -> Outcome + Send + Sync>),
    /// Records the event under this ticket.
    Record(&'static Event, u64),
    /// Waits until the event is recorded up to this ticket.
    Wait(&'static Event, u64),
    /// Calls the program, with this argument.
    Call(HostFunction, usize),
}

impl Task {
    /// A task that moves or sets bytes.
    pub fn moving(work: impl Fn(Clock) -> Outcome + Send + Sync + 'static) -> Self {
        Self::Move(Arc::new(work))
    }
}

/// Whose time a transfer takes.
#[derive(Clone, Copy)]
pub enum Clock {
    /// The calling thread's.
    Caller,
    /// The stream's, which an abort cuts short.
    Stream(&'static Stream),
}
