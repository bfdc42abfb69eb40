//! The door of the 21 functions that copy and set memory: counts each call and commits the fault asked for.

use crate::error::{INVALID_PARAM, answer, fail};
use crate::fault::{self, What};
use crate::settings::settings;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// The functions behind the gate.
pub const NAMES: [&str; 21] = [
    "aclrtMemcpy",
    "aclrtMemcpyAsync",
    "aclrtMemcpyAsyncWithCondition",
    "aclrtMemcpy2d",
    "aclrtMemcpy2dAsync",
    "aclrtMemcpyBatch",
    "aclrtMemcpyBatchV2",
    "aclrtMemcpyBatchAsync",
    "aclrtMemcpyBatchAsyncV2",
    "aclrtMemcpyAsyncWithOffset",
    "aclrtMemcpyAsyncWithDesc",
    "aclrtMemcpyFromSymbol",
    "aclrtMemcpyFromSymbolAsync",
    "aclrtMemcpyToSymbol",
    "aclrtMemcpyToSymbolAsync",
    "aclrtGetMemcpyDescSize",
    "aclrtSetMemcpyDesc",
    "aclrtMemset",
    "aclrtMemsetAsync",
    "aclrtMemsetD32",
    "aclrtMemsetD32Async",
];

static CALLS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

/// Makes exports that pass the gate before their body runs.
macro_rules! gated {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) => $body:expr;)*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name($($arg: $type),*) -> i32 {
            const INDEX: usize = $crate::gate::index(stringify!($name));
            match $crate::gate::enter(INDEX) {
                $crate::gate::Order::Work => {}
                $crate::gate::Order::Answer(code) => return code,
                $crate::gate::Order::Reenter => {
                    const NAME: &std::ffi::CStr = $crate::gate::c_name(concat!(stringify!($name), "\0"));
                    let public = $crate::gate::public(NAME);
                    if !public.is_null() {
                        type Function = extern "C-unwind" fn($($type),*) -> i32;
                        // SAFETY: whoever owns this function's public name keeps its signature.
                        let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(public) };
                        function($($arg),*);
                    }
                    $crate::gate::reentered();
                }
            }
            $crate::error::answer(stringify!($name), || $body)
        }
    )*};
}
pub(crate) use gated;

/// The place of `name` in `NAMES`; a name that is missing there does not compile.
pub const fn index(name: &str) -> usize {
    let mut at = 0;
    while at < NAMES.len() {
        if same(NAMES[at].as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("not one of the gated functions")
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// `name`, which ends in NUL, for C.
pub const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name without its NUL"),
    }
}

/// What the export does next.
pub enum Order {
    /// Its work.
    Work,
    /// Answer this code, without any work.
    Answer(i32),
    /// Call the function's public name, then its work.
    Reenter,
}

thread_local! {
    static REENTERING: Cell<bool> = const { Cell::new(false) };
}

/// Counts a call and commits its faults. Holds nothing with a destructor: an exception or a jump may leave from here.
pub fn enter(index: usize) -> Order {
    let call = CALLS[index].fetch_add(1, Ordering::Relaxed) + 1;
    let mut order = Order::Work;
    for fault in &settings().faults {
        if fault.function != index || fault.nth.is_some_and(|nth| nth != call) {
            continue;
        }
        match fault.what {
            What::Throw => fault::throw(),
            What::LongJump => fault::long_jump(),
            What::Hang => fault::hang(),
            What::Errno(value) => fault::errno(value),
            What::Fail(code) => return Order::Answer(code),
            What::Reenter => {
                // The nested call has another number; only `*` meets it again, and must not for ever.
                if fault.nth.is_some() || !REENTERING.replace(true) {
                    order = Order::Reenter;
                }
            }
        }
    }
    order
}

/// The function that the process sees under `name`: an interposer's, if one is in front.
pub fn public(name: &CStr) -> *mut c_void {
    fault::symbol(libc::RTLD_DEFAULT, name)
}

/// The nested call of `reenter` is over.
pub fn reentered() {
    REENTERING.set(false);
}

/// How often `function`, one of the 21, was entered in this process; 0 for any other name.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ascendclSimCalls(function: *const c_char) -> u64 {
    let mut calls = 0;
    answer("ascendclSimCalls", || {
        if function.is_null() {
            return fail(INVALID_PARAM, "function must not be NULL");
        }
        // SAFETY: the caller's promise: a C string.
        let name = unsafe { CStr::from_ptr(function) };
        if let Some(at) = NAMES.iter().position(|n| n.as_bytes() == name.to_bytes()) {
            calls = CALLS[at].load(Ordering::Relaxed);
        }
        Ok(())
    });
    calls
}
