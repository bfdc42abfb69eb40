//! What the kernel says of this process's memory (`/proc/self/maps`).

use crate::guest::edge;
use aclshim_core::maps::{CodeLines, ModuleFinder, Protection};
use aclshim_trace::system::descriptor::Descriptor;
use core::sync::atomic::AtomicU8;

/// Whether the page at `address` may be written to now, if the kernel says.
pub fn is_writable(address: usize) -> Option<bool> {
    let mut protection = Protection::of(address);
    read(|byte| protection.take(byte));
    protection.is_writable()
}

/// Hands the file name of the module that `address` lies in to `is`, with the offset from where the module begins in
/// memory; what `is` says, or no.
pub fn is_module(address: u64, is: &mut dyn FnMut(&[u8], u64) -> bool) -> bool {
    let mut finder = ModuleFinder::new(address);
    // A handler that jumped out would leave the descriptor behind.
    edge::with_signals_blocked(|| read(|byte| finder.take(byte)));
    finder.module().is_some_and(|(name, offset)| is(name, offset))
}

/// Bytes that are read at a process's first copy: a host may have any number of mappings, and the program itself comes
/// early.
const MOST: usize = 128 * 1024;

/// Writes the lines about files that hold code to `room`, as far as they fit.
#[inline(never)] // what it has on the stack is not to lie under the rest
pub fn of_code(room: &[AtomicU8]) {
    let mut lines = CodeLines::new(room);
    let mut left = MOST;
    read(|byte| {
        left -= 1;
        lines.take(byte) && left > 0
    });
    lines.publish();
}

/// Reads all, byte by byte, while `take` wants more.
fn read(mut take: impl FnMut(u8) -> bool) {
    let Ok(maps) = Descriptor::open(c"/proc/self/maps", libc::O_RDONLY, 0) else { return };
    let mut chunk = [0u8; 512];
    let mut wants_more = true;
    while wants_more {
        // SAFETY: a descriptor and a buffer of ours.
        let got = unsafe { libc::read(maps.number(), chunk.as_mut_ptr().cast(), chunk.len()) };
        let Some(read) = usize::try_from(got).ok().filter(|&read| read > 0) else { break };
        wants_more = chunk.iter().take(read).all(|&byte| take(byte));
    }
}
