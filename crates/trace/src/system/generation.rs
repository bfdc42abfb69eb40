//! The generation number of a process: a fork child has another one than its parent.
//!
//! The number lies on a page that the kernel wipes in every fork child, also in those of a raw clone, which an atfork
//! handler would miss. One load from a fixed address decides whether a thread's cursor belongs to this process or was copied
//! from the parent.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// As large as any page.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct Page {
    /// First: the fast path compares with the begin of the page.
    number: AtomicU64,
    /// See [`early`].
    early: AtomicU64,
    /// The process that owns this memory, or 0 if unknown.
    pid: AtomicU32,
}

static CURRENT: Page = Page { number: AtomicU64::new(0), early: AtomicU64::new(0), pid: AtomicU32::new(0) };
/// The largest number in this line of processes; not wiped.
#[cfg(not(loom))]
static LAST: AtomicU64 = AtomicU64::new(0);

/// The number of this process; 0 before it has [begun](begin).
#[inline(always)]
pub fn current() -> u64 {
    CURRENT.number.load(Ordering::Relaxed)
}

/// Whether this process has the number: one compare and one jump.
#[inline(always)]
pub fn is_current(number: u64) -> bool {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    // SAFETY: reads a live, aligned word of ours.
    unsafe {
        core::arch::asm!("cmp {number}, qword ptr [rip + {page}]", "jne {other}",
                         number = in(reg) number, page = sym CURRENT, other = label { return false },
                         options(nostack, readonly));
        true
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    {
        number == current()
    }
}

/// Gives this process its number, if it has none. `false` if the kernel will not wipe it: then a fork child must
/// [forget] it.
#[cfg(not(loom))]
pub fn begin() -> bool {
    // Before there is a number: a fork in between would leave a child that takes its parent's for its own.
    let is_wiped = take_memory();
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    let _ = CURRENT.number.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
    is_wiped
}

/// Asks the kernel to wipe the page in fork children; returns whether it does.
#[cfg(not(loom))]
fn is_wiped() -> bool {
    let page = (&raw const CURRENT).cast_mut().cast();
    // SAFETY: whole pages of our own, which nothing lies on but what a fork child is to find wiped.
    unsafe { libc::madvise(page, size_of::<Page>(), libc::MADV_WIPEONFORK) == 0 }
}

/// Stores the calling process as the owner of this memory, unless another one is. `false` if the kernel will not wipe the
/// page: then nothing is stored.
#[cfg(not(loom))]
pub fn take_memory() -> bool {
    let is_wiped = is_wiped();
    if is_wiped {
        let _ = CURRENT.pid.compare_exchange(0, std::process::id(), Ordering::Relaxed, Ordering::Relaxed);
    }
    is_wiped
}

/// Whether this memory is known to belong to another process: the caller is a child that shares it, as after `vfork`.
#[cfg(not(loom))]
pub fn is_anothers_memory() -> bool {
    !matches!(CURRENT.pid.load(Ordering::Relaxed), pid if pid == 0 || pid == std::process::id())
}

/// Number of calls of this process before there was a ring file to count them in. A fork child begins at 0: the parent
/// reports its own.
#[cfg(not(loom))]
pub fn early() -> &'static AtomicU64 {
    if CURRENT.early.load(Ordering::Relaxed) == 0 {
        is_wiped();
    }
    &CURRENT.early
}

/// Clears the page in a fork child where the kernel has not done it.
pub fn forget() {
    CURRENT.number.store(0, Ordering::Relaxed);
    CURRENT.early.store(0, Ordering::Relaxed);
    CURRENT.pid.store(0, Ordering::Relaxed);
}
