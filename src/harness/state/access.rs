//! Access to the state of the harness, under its lock and in its heap.

use crate::guest::state::{self, ShimState};
use crate::guest::{edge, thread};
use crate::harness::aclshim_error::{self, *};
use crate::harness::state::State;
use crate::harness::state::lock::{self, HarnessLock};
use aclshim_core::heap::Heap;
use core::sync::atomic::Ordering;

/// Works on the state under the lock.
pub fn with<T>(work: impl FnOnce(&mut State) -> T) -> Result<T, aclshim_error> {
    let worked = edge::with_signals_blocked(|| {
        let lock = lock::own().ok_or(ACLSHIM_MEMORY)?;
        let _guard = lock.lock()?;
        let state = state_of(lock).ok_or(ACLSHIM_MEMORY)?;
        Ok(work(state))
    });
    worked.unwrap_or(Err(ACLSHIM_MEMORY))
}

/// Works on the state under the lock; where the lock is not available, counts a call that no scope has seen.
pub fn with_or_count_miss<T>(work: impl FnOnce(&mut State) -> Option<T>) -> Option<T> {
    if state::current() != ShimState::Active {
        return None;
    }
    with(work).unwrap_or_else(|_| {
        lock::miss();
        None
    })
}

/// Drops a value that was made under the lock under the lock: its memory belongs to the heap of the harness.
pub fn drop_locked<T>(made: T) {
    let made = core::mem::ManuallyDrop::new(made);
    let _ = with(|_| drop(core::mem::ManuallyDrop::into_inner(made)));
}

/// The state; the first thread that has the lock makes it.
fn state_of(lock: &HarnessLock) -> Option<&'static mut State> {
    if lock.state.load(Ordering::Relaxed).is_null() {
        let heap = Heap::for_harness()?;
        lock.heap.store(heap, Ordering::Relaxed);
        thread::current().heap.set(heap);
        lock.state.store(Box::into_raw(Box::new(State::new())).cast(), Ordering::Relaxed);
    }
    // SAFETY: made above or before, never freed, and ours while we have the lock.
    unsafe { lock.state.load(Ordering::Relaxed).cast::<State>().as_mut() }
}
