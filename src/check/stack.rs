//! More of a call's stack than its caller, for findings (`ACLSHIM_STACK`).

use crate::guest::edge;
use crate::guest::state::is_own;
use aclshim_trace::record::FRAMES;
use core::ffi::c_void;

#[repr(C)]
struct Context([u8; 0]);

unsafe extern "C" {
    fn _Unwind_Backtrace(trace: extern "C" fn(*mut Context, *mut c_void) -> i32, argument: *mut c_void) -> i32;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}

/// What is gathered, and whether the caller has been passed.
struct Gathered {
    frames: [u64; FRAMES],
    count: usize,
    has_passed: bool,
}

/// `_URC_NO_REASON` and `_URC_NORMAL_STOP`.
const GO_ON: i32 = 0;
const STOP: i32 = 4;

extern "C" fn gather(context: *mut Context, gathered: *mut c_void) -> i32 {
    // SAFETY: what `frames` has handed over; the unwinder's own context.
    let (gathered, address) = unsafe { (&mut *gathered.cast::<Gathered>(), _Unwind_GetIP(context)) };
    if is_own(address) {
        return GO_ON;
    }
    // The first one is the call site, which is in the record.
    if !core::mem::replace(&mut gathered.has_passed, true) {
        return GO_ON;
    }
    let Some(place) = gathered.frames.get_mut(gathered.count) else { return STOP };
    *place = address as u64;
    gathered.count += 1;
    if gathered.count == FRAMES { STOP } else { GO_ON }
}

/// The return addresses behind the caller's, from the inside out, if there are any.
pub fn frames() -> Option<[u64; FRAMES]> {
    let mut gathered = Gathered { frames: [0; FRAMES], count: 0, has_passed: false };
    // The unwinder takes the loader's lock: no handler may come in between that wants it too.
    // SAFETY: the callback gets what it expects.
    edge::with_signals_blocked(|| unsafe { _Unwind_Backtrace(gather, (&raw mut gathered).cast()) })?;
    (gathered.count > 0).then_some(gathered.frames)
}
