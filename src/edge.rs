//! The edge of our own cold paths: nothing that happens there may reach the host.

use core::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

unsafe extern "C-unwind" {
    // Not in the libc crate. Restoring the state may act on a pending request at once, by unwinding.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}
const CANCEL_DISABLE: c_int = 1;

/// Runs a cold path of ours: errno is afterwards what it was, a panic is `None`, and the thread is
/// not cancelled in it (our file operations are no cancellation points of the host's, and a
/// cancellation cannot pass a `catch_unwind`).
pub fn kept<T>(work: impl FnOnce() -> T) -> Option<T> {
    let mut cancel_state = 0;
    // SAFETY: errno and the cancellation state are the calling thread's own.
    unsafe {
        let place = libc::__errno_location();
        let before = *place;
        pthread_setcancelstate(CANCEL_DISABLE, &mut cancel_state);
        let answer = catch_unwind(AssertUnwindSafe(work)).ok();
        *place = before;
        pthread_setcancelstate(cancel_state, &mut cancel_state);
        answer
    }
}
