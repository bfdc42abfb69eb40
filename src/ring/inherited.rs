//! The rings of a parent process in its fork child: replaced by private memory.
//!
//! A ring is a file that is mapped shared. A child that keeps the mapping can overwrite its parent's records and header,
//! also after it has given up the parent's user; and the file stays in use after the parent's death, which another pid
//! namespace can notice only by its end. The child cannot simply lose the mapping: if a signal handler that has interrupted
//! a call forks, the child returns into that call and stores to it.
//!
//! This is done by a handler of libc's `fork` ([`crate::ring::fork`]). A child of the system call itself keeps the mappings.

use aclshim_trace::reader::MOST_RINGS;
use aclshim_trace::system::generation;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// A header, or a ring.
struct Mapping {
    /// Stored last: who sees it sees the rest. NULL before that, and after it was replaced.
    at: AtomicPtr<c_void>,
    size: AtomicUsize,
    /// Of the process that has made it.
    generation: AtomicU64,
}

/// Not on wiped pages: it is the child that needs it.
static MAPPINGS: [Mapping; MOST_RINGS as usize + 1] = [const {
    Mapping { at: AtomicPtr::new(ptr::null_mut()), size: AtomicUsize::new(0), generation: AtomicU64::new(0) }
}; MOST_RINGS as usize + 1];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Remembers what was mapped.
pub fn remember<T>(at: *const T, size: usize) {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let Some(mapping) = MAPPINGS.get(number) else { return };
    mapping.size.store(size, Ordering::Relaxed);
    mapping.generation.store(generation::current(), Ordering::Relaxed);
    mapping.at.store(at.cast_mut().cast(), Ordering::Release);
}

/// In a fork child: replaces what the parent has [remembered](remember). The child has one thread; a signal handler, or a handler of
/// `fork` before this one, may have made a ring of its own. Changes errno.
pub fn replace_in_child() {
    let count = COUNT.load(Ordering::Relaxed);
    let current = generation::current();
    let mut are_all_replaced = true;
    for mapping in MAPPINGS.iter().take(count) {
        if mapping.generation.load(Ordering::Relaxed) == current {
            are_all_replaced = false;
            continue;
        }
        let at = mapping.at.swap(ptr::null_mut(), Ordering::Acquire);
        if !at.is_null() {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
            // SAFETY: a mapping of our own that is never unmapped; zero is valid for all that it holds.
            unsafe { libc::mmap(at, mapping.size.load(Ordering::Relaxed), protection, flags, -1, 0) };
        }
    }
    if are_all_replaced {
        // Unless a signal handler has added one since.
        let _ = COUNT.compare_exchange(count, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}
