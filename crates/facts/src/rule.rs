//! A rule of the rulebook, and what it says of a call.
//!
//! A rule is a pure function of a call and of what is known of its world. It holds no text of a particular call: a
//! finding is a few numbers, made without a heap, and whoever reads it makes the sentence from the rule and the call.

use crate::abi::{aclError, aclrtMemcpyBatchAttr};
use crate::call::Call;
use crate::functions::Function;
use crate::world::World;
use core::ffi::c_void;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Would be refused on another product or release.
    Portability,
    /// Correct, but slow.
    Perf,
    /// Documented, but not enforced by this runtime.
    Violation,
    /// The vendor refuses the call.
    Error,
}

/// Where a rule stands written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A page of the vendor's documents.
    Doc(&'static str),
    /// The vendor's header.
    Header(&'static str),
    /// The runtime's public source.
    Runtime(&'static str),
    /// Seen when the runtime was run.
    Observed(&'static str),
}

/// What a rule looks at.
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

/// The arrays of a batch; `None` is one that must not be read, or was not.
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

/// What a rule found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which argument of the function, by its position.
    pub argument: u8,
    /// Which item of a batch, or entry of an array.
    pub index: Option<usize>,
    /// How bad it is here.
    pub severity: Severity,
    /// What the vendor returns, if it refuses the call for this.
    pub code: aclError,
    /// What the vendor writes to `failIndex` then, if anything.
    pub fail_index: Option<usize>,
}

/// What the vendor is expected to do with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// It returns 0.
    Accepted,
    /// It refuses the call.
    Refused {
        /// The rule that it refuses it for, by its position in [`crate::rules::RULES`].
        rule: usize,
        /// What it returns.
        code: aclError,
        /// What it writes to `failIndex`, if it writes there.
        fail_index: Option<usize>,
    },
    /// Too little is known.
    Unknown,
}
