//! The drain inside the host: the loop of a thread that its host has started for it.

use crate::drain::adoption::Adoption;
use crate::drain::{Drain, rings};
use crate::live_log::stderr::Stderr;
use aclshim_trace::reader::{self, ReadMode, Ring, RingFileError};
use aclshim_trace::ring::layout::{Header, PREFIX, SUFFIX};
use aclshim_trace::ring::{doorbell, growth};
use aclshim_trace::system::clock::monotonic_ns;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

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
    /// Answers a host that has asked for everything to be written.
    fn answer(&self, asked: u32);
    /// Whether the first thread of the host is known to have ended.
    fn is_first_thread_gone(&self) -> bool;
    /// Waits until it is asked again, at most `ns` nanoseconds: where the doorbell is another drain's, or the system refuses
    /// to wait for it.
    fn wait(&self, asked: u32, ns: u64);
}

/// Number of slots of a ring in one pass from which on the next pass follows at once.
const MANY: u64 = 512;
/// The timer of a drain that is not woken: after a pass with records, and after one without.
const TIMER_NS: [u64; 2] = [1_000_000_000, 10_000_000_000];
/// The first and the longest nap after a failure; the first one also while another drain has the file.
const RETRY_NS: [u64; 2] = [20_000_000, 1_000_000_000];
/// The nap while dead processes are being looked for: a folder with many files is read in parts.
const SEARCH_NAP_NS: u64 = 20_000_000;
/// The longest nap where a sandbox refuses to wait for the doorbell.
const REFUSED_NAP_NS: u64 = 4_000_000;
/// How often dead processes are looked for.
const SEARCH_NS: u64 = 10_000_000_000;
/// The first and the longest nap of a host whose first thread has ended: with its last thread the drain has to end.
const LAST_THREADS_NS: [u64; 2] = [20_000_000, 2_000_000_000];

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
    let mut nap = RETRY_NS[0];
    // A drain outside has this process: for good, or for a moment only.
    while matches!(held, Err(RingFileError::Locked)) {
        let asked = host.asked();
        host.answer(asked);
        if host_threads.are_gone() {
            return Ok(());
        }
        // Not by the doorbell, which is the other drain's.
        host.wait(asked, nap);
        nap = (2 * nap).min(TIMER_NS[1]);
        held = hold(&path);
    }
    // Where nothing can be locked there is no other drain either.
    let held = held.ok();
    // To give storage to rings, where the process cannot.
    let mut writable: Option<File> = None;
    let ring = |number| host.ring(number);
    let mut drain = Drain::inside(header);
    drain.speak(stderr);
    let mut adoption = Adoption::new(path.clone(), header);
    let (mut answered, mut searched, mut growth) = (0, 0, header.growth.load(Ordering::Relaxed));
    let (mut retry, mut last_threads) = (RETRY_NS[0], LAST_THREADS_NS[0]);
    let mut is_timer = false;
    loop {
        let asked = host.asked();
        let marks = marks(header, &ring);
        if header.drain_allocates.load(Ordering::Relaxed) != 0 {
            writable = writable.or_else(|| open(&path, OpenOptions::new().read(true).write(true)).ok());
            if let Some(file) = &writable {
                let rings = (0..rings(header)).filter_map(|number| Some((number, ring(number)?)));
                reader::allocate_ahead(header, file.as_raw_fd(), rings);
            }
        }
        let moved = drain.pass(header, ring, ReadMode::Drain);
        let left = header.growth.load(Ordering::Relaxed);
        if left != growth
            && let Some(file) = &held
        {
            growth::renew(header, file.as_raw_fd());
        }
        growth = header.growth.load(Ordering::Relaxed);
        let is_first_thread_gone = host.is_first_thread_gone();
        let is_over = (is_timer || is_first_thread_gone) && host_threads.are_gone();
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
        // A pass takes what a ring holds and no more, so that each has its turn; where that was much, there is more by now.
        let fullest = drain.take_fullest();
        if fullest >= MANY && drain.is_well() {
            continue;
        }
        // Not before the first records are written: a short program is not to wait for what others have left.
        let is_search_due = answered == 0 && drain.is_well() && monotonic_ns().saturating_sub(searched) >= SEARCH_NS;
        let is_searching = is_search_due && !adoption.look();
        if is_search_due && !is_searching {
            searched = monotonic_ns();
        }
        let mut nap = TIMER_NS[usize::from(moved == 0 && is_timer)];
        if is_searching {
            nap = SEARCH_NAP_NS;
        }
        if is_first_thread_gone {
            nap = nap.min(last_threads);
            last_threads = (2 * last_threads).min(LAST_THREADS_NS[1]);
        }
        if drain.is_well() {
            retry = RETRY_NS[0];
        } else {
            nap = nap.min(retry);
            retry = (2 * retry).min(RETRY_NS[1]);
        }
        is_timer = sleep(host, header, nap, || {
            host.asked() == asked
                && host.is_first_thread_gone() == is_first_thread_gone
                && self::marks(header, &ring) == marks
        });
    }
    drop(held);
    Ok(())
}

/// A number that changes when a thread has filled a quarter of its ring, or a thread gets a ring.
fn marks<'a>(header: &Header, ring: &impl Fn(usize) -> Option<Ring<'a>>) -> u64 {
    let rings = rings(header);
    let mark = |number| ring(number).map_or(0, |ring: Ring<'a>| ring.control.mark.load(Ordering::Relaxed));
    (0..rings).map(mark).fold(rings as u64, u64::wrapping_add)
}

/// Sleeps for `ns` nanoseconds, or until a writer wakes the drain, unless `is_idle` finds that there is something to do.
/// Returns whether the time has passed.
fn sleep(host: &impl Host, header: &Header, ns: u64, is_idle: impl Fn() -> bool) -> bool {
    doorbell::announce_sleep(&header.doorbell);
    if !is_idle() {
        doorbell::stay_awake(&header.doorbell);
        return false;
    }
    let begin = monotonic_ns();
    if !doorbell::wait(&header.doorbell, ns) {
        host.wait(host.asked(), ns.min(REFUSED_NAP_NS));
        return true;
    }
    monotonic_ns().saturating_sub(begin) >= ns
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

/// Takes the ring file. Opened to be read: a drain outside watches for the end of those that can write to it.
fn hold(path: &std::path::Path) -> Result<File, RingFileError> {
    let file = open(path, OpenOptions::new().read(true)).map_err(RingFileError::Io)?;
    reader::lock(&file)?;
    Ok(file)
}

fn open(path: &std::path::Path, options: &mut OpenOptions) -> std::io::Result<File> {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)
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
