//! The C surface of the harness: one symbol, a table of functions, and the structures that they fill.
//!
//! `include/aclshim.h` is made from this file, which holds nothing else. What the functions mean to their callers is said
//! there once, at the inline function in front of each member (`cbindgen.toml`). Behind the surface:
//! - [`api`] converts between C and Rust: the caller's memory is accessed there only, and without the lock;
//! - [`outcome`] judges a scope that ends, and reports the result;
//! - [`observer`] sees the calls on the slow path while a scope is open;
//! - [`state`] holds the open scopes and the calls that they see, under a lock, in a heap of its own.
#![allow(non_camel_case_types, dead_code)] // as C spells them; C uses them all

use api::requests;
use core::ffi::{c_char, c_int, c_void};

mod api;
mod observer;
mod outcome;
mod state;

pub use outcome::end::at_exit;

/// A scope: more than 0. 0 where no shim is loaded; an `aclshim_error` if less.
pub type aclshim_scope = i64;

/// What a function returns that could not do what it was asked for. All are negative.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum aclshim_error {
    /// An argument is NULL that must not be, or out of range.
    ACLSHIM_INVALID = -1,
    /// There is no such scope: it was never begun, it has ended, or it was begun before a fork.
    ACLSHIM_NO_SCOPE = -2,
    /// The caller's room is too small. It was filled as far as it goes.
    ACLSHIM_ROOM = -3,
    /// A text cannot be read: a selector, an injection, the name of a rule. Standard error says what is wrong with it.
    ACLSHIM_NONSENSE = -4,
    /// Called from a signal handler that has interrupted the harness itself, or after five seconds in which another
    /// thread did not come out of it: such a handler has left it by a jump.
    ACLSHIM_BUSY = -5,
    /// Injection under the production preset.
    ACLSHIM_REFUSED = -7,
    /// There is no memory left for it, or no room.
    ACLSHIM_MEMORY = -8,
    /// Another scope that was begun inside this one is still open.
    ACLSHIM_ORDER = -9,
    /// The scope is another thread's.
    ACLSHIM_THREAD = -10,
}

/// Whose calls a scope sees.
#[repr(C)]
pub enum aclshim_reach {
    /// Those of the thread that begins it.
    ACLSHIM_THIS_THREAD = 0,
    /// Those of all threads.
    ACLSHIM_WHOLE_PROCESS = 1,
}

/// How bad a finding is, rising.
#[repr(C)]
pub enum aclshim_severity {
    /// Would be refused on another product or release.
    ACLSHIM_PORTABILITY = 0,
    /// Correct, but slow.
    ACLSHIM_PERF = 1,
    /// Documented, but not enforced by this runtime.
    ACLSHIM_VIOLATION = 2,
    /// The vendor refuses the call.
    ACLSHIM_ERROR = 3,
}

/// Which way a call moves bytes, as the caller says it: by its kind, or by the attributes of a batch.
#[repr(C)]
pub enum aclshim_direction {
    /// It does not say (`ACL_MEMCPY_DEFAULT`), has no kind, or the items of a batch go different ways.
    ACLSHIM_UNKNOWN = 0,
    /// Host to host.
    ACLSHIM_HOST_TO_HOST = 1,
    /// Host to device.
    ACLSHIM_HOST_TO_DEVICE = 2,
    /// Device to host.
    ACLSHIM_DEVICE_TO_HOST = 3,
    /// Device to device.
    ACLSHIM_DEVICE_TO_DEVICE = 4,
}

/// What became of a call.
#[repr(C)]
pub enum aclshim_state {
    /// It has returned `code`.
    ACLSHIM_DONE = 0,
    /// It has not returned yet.
    ACLSHIM_UNDER_WAY = 1,
    /// It never will: an exception, a longjmp or the end of its thread has left it.
    ACLSHIM_LEFT = 2,
}

/// What else is to be said of a call; bits.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum aclshim_flag {
    /// An injection has changed its code or its time.
    ACLSHIM_INJECTED = 1,
    /// It was not forwarded: a rule is set to refuse it.
    ACLSHIM_WAS_REFUSED = 2,
}

/// A call. What a function has no argument for is 0 or NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aclshim_call {
    /// The vendor's name of the function; valid for ever.
    pub function: *const c_char,
    /// The destination as it was passed, or NULL for a batch: see `aclshim_items`.
    pub dst: *const c_void,
    /// The source.
    pub src: *const c_void,
    /// The room at the destination.
    pub dst_max: u64,
    /// How much is to be copied or set: bytes, or words for the functions that set words.
    pub count: u64,
    /// How many bytes the call moves or sets; of a batch, once the vendor has accepted it.
    pub bytes: u64,
    /// The items of a batch, else 0.
    pub items: u64,
    /// Bytes in a row of a two-dimensional copy.
    pub width: u64,
    /// Rows of a two-dimensional copy.
    pub height: u64,
    /// From row to row at the destination.
    pub dst_pitch: u64,
    /// From row to row at the source.
    pub src_pitch: u64,
    /// The kind as it was passed, or -1 where the function has none.
    pub kind: i32,
    /// An `aclshim_direction`.
    pub direction: i32,
    /// The stream; NULL is the default one.
    pub stream: *const c_void,
    /// 1 if the function has a stream, else 0.
    pub has_stream: i32,
    /// What it returned to the program; 0 while it is under way.
    pub code: i32,
    /// An `aclshim_state`.
    pub state: i32,
    /// Bits of `aclshim_flag`.
    pub flags: i32,
    /// How long it took, in nanoseconds; 0 while it is under way.
    pub duration_ns: u64,
    /// The thread that called, by the number that the system gives it (`gettid`).
    pub thread: u64,
    /// Its place in the scope: 0, 1, ... as the calls began.
    pub order: u64,
    /// Where in the program the call returns to.
    pub site: *const c_void,
    /// How many findings there are about it.
    pub findings: u64,
}

/// An item of a batch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aclshim_item {
    /// The destination.
    pub dst: *const c_void,
    /// The source.
    pub src: *const c_void,
    /// The room at the destination.
    pub dst_max: u64,
    /// How many bytes.
    pub size: u64,
}

/// Something that is wrong with a call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aclshim_finding {
    /// The id of the rule, `BATCH-INDEX-ORDER`; valid for ever.
    pub rule: *const c_char,
    /// The function; valid for ever.
    pub function: *const c_char,
    /// The vendor's name of the argument that it is about; valid for ever.
    pub argument: *const c_char,
    /// What is wrong, in one sentence with the values; valid until the scope ends.
    pub message: *const c_char,
    /// What to do about it; valid for ever.
    pub fix: *const c_char,
    /// An `aclshim_severity`.
    pub severity: i32,
    /// What the vendor returns for it, or 0.
    pub code: i32,
    /// Which item of a batch or entry of an array, or -1.
    pub index: i64,
    /// What stands in the arrays there: the entry, and what it is measured against.
    pub values: [u64; 2],
    /// The call, by its place in the scope.
    pub call: u64,
}

/// What the shim offers to the program that it is loaded into, found through the weak symbol
/// `aclshim_harness`. Members are only ever added at the end; `size` tells how many there are.
/// Programs call the inline functions below, which know what to do where a member is missing.
#[repr(C)]
pub struct aclshim_harness {
    /// Size of this structure in bytes, as the loaded shim knows it.
    pub size: u32,
    /// Version of the interface: 1.
    pub version: u32,
    /// See `aclshim_active`.
    pub active: Option<extern "C" fn() -> c_int>,
    /// See `aclshim_scope_begin`.
    pub scope_begin: Option<unsafe extern "C" fn(name: *const c_char, reach: c_int) -> aclshim_scope>,
    /// See `aclshim_scope_end`.
    pub scope_end: Option<extern "C" fn(scope: aclshim_scope) -> i64>,
    /// See `aclshim_count`.
    pub count: Option<unsafe extern "C" fn(scope: aclshim_scope, selector: *const c_char) -> i64>,
    /// See `aclshim_bytes`.
    pub bytes: Option<unsafe extern "C" fn(scope: aclshim_scope, selector: *const c_char) -> i64>,
    /// See `aclshim_calls`; `size` is that of the caller's structure.
    pub calls: Option<
        unsafe extern "C" fn(
            scope: aclshim_scope,
            selector: *const c_char,
            calls: *mut aclshim_call,
            size: usize,
            room: usize,
        ) -> i64,
    >,
    /// See `aclshim_items`; `size` is that of the caller's structure.
    pub items: Option<
        unsafe extern "C" fn(
            scope: aclshim_scope,
            order: u64,
            items: *mut aclshim_item,
            size: usize,
            room: usize,
        ) -> i64,
    >,
    /// See `aclshim_findings`; `size` is that of the caller's structure.
    pub findings: Option<
        unsafe extern "C" fn(
            scope: aclshim_scope,
            rule: *const c_char,
            findings: *mut aclshim_finding,
            size: usize,
            room: usize,
        ) -> i64,
    >,
    /// See `aclshim_expect_calls`.
    pub expect_calls:
        Option<unsafe extern "C" fn(scope: aclshim_scope, selector: *const c_char, at_least: u64, at_most: u64) -> i64>,
    /// See `aclshim_expect_bytes`.
    pub expect_bytes:
        Option<unsafe extern "C" fn(scope: aclshim_scope, selector: *const c_char, at_least: u64, at_most: u64) -> i64>,
    /// See `aclshim_expect_order`.
    pub expect_order:
        Option<unsafe extern "C" fn(scope: aclshim_scope, stream: *const c_void, selectors: *const c_char) -> i64>,
    /// See `aclshim_expect_finding`.
    pub expect_finding: Option<unsafe extern "C" fn(scope: aclshim_scope, rule: *const c_char, count: u64) -> i64>,
    /// See `aclshim_expect_clean`.
    pub expect_clean: Option<extern "C" fn(scope: aclshim_scope, severity: c_int) -> i64>,
    /// See `aclshim_expect_golden`.
    pub expect_golden: Option<unsafe extern "C" fn(scope: aclshim_scope, path: *const c_char) -> i64>,
    /// See `aclshim_inject`.
    pub inject: Option<unsafe extern "C" fn(scope: aclshim_scope, injections: *const c_char) -> i64>,
    /// See `aclshim_injected`.
    pub injected: Option<extern "C" fn(scope: aclshim_scope) -> i64>,
    /// See `aclshim_mark`.
    pub mark: Option<unsafe extern "C" fn(text: *const c_char) -> i64>,
    /// See `aclshim_name_stream`.
    pub name_stream: Option<unsafe extern "C" fn(stream: *const c_void, name: *const c_char) -> i64>,
    /// See `aclshim_name_buffer`.
    pub name_buffer: Option<unsafe extern "C" fn(begin: *const c_void, size: usize, name: *const c_char) -> i64>,
    /// See `aclshim_failures`.
    pub failures: Option<extern "C" fn() -> i64>,
    /// See `aclshim_fail_exit`.
    pub fail_exit: Option<extern "C" fn(status: c_int) -> i64>,
}

/// The table.
#[unsafe(export_name = "aclshim_harness")]
pub static HARNESS: aclshim_harness = aclshim_harness {
    size: size_of::<aclshim_harness>() as u32,
    version: 1,
    active: Some(api::active),
    scope_begin: Some(api::scope_begin),
    scope_end: Some(api::scope_end),
    count: Some(api::count),
    bytes: Some(api::bytes),
    calls: Some(api::calls),
    items: Some(api::items),
    findings: Some(api::findings),
    expect_calls: Some(requests::expect_calls),
    expect_bytes: Some(requests::expect_bytes),
    expect_order: Some(requests::expect_order),
    expect_finding: Some(requests::expect_finding),
    expect_clean: Some(requests::expect_clean),
    expect_golden: Some(requests::expect_golden),
    inject: Some(requests::inject),
    injected: Some(requests::injected),
    mark: Some(requests::mark),
    name_stream: Some(requests::name_stream),
    name_buffer: Some(requests::name_buffer),
    failures: Some(requests::failures),
    fail_exit: Some(requests::fail_exit),
};
