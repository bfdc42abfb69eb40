//! The vendor's C types as they cross the boundary, under the vendor's names.
//!
//! C integers come in as integers: an enum argument is a transparent number until a rule has
//! looked at it, because a program may pass any value.
#![allow(non_camel_case_types, non_snake_case)]

use core::ffi::c_void;

/// What every call returns; 0 is success.
pub type aclError = i32;

/// A stream handle. NULL is the context's default stream.
pub type aclrtStream = *mut c_void;

/// The direction that the caller names for a copy; any number may come in.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct aclrtMemcpyKind(pub i32);

/// The vendor's names of the kinds, without `ACL_MEMCPY_`.
pub const KINDS: [&str; 8] = [
    "HOST_TO_HOST",
    "HOST_TO_DEVICE",
    "DEVICE_TO_HOST",
    "DEVICE_TO_DEVICE",
    "DEFAULT",
    "HOST_TO_BUF_TO_DEVICE",
    "INNER_DEVICE_TO_DEVICE",
    "INTER_DEVICE_TO_DEVICE",
];

/// `ACL_MEMCPY_HOST_TO_HOST`
pub const HOST_TO_HOST: i32 = 0;
/// `ACL_MEMCPY_HOST_TO_DEVICE`
pub const HOST_TO_DEVICE: i32 = 1;
/// `ACL_MEMCPY_DEVICE_TO_HOST`
pub const DEVICE_TO_HOST: i32 = 2;
/// `ACL_MEMCPY_DEVICE_TO_DEVICE`
pub const DEVICE_TO_DEVICE: i32 = 3;
/// `ACL_MEMCPY_DEFAULT`
pub const DEFAULT: i32 = 4;
/// `ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE`
pub const HOST_TO_BUF_TO_DEVICE: i32 = 5;
/// `ACL_MEMCPY_INNER_DEVICE_TO_DEVICE`
pub const INNER_DEVICE_TO_DEVICE: i32 = 6;
/// `ACL_MEMCPY_INTER_DEVICE_TO_DEVICE`
pub const INTER_DEVICE_TO_DEVICE: i32 = 7;

impl aclrtMemcpyKind {
    /// Its name, if it is one that the vendor knows.
    pub fn name(self) -> Option<&'static str> {
        KINDS.get(usize::try_from(self.0).ok()?).copied()
    }
}

/// A memory location that a batch attribute names.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtMemLocation {
    /// The device, where `type_` says that it is one.
    pub id: u32,
    /// Its type, an `aclrtMemLocationType`.
    pub type_: i32,
}

/// The attributes of a range of batch items.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtMemcpyBatchAttr {
    /// Where the destinations are.
    pub dstLoc: aclrtMemLocation,
    /// Where the sources are.
    pub srcLoc: aclrtMemLocation,
    /// Reserved; must be zero.
    pub rsv: [u8; 16],
}

/// How C spells a type of the function table: for documents, and for the test that holds our
/// signatures to the vendor's header.
pub trait CType {
    /// The C spelling.
    const SPELLING: &'static str;
}

macro_rules! spellings {
    ($($rust:ty => $c:literal;)*) => { $(impl CType for $rust { const SPELLING: &'static str = $c; })* };
}

spellings! {
    i32 => "int32_t";
    u32 => "uint32_t";
    usize => "size_t";
    *mut usize => "size_t *";
    *mut c_void => "void *";
    *const c_void => "const void *";
    *mut *mut c_void => "void **";
    *mut *const c_void => "const void **";
    aclrtMemcpyKind => "aclrtMemcpyKind";
    *mut aclrtMemcpyBatchAttr => "aclrtMemcpyBatchAttr *";
}

const _: () = {
    assert!(size_of::<aclrtMemcpyBatchAttr>() == 32 && align_of::<aclrtMemcpyBatchAttr>() == 4);
    assert!(core::mem::offset_of!(aclrtMemcpyBatchAttr, rsv) == 16);
};

/// An argument as it comes in a register or in a word of the stack; narrow ones leave the upper
/// half undefined there, and are extended by their sign in a record.
pub trait Word: Copy {
    /// From a word.
    fn from_word(word: u64) -> Self;
    /// As a word.
    fn to_word(self) -> u64;
}

macro_rules! number_words {
    ($($number:ty)*) => { $(
        impl Word for $number {
            #[inline(always)]
            fn from_word(word: u64) -> Self {
                word as Self
            }
            #[inline(always)]
            fn to_word(self) -> u64 {
                self as i64 as u64
            }
        }
    )* };
}
number_words!(usize i32 u32);

impl Word for aclrtMemcpyKind {
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self(word as i32)
    }
    #[inline(always)]
    fn to_word(self) -> u64 {
        self.0.to_word()
    }
}

impl<T> Word for *mut T {
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        word as *mut T
    }
    #[inline(always)]
    fn to_word(self) -> u64 {
        self as u64
    }
}

impl<T> Word for *const T {
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        word as *const T
    }
    #[inline(always)]
    fn to_word(self) -> u64 {
        self as u64
    }
}
