//! Descriptors that are waited for: changes of a folder, the end of a process, a wake-up by another thread.

use crate::files::c_path;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The descriptor that a system call has returned, or its error.
pub fn file(fd: libc::c_int) -> io::Result<File> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the system has just made for us.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Changes of a folder that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Files that come.
    Arrivals,
    /// Files that come, and files that were open for writing and are closed: the last mapping of a ring file is gone, or the
    /// lock of another drain.
    ArrivalsAndCloses,
}

/// A change of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A file of this name has come.
    Arrived(OsString),
    /// A file of this name was open for writing and has been closed.
    Closed(OsString),
    /// The system has dropped changes.
    Overflow,
}

/// A file that can be read when a folder has changed. `None` where the system has no more of them: then one must look now
/// and then.
pub fn watch(folder: &Path, watched: Watched) -> Option<File> {
    let path = c_path(folder)?;
    // SAFETY: asks for a descriptor.
    let watch = file(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) }).ok()?;
    let closes = if watched == Watched::ArrivalsAndCloses { libc::IN_CLOSE_WRITE } else { 0 };
    let events = libc::IN_CREATE | libc::IN_MOVED_TO | closes;
    // SAFETY: an open descriptor and a C string of ours.
    let added = unsafe { libc::inotify_add_watch(watch.as_raw_fd(), path.as_ptr(), events) };
    (added >= 0).then_some(watch)
}

/// Changes of a folder since this was last asked, as many as fit into a buffer.
pub fn read_changes(mut watch: &File) -> Vec<Change> {
    /// Watch, mask, cookie and length, four bytes each; a name follows, with zeros behind it.
    const EVENT: usize = 16;
    let mut buffer = [0; 16 * 1024];
    let read = watch.read(&mut buffer).unwrap_or(0);
    let (mut changes, mut rest) = (Vec::new(), &buffer[..read]);
    let word = |event: &[u8], at: usize| event.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    while let (Some(mask), Some(length)) = (word(rest, 4), word(rest, 12)) {
        let end = (EVENT + length as usize).min(rest.len());
        let name = rest[EVENT.min(end)..end].split(|byte| *byte == 0).next().unwrap_or_default();
        let name = OsStr::from_bytes(name).to_owned();
        changes.push(match mask {
            mask if mask & libc::IN_Q_OVERFLOW != 0 => Change::Overflow,
            mask if mask & libc::IN_CLOSE_WRITE != 0 => Change::Closed(name),
            _ => Change::Arrived(name),
        });
        rest = &rest[end..];
    }
    changes
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

/// A descriptor that another thread makes readable.
pub struct Wakeup(File);

impl Wakeup {
    /// One that is not readable.
    pub fn new() -> io::Result<Self> {
        // SAFETY: asks for a descriptor.
        file(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).map(Self)
    }

    /// Makes it readable.
    pub fn signal(&self) {
        // It fails where it was signalled 2^64 - 2 times and is readable anyway.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    /// Makes it not readable.
    pub fn clear(&self) {
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A file that can be read when a process has ended. It fails before Linux 5.3.
pub fn process_end(pid: u32) -> io::Result<File> {
    // SAFETY: asks for a descriptor, which is closed on exec.
    file(unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) } as libc::c_int)
}

/// A set of descriptors that is readable while one of them is.
pub struct PollSet(File);

impl PollSet {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: asks for a descriptor.
        file(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(Self)
    }

    /// Adds a descriptor under a number. It is removed when it is closed.
    pub fn add(&self, one: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
        // SAFETY: open descriptors, and a value of ours.
        let added = unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, one.as_raw_fd(), &mut event) };
        if added == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Numbers of descriptors that are readable now, as many as fit into a buffer.
    pub fn readable(&self) -> Vec<u64> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // SAFETY: an open descriptor, and a list of that length.
        let found =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), events.len() as libc::c_int, 0) };
        events.iter().take(found.max(0) as usize).map(|event| event.u64).collect()
    }
}

impl AsFd for PollSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
