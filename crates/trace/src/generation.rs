//! Which one in a line of processes this is: a fork child is another one than its parent.
//!
//! The number lies on a page that the kernel wipes in a fork child, whoever made that child and how (an atfork handler
//! alone would miss children of a raw clone): one look at a fixed address tells whether what a thread knows of its
//! ring is its own, or was copied from its parent.

use core::sync::atomic::{AtomicU64, Ordering};

/// As large as any page.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct Page(AtomicU64);

static CURRENT: Page = Page(AtomicU64::new(0));
/// The largest number that was given out in this line; not wiped.
#[cfg(not(loom))]
static LAST: AtomicU64 = AtomicU64::new(0);

/// The number of this process; 0 before it has [begun](begin).
#[inline(always)]
pub fn current() -> u64 {
    CURRENT.0.load(Ordering::Relaxed)
}

/// Whether a process of this number is this one: a compare and a jump.
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
/// [forget](forget) it.
#[cfg(not(loom))]
pub fn begin() -> bool {
    let page = (&raw const CURRENT).cast_mut().cast();
    // SAFETY: whole pages of our own, which nothing but the number lies on. Before there is one: a fork in between would
    // leave a child that takes its parent's for its own.
    let is_wiped = unsafe { libc::madvise(page, size_of::<Page>(), libc::MADV_WIPEONFORK) } == 0;
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    let _ = CURRENT.0.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
    is_wiped
}

/// In a fork child, where the kernel has not done it.
pub fn forget() {
    CURRENT.0.store(0, Ordering::Relaxed);
}
