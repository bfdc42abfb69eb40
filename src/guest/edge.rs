//! The edge of our own cold paths: nothing that happens there may reach the host.

use crate::guest::thread;
use aclshim_trace::system::clock::monotonic_ns;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

unsafe extern "C-unwind" {
    // Not in the libc crate. Restoring the state may act on a pending request at once, by unwinding.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}
const CANCEL_DISABLE: c_int = 1;

/// Runs work of ours that touches nothing of the thread's; a panic is `None`. A handler may jump out of it.
pub fn catching_panics<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Runs a cold path of ours: errno is afterwards what it was, a panic is `None`, and the thread is
/// not cancelled in it (our file operations are no cancellation points of the host's, and a
/// cancellation cannot pass a `catch_unwind`).
#[unsafe(link_section = ".text.startup")]
pub fn preserving_errno<T>(work: impl FnOnce() -> T) -> Option<T> {
    let mut cancel_state = 0;
    // SAFETY: errno and the cancellation state are the calling thread's own.
    unsafe {
        let place = libc::__errno_location();
        let before = *place;
        pthread_setcancelstate(CANCEL_DISABLE, &mut cancel_state);
        let answer = catch_unwind(AssertUnwindSafe(work)).ok();
        *place = before;
        pthread_setcancelstate(cancel_state, &mut cancel_state);
        answer
    }
}

/// Runs a cold path of ours as [`preserving_errno`] does, with the thread's signals blocked: a handler that jumped out
/// would leave the thread's state or a lock behind, one that copied would wait for itself. (A thread that is started
/// meanwhile inherits this, as threads of ours are to.)
pub fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> Option<T> {
    // By libc's function: the raw call would also block the signals that libc needs itself.
    // SAFETY: signal sets of ours.
    unsafe {
        let mut ours = core::mem::zeroed();
        let mut before = core::mem::zeroed();
        libc::sigfillset(&mut ours);
        // Not those that an instruction of our own may raise: blocked, they would kill the host. They are as the host has
        // them: one that it blocks may be pending, and must not come now.
        let of_instructions =
            [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];
        for signal in of_instructions {
            libc::sigdelset(&mut ours, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &ours, &mut before);
        if libc::sigismember(&before, libc::SIGSYS) == 1 {
            unblock_sigsys();
        }
        let outer = thread::current().blocked.replace(&raw const before);
        let answer = preserving_errno(work);
        thread::current().blocked.set(outer);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, core::ptr::null_mut());
        answer
    }
}

/// Lets SIGSYS through: a sandbox answers system calls of ours by it, also in a thread that makes none of its own, and
/// where it is blocked the kernel ends the program.
pub fn unblock_sigsys() {
    // SAFETY: a signal set of ours.
    unsafe {
        let mut answer = core::mem::zeroed();
        libc::sigemptyset(&mut answer);
        libc::sigaddset(&mut answer, libc::SIGSYS);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &answer, core::ptr::null_mut());
    }
}

/// The signals that the host had blocked itself when [`with_signals_blocked`] began.
pub fn blocked() -> Option<libc::sigset_t> {
    // SAFETY: NULL, or the set of the frame that we run in.
    unsafe { thread::current().blocked.get().as_ref().copied() }
}

/// Longest time that a caller waits rather than lose a call: for room (`ACLSHIM_RECORD=lossless`), or, once a thread, for the
/// ring file that another thread is making.
pub const LONG_WAIT_NS: u64 = 100_000_000;
/// How long such a caller sleeps between two attempts.
pub const WAIT_PAUSE_NS: i64 = 100_000;

/// Sleeps a little, without being a cancellation point. The caller's errno is changed.
pub fn pause(ns: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: ns };
    // SAFETY: a value of ours.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0) };
}

/// Whether this thread may have been interrupted by a signal: one is blocked that has a handler.
/// What was interrupted may have a lock, the allocator's or the vendor's. Only within [`with_signals_blocked`].
pub fn may_be_in_a_handler() -> bool {
    let Some(blocked) = blocked() else { return true };
    // SAFETY: asks about signals; all zero is a valid value, which the system fills.
    let is_handled = |signal: &libc::c_int| unsafe {
        let mut action = core::mem::zeroed::<libc::sigaction>();
        libc::sigismember(&blocked, *signal) == 1
            && libc::sigaction(*signal, core::ptr::null(), &mut action) == 0
            && ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction)
    };
    (1..=libc::SIGRTMAX()).any(|signal| is_handled(&signal))
}

/// How long something is put off that must not be done in a signal handler, where that is not certain: a thread
/// that blocks signals for good looks as if it were in one. All zero: it was not put off yet.
#[repr(C)]
pub struct Backoff {
    attempts: AtomicU32,
    /// When the first attempt was put off, in milliseconds.
    since: AtomicU32,
}

/// Number of attempts, and of milliseconds, after which the next attempt is not put off.
const BACKOFF: u32 = 16;
const BACKOFF_MS: u32 = 1000;

impl Backoff {
    /// Whether an attempt is put off once more. Only within [`with_signals_blocked`].
    pub fn must_wait(&self) -> bool {
        if !may_be_in_a_handler() {
            return false;
        }
        let now = (monotonic_ns() / 1_000_000) as u32;
        let before = self.attempts.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            self.since.store(now, Ordering::Relaxed);
        }
        before < BACKOFF || now.wrapping_sub(self.since.load(Ordering::Relaxed)) < BACKOFF_MS
    }

    /// Whether an attempt was put off.
    pub fn has_waited(&self) -> bool {
        self.attempts.load(Ordering::Relaxed) > 0
    }

    /// After how many calls the next attempt is worth its cost.
    pub fn calls(&self) -> u64 {
        1 << self.attempts.load(Ordering::Relaxed).min(10)
    }
}
