//! Opening of ring files: what is checked before anything is read, and the copy of a header.

use crate::origin::header_of;
use crate::ring::layout::{Header, MAGIC, VERSION};
use crate::sync::{Ordering, fence};
use crate::system::clock::Moment;
use crate::version1;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Why a ring file cannot be opened.
#[derive(Debug)]
pub enum RingFileError {
    /// The file is not one of ours, or not finished.
    NotOurs,
    /// The file is of a version that this program does not know.
    Version(u32),
    /// The file ends too early: its length, and that of a header.
    Short(u64, usize),
    /// Another drain has locked it.
    Locked,
    /// A system call failed.
    Io(io::Error),
}

impl fmt::Display for RingFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingFileError::NotOurs => write!(f, "not an aclshim file"),
            RingFileError::Version(found) => {
                write!(
                    f,
                    "format version {found}; this program reads versions 1 and {VERSION}, use the aclshim that wrote it"
                )
            }
            RingFileError::Short(len, header) => write!(f, "{len} bytes long, expected {header} or more"),
            RingFileError::Locked => write!(f, "another drain has it"),
            RingFileError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for RingFileError {}

/// Number of attempts to copy something that changes during the copy.
pub(super) const TRIES: usize = 1000;
/// Number of slots beyond which a header is rejected: no process has as many.
const MOST_SLOTS: u32 = 1 << 20;
/// Number of rings beyond which a header is rejected.
pub const MOST_RINGS: u32 = crate::ring::layout::RINGS;

/// Opens a ring file and checks magic, version and length; returns it with its version.
pub(crate) fn open_checked(path: &Path, options: &mut OpenOptions) -> Result<(File, u32), RingFileError> {
    // A FIFO in a directory that others may write to must not stop us.
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    let file = file.map_err(RingFileError::Io)?;
    let about = file.metadata().map_err(RingFileError::Io)?;
    let mut start = [0u8; 12];
    if !about.is_file() || file.read_exact_at(&mut start, 0).is_err() || start[..8] != MAGIC.to_le_bytes() {
        return Err(RingFileError::NotOurs);
    }
    let version = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
    if version != VERSION && version != version1::VERSION {
        return Err(RingFileError::Version(version));
    }
    let header = header_size(version);
    if about.size() < header as u64 {
        return Err(RingFileError::Short(about.size(), header));
    }
    Ok((file, version))
}

/// Size of the header of a ring file of a known version.
pub(crate) fn header_size(version: u32) -> usize {
    if version == version1::VERSION { version1::HEADER } else { size_of::<Header>() }
}

/// Number of slots of each ring, if the header is plausible.
pub(crate) fn slots_of(header: &Header) -> Result<usize, RingFileError> {
    let slots = header.slots;
    let is_plausible =
        slots.is_power_of_two() && slots <= MOST_SLOTS && header.stride >= crate::ring::layout::stride(slots);
    if is_plausible { Ok(slots as usize) } else { Err(RingFileError::NotOurs) }
}

/// Copies a header of a known version beside its process and its drain, which may write to it.
pub(crate) fn read_header(file: &File, version: u32) -> Result<Box<Header>, RingFileError> {
    let copy = || {
        let mut bytes = vec![0; header_size(version)];
        file.read_exact_at(&mut bytes, 0).map_err(RingFileError::Io)?;
        Ok(if version == version1::VERSION { version1::upgrade_header(&bytes) } else { bytes })
    };
    let later = offset_of!(Header, later)..offset_of!(Header, later) + size_of::<Moment>();
    let mut before = copy()?;
    fence(Ordering::Acquire);
    let mut header = copy()?;
    for _ in 0..TRIES {
        if before[later.clone()] == header[later.clone()] {
            break;
        }
        fence(Ordering::Acquire);
        before = std::mem::replace(&mut header, copy()?);
    }
    if before[later.clone()] != header[later.clone()] {
        header[later].fill(0);
    }
    // The first byte of such a text is stored last: one that was there before the second copy says that the text is whole.
    for text in [offset_of!(Header, product), offset_of!(Header, cann), offset_of!(Header, maps)] {
        if before[text] == 0 {
            header[text] = 0;
        }
    }
    header_of(&header).ok_or(RingFileError::NotOurs)
}
