//! Handlers of `fork`: they take from the child what is its parent's.
//!
//! That is a ring descriptor which another thread had open at that moment, and the mapped rings ([`inherited`]). A child of
//! a raw `clone` keeps both: libc calls no handler there.

use crate::guest::thread;
use crate::ring::{inherited, process};
use crate::settings::settings;
use aclshim_trace::ring::file;
use aclshim_trace::system::descriptor;

/// Registers the handlers; a fork child inherits them. When we are loaded, and not with the first copy: that may come from
/// another handler of `fork`, and libc may hold the lock of the handlers meanwhile.
pub fn register() {
    // SAFETY: handlers that only look at memory of ours and make plain system calls; libc removes them if we are unloaded.
    // Without memory for them the child keeps what it has.
    unsafe { libc::pthread_atfork(Some(before), None, Some(in_child)) };
}

unsafe extern "C" fn before() {
    thread::current().closed.set(descriptor::before_fork());
}

unsafe extern "C" fn in_child() {
    // SAFETY: errno is the calling thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let ring_file = || file::latest(settings().ring_dir.as_bytes());
    descriptor::in_fork_child(thread::current().closed.get(), ring_file);
    // First: what is replaced is what another process has made.
    process::wipe_in_child();
    inherited::replace_in_child();
    // SAFETY: as above.
    unsafe { *errno = before };
}
