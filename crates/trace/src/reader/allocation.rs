//! Storage for rings whose process cannot ask for it: before Linux 5.14 a process would have to open its ring file for that.

use crate::reader::view::Ring;
use crate::record::slot::Slot;
use crate::ring::growth;
use crate::ring::layout::{CONTROL, Header};
use crate::ring::storage::next_size;
use crate::sync::Ordering;
use core::ffi::c_int;

/// Gives storage to rings that are half full, ahead of need, where their process cannot do it itself. `file` is an open
/// descriptor of the ring file. Changes errno.
pub fn allocate_ahead<'a>(header: &Header, file: c_int, rings: impl Iterator<Item = (usize, Ring<'a>)>) {
    if header.drain_allocates.load(Ordering::Relaxed) == 0 {
        return;
    }
    for (number, ring) in rings {
        let control = ring.control;
        let fill = control.mark.load(Ordering::Relaxed).saturating_sub(control.drained.load(Ordering::Relaxed));
        let stored = ring.stored() as u32;
        let more = next_size(stored, ring.slots.len() as u32);
        if fill < u64::from(stored) / 2 || more == stored || control.allocated.load(Ordering::Relaxed) >= more {
            continue;
        }
        let bytes = u64::from(more - stored) * size_of::<Slot>() as u64;
        let begin = header.first + number as u64 * header.stride + CONTROL as u64;
        let begin = begin + u64::from(stored) * size_of::<Slot>() as u64;
        // SAFETY: a descriptor of the caller's.
        let is_allocated = growth::take(header, bytes)
            && unsafe { libc::fallocate(file, 0, begin as libc::off_t, bytes as libc::off_t) == 0 };
        if is_allocated {
            control.allocated.store(more, Ordering::Release);
        }
    }
}
