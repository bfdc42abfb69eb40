//! Writing annotations, which have a text and as many slots as that takes.

use crate::record::annotation::{IN_FIRST, IN_OTHERS, Telling, word};
use crate::record::slot::{Head, Layout, Note};
use crate::ring::cursor::{Place, add_alone};
use crate::sync::Ordering;

impl Place {
    /// Leaves a note with a text; `false` if there is no room, which is counted. `now` is in ticks; `wait` may wait a
    /// little and says whether to look once more.
    ///
    /// # Safety
    /// The place is open, and the calling thread's.
    pub unsafe fn tell(&self, telling: &Telling<'_>, now: u64, wait: impl FnMut() -> bool) -> bool {
        let slots = telling.slots();
        let ring = self.slots();
        let number = match self.claim_of(ring, slots) {
            Ok(number) => number,
            Err(number) => {
                // None in the child of a handler that has just forked.
                let Some(control) = self.control() else { return false };
                if !self.look_again(control, number, slots, wait) {
                    if control.is_all_told() {
                        control.lost_since.store(now, Ordering::Relaxed);
                    }
                    add_alone(&control.notes_lost, 1);
                    return false;
                }
                // SAFETY: the caller's promise.
                unsafe { self.tell_lost(control, now) };
                number
            }
        };
        let Telling { note, words: [one, other], kind, text } = *telling;
        // SAFETY: a claim that found room says that the place was open, and slots stay mapped.
        let at = |number| unsafe { &*ring.at(number) };
        // The first slot last: who sees it finds the others.
        for nth in 1..slots {
            let from = IN_FIRST + (nth as usize - 1) * IN_OTHERS;
            let words: [u64; 7] = core::array::from_fn(|place| word(text, from + 8 * place));
            at(number + nth).put(Head::done(number + nth, Layout::Note, Note::Text as u8), &words);
        }
        let what = text.len() as u64 | u64::from(kind) << 16;
        let words = [now, one, other, what, word(text, 0), word(text, 8), word(text, 16)];
        at(number).put(Head::done(number, Layout::Note, note as u8), &words);
        true
    }
}
