//! Contexts: what a thread works in. Each has a device and a default stream.

use crate::config::settings::valid_device;
use crate::edge::argument::{exports, put, required};
use crate::edge::error::{Outcome, RT_CONTEXT_NULL, fail};
use crate::state::context::{Context, MAGIC, current, set_current};
use crate::state::object::{self, Head, handle};
use crate::state::{registry, world};
use crate::stream;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

exports! {
    /// A new context on a device, which becomes the thread's.
    fn aclrtCreateContext(context: *mut *mut c_void, deviceId: i32) => {
        required(context, "context")?;
        let made = create(valid_device(deviceId)?);
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
        put(stream, "stream", handle(current()?.default_stream))
    };
}

fn named(handle: *mut c_void) -> Outcome<&'static Context> {
    let world = world::lock();
    let found = world.contexts.values().find(|context| std::ptr::eq(object::handle(**context), handle));
    match found {
        Some(context) => Ok(context),
        None => fail(RT_CONTEXT_NULL, format!("context={handle:?} is no context or was destroyed")),
    }
}

/// A new context on `device`.
pub fn create(device: u32) -> &'static Context {
    let head = Head::new(MAGIC);
    let default_stream = stream::create(head.id, device);
    let context: &'static Context =
        Box::leak(Box::new(Context { head, device, captures: Default::default(), default_stream }));
    world::lock().contexts.insert(context.head.id, context);
    registry::OPEN.fetch_add(1, Ordering::AcqRel);
    context
}

/// Ends a context: its streams stop, and the memory of its device goes with the last one.
pub fn destroy(context: &'static Context) {
    if world::lock().contexts.remove(&context.head.id).is_none() {
        return;
    }
    stream::destroy_all_of(context.head.id);
    context.head.end();
    registry::OPEN.fetch_sub(1, Ordering::AcqRel);
    let others = world::lock().contexts.values().any(|other| other.device == context.device);
    if !others {
        registry::release_device(context.device);
        world::lock().forget_variables_of(context.device);
    }
}
