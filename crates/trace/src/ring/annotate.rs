//! Writing annotations, which have a text and as many slots as that takes.

use crate::record::annotation::{AnnotationRef, IN_FIRST, IN_OTHERS, word};
use crate::record::slot::{Head, Layout, Note};
use crate::ring::cursor::{RingCursor, add_local};
use crate::ring::storage::{Need, Storage};
use crate::sync::Ordering;

impl RingCursor {
    /// Writes an annotation; `false` if there is no room, which is counted. `now` is in ticks; `wait` may wait and returns
    /// whether to check for room once more.
    ///
    /// # Safety
    /// The cursor is open, and the calling thread's.
    pub unsafe fn annotate(
        &self,
        annotation: &AnnotationRef<'_>,
        now: u64,
        storage: &dyn Storage,
        wait: impl FnMut() -> bool,
    ) -> bool {
        let slots = annotation.slots();
        let ring = self.slots();
        let number = match self.claim_in(ring, slots) {
            Ok(number) => number,
            Err(number) => {
                // None in the child of a handler that has just forked.
                let Some(control) = self.control() else { return false };
                let need = Need { slots, now, reserve: control.reserve.load(Ordering::Relaxed).into() };
                let Some(number) = self.find_room(control, number, need, storage, wait) else {
                    if control.are_losses_recorded() {
                        control.lost_since.store(now, Ordering::Relaxed);
                    }
                    add_local(&control.notes_lost, 1);
                    return false;
                };
                // SAFETY: the caller's promise.
                unsafe { self.record_losses(control, now) };
                number
            }
        };
        let AnnotationRef { note, words: [one, other], kind, text } = *annotation;
        // SAFETY: a claim that found room says that the cursor was open, and slots stay mapped.
        let at = |number| unsafe { &*ring.at(number) };
        // The first slot last: a reader that sees it finds the others.
        for nth in 1..slots {
            let from = IN_FIRST + (nth as usize - 1) * IN_OTHERS;
            let words: [u64; 7] = core::array::from_fn(|nth| word(text, from + 8 * nth));
            at(number + nth).put(Head::done(number + nth, Layout::Note, Note::Text as u16), &words);
        }
        let what = text.len() as u64 | u64::from(kind) << 16;
        let words = [now, one, other, what, word(text, 0), word(text, 8), word(text, 16)];
        at(number).put(Head::done(number, Layout::Note, note as u16), &words);
        true
    }
}
