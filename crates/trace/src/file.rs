//! Making a process's ring file and adding rings to it, from inside the host.
//!
//! Nothing here allocates, locks or keeps a descriptor; all of it is a cold path, on a stack that
//! may be small.

use crate::clock;
use crate::descriptor::Descriptor;
use crate::layout::{CONTROL, Control, FIRST, HEADER, Header, MAGIC, PREFIX, SUFFIX, VERSION, stride};
use crate::slot::Slot;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::text::Text;
use core::ffi::{c_int, c_void};
use core::fmt::Write;

/// Why there is no file, or no ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The directory's path is too long.
    PathTooLong,
    /// The process may not make a file of that size (a write beyond the limit would be a signal).
    FileSizeLimit,
    /// The directory's file system is about to be full, and others need it.
    NoRoom,
    /// The file that was made is not there any more.
    Gone,
    /// A system call said no.
    System(&'static str, c_int),
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Failure::PathTooLong => f.write_str("the path is too long"),
            Failure::FileSizeLimit => f.write_str("the process's limit on file size is too small"),
            Failure::NoRoom => f.write_str("it is nearly full; old files there (aclshim-*.ring) may be removed"),
            Failure::Gone => f.write_str("the file was removed or replaced"),
            Failure::System(call, errno) => write!(f, "{call} failed with errno {errno}"),
        }
    }
}

/// A ring file of this process.
///
/// All but the header is this process's own copy. The mapped header can be changed from outside, by a stray write or by
/// another process of the same user: what decides where the writer maps and stores is not read back from there.
#[derive(Clone, Copy)]
pub struct File {
    /// Its mapped header.
    pub header: &'static Header,
    /// Its inode.
    pub inode: u64,
    /// [`Header::pid`].
    pub pid: u32,
    /// [`Header::slots`].
    pub slots: u32,
    /// [`Header::clock`].
    pub clock: u32,
    /// [`Header::born_ns`].
    pub born_ns: u64,
}

/// The `pid` and `born_ns` of the file that was made last; a fork child has those of its parent.
static LATEST: (AtomicU32, AtomicU64) = (AtomicU32::new(0), AtomicU64::new(0));

/// Small, because the stack of the thread that comes first may be.
type Path = Text<1024>;

/// Makes `path` that of the file of process `pid` that was born then. (Handed over, it would lie on a small stack twice.)
fn name(path: &mut Path, ring_dir: &[u8], pid: u32, born_ns: u64) -> Result<(), Failure> {
    path.push(ring_dir);
    let _ = write!(path, "/{PREFIX}{pid}-{born_ns:x}{SUFFIX}");
    if path.is_full() { Err(Failure::PathTooLong) } else { Ok(()) }
}

/// What the system says about the file that this process, or the one that forked it, made last in `ring_dir`.
pub fn latest(ring_dir: &[u8]) -> Option<libc::stat> {
    let mut path = Path::new();
    name(&mut path, ring_dir, LATEST.0.load(Ordering::Relaxed), LATEST.1.load(Ordering::Relaxed)).ok()?;
    about(&path)
}

/// What the system says about the file at a path, not about one that a link there leads to.
fn about(path: &Path) -> Option<libc::stat> {
    // SAFETY: a C string of ours; all zero is a valid value, which the system fills.
    unsafe {
        let mut about = core::mem::zeroed::<libc::stat>();
        (libc::lstat(path.as_c_str().as_ptr(), &mut about) == 0).then_some(about)
    }
}

/// Makes this process's file in `ring_dir` and maps its header for good; `fill` completes the
/// header before anybody can see it. The caller's errno is changed.
pub fn create(ring_dir: &[u8], slots: u32, fill: impl FnOnce(&mut Header)) -> Result<File, Failure> {
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
    let mapped = file.about().map_err(|errno| Failure::System("fstat", errno)).and_then(|opened| {
        // A `dup2` of the host onto our number, before it was moved, would make it a file of the host's.
        let is_ours = about(&path).is_some_and(|named| (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino));
        if is_ours { Ok((map(&file, 0, HEADER)?, opened.st_ino)) } else { Err(Failure::Gone) }
    });
    drop(file);
    let (at, inode) = match mapped {
        Ok(mapped) => mapped,
        Err(failure) => {
            // SAFETY: our path.
            unsafe { libc::unlink(path.as_c_str().as_ptr()) };
            return Err(failure);
        }
    };
    // SAFETY: a fresh mapping of zeroes of at least that size, which nobody else knows; zero is a
    // valid header. It is never unmapped.
    let header = unsafe { &mut *at.cast::<Header>() };
    header.version = VERSION;
    header.size = size_of::<Header>() as u32;
    (header.pid, header.uid, header.born_ns) = (pid, uid, born_ns);
    header.slots = slots;
    header.first = FIRST;
    header.stride = stride(slots);
    let chosen = clock::choose();
    let clock = chosen as u32;
    header.clock = clock;
    header.ticks_hz = clock::hz(chosen);
    header.born.set(clock);
    fill(header);
    // A reader that sees the magic sees all of the header.
    header.magic.store(MAGIC, Ordering::Release);
    Ok(File { header, inode, pid, slots, clock, born_ns })
}

impl File {
    /// Adds ring number `ring` and maps it for good. The caller's errno is changed.
    pub fn add_ring(&self, ring_dir: &[u8], ring: u32) -> Result<(&'static Control, &'static [Slot]), Failure> {
        let mut path = Path::new();
        name(&mut path, ring_dir, self.pid, self.born_ns)?;
        let slots = self.slots as usize;
        let begin = FIRST + u64::from(ring) * stride(self.slots);
        let size = CONTROL + slots * size_of::<Slot>();
        check_limits(ring_dir, begin + size as u64)?;
        let file = open(&path, 0)?;
        let at = match file.about() {
            Ok(about) if about.st_ino == self.inode => map(&file, begin, size),
            _ => Err(Failure::Gone),
        }?;
        // SAFETY: a mapping of zeroes of that size, never unmapped.
        unsafe {
            let control = &*at.cast::<Control>();
            let slots = core::slice::from_raw_parts(at.cast::<u8>().add(CONTROL).cast::<Slot>(), slots);
            Ok((control, slots))
        }
    }
}

/// Opens a ring file to map a part of it. With `O_APPEND`: a write of the host to our number lands behind the end.
fn open(path: &Path, flags: c_int) -> Result<Descriptor, Failure> {
    let flags = flags | libc::O_RDWR | libc::O_NOFOLLOW | libc::O_APPEND;
    Descriptor::open(path.as_c_str(), flags, 0o600).map_err(|errno| Failure::System("open", errno))
}

/// Reserves a part of a file and maps it, all zero. Reserved before use: a store into a hole of a full tmpfs
/// would be a SIGBUS in the host. Present at once: a page fault costs more than a call.
fn map(file: &Descriptor, begin: u64, size: usize) -> Result<*mut c_void, Failure> {
    reserve(file.number(), begin, size)?;
    // SAFETY: a new mapping of our own file.
    unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(core::ptr::null_mut(), size, protection, flags, file.number(), begin as libc::off_t);
        if at == libc::MAP_FAILED {
            return Err(system("mmap"));
        }
        // What the host wrote behind the end while we had the file open may lie here: reserving does not clear it.
        // No more comes: from now on the end of the file lies behind this part.
        core::ptr::write_bytes(at.cast::<u8>(), 0, size);
        Ok(at)
    }
}

/// Has the file system keep room for a part of a file.
fn reserve(fd: c_int, begin: u64, size: usize) -> Result<(), Failure> {
    let (begin, size) = (begin as libc::off_t, size as libc::off_t);
    // SAFETY: our own descriptor.
    let reserved = unsafe {
        match libc::posix_fallocate(fd, begin, size) {
            // The file system cannot, and libc, which would write zeroes then, does not append.
            libc::EBADF | libc::EOPNOTSUPP => {
                libc::fcntl(fd, libc::F_SETFL, 0);
                libc::posix_fallocate(fd, begin, size)
            }
            reserved => reserved,
        }
    };
    if reserved == 0 { Ok(()) } else { Err(Failure::System("posix_fallocate", reserved)) }
}

/// Whether a file of that size may be made, on a file system that has room nobody will miss:
/// 16 MiB, or half of a smaller one.
fn check_limits(dir: &[u8], size: u64) -> Result<(), Failure> {
    let mut path = Path::new();
    path.push(dir);
    // SAFETY: a C string and values of ours.
    unsafe {
        let mut limit = core::mem::zeroed::<libc::rlimit>();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0 && limit.rlim_cur < size {
            return Err(Failure::FileSizeLimit);
        }
        let mut about = core::mem::zeroed::<libc::statvfs>();
        if libc::statvfs(path.as_c_str().as_ptr(), &mut about) != 0 {
            return Ok(()); // whatever is wrong will show when the file is made
        }
        let bytes = |blocks: u64| blocks.saturating_mul(about.f_frsize);
        if bytes(about.f_bavail) < (bytes(about.f_blocks) / 2).min(16 << 20) { Err(Failure::NoRoom) } else { Ok(()) }
    }
}

fn system(call: &'static str) -> Failure {
    // SAFETY: errno is the calling thread's own.
    Failure::System(call, unsafe { *libc::__errno_location() })
}

#[cfg(all(test, not(miri)))]
mod tests;
