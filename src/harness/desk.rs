//! Where the harness keeps everything: behind one lock, in a heap of its own.
//!
//! Whoever sits here has its signals held back, so that no handler can find the desk taken by its own thread; only one
//! for a fault of ours could, and is sent away. Nobody sits here while it touches memory of the caller's, takes a lock of
//! somebody else's (the loader's, the allocator's) or calls anybody: so whoever waits does not wait long.
//!
//! If a handler for a fault of ours jumps out, or ends its thread, the desk stays taken: nobody knows what was half done.
//! From then on everybody is sent away at once.
//!
//! The desk lies on a page that the kernel wipes in a fork child: it begins with nothing, and finds it free.

use super::aclshim_error::{self, *};
use super::state::State;
use super::watch;
use crate::boot::{Standing, standing};
use crate::guest::heap::Heap;
use crate::guest::{edge, thread};
use crate::record::frame::stack;
use crate::ring::{identity, process};
use aclshim_trace::system::clock::monotonic_ns;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The wiped page.
#[repr(C)]
pub struct Desk {
    /// The thread that sits here, by its number, or 0.
    owner: AtomicU32,
    /// The thread that does not come back, as far as anybody knows, or 0: nobody waits for it.
    lost: AtomicU32,
    /// Where the stack of the owner ended when it sat down; 0 if nobody knows.
    stack: AtomicUsize,
    state: AtomicPtr<State>,
    heap: AtomicPtr<Heap>,
    /// Calls that could not be noted.
    pub unseen: AtomicU64,
    /// Expectations that were not met.
    pub failures: AtomicU64,
}

const SIZE: usize = 4096;
const _: () = assert!(size_of::<Desk>() <= SIZE);
/// Whoever sits here longer than that does not come back, for all we know: a fault of ours was handled by a jump.
const PATIENCE_NS: u64 = 5_000_000_000;

static DESK: AtomicPtr<Desk> = AtomicPtr::new(ptr::null_mut());

/// The desk, if somebody has asked for anything.
pub fn desk() -> Option<&'static Desk> {
    // SAFETY: NULL, or a page that is never unmapped.
    unsafe { DESK.load(Ordering::Acquire).as_ref() }
}

/// The desk, made for the first who asks.
fn own() -> Option<&'static Desk> {
    if let Some(desk) = desk() {
        return Some(desk);
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: an anonymous mapping of our own, checked; it is published once and never unmapped.
    unsafe {
        let at = libc::mmap(ptr::null_mut(), SIZE, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        if at == libc::MAP_FAILED {
            return None;
        }
        let is_wiped = libc::madvise(at, SIZE, libc::MADV_WIPEONFORK) == 0;
        if DESK.compare_exchange(ptr::null_mut(), at.cast(), Ordering::AcqRel, Ordering::Acquire).is_err() {
            libc::munmap(at, SIZE);
        } else if !is_wiped {
            // A kernel before 4.14.
            libc::pthread_atfork(None, None, Some(forget_in_child));
        }
    }
    desk()
}

unsafe extern "C" fn forget_in_child() {
    let at = DESK.load(Ordering::Acquire);
    if !at.is_null() {
        // SAFETY: the child has this one thread, and zero is a valid value.
        unsafe { ptr::write_bytes(at.cast::<u8>(), 0, SIZE) };
    }
}

/// Works at the desk.
pub fn with<T>(work: impl FnOnce(&mut State) -> T) -> Result<T, aclshim_error> {
    let worked = edge::undisturbed(|| {
        let desk = own().ok_or(ACLSHIM_MEMORY)?;
        let _seat = desk.sit()?;
        let state = desk.state().ok_or(ACLSHIM_MEMORY)?;
        Ok(work(state))
    });
    worked.unwrap_or(Err(ACLSHIM_MEMORY))
}

/// Works at the desk, and counts it as a call that could not be noted if that is not possible.
pub fn note<T>(work: impl FnOnce(&mut State) -> Option<T>) -> Option<T> {
    if edge::kept(standing) != Some(Standing::Active) {
        return None;
    }
    with(work).unwrap_or_else(|_| {
        miss();
        None
    })
}

/// Counts a call that could not be noted.
pub fn miss() {
    if let Some(desk) = desk() {
        desk.unseen.fetch_add(1, Ordering::Relaxed);
    }
}

/// Lets go of what was made at the desk, at the desk: elsewhere its memory would be lost.
pub fn forget<T>(made: T) {
    let made = core::mem::ManuallyDrop::new(made);
    let _ = with(|_| drop(core::mem::ManuallyDrop::into_inner(made)));
}

/// Whether so many bytes may be taken, and some more for what comes with them. Only at the desk.
pub fn has_room(bytes: usize) -> bool {
    const RESERVE: usize = 4 << 20;
    // SAFETY: NULL, or the heap that is ours while we sit here.
    let heap = unsafe { thread::current().heap.get().as_ref() };
    heap.is_some_and(|heap| heap.spare() / 2 > bytes.saturating_add(RESERVE))
}

/// Somebody sits at the desk.
struct Seat {
    desk: &'static Desk,
    /// What was the thread's before.
    heap: *mut Heap,
}

impl Desk {
    fn sit(&'static self) -> Result<Seat, aclshim_error> {
        let me = identity::thread_id();
        let take = || self.owner.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed);
        let mut since = (0, 0);
        for round in 0u64.. {
            let Err(owner) = take() else { break };
            if owner == me {
                self.find_own();
                return Err(ACLSHIM_BUSY);
            }
            if self.lost.load(Ordering::Relaxed) == owner {
                return Err(ACLSHIM_BUSY);
            }
            if round < 64 {
                // SAFETY: gives the processor to whoever we wait for.
                unsafe { libc::sched_yield() };
                continue;
            }
            let now = monotonic_ns();
            if since.0 != owner {
                since = (owner, now);
            }
            if now - since.1 > PATIENCE_NS || !process::is_alive(owner) {
                self.lost.store(owner, Ordering::Relaxed);
            } else {
                edge::pause(50_000);
            }
        }
        // Whoever was thought lost has come back after all, if anybody was: the process was stopped for a while.
        self.lost.store(0, Ordering::Relaxed);
        self.stack.store(stack(), Ordering::Relaxed);
        let heap = thread::current().heap.replace(self.heap.load(Ordering::Relaxed));
        Ok(Seat { desk: self, heap })
    }

    /// This thread finds that it sits here already. Mostly it does, and was interrupted; if its frame is gone, it never
    /// comes back to it.
    fn find_own(&self) {
        let then = self.stack.load(Ordering::Relaxed);
        if then != 0 && watch::is_gone(then, stack()) {
            self.lost.store(self.owner.load(Ordering::Relaxed), Ordering::Relaxed);
            thread::current().heap.set(ptr::null_mut());
        }
    }

    /// The state, made for the first who sits here.
    fn state(&self) -> Option<&'static mut State> {
        if self.state.load(Ordering::Relaxed).is_null() {
            let heap = Heap::for_harness()?;
            self.heap.store(heap, Ordering::Relaxed);
            thread::current().heap.set(heap);
            self.state.store(Box::into_raw(Box::new(State::new())), Ordering::Relaxed);
        }
        // SAFETY: made above or before, never freed, and ours while we sit here.
        unsafe { self.state.load(Ordering::Relaxed).as_mut() }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        thread::current().heap.set(self.heap);
        self.desk.stack.store(0, Ordering::Relaxed);
        self.desk.owner.store(0, Ordering::Release);
    }
}
