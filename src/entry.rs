//! The C surface: one exported and a few private entries for each row of the function table.
//!
//! An entry holds nothing that needs clean-up while the real function runs, so that an exception,
//! a longjmp or the end of the thread may pass through it.

use crate::count::{self, Frame};
use crate::names::COUNT;
use crate::target::{self, PRIVATE};
use aclshim_facts::Function;
use aclshim_facts::abi::{aclError, aclrtMemcpyBatchAttr, aclrtMemcpyKind, aclrtStream};
use aclshim_facts::call::*;
use core::ffi::c_void;

/// The start of a private entry.
pub struct Entry(*const ());
// SAFETY: the address of a function.
unsafe impl Sync for Entry {}

impl Entry {
    /// As a number.
    pub fn address(&self) -> usize {
        self.0 as usize
    }
}

macro_rules! entries {
    ($(#[doc = $doc:literal] fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => $role:expr;)*) => {
        /// The body of every entry; `SLOT` is where its target stands.
        #[allow(non_snake_case)]
        mod body {
            use super::*;
            $(
                /// # Safety
                /// The vendor's own conditions, passed on unchanged.
                #[inline(always)]
                pub unsafe extern "C-unwind" fn $name<const SLOT: usize>($($arg: $ty),*) -> aclError {
                    let real = target::of(Function::$name, SLOT);
                    // SAFETY: what a real library holds under this name has this signature, and
                    // the stand-in for a missing one looks at no argument.
                    let real: unsafe extern "C-unwind" fn($($ty),*) -> aclError = unsafe { core::mem::transmute(real) };
                    if !count::is_on() {
                        // SAFETY: the caller's promise, passed on unchanged.
                        return unsafe { real($($arg),*) };
                    }
                    let mut frame = Frame::new();
                    frame.begin(Function::$name);
                    // SAFETY: the caller's promise, passed on unchanged.
                    let code = unsafe { real($($arg),*) };
                    frame.end(Function::$name, code, || { let call: Call = $role; call.amount() });
                    code
                }
            )*
        }

        $(
            #[doc = $doc]
            ///
            /// # Safety
            /// The vendor's own conditions.
            #[allow(non_snake_case, clippy::too_many_arguments)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> aclError {
                // SAFETY: the caller's promise, passed on unchanged.
                unsafe { body::$name::<0>($($arg),*) }
            }
        )*

        /// The private entries, by function.
        pub static ENTRIES: [[Entry; PRIVATE]; COUNT] = [$([
            Entry(body::$name::<1> as *const ()),
            Entry(body::$name::<2> as *const ()),
            Entry(body::$name::<3> as *const ()),
            Entry(body::$name::<4> as *const ()),
        ]),*];
    };
}

aclshim_facts::api!(entries);
