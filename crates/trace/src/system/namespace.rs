//! The namespaces that the numbers in a header count in.
//!
//! Also called from inside the host: nothing here allocates or locks. errno is changed.

use core::ffi::CStr;

/// Stands for the time namespace of a kernel that has none (before Linux 5.6): there is one time for all processes.
const ONE_TIME: u64 = 1;

/// The inode of the calling process's pid namespace; 0 if unknown.
pub fn pid() -> u64 {
    inode(c"/proc/self/ns/pid").unwrap_or(0)
}

/// The inode of the calling process's time namespace, 1 where the kernel has no such namespaces; 0 if unknown.
pub fn time() -> u64 {
    match inode(c"/proc/self/ns/time") {
        Ok(inode) => inode,
        Err(libc::ENOENT) if pid() != 0 => ONE_TIME,
        Err(_) => 0,
    }
}

/// Whether clocks and start times of the time namespace `time_ns` may be shifted against those of `own`.
pub fn is_other_time(time_ns: u64, own: u64) -> bool {
    time_ns != 0 && own != 0 && time_ns != own
}

/// The inode that a path leads to, or errno.
fn inode(path: &CStr) -> Result<u64, i32> {
    // SAFETY: a C string; all zero is a valid value, which the system fills; errno is the calling thread's own.
    unsafe {
        let mut about = core::mem::zeroed::<libc::stat>();
        if libc::stat(path.as_ptr(), &mut about) == 0 { Ok(about.st_ino) } else { Err(*libc::__errno_location()) }
    }
}
