//! The real `dlsym`, `dlvsym`, `dladdr` and `dladdr1`.
//!
//! Inside the shim nothing may be looked up by these names (it would land in our own exports): the real functions are read
//! from libc's own symbol table.

use crate::loader::objects;
use aclshim_core::elf;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute_copy;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The address of the real `dlsym`, or 0.
#[unsafe(link_section = ".bss.startup")]
pub static REAL_DLSYM: AtomicUsize = AtomicUsize::new(0);
/// The address of the real `dlvsym`, or 0.
#[unsafe(link_section = ".bss.startup")]
pub static REAL_DLVSYM: AtomicUsize = AtomicUsize::new(0);
#[unsafe(link_section = ".bss.startup")]
static REAL_DLADDR: AtomicUsize = AtomicUsize::new(0);
#[unsafe(link_section = ".bss.startup")]
static REAL_DLADDR1: AtomicUsize = AtomicUsize::new(0);

/// The functions of libdl that we stand in front of, with the place of the real one.
pub static INTERPOSED: [(&CStr, &AtomicUsize); 4] =
    [(c"dlsym", &REAL_DLSYM), (c"dlvsym", &REAL_DLVSYM), (c"dladdr", &REAL_DLADDR), (c"dladdr1", &REAL_DLADDR1)];

/// The handle that asks for the first definition as seen by the caller.
pub const DEFAULT: *mut c_void = core::ptr::null_mut();
/// The handle that asks for the definition behind the caller.
pub const NEXT: *mut c_void = -1isize as *mut c_void;

/// Finds the real functions. May be called by any thread at any time, also before our constructor:
/// each finds these functions.
#[unsafe(link_section = ".text.startup")]
pub fn find() {
    let all_found = || INTERPOSED.iter().all(|(_, real)| real.load(Ordering::Relaxed) != 0);
    if all_found() {
        return;
    }
    // Since glibc 2.34 all of them are in libc, before that in libdl.
    for object in objects::resident(|name| is_library(name, c"libc.so.6") || is_library(name, c"libdl.so.2")) {
        for (name, real) in &INTERPOSED {
            if let Some(address) = object.defined(name) {
                real.store(address, Ordering::Relaxed);
            }
        }
        // No further than needed: the tail of the list may change under us.
        if all_found() {
            return;
        }
    }
}

/// Whether the last component of a path is `file`.
fn is_library(path: *const c_char, file: &CStr) -> bool {
    // SAFETY: the loader's name of an object is a C string.
    unsafe { elf::equals(elf::file_name(path), file) }
}

/// The real function at `place`, if libc has it.
///
/// # Safety
/// `F` is its type.
unsafe fn real<F: Copy>(place: &AtomicUsize) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    find();
    let address = place.load(Ordering::Relaxed);
    // SAFETY: a function's address, and the caller's promise about its type.
    (address != 0).then(|| unsafe { transmute_copy(&address) })
}

type Lookup = unsafe extern "C-unwind" fn(*mut c_void, *const c_char) -> *mut c_void;
type VersionedLookup = unsafe extern "C-unwind" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
type Holder = unsafe extern "C-unwind" fn(*const c_void, *mut libc::Dl_info) -> c_int;
type HolderAndMore = unsafe extern "C-unwind" fn(*const c_void, *mut libc::Dl_info, *mut *mut c_void, c_int) -> c_int;

/// The real `dlsym`, asked by us.
///
/// # Safety
/// `handle` is a pseudo handle or one that the loader gave out.
pub unsafe fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    // SAFETY: its type, and the caller's promise.
    unsafe { real::<Lookup>(&REAL_DLSYM).map_or(ptr::null_mut(), |dlsym| dlsym(handle, name)) }
}

/// The real `dlvsym`, asked by us.
///
/// # Safety
/// As for [`dlsym`]; `version` is a C string.
pub unsafe fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void {
    // SAFETY: its type, and the caller's promise.
    unsafe { real::<VersionedLookup>(&REAL_DLVSYM).map_or(ptr::null_mut(), |dlvsym| dlvsym(handle, name, version)) }
}

/// The file of the object that holds `address`.
pub fn file_of(address: usize) -> Option<*const c_char> {
    // SAFETY: all zero is a valid value, which the real function fills; it only looks at addresses.
    let info = unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        real::<Holder>(&REAL_DLADDR).filter(|dladdr| dladdr(address as _, &mut info) != 0).map(|_| info)
    };
    info.map(|info| info.dli_fname).filter(|file| !file.is_null())
}

/// The real `dladdr`, asked by us; 0 where libc has none.
///
/// # Safety
/// As the function of that name in libc.
pub unsafe fn dladdr(address: *const c_void, info: *mut libc::Dl_info) -> c_int {
    // SAFETY: its type, and the caller's promise, passed on unchanged.
    unsafe { real::<Holder>(&REAL_DLADDR).map_or(0, |dladdr| dladdr(address, info)) }
}

/// The real `dladdr1`, asked by us; 0 where libc has none.
///
/// # Safety
/// As the function of that name in libc.
pub unsafe fn dladdr1(
    address: *const c_void,
    info: *mut libc::Dl_info,
    extra: *mut *mut c_void,
    flags: c_int,
) -> c_int {
    // SAFETY: its type, and the caller's promise, passed on unchanged.
    unsafe { real::<HolderAndMore>(&REAL_DLADDR1).map_or(0, |dladdr1| dladdr1(address, info, extra, flags)) }
}
