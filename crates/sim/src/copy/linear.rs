//! `aclrtMemcpy`, `aclrtMemcpyAsync` and `aclrtMemcpyAsyncWithCondition`: one range to another.

use super::kind::Kind;
use super::transfer;
use crate::config::settings::{RunMode, settings};
use crate::edge::argument::required;
use crate::edge::error::{
    Fail, Outcome, RT_CAPTURE_MODE_BLOCK_ASYNC, RT_CAPTURE_MODE_NOT_SUPPORT, RT_FEATURE_NOT_SUPPORT,
    RT_MEMORY_ALLOCATION, RT_PARAM_INVALID, check, fail,
};
use crate::gate::gated;
use crate::state::context;
use crate::state::registry::{self, Location, locate};
use crate::state::stream::Stream;
use crate::state::task::{Clock, Task};
use crate::stream;
use crate::stream::capture;
use std::ffi::c_void;

gated! {
    /// Copies `count` bytes now. The kind only has to be one of 0 to 5: the addresses decide.
    fn aclrtMemcpy(dst: *mut c_void, destMax: usize, src: *const c_void, count: usize, kind: i32) => {
        if count == 0 && settings().cann.accepts_nothing() {
            return Ok(());
        }
        let range = Range { dst: required(dst, "dst")?, max: destMax, src: required(src, "src")?, count };
        Kind::linear(kind)?;
        now_checked(range)
    };
    /// Copies `count` bytes on a stream. With pageable memory the copy is done when the call returns.
    fn aclrtMemcpyAsync(
        dst: *mut c_void, destMax: usize, src: *const c_void, count: usize, kind: i32, stream: *mut c_void,
    ) =>
        on_stream_outer(dst, destMax, src, count, kind, stream, Condition::None);
    /// As `aclrtMemcpyAsync`, but refused with 207000 by a driver that cannot tell pageable memory.
    fn aclrtMemcpyAsyncWithCondition(
        dst: *mut c_void, destMax: usize, src: *const c_void, count: usize, kind: i32, stream: *mut c_void,
    ) =>
        on_stream_outer(dst, destMax, src, count, kind, stream, Condition::Pinned);
}

/// Two ranges of a linear copy.
#[derive(Clone, Copy)]
pub struct Range {
    /// Destination address.
    pub dst: usize,
    /// Room at the destination in bytes.
    pub max: usize,
    /// Source address.
    pub src: usize,
    /// Number of bytes to copy.
    pub count: usize,
}

/// What the caller asks the driver to make sure of.
#[derive(Clone, Copy, PartialEq)]
enum Condition {
    None,
    Pinned,
}

/// A synchronous copy with the checks of the inner layer.
pub fn now_checked(range: Range) -> Outcome {
    let Range { dst, max, src, count } = range;
    check(max != 0, RT_PARAM_INVALID, || "destMax=0 must be greater than 0".into())?;
    check_count(range)?;
    if dst == src {
        return Ok(());
    }
    now(dst, src, count)
}

/// A synchronous copy: what is left to check when the parameters are good.
pub fn now(dst: usize, src: usize, count: usize) -> Outcome {
    capture::permit(context::current()?)?;
    run(dst, src, count, Clock::Caller)
}

/// A copy that the runtime hands to the driver without a check whether a capture permits it.
pub fn by_driver(dst: usize, src: usize, count: usize) -> Outcome {
    context::current()?;
    run(dst, src, count, Clock::Caller)
}

/// Moves the bytes, with the driver's check of both ranges.
fn run(dst: usize, src: usize, count: usize, clock: Clock) -> Outcome {
    registry::covers(dst, count, "dst")?;
    registry::covers(src, count, "src")?;
    clock.spend(count)?;
    transfer::copy(dst, src, count)
}

fn check_count(Range { max, count, .. }: Range) -> Outcome {
    check(count != 0 && count <= max, RT_PARAM_INVALID, || format!("count={count} must be in (0, destMax={max}]"))
}

fn on_stream_outer(
    dst: *mut c_void,
    max: usize,
    src: *const c_void,
    count: usize,
    kind: i32,
    stream: *mut c_void,
    condition: Condition,
) -> Outcome {
    if count == 0 && settings().cann.accepts_nothing() {
        return Ok(());
    }
    let (dst, src) = (required(dst, "dst")?, required(src, "src")?);
    let kind = Kind::linear(kind)?;
    let range = Range { dst, max, src, count };
    let stream = stream::named(stream)?;
    on_stream(range, kind, stream, condition == Condition::Pinned)
}

/// A copy on a stream with the checks of the inner layer.
pub fn on_stream(range: Range, kind: Kind, stream: Option<&'static Stream>, demand_pinned: bool) -> Outcome {
    check_count(range)?;
    context::current()?;
    let Range { dst, src, .. } = range;
    let online = settings().run_mode == RunMode::Host;
    let mut pageable = false;
    let mut revised = kind;
    if kind == Kind::HostToBufToDevice {
        if online {
            check_buffered(range)?;
        }
    } else if settings().user_malloc_attr {
        (revised, pageable) = by_location(range, kind)?;
    } else if demand_pinned {
        return fail(RT_FEATURE_NOT_SUPPORT, "the driver cannot tell pageable memory");
    }
    check(revised != Kind::HostToHost || !online, RT_FEATURE_NOT_SUPPORT, || {
        "a copy from host to host cannot be done on a stream".into()
    })?;
    if dst == src {
        return Ok(());
    }
    if kind == Kind::HostToBufToDevice {
        enqueue_buffered(range, stream)
    } else if pageable {
        blocking(stream, || now(dst, src, range.count))
    } else {
        enqueue(dst, src, range.count, stream)
    }
}

/// The kind by where the memory is, and whether pageable memory takes part.
pub fn by_location(Range { dst, src, .. }: Range, kind: Kind) -> Outcome<(Kind, bool)> {
    let (src, dst) = (locate(src)?, locate(dst)?);
    let revised = match settings().run_mode {
        RunMode::Host => kind.revise(src, dst)?,
        RunMode::Device => kind,
    };
    Ok((revised, revised.is_pageable(src, dst)))
}

fn check_buffered(Range { dst, src, .. }: Range) -> Outcome {
    let (src, dst) = (locate(src)?, locate(dst)?);
    let fits = !matches!(src, Location::Device(_)) && matches!(dst, Location::Device(_));
    check(fits, RT_PARAM_INVALID, || {
        format!("kind=HostToBufToDevice does not fit src in {src:?} and dst in {dst:?} memory")
    })
}

/// A copy of pageable memory: refused in a capture, otherwise done at once when the stream is idle.
pub fn blocking(stream: Option<&'static Stream>, copy: impl FnOnce() -> Outcome) -> Outcome {
    let captured = stream.is_some_and(stream::is_captured);
    check(!captured, RT_PARAM_INVALID, || "a copy of pageable memory cannot be captured".into())?;
    stream::synchronize(stream, None)?;
    copy().map_err(|failure| match failure.code {
        RT_CAPTURE_MODE_NOT_SUPPORT => Fail { code: RT_CAPTURE_MODE_BLOCK_ASYNC, ..failure },
        _ => failure,
    })
}

/// Gives the copy to the stream.
pub fn enqueue(dst: usize, src: usize, count: usize, stream: Option<&'static Stream>) -> Outcome {
    let stream = stream::in_current_context(stream)?;
    registry::covers(dst, count, "dst")?;
    registry::covers(src, count, "src")?;
    let task = Task::moving(move |clock| in_flight(dst, src, count, clock));
    stream::submit(Some(stream), task)
}

/// Gives the copy to the stream with the source as it is now: the program may change it at once.
fn enqueue_buffered(range: Range, stream: Option<&'static Stream>) -> Outcome {
    let Range { dst, src, count, .. } = range;
    let stream = stream::in_current_context(stream)?;
    registry::covers(dst, count, "dst")?;
    let mut buffer = Vec::new();
    check(buffer.try_reserve_exact(count).is_ok(), RT_MEMORY_ALLOCATION, || {
        format!("no buffer for count={count} bytes")
    })?;
    buffer.resize(count, 0u8);
    transfer::copy(buffer.as_mut_ptr().expose_provenance(), src, count)?;
    let task = Task::moving(move |clock| in_flight(dst, buffer.as_ptr().expose_provenance(), count, clock));
    stream::submit(Some(stream), task)
}

/// The copy on its stream: an address that is gone by now is a fault of the copy engine.
fn in_flight(dst: usize, src: usize, count: usize, clock: Clock) -> Outcome {
    clock.spend(count)?;
    transfer::copy_by_engine(dst, src, count)
}
