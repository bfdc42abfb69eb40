//! What each thread of the host carries for us.
//!
//! The block is initial-exec TLS made in assembly: one load from the GOT, no call, no
//! destructor, no heap, usable in signal handlers and while a thread ends. A call needs the first of
//! its two cache lines, where it is aligned to them. It stays at 128 bytes or less because a library
//! that is opened late lives off the loader's small surplus.

use aclshim_trace::ring::cursor::RingCursor;
use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

/// The thread's block; all zero at first.
#[repr(C)]
pub struct Thread {
    /// Where this thread records; NULL before its first copy.
    pub cursor: Cell<*const RingCursor>,
    /// That, in the process in which it first copies. Never another ring's: in a child of a fork the thread gets a cursor
    /// that lies elsewhere, because a frame that was interrupted amid a call still has this one in its registers.
    pub own: RingCursor,
    /// The heap of a thread of ours, or the harness's while a host's thread has its lock; else NULL.
    pub heap: Cell<*mut aclshim_core::heap::Heap>,
    /// The signals that the host has blocked itself while [`crate::guest::edge::with_signals_blocked`] runs.
    pub blocked: Cell<*const libc::sigset_t>,
    /// The thread's number in the harness, which no other thread of the process ever gets; 0 if it has none yet.
    pub number: Cell<u64>,
    /// Number of calls that are not recorded before the next attempt to get a ring.
    pub backoff: Cell<u32>,
    /// The number of calls that the last backoff began with; the next begins with twice as many.
    pub next_backoff: Cell<u32>,
    /// How many descriptors of ours were closed when this thread began to fork: see [`crate::ring::fork`].
    pub closed: Cell<u32>,
    /// Whether this thread has looked for objects to redirect.
    pub visited: Cell<bool>,
    /// Whether this thread has waited in vain for another's work; it does so once.
    pub waited: Cell<bool>,
}

const ROOM: usize = 128;
const _: () = assert!(size_of::<Thread>() <= ROOM);
/// The block's alignment, as a power of two: a cache line, where the loader has that to give to a library that is opened
/// late. It gives no more than its own block for a thread has: 64 bytes on x86-64, 16 on aarch64.
const ALIGN: u32 = if cfg!(target_arch = "x86_64") { 6 } else { 4 };
const _: () = assert!(align_of::<Thread>() <= 1 << ALIGN);

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".globl aclshim_thread",
    ".hidden aclshim_thread",
    ".type aclshim_thread,@object",
    ".size aclshim_thread,{room}",
    ".p2align {align}",
    "aclshim_thread:",
    ".zero {room}",
    ".text",
    room = const ROOM,
    align = const ALIGN,
);

/// The offset from a thread's pointer to its block, which all threads share.
#[inline(always)]
pub fn offset() -> isize {
    let offset: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads what the loader has put into the GOT.
    unsafe {
        asm!("mov {0}, qword ptr [rip + aclshim_thread@GOTTPOFF]", out(reg) offset,
             options(nostack, readonly, pure, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!("adrp {0}, :gottprel:aclshim_thread", "ldr {0}, [{0}, :gottprel_lo12:aclshim_thread]", out(reg) offset,
             options(nostack, readonly, pure, preserves_flags));
    }
    offset
}

/// The calling thread's block, which lies at `offset` from its pointer.
#[inline(always)]
pub fn at(offset: isize) -> &'static Thread {
    let pointer: *const u8;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the thread pointer points to itself.
    unsafe {
        asm!("mov {0}, qword ptr fs:[0]", out(reg) pointer, options(nostack, readonly, pure, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        asm!("mrs {0}, tpidr_el0", out(reg) pointer, options(nomem, nostack, pure, preserves_flags));
    }
    // SAFETY: zero is a valid `Thread`, and the block lives as long as its thread. The reference
    // is never handed to another thread.
    unsafe { &*pointer.wrapping_offset(offset).cast() }
}

/// Where the calling thread records, if its block lies at `offset`: as [`at`] finds it, in one load.
#[inline(always)]
pub fn cursor_at(offset: isize) -> *const RingCursor {
    #[cfg(target_arch = "x86_64")]
    {
        const { assert!(core::mem::offset_of!(Thread, cursor) == 0) };
        let cursor;
        // SAFETY: reads the thread's own block, which lives as long as its thread.
        unsafe {
            asm!("mov {0}, qword ptr fs:[{1}]", out(reg) cursor, in(reg) offset,
                 options(nostack, readonly, preserves_flags));
        }
        cursor
    }
    #[cfg(not(target_arch = "x86_64"))]
    at(offset).cursor.get()
}

/// The calling thread's block.
#[inline(always)]
pub fn current() -> &'static Thread {
    at(offset())
}

/// Where the calling thread records, if it can.
pub fn cursor() -> Option<&'static RingCursor> {
    // SAFETY: NULL, or a cursor that lives as long as its thread.
    unsafe { current().cursor.get().as_ref() }.filter(|cursor| cursor.is_open())
}

/// The address that the caller's stack ends at.
#[inline(always)]
pub fn stack() -> usize {
    let here: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    unsafe {
        asm!("mov {0}, rsp", out(reg) here, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        asm!("mov {0}, sp", out(reg) here, options(nomem, nostack, preserves_flags));
    }
    here
}

/// Whether a frame that lay at `other` is gone when its thread is at `here`: beside it or above. Frames of different
/// functions are not equally large; one inside another has at least all of its own between.
pub fn is_frame_gone(other: usize, here: usize) -> bool {
    const DIFFERENCE: usize = 256;
    other <= here.saturating_add(DIFFERENCE) && !is_on_signal_stack()
}

/// Whether this thread handles a signal on a stack of its own: addresses say nothing there.
fn is_on_signal_stack() -> bool {
    // SAFETY: asks, into a value of ours; all zero is a valid one.
    unsafe {
        let mut stack = core::mem::zeroed::<libc::stack_t>();
        libc::sigaltstack(core::ptr::null(), &mut stack) == 0 && stack.ss_flags & libc::SS_ONSTACK != 0
    }
}

/// The calling thread's number, which no other thread of the process ever gets.
pub fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = &current().number;
    if number.get() == 0 {
        number.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    number.get()
}

/// The calling thread's id. (libc's `gettid` is newer than some systems that the shim runs on.)
pub fn id() -> u32 {
    // SAFETY: asks for our own number.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The calling thread's name, 16 bytes as two words.
pub fn name() -> [u64; 2] {
    let mut name = [0u8; 16];
    // SAFETY: the buffer is as large as names are.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let (first, second) = name.split_at(8);
    [first, second].map(|half| u64::from_le_bytes(half.try_into().unwrap_or_default()))
}

/// Whether a thread of this process still runs.
pub fn is_alive(thread: u32) -> bool {
    // SAFETY: the null signal only asks; errno is the calling thread's own.
    unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) == 0 || *libc::__errno_location() != libc::ESRCH
    }
}
