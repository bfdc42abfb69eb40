//! Streams: tasks in order, each stream with a worker thread of its own that starts with its first task.

use crate::argument::{exports, put, required};
use crate::capture;
use crate::context::{self, Context};
use crate::error::{
    Fail, Outcome, RT_INVALID_HANDLE, RT_NO_STREAM_RESOURCE, RT_PARAM_INVALID, RT_STREAM_CAPTURED, RT_STREAM_CONTEXT,
    RT_STREAM_SYNC_TIMEOUT, check, fail,
};
use crate::task::{HostFunction, Task};
use crate::world::{self, EVENTS, Head, World, handle, object};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const MAGIC: u64 = 0x6d61_6572_7473_4353;

/// A stream. Leaked; ended by its head. What changes of it is its `Queue`.
#[repr(C)]
pub struct Stream {
    /// Its identity and whether it lives.
    pub head: Head,
    context: &'static Context,
    changed: Condvar,
}

/// What changes of a stream.
#[derive(Default)]
pub struct Queue {
    tasks: VecDeque<Task>,
    running: bool,
    /// How many tasks it was ever given, and how many of them are over.
    given: u64,
    over: u64,
    has_worker: bool,
    failure: Option<Fail>,
    stream: Option<&'static Stream>,
    /// The task under way has to give up.
    pub aborting: bool,
    /// The model that captures this stream.
    pub capture: Option<u64>,
}

impl Queue {
    fn is_idle(&self) -> bool {
        self.over >= self.given
    }

    fn drop_tasks(&mut self) {
        self.over += self.tasks.len() as u64;
        self.tasks.clear();
    }

    /// In the child of a fork: the worker stayed with the parent, and so did its tasks.
    pub fn forget_worker(&mut self) {
        self.tasks.clear();
        self.over = self.given;
        self.running = false;
        self.has_worker = false;
        self.aborting = false;
    }
}

/// `aclrtStreamConfigHandle`; nothing in it changes the simulation.
#[repr(C)]
pub struct Config {
    _work: *mut c_void,
    _work_size: usize,
    _flag: usize,
    _priority: u32,
}

exports! {
    /// A new stream in the thread's context.
    fn aclrtCreateStream(stream: *mut *mut c_void) => create(stream);
    /// A new stream; priority and flag change nothing here.
    fn aclrtCreateStreamWithConfig(stream: *mut *mut c_void, priority: u32, flag: u32) => {
        let _ = (priority, flag);
        create(stream)
    };
    /// A new stream; the configuration changes nothing here.
    fn aclrtCreateStreamV2(stream: *mut *mut c_void, config: *const Config) => {
        let _ = config;
        create(stream)
    };
    /// Ends a stream when its tasks are done.
    fn aclrtDestroyStream(stream: *mut c_void) => destroy(stream, End::Drained);
    /// Ends a stream now; tasks that wait are dropped.
    fn aclrtDestroyStreamForce(stream: *mut c_void) => destroy(stream, End::Aborted);
    /// Waits until a stream is idle, also one of another context; the first failure of its tasks since the last wait is
    /// the answer.
    fn aclrtSynchronizeStream(stream: *mut c_void) => synchronize(named(stream)?, None);
    /// As `aclrtSynchronizeStream`, for at most `timeout` milliseconds; -1 is for ever.
    fn aclrtSynchronizeStreamWithTimeout(stream: *mut c_void, timeout: i32) => {
        let limit = limit(timeout)?;
        synchronize(named(stream)?, limit)
    };
    /// Whether a stream is idle: 0 complete, 1 not ready.
    fn aclrtStreamQuery(stream: *mut c_void, status: *mut i32) => {
        required(status, "status")?;
        let stream = in_any_context(refuse_captured(named(stream)?)?)?;
        let idle = world::lock().queues.get(&stream.head.id).is_none_or(Queue::is_idle);
        put(status, "status", i32::from(!idle))
    };
    /// Drops the tasks of a stream, the one under way too.
    fn aclrtStreamAbort(stream: *mut c_void) => {
        check(!stream.is_null(), RT_PARAM_INVALID, || "stream must not be NULL".into())?;
        abort(in_current_context(named(stream)?)?);
        Ok(())
    };
    /// A stream's number. Only the default stream needs a context.
    fn aclrtStreamGetId(stream: *mut c_void, streamId: *mut i32) => {
        required(streamId, "streamId")?;
        let stream = named(stream)?.map_or_else(|| in_any_context(None), Ok)?;
        put(streamId, "streamId", stream.head.id as i32)
    };
    /// Calls `fn` on the stream's worker when its turn comes.
    fn aclrtLaunchHostFunc(
        stream: *mut c_void, function: Option<HostFunction>, args: *mut c_void,
    ) => call(stream, function, args);
    /// As `aclrtLaunchHostFunc`: no thread has to process reports here.
    fn aclrtLaunchCallback(
        function: Option<HostFunction>, userData: *mut c_void, blockType: i32, stream: *mut c_void,
    ) => {
        let _ = blockType;
        call(stream, function, userData)
    };
}

impl Stream {
    /// A new stream of `context`.
    pub fn create(context: &'static Context) -> &'static Self {
        let stream: &'static Self =
            Box::leak(Box::new(Self { head: Head::new(MAGIC), context, changed: Condvar::new() }));
        let queue = Queue { stream: Some(stream), ..Queue::default() };
        world::lock().queues.insert(stream.head.id, queue);
        stream
    }

    /// Waits until something of the stream changes, or for `limit`.
    pub fn wait(&self, world: MutexGuard<'static, World>, limit: Option<Duration>) -> MutexGuard<'static, World> {
        wait(&self.changed, world, limit)
    }

    /// Whether a capture records this stream's tasks.
    pub fn is_captured(&self) -> bool {
        let world = world::lock();
        world.queues.get(&self.head.id).is_some_and(|queue| queue.capture.is_some())
    }
}

/// Waits on a condition of the world, for ever or for `limit`.
pub fn wait(
    condition: &Condvar,
    world: MutexGuard<'static, World>,
    limit: Option<Duration>,
) -> MutexGuard<'static, World> {
    match limit {
        None => condition.wait(world).unwrap_or_else(PoisonError::into_inner),
        Some(limit) => condition.wait_timeout(world, limit).unwrap_or_else(PoisonError::into_inner).0,
    }
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
fn in_any_context(stream: Option<&'static Stream>) -> Outcome<&'static Stream> {
    let context = context::current()?;
    Ok(stream.unwrap_or_else(|| context.default_stream()))
}

/// The stream, or the default one for `None`; 107002 without a context, 107003 if the stream is another context's.
pub fn in_current_context(stream: Option<&'static Stream>) -> Outcome<&'static Stream> {
    let context = context::current()?;
    let stream = in_any_context(stream)?;
    check(stream.context.head.id == context.head.id, RT_STREAM_CONTEXT, || {
        "stream belongs to another context than the thread's".into()
    })?;
    Ok(stream)
}

/// How long `timeout` milliseconds are; -1 is for ever, 0 and below are refused.
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
        capture::record(&mut world, model, stream, task);
        return Ok(());
    }
    if !queue.has_worker {
        start_worker(stream)?;
        queue.has_worker = true;
    }
    queue.tasks.push_back(task);
    queue.given += 1;
    stream.changed.notify_all();
    Ok(())
}

/// Starts the worker with every signal blocked: a handler of the program never runs on it.
fn start_worker(stream: &'static Stream) -> Outcome {
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
            world = stream.wait(world, None);
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

/// 107027 if the stream is being captured, whether or not the thread has a context. The default stream never is.
fn refuse_captured(stream: Option<&'static Stream>) -> Outcome<Option<&'static Stream>> {
    check(!stream.is_some_and(Stream::is_captured), RT_STREAM_CAPTURED, || "stream is being captured".into())?;
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

fn drain(stream: &'static Stream, end: Option<Instant>) -> Outcome {
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
        world = stream.wait(world, left);
    }
    Ok(())
}

/// Waits until every stream of the device is idle; the first failure is the answer.
pub fn synchronize_device(device: u32, limit: Option<Duration>) -> Outcome {
    let end = limit.map(|limit| Instant::now() + limit);
    let streams = streams_where(|stream| stream.context.device == device);
    let captured = streams.iter().any(|stream| stream.is_captured());
    check(!captured, RT_STREAM_CAPTURED, || "a stream of the device is being captured".into())?;
    let outcomes: Vec<Outcome> = streams.iter().map(|stream| drain(stream, end)).collect();
    outcomes.into_iter().collect()
}

fn streams_where(wanted: impl Fn(&Stream) -> bool) -> Vec<&'static Stream> {
    let world = world::lock();
    let streams = world.queues.values().filter_map(|queue| queue.stream);
    streams.filter(|stream| wanted(stream)).collect()
}

fn create(target: *mut *mut c_void) -> Outcome {
    required(target, "stream")?;
    let stream = Stream::create(context::current()?);
    put(target, "stream", handle(stream))
}

/// How a stream ends.
#[derive(PartialEq)]
enum End {
    Drained,
    Aborted,
}

fn destroy(stream: *mut c_void, end: End) -> Outcome {
    required(stream, "stream")?;
    let stream = in_current_context(refuse_captured(named(stream)?)?)?;
    check(!std::ptr::eq(stream, stream.context.default_stream()), RT_PARAM_INVALID, || {
        "the default stream cannot be destroyed".into()
    })?;
    if end == End::Aborted {
        abort(stream);
    }
    // What its tasks failed with goes with the stream.
    let _ = drain(stream, None);
    remove(stream);
    Ok(())
}

fn remove(stream: &'static Stream) {
    stream.head.end();
    let queue = world::lock().queues.remove(&stream.head.id);
    drop(queue);
    stream.changed.notify_all();
}

/// Drops every task and waits until the one under way has given up.
fn abort(stream: &'static Stream) {
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
        world = stream.wait(world, None);
    }
}

/// Ends every stream of a context.
pub fn destroy_all_of(context: &'static Context) {
    for stream in streams_where(|stream| stream.context.head.id == context.head.id) {
        abort(stream);
        remove(stream);
    }
}

fn call(stream: *mut c_void, function: Option<HostFunction>, argument: *mut c_void) -> Outcome {
    let Some(function) = function else {
        return required(std::ptr::null::<c_void>(), "fn").map(drop);
    };
    let argument = argument.expose_provenance();
    submit(named(stream)?, Task::Call(function, argument))
}
