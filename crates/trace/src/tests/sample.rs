//! A ring on the heap, for tests, written to as the shim does.

use crate::reader::{ReadMode, Ring};
use crate::record::slot::{Head, Layout, Note, Slot, end_word};
use crate::record::{Entry, Extent, decode};
use crate::ring::cursor::RingCursor;
use crate::ring::layout::{Control, Mode};
use crate::ring::storage::{Pace, Storage};
use crate::sync::Ordering;
use std::cell::Cell;
use std::sync::Arc;

/// A ring and its writer.
pub struct Sample {
    // Shared, because the cursor points at them too.
    pub control: Arc<Control>,
    pub slots: Arc<[Slot]>,
    pub cursor: RingCursor,
    pub storage: SampleStorage,
}

// SAFETY: only the thread that writes uses the storage.
unsafe impl Sync for SampleStorage {}

/// Storage as a test has it.
pub struct SampleStorage {
    /// Number of slots that it has left.
    pub left: Cell<u32>,
    pub pace: Cell<Pace>,
    pub smallest: u32,
    /// Number of slots that were given back.
    pub released: Cell<u32>,
}

impl Storage for SampleStorage {
    fn extend(&self, _: &Control, slots: &[Slot], _: u32) -> bool {
        let left = self.left.get().checked_sub(slots.len() as u32);
        left.inspect(|left| self.left.set(*left)).is_some()
    }

    fn release(&self, slots: &[Slot]) {
        // As a page that is allocated anew.
        slots.iter().flat_map(|slot| &slot.0).for_each(|word| word.store(0, Ordering::Relaxed));
        self.left.set(self.left.get() + slots.len() as u32);
        self.released.set(self.released.get() + slots.len() as u32);
    }

    fn with_signals_blocked(&self, work: &dyn Fn()) {
        work();
    }

    fn pace(&self, _: u64) -> Pace {
        self.pace.get()
    }

    fn smallest(&self) -> u32 {
        self.smallest
    }

    fn quick(&self) -> u32 {
        u32::MAX
    }
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub number: u64,
    pub head: Head,
}

/// What a pass has read.
#[derive(Debug, Default)]
pub struct Pass {
    pub entries: Vec<(u64, Entry)>,
    pub slots: u64,
    pub overwritten: u64,
    /// Numbers that are neither read nor overwritten.
    pub gaps: u64,
}

impl Sample {
    /// A ring whose first number is `next`.
    pub fn new(slots: usize, mode: Mode, next: u64) -> Self {
        Self::growing(slots, slots, mode, next)
    }

    /// A ring that begins with `stored` of its slots.
    pub fn growing(stored: usize, slots: usize, mode: Mode, next: u64) -> Self {
        let sample = Self {
            control: Arc::default(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            cursor: RingCursor::default(),
            storage: SampleStorage {
                left: Cell::new((slots - stored) as u32),
                pace: Cell::new(Pace::Steady),
                smallest: stored as u32,
                released: Cell::new(0),
            },
        };
        sample.control.drained.store(next, Ordering::Relaxed);
        assert!(sample.cursor.open(&sample.control, &sample.slots, stored as u32, mode, next));
        sample
    }

    pub fn ring(&self) -> Ring<'_> {
        Ring { control: &self.control, slots: &self.slots }
    }

    pub fn slot(&self, number: u64) -> &Slot {
        // SAFETY: the cursor was opened with slots that live as long as it.
        unsafe { self.cursor.slot(number) }
    }

    /// Claims slots, if there is room; a loss is dated `now`.
    pub fn claim(&self, slots: u64, now: u64) -> Option<u64> {
        match self.cursor.claim(slots) {
            Ok(number) => Some(number),
            // SAFETY: the cursor is open, and only this thread writes.
            Err(claimed) => unsafe { self.cursor.make_room(claimed, slots, now, &self.storage, || false) },
        }
    }

    /// A copy of `now` bytes begins.
    pub fn begin(&self, now: u64) -> Option<Open> {
        let number = self.claim(1, now)?;
        let head = Head::in_flight(number, Layout::Linear, 1, 2);
        self.slot(number).clear();
        self.show(number, head, now);
        Some(Open { number, head })
    }

    /// A tracked call begins.
    pub fn begin_tracked(&self, now: u64) -> Option<Open> {
        let number = self.claim(1, now)?;
        let head = Head::in_flight(number, Layout::Tracked, 700, 0);
        self.slot(number).clear();
        self.show(number, head, now);
        Some(Open { number, head })
    }

    /// A call of several slots begins.
    pub fn begin_long(&self, slots: u64, now: u64) -> Option<Open> {
        let number = self.claim(slots, now)?;
        let head = Head::in_flight(number, Layout::Long, 3, 0);
        self.slot(number).clear();
        for nth in 1..slots {
            let layout = [Layout::More, Layout::Batch, Layout::Items][(nth as usize - 1).min(2)];
            let words = [0, 0, if nth == 1 { Extent::new(slots, 0, 0).0 } else { 0 }, now, now, now, now];
            self.slot(number + nth).put(Head::done(number + nth, layout, 3), &words);
        }
        self.show(number, head, now);
        Some(Open { number, head })
    }

    fn show(&self, number: u64, head: Head, now: u64) {
        let slot = self.slot(number);
        for word in 3..8 {
            slot.set(word, now);
        }
        slot.set(1, now);
        slot.show(head);
    }

    /// A call has returned; `false` if nothing could be written of it.
    pub fn end(&self, open: Open, now: u64, code: i32) -> bool {
        let slot = self.slot(open.number);
        if self.cursor.end(slot, open.head, now, code) {
            return true;
        }
        let shown = slot.head();
        if shown != open.head && shown != open.head.passed() {
            return false;
        }
        let begin = slot.0[1].load(Ordering::Relaxed);
        if shown == open.head {
            slot.set(2, end_word(u32::MAX, code));
            slot.show(open.head.ended());
        }
        self.note(Note::End, &[begin, open.number, now - begin, code as u64])
    }

    /// Another thread takes the ring over: the one that wrote here is gone.
    pub fn hand_over(&self) {
        let next = self.ring().end_near(self.control.drained.load(Ordering::Relaxed), self.slots.len() as u64);
        let mode = if self.cursor.is_mode(Mode::Flight) { Mode::Flight } else { Mode::Audit };
        self.cursor.control.store(core::ptr::null_mut(), Ordering::Relaxed);
        self.cursor.outermost.store(0, Ordering::Relaxed);
        assert!(self.cursor.open(&self.control, &self.slots, self.ring().stored() as u32, mode, next));
        self.control.since.store(self.cursor.next.load(Ordering::Relaxed), Ordering::Release);
    }

    pub fn note(&self, note: Note, words: &[u64]) -> bool {
        // SAFETY: the cursor is open, and only this thread writes.
        unsafe { self.cursor.write_note(note, words) }
    }

    /// Reads one run and gives it back.
    pub fn pass(&self, how: ReadMode, most: usize) -> Pass {
        let from = self.control.drained.load(Ordering::Relaxed);
        let run = self.ring().read(from, how, most);
        let gaps = (run.next - from).checked_sub(run.slots.len() as u64 + run.overwritten);
        let gaps = gaps.expect("no number is two things");
        let mut pass = Pass { overwritten: run.overwritten, gaps, ..Pass::default() };
        let mut rest = run.slots.as_slice();
        while !rest.is_empty() {
            let number = run.first + pass.slots;
            assert_eq!(Head(rest[0][0]).number(number), number, "a run has no holes");
            let (entry, count) = decode(rest, number).expect("a run holds whole records");
            pass.entries.push((number, entry));
            pass.slots += count as u64;
            rest = &rest[count..];
        }
        if how != ReadMode::Peek {
            self.ring().give_back(run.next);
        }
        pass
    }

    /// The numbers that a pass shows.
    pub fn numbers(&self, how: ReadMode) -> Vec<u64> {
        self.pass(how, usize::MAX).entries.iter().map(|(number, _)| *number).collect()
    }
}
