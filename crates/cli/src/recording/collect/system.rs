//! Signals that ask for the end, pipes that are not waited for, and the number of descriptors.

use crate::recording::drain_loop::poll::file;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// Takes note of SIGTERM, SIGINT and SIGHUP from now on: the file can be read when one has come. To be called before
/// there are other threads.
pub fn signals() -> io::Result<File> {
    // SAFETY: all zero is a valid set, which is filled before it is used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        file(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
    }
}

/// Has reads and writes of a descriptor return at once.
pub fn never_wait(fd: RawFd) {
    change_flags(fd, |flags| flags | libc::O_NONBLOCK);
}

/// Makes reads and writes of a descriptor block again.
pub fn always_wait(fd: RawFd) {
    change_flags(fd, |flags| flags & !libc::O_NONBLOCK);
}

fn change_flags(fd: RawFd, change: impl Fn(libc::c_int) -> libc::c_int) {
    // SAFETY: an open descriptor of ours.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, change(flags));
    }
}

/// Whether a line can be written without waiting; also where it would fail at once.
pub fn can_write(file: BorrowedFd<'_>) -> bool {
    let mut asked = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: a list of one.
    unsafe { libc::poll(&mut asked, 1, 0) == 1 }
}

/// Asks for as many descriptors as we may have; how many these are.
pub fn most_descriptors() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
    // SAFETY: values of ours.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        let wanted = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &wanted) == 0 { limit.rlim_max } else { limit.rlim_cur }
    }
}
