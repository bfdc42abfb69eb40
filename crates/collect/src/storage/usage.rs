//! Running total of the bytes that one user's traces and logs take in a directory.
//!
//! The total stands in a small file beside them, `.aclshim-usage-UID`, so that a new file costs the same however
//! many there are: without it, each process would have to look through all files of those before it.
//!
//! The total is an estimate that is kept above the truth: a writer adds what its file may grow to before it needs the
//! total again, and nothing is given back. When it says that the budget is reached, the directory is looked through
//! once, and the total is exact again. It decides only *when* that is done; what is removed is decided by what the
//! directory holds. So a total that is wrong, because a process was killed, or files were removed by hand, or somebody
//! has written to it, costs one look too many, or comes one look too late.

use crate::storage::directory::Directory;
use aclshim_trace::segment::format::checksum;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::time::Duration;

pub(super) const MAGIC: [u8; 8] = *b"ACLUSAGE";
/// Magic, total, limit of the next look and checksum, eight bytes each.
const RECORD: usize = 32;
/// How often the lock is tried. The holder needs microseconds, unless it is looking through the directory or was
/// stopped; this thread waits for neither.
const TRIES: u32 = 20;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_micros(100);

/// What the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Bytes of all files, at least.
    pub total: u64,
    /// A look found nothing that could be removed: until the total is this high, another one is not worth its cost.
    pub retry_above: u64,
}

impl Record {
    pub(super) fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.total.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.retry_above.to_le_bytes());
        let sum = checksum(&bytes, &[]);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD]) -> Option<Self> {
        let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let record = Self { total: word(8)?, retry_above: word(16)? };
        (record.to_bytes() == *bytes).then_some(record)
    }
}

/// Why the total cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Another process holds the lock: it looks through the directory, most likely.
    Busy,
    /// The file cannot be made or opened, or is not one of ours.
    Foreign,
}

/// The open and locked file.
#[derive(Debug)]
pub(crate) struct Usage(File);

impl Usage {
    /// Opens the file of our own user, which is made if it is missing, and locks it.
    pub fn open(directory: &Directory) -> Result<Self, Unusable> {
        // SAFETY: asks for a number; it cannot fail.
        let me = unsafe { libc::geteuid() };
        let name = OsString::from(format!(".aclshim-usage-{me}"));
        let file = directory.open_at(&name, libc::O_RDWR | libc::O_CREAT).map_err(|_| Unusable::Foreign)?;
        let about = file.metadata().map_err(|_| Unusable::Foreign)?;
        // Where others may write to the directory, they can put another file of ours there, by a link or a new name.
        let is_ours = about.is_file() && about.uid() == me && about.nlink() == 1;
        let is_fresh = about.len() == 0;
        if !is_ours || !is_fresh && !begins_as_ours(&file) {
            return Err(Unusable::Foreign);
        }
        lock(&file)?;
        if is_fresh {
            // The umask may have taken the owner's own rights away.
            let _ = file.set_permissions(Permissions::from_mode(0o600));
        }
        Ok(Self(file))
    }

    /// The recorded total; `None` if no process has looked through the directory yet, or the record is damaged.
    pub fn read(&self) -> Option<Record> {
        let mut bytes = [0; RECORD];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        Record::from_bytes(&bytes)
    }

    /// Writes a record. Where that fails, the file must not go on saying what no longer holds.
    pub fn write(&self, record: Record) {
        if self.0.write_all_at(&record.to_bytes(), 0).is_err() {
            let _ = self.0.set_len(0);
        }
    }

    /// Adds to the total, if there is one.
    pub fn add(&self, bytes: u64) {
        if let Some(record) = self.read() {
            self.write(Record { total: record.total.saturating_add(bytes), ..record });
        }
    }
}

fn begins_as_ours(file: &File) -> bool {
    let mut magic = [0; MAGIC.len()];
    file.read_exact_at(&mut magic, 0).is_ok() && magic == MAGIC
}

/// Locks the file until it is closed. A file system without locks grants all: there an update may be lost, and no trace
/// is ever removed, since none can be shown to be free.
fn lock(file: &File) -> Result<(), Unusable> {
    for _ in 0..TRIES {
        // SAFETY: an open descriptor of ours.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(());
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EWOULDBLOCK | libc::EINTR) => std::thread::sleep(PAUSE),
            _ => return Ok(()),
        }
    }
    Err(Unusable::Busy)
}

/// What a file may grow to before its writer adds to the total again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// The length at which the total is updated.
    pub until: u64,
    /// The part of it that is in the total. Less than `until` if the total could not be had.
    pub counted: u64,
}

impl Share {
    /// Takes note that the file has `bytes` bytes. The share doubles each time, so a file of any length tells the total
    /// a few times.
    pub fn grow(&mut self, directory: impl FnOnce() -> Option<Directory>, bytes: u64) {
        if bytes <= self.until {
            return;
        }
        self.until = bytes.checked_next_power_of_two().unwrap_or(u64::MAX);
        if let Some(usage) = directory().and_then(|directory| Usage::open(&directory).ok()) {
            usage.add(self.until - self.counted);
            self.counted = self.until;
        }
    }
}
