//! The one lock over everything that is not memory: devices, contexts, streams, events and captured models.
//!
//! One lock, because a fork has to hold it to leave the child a consistent world. Objects that C code holds a handle
//! to are leaked and carry only a magic number and an identity; what changes lives here, under the identity.

use super::context::Context;
use super::event::EventState;
use super::model::Model;
use super::queue::Queue;
use super::registry::{self, Backing};
use crate::config::settings::MAX_DEVICES;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All objects that are not memory.
pub struct World {
    /// Whether `aclInit` and `aclFinalize` were called.
    pub lifecycle: Lifecycle,
    /// By device id.
    pub devices: [DeviceState; MAX_DEVICES as usize],
    /// The contexts that live, with their owner-given handles.
    pub contexts: BTreeMap<u64, &'static Context>,
    /// By stream identity.
    pub queues: BTreeMap<u64, Queue>,
    /// By event identity.
    pub events: BTreeMap<u64, EventState>,
    /// By model identity.
    pub models: BTreeMap<u64, Model>,
    /// Physical memory by identity.
    pub physicals: BTreeMap<u64, Physical>,
    /// Device variables by the host address of their symbol.
    pub variables: BTreeMap<usize, Variable>,
}

/// State of the runtime between `aclInit` and `aclFinalize`. No other function depends on it.
#[derive(PartialEq)]
pub enum Lifecycle {
    /// Neither was called.
    Fresh,
    /// Between the two.
    Initialized,
    /// After `aclFinalize`.
    Finalized,
}

/// What changes of a device.
pub struct DeviceState {
    /// Number of calls of `aclrtSetDevice` minus calls of `aclrtResetDevice`.
    pub references: u32,
    /// The default context.
    pub primary: Option<&'static Context>,
    /// Bit n: access to device n is enabled.
    pub peers: u64,
}

/// Physical memory of a device.
pub struct Physical {
    /// Its device.
    pub device: u32,
    /// In bytes.
    pub size: usize,
    /// The bytes.
    pub backing: Arc<Backing>,
}

impl Drop for Physical {
    fn drop(&mut self) {
        registry::discharge(self.device, self.size);
    }
}

/// A variable that exists once on each device, from the first time it is used there.
pub struct Variable {
    /// In bytes.
    pub size: usize,
    /// By device: its address.
    pub at: BTreeMap<u32, usize>,
}

impl World {
    /// Forgets where the variables of `device` lie: its memory is gone.
    pub fn forget_variables_of(&mut self, device: u32) {
        for variable in self.variables.values_mut() {
            variable.at.remove(&device);
        }
    }
}

static WORLD: Mutex<World> = Mutex::new(World {
    lifecycle: Lifecycle::Fresh,
    devices: [const { DeviceState { references: 0, primary: None, peers: 0 } }; MAX_DEVICES as usize],
    contexts: BTreeMap::new(),
    queues: BTreeMap::new(),
    events: BTreeMap::new(),
    models: BTreeMap::new(),
    physicals: BTreeMap::new(),
    variables: BTreeMap::new(),
});

/// Notified when an event is recorded, and when a stream that may wait for one is aborted.
pub static EVENTS: Condvar = Condvar::new();

/// Locks the world. A panic under the lock does not poison it: every change is complete in itself.
pub fn lock() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition of the world, without a limit or for `limit`.
pub fn wait(
    condition: &Condvar,
    world: MutexGuard<'static, World>,
    limit: Option<Duration>,
) -> MutexGuard<'static, World> {
    match limit {
        None => condition.wait(world).unwrap_or_else(PoisonError::into_inner),
        Some(limit) => condition.wait_timeout(world, limit).unwrap_or_else(PoisonError::into_inner).0,
    }
}
