//! The table's names for C, and the search for one of them.

use crate::guest::state::is_own;
use aclshim_core::elf::{self, Object, gnu_hash};
use aclshim_facts::Function;
use core::ffi::{CStr, c_char};

macro_rules! c_names {
    ($(#[$doc:meta] fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => $role:expr $(, $support:ident)?;)*) => {
        /// The name of each function, in the order of the table.
        pub static NAMES: [&CStr; COUNT] = [$(
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name holds no NUL"), // while compiling
            }
        ),*];
    };
}

/// How many functions there are.
pub const COUNT: usize = Function::ALL.len();
aclshim_facts::api!(c_names);

/// The function that the C string at `name` names.
///
/// # Safety
/// `name` is a C string.
#[unsafe(link_section = ".text.startup")]
pub unsafe fn function(name: *const c_char) -> Option<Function> {
    // SAFETY: the caller's promise, passed on unchanged.
    Function::ALL.iter().copied().find(|&function| unsafe { elf::equals(name, NAMES[function as usize]) })
}

/// The address of the real function of the table that an object defines: not one of ours.
#[unsafe(link_section = ".text.startup")]
pub fn real_in(object: &Object, function: usize) -> Option<usize> {
    /// The hash of each function's name.
    static HASHES: [u32; COUNT] = {
        let mut hashes = [0; COUNT];
        let mut at = 0;
        while at < COUNT {
            hashes[at] = gnu_hash(NAMES[at]);
            at += 1;
        }
        hashes
    };
    object.defined_by(NAMES[function], HASHES[function]).filter(|&address| !is_own(address))
}
