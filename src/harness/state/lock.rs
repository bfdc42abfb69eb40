//! The lock of the harness, which protects all of its state, and the counters beside it.
//!
//! The thread that has the lock has its signals blocked, so that no handler finds the lock taken by its own thread. Only a
//! handler for a fault of ours could, and is refused. No thread has the lock while it touches memory of the caller's, takes
//! another lock (the loader's, the allocator's) or calls code of the program: so the wait for it is short.
//!
//! If a handler for a fault of ours jumps out, or ends its thread, the lock stays taken: the state may be half changed.
//! From then on every caller is refused at once.
//!
//! The lock lies on a page that the kernel wipes in a fork child: it begins with no state, and finds the lock free.

use crate::guest::edge;
use crate::guest::thread::{self, stack};
use crate::guest::wiped::Wiped;
use crate::harness::aclshim_error::{self, *};
use aclshim_core::heap::Heap;
use aclshim_trace::system::clock::monotonic_ns;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The lock and its counters, on a page that is wiped in a fork child.
#[repr(C)]
pub struct HarnessLock {
    /// The thread that has the lock, by its id, or 0.
    owner: AtomicU32,
    /// The owner that does not come back, as far as is known, or 0: no thread waits for it.
    lost: AtomicU32,
    /// Where the stack of the owner ended when it took the lock; 0 if that is not known.
    stack: AtomicUsize,
    /// What the lock protects, made by the first thread that has it.
    pub state: AtomicPtr<c_void>,
    /// The heap that it lies in.
    pub heap: AtomicPtr<Heap>,
    /// Calls that no scope has seen, because the lock or memory was not available.
    pub unseen: AtomicU64,
    /// Expectations that have failed.
    pub failures: AtomicU64,
}

/// A thread that has the lock for longer does not come back, as far as is known: a fault of ours was handled by a jump.
const LOST_AFTER_NS: u64 = 5_000_000_000;

// SAFETY: all zero is a free lock, and all that it holds is atomic.
static LOCK: Wiped<HarnessLock> = unsafe { Wiped::new(wipe_in_child) };

unsafe extern "C" fn wipe_in_child() {
    LOCK.wipe();
}

/// The lock, if the program uses the harness.
pub fn existing() -> Option<&'static HarnessLock> {
    LOCK.get()
}

/// The lock, made for the first caller.
pub fn own() -> Option<&'static HarnessLock> {
    LOCK.get_or_map()
}

/// Number of calls that no scope has seen, because the lock or memory was not available.
pub fn unseen() -> u64 {
    existing().map_or(0, |lock| lock.unseen.load(Ordering::Relaxed))
}

/// Counts a call that no scope has seen.
pub fn miss() {
    if let Some(lock) = existing() {
        lock.unseen.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether that many bytes may be allocated, and some more for what comes with them. Only under the lock.
pub fn has_room(bytes: usize) -> bool {
    const RESERVE: usize = 4 << 20;
    // SAFETY: NULL, or the heap that is ours while we have the lock.
    let heap = unsafe { thread::current().heap.get().as_ref() };
    heap.is_some_and(|heap| heap.spare() / 2 > bytes.saturating_add(RESERVE))
}

/// Guard of the lock: the calling thread has it.
pub struct HarnessGuard {
    lock: &'static HarnessLock,
    /// The thread's heap before.
    heap: *mut Heap,
}

impl HarnessLock {
    /// Waits for the lock, unless the thread that has it does not come back.
    pub fn lock(&'static self) -> Result<HarnessGuard, aclshim_error> {
        let me = thread::id();
        let take = || self.owner.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed);
        let mut since = (0, 0);
        for round in 0u64.. {
            let Err(owner) = take() else { break };
            if owner == me {
                self.detect_abandoned();
                return Err(ACLSHIM_BUSY);
            }
            if self.lost.load(Ordering::Relaxed) == owner {
                return Err(ACLSHIM_BUSY);
            }
            if round < 64 {
                // SAFETY: gives the processor to the thread that has the lock.
                unsafe { libc::sched_yield() };
                continue;
            }
            let now = monotonic_ns();
            if since.0 != owner {
                since = (owner, now);
            }
            if now - since.1 > LOST_AFTER_NS || !thread::is_alive(owner) {
                self.lost.store(owner, Ordering::Relaxed);
            } else {
                edge::pause(50_000);
            }
        }
        // A thread that was thought lost has come back after all: the process was stopped for a while.
        self.lost.store(0, Ordering::Relaxed);
        self.stack.store(stack(), Ordering::Relaxed);
        let heap = thread::current().heap.replace(self.heap.load(Ordering::Relaxed));
        Ok(HarnessGuard { lock: self, heap })
    }

    /// Called where the calling thread already owns the lock: mostly it was interrupted by a signal. If the frame that took
    /// the lock is gone, the lock is never released: marks it as lost.
    fn detect_abandoned(&self) {
        let then = self.stack.load(Ordering::Relaxed);
        if then != 0 && thread::is_frame_gone(then, stack()) {
            self.lost.store(self.owner.load(Ordering::Relaxed), Ordering::Relaxed);
            thread::current().heap.set(ptr::null_mut());
        }
    }
}

impl Drop for HarnessGuard {
    fn drop(&mut self) {
        thread::current().heap.set(self.heap);
        self.lock.stack.store(0, Ordering::Relaxed);
        self.lock.owner.store(0, Ordering::Release);
    }
}
