//! A file that a test names, read and written with no memory of the host's, and with nothing that could keep or end the
//! host: a pipe, a limit. Only within [`crate::guest::edge::with_signals_blocked`].

use aclshim_trace::system::descriptor::Descriptor;
use core::ffi::{CStr, c_int};
use core::ptr;

/// Why a file cannot be used.
#[derive(Clone, Copy)]
pub enum FileError {
    /// A system call failed with this errno.
    System(i32),
    /// A pipe or a device: it might never end.
    NotPlain,
    /// It is not UTF-8.
    NotText,
    /// There is no memory for it.
    Memory,
}

/// The contents of a file, in a mapping of its own.
pub struct Pages {
    at: *mut u8,
    /// How many bytes are read, and how many there is room for.
    length: usize,
    room: usize,
}

impl Pages {
    fn new(room: usize) -> Result<Self, FileError> {
        if room == 0 {
            return Ok(Self { at: ptr::null_mut(), length: 0, room });
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, checked.
        let at =
            unsafe { libc::mmap(ptr::null_mut(), room, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        if at == libc::MAP_FAILED { Err(FileError::Memory) } else { Ok(Self { at: at.cast(), length: 0, room }) }
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: a mapping of ours, or nothing.
        if self.room == 0 { &[] } else { unsafe { core::slice::from_raw_parts(self.at, self.length) } }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.room > 0 {
            // SAFETY: our own mapping.
            unsafe { libc::munmap(self.at.cast(), self.room) };
        }
    }
}

/// An open file.
struct Open(Descriptor);

impl Open {
    fn new(path: &CStr, flags: c_int) -> Result<Self, FileError> {
        let opened = Descriptor::open(path, flags | libc::O_NONBLOCK | libc::O_NOCTTY, 0o666);
        opened.map(Self).map_err(FileError::System)
    }

    /// What the system says of it, if it is a plain file.
    fn plain(&self) -> Result<libc::stat, FileError> {
        let about = self.0.about().map_err(FileError::System)?;
        if about.st_mode & libc::S_IFMT == libc::S_IFREG { Ok(about) } else { Err(FileError::NotPlain) }
    }

    fn write(&self, mut text: &[u8]) -> Result<(), FileError> {
        while !text.is_empty() {
            // SAFETY: a buffer of ours.
            let written = unsafe { libc::write(self.0.number(), text.as_ptr().cast(), text.len()) };
            text = match usize::try_from(written) {
                Ok(0) => return Err(FileError::System(libc::ENOSPC)),
                Ok(written) => text.get(written..).unwrap_or_default(),
                Err(_) => return Err(last()),
            };
        }
        Ok(())
    }
}

fn last() -> FileError {
    // SAFETY: errno is the calling thread's own.
    FileError::System(unsafe { *libc::__errno_location() })
}

/// Reads a plain file.
pub fn read(path: &CStr) -> Result<Pages, FileError> {
    let file = Open::new(path, libc::O_RDONLY)?;
    let mut pages = Pages::new(file.plain()?.st_size as usize)?;
    while pages.length < pages.room {
        // SAFETY: the rest of a mapping of ours.
        let read = unsafe { libc::read(file.0.number(), pages.at.add(pages.length).cast(), pages.room - pages.length) };
        match usize::try_from(read) {
            Ok(0) => break,
            Ok(read) => pages.length += read,
            Err(_) => return Err(last()),
        }
    }
    Ok(pages)
}

/// Writes a plain file whole or not at all: under the name `unfinished` first. What a link points to is written in its
/// place.
pub fn write(path: &CStr, unfinished: &CStr, text: &[u8]) -> Result<(), FileError> {
    // SAFETY: values and C strings of ours; all zero is a valid value, which the system fills.
    let (mut limit, mut about) = unsafe { (core::mem::zeroed::<libc::rlimit>(), core::mem::zeroed::<libc::stat>()) };
    // A write beyond the limit would be a signal that kills the host.
    // SAFETY: as above.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } != 0 || limit.rlim_cur < text.len() as u64 {
        return Err(FileError::System(libc::EFBIG));
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
