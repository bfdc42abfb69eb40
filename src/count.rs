//! Counting calls in shared memory.
//!
//! A process gets its file with its first copy, a thread its block with its first copy. After
//! that a call costs a few adds to memory that only this thread writes: no lock, no system call.

use crate::boot::{Standing, glance, standing, wait_until};
use crate::log::{self, Event};
use crate::settings::settings;
use crate::thread;
use crate::{edge, rebind};
use aclshim_facts::call::Amount;
use aclshim_facts::code::ACL_SUCCESS;
use aclshim_facts::{FUNCTIONS, Function};
use aclshim_trace::page::{self, Block, Page};
use aclshim_trace::writer;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

const _: () = assert!(Function::ALL.len() <= page::FUNCTIONS);

/// What must be forgotten by a fork child: it lives on a page that the kernel wipes there.
#[repr(C)]
struct Process {
    /// The address of the process's file; 0 while there is none.
    token: AtomicU64,
    /// One of the states below.
    state: AtomicU32,
    /// Calls that no file could count yet.
    missed: AtomicU64,
}

const NEW: u32 = 0;
const BUSY: u32 = 1;
const READY: u32 = 2;
const OFF: u32 = 3;

static NONE: Process = Process { token: AtomicU64::new(0), state: AtomicU32::new(NEW), missed: AtomicU64::new(0) };
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(&raw const NONE as *mut Process);

#[inline(always)]
fn process() -> &'static Process {
    // SAFETY: `NONE`, or a page that is never unmapped.
    unsafe { &*PROCESS.load(Ordering::Acquire) }
}

/// One call under way, on the stack of its entry.
pub struct Frame {
    outer: usize,
    stamp: u64,
    block: *const Block,
}

impl Frame {
    /// Before the call.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { outer: 0, stamp: 0, block: ptr::null() }
    }

    /// The call begins; `caller` is where it came from.
    #[inline(always)]
    pub fn begin(&mut self, function: Function, caller: usize) {
        let thread = thread::current();
        let block =
            if thread.stamp.get() == !process().token.load(Ordering::Acquire) { thread.block.get() } else { attach() };
        // SAFETY: NULL, or a block in a file that stays mapped.
        let Some(counted) = (unsafe { block.as_ref() }) else { return };
        let counter = counted.counter(function as usize);
        match thread.enter(ptr::from_ref(self) as usize, caller) {
            None => counted.add(&counter.nested, 1),
            Some(outer) => {
                self.outer = outer;
                self.stamp = thread.stamp.get();
                self.block = block;
                counted.set_open(1);
                counted.add(&counter.calls, 1);
            }
        }
    }

    /// The call has returned `code`; what it moved is looked at only if it was accepted.
    #[inline(always)]
    pub fn end(&mut self, function: Function, code: i32, amount: impl FnOnce() -> Amount) {
        // SAFETY: as in `begin`.
        let Some(block) = (unsafe { self.block.as_ref() }) else { return };
        let thread = thread::current();
        thread.leave(self.outer);
        // If the call forked, this may be the child, and the block its parent's.
        if self.stamp != !process().token.load(Ordering::Acquire) {
            return;
        }
        let counter = block.counter(function as usize);
        if code == ACL_SUCCESS {
            block.add(&counter.bytes, bytes(amount()));
        } else {
            block.add(&counter.errors, 1);
        }
        block.set_open(0);
    }
}

#[inline(always)]
fn bytes(amount: Amount) -> u64 {
    match amount {
        Amount::Bytes(bytes) => bytes,
        Amount::Sum { sizes, items } => (0..items).fold(0, |sum: u64, item| {
            // SAFETY: the vendor has accepted the call, so it has read the array to its end.
            sum.saturating_add(unsafe { *sizes.add(item) } as u64)
        }),
    }
}

/// Whether calls are counted at all, or only forwarded.
#[inline(always)]
pub fn is_on() -> bool {
    !matches!(glance(), Standing::Off | Standing::Passive)
}

/// This thread's block, on its first call in this process; NULL if the call cannot be counted.
#[cold]
#[inline(never)]
extern "C-unwind" fn attach() -> *const Block {
    edge::undisturbed(|| {
        if standing() == Standing::Unready {
            NONE.missed.fetch_add(1, Ordering::Relaxed);
            return ptr::null();
        }
        let thread = thread::current();
        if !thread.visited.replace(true) {
            rebind::refresh(rebind::Trigger::Copy);
        }
        let Some(process) = own_process() else {
            NONE.missed.fetch_add(1, Ordering::Relaxed);
            return ptr::null();
        };
        if process.state.load(Ordering::Acquire) == NEW {
            make_file(process);
        }
        wait_until(|| process.state.load(Ordering::Acquire) != BUSY);
        let token = process.token.load(Ordering::Acquire);
        // SAFETY: 0, or the address of a file that stays mapped.
        let Some(page) = (unsafe { (token as *const Page).as_ref() }) else {
            process.missed.fetch_add(1, Ordering::Relaxed);
            fold_missed(process);
            return ptr::null();
        };
        let block = page.claim(thread_id(), is_alive);
        thread.block.set(block);
        thread.stamp.set(!token);
        ptr::from_ref(block)
    })
    .unwrap_or_else(|| {
        NONE.missed.fetch_add(1, Ordering::Relaxed);
        ptr::null()
    })
}

/// The calling thread's number. (The function of that name is newer than some systems we run on.)
fn thread_id() -> u32 {
    // SAFETY: asks for our own number.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Whether a thread of this process still runs.
fn is_alive(thread: u32) -> bool {
    // SAFETY: the null signal only asks; errno is the calling thread's own.
    unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) == 0 || *libc::__errno_location() != libc::ESRCH
    }
}

/// The page that a fork child finds wiped; made with the first copy.
fn own_process() -> Option<&'static Process> {
    let known = PROCESS.load(Ordering::Acquire);
    if !ptr::eq(known, &NONE) {
        return Some(process());
    }
    const SIZE: usize = 4096;
    // SAFETY: an anonymous mapping of our own, checked; it is published once and never unmapped.
    unsafe {
        let at = libc::mmap(
            ptr::null_mut(),
            SIZE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if at == libc::MAP_FAILED {
            return None;
        }
        // Before anybody uses it: a fork in between would leave a child that knows of nothing.
        let is_wiped = wiped_on_fork(at, SIZE);
        let fresh = at.cast::<Process>();
        if PROCESS.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
            libc::munmap(at, SIZE);
        } else if !is_wiped {
            libc::pthread_atfork(None, None, Some(forget_in_child));
        }
    }
    Some(process())
}

/// Asks the kernel (4.14 and later) to wipe a page in fork children.
///
/// # Safety
/// A mapping of ours.
unsafe fn wiped_on_fork(at: *mut c_void, size: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { libc::madvise(at, size, libc::MADV_WIPEONFORK) == 0 }
}

unsafe extern "C" fn forget_in_child() {
    let process = process();
    process.token.store(0, Ordering::Relaxed);
    process.missed.store(0, Ordering::Relaxed);
    process.state.store(NEW, Ordering::Release);
}

fn make_file(process: &Process) {
    if process.state.compare_exchange(NEW, BUSY, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return;
    }
    let settings = settings();
    for setting in settings.nonsense.iter().flatten() {
        let words = setting.choices();
        log::line(
            Event::Setting,
            setting.variable,
            format_args!("{} must be one of {words:?}; {:?} is in force", setting.variable, words[0]),
        );
    }
    let ring_dir = settings.ring_dir.as_bytes();
    match writer::create(ring_dir, settings.dir.as_bytes(), FUNCTIONS.iter().map(|row| row.name)) {
        Ok(page) => {
            process.token.store(ptr::from_ref(page) as u64, Ordering::Release);
            process.state.store(READY, Ordering::Release);
            fold_missed(process);
        }
        Err(failure) => {
            process.state.store(OFF, Ordering::Release);
            let shown = core::str::from_utf8(ring_dir).unwrap_or("(not UTF-8)");
            log::line(
                Event::NotRecording,
                shown,
                format_args!("calls are forwarded but not counted: no file could be made in {shown}: {failure}"),
            );
        }
    }
}

/// Moves what was missed into the file as soon as there is one.
fn fold_missed(process: &Process) {
    // SAFETY: 0, or the address of a file that stays mapped.
    if let Some(page) = unsafe { (process.token.load(Ordering::Acquire) as *const Page).as_ref() } {
        let early = NONE.missed.swap(0, Ordering::Relaxed);
        let missed = process.missed.swap(0, Ordering::Relaxed);
        page.header.not_recorded.fetch_add(early + missed, Ordering::Relaxed);
    }
}
