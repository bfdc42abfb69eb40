//! Copies to and from a device variable, which the program names by its host symbol.

use super::kind::Kind;
use super::linear::{self, Range};
use crate::edge::argument::required;
use crate::edge::error::{FAILURE, INVALID_PARAM, Outcome, RT_INVALID_SYMBOL, check, fail};
use crate::gate::gated;
use crate::memory::malloc;
use crate::state::context;
use crate::state::world;
use crate::stream;
use std::ffi::c_void;

gated! {
    /// Copies from a device variable, now.
    fn aclrtMemcpyFromSymbol(
        dst: *mut c_void, dstMax: usize, symbol: *const c_void, count: usize, offset: usize, kind: i32,
    ) => {
        if count == 0 {
            return Ok(());
        }
        linear::now_checked(from(dst, dstMax, symbol, count, offset, kind)?)
    };
    /// Copies from a device variable on a stream.
    fn aclrtMemcpyFromSymbolAsync(
        dst: *mut c_void, dstMax: usize, symbol: *const c_void, count: usize, offset: usize, kind: i32,
        stream: *mut c_void,
    ) => {
        if count == 0 {
            return Ok(());
        }
        let range = from(dst, dstMax, symbol, count, offset, kind)?;
        linear::on_stream(range, Kind::DeviceToHost, stream::named(stream)?, false)
    };
    /// Copies to a device variable, now.
    fn aclrtMemcpyToSymbol(symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: i32) => {
        if count == 0 {
            return Ok(());
        }
        linear::now_checked(to(symbol, src, count, offset, kind)?)
    };
    /// Copies to a device variable on a stream.
    fn aclrtMemcpyToSymbolAsync(
        symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: i32, stream: *mut c_void,
    ) => {
        if count == 0 {
            return Ok(());
        }
        let range = to(symbol, src, count, offset, kind)?;
        linear::on_stream(range, Kind::HostToDevice, stream::named(stream)?, false)
    };
}

fn from(dst: *mut c_void, max: usize, symbol: *const c_void, count: usize, offset: usize, kind: i32) -> Outcome<Range> {
    let symbol = required(symbol, "symbol")?;
    let dst = required(dst, "dst")?;
    check(count <= max, INVALID_PARAM, || format!("count={count} must not exceed dstMax={max}"))?;
    Kind::one_of(kind, &[Kind::DeviceToHost, Kind::Default])?;
    let (start, _) = part(symbol, count, offset)?;
    Ok(Range { dst, max, src: start, count })
}

fn to(symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: i32) -> Outcome<Range> {
    let symbol = required(symbol, "symbol")?;
    let src = required(src, "src")?;
    Kind::one_of(kind, &[Kind::HostToDevice, Kind::Default])?;
    let (start, left) = part(symbol, count, offset)?;
    Ok(Range { dst: start, max: left, src, count })
}

/// Where the variable's bytes from `offset` on lie, and how many there are.
fn part(symbol: usize, count: usize, offset: usize) -> Outcome<(usize, usize)> {
    let (start, size) = look_up(symbol)?;
    let Some(end) = offset.checked_add(count) else {
        return fail(FAILURE, format!("offset={offset} + count={count} overflows"));
    };
    check(end <= size, INVALID_PARAM, || {
        format!("offset={offset} + count={count} must not exceed the symbol's {size} bytes")
    })?;
    Ok((start + offset, size - offset))
}

/// The address and the size of the variable on the thread's device.
fn look_up(symbol: usize) -> Outcome<(usize, usize)> {
    let device = context::current()?.device;
    let mut world = world::lock();
    let Some(variable) = world.variables.get_mut(&symbol) else {
        return fail(RT_INVALID_SYMBOL, format!("symbol={symbol:#x} is no device variable"));
    };
    let start = match variable.at.get(&device) {
        Some(start) => *start,
        None => {
            let start = malloc::allocate(device, variable.size)?;
            variable.at.insert(device, start);
            start
        }
    };
    Ok((start, variable.size))
}
