//! The C surface: one exported and a few private entries for each row of the function table.
//!
//! An entry is one jump through its gate ([`crate::loader::target::Gate`]): to the real function, where calls
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

use crate::check::judgement;
use crate::harness::watch;
use crate::inject;
use crate::loader::names::COUNT;
use crate::loader::target::{self, Gate, Gates, PRIVATE};
use crate::record::frame::{Answer, Frame, Short, Words, stack};
use crate::ring::identity;
use aclshim_facts::Function;
use aclshim_facts::abi::{Word, aclError, aclrtMemcpyBatchAttr, aclrtMemcpyKind, aclrtStream};
use aclshim_facts::call::*;
use aclshim_facts::code::ACL_SUCCESS;
use core::arch::{asm, naked_asm};
use core::ffi::c_void;

/// The start of a private entry.
pub struct Entry(unsafe extern "C-unwind" fn());

impl Entry {
    /// As a number.
    pub fn address(&self) -> usize {
        self.0 as *const () as usize
    }
}

/// An entry: one jump.
#[cfg(target_arch = "x86_64")]
macro_rules! entry {
    ($function:expr, $slot:expr) => {
        naked_asm!(
            ".cfi_startproc", "endbr64", "jmp qword ptr [rip + {gates} + {offset}]", ".cfi_endproc",
            gates = sym GATES, offset = const target::offset($function, $slot))
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! entry {
    ($function:expr, $slot:expr) => {
        naked_asm!(
            ".cfi_startproc", "hint #34",
            "adrp x16, {gates} + {offset}", "ldr x16, [x16, :lo12:{gates} + {offset}]", "br x16", ".cfi_endproc",
            gates = sym GATES, offset = const target::offset($function, $slot))
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
        #[allow(non_snake_case, clippy::too_many_arguments)]
        mod bodies {
            use super::*;
            $(
                with_words!($name, caller, words, {
                    let mut words = words.into_iter();
                    $(let $arg: $ty = Word::from_word(words.next().unwrap_or_default() as u64);)*
                    let gate = &GATES[Function::$name as usize][SLOT];
                    let call: Call = $role;
                    let short = Short::of(&call).filter(|short| short.fits(gate.detour()));
                    let Some(frame) = short.and_then(|short| Frame::short(Function::$name, caller, short, gate.cursor())) else {
                        // SAFETY: the caller's promise, passed on unchanged. Something follows the call: ended by a
                        // jump, it would lay its stack arguments where the stub has its own words.
                        return unsafe {
                            let code = long::$name($($arg,)* SLOT, caller);
                            asm!("/* {0} */", in(reg) code as usize, options(nomem, nostack, preserves_flags));
                            code
                        };
                    };
                    type Real = unsafe extern "C-unwind" fn($($ty),*) -> aclError;
                    // SAFETY: what a real library holds under this name has this signature; without a detour
                    // there is one.
                    let real = unsafe { core::mem::transmute::<usize, Real>(gate.target()) };
                    // SAFETY: the caller's promise, passed on unchanged.
                    let code = unsafe { real($($arg),*) };
                    frame.end(code);
                    code
                });
            )*
            /// The same for calls that take more than one slot, or have anything else unusual about them. (The
            /// arguments come first: they are in their registers already.)
            mod long {
                use super::*;
                $(
                    #[cold]
                    #[inline(never)]
                    pub(super) unsafe extern "C-unwind" fn $name($($arg: $ty,)* slot: usize, caller: usize) -> aclError {
                        let real = target::of(Function::$name, slot, caller);
                        type Real = unsafe extern "C-unwind" fn($($ty),*) -> aclError;
                        // SAFETY: what a real library holds under this name has this signature, and the
                        // stand-in for a missing one looks at no argument.
                        let real = unsafe { core::mem::transmute::<usize, Real>(real) };
                        let call: Call = $role;
                        let mut words: Words = [0; _];
                        for (word, argument) in words.iter_mut().zip([$($arg.to_word()),*]) {
                            *word = argument;
                        }
                        // Before anything of the caller's is read: a fault from here on has a name.
                        let frame = Frame::long(Function::$name, caller, stack(), &words, &call);
                        let mut ticket = watch::begin(Function::$name, caller, stack(), &words, &frame);
                        // SAFETY: the arguments of a call that is about to be forwarded.
                        let before = unsafe { judgement::before(Function::$name, &call, &frame, ticket) };
                        ticket.go();
                        // SAFETY: as above.
                        let answer = match unsafe { before.refuse(Function::$name, &call) } {
                            Some(code) => Answer::ours(code),
                            None => {
                                // SAFETY: as above.
                                let strike = unsafe {
                                    inject::before(Function::$name, &call, caller, &frame, &before, ticket)
                                };
                                let code = match inject::instead(&strike) {
                                    Some(_) => None,
                                    // SAFETY: the caller's promise, passed on unchanged.
                                    None => Some(unsafe { real($($arg),*) }),
                                };
                                // SAFETY: it has just returned, or was not forwarded.
                                unsafe { inject::after(&strike, &call, code) }
                            }
                        };
                        let now = frame.now();
                        ticket.returned();
                        if answer.of_vendor == Some(ACL_SUCCESS) && identity::is_wanted() {
                            identity::accepted(&call, caller);
                        }
                        // SAFETY: it has just returned, or was answered in the vendor's place.
                        unsafe {
                            frame.end_long(now, answer, Function::$name, &call, &before, ticket);
                            watch::end(ticket, answer, &call, &before);
                        }
                        answer.code
                    }
                )*
            }
            pub(super) mod watched {
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
        pub static ENTRIES: [[Entry; PRIVATE]; COUNT] = [$([
            Entry(bodies::private::$name::<1>),
            Entry(bodies::private::$name::<2>),
            Entry(bodies::private::$name::<3>),
            Entry(bodies::private::$name::<4>),
        ]),*];

        /// What the entries go through, by function: the exported one first.
        pub static GATES: [Gates; COUNT] = [$([
            Gate::new(bodies::watched::$name::<0> as *const ()),
            Gate::new(bodies::watched::$name::<1> as *const ()),
            Gate::new(bodies::watched::$name::<2> as *const ()),
            Gate::new(bodies::watched::$name::<3> as *const ()),
            Gate::new(bodies::watched::$name::<4> as *const ()),
        ]),*];

        // Ten words are enough for every row.
        $(const _: () = assert!([$(stringify!($arg)),*].len() <= 10);)*
    };
}

aclshim_facts::api!(entries);
