//! The text of the settings file. It is read only where `ACLSHIM_CONFIG` names it.

use aclshim_facts::settings::file::{FileError, MOST};
use aclshim_trace::system::descriptor::Descriptor;
use core::ffi::CStr;
use core::ptr;

/// The text of the file in a mapping of our own: the heap and the stack of the host are not ours.
pub struct FileText {
    /// [`MOST`] bytes and one.
    mapping: *mut libc::c_void,
    length: usize,
}

impl FileText {
    /// Reads the file.
    pub fn load(path: &CStr) -> Result<Self, FileError> {
        // A pipe without a writer must not stop the host, and a terminal must not become its own.
        let read_only = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
        let opened = Descriptor::open(path, read_only, 0).map_err(|_| FileError::Unreadable)?;
        if !opened.about().is_ok_and(|about| about.st_mode & libc::S_IFMT == libc::S_IFREG) {
            return Err(FileError::NotAFile);
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), MOST + 1, protection, flags, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(FileError::Unreadable);
        }
        let mut text = Self { mapping, length: 0 };
        while text.length <= MOST {
            // SAFETY: our descriptor, and the rest of our mapping.
            let read = unsafe { libc::read(opened.number(), mapping.add(text.length), MOST + 1 - text.length) };
            match usize::try_from(read) {
                Ok(0) => return Ok(text),
                Ok(read) => text.length += read,
                Err(_) => return Err(FileError::Unreadable),
            }
        }
        Err(FileError::TooLong)
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: our own mapping, which is that long and stays until we are dropped.
        unsafe { core::slice::from_raw_parts(self.mapping.cast(), self.length) }
    }
}

impl Drop for FileText {
    fn drop(&mut self) {
        // SAFETY: our own mapping; references into it cannot outlive us.
        unsafe { libc::munmap(self.mapping, MOST + 1) };
    }
}
