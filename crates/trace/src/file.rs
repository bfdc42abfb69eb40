//! Making a process's ring file and adding rings to it, from inside the host.
//!
//! Nothing here allocates, locks or keeps a descriptor; all of it is a cold path, on a stack that
//! may be small.

use crate::clock;
use crate::layout::{CONTROL, Control, HEADER, Header, MAGIC, PREFIX, SUFFIX, VERSION, stride};
use crate::slot::Slot;
use crate::sync::Ordering;
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
#[derive(Clone, Copy)]
pub struct File {
    /// Its mapped header.
    pub header: &'static Header,
    /// Its inode.
    pub inode: u64,
}

/// Small, because the stack of the thread that comes first may be.
type Path = Text<1024>;

/// Makes `path` that of the file of process `pid` that was born then. (Handed over, it would lie on a small stack twice.)
fn name(path: &mut Path, ring_dir: &[u8], pid: u32, born_ns: u64) -> Result<(), Failure> {
    path.push(ring_dir);
    let _ = write!(path, "/{PREFIX}{pid}-{born_ns:x}{SUFFIX}");
    if path.is_full() { Err(Failure::PathTooLong) } else { Ok(()) }
}

/// Makes this process's file in `ring_dir` and maps its header for good; `fill` completes the
/// header before anybody can see it. The caller's errno is changed.
pub fn create(ring_dir: &[u8], slots: u32, fill: impl FnOnce(&mut Header)) -> Result<File, Failure> {
    let born_ns = clock::realtime_ns();
    // SAFETY: asks for our own numbers.
    let (pid, uid) = unsafe { (libc::getpid() as u32, libc::getuid()) };
    let mut path = Path::new();
    name(&mut path, ring_dir, pid, born_ns)?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    check_limits(ring_dir, HEADER as u64)?;
    // SAFETY: a C string of ours.
    let fd = unsafe { libc::open(path.as_c_str().as_ptr(), flags, 0o600) };
    if fd < 0 {
        return Err(system("open"));
    }
    // The host's umask may have taken our own rights away.
    // SAFETY: our descriptor.
    unsafe { libc::fchmod(fd, 0o600) };
    let mapped = inode(fd).and_then(|inode| Ok((map(fd, 0, HEADER)?, inode)));
    // SAFETY: our descriptor, our path.
    unsafe { libc::close(fd) };
    let (at, inode) = match mapped {
        Ok(mapped) => mapped,
        Err(failure) => {
            // SAFETY: as above.
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
    header.first = HEADER.next_multiple_of(crate::layout::UNIT as usize) as u64;
    header.stride = stride(slots);
    let clock = clock::choose();
    header.clock = clock as u32;
    header.ticks_hz = clock::hz(clock);
    header.born.set(clock as u32);
    fill(header);
    // A reader that sees the magic sees all of the header.
    header.magic.store(MAGIC, Ordering::Release);
    Ok(File { header, inode })
}

impl File {
    /// Adds ring number `ring` and maps it for good. The caller's errno is changed.
    pub fn add_ring(&self, ring_dir: &[u8], ring: u32) -> Result<(&'static Control, &'static [Slot]), Failure> {
        let header = self.header;
        let mut path = Path::new();
        name(&mut path, ring_dir, header.pid, header.born_ns)?;
        let begin = header.first + u64::from(ring) * header.stride;
        let size = CONTROL + header.slots as usize * size_of::<Slot>();
        check_limits(ring_dir, begin + size as u64)?;
        // SAFETY: a C string of ours.
        let fd = unsafe { libc::open(path.as_c_str().as_ptr(), libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(system("open"));
        }
        let mapped = match inode(fd) {
            Ok(inode) if inode == self.inode => map(fd, begin, size),
            _ => Err(Failure::Gone),
        };
        // SAFETY: our descriptor.
        unsafe { libc::close(fd) };
        let at = mapped?;
        // SAFETY: a mapping of zeroes (or of what this process wrote before) of that size, never unmapped.
        unsafe {
            let control = &*at.cast::<Control>();
            let slots = core::slice::from_raw_parts(at.cast::<u8>().add(CONTROL).cast::<Slot>(), header.slots as usize);
            Ok((control, slots))
        }
    }
}

fn inode(fd: c_int) -> Result<u64, Failure> {
    // SAFETY: all zero is a valid value, which the system fills.
    unsafe {
        let mut about = core::mem::zeroed::<libc::stat>();
        if libc::fstat(fd, &mut about) != 0 { Err(system("fstat")) } else { Ok(about.st_ino) }
    }
}

/// Reserves a part of a file and maps it. Reserved before use: a store into a hole of a full tmpfs
/// would be a SIGBUS in the host. Present at once: a page fault costs more than a call.
fn map(fd: c_int, begin: u64, size: usize) -> Result<*mut c_void, Failure> {
    // SAFETY: a new mapping of our own file.
    unsafe {
        let reserved = libc::posix_fallocate(fd, begin as libc::off_t, size as libc::off_t);
        if reserved != 0 {
            return Err(Failure::System("posix_fallocate", reserved));
        }
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(core::ptr::null_mut(), size, protection, flags, fd, begin as libc::off_t);
        if at == libc::MAP_FAILED { Err(system("mmap")) } else { Ok(at) }
    }
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
