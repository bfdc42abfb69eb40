//! Contexts: what a thread works in. Each has a device and a default stream.

use crate::argument::{exports, put, required};
use crate::device;
use crate::error::{Outcome, RT_CONTEXT_NULL, fail};
use crate::memory::{malloc, registry};
use crate::stream::{self, Stream};
use crate::variable;
use crate::world::{self, Head, handle};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const MAGIC: u64 = 0x7478_6574_6e6f_4353;

/// A context. Leaked; ended by its head.
#[repr(C)]
pub struct Context {
    /// Its identity and whether it lives.
    pub head: Head,
    /// Of which device.
    pub device: u32,
    /// How many captures are under way, by mode.
    pub captures: [AtomicU32; 3],
    default_stream: OnceLock<&'static Stream>,
}

impl Context {
    /// The stream that NULL stands for.
    pub fn default_stream(&'static self) -> &'static Stream {
        self.default_stream.get_or_init(|| Stream::create(self))
    }
}

thread_local! {
    static CURRENT: Cell<Option<&'static Context>> = const { Cell::new(None) };
}

exports! {
    /// A new context on a device, which becomes the thread's.
    fn aclrtCreateContext(context: *mut *mut c_void, deviceId: i32) => {
        required(context, "context")?;
        let made = create(device::valid(deviceId)?);
        set_current(made);
        put(context, "context", handle(made))
    };
    /// Ends a context and its streams.
    fn aclrtDestroyContext(context: *mut c_void) => {
        required(context, "context")?;
        destroy(named(context)?);
        Ok(())
    };
    /// Makes a context the thread's.
    fn aclrtSetCurrentContext(context: *mut c_void) => {
        required(context, "context")?;
        set_current(named(context)?);
        Ok(())
    };
    /// The thread's context.
    fn aclrtGetCurrentContext(context: *mut *mut c_void) => {
        required(context, "context")?;
        put(context, "context", handle(current()?))
    };
    /// The default stream of the thread's context.
    fn aclrtCtxGetCurrentDefaultStream(stream: *mut *mut c_void) => {
        required(stream, "stream")?;
        put(stream, "stream", handle(current()?.default_stream()))
    };
}

/// The thread's context; 107002 if it has none, or if it was destroyed.
pub fn current() -> Outcome<&'static Context> {
    match CURRENT.get() {
        Some(context) if context.head.lives() => Ok(context),
        Some(_) => fail(RT_CONTEXT_NULL, "the thread's context was destroyed"),
        None => fail(RT_CONTEXT_NULL, "the thread has no context; call aclrtSetDevice first"),
    }
}

/// Makes a context the thread's.
pub fn set_current(context: &'static Context) {
    CURRENT.set(Some(context));
}

fn named(handle: *mut c_void) -> Outcome<&'static Context> {
    let world = world::lock();
    let found = world.contexts.values().find(|context| std::ptr::eq(world::handle(**context), handle));
    match found {
        Some(context) => Ok(context),
        None => fail(RT_CONTEXT_NULL, format!("context={handle:?} is no context or was destroyed")),
    }
}

/// A new context on `device`.
pub fn create(device: u32) -> &'static Context {
    let context: &'static Context = Box::leak(Box::new(Context {
        head: Head::new(MAGIC),
        device,
        captures: Default::default(),
        default_stream: OnceLock::new(),
    }));
    world::lock().contexts.insert(context.head.id, context);
    registry::OPEN.fetch_add(1, Ordering::AcqRel);
    context.default_stream();
    context
}

/// Ends a context: its streams stop, and the memory of its device goes with the last one.
pub fn destroy(context: &'static Context) {
    if world::lock().contexts.remove(&context.head.id).is_none() {
        return;
    }
    stream::destroy_all_of(context);
    context.head.end();
    registry::OPEN.fetch_sub(1, Ordering::AcqRel);
    let others = world::lock().contexts.values().any(|other| other.device == context.device);
    if !others {
        malloc::release_device(context.device);
        variable::forget(context.device);
    }
}
