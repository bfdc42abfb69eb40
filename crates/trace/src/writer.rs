//! Making a process's count file and adding to it, from inside the host.
//!
//! Nothing here allocates, locks or keeps a descriptor. Making the file is a cold path; adding
//! is a handful of instructions.

use crate::page::{BLOCKS, Block, Counter, FUNCTIONS, MAGIC, NAME, PREFIX, Page, SHARED, SUFFIX, VERSION};
use crate::text::Text;
use core::ffi::c_int;
use core::fmt::Write;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Why there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The directory's path is too long.
    PathTooLong,
    /// The process may not make a file of that size (a write beyond the limit would be a signal).
    FileSizeLimit,
    /// The directory's file system is about to be full, and others need it.
    NoRoom,
    /// A system call said no.
    System(&'static str, c_int),
}

/// Makes this process's file in `ring_dir` and maps it for good. The caller's errno is changed.
pub fn create<'a>(ring_dir: &[u8], dir: &[u8], names: impl Iterator<Item = &'a str>) -> Result<&'static Page, Failure> {
    const SIZE: usize = size_of::<Page>();
    // SAFETY: plain system calls on values of our own; the mapping is checked before it is used
    // and never unmapped, so that the reference may live for ever.
    unsafe {
        let mut limit = core::mem::zeroed::<libc::rlimit>();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0 && limit.rlim_cur < SIZE as libc::rlim_t {
            return Err(Failure::FileSizeLimit);
        }
        if !has_room(ring_dir) {
            return Err(Failure::NoRoom);
        }
        let mut now = core::mem::zeroed::<libc::timespec>();
        libc::clock_gettime(libc::CLOCK_REALTIME, &mut now);
        let born_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let pid = libc::getpid() as u32;

        // Small, because the stack of the thread that comes first may be.
        let mut path = Text::<1024>::new();
        path.push(ring_dir);
        let _ = write!(path, "/{PREFIX}{pid}-{born_ns:x}{SUFFIX}");
        if path.is_full() {
            return Err(Failure::PathTooLong);
        }
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let fd = libc::open(path.as_c_str().as_ptr(), flags, 0o600);
        if fd < 0 {
            return Err(system("open"));
        }
        // Reserved before use: a store into a hole of a full tmpfs would be a SIGBUS in the host.
        let reserved = libc::posix_fallocate(fd, 0, SIZE as libc::off_t);
        let at = match reserved {
            0 => libc::mmap(core::ptr::null_mut(), SIZE, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0),
            _ => libc::MAP_FAILED,
        };
        let failure = if reserved == 0 { system("mmap") } else { Failure::System("posix_fallocate", reserved) };
        libc::close(fd);
        if at == libc::MAP_FAILED {
            libc::unlink(path.as_c_str().as_ptr());
            return Err(failure);
        }

        let page = at.cast::<Page>();
        let header = &raw mut (*page).header;
        (*header).version = VERSION;
        (*header).pid = pid;
        (*header).born_ns = born_ns;
        let room = (*header).dir.len() - 1;
        (&mut (*header).dir)[..dir.len().min(room)].copy_from_slice(&dir[..dir.len().min(room)]);
        for (at, name) in names.take(FUNCTIONS).enumerate() {
            (*header).names[at] = *Text::<NAME>::new().push(name.as_bytes()).as_array();
            (*header).functions = at as u32 + 1;
        }
        (*page).blocks[0].owner = AtomicU32::new(SHARED);
        // A reader that sees the magic sees all of the header.
        (*header).magic.store(MAGIC, Ordering::Release);
        Ok(&*page)
    }
}

/// Whether a file system has room that nobody will miss: 16 MiB, or half of a smaller one.
fn has_room(dir: &[u8]) -> bool {
    let mut path = Text::<1024>::new();
    path.push(dir);
    // SAFETY: a C string and a value of ours.
    unsafe {
        let mut about = core::mem::zeroed::<libc::statvfs>();
        if libc::statvfs(path.as_c_str().as_ptr(), &mut about) != 0 {
            return true; // whatever is wrong will show when the file is made
        }
        let bytes = |blocks: u64| blocks.saturating_mul(about.f_frsize);
        bytes(about.f_bavail) >= (bytes(about.f_blocks) / 2).min(16 << 20)
    }
}

fn system(call: &'static str) -> Failure {
    // SAFETY: errno is the calling thread's own.
    Failure::System(call, unsafe { *libc::__errno_location() })
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Failure::PathTooLong => f.write_str("the path is too long"),
            Failure::FileSizeLimit => f.write_str("the process's limit on file size is too small"),
            Failure::NoRoom => f.write_str("it is nearly full; old files there (aclshim-*.ring) may be removed"),
            Failure::System(call, errno) => write!(f, "{call} failed with errno {errno}"),
        }
    }
}

impl Page {
    /// A block for thread `me`: a free one, one whose thread is gone, or the shared one. `alive`
    /// tells whether a thread of this process still runs.
    pub fn claim(&self, me: u32, alive: impl Fn(u32) -> bool) -> &Block {
        let take = |block: &&Block, owner: u32| {
            block.owner.compare_exchange(owner, me, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        // The same id on a living thread is this thread: an earlier bearer of it is gone.
        let mine = |block: &&Block| block.owner.load(Ordering::Relaxed) == me;
        let free = |block: &&Block| take(block, 0);
        let left = |block: &&Block| {
            let owner = block.owner.load(Ordering::Relaxed);
            !alive(owner) && take(block, owner)
        };
        let blocks = || self.blocks[1..].iter();
        let own = blocks().find(mine).or_else(|| blocks().find(free)).or_else(|| blocks().find(left));
        own.unwrap_or(&self.blocks[0])
    }
}

impl Block {
    /// The counters of function number `function`.
    #[inline(always)]
    pub fn counter(&self, function: usize) -> &Counter {
        // A function number is below `FUNCTIONS` by the assertion where the table meets this file.
        &self.counters[function % FUNCTIONS]
    }

    /// Adds to one of this block's own counters.
    #[inline(always)]
    pub fn add(&self, counter: &AtomicU64, amount: u64) {
        if self.owner.load(Ordering::Relaxed) == SHARED {
            counter.fetch_add(amount, Ordering::Relaxed);
        } else {
            add_alone(counter, amount);
        }
    }

    /// Marks whether an outermost call of the owner is under way; nobody owns the shared block.
    #[inline(always)]
    pub fn set_open(&self, open: u32) {
        if self.owner.load(Ordering::Relaxed) != SHARED {
            self.open.store(open, Ordering::Relaxed);
        }
    }
}

/// Adds where only this thread and its signal handlers add: one instruction cannot be torn by a
/// handler, and needs no lock against other threads.
#[inline(always)]
fn add_alone(counter: &AtomicU64, amount: u64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `counter` is a live, aligned word of our own.
    unsafe {
        core::arch::asm!("add qword ptr [{0}], {1}", in(reg) counter.as_ptr(), in(reg) amount, options(nostack));
    }
    #[cfg(not(target_arch = "x86_64"))]
    counter.fetch_add(amount, Ordering::Relaxed);
}

const _: () = assert!(BLOCKS > 1 && size_of::<Page>() < 32 * 1024);
