//! Contexts, and which one is the calling thread's.

use super::object::Head;
use super::stream::Stream;
use crate::edge::error::{Outcome, RT_CONTEXT_NULL, fail};
use std::cell::Cell;
use std::sync::atomic::AtomicU32;

/// The magic number of a context.
pub const MAGIC: u64 = 0x7478_6574_6e6f_4353;

/// A context. Leaked; ended by its head.
#[repr(C)]
pub struct Context {
    /// Its identity and whether it lives.
    pub head: Head,
    /// Of which device.
    pub device: u32,
    /// How many captures are under way, by mode.
    pub captures: [AtomicU32; 3],
    /// The stream that NULL stands for.
    pub default_stream: &'static Stream,
}

thread_local! {
    static CURRENT: Cell<Option<&'static Context>> = const { Cell::new(None) };
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
