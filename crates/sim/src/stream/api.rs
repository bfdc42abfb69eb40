//! The functions of streams.

use super::queue::{
    abort, create, drain, in_any_context, in_current_context, limit, named, refuse_captured, remove, submit,
    synchronize,
};
use crate::edge::argument::{exports, put, required};
use crate::edge::error::{Outcome, RT_PARAM_INVALID, check};
use crate::state::context;
use crate::state::object::handle;
use crate::state::queue::Queue;
use crate::state::task::{HostFunction, Task};
use crate::state::world;
use std::ffi::c_void;

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
    fn aclrtCreateStream(stream: *mut *mut c_void) => create_here(stream);
    /// A new stream; priority and flag change nothing here.
    fn aclrtCreateStreamWithConfig(stream: *mut *mut c_void, priority: u32, flag: u32) => {
        let _ = (priority, flag);
        create_here(stream)
    };
    /// A new stream; the configuration changes nothing here.
    fn aclrtCreateStreamV2(stream: *mut *mut c_void, config: *const Config) => {
        let _ = config;
        create_here(stream)
    };
    /// Ends a stream when its tasks are done.
    fn aclrtDestroyStream(stream: *mut c_void) => destroy(stream, End::Drained);
    /// Ends a stream now; tasks that wait are dropped.
    fn aclrtDestroyStreamForce(stream: *mut c_void) => destroy(stream, End::Aborted);
    /// Waits until a stream is idle, also one of another context; the first failure of its tasks since the last wait is
    /// the answer.
    fn aclrtSynchronizeStream(stream: *mut c_void) => synchronize(named(stream)?, None);
    /// As `aclrtSynchronizeStream`, for at most `timeout` milliseconds; -1 is no limit.
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

fn create_here(target: *mut *mut c_void) -> Outcome {
    required(target, "stream")?;
    let context = context::current()?;
    let stream = create(context.head.id, context.device);
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
    check(!std::ptr::eq(stream, context::current()?.default_stream), RT_PARAM_INVALID, || {
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

fn call(stream: *mut c_void, function: Option<HostFunction>, argument: *mut c_void) -> Outcome {
    let Some(function) = function else {
        return required(std::ptr::null::<c_void>(), "fn").map(drop);
    };
    let argument = argument.expose_provenance();
    submit(named(stream)?, Task::Call(function, argument))
}
