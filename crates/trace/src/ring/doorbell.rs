//! The doorbell of a ring file: how a writer wakes a drain that sleeps.
//!
//! A drain that has nothing to do stores [`ASLEEP`] in [`Header::doorbell`](crate::ring::layout::Header), looks once more
//! whether there is something, and then waits for the word to change. A writer that has crossed a quarter of its ring stores
//! [`Control::mark`](crate::ring::layout::Control), looks at the doorbell, and only if it says [`ASLEEP`] makes a system call.
//! Both have a sequentially consistent fence between their store and their look, so that at least one of them sees what the
//! other has stored: no wake-up is lost (`tests/loom.rs`).
//!
//! The word lies in the ring file, so a drain may be in any process that maps it. A value of another process's making, or
//! one that a killed drain has left, costs one needless system call.

use crate::sync::{AtomicU32, Ordering, fence};

/// Value of the doorbell while no drain sleeps.
pub const AWAKE: u32 = 0;
/// Value of the doorbell while a drain sleeps.
pub const ASLEEP: u32 = 1;

/// Whether a drain sleeps and has to be [woken](wake). The caller has stored before what the drain is to see.
pub fn is_wake_needed(doorbell: &AtomicU32) -> bool {
    fence(Ordering::SeqCst);
    doorbell.load(Ordering::Relaxed) == ASLEEP
}

/// Announces that the drain is about to sleep. Afterwards it looks at everything that a writer stores before it looks at the
/// doorbell; if it finds something new it [stays awake](stay_awake), else it [waits](wait).
pub fn announce_sleep(doorbell: &AtomicU32) {
    doorbell.store(ASLEEP, Ordering::Relaxed);
    fence(Ordering::SeqCst);
}

/// The drain does not sleep after all, or no longer.
pub fn stay_awake(doorbell: &AtomicU32) {
    doorbell.store(AWAKE, Ordering::Relaxed);
}

/// Wakes the drain that sleeps. Changes errno.
#[cfg(not(loom))]
#[cold]
pub fn wake(doorbell: &AtomicU32) {
    stay_awake(doorbell);
    // SAFETY: a live word. A system that refuses this leaves the drain to its timer.
    unsafe { libc::syscall(libc::SYS_futex, doorbell.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0) };
}

/// Waits until a writer wakes the drain, at most `ns` nanoseconds; the drain is awake afterwards. `false` where the system
/// refuses to wait: the caller then has to sleep by other means. Changes errno.
#[cfg(not(loom))]
pub fn wait(doorbell: &AtomicU32, ns: u64) -> bool {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    // SAFETY: a live word and a value of ours; errno is the calling thread's own.
    let is_possible = unsafe {
        let wait = libc::FUTEX_WAIT;
        let waited = libc::syscall(libc::SYS_futex, doorbell.as_ptr(), wait, ASLEEP, &raw const time, 0, 0);
        waited == 0 || [libc::EAGAIN, libc::ETIMEDOUT, libc::EINTR].contains(&*libc::__errno_location())
    };
    stay_awake(doorbell);
    is_possible
}
