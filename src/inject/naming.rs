//! Names of streams, buffers and modules in this process, for selectors.

use crate::loader::maps;
use aclshim_facts::selector::Names;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The harness, a module above this one, as injections use it: names that the program has given, and the lock.
pub trait Harness: Names + Sync {
    /// Calls `work` under the lock that injections of scopes are set and taken back under.
    fn locked(&self, work: fn());
}

static HARNESS: AtomicPtr<&'static dyn Harness> = AtomicPtr::new(core::ptr::null_mut());

/// Makes the harness known.
pub fn install(harness: &'static &'static dyn Harness) {
    HARNESS.store(core::ptr::from_ref(harness).cast_mut(), Ordering::Release);
}

/// The harness, if the program uses it.
pub fn harness() -> Option<&'static dyn Harness> {
    // SAFETY: NULL, or a static reference.
    unsafe { HARNESS.load(Ordering::Acquire).as_ref() }.copied()
}

/// The names in this process.
pub struct ProcessNames;

impl Names for ProcessNames {
    fn stream(&self, stream: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        harness().is_some_and(|harness| harness.stream(stream, is))
    }

    fn buffer(&self, address: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        harness().is_some_and(|harness| harness.buffer(address, is))
    }

    fn module(&self, address: u64, is: &mut dyn FnMut(&[u8], u64) -> bool) -> bool {
        maps::is_module(address, is)
    }
}
