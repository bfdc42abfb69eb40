//! What a capture under way records: tasks, and the events that lead other streams into it.

use crate::edge::error::{Outcome, RT_INVALID_HANDLE, fail};
use crate::state::event::Event;
use crate::state::stream::Stream;
use crate::state::task::Task;
use crate::state::world::World;

/// A task of a captured stream.
pub fn record(world: &mut World, model: u64, stream: &'static Stream, task: Task) {
    if let Some(model) = world.models.get_mut(&model) {
        model.tasks.push(task);
        model.outdate(stream);
    }
}

/// Records an event on a captured stream: from now on it leads other streams into the capture. Says whether it did.
pub fn record_event(world: &mut World, stream: &'static Stream, event: &Event) -> Outcome<bool> {
    let capture = world.queues.get(&stream.head.id).and_then(|q| q.capture);
    let Some(state) = world.events.get_mut(&event.head.id) else {
        return fail(RT_INVALID_HANDLE, "event was destroyed");
    };
    if capture.is_some() {
        (state.capture, state.captured_on) = (capture, Some(stream.head.id));
    }
    Ok(capture.is_some())
}

/// Lets a stream wait for an event of a capture, which takes it in. Says whether there was one.
///
/// A model runs its tasks in the order they were given, which already is an order that every event allows.
pub fn wait_event(world: &mut World, stream: &'static Stream, event: &Event) -> Outcome<bool> {
    let Some(state) = world.events.get(&event.head.id) else {
        return fail(RT_INVALID_HANDLE, "event was destroyed");
    };
    let (Some(id), Some(from)) = (state.capture, state.captured_on) else {
        return Ok(false);
    };
    let World { queues, models, .. } = world;
    let (Some(model), Some(queue)) = (models.get_mut(&id), queues.get_mut(&stream.head.id)) else {
        return Ok(false);
    };
    queue.capture.get_or_insert(id);
    model.outdate(stream);
    if from != stream.head.id {
        model.unjoined.remove(&from);
    }
    Ok(true)
}
