//! The drain inside the host: the loop of a thread that its host has started for it.

use crate::drain::Drain;
use crate::drain::adoption::Adoption;
use crate::live_log::stderr::Stderr;
use aclshim_trace::reader::{self, ReadMode, Ring, RingFileError};
use aclshim_trace::ring::layout::{Header, PREFIX, SUFFIX};
use aclshim_trace::system::clock::monotonic_ns;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// What the drain needs of the process that it runs in.
pub trait Host {
    /// The mapped header of the ring file.
    fn header(&self) -> Option<&'static Header>;
    /// The folder that the ring file is in.
    fn ring_dir(&self) -> &[u8];
    /// A ring that was made.
    fn ring(&self, ring: usize) -> Option<Ring<'static>>;
    /// How often the host has asked for everything to be written.
    fn asked(&self) -> u32;
    /// Tells the host that it has been.
    fn answer(&self, asked: u32);
    /// Waits until it is asked again, at most `ns` nanoseconds.
    fn wait(&self, asked: u32, ns: u64);
}

/// The shortest and the longest nap between two passes. A ring of the default size holds a tenth of
/// a second's calls at ten thousand a second, and ten milliseconds' at a hundred thousand.
const NAPS_NS: [u64; 2] = [500_000, 4_000_000];
/// The nap after a failure.
const FAILED_NAP_NS: u64 = 20_000_000;
/// How often dead processes are looked for.
const LOOK_NS: u64 = 1_000_000_000;

/// Drains until the process ends, or the host has no other thread left; or says why it cannot.
pub fn run(host: &impl Host) -> Result<(), &'static str> {
    let header = host.header().ok_or("there is no ring file")?;
    // Shared with the host, a descriptor could be closed by it, and its number be the host's own file a moment later.
    // Nothing may be opened before that, not even for a moment.
    let settings = header.settings.split(|&byte| byte == 0).next().unwrap_or_default();
    let stderr = Stderr::asked(&String::from_utf8_lossy(settings));
    let kept = (stderr != Stderr::Off).then_some(libc::STDERR_FILENO);
    own_descriptors(kept).ok_or("it gets no descriptors of its own (close_range, unshare)")?;
    let host_threads = HostThreads::new().ok_or("without /proc nobody can tell when it has to end")?;
    crate::log::install();
    let path = PathBuf::from(OsStr::from_bytes(host.ring_dir()))
        .join(format!("{PREFIX}{}-{:x}{SUFFIX}", header.pid, header.born_ns));
    let mut held = hold(&path);
    let mut nap = NAPS_NS[1];
    // A drain outside has this process: for good, or for a moment only.
    while matches!(held, Err(RingFileError::Locked)) {
        let asked = host.asked();
        host.answer(asked);
        if host_threads.are_gone() {
            return Ok(());
        }
        host.wait(asked, nap);
        nap = (2 * nap).min(LOOK_NS);
        held = hold(&path);
    }
    // Where nothing can be locked there is no other drain either.
    let held = held.ok();
    let ring = |number| host.ring(number);
    let mut drain = Drain::inside(header);
    drain.speak(stderr);
    let mut adoption = Adoption::new(path, header);
    let (mut answered, mut nap) = (0, NAPS_NS[0]);
    let mut looked = 0;
    let slots = u64::from(header.slots);
    loop {
        let asked = host.asked();
        let begun = monotonic_ns();
        let moved = drain.pass(header, ring, ReadMode::Drain);
        let pass_ns = monotonic_ns().saturating_sub(begun);
        let fullest = drain.take_fullest();
        let is_over = host_threads.are_gone();
        if asked != answered || is_over {
            // What came meanwhile, too; but not for ever, where threads go on.
            for _ in 0..8 {
                if drain.pass(header, ring, ReadMode::Flush) == 0 {
                    break;
                }
            }
            drain.stop(header, ring, "the program ends");
            host.answer(asked);
            answered = asked;
        }
        if is_over {
            break;
        }
        // Not before the first records are written: a short program is not to wait for what others have left.
        if answered == 0 && drain.is_well() && monotonic_ns().saturating_sub(looked) >= LOOK_NS {
            let is_done = adoption.look();
            looked = if is_done { monotonic_ns() } else { 0 };
        }
        // What cannot be written now need not be tried at once; a pass that found a ring filled to a quarter should have come
        // sooner. A pass over thousands of rings takes long, however little each of them holds.
        nap = match fullest {
            _ if !drain.is_well() => FAILED_NAP_NS,
            0 => (nap + nap / 4).min(NAPS_NS[1]),
            few if few < slots / 4 => nap.max(4 * pass_ns).min(NAPS_NS[1]),
            _ => NAPS_NS[0],
        };
        // A pass takes what a ring holds and no more, so that each has its turn; where that was much, there is more by now.
        let is_behind = moved >= slots / 2 && fullest >= slots / 8 && drain.is_well();
        if !is_behind {
            host.wait(asked, nap);
        }
    }
    drop(held);
    Ok(())
}

/// The threads of this process, asked through descriptors of our own: a later chroot does not hide them.
struct HostThreads(File);

impl HostThreads {
    fn new() -> Option<Self> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let folder = OpenOptions::new().read(true).custom_flags(flags).open("/proc/self").ok()?;
        let threads = Self(folder);
        threads.count().map(|_| threads)
    }

    /// How many there are, the first one included even if it has ended: a folder has two links more than folders in it.
    fn count(&self) -> Option<u64> {
        // SAFETY: all zero is a valid value, which the system fills.
        unsafe {
            let mut about = std::mem::zeroed::<libc::stat>();
            let asked = libc::fstatat(self.0.as_raw_fd(), c"task".as_ptr(), &mut about, 0);
            (asked == 0).then_some((about.st_nlink as u64).saturating_sub(2))
        }
    }

    /// Whether the host has none left: there are the drain, its keeper, and the first one, which has ended: it has no
    /// program any more.
    fn are_gone(&self) -> bool {
        if self.count() != Some(3) {
            return false;
        }
        let mut byte = 0u8;
        // SAFETY: a buffer of ours.
        let asked = unsafe { libc::readlinkat(self.0.as_raw_fd(), c"exe".as_ptr(), (&raw mut byte).cast(), 1) };
        asked < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOENT)
    }
}

/// Takes the ring file.
fn hold(path: &std::path::Path) -> Result<File, RingFileError> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map_err(RingFileError::Io)?;
    reader::lock(&file)?;
    Ok(file)
}

/// Gives this thread a descriptor table of its own, empty but for one that may be `kept`: the host's `closefrom` does not
/// reach it, its numbers are nobody else's, and nothing of the host's is held open.
fn own_descriptors(kept: Option<i32>) -> Option<()> {
    const CLOSE_RANGE_UNSHARE: libc::c_uint = 2;
    // SAFETY: concerns this thread's descriptors only.
    unsafe {
        let close = |from: libc::c_uint, to: libc::c_uint| {
            libc::syscall(libc::SYS_close_range, from, to, CLOSE_RANGE_UNSHARE) == 0
        };
        let kept = kept.map(|kept| kept as libc::c_uint);
        let is_done = match kept {
            Some(kept) => close(kept + 1, libc::c_uint::MAX) && (kept == 0 || close(0, kept - 1)),
            None => close(0, libc::c_uint::MAX),
        };
        if is_done {
            return Some(());
        }
        // Before Linux 5.9 the copies must be closed one by one. No list of them is asked for: it could not be had
        // where there are too many.
        let mut limit = std::mem::zeroed::<libc::rlimit>();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 || libc::unshare(libc::CLONE_FILES) != 0 {
            return None;
        }
        for fd in (0..limit.rlim_max.min(1 << 20) as libc::c_uint).filter(|fd| Some(*fd) != kept) {
            libc::close(fd as i32);
        }
    }
    Some(())
}
