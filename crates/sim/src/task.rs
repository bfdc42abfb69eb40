//! One piece of work on a stream, and how its worker does it.

use crate::error::{INTERNAL_ERROR, Outcome, RT_STREAM_ABORT, fail};
use crate::event::{self, Event};
use crate::settings::settings;
use crate::stream::Stream;
use crate::world;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

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

    /// Does the work, on the worker of `stream`.
    pub fn run(&self, stream: &'static Stream) -> Outcome {
        match self {
            // A worker that a panic ended would leave its stream busy for ever.
            Self::Move(work) => catch_unwind(AssertUnwindSafe(|| work(Clock::Stream(stream))))
                .unwrap_or_else(|_| fail(INTERNAL_ERROR, "the simulator failed; this is its bug")),
            Self::Record(event, ticket) => {
                event::recorded(event, *ticket);
                Ok(())
            }
            Self::Wait(event, ticket) => event::wait_on_stream(event, *ticket, stream),
            Self::Call(function, argument) => {
                function(crate::argument::pointer(*argument));
                Ok(())
            }
        }
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

impl Clock {
    /// Lets the time pass that the device takes for `bytes`.
    pub fn spend(self, bytes: usize) -> Outcome {
        let cost = settings().cost(bytes);
        if cost.is_zero() {
            return Ok(());
        }
        let Self::Stream(stream) = self else {
            thread::sleep(cost);
            return Ok(());
        };
        let end = Instant::now() + cost;
        let mut world = world::lock();
        loop {
            if world.queues.get(&stream.head.id).is_none_or(|q| q.aborting) {
                return fail(RT_STREAM_ABORT, "the stream was aborted");
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            world = stream.wait(world, Some(left));
        }
    }
}
