//! What each thread of the host carries for us, and whether a call is inside another.
//!
//! The block is initial-exec TLS made in assembly: one load from the GOT, no call, no
//! destructor, no heap, usable in signal handlers and while a thread ends. It stays at 128 bytes
//! or less because a library that is opened late lives off the loader's small surplus.
//!
//! **Nesting** is read off the stack: the outermost frame leaves its address in the block, and a
//! frame below that address is nested, if it was called from the vendor's side ([`crate::vendor`]).
//! (A depth counter would stay wrong for ever once an exception or a longjmp had passed through.
//! The address alone would stay wrong until the host calls again from as high up; and what such a
//! frame left on the stack proves nothing, because nobody has to overwrite it.)

use crate::vendor;
use aclshim_trace::page::Block;
use core::arch::{asm, global_asm};
use core::cell::Cell;

/// The thread's block; all zero at first.
#[repr(C)]
pub struct Thread {
    /// The address of the outermost frame, or 0.
    outermost: Cell<usize>,
    /// The complement of the process token that `block` belongs to: 0 fits no token, not even the
    /// zero that a fork child finds.
    pub stamp: Cell<u64>,
    /// Where this thread counts.
    pub block: Cell<*const Block>,
    /// Whether this thread has looked for objects to redirect.
    pub visited: Cell<bool>,
    /// Whether this thread has waited in vain for another's work; it does so once.
    pub waited: Cell<bool>,
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

impl Thread {
    /// Makes the frame at `here` the outermost one and returns what was there before; `None` if
    /// the frame is nested.
    #[inline(always)]
    pub fn enter(&self, here: usize, caller: usize) -> Option<usize> {
        let before = self.outermost.get();
        if before > here && vendor::calls_from(caller) {
            return None;
        }
        self.outermost.set(here);
        Some(before)
    }

    /// Undoes [`enter`](Self::enter).
    #[inline(always)]
    pub fn leave(&self, before: usize) {
        self.outermost.set(before);
    }
}
