//! What went wrong, and what else happened while writing, as values: a guest prints nothing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Making or opening the directory.
    Directory,
    /// Listing the directory.
    List,
    /// Making a new file.
    Create,
    /// Asking the system about a file of ours.
    Inspect,
    /// Making a line of an event: see [`crate::install`].
    Subscriber,
    /// Writing. A file size limit (RLIMIT_FSIZE) is this with EFBIG, and nothing was tried:
    /// a write beyond it is a signal that ends the host.
    Write,
}

impl Step {
    /// The step in words, as the log has it.
    pub const fn word(self) -> &'static str {
        match self {
            Step::Directory => "open directory",
            Step::List => "list directory",
            Step::Create => "create",
            Step::Inspect => "inspect",
            Step::Subscriber => "make a line",
            Step::Write => "write",
        }
    }
}

/// Why something was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What was being done.
    pub step: Step,
    /// What it was done to.
    pub path: PathBuf,
    /// What the system said.
    pub errno: i32,
}

impl Failure {
    /// A failure that the system reported.
    pub fn new(step: Step, path: &Path, error: &io::Error) -> Self {
        Self { step, path: path.to_path_buf(), errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = io::Error::from_raw_os_error(self.errno);
        write!(f, "{} {}: {said}", self.step.word(), self.path.display())
    }
}

impl std::error::Error for Failure {}

/// Failures since the last success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The first of them.
    pub first: Failure,
    /// How many there were.
    pub count: u64,
}

/// A file that was removed to stay within the budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Where it was.
    pub path: PathBuf,
    /// How long it was.
    pub bytes: u64,
}

/// Why a file was given up for a new one before it was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Another process removed it.
    Gone,
    /// Another process wrote to it or truncated it.
    Changed,
    /// A half-written block could not be taken back.
    Torn,
}

impl Why {
    /// The reason in words, as the log has it.
    pub const fn word(self) -> &'static str {
        match self {
            Why::Gone => "removed by somebody",
            Why::Changed => "changed by somebody",
            Why::Torn => "a half-written block could not be taken back",
        }
    }
}

/// A file that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Where it was.
    pub path: PathBuf,
    /// Why it was replaced.
    pub why: Why,
}

/// What happened besides the writing; the caller says it in the log. Nothing here grows without
/// bound: the lists keep the first [`Report::KEPT`], the numbers count all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first files that the budget removed.
    pub removed: Vec<Removed>,
    /// How many were removed in all.
    pub removed_files: u64,
    /// How many bytes they held.
    pub removed_bytes: u64,
    /// The first files that were given up.
    pub replaced: Vec<Replaced>,
    /// Writing works again: what had gone wrong before.
    pub mended: Option<Trouble>,
    /// By how many bytes the directory is over its budget because all that is in it is in use.
    pub over_budget: u64,
}

impl Report {
    /// How many entries a list keeps.
    pub const KEPT: usize = 64;

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn note_removed(&mut self, path: PathBuf, bytes: u64) {
        self.removed_files += 1;
        self.removed_bytes += bytes;
        if self.removed.len() < Self::KEPT {
            self.removed.push(Removed { path, bytes });
        }
    }

    pub(crate) fn note_replaced(&mut self, path: PathBuf, why: Why) {
        if self.replaced.len() < Self::KEPT {
            self.replaced.push(Replaced { path, why });
        }
    }
}
