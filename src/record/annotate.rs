//! Annotations that a program makes of its own run, in the record of the calling thread: scopes, marks, and names.
//!
//! Only from functions that a program calls for that; never on the way of a copy. A thread that has not copied yet gets its
//! cursor in the ring file as with its first copy. A fork child starts its own file, in which none of this stands.

use crate::drain;
use crate::guest::edge;
use crate::record::attach::{NoCursor, schedule_slow_path, take_cursor};
use crate::ring::storage::RingStorage;
use crate::settings::settings;
use aclshim_trace::record::annotation::{AnnotationRef, NamedKind};
use aclshim_trace::ring::layout::Mode;
use aclshim_trace::system::clock::monotonic_ns;
use core::sync::atomic::Ordering;

/// What became of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotated {
    /// It is in the record.
    Yes,
    /// Nothing is recorded here.
    Off,
    /// There was no room. A full ring records the loss later; where there is none, the next one that a thread gets does.
    NoRoom,
}

/// A scope begins, in the scope `parent` or in none (0).
pub fn annotate_scope_begin(id: u32, parent: u32, name: &[u8]) -> Annotated {
    annotate(&AnnotationRef::scope(id, parent, name))
}

/// A scope ends, in which that many expectations have failed.
pub fn annotate_scope_end(id: u32, failures: u64) -> Annotated {
    annotate(&AnnotationRef::scope_end(id, failures))
}

/// A mark, at this moment of this thread.
pub fn annotate_mark(text: &[u8]) -> Annotated {
    annotate(&AnnotationRef::mark(text))
}

/// From now on a stream, or the `size` bytes from `begin` on, are called so; an empty name takes that back.
pub fn annotate_name(kind: NamedKind, begin: u64, size: u64, name: &[u8]) -> Annotated {
    annotate(&AnnotationRef::name(kind, begin, size, name))
}

fn annotate(annotation: &AnnotationRef<'_>) -> Annotated {
    if !settings().records() {
        return Annotated::Off;
    }
    // Signals blocked: an annotation that a handler made in between would part the slots from their claim.
    let annotated = edge::with_signals_blocked(|| {
        let cursor = match take_cursor() {
            Ok(cursor) => cursor,
            Err(NoCursor::Off) => return Annotated::Off,
            Err(NoCursor::Early) => return Annotated::NoRoom,
            Err(NoCursor::NoRing(process)) => {
                process.notes_missed.fetch_add(1, Ordering::Relaxed);
                return Annotated::NoRoom;
            }
        };
        let now = cursor.now();
        let is_waiting = cursor.is_mode(Mode::Lossless);
        let end = if is_waiting { monotonic_ns() + edge::LONG_WAIT_NS } else { 0 };
        let wait = || {
            if is_waiting {
                drain::wake();
                edge::pause(edge::WAIT_PAUSE_NS);
            }
            is_waiting && drain::may_run() && monotonic_ns() < end
        };
        let is_put_off = drain::is_still_put_off();
        // SAFETY: the cursor is open, and this thread's.
        let is_written = unsafe { cursor.annotate(annotation, now, &RingStorage, wait) };
        drain::wake_if_due(cursor);
        schedule_slow_path(cursor, is_put_off);
        if is_written { Annotated::Yes } else { Annotated::NoRoom }
    });
    annotated.unwrap_or(Annotated::NoRoom)
}
