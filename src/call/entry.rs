//! The C surface: one exported and a few private entries for each row of the function table.
//!
//! An entry is one jump through its gate ([`crate::loader::gate::Gate`]): to the real function, where calls
//! are only forwarded, else to a stub in assembly in front of a body in Rust. The stub makes the
//! caller's return address an argument of the body: it calls the body with the argument registers as
//! they came, and what it has pushed, two words of which the second is that address, lies where the
//! body's stack arguments begin, just before the caller's own. So the body takes every function's
//! arguments as words: those in registers, the stub's two, those on the stack.
//!
//! (The body must not write to its stack arguments, though C lets it: the stub returns by that word.
//! A compiler has one reason to, a call that it turns into a jump; so none is the last thing in a body.)
//!
//! Neither holds anything that needs clean-up while the real function runs: an exception, a
//! longjmp or the end of the thread may pass through.

use crate::boot;
use crate::call::slow_path;
use crate::guest::edge;
use crate::loader::gate::{self, Entry, Gate, Gates, PRIVATE, Table};
use crate::loader::names::COUNT;
use crate::loader::target;
use crate::record::frame::{Frame, OneSlotCall, Words};
use aclshim_facts::Function;
use aclshim_facts::abi::{Word, aclError, aclrtMemcpyBatchAttr, aclrtMemcpyKind, aclrtStream};
use aclshim_facts::call::*;
use core::arch::{asm, naked_asm};
use core::ffi::c_void;

/// An entry: one jump.
#[cfg(target_arch = "x86_64")]
macro_rules! entry {
    ($function:expr, $slot:expr) => {
        naked_asm!(
            ".cfi_startproc", "endbr64", "jmp qword ptr [rip + {gates} + {offset}]", ".cfi_endproc",
            gates = sym GATES, offset = const gate::offset($function, $slot))
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! entry {
    ($function:expr, $slot:expr) => {
        naked_asm!(
            ".cfi_startproc", "hint #34",
            "adrp x16, {gates} + {offset}", "ldr x16, [x16, :lo12:{gates} + {offset}]", "br x16", ".cfi_endproc",
            gates = sym GATES, offset = const gate::offset($function, $slot))
    };
}

/// The stub in front of `$body`.
#[cfg(target_arch = "x86_64")]
macro_rules! stub {
    ($body:path) => {
        naked_asm!(
            ".cfi_startproc", "endbr64",
            "sub rsp, 8", ".cfi_adjust_cfa_offset 8",
            "call {body}",
            "add rsp, 8", ".cfi_adjust_cfa_offset -8",
            "ret", ".cfi_endproc",
            body = sym $body)
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! stub {
    ($body:path) => {
        naked_asm!(
            ".cfi_startproc", "hint #34",
            "stp x29, x30, [sp, #-16]!",
            ".cfi_def_cfa_offset 16", ".cfi_offset x29, -16", ".cfi_offset x30, -8",
            "mov x29, sp",
            "bl {body}",
            "ldp x29, x30, [sp], #16", ".cfi_def_cfa_offset 0", ".cfi_restore x29", ".cfi_restore x30",
            "ret", ".cfi_endproc",
            body = sym $body)
    };
}

/// A body: the words of the arguments, ten at most, and the caller between those that come in
/// registers and those that come on the stack. What a function has no argument for is never looked at.
macro_rules! body {
    ([$($register:ident)*] [$($stack:ident)*] $name:ident, $caller:ident, $words:ident, $work:block) => {
        #[allow(clippy::too_many_arguments)]
        #[unsafe(link_section = ".text.startup")] // in memory when the first call comes
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
    ($(#[doc = $doc:literal] fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => $role:expr $(, $support:ident)?;)*) => {
        /// What every entry does; `SLOT` is where its target stands.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod bodies {
            use super::*;
            $(
                with_words!($name, caller, words, {
                    let mut words = words.into_iter();
                    $(let $arg: $ty = Word::from_word(words.next().unwrap_or_default() as u64);)*
                    let gate = &GATES[Function::$name as usize][SLOT];
                    let call: Call = $role;
                    let short = OneSlotCall::of(&call).filter(|short| short.fits(gate.slow_path()));
                    let Some(frame) = short.and_then(|short| Frame::begin_fast(Function::$name, caller, short, gate.cursor())) else {
                        // SAFETY: the caller's promise, passed on unchanged. Something follows the call: ended by a
                        // jump, it would lay its stack arguments where the stub has its own words.
                        return unsafe {
                            let code = slow::$name($($arg,)* SLOT, caller);
                            asm!("/* {0} */", in(reg) code as usize, options(nomem, nostack, preserves_flags));
                            code
                        };
                    };
                    type Real = unsafe extern "C-unwind" fn($($ty),*) -> aclError;
                    // SAFETY: what a real library holds under this name has this signature; without a reason for the slow path
                    // there is one.
                    let real = unsafe { core::mem::transmute::<usize, Real>(gate.target()) };
                    // SAFETY: the caller's promise, passed on unchanged.
                    let code = unsafe { real($($arg),*) };
                    frame.end_fast(code);
                    code
                });
            )*
            /// What an entry does with a call that takes more than one slot, or has anything else unusual about it.
            /// (The arguments come first: they are in their registers already.)
            mod slow {
                use super::*;
                $(
                    #[cold]
                    #[inline(never)]
                    #[unsafe(link_section = ".text.startup")] // in memory when the first call comes
                    pub(super) unsafe extern "C-unwind" fn $name($($arg: $ty,)* slot: usize, caller: usize) -> aclError {
                        let gate = &GATES[Function::$name as usize][slot];
                        type Real = unsafe extern "C-unwind" fn($($ty),*) -> aclError;
                        // SAFETY: what a real library holds under this name has this signature, and the
                        // stand-in for a missing one looks at no argument.
                        let real = unsafe {
                            core::mem::transmute::<usize, Real>(target(gate, Function::$name, slot, caller))
                        };
                        let call: Call = $role;
                        let mut words: Words = [0; _];
                        for (word, argument) in words.iter_mut().zip([$($arg.to_word()),*]) {
                            *word = argument;
                        }
                        // SAFETY: the caller's promise, passed on unchanged.
                        unsafe { slow_path::run(Function::$name, caller, &words, &call, || real($($arg),*)) }
                    }
                )*
            }
            pub(super) mod stubs {
                use super::*;
                $(
                    #[unsafe(naked)]
                    pub unsafe extern "C-unwind" fn $name<const SLOT: usize>() {
                        stub!(super::$name::<SLOT>)
                    }
                )*
            }
            pub(super) mod private {
                use super::*;
                $(
                    #[unsafe(naked)]
                    pub unsafe extern "C-unwind" fn $name<const SLOT: usize>() {
                        entry!(Function::$name, SLOT)
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
                        entry!(Function::$name, 0)
                    }
                )*
            }
        }

        /// The private entries, by function.
        static ENTRIES: [[Entry; PRIVATE]; COUNT] = [$([
            Entry(bodies::private::$name::<1>),
            Entry(bodies::private::$name::<2>),
            Entry(bodies::private::$name::<3>),
            Entry(bodies::private::$name::<4>),
        ]),*];

        /// What the entries go through, by function: the exported one first.
        static GATES: [Gates; COUNT] = [$([
            Gate::new(bodies::stubs::$name::<0> as *const ()),
            Gate::new(bodies::stubs::$name::<1> as *const ()),
            Gate::new(bodies::stubs::$name::<2> as *const ()),
            Gate::new(bodies::stubs::$name::<3> as *const ()),
            Gate::new(bodies::stubs::$name::<4> as *const ()),
        ]),*];

        // Ten words are enough for every row.
        $(const _: () = assert!([$(stringify!($arg)),*].len() <= 10);)*
    };
}

aclshim_facts::api!(entries);

/// All of them, for the modules below.
pub static TABLE: Table = Table { gates: &GATES, entries: &ENTRIES };

/// The real function behind the entry of that gate, for a call from `caller`; never 0.
#[inline(always)]
fn target(gate: &Gate, function: Function, slot: usize, caller: usize) -> usize {
    target::known_to(gate, function as usize, slot).unwrap_or_else(|| resolve(function, caller))
}

/// A call comes whose target is not known: the shim may not have started either.
#[cold]
#[inline(never)]
fn resolve(function: Function, caller: usize) -> usize {
    if !boot::is_done() {
        edge::with_signals_blocked(|| boot::ensure(&TABLE));
    }
    target::resolve(function, caller)
}
