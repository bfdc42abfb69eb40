//! Draining the rings of a run from outside, while the program runs and, in a process of its own, afterwards.

use super::say;
use crate::files::{own_user, processes};
use crate::recording::drain_loop::DrainLoop;
use crate::recording::drain_loop::poll::Wakeup;
use aclshim_collect::drain::outside::Outside;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, RingReader};
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

/// The time after which the processes of a run are looked for again. The end of one that is known wakes the collector.
const LOOK: Duration = Duration::from_secs(10);

/// As [`LOOK`], where processes end while they are looked for.
const AGAIN: Duration = Duration::from_millis(100);

/// Drains the rings of a run; see [`drain_loop`](crate::recording::drain_loop).
fn drain_loop(folders: &RunFolders, wakeup: Option<Arc<Wakeup>>) -> DrainLoop {
    let mut outside = Outside::new(&folders.rings);
    outside.only(&folders.dir);
    DrainLoop::new(outside, &folders.rings, wakeup)
}

/// What ends the sleep of a drain loop. Without one it takes naps.
fn wakeup() -> Option<Arc<Wakeup>> {
    Wakeup::new().ok().map(Arc::new)
}

/// The thread that drains while the program runs. (Its signals are those of the thread that starts it: blocked.)
pub struct RingDrainer {
    stop: Arc<AtomicBool>,
    wakeup: Option<Arc<Wakeup>>,
    /// Without one all is drained in the end.
    thread: std::io::Result<JoinHandle<usize>>,
    folders: RunFolders,
}

impl RingDrainer {
    /// Starts the thread.
    pub fn start(folders: &RunFolders) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let wakeup = wakeup();
        let (of_thread, is_over, woken_by) = (folders.clone(), Arc::clone(&stop), wakeup.clone());
        let thread = std::thread::Builder::new().spawn(move || {
            let mut drain_loop = drain_loop(&of_thread, woken_by);
            while !is_over.load(Ordering::Acquire) {
                drain_loop.turn(|_| ());
                drain_loop.sleep(&[], Duration::MAX);
            }
            drain_loop.finish()
        });
        if let Err(why) = &thread {
            say(format_args!(
                "aclshim: no thread can be started ({why}): records are written when the program has ended, and those that a \
                 ring has no room for are lost"
            ));
        }
        Self { stop, wakeup, thread, folders: folders.clone() }
    }

    /// Writes what is left, and says how many processes with rings go on.
    pub fn finish(self) -> usize {
        self.stop.store(true, Ordering::Release);
        let Ok(thread) = self.thread else { return drain_loop(&self.folders, None).finish() };
        self.wakeup.iter().for_each(|wakeup| wakeup.signal());
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
    let mut drain_loop = drain_loop(folders, wakeup());
    let mut looked = None::<Instant>;
    loop {
        let turn = drain_loop.turn(|_| ());
        let is_due = looked.is_none_or(|at| at.elapsed() >= LOOK) || turn.has_changed || turn.has_undrained_ended;
        if turn.processes == 0 && is_due {
            let left = still_running(marks);
            if left.is_empty() && drain_loop.finish() == 0 {
                return;
            }
            drain_loop.watch_ends(&left);
            // One that has ended meanwhile cannot be watched.
            looked = (still_running(marks) == left).then(Instant::now);
        }
        drain_loop.sleep(&[], if looked.is_some() || turn.processes > 0 { LOOK } else { AGAIN });
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
