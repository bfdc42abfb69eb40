//! What a rule looks at: a call in its world.

use crate::call::Call;
use crate::call::functions::Function;
use crate::rules::world::World;
use crate::vendor::abi::aclrtMemcpyBatchAttr;
use core::ffi::c_void;

/// A call in its world.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The function called.
    pub function: Function,
    /// Its arguments.
    pub call: Call,
    /// The arrays of a batch, as far as they may be read.
    pub arrays: Arrays<'a>,
    /// What is known of the world.
    pub world: World<'a>,
}

/// The arrays of a batch; `None` for an array that must not be read, or was not.
#[derive(Clone, Copy, Default)]
#[allow(missing_docs)] // the vendor's arguments by role
pub struct Arrays<'a> {
    pub dsts: Option<&'a [*mut c_void]>,
    pub dst_maxs: Option<&'a [usize]>,
    pub srcs: Option<&'a [*mut c_void]>,
    pub sizes: Option<&'a [usize]>,
    pub attrs: Option<&'a [aclrtMemcpyBatchAttr]>,
    pub attr_indexes: Option<&'a [usize]>,
}
