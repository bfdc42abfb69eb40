//! What a call answers: the vendor's codes, the thread's last error and the message that goes with it.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

// The vendor's codes, by their names without `ACL_ERROR_`.

/// The outer layer's "invalid parameter".
pub const INVALID_PARAM: i32 = 100_000;
pub const REPEAT_INITIALIZE: i32 = 100_002;
pub const INVALID_FILE: i32 = 100_003;
pub const REPEAT_FINALIZE: i32 = 100_037;
pub const FEATURE_UNSUPPORTED: i32 = 200_006;
pub const INTERNAL_ERROR: i32 = 500_000;
pub const FAILURE: i32 = 500_001;
/// The inner layer's "invalid parameter".
pub const RT_PARAM_INVALID: i32 = 107_000;
pub const RT_INVALID_DEVICEID: i32 = 107_001;
pub const RT_CONTEXT_NULL: i32 = 107_002;
pub const RT_STREAM_CONTEXT: i32 = 107_003;
pub const RT_INVALID_HANDLE: i32 = 107_017;
pub const RT_STREAM_ABORT: i32 = 107_023;
pub const RT_STREAM_UNJOINED: i32 = 107_025;
pub const RT_STREAM_CAPTURED: i32 = 107_027;
pub const RT_EVENT_CAPTURED: i32 = 107_028;
pub const RT_STREAM_NOT_CAPTURED: i32 = 107_029;
pub const RT_CAPTURE_MODE_NOT_SUPPORT: i32 = 107_030;
pub const RT_STREAM_CAPTURE_UNMATCHED: i32 = 107_036;
pub const RT_STREAM_CAPTURE_WRONG_THREAD: i32 = 107_038;
pub const RT_CAPTURE_MODE_BLOCK_ASYNC: i32 = 107_041;
pub const RT_INVALID_SYMBOL: i32 = 107_043;
pub const RT_FEATURE_NOT_SUPPORT: i32 = 207_000;
pub const RT_MEMORY_ALLOCATION: i32 = 207_001;
pub const RT_NO_STREAM_RESOURCE: i32 = 207_008;
pub const RT_EVENT_NOT_COMPLETE: i32 = 507_006;
/// The copy engine met an address that is gone.
pub const RT_SYS_DMA: i32 = 507_013;
pub const RT_STREAM_SYNC_TIMEOUT: i32 = 507_046;
pub const RT_EVENT_SYNC_TIMEOUT: i32 = 507_047;
/// The driver could not reach the host memory.
pub const RT_COPY_DATA: i32 = 507_052;
pub const RT_DRV_INTERNAL_ERROR: i32 = 507_899;
pub const HOST_MEMORY_ALREADY_REGISTERED: i32 = 507_910;
pub const HOST_MEMORY_NOT_REGISTERED: i32 = 507_911;

/// A refused or failed call: its code, and which argument with which value was at fault.
#[derive(Clone, Debug)]
pub struct Fail {
    /// The number the caller gets.
    pub code: i32,
    /// The sentence `aclGetRecentErrMsg` gives.
    pub text: String,
}

/// What a body gives back.
pub type Outcome<T = ()> = Result<T, Fail>;

/// A failure with `code` and the reason in words.
pub fn fail<T>(code: i32, text: impl Into<String>) -> Outcome<T> {
    Err(Fail { code, text: text.into() })
}

/// `Ok` if `holds`; otherwise a failure with `code` and the words of `text`.
pub fn check(holds: bool, code: i32, text: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { fail(code, text()) }
}

const MESSAGE_SIZE: usize = 512;

// Without destructors, so that a call from a static destructor or after the thread's end still finds them.
thread_local! {
    static LAST: Cell<i32> = const { Cell::new(0) };
    static MESSAGE: UnsafeCell<[u8; MESSAGE_SIZE]> = const { UnsafeCell::new([0; MESSAGE_SIZE]) };
}

/// Runs the body of the export `call`: no panic leaves, errno stays, a failure is remembered and becomes its code.
pub fn answer(call: &str, body: impl FnOnce() -> Outcome) -> i32 {
    let errno = errno();
    let outcome = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|_| fail(INTERNAL_ERROR, "the simulator failed; this is its bug"));
    let code = match outcome {
        Ok(()) => 0,
        Err(failure) => {
            remember(call, &failure);
            failure.code
        }
    };
    set_errno(errno);
    code
}

/// The vendor's inner layer sets the thread's last error; the outer layer's own codes do not.
fn is_of_the_inner_layer(code: i32) -> bool {
    matches!(code / 1000, 107 | 207 | 507)
}

fn remember(call: &str, failure: &Fail) {
    if is_of_the_inner_layer(failure.code) {
        LAST.set(failure.code);
    }
    let text = format!("{call}: {} [{}]", failure.text, failure.code);
    let bytes = text.as_bytes();
    let length = bytes.len().min(MESSAGE_SIZE - 1);
    MESSAGE.with(|message| {
        // SAFETY: the buffer is this thread's own, and no reference into it outlives this closure.
        let buffer = unsafe { &mut *message.get() };
        buffer[..length].copy_from_slice(&bytes[..length]);
        buffer[length] = 0;
    });
}

fn errno() -> c_int {
    // SAFETY: the C library gives a valid pointer to the calling thread's errno.
    unsafe { *libc::__errno_location() }
}

/// Sets the calling thread's errno.
pub fn set_errno(value: c_int) {
    // SAFETY: the C library gives a valid pointer to the calling thread's errno.
    unsafe { *libc::__errno_location() = value };
}

/// The message of the thread's last failed call, or NULL if none failed yet. Valid until the thread's next failure.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn aclGetRecentErrMsg() -> *const c_char {
    MESSAGE.with(|message| {
        let start = message.get().cast::<c_char>();
        // SAFETY: the buffer is this thread's own and has at least one byte.
        if unsafe { *start } == 0 { ptr::null() } else { start.cast_const() }
    })
}

fn last_error(level: i32) -> i32 {
    if level == 0 { LAST.get() } else { INVALID_PARAM }
}

/// The thread's last error of the inner layer, which stays. Level 0 (the thread) is the only one.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn aclrtPeekAtLastError(level: i32) -> i32 {
    last_error(level)
}

/// The thread's last error of the inner layer, which is cleared. Level 0 (the thread) is the only one.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn aclrtGetLastError(level: i32) -> i32 {
    let code = last_error(level);
    if level == 0 {
        LAST.set(0);
    }
    code
}
