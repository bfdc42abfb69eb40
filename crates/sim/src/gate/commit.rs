//! How faults are committed.
//!
//! A fault may leave through the caller's frames (an exception, a long jump), so nothing here that needs a destructor
//! is alive when it does.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

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

/// Sleeps and never returns.
pub fn hang() -> ! {
    loop {
        // SAFETY: takes no memory of ours.
        unsafe { libc::sleep(3600) };
    }
}
