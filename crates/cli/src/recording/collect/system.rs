//! Waiting: for signals that ask for the end, for files that come into a folder, for pipes.

use crate::files::c_path;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

fn file(fd: libc::c_int) -> io::Result<File> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the system has just made for us.
    Ok(unsafe { File::from_raw_fd(fd) })
}

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

/// A file that can be read when something has come into a folder. `None` where the system has no more of them: then
/// one must look now and then.
pub fn arrivals(folder: &Path) -> Option<File> {
    let path = c_path(folder)?;
    // SAFETY: asks for a descriptor.
    let watch = file(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) }).ok()?;
    let events = libc::IN_CREATE | libc::IN_MOVED_TO;
    // SAFETY: an open descriptor and a C string of ours.
    let added = unsafe { libc::inotify_add_watch(watch.as_raw_fd(), path.as_ptr(), events) };
    (added >= 0).then_some(watch)
}

/// Names of files that came into a folder since this was last asked, as many as fit into a buffer, and whether the
/// system has dropped some.
pub fn read_names(mut watch: &File) -> (Vec<OsString>, bool) {
    /// Watch, mask, cookie and length, four bytes each; a name follows, with zeros behind it.
    const EVENT: usize = 16;
    let mut buffer = [0; 16 * 1024];
    let read = watch.read(&mut buffer).unwrap_or(0);
    let (mut names, mut is_overflown, mut rest) = (Vec::new(), false, &buffer[..read]);
    let word = |event: &[u8], at: usize| event.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    while let (Some(mask), Some(length)) = (word(rest, 4), word(rest, 12)) {
        let end = (EVENT + length as usize).min(rest.len());
        let name = rest[EVENT.min(end)..end].split(|byte| *byte == 0).next().unwrap_or_default();
        names.push(OsStr::from_bytes(name).to_owned());
        is_overflown |= mask & libc::IN_Q_OVERFLOW != 0;
        rest = &rest[end..];
    }
    (names, is_overflown)
}

/// Waits until one of the files can be read, or has been closed at the other end; which ones.
pub fn wait(files: &[BorrowedFd<'_>], most: Duration) -> Vec<bool> {
    let ask = |fd: &BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut asked: Vec<libc::pollfd> = files.iter().map(ask).collect();
    let time = libc::timespec {
        tv_sec: most.as_secs().min(3600) as libc::time_t,
        tv_nsec: most.subsec_nanos() as libc::c_long,
    };
    // SAFETY: a list of that length, and a time.
    let found = unsafe { libc::ppoll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, &time, std::ptr::null()) };
    asked.iter().map(|one| found > 0 && one.revents != 0).collect()
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
