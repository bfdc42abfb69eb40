//! Why a file or a directory cannot be read, or not all of it.

use aclshim_trace::reader::RingFileError;
use aclshim_trace::segment::reader::{Damage, SegmentError, SegmentErrorKind};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// A file or a directory that could not be read, or not completely.
#[derive(Debug)]
pub struct FileError {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: Cause,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.cause)
    }
}

impl std::error::Error for FileError {}

/// What is wrong with a file or a directory.
#[derive(Debug)]
pub enum Cause {
    /// A directory cannot be listed.
    Directory(io::Error),
    /// A system call on a file failed.
    Io(io::Error),
    /// A ring file cannot be opened.
    RingFile(RingFileError),
    /// One ring of a ring file cannot be read.
    Ring {
        /// Its index in the file.
        number: usize,
        /// What the system says.
        error: io::Error,
    },
    /// The records of a ring file claim more slots than the file holds.
    RecordsExceedFile,
    /// The start of a trace cannot be read.
    TraceStart(SegmentError),
    /// The ring header in a trace is shorter than any version of it.
    ShortHeader,
    /// A part of a trace is damaged; the rest was read.
    Damaged(Damage),
    /// A block that was intact in the first pass cannot be read in the second.
    BlockVanished {
        /// Its first byte.
        offset: u64,
    },
}

impl Cause {
    /// Whether the file is a trace with intact blocks that `aclshim recover` can save. A trace that is cut off in its header
    /// holds none, and a newer format version needs a newer program.
    pub fn is_recoverable(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::TraceStart(SegmentError { kind: SegmentErrorKind::Header, .. }))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(error) => write!(f, "it cannot be read: {error}"),
            Self::Io(error) => error.fmt(f),
            Self::RingFile(why) => why.fmt(f),
            Self::Ring { number, error } => write!(f, "ring {number} cannot be read: {error}"),
            Self::RecordsExceedFile => {
                write!(f, "its records say that they are longer than the file: the rest was not read")
            }
            Self::TraceStart(stop) => stop.fmt(f),
            Self::ShortHeader => write!(f, "the header is too short"),
            Self::Damaged(damage) => damage.fmt(f),
            Self::BlockVanished { offset } => write!(f, "the block at byte {offset} cannot be read any more"),
        }
    }
}
