//! The exit status of the process after failed expectations.

use crate::guest::edge;
use crate::harness::state::lock;
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

unsafe extern "C" {
    // Not in the libc crate.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// What the process is to exit with if an expectation was not met; 0 for what it exits with anyway. A fork child keeps
/// it.
static STATUS: AtomicI32 = AtomicI32::new(0);
/// Whether [`at_exit`] is on libc's list.
static IS_ARMED: AtomicBool = AtomicBool::new(false);

/// Number of expectations of this process that have failed.
pub fn failures() -> u64 {
    lock::existing().map_or(0, |lock| lock.failures.load(Ordering::Relaxed))
}

/// Counts failed expectations.
pub fn fail(failures: u64) {
    if let Some(lock) = lock::existing() {
        lock.failures.fetch_add(failures, Ordering::Relaxed);
    }
    // Perhaps the program is at its end, and has passed us by. Not in a handler: libc has a lock there.
    if failures > 0 && STATUS.load(Ordering::Relaxed) != 0 && !edge::may_be_in_a_handler() {
        arm();
    }
}

/// From now on `status` is what the process exits with if an expectation was not met; whether that can be done. Only
/// within [`edge::with_signals_blocked`].
pub fn set(status: c_int) -> bool {
    STATUS.store(status, Ordering::Relaxed);
    // Not in a handler, as above: our own end comes in time.
    status == 0 || edge::may_be_in_a_handler() || arm()
}

fn arm() -> bool {
    if IS_ARMED.swap(true, Ordering::Relaxed) {
        return true;
    }
    // SAFETY: a function of ours, which stays loaded.
    let is_armed = unsafe { on_exit(at_exit, ptr::null_mut()) } == 0;
    IS_ARMED.store(is_armed, Ordering::Relaxed);
    is_armed
}

/// Has the process exit with the status that was [set](set), if an expectation was not met.
pub fn arm_if_failed() {
    if STATUS.load(Ordering::Relaxed) != 0 && failures() > 0 {
        arm();
    }
}

/// One of libc's functions for the end, somewhere among the program's: scopes may still be open, for another one to end.
/// What fails later comes here again.
extern "C" fn at_exit(given: c_int, _: *mut c_void) {
    IS_ARMED.store(false, Ordering::Relaxed);
    let status = STATUS.load(Ordering::Relaxed);
    if given == 0 && status != 0 && failures() > 0 {
        // SAFETY: libc takes a function off its list before it calls it, and goes on with the rest.
        unsafe { libc::exit(status) };
    }
}
