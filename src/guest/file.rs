//! Small files of the system, read without the heap.

use aclshim_trace::system::descriptor::Descriptor;
use core::ffi::CStr;

/// The beginning of a small file; of a pipe without a writer nothing.
pub fn contents<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
    let Ok(file) = Descriptor::open(path, flags, 0) else { return &[] };
    // SAFETY: a descriptor and a buffer of ours.
    let read = unsafe { libc::read(file.number(), buffer.as_mut_ptr().cast(), buffer.len()) };
    &buffer[..usize::try_from(read).unwrap_or(0)]
}
