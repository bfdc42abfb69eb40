//! The C surface: one exported and a few private entries for each row of the function table.
//!
//! An entry is a stub in assembly in front of a body in Rust. The stub makes the caller's return
//! address an argument of the body: it calls the body with the argument registers as they came,
//! and what it has pushed, two words of which the second is that address, lies where the body's
//! stack arguments begin, just before the caller's own. So the body takes every function's
//! arguments as words: those in registers, the stub's two, those on the stack.
//!
//! (The body must not write to its stack arguments, though C lets it: the stub returns by that word.
//! A compiler has no reason to, and none does.)
//!
//! Neither holds anything that needs clean-up while the real function runs: an exception, a
//! longjmp or the end of the thread may pass through.

use crate::boot::{self, Standing};
use crate::count::{self, Frame};
use crate::names::COUNT;
use crate::target::{self, PRIVATE};
use aclshim_facts::Function;
use aclshim_facts::abi::{aclError, aclrtMemcpyBatchAttr, aclrtMemcpyKind, aclrtStream};
use aclshim_facts::call::*;
use core::arch::naked_asm;
use core::ffi::c_void;

/// The start of a private entry.
pub struct Entry(unsafe extern "C-unwind" fn());

impl Entry {
    /// As a number.
    pub fn address(&self) -> usize {
        self.0 as *const () as usize
    }
}

/// An argument as it comes in a register or in a word of the stack; narrow ones leave the upper
/// half undefined.
trait Word {
    fn from_word(word: usize) -> Self;
}

impl Word for usize {
    #[inline(always)]
    fn from_word(word: usize) -> Self {
        word
    }
}

impl Word for i32 {
    #[inline(always)]
    fn from_word(word: usize) -> Self {
        word as i32
    }
}

impl Word for u32 {
    #[inline(always)]
    fn from_word(word: usize) -> Self {
        word as u32
    }
}

impl Word for aclrtMemcpyKind {
    #[inline(always)]
    fn from_word(word: usize) -> Self {
        Self(word as i32)
    }
}

impl<T> Word for *mut T {
    #[inline(always)]
    fn from_word(word: usize) -> Self {
        word as *mut T
    }
}

impl<T> Word for *const T {
    #[inline(always)]
    fn from_word(word: usize) -> Self {
        word as *const T
    }
}

/// The stub in front of `$body`. Where calls are only forwarded and the target is known, it jumps
/// there and is gone.
#[cfg(target_arch = "x86_64")]
macro_rules! stub {
    ($body:path, $function:expr, $slot:expr) => {
        naked_asm!(
            ".cfi_startproc", "endbr64",
            "cmp byte ptr [rip + {standing}], {off}", "jb 2f",
            "mov rax, qword ptr [rip + {targets} + {offset}]", "test rax, rax", "jz 2f",
            "jmp rax",
            "2:", "sub rsp, 8", ".cfi_adjust_cfa_offset 8",
            "call {body}",
            "add rsp, 8", ".cfi_adjust_cfa_offset -8",
            "ret", ".cfi_endproc",
            standing = sym boot::STANDING, off = const Standing::Off as u8,
            targets = sym target::TARGETS, offset = const target::offset($function, $slot),
            body = sym $body)
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! stub {
    ($body:path, $function:expr, $slot:expr) => {
        naked_asm!(
            ".cfi_startproc", "hint #34",
            "adrp x16, {standing}", "ldrb w16, [x16, :lo12:{standing}]", "cmp w16, #{off}", "b.lo 2f",
            "adrp x16, {targets} + {offset}", "ldr x16, [x16, :lo12:{targets} + {offset}]", "cbz x16, 2f",
            "br x16",
            "2:", "stp x29, x30, [sp, #-16]!",
            ".cfi_def_cfa_offset 16", ".cfi_offset x29, -16", ".cfi_offset x30, -8",
            "mov x29, sp",
            "bl {body}",
            "ldp x29, x30, [sp], #16", ".cfi_def_cfa_offset 0", ".cfi_restore x29", ".cfi_restore x30",
            "ret", ".cfi_endproc",
            standing = sym boot::STANDING, off = const Standing::Off as u8,
            targets = sym target::TARGETS, offset = const target::offset($function, $slot),
            body = sym $body)
    };
}

/// A body: the words of the arguments, ten at most, and the caller between those that come in
/// registers and those that come on the stack. What a function has no argument for is never looked at.
macro_rules! body {
    ([$($register:ident)*] [$($stack:ident)*] $name:ident, $caller:ident, $words:ident, $work:block) => {
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C-unwind" fn $name<const SLOT: usize>(
            $($register: usize,)* _: usize, $caller: usize, $($stack: usize),*
        ) -> aclError {
            let $words = [$($register,)* $($stack),*];
            $work
        }
    };
}

/// Calls `body` with the words as this processor divides them.
#[cfg(target_arch = "x86_64")]
macro_rules! with_words {
    ($($rest:tt)*) => { body! { [w0 w1 w2 w3 w4 w5] [w6 w7 w8 w9] $($rest)* } };
}
#[cfg(target_arch = "aarch64")]
macro_rules! with_words {
    ($($rest:tt)*) => { body! { [w0 w1 w2 w3 w4 w5 w6 w7] [w8 w9] $($rest)* } };
}

macro_rules! entries {
    ($(#[doc = $doc:literal] fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => $role:expr;)*) => {
        /// What every entry does; `SLOT` is where its target stands.
        #[allow(non_snake_case)]
        mod bodies {
            use super::*;
            $(
                with_words!($name, caller, words, {
                    let mut words = words.into_iter();
                    $(let $arg: $ty = Word::from_word(words.next().unwrap_or_default());)*
                    let real = target::of(Function::$name, SLOT);
                    // SAFETY: what a real library holds under this name has this signature, and
                    // the stand-in for a missing one looks at no argument.
                    let real: unsafe extern "C-unwind" fn($($ty),*) -> aclError = unsafe { core::mem::transmute(real) };
                    if !count::is_on() {
                        // SAFETY: the caller's promise, passed on unchanged.
                        return unsafe { real($($arg),*) };
                    }
                    let mut frame = Frame::new();
                    frame.begin(Function::$name, caller);
                    // SAFETY: the caller's promise, passed on unchanged.
                    let code = unsafe { real($($arg),*) };
                    frame.end(Function::$name, code, || { let call: Call = $role; call.amount() });
                    code
                });
            )*
            pub(super) mod private {
                use super::*;
                $(
                    #[unsafe(naked)]
                    pub unsafe extern "C-unwind" fn $name<const SLOT: usize>() {
                        stub!(super::$name::<SLOT>, Function::$name, SLOT)
                    }
                )*
            }
            pub(super) mod exported {
                use super::*;
                $(
                    #[doc = $doc]
                    #[unsafe(naked)]
                    #[unsafe(no_mangle)]
                    unsafe extern "C-unwind" fn $name() {
                        stub!(super::$name::<0>, Function::$name, 0)
                    }
                )*
            }
        }

        /// The private entries, by function.
        pub static ENTRIES: [[Entry; PRIVATE]; COUNT] = [$([
            Entry(bodies::private::$name::<1>),
            Entry(bodies::private::$name::<2>),
            Entry(bodies::private::$name::<3>),
            Entry(bodies::private::$name::<4>),
        ]),*];

        // Ten words are enough for every row.
        $(const _: () = assert!([$(stringify!($arg)),*].len() <= 10);)*
    };
}

aclshim_facts::api!(entries);
