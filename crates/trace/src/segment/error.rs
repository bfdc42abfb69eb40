//! Damages of a trace segment.

use crate::segment::format::VERSION;
use std::{fmt, io};

/// What is wrong with a part of a segment.
#[derive(Debug)]
pub enum SegmentErrorKind {
    /// It does not begin with the magic of a trace.
    NotOurs,
    /// It has a version that this program does not know.
    Version(u32),
    /// The checksum of preamble and header is wrong.
    Header,
    /// The file ends within a part of it.
    Short {
        /// Length of the part.
        wanted: u64,
        /// Bytes of it that are there.
        found: u64,
    },
    /// A block does not begin with the magic of a block.
    NoBlock,
    /// The checksum or a length of a block is wrong.
    Block,
    /// A system call failed.
    Io(io::Error),
}

/// A damaged part of a segment.
#[derive(Debug)]
pub struct SegmentError {
    /// Where the part begins.
    pub offset: u64,
    /// What is wrong with it.
    pub kind: SegmentErrorKind,
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.offset;
        match &self.kind {
            SegmentErrorKind::NotOurs => write!(f, "not an aclshim trace"),
            SegmentErrorKind::Version(found) => {
                write!(
                    f,
                    "format version {found}; this program reads versions 1 and {VERSION}, use the aclshim that wrote it"
                )
            }
            SegmentErrorKind::Header => write!(f, "the file's header was damaged after it was written"),
            SegmentErrorKind::Short { wanted, found } => {
                write!(f, "cut off at byte {at}: {found} bytes of {wanted}")
            }
            SegmentErrorKind::NoBlock => write!(f, "no block at byte {at}"),
            SegmentErrorKind::Block => {
                write!(f, "the block at byte {at} was damaged after it was written")
            }
            SegmentErrorKind::Io(error) => write!(f, "byte {at}: {error}"),
        }
    }
}

impl std::error::Error for SegmentError {}

/// A range of a segment that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins.
    pub offset: u64,
    /// Where reading continued.
    pub end: u64,
    /// Whether the file ends within a block, as after a kill of its writer.
    pub is_cut: bool,
    /// Description of the damage.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_cut, self.end - self.offset) {
            (true, _) => write!(f, "{}; what stands before was read", self.what),
            (_, bytes) => write!(f, "{}; {bytes} bytes were passed over, and the rest was read", self.what),
        }
    }
}

/// A part of `wanted` bytes of which only `found` are there.
pub(super) fn short(wanted: usize, found: usize) -> SegmentErrorKind {
    SegmentErrorKind::Short { wanted: wanted as u64, found: found as u64 }
}
