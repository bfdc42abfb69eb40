//! Draining the rings of a run from outside, while the program runs and, in a process of its own, afterwards.

use super::say;
use crate::files::{own_user, processes};
use aclshim_collect::drain::outside::{Outside, Passed};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, RingReader};
use aclshim_trace::system::clock::realtime_ns;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where rings are, and which are those of a run.
#[derive(Clone)]
pub struct RunFolders {
    pub rings: PathBuf,
    /// Where their records go: others are none of ours.
    pub dir: PathBuf,
}

/// Number of slots in one pass from which on the next pass comes sooner.
const MANY: u64 = 256;
/// How long it looks for new rings more often.
const BEGIN: Duration = Duration::from_secs(1);
/// Time after a change in which a folder may change again without a new modification time.
const TICK_NS: u64 = 20_000_000;

/// Drains, and looks for new rings as soon as the folder changes.
struct DrainLoop {
    outside: Outside,
    folder: PathBuf,
    looked: Option<(Instant, u64)>,
    pause: Duration,
    began: Instant,
}

impl DrainLoop {
    fn new(folders: &RunFolders) -> Self {
        let mut outside = Outside::new(&folders.rings);
        outside.only(&folders.dir);
        Self {
            outside,
            folder: folders.rings.clone(),
            looked: None,
            pause: Duration::from_millis(1),
            began: Instant::now(),
        }
    }

    /// One round; how long the next one can wait.
    fn round(&mut self) -> (Passed, Duration) {
        let changed = std::fs::metadata(&self.folder)
            .map_or(0, |about| (about.mtime() as u64).saturating_mul(1_000_000_000) + about.mtime_nsec() as u64);
        let is_fresh = self.looked.is_some_and(|(when, at)| {
            let is_settled = realtime_ns().saturating_sub(changed) > TICK_NS;
            when.elapsed() < Duration::from_millis(100) && at == changed && is_settled
        });
        if !is_fresh {
            self.outside.look();
            self.looked = Some((Instant::now(), changed));
        }
        let passed = self.outside.pass();
        // At first rings are about to come.
        let longest = Duration::from_millis(if self.began.elapsed() < BEGIN { 1 } else { 4 });
        self.pause = match passed.slots {
            0 => (self.pause * 5 / 4).min(longest),
            few if few < MANY => Duration::from_micros(500),
            _ => Duration::from_micros(50),
        };
        (passed, self.pause)
    }

    /// The last round for now; how many processes go on.
    fn finish(&mut self) -> usize {
        self.outside.look();
        self.outside.pass().processes
    }
}

/// The thread that drains while the program runs. (Its signals are those of the thread that starts it: blocked.)
pub struct RingDrainer {
    stop: Arc<AtomicBool>,
    /// Without one all is drained in the end.
    thread: std::io::Result<JoinHandle<usize>>,
    folders: RunFolders,
}

impl RingDrainer {
    /// Starts the thread.
    pub fn start(folders: &RunFolders) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (of_thread, is_over) = (folders.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new().spawn(move || {
            let mut drain_loop = DrainLoop::new(&of_thread);
            while !is_over.load(Ordering::Acquire) {
                let (_, pause) = drain_loop.round();
                std::thread::park_timeout(pause);
            }
            drain_loop.finish()
        });
        if let Err(why) = &thread {
            say(format_args!(
                "aclshim: no thread can be started ({why}): records are written when the program has ended, and those that a \
                 ring has no room for are lost"
            ));
        }
        Self { stop, thread, folders: folders.clone() }
    }

    /// Writes what is left, and says how many processes with rings go on.
    pub fn finish(self) -> usize {
        self.stop.store(true, Ordering::Release);
        let Ok(thread) = self.thread else { return DrainLoop::new(&self.folders).finish() };
        thread.thread().unpark();
        thread.join().unwrap_or(0)
    }
}

/// The processes that were started by a run and are still there, known by these entries of their environment.
pub fn still_running(marks: &[Vec<u8>]) -> Vec<u32> {
    // Collectors that were started by a program of a run are no part of it.
    let own = std::fs::read_link("/proc/self/exe").ok();
    let is_marked = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let entries: Vec<&[u8]> = environment.split(|&byte| byte == 0).collect();
        marks.iter().all(|mark| entries.contains(&mark.as_slice()))
            && std::fs::read_link(format!("/proc/{pid}/exe")).ok() != own
    };
    processes().filter(is_marked).collect()
}

/// Leaves a process behind that drains until all rings of the run and all its processes are gone; its number. It has no
/// terminal, no descriptor and no folder of ours. There must be one thread.
pub fn detach(folders: &RunFolders, marks: &[Vec<u8>]) -> std::io::Result<u32> {
    // SAFETY: there is one thread: the child may do what it likes.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            // SAFETY: concerns the new process only, which does not use its descriptors.
            unsafe {
                libc::setsid();
                libc::chdir(c"/".as_ptr());
                if libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) != 0 {
                    (0..1024).for_each(|fd| _ = libc::close(fd));
                }
                (0..3).for_each(|_| _ = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR));
            }
            drain_alone(folders, marks);
            // SAFETY: nothing of ours is to be done at the end of this process.
            unsafe { libc::_exit(0) }
        }
        pid => Ok(pid as u32),
    }
}

fn drain_alone(folders: &RunFolders, marks: &[Vec<u8>]) {
    let mut drain_loop = DrainLoop::new(folders);
    let mut asked = Instant::now();
    loop {
        let (passed, pause) = drain_loop.round();
        if passed.processes == 0 && asked.elapsed() > Duration::from_millis(500) {
            if still_running(marks).is_empty() && drain_loop.finish() == 0 {
                return;
            }
            asked = Instant::now();
        }
        std::thread::sleep(pause);
    }
}

/// Rings for this directory that belong to other users, made since: they are read but not written.
pub fn of_others(folders: &RunFolders, since_ns: u64) -> Vec<(u32, u32)> {
    let is_anothers = |path: &PathBuf| path.symlink_metadata().is_ok_and(|about| about.uid() != own_user());
    let files = reader::files(&folders.rings).unwrap_or_default();
    let others = files.into_iter().filter(is_anothers).filter_map(|path| origin(&path));
    let of_run = others.filter(|origin| origin.dir == folders.dir && origin.born_ns >= since_ns);
    of_run.map(|origin| (origin.pid, origin.uid)).collect()
}

/// Our own rings for this directory.
pub fn own(folders: &RunFolders) -> Vec<PathBuf> {
    let is_own =
        |path: &PathBuf| path.symlink_metadata().is_ok_and(|about| about.is_file() && about.uid() == own_user());
    let is_for_us = |path: &PathBuf| is_own(path) && origin(path).is_some_and(|origin| origin.dir == folders.dir);
    reader::files(&folders.rings).unwrap_or_default().into_iter().filter(is_for_us).collect()
}

/// The origin of a ring file; `None` if it cannot be read.
fn origin(path: &Path) -> Option<Origin> {
    RingReader::open(path).ok().map(|ring| Origin::new(ring.header()))
}
