//! The vendor's side of this process: the objects that a call passes through behind us.
//!
//! A call that comes from one of them while another is under way was made inside it. They are the
//! objects that hold our targets, and all others behind us that define a function of the table
//! (interposers that we do not forward to directly).

use crate::boot::is_own;
use crate::elf::Object;
use crate::objects;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Start and end of each; what finds no room is taken for the host.
static SPANS: [[AtomicUsize; 2]; 8] = [const { [const { AtomicUsize::new(0) }; 2] }; 8];

/// Whether the code at `caller` is on the vendor's side. Ours is too: it is what a vendor's function
/// that ends in a jump to another one seems to be called from.
#[cold]
pub fn calls_from(caller: usize) -> bool {
    is_own(caller)
        || SPANS
            .iter()
            .any(|[start, end]| (start.load(Ordering::Acquire)..end.load(Ordering::Relaxed)).contains(&caller))
}

/// Remembers an object.
pub fn learn(object: &Object) {
    let (start, end) = (object.span.start, object.span.end);
    for span in &SPANS {
        let known = span[0].load(Ordering::Acquire);
        if known == start {
            return;
        }
        // The end first: who sees the start sees the end.
        if known == 0 && span[1].compare_exchange(0, end, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            span[0].store(start, Ordering::Release);
            return;
        }
    }
}

/// Remembers the object that holds `address`.
pub fn learn_holder(address: usize) {
    if calls_from(address) {
        return;
    }
    objects::each(|_, object| match object() {
        Some(object) if object.span.holds(address) => {
            learn(&object);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
}
