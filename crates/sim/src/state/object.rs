//! Objects that C code holds a handle to. They are leaked: a stale handle is refused and is never a fault.

use crate::edge::error::{Outcome, RT_INVALID_HANDLE, fail};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number no other object of this process has.
fn identity() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The head of every object behind a handle.
#[repr(C)]
pub struct Head {
    magic: AtomicU64,
    /// The key under which the world keeps what changes of the object.
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
