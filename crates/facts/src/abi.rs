//! The vendor's C types as they cross the boundary, under the vendor's names.
//!
//! C integers come in as integers: an enum argument is a transparent number until somebody has
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

/// A place that a batch attribute names.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtMemLocation {
    /// The device, where `type_` says that it is one.
    pub id: u32,
    /// The kind of place, an `aclrtMemLocationType`.
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
