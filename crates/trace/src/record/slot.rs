//! One slot: 64 bytes, eight words, the first of which says what the others are.
//!
//! A writer clears the head, stores the other words, and then the head that says "in flight"; at the end it stores code
//! and duration, and then the head that says "done". A reader takes the head, the words, and the head again: if both
//! heads are equal, the words belong together. The memory order is described in [`mod@crate::ring`].

use crate::record::reasons::SlowPathReasons;
use crate::sync::{AtomicU64, Ordering, fence};

pub use crate::record::head::{FUNCTION_MAX, Head, KIND_MAX, Layout, Note, State};

/// Number of words of a slot.
pub const WORDS: usize = 8;

/// A slot in shared memory.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Slot(pub [AtomicU64; WORDS]);

/// A copy of the words of a slot.
pub type Words = [u64; WORDS];

/// Code and duration of a call in one word.
#[inline(always)]
pub const fn end_word(duration: u32, code: i32) -> u64 {
    (code as u32 as u64) << 32 | duration as u64
}

impl Slot {
    /// Clears the head, so that new words are never read under the old one.
    #[inline(always)]
    pub fn clear(&self) {
        self.0[0].store(0, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Stores a word behind the head.
    #[inline(always)]
    pub fn set(&self, word: usize, value: u64) {
        self.0[word].store(value, Ordering::Relaxed);
    }

    /// Publishes the record under `head`.
    #[inline(always)]
    pub fn show(&self, head: Head) {
        self.0[0].store(head.0, Ordering::Release);
    }

    /// The current head.
    #[inline(always)]
    pub fn head(&self) -> Head {
        Head(self.0[0].load(Ordering::Relaxed))
    }

    /// Writes a whole slot that is complete at once; missing words are 0.
    pub fn put(&self, head: Head, words: &[u64]) {
        self.clear();
        for (at, &word) in words.iter().enumerate().take(WORDS - 1) {
            self.set(1 + at, word);
        }
        for at in 1 + words.len()..WORDS {
            self.set(at, 0);
        }
        self.show(head);
    }

    /// Ends a call that is still shown as `begun` by plain stores; `now` is in ticks. If there is a reason against that,
    /// of the caller's or found here, nothing is stored and the error is the call's duration.
    #[inline(always)]
    pub fn end(&self, begun: Head, now: u64, code: i32, reasons: SlowPathReasons) -> Result<(), u64> {
        let duration = self.since_begin(now);
        let changed = SlowPathReasons::head_changed(self.head(), begun);
        if !changed.union(SlowPathReasons::long_duration(duration)).union(reasons).is_empty() {
            return Err(duration);
        }
        // It is short: there is nothing to be cut off.
        self.set(2, end_word(0, code) | duration);
        self.show(begun.ended());
        Ok(())
    }

    /// Ticks from the begin of the call to `now`. (The compiler never folds an atomic load into the subtraction; this does.)
    #[inline(always)]
    fn since_begin(&self, now: u64) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
        {
            let mut ticks = now;
            // SAFETY: reads a live, aligned word.
            unsafe {
                core::arch::asm!("sub {0}, qword ptr [{1} + 8]", inout(reg) ticks, in(reg) self,
                                 options(nostack, readonly));
            }
            ticks
        }
        #[cfg(any(loom, miri, not(target_arch = "x86_64")))]
        now.wrapping_sub(self.0[1].load(Ordering::Relaxed))
    }

    /// Ends a call as [`end`](Self::end) does while the drain may be about to pass it by. `false` if the drain was first, or
    /// if the duration does not fit.
    #[cold]
    pub fn end_racing(&self, begun: Head, duration: u64, code: i32) -> bool {
        duration < u64::from(u32::MAX) && self.end_with(begun, end_word(duration as u32, code))
    }

    /// Ends a call with `end`, an [`end_word`], unless the head has changed. (Between the test of the head and the store a
    /// signal handler would have to make a whole ring of calls to have its own record damaged.)
    pub fn end_with(&self, begun: Head, end: u64) -> bool {
        if self.head() != begun {
            return false;
        }
        self.set(2, end);
        self.0[0].compare_exchange(begun.0, begun.ended().0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Copies the slot; `None` if it was changed during the copy.
    pub fn read(&self) -> Option<Words> {
        let mut words = [0; WORDS];
        words[0] = self.0[0].load(Ordering::Acquire);
        for (word, slot) in words.iter_mut().zip(&self.0).skip(1) {
            *word = slot.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        (self.0[0].load(Ordering::Relaxed) == words[0]).then_some(words)
    }

    /// Marks a call in flight as passed by; `false` if it has ended in the meantime.
    pub fn pass(&self, begun: Head) -> bool {
        self.0[0].compare_exchange(begun.0, begun.passed().0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
