//! `aclrtMemcpy2d` and `aclrtMemcpy2dAsync`: rows at a distance.

use super::kind::Kind;
use super::linear::{self, Range};
use super::transfer;
use crate::config::settings::{RunMode, settings};
use crate::edge::argument::required;
use crate::edge::error::{INVALID_PARAM, Outcome, RT_FEATURE_NOT_SUPPORT, RT_PARAM_INVALID, check, fail};
use crate::gate::gated;
use crate::state::context;
use crate::state::registry::{self, locate};
use crate::state::task::{Clock, Task};
use crate::stream;
use crate::stream::capture;
use std::ffi::c_void;

const MAX_HEIGHT: usize = 5 * 1024 * 1024;
const MAX_WIDTH: usize = 5_000_000;

gated! {
    /// Copies `height` rows of `width` bytes between host and device, now.
    fn aclrtMemcpy2d(
        dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: i32,
    ) => {
        match Rows::checked(dst, dpitch, src, spitch, width, height, kind)? {
            Some((rows, kind)) => now(rows, kind),
            None => Ok(()),
        }
    };
    /// Copies `height` rows of `width` bytes on a stream. With pageable memory the copy is done when the call returns.
    fn aclrtMemcpy2dAsync(
        dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: i32,
        stream: *mut c_void,
    ) => {
        match Rows::checked(dst, dpitch, src, spitch, width, height, kind)? {
            Some((rows, kind)) => on_stream(rows, kind, stream),
            None => Ok(()),
        }
    };
}

#[derive(Clone, Copy)]
struct Rows {
    dst: usize,
    dst_pitch: usize,
    src: usize,
    src_pitch: usize,
    width: usize,
    height: usize,
}

impl Rows {
    /// The checks of the outer layer; `None` if there is nothing to copy.
    fn checked(
        dst: *mut c_void,
        dst_pitch: usize,
        src: *const c_void,
        src_pitch: usize,
        width: usize,
        height: usize,
        kind: i32,
    ) -> Outcome<Option<(Self, Kind)>> {
        let nothing = width == 0 || height == 0;
        if nothing && settings().cann.accepts_nothing() {
            return Ok(None);
        }
        let (dst, src) = (required(dst, "dst")?, required(src, "src")?);
        check(!nothing, INVALID_PARAM, || format!("width={width} and height={height} must be greater than 0"))?;
        check(width <= src_pitch && width <= dst_pitch, INVALID_PARAM, || {
            format!("width={width} must not exceed spitch={src_pitch} and dpitch={dst_pitch}")
        })?;
        let allowed = [Kind::HostToDevice, Kind::DeviceToHost, Kind::Default, Kind::DeviceToDevice];
        let known = if settings().cann.copies_rows_on_device() { allowed.len() } else { allowed.len() - 1 };
        let kind = Kind::one_of(kind, &allowed[..known])?;
        let rows = Self { dst, dst_pitch, src, src_pitch, width, height };
        Ok(Some((rows, kind)))
    }

    fn check_limits(self) -> Outcome {
        check(self.height <= MAX_HEIGHT, RT_PARAM_INVALID, || {
            format!("height={} must not exceed {MAX_HEIGHT}", self.height)
        })?;
        check(self.width <= MAX_WIDTH, RT_PARAM_INVALID, || format!("width={} must not exceed {MAX_WIDTH}", self.width))
    }

    fn extent(self, pitch: usize) -> usize {
        (self.height - 1).saturating_mul(pitch).saturating_add(self.width)
    }

    fn covered(self) -> Outcome {
        registry::covers(self.dst, self.extent(self.dst_pitch), "dst")?;
        registry::covers(self.src, self.extent(self.src_pitch), "src")
    }

    /// The two ranges, for the checks that a linear copy has too.
    fn range(self) -> Range {
        let count = self.width * self.height;
        Range { dst: self.dst, max: count, src: self.src, count }
    }

    fn copy(self, clock: Clock) -> Outcome {
        clock.spend(self.width * self.height)?;
        let (to, from) = ((self.dst, self.dst_pitch), (self.src, self.src_pitch));
        transfer::copy_rows(to, from, self.width, self.height)
    }
}

fn now(rows: Rows, kind: Kind) -> Outcome {
    rows.check_limits()?;
    check(kind != Kind::DeviceToDevice, RT_FEATURE_NOT_SUPPORT, || "kind=DeviceToDevice is not supported".into())?;
    context::current()?;
    let revised = kind.revise(locate(rows.src)?, locate(rows.dst)?)?;
    check(matches!(revised, Kind::HostToDevice | Kind::DeviceToHost), RT_PARAM_INVALID, || {
        format!("kind={kind:?} comes to {revised:?}; only host and device are supported")
    })?;
    at_once(rows)
}

/// A synchronous copy: what is left to check when the parameters are good.
fn at_once(rows: Rows) -> Outcome {
    capture::permit(context::current()?)?;
    refuse_on_device()?;
    rows.covered()?;
    rows.copy(Clock::Caller)
}

/// The driver on the device itself has no two-dimensional copy.
fn refuse_on_device() -> Outcome {
    check(settings().run_mode == RunMode::Host, RT_FEATURE_NOT_SUPPORT, || {
        "the driver has no two-dimensional copy".into()
    })
}

fn on_stream(rows: Rows, kind: Kind, stream: *mut c_void) -> Outcome {
    let stream = stream::named(stream)?;
    if stream.is_none() && context::current().is_err() {
        return fail(RT_PARAM_INVALID, "stream=NULL, and the thread has no context");
    }
    rows.check_limits()?;
    context::current()?;
    let (revised, pageable) = match settings().user_malloc_attr {
        true => linear::by_location(rows.range(), kind)?,
        false => (kind, false),
    };
    check(matches!(revised, Kind::HostToDevice | Kind::DeviceToHost | Kind::DeviceToDevice), RT_PARAM_INVALID, || {
        format!("kind={kind:?} comes to {revised:?}, which is not supported")
    })?;
    if pageable {
        return linear::blocking(stream, || at_once(rows));
    }
    let stream = stream::in_current_context(stream)?;
    // Inside the device the rows go to the copy engine one by one, on every product.
    if revised != Kind::DeviceToDevice {
        refuse_on_device()?;
    }
    rows.covered()?;
    let task = Task::moving(move |clock| rows.copy(clock).map_err(transfer::engine_fault));
    stream::submit(Some(stream), task)
}
