//! What a program tells of itself, put into the record of the calling thread: scopes, marks, and names.
//!
//! Only from functions that a program calls for that; never on the way of a copy. A thread that has not copied yet gets its
//! cursor in the ring file as with its first copy. A fork child starts its own file, in which none of this stands.

use crate::drain;
use crate::guest::edge;
use crate::record::attach::{Nowhere, come_back, take_cursor};
use crate::settings::settings;
use aclshim_trace::record::annotation::{AnnotationRef, NamedKind};
use aclshim_trace::ring::layout::Mode;
use aclshim_trace::system::clock::{monotonic_ns, ticks};
use core::sync::atomic::Ordering;

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is in the record.
    Yes,
    /// Nothing is recorded here.
    Off,
    /// There was no room. A full ring tells of it later; where there is none, the next one that a thread gets does.
    NoRoom,
}

/// A scope begins, in the scope `parent` or in none (0).
pub fn tell_scope_begin(id: u32, parent: u32, name: &[u8]) -> Told {
    tell(&AnnotationRef::scope(id, parent, name))
}

/// A scope ends; so many expectations have failed in it.
pub fn tell_scope_end(id: u32, failures: u64) -> Told {
    tell(&AnnotationRef::scope_end(id, failures))
}

/// A mark, at this moment of this thread.
pub fn tell_mark(text: &[u8]) -> Told {
    tell(&AnnotationRef::mark(text))
}

/// From now on a stream, or the `size` bytes from `begin` on, are called so; an empty name takes that back.
pub fn tell_name(kind: NamedKind, begin: u64, size: u64, name: &[u8]) -> Told {
    tell(&AnnotationRef::name(kind, begin, size, name))
}

fn tell(telling: &AnnotationRef<'_>) -> Told {
    if !settings().records() {
        return Told::Off;
    }
    // Signals held back: what a handler told in between would part the slots from their claim.
    let told = edge::undisturbed(|| {
        let cursor = match take_cursor() {
            Ok(cursor) => cursor,
            Err(Nowhere::Off) => return Told::Off,
            Err(Nowhere::Early) => return Told::NoRoom,
            Err(Nowhere::NoRing(process)) => {
                process.notes_missed.fetch_add(1, Ordering::Relaxed);
                return Told::NoRoom;
            }
        };
        let now = ticks(cursor.clock.load(Ordering::Relaxed));
        let is_waiting = cursor.mode.load(Ordering::Relaxed) == Mode::Lossless as u32;
        let end = if is_waiting { monotonic_ns() + 100_000_000 } else { 0 };
        let wait = || {
            if is_waiting {
                edge::pause(100_000);
            }
            is_waiting && drain::may_run() && monotonic_ns() < end
        };
        let is_put_off = drain::is_still_put_off();
        // SAFETY: the cursor is open, and this thread's.
        let is_told = unsafe { cursor.annotate(telling, now, wait) };
        come_back(cursor, is_put_off);
        if is_told { Told::Yes } else { Told::NoRoom }
    });
    told.unwrap_or(Told::NoRoom)
}
