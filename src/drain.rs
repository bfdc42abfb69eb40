//! The drain inside the host: a thread of ours that writes records to disk, started with the first copy.
//!
//! It leaves no trace in what belongs to the host: its own heap, its own descriptors, all signals
//! blocked, no lock that a host's thread ever takes. The host talks to it through a few words of
//! memory; at its end it waits for the last records to be written, but not for ever.
//!
//! There are two threads. A program may end by its last thread's end, and libc then runs what the
//! program has for its end on that thread; so the last one must not be the drain, which has no
//! descriptor of the program's. The supervisor has, and a stack as large as any: it waits for the drain, which ends
//! when the program has no other thread left.

use crate::guest::log::{self, Event};
use crate::guest::{edge, first_thread, thread};
use crate::loader::bindings;
use crate::ring::handshake::DrainHandshake;
use crate::ring::process::{self, Process};
use crate::settings::{may_write_files, settings};
use aclshim_collect::drain::inside;
use aclshim_core::heap::Heap;
use aclshim_facts::settings::Drain;
use aclshim_trace::reader::Ring;
use aclshim_trace::ring::cursor::RingCursor;
use aclshim_trace::ring::doorbell;
use aclshim_trace::system::clock::monotonic_ns;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

const NEW: u32 = 0;
const RUNS: u32 = 1;
const NEVER: u32 = 2;

/// Starts the drain unless there is one, or must not be one. Signals are blocked.
pub fn ensure(process: &'static Process) {
    let handshake = &process.drain;
    if handshake.state.load(Ordering::Relaxed) != NEW {
        return;
    }
    if matches!(settings().drain, Drain::Outside | Drain::Off) || !may_write_files() {
        handshake.state.store(NEVER, Ordering::Relaxed);
        return;
    }
    if handshake.backoff.must_wait() {
        return;
    }
    if handshake.state.compare_exchange(NEW, RUNS, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    if bindings::has_thread_sanitizer() {
        let why = "ThreadSanitizer would report races of the drain's descriptors; use aclshim run";
        return not_draining(process, format_args!("{why}"));
    }
    match start() {
        0 => {}
        failed => not_draining(process, format_args!("no thread could be started (errno {failed})")),
    }
}

/// Whether a drain may be at work for this process.
pub fn may_run() -> bool {
    settings().drain == Drain::Outside
        || process::process().is_some_and(|process| process.drain.state.load(Ordering::Relaxed) != NEVER)
}

/// Whether starting it was put off.
fn is_put_off(process: &Process) -> bool {
    let handshake = &process.drain;
    handshake.state.load(Ordering::Relaxed) == NEW && handshake.backoff.has_waited()
}

/// After how many calls its start is worth another attempt, if that was put off.
pub fn calls() -> Option<u64> {
    process::process().filter(|process| is_put_off(process)).map(|process| process.drain.backoff.calls())
}

/// Starts the drain if that was put off; `true` if it was put off again.
pub fn is_still_put_off() -> bool {
    let Some(process) = process::process().filter(|process| is_put_off(process)) else { return false };
    edge::with_signals_blocked(|| ensure(process));
    is_put_off(process)
}

/// Starts the supervisor; errno or 0.
fn start() -> i32 {
    // A sandbox that refuses what libc's locks wait with lets a program of one thread live, and one of several die.
    let word = AtomicU32::new(0);
    // SAFETY: a word of ours that no thread waits for; errno is restored by the caller.
    unsafe {
        let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        if libc::syscall(libc::SYS_futex, word.as_ptr(), wake, 1, 0, 0, 0) < 0 {
            return *libc::__errno_location();
        }
    }
    // SAFETY: a thread of our own, which is not joined. It inherits that signals are blocked.
    spawn(supervise, None).map_or_else(|failed| failed, |id| unsafe { libc::pthread_detach(id) })
}

/// Starts a thread with a stack of that size, or of the usual one.
fn spawn(work: extern "C" fn(*mut c_void) -> *mut c_void, stack: Option<usize>) -> Result<libc::pthread_t, i32> {
    // SAFETY: attributes and a thread of our own.
    unsafe {
        let mut attributes = core::mem::zeroed();
        let mut id = core::mem::zeroed();
        let failed = libc::pthread_attr_init(&mut attributes);
        if failed != 0 {
            return Err(failed);
        }
        if let Some(size) = stack {
            libc::pthread_attr_setstacksize(&mut attributes, size);
        }
        let failed = libc::pthread_create(&mut id, &attributes, work, ptr::null_mut());
        libc::pthread_attr_destroy(&mut attributes);
        // A program's thread-local data lies on the stack too, and some have too much of it.
        match failed {
            0 => Ok(id),
            libc::EINVAL if stack.is_some() => spawn(work, None),
            failed => Err(failed),
        }
    }
}

/// Blocks all signals but that of a sandbox, takes a name, and runs where and as any thread of the program may. By
/// libc's function: the raw call would also block the signals that libc needs itself, and the host's setuid would hang.
fn set_up_thread() {
    // SAFETY: signal sets of ours, our own thread's name.
    unsafe {
        let mut all = core::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigdelset(&mut all, libc::SIGSYS);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, c"aclshim".as_ptr());
        // Not in real time, as the thread that happened to copy first may. Here, because as an attribute of a new thread the
        // policy is refused with the priority of its creator.
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &libc::sched_param { sched_priority: 0 });
        // Not on the one processor that the host has kept for the thread that happened to copy first.
        let mut may = core::mem::zeroed::<libc::cpu_set_t>();
        if libc::sched_getaffinity(libc::getpid(), size_of_val(&may), &mut may) == 0 {
            libc::sched_setaffinity(0, size_of_val(&may), &may);
        }
    }
}

extern "C" fn supervise(_: *mut c_void) -> *mut c_void {
    set_up_thread();
    let Some(process) = process::process() else { return ptr::null_mut() };
    // A thread that was about to start one when a handler forked goes on in the child, which may have its own by now.
    if process.drain.is_supervised.swap(true, Ordering::Relaxed) {
        return ptr::null_mut();
    }
    match spawn(run, Some(256 << 10)) {
        // SAFETY: the thread that was just started; no other thread joins it.
        Ok(drain) => unsafe {
            supervise_drain(&process.drain);
            // By attempts: libc ends the process where a sandbox refuses to wait.
            while pthread_tryjoin_np(drain, ptr::null_mut()) == libc::EBUSY {
                edge::pause(1_000_000);
            }
            // What the program has for its end may run on this thread now: as on one of its own.
            let mut none = core::mem::zeroed();
            libc::sigemptyset(&mut none);
            libc::pthread_sigmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        },
        Err(failed) => not_draining(process, format_args!("no thread could be started (errno {failed})")),
    }
    ptr::null_mut()
}

/// Waits until the drain has ended. When the first thread of the program ends before that, the drain has to know.
fn supervise_drain(handshake: &DrainHandshake) {
    let has_ended = || handshake.has_ended.load(Ordering::Acquire) != 0;
    // In a fork child it may be the word of a thread that was not forked.
    let is_ours = |id: u32| id == 0 || id == std::process::id();
    let first_thread = first_thread::id_word().filter(|word| is_ours(word.load(Ordering::Relaxed)));
    if let Some(first_thread) = first_thread {
        while !has_ended() && first_thread.load(Ordering::Acquire) != 0 {
            first_thread::wait(first_thread);
        }
        if has_ended() {
            return;
        }
        handshake.is_first_thread_gone.store(true, Ordering::Relaxed);
        wake();
    }
    while !has_ended() {
        futex(&handshake.has_ended, libc::FUTEX_WAIT, 0, u64::MAX);
    }
}

unsafe extern "C" {
    // Not in the libc crate.
    fn pthread_tryjoin_np(thread: libc::pthread_t, value: *mut *mut c_void) -> i32;
}

/// Marks the drain as not running, so that nothing waits for it, and logs why.
fn not_draining(process: &Process, why: core::fmt::Arguments<'_>) {
    log::line(Event::NotDraining, "", format_args!("records stay in the ring and are not written: {why}"));
    // Behind the line: the end of the program waits for either.
    process.drain.state.store(NEVER, Ordering::Release);
}

/// The drain cannot go on, nor end: it stands still, and the host does not notice.
fn give_up(why: &str) -> ! {
    if let Some(process) = process::process() {
        not_draining(process, format_args!("{why}"));
    }
    loop {
        edge::pause(999_999_999);
    }
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    set_up_thread();
    let Some(process) = process::process() else { return ptr::null_mut() };
    match Heap::for_drain(|| give_up("it needs too much memory")) {
        None => not_draining(process, format_args!("there is no memory for it")),
        Some(heap) => {
            thread::current().heap.set(heap);
            match edge::preserving_errno(|| inside::run(&Host(process))).unwrap_or(Err("it has failed")) {
                Ok(()) => process.drain.state.store(NEVER, Ordering::Release),
                Err(why) => not_draining(process, format_args!("{why}")),
            }
        }
    }
    thread::current().heap.set(ptr::null_mut());
    process.drain.has_ended.store(1, Ordering::Release);
    futex(&process.drain.has_ended, libc::FUTEX_WAKE, 1, 0);
    first_thread::id_word().inspect(|word| first_thread::wake(word));
    ptr::null_mut()
}

/// This process, as its drain sees it.
struct Host(&'static Process);

impl inside::Host for Host {
    fn header(&self) -> Option<&'static aclshim_trace::ring::layout::Header> {
        self.0.header()
    }

    fn ring_dir(&self) -> &[u8] {
        settings().ring_dir.as_bytes()
    }

    fn ring(&self, ring: usize) -> Option<Ring<'static>> {
        self.0.ring(ring)
    }

    fn asked(&self) -> u32 {
        self.0.drain.asked.load(Ordering::Acquire)
    }

    fn answer(&self, asked: u32) {
        self.0.drain.answered.store(asked, Ordering::Release);
        futex(&self.0.drain.answered, libc::FUTEX_WAKE, i32::MAX as u32, 0);
    }

    fn is_first_thread_gone(&self) -> bool {
        self.0.drain.is_first_thread_gone.load(Ordering::Relaxed)
    }

    fn wait(&self, asked: u32, ns: u64) {
        futex(&self.0.drain.asked, libc::FUTEX_WAIT, asked, ns);
    }
}

/// Wakes the drain, inside or outside, if it sleeps.
pub fn wake() {
    let Some(header) = process::header() else { return };
    if doorbell::is_wake_needed(&header.doorbell) {
        edge::preserving_errno(|| doorbell::wake(&header.doorbell));
    }
}

/// Wakes the drain if a quarter of the calling thread's ring is not drained.
pub fn wake_if_due(cursor: &RingCursor) {
    if cursor.control().is_some_and(|control| cursor.is_drain_due(control)) {
        wake();
    }
}

/// Waits for a word to change, for ever if `ns` is the largest value, or wakes who does. Where a sandbox refuses that, waiting is a short sleep.
fn futex(word: &AtomicU32, operation: i32, value: u32, ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    let limit = if ns == u64::MAX { ptr::null() } else { &raw const time };
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a word and a value of ours; errno is our own thread's, or restored by the caller.
    unsafe {
        let asked = libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, limit, 0, 0);
        let waited = [libc::EAGAIN, libc::ETIMEDOUT, libc::EINTR];
        if asked < 0 && ns > 0 && !waited.contains(&*libc::__errno_location()) {
            edge::pause(ns.min(4_000_000) as i64);
        }
    }
}

/// Has the drain write everything that there is, and waits for it as long as the settings say.
pub fn finish() {
    let Some(process) = process::process() else { return };
    let handshake = &process.drain;
    if handshake.state.load(Ordering::Acquire) != RUNS {
        return;
    }
    let asked = handshake.asked.fetch_add(1, Ordering::AcqRel) + 1;
    futex(&handshake.asked, libc::FUTEX_WAKE, 1, 0);
    wake();
    let end = monotonic_ns() + settings().end_wait * 1_000_000;
    loop {
        let answered = handshake.answered.load(Ordering::Acquire);
        let left = end.saturating_sub(monotonic_ns());
        if answered >= asked || left == 0 || handshake.state.load(Ordering::Acquire) != RUNS {
            return;
        }
        futex(&handshake.answered, libc::FUTEX_WAIT, answered, left);
    }
}
