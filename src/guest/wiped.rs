//! Memory that a fork child finds wiped: all zero, as at first.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A value on pages of its own, which are mapped with its first use, and never unmapped.
pub struct Wiped<T> {
    at: AtomicPtr<T>,
    /// Handler of a fork child for kernels that do not wipe (before Linux 4.14).
    wipe_in_child: unsafe extern "C" fn(),
}

impl<T> Wiped<T> {
    /// Not mapped yet.
    ///
    /// # Safety
    /// All zero is a valid `T` that any thread may use, and `wipe_in_child` calls [`wipe`](Self::wipe).
    pub const unsafe fn new(wipe_in_child: unsafe extern "C" fn()) -> Self {
        Self { at: AtomicPtr::new(ptr::null_mut()), wipe_in_child }
    }

    /// The value, if it is mapped.
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: NULL, or a mapping that stays, with a valid value.
        unsafe { self.at.load(Ordering::Acquire).as_ref() }
    }

    /// The value; `None` if there is no memory for it.
    pub fn get_or_map(&self) -> Option<&'static T> {
        if let Some(known) = self.get() {
            return Some(known);
        }
        let (at, is_wiped) = map(size_of::<T>())?;
        if self.at.compare_exchange(ptr::null_mut(), at.cast(), Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: our own mapping, which was not published.
            unsafe { libc::munmap(at, size_of::<T>()) };
        } else if !is_wiped {
            // SAFETY: a handler that only writes to memory of ours.
            unsafe { libc::pthread_atfork(None, None, Some(self.wipe_in_child)) };
        }
        self.get()
    }

    /// Wipes the value, in a fork child.
    pub fn wipe(&self) {
        let at = self.at.load(Ordering::Acquire);
        if !at.is_null() {
            // SAFETY: the child has this one thread, and zero is a valid value.
            unsafe { ptr::write_bytes(at, 0, 1) };
        }
    }
}

/// Maps zeroed memory, and returns whether the kernel wipes it in a fork child.
pub fn map(size: usize) -> Option<(*mut c_void, bool)> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, checked.
    unsafe {
        let at = libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0);
        (at != libc::MAP_FAILED).then(|| (at, libc::madvise(at, size, libc::MADV_WIPEONFORK) == 0))
    }
}
