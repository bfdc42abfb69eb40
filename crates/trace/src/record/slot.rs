//! One slot: 64 bytes, eight words, the first of which says what the others are.
//!
//! A writer clears the head, stores the other words, and then the head that says "in flight"; at the end it stores code
//! and duration, and then the head that says "done". A reader takes the head, the words, and the head again: if both
//! heads are equal, the words belong together. The memory order is described in [`mod@crate::ring`].

use crate::sync::{AtomicU64, Ordering, fence};

/// Number of words of a slot.
pub const WORDS: usize = 8;

/// A slot in shared memory.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Slot(pub [AtomicU64; WORDS]);

/// A copy of the words of a slot.
pub type Words = [u64; WORDS];

/// State of a record: the two lowest bits of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Never written, or being written.
    Free,
    /// The call has not returned.
    InFlight,
    /// The call has returned.
    Done,
    /// The drain went past the record while its call was in flight. The end of the call is a record of its own.
    Passed,
}

/// Meaning of the words behind the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Layout {
    /// A copy with `destMax == count`: begin, end, call site, dst, src, count, stream. The kind is in the head.
    Linear = 0,
    /// A fill with `maxCount == count`: begin, end, call site, dst, value, count, stream.
    Fill = 1,
    /// The first slot of a longer record: begin, end, call site, arguments 0 to 3.
    Long = 2,
    /// Its second slot: findings (two words), how many slots and flags, arguments 4 to 7.
    More = 3,
    /// The third slot of a batch: total, smallest and largest size, what follows, argument 8 and 9.
    Batch = 4,
    /// Attributes of a batch, two in a slot: first item, destination and source, each a word.
    Attributes = 5,
    /// Items of a batch, two in a slot: dst, src, size, each a word; the last word is the room left at each.
    Items = 6,
    /// No call: the function field is a [`Note`].
    Note = 7,
}

/// Kind of a slot that is not a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Note {
    /// From here on the ring is a thread's: ticks, id, and 16 bytes of its name.
    Thread = 0,
    /// Calls were not recorded: ticks of the first, ticks now, how many.
    Lost = 1,
    /// The end of a call whose record was passed by, or whose duration did not fit: ticks of its
    /// begin, its number, its duration, its code.
    End = 2,
    /// A finding about a call whose record came before: see [`crate::record::RecordedFinding::words`].
    Finding = 3,
    /// More of the stack of a call whose record came before: its number, and six return addresses at most.
    Stack = 4,
    /// A scope begins. This note and those below are annotations: see [`crate::record::annotation`].
    Scope = 5,
    /// A scope ends.
    ScopeEnd = 6,
    /// A mark.
    Mark = 7,
    /// A name for a stream or a buffer.
    Name = 8,
    /// More of the text of the note before: 56 bytes.
    Text = 9,
}

/// The head of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(pub u64);

const STATE: u64 = 0b11;
const NESTED: u64 = 1 << 5;
const NUMBER: u32 = 16;
/// The largest kind that a head has room for.
pub const KIND_MAX: u32 = 15;
/// Values of the state bits. A head in flight becomes done by an addition of 1.
const IN_FLIGHT: u64 = 1;
const DONE: u64 = 2;
const PASSED: u64 = 3;

impl Head {
    /// The head of a call that begins; `kind` is at most [`KIND_MAX`].
    #[inline(always)]
    pub const fn in_flight(number: u64, layout: Layout, function: u8, kind: u32) -> Self {
        // Added, not or-ed: what is known when this is compiled is then one number, added with the rest.
        Self((number << NUMBER) + ((kind as u64) << 6) + ((function as u64) << 10 | (layout as u64) << 2 | IN_FLIGHT))
    }

    /// This head, marked as a call that the vendor makes inside another.
    pub const fn nested(self) -> Self {
        Self(self.0 | NESTED)
    }

    /// The head of a slot that is complete at once.
    #[inline(always)]
    pub const fn done(number: u64, layout: Layout, function: u8) -> Self {
        Self::in_flight(number, layout, function, 0).ended()
    }

    /// This head with the state "done"; requires the state "in flight".
    #[inline(always)]
    pub const fn ended(self) -> Self {
        Self(self.0 + (DONE - IN_FLIGHT))
    }

    /// This head with the state "passed by".
    pub const fn passed(self) -> Self {
        Self(self.0 & !STATE | PASSED)
    }

    /// State of the record.
    pub const fn state(self) -> State {
        match self.0 & STATE {
            0 => State::Free,
            IN_FLIGHT => State::InFlight,
            DONE => State::Done,
            _ => State::Passed,
        }
    }

    /// Meaning of the other words.
    pub const fn layout(self) -> Layout {
        match self.0 >> 2 & 7 {
            0 => Layout::Linear,
            1 => Layout::Fill,
            2 => Layout::Long,
            3 => Layout::More,
            4 => Layout::Batch,
            5 => Layout::Attributes,
            6 => Layout::Items,
            _ => Layout::Note,
        }
    }

    /// Index of the function, or number of the [`Note`].
    pub const fn function(self) -> u8 {
        (self.0 >> 10 & 63) as u8
    }

    /// The kind of copy of a [`Layout::Linear`] record.
    pub const fn kind(self) -> u8 {
        (self.0 >> 6 & 15) as u8
    }

    /// Whether the slot alone is the exact record of an outermost call: one slot, done, not nested, nothing to follow.
    /// One test of its bits.
    #[inline(always)]
    pub const fn is_exact(self) -> bool {
        const { assert!(Layout::Linear as u64 == 0 && Layout::Fill as u64 == 1) };
        self.0 & (STATE | 0b110 << 2 | NESTED) == DONE
    }

    /// Whether the vendor made the call inside another.
    pub const fn is_nested(self) -> bool {
        self.0 & NESTED != 0
    }

    /// The number, completed from its 48 bits to the one nearest to `near`.
    pub const fn number(self, near: u64) -> u64 {
        let difference = (self.0 >> NUMBER).wrapping_sub(near) << NUMBER;
        near.wrapping_add((difference as i64 >> NUMBER) as u64)
    }
}

/// Reasons why a call cannot be recorded by plain stores into one slot. Any bit that is set is a reason; they share a
/// word so that one test covers all of them.
#[derive(Clone, Copy)]
pub struct SlowPathReasons(u64);

impl SlowPathReasons {
    /// The call took the slow path from its begin.
    pub const LONG_CALL: Self = Self(1);

    /// Slots were claimed behind the record, up to number `next`: the drain may be about to pass it by.
    #[inline(always)]
    pub const fn claimed_behind(record: Head, next: u64) -> Self {
        // What stands below the number is less than one of it, and not 0.
        Self((next << NUMBER).wrapping_sub(record.0) >> NUMBER)
    }

    /// The slot shows another head: the drain has passed the record by, or another record stands there.
    #[inline(always)]
    const fn head_changed(shown: Head, begun: Head) -> Self {
        Self(shown.0 ^ begun.0)
    }

    /// The duration may not fit into 32 bits; the largest value stands for one that does not.
    #[inline(always)]
    const fn long_duration(duration: u64) -> Self {
        Self(duration >> 31)
    }

    /// The room at the destination is not the size: one slot holds only one of them.
    #[inline(always)]
    pub const fn room_differs(dst_max: usize, count: usize) -> Self {
        Self((dst_max ^ count) as u64)
    }

    /// The kind of copy does not fit into a head.
    #[inline(always)]
    pub const fn large_kind(kind: u32) -> Self {
        Self((kind & !KIND_MAX) as u64)
    }

    /// The bits of a gate that is closed.
    #[inline(always)]
    pub const fn gate(bits: usize) -> Self {
        Self(bits as u64)
    }

    /// The reasons of both sets.
    #[inline(always)]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is no reason.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

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
mod tests {
    use super::*;

    const NO_REASON: SlowPathReasons = SlowPathReasons(0);

    const LAYOUTS: [Layout; 8] = [
        Layout::Linear,
        Layout::Fill,
        Layout::Long,
        Layout::More,
        Layout::Batch,
        Layout::Attributes,
        Layout::Items,
        Layout::Note,
    ];

    #[test]
    fn every_field_of_a_head_is_read_back_whatever_the_others_are() {
        for layout in LAYOUTS {
            for (number, function, kind) in [(0, 0, 0), (1, 63, 15), ((1 << 48) - 1, 21, 6)] {
                let head = Head::in_flight(number, layout, function, kind);
                let fields = |head: Head| (head.number(number), head.layout(), head.function(), head.kind());
                let expected = (number, layout, function, kind as u8);
                assert_eq!((fields(head), head.state(), head.is_nested()), (expected, State::InFlight, false));
                assert_eq!((fields(head.ended()), head.ended().state()), (expected, State::Done));
                assert_eq!((fields(head.passed()), head.passed().state()), (expected, State::Passed));
                assert_eq!((fields(head.nested()), head.nested().is_nested()), (expected, true));
                assert_eq!(Head::done(number, layout, function).state(), State::Done);
            }
        }
        assert_eq!(Head(0).state(), State::Free);
    }

    #[test]
    fn a_number_is_completed_to_the_one_nearest() {
        const ROUND: u64 = 1 << 48;
        let complete = |number: u64, near| Head::in_flight(number, Layout::Linear, 0, 0).number(near);
        for number in [0, 5, ROUND - 1, ROUND, ROUND + 3, 7 * ROUND - 2, 7 * ROUND] {
            for distance in [0, 1, 1000, ROUND / 2 - 1] {
                assert_eq!(complete(number, number + distance), number);
                assert_eq!(complete(number, number.saturating_sub(distance)), number);
            }
        }
    }

    #[test]
    fn an_end_word_holds_any_duration_and_code() {
        for code in [0, 1, -1, i32::MIN, i32::MAX] {
            let word = end_word(u32::MAX, code);
            assert_eq!(((word >> 32) as i32, word as u32), (code, u32::MAX));
        }
    }

    #[test]
    fn a_slot_is_written_and_read_whole() {
        let slot = Slot::default();
        slot.put(Head(77), &[1; 7]);
        assert_eq!(slot.read(), Some([77, 1, 1, 1, 1, 1, 1, 1]));
        slot.put(Head(78), &[2]);
        assert_eq!(slot.read(), Some([78, 2, 0, 0, 0, 0, 0, 0]), "nothing of the old record is left");
        slot.put(Head(79), &[3; 9]);
        assert_eq!(slot.read(), Some([79, 3, 3, 3, 3, 3, 3, 3]));
    }

    #[test]
    fn only_the_record_that_began_is_ended() {
        let begun = Head::in_flight(9, Layout::Linear, 1, 0);
        fn end_alone(slot: &Slot, begun: Head, now: u64, code: i32) -> bool {
            slot.end(begun, now, code, NO_REASON).is_ok()
        }
        fn end_racing(slot: &Slot, begun: Head, now: u64, code: i32) -> bool {
            slot.end_racing(begun, now.wrapping_sub(100), code)
        }
        for end in [end_alone, end_racing] {
            let slot = Slot::default();
            let begin = |head: Head| slot.put(head, &[100]);
            begin(begun);
            assert!(end(&slot, begun, 130, -4));
            assert_eq!((slot.head(), slot.read().unwrap()[2]), (begun.ended(), end_word(30, -4)));
            begin(begun);
            assert!(slot.pass(begun) && !end(&slot, begun, 130, 0));
            assert_eq!((slot.head(), slot.read().unwrap()[2]), (begun.passed(), 0));
            begin(begun);
            assert!(!end(&slot, begun, 100 + (1 << 32), 0), "too long");
            assert!(!end(&slot, begun, 99, 0), "before it began");
            begin(Head::in_flight(25, Layout::Linear, 1, 0));
            assert!(!end(&slot, begun, 130, 0), "another one's");
        }
    }

    #[test]
    fn what_has_ended_is_not_passed_by() {
        let (slot, begun) = (Slot::default(), Head::in_flight(9, Layout::Linear, 1, 0));
        slot.put(begun.ended(), &[1]);
        assert!(!slot.pass(begun));
        assert_eq!(slot.head(), begun.ended());
    }
}
