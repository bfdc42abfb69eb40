//! The worker thread of a stream: how a task is done, and the time it takes.

use super::tickets;
use crate::config::settings::settings;
use crate::edge::argument::pointer;
use crate::edge::error::{INTERNAL_ERROR, Outcome, RT_NO_STREAM_RESOURCE, RT_STREAM_ABORT, fail};
use crate::state::stream::Stream;
use crate::state::task::{Clock, Task};
use crate::state::world::{self, wait};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Instant;

/// Starts the worker with every signal blocked: a handler of the program never runs on it.
pub fn start(stream: &'static Stream) -> Outcome {
    // SAFETY: both sets are plain values that the calls below fill before they are read.
    let (mut all, mut before) = unsafe { std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>() };
    // SAFETY: the sets are ours.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let started = thread::Builder::new().name(format!("ascend-{}", stream.head.id)).spawn(move || work(stream));
    // SAFETY: puts the thread's own mask back.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    match started {
        Ok(_) => Ok(()),
        Err(error) => fail(RT_NO_STREAM_RESOURCE, format!("no worker for the stream: {error}")),
    }
}

/// The life of a worker: does one task after the other until its stream is destroyed.
fn work(stream: &'static Stream) {
    let mut world = world::lock();
    while let Some(queue) = world.queues.get_mut(&stream.head.id) {
        let Some(task) = queue.tasks.pop_front() else {
            world = wait(&stream.changed, world, None);
            continue;
        };
        queue.running = true;
        drop(world);
        let outcome = task.run(stream);
        drop(task);
        world = world::lock();
        if let Some(queue) = world.queues.get_mut(&stream.head.id) {
            queue.running = false;
            queue.over += 1;
            if let (Err(failure), false) = (outcome, queue.aborting) {
                queue.failure.get_or_insert(failure);
            }
        }
        stream.changed.notify_all();
    }
}

impl Task {
    /// Does the work, on the worker of `stream`.
    fn run(&self, stream: &'static Stream) -> Outcome {
        match self {
            // A worker that ends by a panic would leave its stream busy.
            Self::Move(work) => catch_unwind(AssertUnwindSafe(|| work(Clock::Stream(stream))))
                .unwrap_or_else(|_| fail(INTERNAL_ERROR, "the simulator failed; this is its bug")),
            Self::Record(event, ticket) => {
                tickets::recorded(event, *ticket);
                Ok(())
            }
            Self::Wait(event, ticket) => tickets::wait_on_stream(event, *ticket, stream),
            Self::Call(function, argument) => {
                function(pointer(*argument));
                Ok(())
            }
        }
    }
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
            world = wait(&stream.changed, world, Some(left));
        }
    }
}
