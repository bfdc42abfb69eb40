//! `aclrtMemset`, `aclrtMemsetD32` and their forms on a stream: one value over a range.

use super::transfer;
use crate::config::settings::settings;
use crate::edge::argument::required;
use crate::edge::error::{INVALID_PARAM, Outcome, RT_PARAM_INVALID, check};
use crate::gate::gated;
use crate::state::context;
use crate::state::registry::{self, Location, locate};
use crate::state::stream::Stream;
use crate::state::task::{Clock, Task};
use crate::stream;
use crate::stream::capture;
use std::ffi::c_void;

gated! {
    /// Sets `count` bytes to the low 8 bits of `value`, now.
    fn aclrtMemset(devPtr: *mut c_void, maxCount: usize, value: i32, count: usize) => {
        if count == 0 && settings().cann.accepts_nothing() {
            return Ok(());
        }
        let dst = required(devPtr, "devPtr")?;
        check(count != 0, RT_PARAM_INVALID, || "count=0 must be greater than 0".into())?;
        capture::permit(context::current()?)?;
        check_count(count, maxCount)?;
        registry::covers(dst, count, "devPtr")?;
        Clock::Caller.spend(count)?;
        transfer::set(dst, value as u8, count)
    };
    /// Sets `count` bytes to the low 8 bits of `value` on a stream; host memory is set at once.
    fn aclrtMemsetAsync(devPtr: *mut c_void, maxCount: usize, value: i32, count: usize, stream: *mut c_void) => {
        if count == 0 && settings().cann.accepts_nothing() {
            return Ok(());
        }
        let dst = required(devPtr, "devPtr")?;
        let stream = stream::named(stream)?;
        check_count(count, maxCount)?;
        let stream = stream::in_current_context(stream)?;
        if matches!(locate(dst)?, Location::Host | Location::Unregistered) {
            return transfer::set(dst, value as u8, count);
        }
        registry::covers(dst, count, "devPtr")?;
        let task = Task::moving(move |clock| {
            clock.spend(count)?;
            transfer::set(dst, value as u8, count).map_err(transfer::engine_fault)
        });
        stream::submit(Some(stream), task)
    };
    /// Sets `N` words of 32 bits, now. A product without this feature answers 0 and sets nothing, like the vendor.
    #[cfg(not(feature = "cann-8-5"))]
    fn aclrtMemsetD32(ptr: *mut c_void, memSize: usize, value: u32, N: usize) => {
        if N == 0 {
            return Ok(());
        }
        let (dst, place) = check_words(ptr, memSize, N)?;
        context::current()?;
        words(dst, place, value, N, None)
    };
    /// Sets `N` words of 32 bits on a stream; pinned host memory is set at once.
    #[cfg(not(feature = "cann-8-5"))]
    fn aclrtMemsetD32Async(ptr: *mut c_void, memSize: usize, value: u32, N: usize, stream: *mut c_void) => {
        if N == 0 {
            return Ok(());
        }
        let (dst, place) = check_words(ptr, memSize, N)?;
        let stream = stream::named(stream)?;
        context::current()?;
        let on = match place {
            Location::Device(_) => Some(stream::in_current_context(stream)?),
            _ => None,
        };
        words(dst, place, value, N, on)
    };
}

fn check_count(count: usize, max: usize) -> Outcome {
    check(count != 0 && count <= max, RT_PARAM_INVALID, || format!("count={count} must be in (0, maxCount={max}]"))
}

fn check_words(pointer: *mut c_void, size: usize, count: usize) -> Outcome<(usize, Location)> {
    let dst = required(pointer, "ptr")?;
    check(dst % 4 == 0, INVALID_PARAM, || format!("ptr={dst:#x} is not aligned to 4 bytes"))?;
    // The vendor multiplies without looking at the overflow, and so does this check.
    let needed = count.wrapping_mul(4);
    check(size >= needed, INVALID_PARAM, || format!("N={count} words need {needed} bytes, memSize={size}"))?;
    let place = locate(dst)?;
    check(matches!(place, Location::Device(_) | Location::Host), INVALID_PARAM, || {
        format!("ptr={dst:#x} is {place:?} memory, not the device's and not pinned")
    })?;
    Ok((dst, place))
}

fn words(dst: usize, place: Location, value: u32, count: usize, stream: Option<&'static Stream>) -> Outcome {
    if place == Location::Host {
        return transfer::set_words(dst, value, count);
    }
    if !settings().product.words {
        return Ok(());
    }
    registry::covers(dst, count.wrapping_mul(4), "ptr")?;
    let Some(stream) = stream else {
        Clock::Caller.spend(count.wrapping_mul(4))?;
        return transfer::set_words(dst, value, count);
    };
    let task = Task::moving(move |clock| {
        clock.spend(count.wrapping_mul(4))?;
        transfer::set_words(dst, value, count).map_err(transfer::engine_fault)
    });
    stream::submit(Some(stream), task)
}
