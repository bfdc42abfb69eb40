//! Memory mappings of the process that only the scene uses.

/// Fresh memory of the process, with unreachable pages before and behind it.
pub struct Mapping {
    pub start: usize,
    pub end: usize,
}

impl Mapping {
    /// Of `size` bytes, rounded up to whole pages. It is never given back.
    pub fn new(size: usize) -> Self {
        const GUARD: usize = 128 * 1024;
        let size = size.next_multiple_of(64 * 1024);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, of which the middle is opened.
        unsafe {
            let whole = libc::mmap(std::ptr::null_mut(), size + 2 * GUARD, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(whole, libc::MAP_FAILED);
            let start = whole as usize + GUARD;
            assert_eq!(libc::mprotect(start as *mut _, size, libc::PROT_READ | libc::PROT_WRITE), 0);
            Self { start, end: start + size }
        }
    }
}
