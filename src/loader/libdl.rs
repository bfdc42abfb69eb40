//! `dlsym`, `dlvsym`, `dladdr` and `dladdr1`: the real ones, and ours in front of them.
//!
//! Ours exist because most clients of the vendor's library bind its functions by lookup. They
//! answer for the names of the function table only; everything else goes on to the real function
//! by a **tail jump**, so that the caller's return address is still the caller's:
//! `RTLD_NEXT` and `RTLD_DEFAULT` mean "as seen from there".
//!
//! Inside the shim nobody may look anything up by these names (it would land in ourselves):
//! the real ones are read from libc's own symbol table.

use crate::loader::elf;
use crate::loader::lookup::{filter, filter_versioned};
use crate::loader::objects;
use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute_copy;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

static REAL_DLSYM: AtomicUsize = AtomicUsize::new(0);
static REAL_DLVSYM: AtomicUsize = AtomicUsize::new(0);
static REAL_DLADDR: AtomicUsize = AtomicUsize::new(0);
static REAL_DLADDR1: AtomicUsize = AtomicUsize::new(0);

/// The functions of libdl that we stand in front of, with the place of the real one.
pub static INTERPOSED: [(&CStr, &AtomicUsize); 4] =
    [(c"dlsym", &REAL_DLSYM), (c"dlvsym", &REAL_DLVSYM), (c"dladdr", &REAL_DLADDR), (c"dladdr1", &REAL_DLADDR1)];

/// The handle that asks for the first definition as seen by the caller.
pub const DEFAULT: *mut c_void = core::ptr::null_mut();
/// The handle that asks for the definition behind the caller.
pub const NEXT: *mut c_void = -1isize as *mut c_void;

/// Finds the real functions. May be called by anybody at any time, also before our constructor;
/// all callers find the same.
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
    unsafe { elf::same(elf::file_name(path), file) }
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

/// Who holds an address: for one of our entries the vendor's function behind it, because
/// programs find their CANN directory that way.
///
/// # Safety
/// As the function of that name in libc.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dladdr(address: *const c_void, info: *mut libc::Dl_info) -> c_int {
    let address = crate::loader::lookup::truth(address as usize) as *const c_void;
    // SAFETY: its type, and the caller's promise, passed on unchanged.
    unsafe { real::<Holder>(&REAL_DLADDR).map_or(0, |dladdr| dladdr(address, info)) }
}

/// As [`dladdr`], with more to tell.
///
/// # Safety
/// As the function of that name in libc.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dladdr1(
    address: *const c_void,
    info: *mut libc::Dl_info,
    extra: *mut *mut c_void,
    flags: c_int,
) -> c_int {
    let address = crate::loader::lookup::truth(address as usize) as *const c_void;
    // SAFETY: its type, and the caller's promise, passed on unchanged.
    unsafe { real::<HolderAndMore>(&REAL_DLADDR1).map_or(0, |dladdr1| dladdr1(address, info, extra, flags)) }
}

// The filter's answers: 0, let the real function answer; 1, NULL; else the address to hand out.
// It gets the arguments and, behind them, the address that the caller goes on at. Where the real
// function was never found the answer is NULL.

/// Looks up a symbol: `dlsym`.
///
/// # Safety
/// As the function of that name in libc.
#[rustfmt::skip]
#[unsafe(naked)]
#[unsafe(export_name = "dlsym")]
unsafe extern "C-unwind" fn exported_dlsym(_handle: *mut c_void, _name: *const c_char) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc", "endbr64", "mov rdx, qword ptr [rsp]",
        "push rdi", "push rsi", "sub rsp, 8", ".cfi_adjust_cfa_offset 24",
        "call {filter}",
        "add rsp, 8", "pop rsi", "pop rdi", ".cfi_adjust_cfa_offset -24",
        "test rax, rax", "jz 2f",
        "cmp rax, 1", "jne 3f",
        "4:", "xor eax, eax",
        "3:", "ret",
        "2:", "mov rax, qword ptr [rip + {real}]", "test rax, rax", "jz 4b", "jmp rax", ".cfi_endproc",
        filter = sym filter, real = sym REAL_DLSYM);
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc", "hint #34", "stp x29, x30, [sp, #-32]!",
        ".cfi_def_cfa_offset 32", ".cfi_offset x29, -32", ".cfi_offset x30, -24",
        "mov x29, sp", "stp x0, x1, [sp, #16]",
        "mov x2, x30",
        "bl {filter}", "mov x9, x0",
        "ldp x0, x1, [sp, #16]", "ldp x29, x30, [sp], #32",
        ".cfi_def_cfa_offset 0", ".cfi_restore x29", ".cfi_restore x30",
        "cbz x9, 2f", "cmp x9, #1", "csel x0, xzr, x9, eq", "ret",
        "2:", "adrp x16, {real}", "ldr x16, [x16, :lo12:{real}]", "cbz x16, 3f", "br x16",
        "3:", "mov x0, xzr", "ret", ".cfi_endproc",
        filter = sym filter, real = sym REAL_DLSYM)
}

/// Looks up a symbol of a version: `dlvsym`.
///
/// # Safety
/// As the function of that name in libc.
#[rustfmt::skip]
#[unsafe(naked)]
#[unsafe(export_name = "dlvsym")]
unsafe extern "C-unwind" fn exported_dlvsym(
    _handle: *mut c_void, _name: *const c_char, _version: *const c_char,
) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc", "endbr64", "mov rcx, qword ptr [rsp]",
        "push rdi", "push rsi", "push rdx", ".cfi_adjust_cfa_offset 24",
        "call {filter}",
        "pop rdx", "pop rsi", "pop rdi", ".cfi_adjust_cfa_offset -24",
        "test rax, rax", "jz 2f",
        "cmp rax, 1", "jne 3f",
        "4:", "xor eax, eax",
        "3:", "ret",
        "2:", "mov rax, qword ptr [rip + {real}]", "test rax, rax", "jz 4b", "jmp rax", ".cfi_endproc",
        filter = sym filter_versioned, real = sym REAL_DLVSYM);
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc", "hint #34", "stp x29, x30, [sp, #-48]!",
        ".cfi_def_cfa_offset 48", ".cfi_offset x29, -48", ".cfi_offset x30, -40",
        "mov x29, sp", "stp x0, x1, [sp, #16]", "str x2, [sp, #32]",
        "mov x3, x30",
        "bl {filter}", "mov x9, x0",
        "ldr x2, [sp, #32]", "ldp x0, x1, [sp, #16]", "ldp x29, x30, [sp], #48",
        ".cfi_def_cfa_offset 0", ".cfi_restore x29", ".cfi_restore x30",
        "cbz x9, 2f", "cmp x9, #1", "csel x0, xzr, x9, eq", "ret",
        "2:", "adrp x16, {real}", "ldr x16, [x16, :lo12:{real}]", "cbz x16, 3f", "br x16",
        "3:", "mov x0, xzr", "ret", ".cfi_endproc",
        filter = sym filter_versioned, real = sym REAL_DLVSYM)
}
