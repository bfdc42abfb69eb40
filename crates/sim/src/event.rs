//! Events: marks in a stream that others wait for.

use crate::argument::{exports, put, required};
use crate::capture;
use crate::context;
use crate::error::{
    Outcome, RT_EVENT_CAPTURED, RT_EVENT_NOT_COMPLETE, RT_EVENT_SYNC_TIMEOUT, RT_INVALID_HANDLE, RT_PARAM_INVALID,
    RT_STREAM_ABORT, check, fail,
};
use crate::stream::{self, Stream};
use crate::task::Task;
use crate::world::{self, EVENTS, Head, World, handle, object};
use std::ffi::c_void;
use std::sync::MutexGuard;
use std::time::Instant;

const MAGIC: u64 = 0x0074_6e65_7665_4353;

/// An event. Leaked; ended by its head. What changes of it is its `EventState`.
#[repr(C)]
pub struct Event {
    /// Its identity and whether it lives.
    pub head: Head,
    /// Made by `aclrtCreateEventExWithFlag`: a wait before the first record is over at once.
    extended: bool,
}

/// What changes of an event. Each record has a ticket, from 1.
#[derive(Default)]
pub struct EventState {
    issued: u64,
    done: u64,
    /// Records up to this ticket no longer count.
    reset: u64,
    waiting: u32,
    when: Option<Instant>,
    /// The model that captured the last record.
    pub capture: Option<u64>,
    /// The stream whose captured record was the last.
    pub captured_on: Option<u64>,
}

impl EventState {
    fn is_complete(&self) -> bool {
        self.issued > self.reset && self.done >= self.issued
    }
}

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
    fn aclrtRecordEvent(event: *mut c_void, stream: *mut c_void) => record(named(event)?, stream::named(stream)?);
    /// Makes an event not recorded again.
    fn aclrtResetEvent(event: *mut c_void, stream: *mut c_void) => {
        let event = named(event)?;
        stream::in_current_context(stream::named(stream)?)?;
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
    /// As `aclrtSynchronizeEvent`, for at most `timeout` milliseconds; -1 is for ever.
    fn aclrtSynchronizeEventWithTimeout(event: *mut c_void, timeout: i32) => synchronize(event, timeout);
    /// Lets a stream wait for an event.
    fn aclrtStreamWaitEvent(stream: *mut c_void, event: *mut c_void) => wait(stream::named(stream)?, named(event)?);
    /// As `aclrtStreamWaitEvent`; the limit of the wait is not simulated.
    fn aclrtStreamWaitEventWithTimeout(stream: *mut c_void, event: *mut c_void, timeout: i32) => {
        check(timeout >= 0, RT_PARAM_INVALID, || format!("timeout={timeout} must not be negative"))?;
        wait(stream::named(stream)?, named(event)?)
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

fn state<'w>(world: &'w mut World, event: &Event) -> Outcome<&'w mut EventState> {
    match world.events.get_mut(&event.head.id) {
        Some(state) => Ok(state),
        None => fail(RT_INVALID_HANDLE, "event was destroyed"),
    }
}

/// The world, unless the event's last record was captured: then 107028.
fn uncaptured(event: &Event) -> Outcome<MutexGuard<'static, World>> {
    let mut world = world::lock();
    let captured = state(&mut world, event)?.capture.is_some();
    check(!captured, RT_EVENT_CAPTURED, || "event was recorded in a capture".into())?;
    Ok(world)
}

fn record(event: &'static Event, stream: Option<&'static Stream>) -> Outcome {
    let on = stream::in_current_context(stream)?;
    let ticket = {
        let mut world = world::lock();
        if capture::record_event(&mut world, on, event)? {
            return Ok(());
        }
        let state = state(&mut world, event)?;
        state.capture = None;
        state.issued += 1;
        state.issued
    };
    stream::submit(stream, Task::Record(event, ticket))
}

/// The worker has come to a record.
pub fn recorded(event: &Event, ticket: u64) {
    if let Ok(state) = state(&mut world::lock(), event) {
        state.done = state.done.max(ticket);
        state.when = Some(Instant::now());
    }
    EVENTS.notify_all();
}

fn wait(stream: Option<&'static Stream>, event: &'static Event) -> Outcome {
    let on = stream::in_current_context(stream)?;
    let ticket = {
        let mut world = world::lock();
        if capture::wait_event(&mut world, on, event)? {
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
    stream::submit(stream, Task::Wait(event, ticket))
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
        world = stream::wait(&EVENTS, world, None);
    };
    if let Ok(state) = state(&mut world, event) {
        state.waiting = state.waiting.saturating_sub(1);
    }
    outcome
}

fn synchronize(event: *mut c_void, timeout: i32) -> Outcome {
    let limit = stream::limit(timeout)?;
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
        world = stream::wait(&EVENTS, world, left);
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
