//! The ring file of a process, mapped by a drain.

use crate::reader::opening::{MOST_RINGS, RingFileError, header_size, open_checked, read_header, slots_of};
use crate::reader::view::Ring;
use crate::record::slot::Slot;
use crate::ring::layout::{CONTROL, Control, Header, PREFIX, SUFFIX};
use crate::sync::{AtomicU64, Ordering};
use crate::version1;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A ring file of the calling user, mapped. For files of other users, which they may truncate, use
/// [`RingReader`](crate::reader::snapshot::RingReader).
pub struct RingFile {
    /// Its path.
    pub path: PathBuf,
    file: File,
    header: Arc<Mapping>,
    /// The header of a file of version 1, converted.
    converted: Option<Box<Header>>,
    /// Slots of a ring as the header said at the open: a later change of the header must not make us read elsewhere.
    slots: usize,
    /// Mappings of the rings; `None` for one that is not made yet.
    rings: Vec<Option<RingMemory>>,
    /// Whether all rings that are made could be mapped.
    is_whole: bool,
    protection: libc::c_int,
}

/// The memory of a ring.
struct RingMemory {
    /// A control page and the slots behind it.
    memory: Mapping,
    /// The ring of a file of version 1 that `memory` is a converted copy of.
    original: Option<Mapping>,
}

/// `fcntl` commands that choose the signal of a broken lease and the thread that gets it: equal on all architectures of
/// Linux, and not in libc.
const F_SETSIG: libc::c_int = 10;
const F_SETOWN_EX: libc::c_int = 15;
const F_OWNER_TID: libc::c_int = 0;

impl RingFile {
    /// Opens a file to look at it.
    pub fn open(path: &Path) -> Result<Self, RingFileError> {
        Self::with(path, OpenOptions::new().read(true), libc::PROT_READ)
    }

    /// Opens a file to drain it, and locks it against other drains while this value exists.
    pub fn open_to_drain(path: &Path) -> Result<Self, RingFileError> {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let opened = Self::with(path, OpenOptions::new().read(true).write(true), both)?;
        lock(&opened.file)?;
        Ok(opened)
    }

    fn with(path: &Path, options: &mut OpenOptions, protection: libc::c_int) -> Result<Self, RingFileError> {
        let (file, version) = open_checked(path, options)?;
        let header = Mapping::new(&file, 0, header_size(version), protection).map_err(RingFileError::Io)?;
        let converted = (version == version1::VERSION).then(|| read_header(&file, version)).transpose()?;
        let (path, header) = (path.to_owned(), Arc::new(header));
        let (rings, is_whole) = (Vec::new(), true);
        let mut opened = Self { path, file, header, converted, slots: 0, rings, is_whole, protection };
        opened.slots = slots_of(opened.header())?;
        Ok(opened)
    }

    /// Whether it is a file of version 1. Then its header and rings are converted copies from the time when each was first
    /// looked at: such a file is read once its process is gone. What a drain stores goes to the copies, and to the file by
    /// [`write_back`](Self::write_back).
    pub fn is_copy(&self) -> bool {
        self.converted.is_some()
    }

    /// Stores to a file of version 1 how far it was drained; also done at the end of this value. A drain that is killed
    /// before leaves records in the ring that are in a trace, too, as one of the present version does between a write and
    /// giving back.
    pub fn write_back(&self) {
        let Some(header) = self.converted.as_ref().filter(|_| self.protection & libc::PROT_WRITE != 0) else { return };
        let fields =
            [(offset_of!(Header, told), &header.told), (offset_of!(Header, write_failures), &header.write_failures)];
        fields.iter().for_each(|(at, field)| self.header.store(*at, field));
        for RingMemory { memory, original } in self.rings.iter().flatten() {
            let Some(original) = original else { continue };
            // SAFETY: a mapping of that size; every bit pattern is valid.
            let control = unsafe { &*memory.at.cast::<Control>() };
            // How far it was drained comes last.
            for (nth, field) in [&control.drained, &control.overwritten, &control.ended].into_iter().enumerate().rev() {
                original.store(version1::DRAINED + 8 * nth, field);
            }
        }
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        if let Some(header) = &self.converted {
            return header;
        }
        // SAFETY: a mapping of that size, checked to be one of ours; every bit pattern is a valid header.
        unsafe { &*self.header.at.cast() }
    }

    /// Its header, for another thread: it stays mapped while the result exists. `None` of a [copy](Self::is_copy).
    pub fn shared_header(&self) -> Option<SharedHeader> {
        (!self.is_copy()).then(|| SharedHeader(Arc::clone(&self.header)))
    }

    /// The owner of the opened file, whatever its path leads to now.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(self.file.metadata()?.uid())
    }

    /// Its inode.
    pub fn inode(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether all rings that were made by the last [`look_for_rings`](Self::look_for_rings) could be mapped. The content
    /// of another one is unknown.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Maps the rings that were made since; returns the number of rings, some of which may not be made yet.
    pub fn look_for_rings(&mut self) -> usize {
        let made = self.header().rings.load(Ordering::Acquire).min(MOST_RINGS) as usize;
        if made <= self.rings.len() && self.rings.iter().all(Option::is_some) {
            return self.rings.len();
        }
        let length = CONTROL + self.slots * size_of::<Slot>();
        self.rings.resize_with(self.rings.len().max(made), || None);
        let (first, stride) = (self.header().first, self.header().stride);
        let size = self.file.metadata().map(|about| about.size());
        self.is_whole = size.is_ok();
        let size = size.unwrap_or(0);
        for (number, place) in self.rings.iter_mut().enumerate().filter(|(_, place)| place.is_none()) {
            let begin = (number as u64).checked_mul(stride).and_then(|at| at.checked_add(first));
            // A ring that is not there or not made yet must not be touched: a fault would be a signal.
            let Some(begin) = begin.filter(|begin| begin.saturating_add(length as u64) <= size) else { continue };
            let mut owner = [0; 4];
            let is_read = self.file.read_exact_at(&mut owner, begin).is_ok();
            if is_read && owner == [0; 4] {
                continue;
            }
            let mapped = Mapping::new(&self.file, begin, length, self.protection).ok().filter(|_| is_read);
            let memory = |mapped| match self.converted {
                Some(_) => RingMemory::converted(mapped),
                None => Some(RingMemory { memory: mapped, original: None }),
            };
            *place = mapped.and_then(memory);
            self.is_whole &= place.is_some();
        }
        self.rings.len()
    }

    /// A ring, if it is made and mapped.
    pub fn ring(&self, number: usize) -> Option<Ring<'_>> {
        let at = self.rings.get(number)?.as_ref()?.memory.at;
        // SAFETY: mappings of that size; every bit pattern is valid.
        unsafe {
            let slots = at.cast::<u8>().add(CONTROL).cast::<Slot>();
            Some(Ring { control: &*at.cast(), slots: std::slice::from_raw_parts(slots, self.slots) })
        }
    }
}

impl Drop for RingFile {
    fn drop(&mut self) {
        self.write_back();
    }
}

impl RingMemory {
    /// A converted copy of a ring of version 1.
    fn converted(original: Mapping) -> Option<Self> {
        let memory = Mapping::anonymous(original.length).ok()?;
        // SAFETY: two mappings of that length, of which nothing else refers to the copy; any bytes are valid.
        unsafe {
            let control = version1::upgrade_control(&original.at.cast::<[u8; version1::CONTROL]>().read());
            memory.at.cast::<Control>().write(control);
            let length = original.length - CONTROL;
            let slots = memory.at.cast::<u8>().add(CONTROL);
            original.at.cast::<u8>().add(CONTROL).copy_to_nonoverlapping(slots, length);
            version1::upgrade_slots(std::slice::from_raw_parts_mut(slots, length));
        }
        Some(Self { memory, original: Some(original) })
    }
}

/// The mapped header of a ring file, shared with the [`RingFile`] that has opened it.
#[derive(Clone)]
pub struct SharedHeader(Arc<Mapping>);

impl SharedHeader {
    /// The header.
    pub fn get(&self) -> &Header {
        // SAFETY: a mapping of that size, checked to be one of ours; every bit pattern is a valid header.
        unsafe { &*self.0.at.cast() }
    }
}

/// Locks a ring file for a drain, until `file` is closed.
pub fn lock(file: &File) -> Result<(), RingFileError> {
    // SAFETY: a descriptor that is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(if error.kind() == io::ErrorKind::WouldBlock { RingFileError::Locked } else { RingFileError::Io(error) })
}

/// Whether no other open file or mapping of a file exists, in any namespace or container of this machine; `None` where
/// the file system cannot say, or the file belongs to another user.
///
/// A lease on a file is granted to its only user, and given back at once. A process that opens the file in between waits
/// for that, and the system sends a signal to the calling thread: SIGURG, which does nothing by default, and not SIGIO,
/// which ends the process. (To the thread and not to the process: the caller may be a guest in a process with a handler.)
pub fn is_alone(file: &File) -> Option<bool> {
    if !counts_mappings(file) {
        return None;
    }
    // SAFETY: an open descriptor of ours, and a thread's number.
    unsafe {
        let owner = [F_OWNER_TID, libc::syscall(libc::SYS_gettid) as libc::c_int];
        libc::fcntl(file.as_raw_fd(), F_SETOWN_EX, owner.as_ptr());
        libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG);
    }
    let lease = |kind: libc::c_int| {
        // SAFETY: an open descriptor of ours.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) }
    };
    if lease(libc::F_WRLCK) == 0 {
        lease(libc::F_UNLCK);
        return Some(true);
    }
    (io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)).then_some(false)
}

/// Whether a mapping prevents a lease on its file, on this file system. On overlayfs a mapping belongs to the lower file,
/// and the lease is granted in spite of it; on network file systems the mapping may be on another machine.
fn counts_mappings(file: &File) -> bool {
    const RAMFS: u64 = 0x8584_58f6;
    const LOCAL: [u64; 5] = [
        libc::TMPFS_MAGIC as u64,
        RAMFS,
        libc::EXT4_SUPER_MAGIC as u64,
        libc::XFS_SUPER_MAGIC as u64,
        libc::BTRFS_SUPER_MAGIC as u64,
    ];
    // SAFETY: an open descriptor of ours; all zero is a valid value, which the system fills.
    unsafe {
        let mut about = std::mem::zeroed::<libc::statfs>();
        libc::fstatfs(file.as_raw_fd(), &mut about) == 0 && LOCAL.contains(&(about.f_type as u64 & 0xffff_ffff))
    }
}

/// A mapping that is unmapped when it is dropped.
pub(crate) struct Mapping {
    pub(crate) at: *mut libc::c_void,
    length: usize,
}

// SAFETY: memory that any thread may read; what is written there is atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(file: &File, begin: u64, length: usize, protection: libc::c_int) -> io::Result<Self> {
        let (null, shared) = (std::ptr::null_mut(), libc::MAP_SHARED);
        // SAFETY: a new mapping.
        let at = unsafe { libc::mmap(null, length, protection, shared, file.as_raw_fd(), begin as libc::off_t) };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { at, length }) }
    }

    /// Stores a word of `from` at byte `at`.
    fn store(&self, at: usize, from: &AtomicU64) {
        debug_assert!(at + size_of::<u64>() <= self.length);
        // SAFETY: an aligned word of a mapping of ours, which others use as an atomic, too.
        let word = unsafe { AtomicU64::from_ptr(self.at.byte_add(at).cast()) };
        word.store(from.load(Ordering::Relaxed), Ordering::Release);
    }

    /// Anonymous memory of zeros.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { at, length }) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping; references into it cannot outlive us.
        unsafe { libc::munmap(self.at, self.length) };
    }
}

/// Whether a file name is that of a ring file.
pub fn is_ring(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// The ring files in `directory`, by name.
pub fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_ring(path.file_name().unwrap_or_default()))
        .collect();
    found.sort();
    Ok(found)
}

#[cfg(all(test, not(miri)))]
mod tests;
