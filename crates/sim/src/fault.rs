//! The faults a test may ask for in `ASCENDCL_SIM_FAULT`, and how each is committed.
//!
//! A fault may leave through the caller's frames (an exception, a long jump), so nothing here that needs a destructor
//! is alive when it does.

use crate::error::set_errno;
use crate::gate;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// A C++ exception of type `int`, value 42.
    Throw,
    /// A long jump to the buffer of `ascendclSimSetJump`.
    LongJump,
    /// The function first calls its own public name.
    Reenter,
    /// The call never comes back.
    Hang,
    /// The call answers this code at once.
    Fail(i32),
    /// errno is this value from here on.
    Errno(i32),
}

/// `What`, in which function, at which of its calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// What goes wrong.
    pub what: What,
    /// The index of the function in `gate::NAMES`.
    pub function: usize,
    /// The number of the call, from 1; `None` is every call.
    pub nth: Option<u64>,
}

/// Reads `WHAT@FUNCTION:N,...`; an entry that makes no sense is left out.
pub fn parse(text: &str) -> Vec<Fault> {
    text.split(',').filter_map(|entry| one(entry.trim())).collect()
}

fn one(entry: &str) -> Option<Fault> {
    let (what, place) = entry.split_once('@')?;
    let (function, nth) = place.split_once(':').unwrap_or((place, "*"));
    Some(Fault {
        what: what_of(what)?,
        function: gate::NAMES.iter().position(|name| *name == function)?,
        nth: match nth {
            "*" => None,
            number => Some(number.parse().ok()?),
        },
    })
}

fn what_of(text: &str) -> Option<What> {
    match text.split_once('=') {
        Some(("fail", code)) => Some(What::Fail(code.parse().ok()?)),
        Some(("errno", value)) => Some(What::Errno(value.parse().ok()?)),
        Some(_) => None,
        None => match text {
            "throw" => Some(What::Throw),
            "longjmp" => Some(What::LongJump),
            "reenter" => Some(What::Reenter),
            "hang" => Some(What::Hang),
            _ => None,
        },
    }
}

thread_local! {
    static JUMP: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
}

/// Gives the thread's `jmp_buf` for the fault `longjmp`; NULL takes it back.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ascendclSimSetJump(buffer: *mut c_void) {
    JUMP.set(buffer);
}

unsafe extern "C-unwind" {
    fn longjmp(buffer: *mut c_void, value: c_int) -> !;
}

/// Jumps to the thread's buffer with the value 1; comes back if none was given.
pub fn long_jump() {
    let buffer = JUMP.get();
    if !buffer.is_null() {
        // SAFETY: the program's promise: the frame that called `setjmp` on this buffer is still live on this thread.
        unsafe { longjmp(buffer, 1) }
    }
}

/// Throws `int` 42 as C++ does, without a C++ compiler; comes back if there is no libstdc++.
pub fn throw() {
    type Allocate = extern "C-unwind" fn(usize) -> *mut c_int;
    type Throw = extern "C-unwind" fn(*mut c_int, *const c_void, *const c_void) -> !;
    // SAFETY: the name is a valid C string; libstdc++'s constructors are fit to run at any time.
    let library = unsafe { libc::dlopen(c"libstdc++.so.6".as_ptr(), libc::RTLD_NOW) };
    let (allocate, throw, int) =
        (symbol(library, c"__cxa_allocate_exception"), symbol(library, c"__cxa_throw"), symbol(library, c"_ZTIi"));
    if allocate.is_null() || throw.is_null() || int.is_null() {
        return;
    }
    // SAFETY: libstdc++ exports these names with these signatures (Itanium C++ ABI).
    let (allocate, throw) = unsafe {
        (std::mem::transmute::<*mut c_void, Allocate>(allocate), std::mem::transmute::<*mut c_void, Throw>(throw))
    };
    let exception = allocate(size_of::<c_int>());
    // SAFETY: the runtime gave room for an `int`.
    unsafe { exception.write(42) };
    throw(exception, int, ptr::null())
}

/// The address behind `name` in `library`, or NULL.
pub fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: `library` is a handle of `dlopen` or one of its special values, the name a valid C string.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}

/// Sleeps for ever.
pub fn hang() -> ! {
    loop {
        // SAFETY: takes no memory of ours.
        unsafe { libc::sleep(3600) };
    }
}

/// Sets errno, which `error::answer` keeps until the call returns.
pub fn errno(value: i32) {
    set_errno(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_place_and_its_call() {
        let faults = parse("throw@aclrtMemcpy:1, fail=107000@aclrtMemset:*,errno=4@aclrtMemcpyAsync:20");
        let expected = [
            Fault { what: What::Throw, function: gate::index("aclrtMemcpy"), nth: Some(1) },
            Fault { what: What::Fail(107_000), function: gate::index("aclrtMemset"), nth: None },
            Fault { what: What::Errno(4), function: gate::index("aclrtMemcpyAsync"), nth: Some(20) },
        ];
        assert_eq!(faults, expected);
    }

    #[test]
    fn an_entry_that_makes_no_sense_is_left_out() {
        let text =
            ",throw,throw@aclrtMalloc:1,hang@aclrtMemcpy:x,fail=x@aclrtMemcpy:1,boom@aclrtMemcpy:1,hang@aclrtMemset:2";
        let only = Fault { what: What::Hang, function: gate::index("aclrtMemset"), nth: Some(2) };
        assert_eq!(parse(text), [only]);
    }
}
