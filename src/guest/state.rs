//! What the shim is in this process, where it lies, and which process it started in: a few words that any thread may read.

use crate::guest::thread;
use aclshim_trace::system::clock::monotonic_ns;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

/// What the shim does in this process.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ShimState {
    /// Not known: the start is under way in another thread, or in the frame that the caller has interrupted.
    Unready,
    /// Calls are seen and recorded.
    Active,
    /// Calls are only forwarded: the settings say so, or the program has more privileges than its caller.
    Off,
    /// Calls are only forwarded: another copy of the shim stands in front of this one.
    Passive,
}

/// A [`ShimState`].
#[unsafe(link_section = ".bss.startup")]
static STATE: AtomicU8 = AtomicU8::new(ShimState::Unready as u8);
/// Start and end of this library in memory.
#[unsafe(link_section = ".bss.startup")]
static OWN: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
/// The process that the shim was started in; 0 before that.
#[unsafe(link_section = ".bss.startup")]
static PID: AtomicU32 = AtomicU32::new(0);

/// The state as far as it is known.
#[inline(always)]
pub fn current() -> ShimState {
    match STATE.load(Ordering::Acquire) {
        1 => ShimState::Active,
        2 => ShimState::Off,
        3 => ShimState::Passive,
        _ => ShimState::Unready,
    }
}

/// Publishes the state, and all that the calling thread has written before.
pub fn set(state: ShimState) {
    STATE.store(state as u8, Ordering::Release);
}

/// Remembers the calling process as the one that the shim was started in.
pub fn set_process() {
    PID.store(std::process::id(), Ordering::Relaxed);
}

/// Whether this process was forked from the one that the shim was started in.
pub fn is_fork_child() -> bool {
    let here = std::process::id();
    !matches!(PID.load(Ordering::Relaxed), pid if pid == 0 || pid == here)
}

/// Remembers where this library lies.
pub fn set_own(addresses: Range<usize>) {
    OWN[0].store(addresses.start, Ordering::Relaxed);
    OWN[1].store(addresses.end, Ordering::Relaxed);
}

/// Whether an address lies in this library.
pub fn is_own(address: usize) -> bool {
    (OWN[0].load(Ordering::Relaxed)..OWN[1].load(Ordering::Relaxed)).contains(&address)
}

/// Waits 2 ms at most, without a lock, for what another thread is about to finish. A thread that has waited in vain does
/// not wait again.
pub fn wait_until(done: impl Fn() -> bool) {
    let waited = &thread::current().waited;
    if done() || waited.get() {
        return;
    }
    let end = monotonic_ns() + 2_000_000;
    while !done() && monotonic_ns() < end {
        // SAFETY: gives the processor to the thread that is waited for.
        unsafe { libc::sched_yield() };
    }
    waited.set(!done());
}
