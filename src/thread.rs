//! What each thread of the host carries for us, and whether a call is inside another.
//!
//! The block is initial-exec TLS made in assembly: one load from the GOT, no call, no
//! destructor, no heap, usable in signal handlers and while a thread ends. It stays at 128 bytes
//! or less because a library that is opened late lives off the loader's small surplus.
//!
//! **Nesting** is read off the stack. The outermost frame leaves a mark in itself and its address
//! in the block. A frame below that address is nested, if the mark is still there. (A depth
//! counter would stay wrong for ever once an exception or a longjmp had passed through. The
//! address alone would stay wrong until the host calls again from as high up.)

use aclshim_trace::page::Block;
use core::arch::{asm, global_asm};
use core::cell::Cell;

/// The thread's block; all zero at first.
#[repr(C)]
pub struct Thread {
    /// The address of the outermost frame's mark, or 0.
    outermost: Cell<usize>,
    /// The complement of the process token that `block` belongs to: 0 fits no token, not even the
    /// zero that a fork child finds.
    pub stamp: Cell<u64>,
    /// Where this thread counts.
    pub block: Cell<*const Block>,
    /// Whether this thread has looked for objects to redirect. Stays set in a fork child, where
    /// the loader's lock may be held by a thread that is not there.
    pub visited: Cell<bool>,
}

const ROOM: usize = 64;
const _: () = assert!(size_of::<Thread>() <= ROOM);

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".globl aclshim_thread",
    ".hidden aclshim_thread",
    ".type aclshim_thread,@object",
    ".size aclshim_thread,{room}",
    ".p2align 6",
    "aclshim_thread:",
    ".zero {room}",
    ".text",
    room = const ROOM,
);

/// The calling thread's block.
#[inline(always)]
pub fn current() -> &'static Thread {
    let at: *const Thread;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the address of a thread-local object is the thread pointer plus the offset in the GOT.
    unsafe {
        asm!("mov {0}, qword ptr fs:[0]", "add {0}, qword ptr [rip + aclshim_thread@GOTTPOFF]",
             out(reg) at, options(nostack, readonly, pure));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!("mrs {0}, tpidr_el0", "adrp {1}, :gottprel:aclshim_thread",
             "ldr {1}, [{1}, :gottprel_lo12:aclshim_thread]", "add {0}, {0}, {1}",
             out(reg) at, out(reg) _, options(nostack, readonly, pure));
    }
    // SAFETY: zero is a valid `Thread`, and the block lives as long as its thread. The reference
    // is never handed to another thread.
    unsafe { &*at }
}

/// The mark that a frame leaves in itself while it is the outermost one.
pub struct Mark(Cell<u64>);

impl Mark {
    /// Not yet left.
    #[inline(always)]
    pub const fn new() -> Self {
        Self(Cell::new(0))
    }

    #[inline(always)]
    fn address(&self) -> usize {
        self as *const Self as usize
    }

    /// No other word of a stack looks like this by chance.
    #[inline(always)]
    fn value(address: usize) -> u64 {
        address as u64 ^ 0xac15_417d_5eed_0b5e
    }
}

/// How far apart two frames of one chain of calls may be; beyond it they are on different stacks.
const REACH: usize = 8 << 20;

impl Thread {
    /// Makes `mark`'s frame the outermost one and returns what was there before; `None` if the
    /// frame is nested.
    #[inline(always)]
    pub fn enter(&self, mark: &Mark) -> Option<usize> {
        let before = self.outermost.get();
        let here = mark.address();
        if before > here && is_live(before, here) {
            return None;
        }
        // SAFETY: a word of ours; volatile, because its reader comes through the stack address.
        unsafe { mark.0.as_ptr().write_volatile(Mark::value(here)) };
        self.outermost.set(here);
        Some(before)
    }

    /// Undoes [`enter`](Self::enter).
    #[inline(always)]
    pub fn leave(&self, mark: &Mark, before: usize) {
        // SAFETY: as in `enter`.
        unsafe { mark.0.as_ptr().write_volatile(0) };
        self.outermost.set(before);
    }
}

/// Whether the frame that left its mark at `before` still stands above us.
#[cold]
fn is_live(before: usize, here: usize) -> bool {
    // SAFETY: `before` lies above the present frame, close enough to be on the same stack, and
    // everything above a frame on its stack is mapped.
    before - here < REACH && unsafe { (before as *const u64).read_volatile() } == Mark::value(before)
}
