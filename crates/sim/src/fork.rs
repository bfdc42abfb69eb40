//! What a fork does to the simulator: the child finds both locks free, and streams without workers and without tasks.

use crate::state::registry::{self, Registry};
use crate::state::world::{self, World};
use std::cell::UnsafeCell;
use std::sync::{MutexGuard, RwLockWriteGuard};

type Held = (MutexGuard<'static, World>, RwLockWriteGuard<'static, Registry>);

/// Both locks, between the handlers before and after the fork.
struct Holder(UnsafeCell<Option<Held>>);

// SAFETY: only the thread that forks touches it, and `prepare` has made it the one that holds both locks.
unsafe impl Sync for Holder {}

static HOLDER: Holder = Holder(UnsafeCell::new(None));

/// Registers the handlers.
pub fn watch() {
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
}

extern "C" fn prepare() {
    let held = (world::lock(), registry::write());
    // SAFETY: this thread holds both locks, so it is alone here.
    unsafe { *HOLDER.0.get() = Some(held) };
}

fn release() -> Option<Held> {
    // SAFETY: as in `prepare`; the locks are still this thread's.
    unsafe { (*HOLDER.0.get()).take() }
}

extern "C" fn parent() {
    drop(release());
}

extern "C" fn child() {
    if let Some((mut world, registry)) = release() {
        for queue in world.queues.values_mut() {
            queue.forget_worker();
        }
        drop(world);
        drop(registry);
    }
}
