//! The ring file of this process: its creation, and the rings that are added to it, from inside the host.
//!
//! Nothing here allocates, locks or leaves a descriptor open. All of it is a cold path, on a stack that may be small.

use crate::record::slot::Slot;
use crate::ring::growth::{self, has_space_for_a_ring};
use crate::ring::layout::{CONTROL, Control, FIRST, HEADER, Header, MAGIC, PREFIX, SUFFIX, VERSION, stride};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::system::clock;
use crate::system::descriptor::Descriptor;
use aclshim_facts::text::Text;
use core::ffi::{c_int, c_void};
use core::fmt::Write;
use core::ptr;

/// Why a ring file or a ring cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingSetupError {
    /// The directory's path is too long.
    PathTooLong,
    /// RLIMIT_FSIZE is too small; a write beyond it would raise SIGXFSZ in the host.
    FileSizeLimit,
    /// The file system is nearly full, and other programs need it.
    NoRoom,
    /// The file was removed or replaced.
    Gone,
    /// A system call failed: its name, and errno.
    System(&'static str, c_int),
}

impl core::fmt::Display for RingSetupError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            RingSetupError::PathTooLong => f.write_str("the path is too long"),
            RingSetupError::FileSizeLimit => f.write_str("the process's limit on file size is too small"),
            RingSetupError::NoRoom => f.write_str("it is nearly full; old files there (aclshim-*.ring) may be removed"),
            RingSetupError::Gone => f.write_str("the file was removed or replaced"),
            RingSetupError::System(call, errno) => write!(f, "{call} failed with errno {errno}"),
        }
    }
}

/// The ring file of this process.
///
/// All fields but the header are private copies. The mapped header can be changed by a stray write of the host or by
/// another process of this user, so the values that decide where the writer maps and stores are not read from it.
#[derive(Clone, Copy)]
pub struct OwnRingFile {
    /// Its mapped header.
    pub header: &'static Header,
    /// Its inode.
    pub inode: u64,
    /// [`Header::pid`].
    pub pid: u32,
    /// Slots of its rings.
    pub size: RingSize,
    /// [`Header::clock`].
    pub clock: u32,
    /// [`Header::born_ns`].
    pub born_ns: u64,
}

/// How large the rings of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSize {
    /// Number of slots that there is address space for, a power of two: [`Header::slots`].
    pub capacity: u32,
    /// Number of slots that have storage from the beginning.
    pub stored: u32,
}

impl RingSize {
    /// Rings that do not grow.
    pub const fn fixed(slots: u32) -> Self {
        Self { capacity: slots, stored: slots }
    }

    const fn is_fixed(self) -> bool {
        self.capacity == self.stored
    }

    /// Bytes of a ring, as far as they have storage from the beginning.
    const fn stored_bytes(self) -> usize {
        CONTROL + self.stored as usize * size_of::<Slot>()
    }

    /// Bytes of a ring.
    const fn bytes(self) -> usize {
        CONTROL + self.capacity as usize * size_of::<Slot>()
    }
}

/// The `pid` and `born_ns` of the file that was made last; a fork child has those of its parent.
static LATEST: (AtomicU32, AtomicU64) = (AtomicU32::new(0), AtomicU64::new(0));

/// Rings with smaller numbers that are added one by one are populated whole. In a process with many threads most threads
/// make few calls, and pages that they never reach would cost more than the threads do.
const WHOLE: u32 = 64;
/// Bytes of other rings that are populated at once.
const FRONT: usize = 2 * CONTROL;
/// `MADV_POPULATE_WRITE`, which the libc crate does not have for all systems.
const POPULATE_WRITE: c_int = 23;

/// Small, because the stack of the first thread may be.
type Path = Text<1024>;

/// Writes the path of the ring file of process `pid` to `path`. (Returned by value, it would lie on a small stack twice.)
fn name(path: &mut Path, ring_dir: &[u8], pid: u32, born_ns: u64) -> Result<(), RingSetupError> {
    path.push(ring_dir);
    let _ = write!(path, "/{PREFIX}{pid}-{born_ns:x}{SUFFIX}");
    if path.is_full() { Err(RingSetupError::PathTooLong) } else { Ok(()) }
}

/// `lstat` of the file that this process, or the one that forked it, made last in `ring_dir`.
pub fn latest(ring_dir: &[u8]) -> Option<libc::stat> {
    let mut path = Path::new();
    name(&mut path, ring_dir, LATEST.0.load(Ordering::Relaxed), LATEST.1.load(Ordering::Relaxed)).ok()?;
    about(&path)
}

/// `lstat` of a path.
fn about(path: &Path) -> Option<libc::stat> {
    // SAFETY: a C string of ours; all zero is a valid value, which the system fills.
    unsafe {
        let mut about = core::mem::zeroed::<libc::stat>();
        (libc::lstat(path.as_c_str().as_ptr(), &mut about) == 0).then_some(about)
    }
}

/// Makes this process's file in `ring_dir` and maps its header for good; `fill` completes the header before a reader
/// accepts it. Rings do not grow where the process has a limit on file size or address space. Changes errno.
pub fn create(ring_dir: &[u8], size: RingSize, fill: impl FnOnce(&mut Header)) -> Result<OwnRingFile, RingSetupError> {
    let size = if may_grow() { size } else { RingSize::fixed(size.stored) };
    let born_ns = clock::realtime_ns();
    // SAFETY: asks for our own numbers.
    let (pid, uid) = unsafe { (libc::getpid() as u32, libc::getuid()) };
    let mut path = Path::new();
    name(&mut path, ring_dir, pid, born_ns)?;
    check_limits(ring_dir, HEADER as u64)?;
    // Before the file is open: a fork child looks for a descriptor of it.
    LATEST.0.store(pid, Ordering::Relaxed);
    LATEST.1.store(born_ns, Ordering::Relaxed);
    let file = open(&path, libc::O_CREAT | libc::O_EXCL)?;
    // The host's umask may have taken our own rights away.
    // SAFETY: our descriptor.
    unsafe { libc::fchmod(file.number(), 0o600) };
    let mapped = file.about().map_err(|errno| RingSetupError::System("fstat", errno)).and_then(|opened| {
        // A `dup2` of the host onto our number, before it was moved, would make it a file of the host's.
        let is_ours = about(&path).is_some_and(|named| (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino));
        if !is_ours {
            return Err(RingSetupError::Gone);
        }
        reserve(file.number(), 0, HEADER)?;
        let at = map(&file, 0, HEADER, Present::All)?;
        // What the host has written to our number since lies at the beginning.
        // SAFETY: a mapping of that size that nothing else refers to yet.
        unsafe { ptr::write_bytes(at.cast::<u8>(), 0, HEADER) };
        Ok((at, opened.st_ino))
    });
    let (at, inode) = match mapped {
        Ok(mapped) => mapped,
        Err(failure) => {
            // SAFETY: our path.
            unsafe { libc::unlink(path.as_c_str().as_ptr()) };
            return Err(failure);
        }
    };
    // SAFETY: a fresh mapping of zeroes of at least that size that nothing else refers to; zero is a valid header. It is
    // never unmapped.
    let header = unsafe { &mut *at.cast::<Header>() };
    header.version = VERSION;
    header.size = size_of::<Header>() as u32;
    (header.pid, header.uid, header.born_ns) = (pid, uid, born_ns);
    header.slots = size.capacity;
    header.first = FIRST;
    header.stride = stride(size.capacity);
    let chosen = clock::choose();
    let clock = chosen as u32;
    header.clock = clock;
    header.ticks_hz = clock::hz(chosen);
    header.born.set(clock);
    fill(header);
    growth::renew(header, file.number());
    drop(file);
    // A reader that sees the magic sees all of the header.
    header.magic.store(MAGIC, Ordering::Release);
    Ok(OwnRingFile { header, inode, pid, size, clock, born_ns })
}

impl OwnRingFile {
    /// Adds ring number `ring` and maps it for good. Changes errno.
    pub fn add_ring(&self, ring_dir: &[u8], ring: u32) -> Result<(&'static Control, &'static [Slot]), RingSetupError> {
        self.add_rings(ring_dir, ring, 1)?.get(0).ok_or(RingSetupError::Gone)
    }

    /// Adds up to `count` rings from number `ring` on, as many as there is room for and at least one, and maps them for good
    /// in one piece. All of them are zero. Changes errno.
    pub fn add_rings(&self, ring_dir: &[u8], ring: u32, count: u32) -> Result<AddedRings, RingSetupError> {
        let mut path = Path::new();
        name(&mut path, ring_dir, self.pid, self.born_ns)?;
        let size = self.size;
        let stride = stride(size.capacity);
        let begin = FIRST + u64::from(ring) * stride;
        let end = |count: u32| u64::from(count - 1) * stride + size.bytes() as u64;
        let count = check_limits(ring_dir, begin + end(count)).map(|()| count);
        let count = count.or_else(|_| check_limits(ring_dir, begin + end(1)).map(|()| 1))?;
        let file = open(&path, 0)?;
        if !file.about().is_ok_and(|about| about.st_ino == self.inode) {
            return Err(RingSetupError::Gone);
        }
        reserve(file.number(), begin, size.stored_bytes())?;
        let reserved =
            |nth: &u32| reserve(file.number(), begin + u64::from(*nth) * stride, size.stored_bytes()).is_ok();
        let count = 1 + (1..count).take_while(reserved).count() as u32;
        if !size.is_fixed() {
            // The file must be as long as what is mapped. By a reservation, which never makes it shorter: other threads add
            // rings at once.
            reserve(file.number(), begin + u64::from(count) * stride - 1, 1)?;
        }
        let is_whole = count == 1 && ring < WHOLE;
        let present = if is_whole && size.is_fixed() { Present::All } else { Present::Later };
        let at = map(&file, begin, end(count) as usize, present)?;
        let is_clear = is_clear(&file, begin, end(count));
        for nth in 0..count as usize {
            // SAFETY: a part of the mapping that nothing else refers to yet.
            unsafe {
                let at = at.byte_add(nth * stride as usize);
                if !is_clear {
                    ptr::write_bytes(at.cast::<u8>(), 0, size.stored_bytes());
                }
                if present == Present::Later {
                    // Before Linux 5.14 these pages come with the first stores.
                    let _ = populate(at, if is_whole { size.stored_bytes() } else { FRONT.min(size.stored_bytes()) });
                }
            }
        }
        Ok(AddedRings { at, count, stride: stride as usize, size })
    }
}

/// Gives storage to a part of a mapped file and makes it present; `Err` with errno if there is none. Changes errno.
///
/// # Safety
/// Whole pages of a mapping of the caller's that stay mapped.
pub unsafe fn populate(at: *mut c_void, bytes: usize) -> Result<(), c_int> {
    // SAFETY: the caller's promise; contents do not change. Errno is the calling thread's own.
    unsafe { if libc::madvise(at, bytes, POPULATE_WRITE) == 0 { Ok(()) } else { Err(*libc::__errno_location()) } }
}

/// Rings that were added, in one mapping.
pub struct AddedRings {
    at: *mut c_void,
    stride: usize,
    size: RingSize,
    /// Number of rings.
    pub count: u32,
}

impl AddedRings {
    /// Address and length of the mapping.
    pub fn memory(&self) -> (*const c_void, usize) {
        (self.at, (self.count as usize - 1) * self.stride + self.size.bytes())
    }

    /// The ring with this index among them.
    pub fn get(&self, nth: u32) -> Option<(&'static Control, &'static [Slot])> {
        // SAFETY: a mapping of zeroes of that size, never unmapped.
        (nth < self.count).then(|| unsafe {
            let at = self.at.byte_add(nth as usize * self.stride);
            let slots = at.byte_add(CONTROL).cast::<Slot>();
            (&*at.cast::<Control>(), core::slice::from_raw_parts(slots, self.size.capacity as usize))
        })
    }
}

/// Opens a ring file to map a part of it. With `O_APPEND`: a write of the host to our number lands behind the end.
fn open(path: &Path, flags: c_int) -> Result<Descriptor, RingSetupError> {
    let flags = flags | libc::O_RDWR | libc::O_NOFOLLOW | libc::O_APPEND;
    Descriptor::open(path.as_c_str(), flags, 0o600).map_err(|errno| RingSetupError::System("open", errno))
}

/// Whether the pages of a mapping are populated at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Present {
    /// All of them: a page fault costs more than a call.
    All,
    /// Each with its first access, or by `madvise`.
    Later,
}

/// Maps a part of a file that is reserved.
fn map(file: &Descriptor, begin: u64, size: usize, present: Present) -> Result<*mut c_void, RingSetupError> {
    let populate = if present == Present::All { libc::MAP_POPULATE } else { 0 };
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | populate);
    // SAFETY: a new mapping of our own file.
    let at = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, file.number(), begin as libc::off_t) };
    if at == libc::MAP_FAILED { Err(system("mmap")) } else { Ok(at) }
}

/// Whether a reserved and unused part of a file holds no data. The host may have written behind the end while the file was
/// open, and a reservation does not clear that; later writes go behind this part. `false` on a file system that cannot say.
fn is_clear(file: &Descriptor, begin: u64, size: u64) -> bool {
    // SAFETY: our own descriptor; errno is the calling thread's own.
    unsafe {
        let data = libc::lseek(file.number(), begin as libc::off_t, libc::SEEK_DATA);
        if data < 0 { *libc::__errno_location() == libc::ENXIO } else { data as u64 >= begin + size }
    }
}

/// Reserves space for a part of a file: a store into a hole of a full tmpfs would raise SIGBUS in the host.
fn reserve(fd: c_int, begin: u64, size: usize) -> Result<(), RingSetupError> {
    let (begin, size) = (begin as libc::off_t, size as libc::off_t);
    // SAFETY: our own descriptor.
    let reserved = unsafe {
        match libc::posix_fallocate(fd, begin, size) {
            // The file system cannot; libc then writes zeroes, and refuses a descriptor with O_APPEND.
            libc::EBADF | libc::EOPNOTSUPP => {
                libc::fcntl(fd, libc::F_SETFL, 0);
                libc::posix_fallocate(fd, begin, size)
            }
            reserved => reserved,
        }
    };
    if reserved == 0 { Ok(()) } else { Err(RingSetupError::System("posix_fallocate", reserved)) }
}

/// Whether rings may be larger than their storage: files and address space have no limit.
fn may_grow() -> bool {
    let is_unlimited = |resource| {
        // SAFETY: a value of ours; all zero is a valid one, which the system fills.
        unsafe {
            let mut limit = core::mem::zeroed::<libc::rlimit>();
            libc::getrlimit(resource, &mut limit) == 0 && limit.rlim_cur == libc::RLIM_INFINITY
        }
    };
    is_unlimited(libc::RLIMIT_FSIZE) && is_unlimited(libc::RLIMIT_AS)
}

/// Whether a file of that size may be made, on a file system with enough free space for others.
fn check_limits(dir: &[u8], size: u64) -> Result<(), RingSetupError> {
    let mut path = Path::new();
    path.push(dir);
    // SAFETY: a C string and values of ours.
    unsafe {
        let mut limit = core::mem::zeroed::<libc::rlimit>();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0 && limit.rlim_cur < size {
            return Err(RingSetupError::FileSizeLimit);
        }
        let mut about = core::mem::zeroed::<libc::statvfs>();
        if libc::statvfs(path.as_c_str().as_ptr(), &mut about) != 0 {
            return Ok(()); // the creation of the file will report what is wrong
        }
        if has_space_for_a_ring(&about) { Ok(()) } else { Err(RingSetupError::NoRoom) }
    }
}

fn system(call: &'static str) -> RingSetupError {
    // SAFETY: errno is the calling thread's own.
    RingSetupError::System(call, unsafe { *libc::__errno_location() })
}

#[cfg(all(test, not(miri)))]
mod tests;
