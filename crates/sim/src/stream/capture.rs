//! Stream capture: tasks are recorded into a model instead of run, and run at each execution of the model.

use super::queue;
use crate::edge::argument::{entry, exports, put, required};
use crate::edge::error::{
    INVALID_PARAM, Outcome, RT_CAPTURE_MODE_NOT_SUPPORT, RT_FEATURE_NOT_SUPPORT, RT_INVALID_HANDLE, RT_PARAM_INVALID,
    RT_STREAM_CAPTURE_UNMATCHED, RT_STREAM_CAPTURE_WRONG_THREAD, RT_STREAM_CAPTURED, RT_STREAM_NOT_CAPTURED,
    RT_STREAM_UNJOINED, check, fail,
};
use crate::state::context::{self, Context};
use crate::state::model::{CaptureMode, MAGIC, Model, ModelHandle};
use crate::state::object::{Head, handle, object};
use crate::state::stream::Stream;
use crate::state::world::{self, World};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::thread;

thread_local! {
    static MODES: [Cell<u32>; 3] = const { [const { Cell::new(0) }; 3] };
    static EXCHANGED: Cell<i32> = const { Cell::new(CaptureMode::Global as i32) };
}

exports! {
    /// Begins to record the tasks of a stream.
    fn aclmdlRICaptureBegin(stream: *mut c_void, mode: i32) => {
        required(stream, "stream")?;
        begin(stream, mode)
    };
    /// Ends a capture and gives its model.
    fn aclmdlRICaptureEnd(stream: *mut c_void, modelRI: *mut *mut c_void) => {
        required(stream, "stream")?;
        end(stream, modelRI)
    };
    /// Whether a stream is being captured (0 no, 1 yes), and into which model.
    fn aclmdlRICaptureGetInfo(stream: *mut c_void, status: *mut i32, modelRI: *mut *mut c_void) => {
        required(stream, "stream")?;
        check(!(status.is_null() && modelRI.is_null()), INVALID_PARAM, || "status and modelRI are both NULL".into())?;
        info(stream, status, modelRI)
    };
    /// Exchanges the mode that decides what this thread may do during captures.
    fn aclmdlRICaptureThreadExchangeMode(mode: *mut i32) => {
        required(mode, "mode")?;
        let new = CaptureMode::parse(entry(mode, 0))?;
        context::current()?;
        put(mode, "mode", EXCHANGED.replace(new as i32))
    };
    /// Runs a model and waits, for at most `timeout` milliseconds; -1 is no limit.
    fn aclmdlRIExecute(modelRI: *mut c_void, timeout: i32) => {
        required(modelRI, "modelRI")?;
        let limit = queue::limit(timeout)?;
        execute(modelRI, None)?;
        queue::synchronize(None, limit)
    };
    /// Runs a model on a stream.
    fn aclmdlRIExecuteAsync(modelRI: *mut c_void, stream: *mut c_void) => {
        required(modelRI, "modelRI")?;
        let stream = queue::named(stream)?;
        execute(modelRI, stream)
    };
    /// Ends a model.
    fn aclmdlRIDestroy(modelRI: *mut c_void) => {
        required(modelRI, "modelRI")?;
        let model: &'static ModelHandle = object(modelRI, MAGIC, "modelRI")?;
        model.head.end();
        world::lock().models.remove(&model.head.id);
        Ok(())
    };
}

/// 107030 if captures under way forbid this thread synchronous work in `context`.
pub fn permit(context: &Context) -> Outcome {
    let Some(widest) = widest(|mode| context.captures[mode].load(Ordering::Acquire)) else {
        return Ok(());
    };
    let own = MODES.with(|modes| self::widest(|mode| modes[mode].get()));
    let forbidden = match EXCHANGED.get() {
        0 => widest == CaptureMode::Global || own == Some(CaptureMode::ThreadLocal),
        1 => own == Some(CaptureMode::Global) || own == Some(CaptureMode::ThreadLocal),
        _ => false,
    };
    check(!forbidden, RT_CAPTURE_MODE_NOT_SUPPORT, || {
        format!("not permitted during a stream capture of mode {widest:?}")
    })
}

fn widest(count: impl Fn(usize) -> u32) -> Option<CaptureMode> {
    [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed]
        .into_iter()
        .find(|mode| count(*mode as usize) > 0)
}

fn begin(stream: *mut c_void, mode: i32) -> Outcome {
    let stream = queue::named(stream)?;
    let mode = CaptureMode::parse(mode)?;
    let context = context::current()?;
    let stream = queue::in_current_context(stream)?;
    let is_default = std::ptr::eq(stream, context.default_stream);
    check(!is_default, RT_FEATURE_NOT_SUPPORT, || "the default stream cannot be captured".into())?;
    let mut world = world::lock();
    let handle: &'static ModelHandle = Box::leak(Box::new(ModelHandle { head: Head::new(MAGIC) }));
    let id = handle.head.id;
    let Some(queue) = world.queues.get_mut(&stream.head.id) else {
        return fail(RT_INVALID_HANDLE, "stream was destroyed");
    };
    check(queue.capture.is_none(), RT_STREAM_CAPTURED, || "stream is being captured already".into())?;
    queue.capture = Some(id);
    let model = Model {
        handle,
        tasks: Vec::new(),
        origin: stream,
        thread: thread::current().id(),
        mode,
        open: true,
        unjoined: BTreeSet::new(),
    };
    world.models.insert(id, model);
    context.captures[mode as usize].fetch_add(1, Ordering::AcqRel);
    MODES.with(|modes| modes[mode as usize].set(modes[mode as usize].get() + 1));
    Ok(())
}

fn end(stream: *mut c_void, target: *mut *mut c_void) -> Outcome {
    let stream = queue::named(stream)?;
    check(!target.is_null(), RT_PARAM_INVALID, || "modelRI must not be NULL".into())?;
    let stream = queue::in_current_context(stream)?;
    let context = context::current()?;
    put(target, "modelRI", std::ptr::null_mut())?;
    let mut world = world::lock();
    let id = world.queues.get(&stream.head.id).and_then(|q| q.capture);
    let Some(model) = id.and_then(|id| world.models.get_mut(&id)) else {
        return fail(RT_STREAM_NOT_CAPTURED, "stream is not being captured");
    };
    check(std::ptr::eq(model.origin, stream), RT_STREAM_CAPTURE_UNMATCHED, || {
        "the capture did not begin on this stream".into()
    })?;
    let own = model.thread == thread::current().id();
    let mode = model.mode;
    let joined = model.unjoined.is_empty();
    let handle = model.handle;
    model.open = false;
    leave(&mut world, handle.head.id);
    context.captures[mode as usize].fetch_sub(1, Ordering::AcqRel);
    MODES.with(|modes| {
        let count = &modes[mode as usize];
        count.set(count.get().saturating_sub(1));
    });
    let verdict = check(own || mode == CaptureMode::Relaxed, RT_STREAM_CAPTURE_WRONG_THREAD, || {
        "the capture began on another thread".into()
    })
    .and_then(|()| {
        check(joined, RT_STREAM_UNJOINED, || {
            "a stream that joined the capture was not joined back to its origin".into()
        })
    });
    if verdict.is_err() {
        world.models.remove(&handle.head.id);
        return verdict;
    }
    drop(world);
    put(target, "modelRI", self::handle(handle))
}

/// Streams and events are no longer the model's.
fn leave(world: &mut World, model: u64) {
    for queue in world.queues.values_mut() {
        if queue.capture == Some(model) {
            queue.capture = None;
        }
    }
    for event in world.events.values_mut() {
        if event.capture == Some(model) {
            (event.capture, event.captured_on) = (None, None);
        }
    }
}

fn info(stream: *mut c_void, status: *mut i32, target: *mut *mut c_void) -> Outcome {
    let Some(stream) = queue::named(stream)? else {
        return Ok(());
    };
    let world = world::lock();
    let queue = world.queues.get(&stream.head.id);
    let model = queue.and_then(|queue| queue.capture).and_then(|id| world.models.get(&id));
    if !status.is_null() {
        put(status, "status", i32::from(model.is_some()))?;
    }
    if !target.is_null() {
        let handle = model.map_or(std::ptr::null_mut(), |model| self::handle(model.handle));
        put(target, "modelRI", handle)?;
    }
    Ok(())
}

fn execute(model: *mut c_void, stream: Option<&'static Stream>) -> Outcome {
    let model: &'static ModelHandle = object(model, MAGIC, "modelRI")?;
    let tasks = match world::lock().models.get(&model.head.id) {
        Some(model) if !model.open => model.tasks.clone(),
        _ => return fail(RT_PARAM_INVALID, "modelRI is still being captured"),
    };
    for task in tasks {
        queue::submit(stream, task)?;
    }
    Ok(())
}
