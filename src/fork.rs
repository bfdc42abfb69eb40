//! What a fork must not leave in the child: a descriptor that another thread had open at that moment.
//!
//! By handlers of `fork`. A child of a raw `clone` may keep such a descriptor: it knows of nothing that it could ask.

use crate::settings::settings;
use crate::thread;
use aclshim_trace::{descriptor, file};

/// Has libc call the handlers; a fork child inherits them. Called once, when we boot.
pub fn watch() {
    // SAFETY: handlers that only look at memory of ours and make plain system calls.
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
    // SAFETY: as above.
    unsafe { *errno = before };
}
