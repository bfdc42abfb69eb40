//! The records of events as workers come to them: each record has a ticket, and a wait names the ticket it waits for.

use crate::edge::error::{Outcome, RT_INVALID_HANDLE, RT_STREAM_ABORT, fail};
use crate::state::event::{Event, EventState};
use crate::state::stream::Stream;
use crate::state::world::{self, EVENTS, World, wait};
use std::time::Instant;

/// What changes of an event; 107017 if it was destroyed.
pub fn state<'w>(world: &'w mut World, event: &Event) -> Outcome<&'w mut EventState> {
    match world.events.get_mut(&event.head.id) {
        Some(state) => Ok(state),
        None => fail(RT_INVALID_HANDLE, "event was destroyed"),
    }
}

/// The worker has come to a record.
pub fn recorded(event: &Event, ticket: u64) {
    if let Ok(state) = state(&mut world::lock(), event) {
        state.done = state.done.max(ticket);
        state.when = Some(Instant::now());
    }
    EVENTS.notify_all();
}

/// The worker has come to a wait. A destroyed event is not waited for.
pub fn wait_on_stream(event: &'static Event, ticket: u64, stream: &'static Stream) -> Outcome {
    let mut world = world::lock();
    let outcome = loop {
        match world.events.get(&event.head.id) {
            Some(state) if state.done < ticket => {}
            _ => break Ok(()),
        }
        if world.queues.get(&stream.head.id).is_none_or(|q| q.aborting) {
            break fail(RT_STREAM_ABORT, "the stream was aborted");
        }
        world = wait(&EVENTS, world, None);
    };
    if let Ok(state) = state(&mut world, event) {
        state.waiting = state.waiting.saturating_sub(1);
    }
    outcome
}
