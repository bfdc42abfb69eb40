//! Descriptors that the shim opens in the host's table, for a few system calls at a time.
//!
//! The kernel gives out the lowest free number. In a host that has closed its standard output that is 1, and what the
//! host prints goes to our file. No open is atomic at 3 or above, so a descriptor below 3 is moved up at once; a file
//! that is open for writing is opened with `O_APPEND`, so that a write of the host that comes in between lands behind
//! its end.
//!
//! A fork in another thread copies the table while a descriptor is open. `O_CLOEXEC` does not help a child that does
//! not exec, so the handlers of `pthread_atfork` look for one: [`before_fork`] and [`in_fork_child`].

use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU32, Ordering};

/// The lowest number that is not a standard stream.
const LOWEST: c_int = 3;
/// In a fork child the search ends after this many closed numbers in a row: a descriptor got the lowest free number
/// microseconds before the fork.
const CLOSED_IN_A_ROW: u32 = 256;

/// How many descriptors were about to be opened.
static BEGUN: AtomicU32 = AtomicU32::new(0);
/// How many of these are closed again, or could not be opened.
static ENDED: AtomicU32 = AtomicU32::new(0);

/// An open descriptor of the shim; closed when it is dropped.
pub struct Descriptor(c_int);

impl Descriptor {
    /// Opens `path`, close-on-exec, at 3 or above; an error is the errno.
    pub fn open(path: &CStr, flags: c_int, mode: libc::mode_t) -> Result<Self, c_int> {
        BEGUN.fetch_add(1, Ordering::SeqCst);
        // SAFETY: a C string of the caller's.
        let opened = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, mode) };
        let fd = if (0..LOWEST).contains(&opened) { move_up(opened) } else { opened };
        if fd < 0 {
            // SAFETY: errno is the calling thread's own.
            let errno = unsafe { *libc::__errno_location() };
            ENDED.fetch_add(1, Ordering::SeqCst);
            return Err(errno);
        }
        Ok(Self(fd))
    }

    /// Its number.
    pub fn number(&self) -> c_int {
        self.0
    }

    /// What the system says about the file.
    pub fn about(&self) -> Result<libc::stat, c_int> {
        // SAFETY: all zero is a valid value, which the system fills; errno is the calling thread's own.
        unsafe {
            let mut about = core::mem::zeroed::<libc::stat>();
            if libc::fstat(self.0, &mut about) == 0 { Ok(about) } else { Err(*libc::__errno_location()) }
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: our own descriptor.
        unsafe { libc::close(self.0) };
        ENDED.fetch_add(1, Ordering::SeqCst);
    }
}

/// Moves a descriptor to 3 or above; -1 and errno on failure.
fn move_up(low: c_int) -> c_int {
    // SAFETY: our own descriptor; errno is the calling thread's own.
    unsafe {
        let moved = libc::fcntl(low, libc::F_DUPFD_CLOEXEC, LOWEST);
        let errno = *libc::__errno_location();
        libc::close(low);
        *libc::__errno_location() = errno;
        moved
    }
}

/// What the child of a fork that begins now needs to know, for [`in_fork_child`].
pub fn before_fork() -> u32 {
    ENDED.load(Ordering::SeqCst)
}

/// In a fork child: closes the descriptors of the file at `path()` that another thread of the parent had open when the
/// table was copied. `before` is what [`before_fork`] returned in the forking thread: the table is copied after that,
/// and before the memory is, so neither count alone tells whether a descriptor was open in between.
pub fn in_fork_child(before: u32, path: impl FnOnce() -> Option<libc::stat>) {
    let begun = BEGUN.load(Ordering::SeqCst);
    if begun == before {
        return;
    }
    // The threads that would end the others are not in this process.
    ENDED.store(begun, Ordering::SeqCst);
    let Some(ours) = path() else { return };
    let mut closed = 0;
    let mut fd = 0;
    while closed < CLOSED_IN_A_ROW {
        // SAFETY: all zero is a valid value, which the system fills; a descriptor of this file is ours.
        unsafe {
            let mut about = core::mem::zeroed::<libc::stat>();
            if libc::fstat(fd, &mut about) != 0 {
                closed += 1;
            } else {
                closed = 0;
                if (about.st_dev, about.st_ino) == (ours.st_dev, ours.st_ino) {
                    libc::close(fd);
                }
            }
        }
        fd += 1;
    }
}
