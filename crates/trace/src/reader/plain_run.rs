//! Copying of plain records in bulk: calls that take one slot each, which nearly all slots of a ring hold.

use crate::reader::Ring;
use crate::record::slot::{Head, Slot, WORDS, Words};
use crate::sync::{Ordering, fence};

/// Number of slots that are copied before their heads are compared again: the copies are still in the fastest cache then.
const CHUNK: usize = 64;

impl Ring<'_> {
    /// Appends the [exact](Head::is_exact) one-slot records from number `from` on to `out`, at most `most`, up to the first
    /// slot that holds something else, or nothing, or changes during the copy. Returns their number.
    pub(super) fn plain_run(&self, from: u64, most: usize, out: &mut Vec<Words>) -> usize {
        let mut count = 0;
        while count < most {
            let number = from.wrapping_add(count as u64);
            // Those without storage are not read.
            let rest = self.slots[..self.stored()].get(number as usize & (self.slots.len() - 1)..).unwrap_or_default();
            let chunk = &rest[..rest.len().min(most - count).min(CHUNK)];
            let copied = copy(chunk, number, out);
            count += copied;
            if copied < chunk.len() || chunk.is_empty() {
                break;
            }
        }
        count
    }
}

/// Appends the plain records that `slots` begin with to `out`; `first` is the number of the first slot. Returns how many.
fn copy(slots: &[Slot], first: u64, out: &mut Vec<Words>) -> usize {
    let plain_head = |slot: &Slot, number: u64| {
        let head = Head(slot.0[0].load(Ordering::Acquire));
        (head.is_exact() && head.number(number) == number).then_some(head)
    };
    // Before there is memory for it: a ring that is empty needs none.
    let Some(mut head) = slots.first().and_then(|slot| plain_head(slot, first)) else { return 0 };
    let before = out.len();
    out.reserve(slots.len());
    let places = &mut out.spare_capacity_mut()[..slots.len()];
    let mut copied = 0;
    for (slot, place) in slots.iter().zip(places) {
        if copied > 0 {
            let Some(next) = plain_head(slot, first.wrapping_add(copied as u64)) else { break };
            head = next;
        }
        let words: [u64; WORDS] =
            std::array::from_fn(|at| if at == 0 { head.0 } else { slot.0[at].load(Ordering::Relaxed) });
        place.write(words);
        copied += 1;
    }
    // SAFETY: the capacity is there, and this number of places was written, one after another.
    unsafe { out.set_len(before + copied) };
    // One fence for all of them: a head that is still the same now belongs to the words that were copied behind it.
    fence(Ordering::Acquire);
    let is_same = |(slot, words): &(&Slot, &Words)| slot.head().0 == words[0];
    let whole = slots.iter().zip(&out[before..]).take_while(is_same).count();
    out.truncate(before + whole);
    whole
}
