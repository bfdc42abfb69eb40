//! errno and panics: neither of ours may reach the host.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a cold path of ours: errno is afterwards what it was, and a panic is `None`.
pub fn kept<T>(work: impl FnOnce() -> T) -> Option<T> {
    // SAFETY: errno is the calling thread's own.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *place };
    let answer = catch_unwind(AssertUnwindSafe(work)).ok();
    // SAFETY: as above.
    unsafe { *place = before };
    answer
}
