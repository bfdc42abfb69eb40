//! The one lock over everything that is not memory: devices, contexts, streams, events and captured models.
//!
//! One lock, because a fork has to hold it to leave the child a consistent world. Objects that C code holds a handle
//! to are leaked and carry only a magic number and an identity; what changes lives here, under the identity.

use crate::capture::Model;
use crate::context::Context;
use crate::error::{Outcome, RT_INVALID_HANDLE, fail};
use crate::event::EventState;
use crate::memory::mapping::Physical;
use crate::settings::MAX_DEVICES;
use crate::stream::Queue;
use crate::variable::Variable;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What changes.
pub struct World {
    /// How far the program has come.
    pub life: Life,
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

/// The runtime's life, as `aclInit` and `aclFinalize` see it. Nothing else asks for it.
#[derive(PartialEq)]
pub enum Life {
    /// Neither was called.
    Fresh,
    /// Between the two.
    Initialized,
    /// After `aclFinalize`.
    Finalized,
}

/// What changes of a device.
pub struct DeviceState {
    /// How often `aclrtSetDevice` was called more than `aclrtResetDevice`.
    pub references: u32,
    /// The default context.
    pub primary: Option<&'static Context>,
    /// Bit n: access to device n is enabled.
    pub peers: u64,
}

static WORLD: Mutex<World> = Mutex::new(World {
    life: Life::Fresh,
    devices: [const { DeviceState { references: 0, primary: None, peers: 0 } }; MAX_DEVICES as usize],
    contexts: BTreeMap::new(),
    queues: BTreeMap::new(),
    events: BTreeMap::new(),
    models: BTreeMap::new(),
    physicals: BTreeMap::new(),
    variables: BTreeMap::new(),
});

/// Rung when an event is recorded, and when a stream that may wait for one is aborted.
pub static EVENTS: Condvar = Condvar::new();

/// The world, held. A panic while it was held does not close it: every change is complete in itself.
pub fn lock() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number no other object of this process has.
pub fn identity() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The head of every object behind a handle. It is never freed, so that a stale handle is refused and not a fault.
#[repr(C)]
pub struct Head {
    magic: AtomicU64,
    /// Under which the world keeps what changes of the object.
    pub id: u64,
}

impl Head {
    /// The head of a new object of the kind `magic`.
    pub fn new(magic: u64) -> Self {
        Self { magic: AtomicU64::new(magic), id: identity() }
    }

    /// Whether the object still lives.
    pub fn lives(&self) -> bool {
        self.magic.load(Ordering::Acquire) != 0
    }

    /// Ends the object: its handle is refused from here on.
    pub fn end(&self) {
        self.magic.store(0, Ordering::Release);
    }
}

/// The object behind a handle that is not NULL; 107017 if the memory there does not begin with `magic`.
///
/// Like the vendor, this reads wherever the handle points: an unmapped address is a segmentation fault.
pub fn object<T>(handle: *mut c_void, magic: u64, noun: &str) -> Outcome<&'static T> {
    // SAFETY: the caller's promise, as the vendor takes it: the handle is readable.
    let found = unsafe { handle.cast::<u64>().read_unaligned() };
    if found != magic {
        return fail(RT_INVALID_HANDLE, format!("{noun}={handle:?} is no {noun} or was destroyed"));
    }
    // SAFETY: the magic number says that this is one of our leaked objects of the kind `T`.
    Ok(unsafe { &*handle.cast::<T>() })
}

/// The handle of a leaked object.
pub fn handle<T>(object: &'static T) -> *mut c_void {
    std::ptr::from_ref(object).cast_mut().cast()
}
