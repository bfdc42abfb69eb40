//! `dlsym`, `dlvsym`, `dladdr` and `dladdr1`: ours in front of the real ones.
//!
//! They exist because most clients of the vendor's library bind its functions by lookup. They
//! answer for the names of the function table only; everything else goes on to the real function
//! by a **tail jump**, so that the caller's return address is still the caller's:
//! `RTLD_NEXT` and `RTLD_DEFAULT` mean "as seen from there".

use crate::call::lookup::{filter, filter_versioned, real_address};
use crate::loader::libdl::{self, REAL_DLSYM, REAL_DLVSYM};
use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};

/// Who holds an address: for one of our entries the vendor's function behind it, because
/// programs find their CANN directory that way.
///
/// # Safety
/// As the function of that name in libc.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dladdr(address: *const c_void, info: *mut libc::Dl_info) -> c_int {
    let address = real_address(address as usize) as *const c_void;
    // SAFETY: the caller's promise, passed on unchanged.
    unsafe { libdl::dladdr(address, info) }
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
    let address = real_address(address as usize) as *const c_void;
    // SAFETY: the caller's promise, passed on unchanged.
    unsafe { libdl::dladdr1(address, info, extra, flags) }
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
