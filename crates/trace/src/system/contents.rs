//! Contents of files, read without the heap, and from nothing that could stop the host: a pipe without a writer, a terminal.

use crate::system::descriptor::Descriptor;
use core::ffi::{CStr, c_int};
use core::ptr;

/// Why a file cannot be read.
#[derive(Clone, Copy)]
pub enum ReadError {
    /// A system call failed with this errno.
    System(c_int),
    /// It is a pipe or a device, which might never end.
    NotPlain,
    /// It is not UTF-8.
    NotText,
    /// There is no memory for it.
    Memory,
}

/// The contents of a plain file, in a mapping of its own.
pub struct Contents {
    mapping: *mut libc::c_void,
    length: usize,
    /// Size of the mapping; 0 where there is none.
    room: usize,
}

impl Contents {
    /// Reads `most` bytes of a plain file at most; with `None` as many as it has at the open.
    pub fn read(path: &CStr, most: Option<usize>) -> Result<Self, ReadError> {
        let file = open(path).map_err(ReadError::System)?;
        let about = file.about().map_err(ReadError::System)?;
        if about.st_mode & libc::S_IFMT != libc::S_IFREG {
            return Err(ReadError::NotPlain);
        }
        let mut contents = Self::with_room(most.unwrap_or(about.st_size as usize))?;
        while contents.length < contents.room {
            let left = contents.room - contents.length;
            // SAFETY: our descriptor, and the rest of our mapping; errno is the calling thread's own.
            match unsafe { libc::read(file.number(), contents.mapping.byte_add(contents.length), left) } {
                0 => break,
                read @ 1.. => contents.length += read as usize,
                // SAFETY: as above.
                _ => return Err(ReadError::System(unsafe { *libc::__errno_location() })),
            }
        }
        Ok(contents)
    }

    fn with_room(room: usize) -> Result<Self, ReadError> {
        if room == 0 {
            return Ok(Self { mapping: ptr::null_mut(), length: 0, room });
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, checked.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), room, protection, flags, -1, 0) };
        if mapping == libc::MAP_FAILED { Err(ReadError::Memory) } else { Ok(Self { mapping, length: 0, room }) }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: our own mapping, which is that long and stays until we are dropped.
        if self.length == 0 { &[] } else { unsafe { core::slice::from_raw_parts(self.mapping.cast(), self.length) } }
    }

    /// The text.
    pub fn as_str(&self) -> Result<&str, ReadError> {
        core::str::from_utf8(self.as_bytes()).map_err(|_| ReadError::NotText)
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        if self.room > 0 {
            // SAFETY: our own mapping; references into it cannot outlive us.
            unsafe { libc::munmap(self.mapping, self.room) };
        }
    }
}

/// The first bytes of a file; none if it cannot be read.
pub fn read_into<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    let Ok(file) = open(path) else { return &[] };
    // SAFETY: a descriptor and a buffer of ours.
    let read = unsafe { libc::read(file.number(), buffer.as_mut_ptr().cast(), buffer.len()) };
    &buffer[..usize::try_from(read).unwrap_or(0)]
}

fn open(path: &CStr) -> Result<Descriptor, c_int> {
    Descriptor::open(path, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY, 0)
}
