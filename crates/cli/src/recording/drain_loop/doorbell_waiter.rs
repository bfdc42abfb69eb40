//! The thread that waits for the doorbell of one ring file and passes a wake-up on to the drain loop.
//!
//! The loop waits for many things at once, by descriptors, and a doorbell is a word in memory. (The system call that waits for
//! several such words, `futex_waitv`, is younger than the kernels in use.)
//!
//! Steps of a wake-up:
//!
//! 1. The loop stores [`ASLEEP`] in the doorbell and [arms](DoorbellWaiter::arm) the waiter if it is not.
//! 2. The waiter waits while the doorbell says [`ASLEEP`]. If it says something else when the wait begins, a writer has rung
//!    meanwhile, or the loop is awake for another reason: both end the wait, the latter for nothing.
//! 3. A writer rings. The waiter signals the loop, and does not look at the doorbell until it is armed again: a doorbell that
//!    says "awake" cannot be waited for.
//!
//! The loop may wake up for another reason, store "awake" and later [`ASLEEP`] again: the waiter sleeps on meanwhile, in a
//! wait that a writer ends.

use super::poll::Wakeup;
use aclshim_trace::reader::SharedHeader;
use aclshim_trace::ring::doorbell::{self, ASLEEP};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Bytes of the stack of a waiter.
const STACK: usize = 64 * 1024;
/// How often, and after which pauses, a waiter is woken to make it end. Once is enough unless another process writes to the
/// doorbell at the same moment.
const STOPS: u32 = 1000;
const STOP_PAUSE: Duration = Duration::from_micros(100);

/// The waiter waits for the doorbell, or is about to.
const ARMED: u32 = 0;
/// The doorbell has rung. The waiter waits to be armed.
const RUNG: u32 = 1;
/// The waiter ends.
const STOPPED: u32 = 2;
/// The doorbell could not be waited for, and the waiter has ended.
const FAILED: u32 = 3;

/// A thread that waits for a doorbell. It ends when this value is dropped.
pub struct DoorbellWaiter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    header: SharedHeader,
    state: AtomicU32,
    wakeup: Arc<Wakeup>,
}

impl DoorbellWaiter {
    /// Starts it, armed. It signals `wakeup` when the doorbell rings.
    pub fn start(header: SharedHeader, wakeup: Arc<Wakeup>) -> io::Result<Self> {
        let shared = Arc::new(Shared { header, state: AtomicU32::new(ARMED), wakeup });
        let of_thread = Arc::clone(&shared);
        let thread = with_blocked_signals(|| {
            Builder::new().name("doorbell".into()).stack_size(STACK).spawn(move || of_thread.run())
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Whether the doorbell has rung since the waiter was armed.
    pub fn has_rung(&self) -> bool {
        self.shared.state.load(Ordering::Acquire) == RUNG
    }

    /// Whether the doorbell cannot be waited for.
    pub fn has_failed(&self) -> bool {
        self.shared.state.load(Ordering::Acquire) == FAILED
    }

    /// Waits for the doorbell again, which says [`ASLEEP`]; nothing if it still does.
    pub fn arm(&self) {
        if self.shared.state.compare_exchange(RUNG, ARMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }
}

impl Drop for DoorbellWaiter {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.state.store(STOPPED, Ordering::Release);
        thread.thread().unpark();
        for _ in 0..STOPS {
            doorbell::wake(&self.shared.header.get().doorbell);
            if thread.is_finished() {
                let _ = thread.join();
                return;
            }
            std::thread::sleep(STOP_PAUSE);
        }
    }
}

impl Shared {
    fn run(&self) {
        loop {
            let state = if self.wait_for_ring().is_ok() { RUNG } else { FAILED };
            if self.state.compare_exchange(ARMED, state, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                return;
            }
            self.wakeup.signal();
            if state == FAILED {
                return;
            }
            while self.state.load(Ordering::Acquire) == RUNG {
                std::thread::park();
            }
            if self.state.load(Ordering::Acquire) == STOPPED {
                return;
            }
        }
    }

    /// Waits while the doorbell says [`ASLEEP`]. Fails where the system refuses that, and where the file has been cut short;
    /// then the word must not be touched.
    fn wait_for_ring(&self) -> io::Result<()> {
        let word = self.header.get().doorbell.as_ptr();
        loop {
            let no_limit = std::ptr::null::<libc::timespec>();
            // SAFETY: a word in a mapping that this value holds.
            if unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, ASLEEP, no_limit, 0, 0) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN) => return Ok(()),
                Some(libc::EINTR) => {}
                _ => return Err(error),
            }
        }
    }
}

/// Blocks all signals while `start` starts a thread, which inherits that.
fn with_blocked_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: sets of ours; all zero is a valid one, which is filled before it is used.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::drain_loop::poll::wait;
    use aclshim_trace::reader::RingFile;
    use aclshim_trace::ring::file::{RingSize, create};
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;

    const LONG: Duration = Duration::from_secs(20);

    /// A ring file of this process, opened a second time as a drain does it.
    fn ring_file(name: &str) -> (PathBuf, RingFile) {
        let folder = std::env::temp_dir().join(format!("doorbell-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        create(folder.as_os_str().as_bytes(), RingSize::fixed(64), |_| ()).unwrap();
        let path = aclshim_trace::reader::files(&folder).unwrap().remove(0);
        (folder, RingFile::open_to_drain(&path).unwrap())
    }

    fn is_signalled(wakeup: &Wakeup, most: Duration) -> bool {
        wait(&[wakeup.as_fd()], most) == [true]
    }

    #[test]
    fn each_ring_of_the_doorbell_signals_the_loop_once_it_is_armed() {
        let (folder, file) = ring_file("rings");
        let word = &file.header().doorbell;
        let wakeup = Arc::new(Wakeup::new().unwrap());
        doorbell::announce_sleep(word);
        let waiter = DoorbellWaiter::start(file.shared_header().unwrap(), Arc::clone(&wakeup)).unwrap();
        for _ in 0..100 {
            assert!(doorbell::is_wake_needed(word));
            doorbell::wake(word);
            assert!(is_signalled(&wakeup, LONG) && waiter.has_rung());
            wakeup.clear();
            doorbell::announce_sleep(word);
            waiter.arm();
            assert!(!waiter.has_rung() && !is_signalled(&wakeup, Duration::ZERO));
            // The loop wakes up by itself and sleeps again: the waiter need not know.
            doorbell::stay_awake(word);
            doorbell::announce_sleep(word);
        }
        drop(waiter);
        assert!(doorbell::wait(word, 0), "the mapping is still there");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_waiter_ends_with_its_value_whether_it_is_armed_or_not() {
        let (folder, file) = ring_file("ends");
        let word = &file.header().doorbell;
        let wakeup = Arc::new(Wakeup::new().unwrap());
        for has_rung in [false, true] {
            doorbell::announce_sleep(word);
            let waiter = DoorbellWaiter::start(file.shared_header().unwrap(), Arc::clone(&wakeup)).unwrap();
            if has_rung {
                doorbell::wake(word);
                assert!(is_signalled(&wakeup, LONG));
            }
            drop(waiter);
            wakeup.clear();
            assert_eq!(Arc::strong_count(&wakeup), 1, "the thread is gone");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_was_cut_short_ends_the_waiter() {
        let (folder, file) = ring_file("short");
        file.file().set_len(0).unwrap();
        let wakeup = Arc::new(Wakeup::new().unwrap());
        let waiter = DoorbellWaiter::start(file.shared_header().unwrap(), Arc::clone(&wakeup)).unwrap();
        assert!(is_signalled(&wakeup, LONG) && waiter.has_failed());
        // The header must not be touched any more.
        std::mem::forget(waiter);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
