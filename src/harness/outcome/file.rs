//! A file that a test names, written with no memory of the host's, and with nothing that could stop or end the host: a
//! pipe, a limit. Only within [`crate::guest::edge::with_signals_blocked`].

use aclshim_trace::system::contents::ReadError;
use aclshim_trace::system::descriptor::Descriptor;
use core::ffi::{CStr, c_int};

/// An open file.
struct Open(Descriptor);

impl Open {
    fn new(path: &CStr, flags: c_int) -> Result<Self, ReadError> {
        let opened = Descriptor::open(path, flags | libc::O_NONBLOCK | libc::O_NOCTTY, 0o666);
        opened.map(Self).map_err(ReadError::System)
    }

    /// What the system says of it, if it is a plain file.
    fn plain(&self) -> Result<libc::stat, ReadError> {
        let about = self.0.about().map_err(ReadError::System)?;
        if about.st_mode & libc::S_IFMT == libc::S_IFREG { Ok(about) } else { Err(ReadError::NotPlain) }
    }

    fn write(&self, mut text: &[u8]) -> Result<(), ReadError> {
        while !text.is_empty() {
            // SAFETY: a buffer of ours.
            let written = unsafe { libc::write(self.0.number(), text.as_ptr().cast(), text.len()) };
            text = match usize::try_from(written) {
                Ok(0) => return Err(ReadError::System(libc::ENOSPC)),
                Ok(written) => text.get(written..).unwrap_or_default(),
                Err(_) => return Err(last()),
            };
        }
        Ok(())
    }
}

fn last() -> ReadError {
    // SAFETY: errno is the calling thread's own.
    ReadError::System(unsafe { *libc::__errno_location() })
}

/// Writes a plain file whole or not at all: under the name `unfinished` first. What a link points to is written in its
/// place.
pub fn write(path: &CStr, unfinished: &CStr, text: &[u8]) -> Result<(), ReadError> {
    // SAFETY: values and C strings of ours; all zero is a valid value, which the system fills.
    let (mut limit, mut about) = unsafe { (core::mem::zeroed::<libc::rlimit>(), core::mem::zeroed::<libc::stat>()) };
    // A write beyond the limit would be a signal that kills the host.
    // SAFETY: as above.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } != 0 || limit.rlim_cur < text.len() as u64 {
        return Err(ReadError::System(libc::EFBIG));
    }
    // SAFETY: as above.
    let is_there = unsafe { libc::lstat(path.as_ptr(), &mut about) } == 0;
    if is_there && about.st_mode & libc::S_IFMT == libc::S_IFLNK {
        let file = Open::new(path, libc::O_WRONLY | libc::O_CREAT)?;
        file.plain()?;
        // SAFETY: our own descriptor.
        return if unsafe { libc::ftruncate(file.0.number(), 0) } == 0 { file.write(text) } else { Err(last()) };
    }
    let file = Open::new(unfinished, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_NOFOLLOW)?;
    let written = file.plain().and_then(|_| file.write(text)).and_then(|()| {
        // SAFETY: our own descriptor, and C strings of ours.
        unsafe {
            if is_there {
                libc::fchmod(file.0.number(), about.st_mode & 0o777);
            }
            if libc::rename(unfinished.as_ptr(), path.as_ptr()) == 0 { Ok(()) } else { Err(last()) }
        }
    });
    if written.is_err() {
        // SAFETY: a C string of ours.
        unsafe { libc::unlink(unfinished.as_ptr()) };
    }
    written
}
