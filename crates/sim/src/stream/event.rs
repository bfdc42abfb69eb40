//! Events: marks in a stream that others wait for.

use super::tickets::state;
use super::{queue, recording};
use crate::edge::argument::{exports, put, required};
use crate::edge::error::{
    Outcome, RT_EVENT_CAPTURED, RT_EVENT_NOT_COMPLETE, RT_EVENT_SYNC_TIMEOUT, RT_PARAM_INVALID, check, fail,
};
use crate::state::context;
use crate::state::event::{Event, EventState, MAGIC};
use crate::state::object::{Head, handle, object};
use crate::state::stream::Stream;
use crate::state::task::Task;
use crate::state::world::{self, EVENTS, World};
use std::ffi::c_void;
use std::sync::MutexGuard;
use std::time::Instant;

exports! {
    /// A new event.
    fn aclrtCreateEvent(event: *mut *mut c_void) => create(event, false);
    /// A new event; the flag changes nothing here.
    fn aclrtCreateEventWithFlag(event: *mut *mut c_void, flag: u32) => {
        let _ = flag;
        create(event, false)
    };
    /// A new event that need not be reset; the flag changes nothing here.
    fn aclrtCreateEventExWithFlag(event: *mut *mut c_void, flag: u32) => {
        let _ = flag;
        create(event, true)
    };
    /// Ends an event.
    fn aclrtDestroyEvent(event: *mut c_void) => {
        let event = named(event)?;
        event.head.end();
        world::lock().events.remove(&event.head.id);
        EVENTS.notify_all();
        Ok(())
    };
    /// Records an event when the stream's tasks so far are done.
    fn aclrtRecordEvent(event: *mut c_void, stream: *mut c_void) => record(named(event)?, queue::named(stream)?);
    /// Makes an event not recorded again.
    fn aclrtResetEvent(event: *mut c_void, stream: *mut c_void) => {
        let event = named(event)?;
        queue::in_current_context(queue::named(stream)?)?;
        let mut world = world::lock();
        let state = state(&mut world, event)?;
        state.reset = state.issued;
        Ok(())
    };
    /// Whether an event is recorded: 1 complete, 0 not ready.
    fn aclrtQueryEventStatus(event: *mut c_void, status: *mut i32) => {
        let event = named(event)?;
        required(status, "status")?;
        let mut world = uncaptured(event)?;
        let complete = state(&mut world, event)?.is_complete();
        put(status, "status", i32::from(complete))
    };
    /// Whether every wait for an event is over: 0 complete, 1 not ready.
    fn aclrtQueryEventWaitStatus(event: *mut c_void, status: *mut i32) => {
        let event = named(event)?;
        required(status, "status")?;
        let mut world = uncaptured(event)?;
        let waiting = state(&mut world, event)?.waiting > 0;
        put(status, "status", i32::from(waiting))
    };
    /// Waits until an event is recorded.
    fn aclrtSynchronizeEvent(event: *mut c_void) => synchronize(event, -1);
    /// As `aclrtSynchronizeEvent`, for at most `timeout` milliseconds; -1 is no limit.
    fn aclrtSynchronizeEventWithTimeout(event: *mut c_void, timeout: i32) => synchronize(event, timeout);
    /// Lets a stream wait for an event.
    fn aclrtStreamWaitEvent(stream: *mut c_void, event: *mut c_void) => wait(queue::named(stream)?, named(event)?);
    /// As `aclrtStreamWaitEvent`; the limit of the wait is not simulated.
    fn aclrtStreamWaitEventWithTimeout(stream: *mut c_void, event: *mut c_void, timeout: i32) => {
        check(timeout >= 0, RT_PARAM_INVALID, || format!("timeout={timeout} must not be negative"))?;
        wait(queue::named(stream)?, named(event)?)
    };
    /// The milliseconds between two recorded events.
    fn aclrtEventElapsedTime(ms: *mut f32, startEvent: *mut c_void, endEvent: *mut c_void) => {
        required(ms, "ms")?;
        let (start, end) = (recorded_at(named(startEvent)?)?, recorded_at(named(endEvent)?)?);
        let span = match end.checked_duration_since(start) {
            Some(after) => after.as_secs_f32(),
            None => -start.duration_since(end).as_secs_f32(),
        };
        put(ms, "ms", span * 1000.0)
    };
}

fn create(target: *mut *mut c_void, extended: bool) -> Outcome {
    required(target, "event")?;
    context::current()?;
    let event: &'static Event = Box::leak(Box::new(Event { head: Head::new(MAGIC), extended }));
    let state = EventState::default();
    world::lock().events.insert(event.head.id, state);
    put(target, "event", handle(event))
}

fn named(event: *mut c_void) -> Outcome<&'static Event> {
    required(event, "event")?;
    object(event, MAGIC, "event")
}

/// The world, unless the event's last record was captured: then 107028.
fn uncaptured(event: &Event) -> Outcome<MutexGuard<'static, World>> {
    let mut world = world::lock();
    let captured = state(&mut world, event)?.capture.is_some();
    check(!captured, RT_EVENT_CAPTURED, || "event was recorded in a capture".into())?;
    Ok(world)
}

fn record(event: &'static Event, stream: Option<&'static Stream>) -> Outcome {
    let on = queue::in_current_context(stream)?;
    let ticket = {
        let mut world = world::lock();
        if recording::record_event(&mut world, on, event)? {
            return Ok(());
        }
        let state = state(&mut world, event)?;
        state.capture = None;
        state.issued += 1;
        state.issued
    };
    queue::submit(stream, Task::Record(event, ticket))
}

fn wait(stream: Option<&'static Stream>, event: &'static Event) -> Outcome {
    let on = queue::in_current_context(stream)?;
    let ticket = {
        let mut world = world::lock();
        if recording::wait_event(&mut world, on, event)? {
            return Ok(());
        }
        let state = state(&mut world, event)?;
        let ticket = match state.issued > state.reset {
            true => state.issued,
            false if event.extended => return Ok(()),
            // An event of the old kind is waited for until it is recorded.
            false => state.issued + 1,
        };
        state.waiting += 1;
        ticket
    };
    queue::submit(stream, Task::Wait(event, ticket))
}

fn synchronize(event: *mut c_void, timeout: i32) -> Outcome {
    let limit = queue::limit(timeout)?;
    let event = named(event)?;
    context::current()?;
    let end = limit.map(|limit| Instant::now() + limit);
    let mut world = uncaptured(event)?;
    let ticket = state(&mut world, event)?.issued;
    while world.events.get(&event.head.id).is_some_and(|s| s.done < ticket) {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return fail(RT_EVENT_SYNC_TIMEOUT, "event is not recorded yet");
        }
        world = world::wait(&EVENTS, world, left);
    }
    Ok(())
}

fn recorded_at(event: &'static Event) -> Outcome<Instant> {
    let mut world = uncaptured(event)?;
    let state = state(&mut world, event)?;
    match state.when.filter(|_| state.is_complete()) {
        Some(when) => Ok(when),
        None => fail(RT_EVENT_NOT_COMPLETE, "event is not recorded"),
    }
}
