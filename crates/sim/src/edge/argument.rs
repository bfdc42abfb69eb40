//! How an argument is read and a result is written at the C edge.

use super::error::{INVALID_PARAM, Outcome, check};
use std::ffi::c_void;

/// Makes exports of the vendor's name whose body runs inside `error::answer`.
macro_rules! exports {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) => $body:expr;)*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name($($arg: $type),*) -> i32 {
            $crate::edge::error::answer(stringify!($name), || $body)
        }
    )*};
}
pub(crate) use exports;

/// The address in `pointer`, or 100000 if it is NULL.
pub fn required<T>(pointer: *const T, name: &str) -> Outcome<usize> {
    check(!pointer.is_null(), INVALID_PARAM, || format!("{name} must not be NULL"))?;
    Ok(pointer.addr())
}

/// 100000 unless `value` is greater than 0.
pub fn positive(value: usize, name: &str) -> Outcome {
    check(value > 0, INVALID_PARAM, || format!("{name}=0 must be greater than 0"))
}

/// Writes a result for the caller; 100000 if `target` is NULL.
pub fn put<T>(target: *mut T, name: &str, value: T) -> Outcome {
    required(target, name)?;
    // SAFETY: the caller's promise: a target that is not NULL may be written.
    unsafe { target.write_unaligned(value) };
    Ok(())
}

/// Entry `index` of an array the caller gave.
pub fn entry<T: Copy>(array: *const T, index: usize) -> T {
    // SAFETY: the caller's promise, as the vendor takes it: the array has an entry at every index its counts name.
    unsafe { array.wrapping_add(index).read_unaligned() }
}

/// An address as the pointer the caller knows.
pub fn pointer(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}
