//! The queues of streams: submitting tasks, waiting for them, aborting them.

use super::{recording, worker};
use crate::edge::error::{
    Outcome, RT_INVALID_HANDLE, RT_PARAM_INVALID, RT_STREAM_CAPTURED, RT_STREAM_CONTEXT, RT_STREAM_SYNC_TIMEOUT, check,
    fail,
};
use crate::state::context;
use crate::state::object::{Head, object};
use crate::state::queue::Queue;
use crate::state::stream::{MAGIC, Stream};
use crate::state::task::Task;
use crate::state::world::{self, EVENTS, wait};
use std::ffi::c_void;
use std::sync::Condvar;
use std::time::{Duration, Instant};

/// A new stream of the context with this identity.
pub fn create(context: u64, device: u32) -> &'static Stream {
    let stream: &'static Stream =
        Box::leak(Box::new(Stream { head: Head::new(MAGIC), context, device, changed: Condvar::new() }));
    let queue = Queue { stream: Some(stream), ..Queue::default() };
    world::lock().queues.insert(stream.head.id, queue);
    stream
}

/// Whether a capture records the stream's tasks.
pub fn is_captured(stream: &Stream) -> bool {
    let world = world::lock();
    world.queues.get(&stream.head.id).is_some_and(|queue| queue.capture.is_some())
}

/// The stream behind a handle; `None` for NULL. 107017 for anything else.
pub fn named(stream: *mut c_void) -> Outcome<Option<&'static Stream>> {
    if stream.is_null() {
        return Ok(None);
    }
    object(stream, MAGIC, "stream").map(Some)
}

/// The stream, of any context, or the default one for `None`; 107002 without a context.
///
/// The vendor lets a thread wait for a stream of another context, and ask about it.
pub fn in_any_context(stream: Option<&'static Stream>) -> Outcome<&'static Stream> {
    let context = context::current()?;
    Ok(stream.unwrap_or(context.default_stream))
}

/// The stream, or the default one for `None`; 107002 without a context, 107003 if the stream is another context's.
pub fn in_current_context(stream: Option<&'static Stream>) -> Outcome<&'static Stream> {
    let context = context::current()?;
    let stream = in_any_context(stream)?;
    check(stream.context == context.head.id, RT_STREAM_CONTEXT, || {
        "stream belongs to another context than the thread's".into()
    })?;
    Ok(stream)
}

/// The duration of `timeout` milliseconds; -1 is no limit, other values below 1 are refused.
pub fn limit(timeout: i32) -> Outcome<Option<Duration>> {
    match timeout {
        -1 => Ok(None),
        1.. => Ok(Some(Duration::from_millis(timeout.unsigned_abs().into()))),
        _ => fail(RT_PARAM_INVALID, format!("timeout={timeout} must be -1 or greater than 0")),
    }
}

/// Gives a task to the stream, or to the model that captures it.
pub fn submit(stream: Option<&'static Stream>, task: Task) -> Outcome {
    let stream = in_current_context(stream)?;
    let mut world = world::lock();
    let Some(queue) = world.queues.get_mut(&stream.head.id) else {
        return fail(RT_INVALID_HANDLE, "stream was destroyed");
    };
    if let Some(model) = queue.capture {
        recording::record(&mut world, model, stream, task);
        return Ok(());
    }
    if !queue.has_worker {
        worker::start(stream)?;
        queue.has_worker = true;
    }
    queue.tasks.push_back(task);
    queue.given += 1;
    stream.changed.notify_all();
    Ok(())
}

/// 107027 if the stream is being captured, whether or not the thread has a context. The default stream never is.
pub fn refuse_captured(stream: Option<&'static Stream>) -> Outcome<Option<&'static Stream>> {
    check(!stream.is_some_and(is_captured), RT_STREAM_CAPTURED, || "stream is being captured".into())?;
    Ok(stream)
}

/// As `synchronize`, but a captured stream, which has nothing under way, is not refused.
pub fn synchronize_any(stream: Option<&'static Stream>) -> Outcome {
    drain(in_any_context(stream)?, None)
}

/// Waits until what the stream, of any context, was given so far is over. A failure of its tasks is given once.
pub fn synchronize(stream: Option<&'static Stream>, limit: Option<Duration>) -> Outcome {
    let stream = in_any_context(refuse_captured(stream)?)?;
    drain(stream, limit.map(|limit| Instant::now() + limit))
}

/// Waits until what the stream was given so far is over, at most until `end`.
pub fn drain(stream: &'static Stream, end: Option<Instant>) -> Outcome {
    let mut world = world::lock();
    let Some(given) = world.queues.get(&stream.head.id).map(|queue| queue.given) else {
        return Ok(());
    };
    while let Some(queue) = world.queues.get_mut(&stream.head.id) {
        if queue.over >= given {
            return queue.failure.take().map_or(Ok(()), Err);
        }
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return fail(RT_STREAM_SYNC_TIMEOUT, "stream is still busy");
        }
        world = wait(&stream.changed, world, left);
    }
    Ok(())
}

/// Waits until every stream of the device is idle; the first failure is the answer.
pub fn synchronize_device(device: u32, limit: Option<Duration>) -> Outcome {
    let end = limit.map(|limit| Instant::now() + limit);
    let streams = streams_where(|stream| stream.device == device);
    let captured = streams.iter().any(|stream| is_captured(stream));
    check(!captured, RT_STREAM_CAPTURED, || "a stream of the device is being captured".into())?;
    let outcomes: Vec<Outcome> = streams.iter().map(|stream| drain(stream, end)).collect();
    outcomes.into_iter().collect()
}

fn streams_where(wanted: impl Fn(&Stream) -> bool) -> Vec<&'static Stream> {
    let world = world::lock();
    let streams = world.queues.values().filter_map(|queue| queue.stream);
    streams.filter(|stream| wanted(stream)).collect()
}

/// Ends the stream: its handle is refused from here on, and its worker stops.
pub fn remove(stream: &'static Stream) {
    stream.head.end();
    let queue = world::lock().queues.remove(&stream.head.id);
    drop(queue);
    stream.changed.notify_all();
}

/// Drops every task and waits until the one under way has given up.
pub fn abort(stream: &'static Stream) {
    let mut world = world::lock();
    while let Some(queue) = world.queues.get_mut(&stream.head.id) {
        queue.drop_tasks();
        queue.aborting = queue.running;
        if !queue.running {
            queue.failure = None;
            return;
        }
        stream.changed.notify_all();
        EVENTS.notify_all();
        world = wait(&stream.changed, world, None);
    }
}

/// Ends every stream of a context.
pub fn destroy_all_of(context: u64) {
    for stream in streams_where(|stream| stream.context == context) {
        abort(stream);
        remove(stream);
    }
}
