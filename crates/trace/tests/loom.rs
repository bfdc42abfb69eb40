//! The order of stores between a writer and its readers, in every order that the memory model allows.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p aclshim-trace --release --test loom`
//!
//! Loom tries every order of the steps of two threads, and every value that a load may return. It does not
//! return values that are stored later, so "given back before it was read" is found another way: with a
//! cell beside each slot that must never be read and written at once.
#![cfg(loom)]

use aclshim_trace::reader::{ReadMode, Ring};
use aclshim_trace::record::reasons::SlowPathReasons;
use aclshim_trace::record::slot::{Head, Layout, Note, Slot, State, end_word};
use aclshim_trace::record::{Entry, Extent, decode};
use aclshim_trace::ring::cursor::RingCursor;
use aclshim_trace::ring::layout::{Control, Mode};
use aclshim_trace::ring::storage::FixedStorage;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;

/// Every order of steps in which no thread is interrupted more than three times.
fn model(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(test);
}

/// A ring, its writer, and the cells.
struct Shared {
    control: Control,
    slots: Vec<Slot>,
    cursor: RingCursor,
    cells: Vec<UnsafeCell<u64>>,
}

// SAFETY: the cells are what the tests are about: loom fails where they are used at once.
unsafe impl Sync for Shared {}

impl Shared {
    fn new(slots: usize) -> Arc<Self> {
        Self::with(slots, Mode::Audit)
    }

    fn with(slots: usize, mode: Mode) -> Arc<Self> {
        let shared = Arc::new(Self {
            control: Control::default(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            cursor: RingCursor::default(),
            cells: (0..slots).map(|_| UnsafeCell::new(0)).collect(),
        });
        assert!(shared.cursor.open(&shared.control, &shared.slots, slots as u32, mode, 0));
        shared
    }

    fn ring(&self) -> Ring<'_> {
        Ring { control: &self.control, slots: &self.slots }
    }

    /// Claims a slot; behind each quarter of the ring the limit of the cursor is looked at.
    fn claim(&self) -> Option<u64> {
        // SAFETY: the cursor is open, and the caller is the only writer.
        let make_room = |claimed| unsafe { self.cursor.make_room(claimed, 1, 0, &FixedStorage, || false) };
        self.cursor.claim(1).map_or_else(make_room, Some)
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize % self.slots.len()]
    }

    /// A call begins; fewer words than in life, and as many kinds of order.
    fn begin(&self, number: u64) -> Head {
        let head = Head::in_flight(number, Layout::Linear, 1, 0);
        let slot = self.slot(number);
        slot.clear();
        slot.set(4, 1000 + number);
        slot.set(1, 10);
        slot.show(head);
        head
    }

    /// A call begins and ends.
    fn call(&self, number: u64) {
        let head = self.begin(number);
        let reasons = SlowPathReasons::claimed_behind(head, number + 1);
        assert!(self.slot(number).end(head, 15, number as i32, reasons).is_ok());
    }

    /// Reads, checks what is shown, and gives it back: the numbers, with a code where a call has ended.
    fn drain(&self, how: ReadMode, most: usize) -> Vec<(u64, Entry)> {
        self.pass(how, most).0
    }

    /// As `drain`; also returns the number of slots that were overwritten before.
    fn pass(&self, how: ReadMode, most: usize) -> (Vec<(u64, Entry)>, u64) {
        let run = self.ring().read(self.control.drained.load(Ordering::Relaxed), how, most);
        let mut entries = Vec::new();
        let (mut rest, mut number) = (&run.slots[..], run.first);
        while !rest.is_empty() {
            let (entry, count) = decode(rest, number).expect("whole records");
            if let Entry::Call(call) = &entry {
                assert_eq!((call.number, call.begin), (number, 10), "a mixed record");
                assert_eq!(call.arguments[0], 1000 + number, "a mixed record");
                let end = call.end.map(|end| (end.duration, end.code));
                assert!(end.is_none_or(|end| end == (5, number as i32)), "done without its end: {end:?}");
            }
            entries.push((number, entry));
            number += count as u64;
            rest = &rest[count..];
        }
        for number in run.first..run.next {
            self.cells[number as usize % self.cells.len()].with(|_| ());
        }
        self.ring().give_back(run.next);
        (entries, run.overwritten)
    }
}

#[test]
fn words_of_two_records_are_never_mixed() {
    model(|| {
        let slot = Arc::new(Slot::default());
        let heads = [1, 2].map(|number| Head::done(number, Layout::Linear, 1));
        let write = move |slot: &Slot, which: usize| {
            slot.clear();
            slot.set(1, heads[which].0);
            slot.set(7, heads[which].0);
            slot.show(heads[which]);
        };
        write(&slot, 0);
        let shared = slot.clone();
        let writer = thread::spawn(move || write(&shared, 1));
        if let Some(words) = slot.read()
            && Head(words[0]).state() != State::Free
        {
            assert_eq!([words[1], words[7]], [words[0]; 2], "a mixed record");
        }
        writer.join().unwrap();
    });
}

#[test]
fn what_is_in_flight_shows_its_arguments_and_what_is_done_its_end() {
    model(|| {
        let shared = Shared::new(4);
        let writer = thread::spawn({
            let shared = shared.clone();
            move || shared.call(0)
        });
        if let Some(words) = shared.slot(0).read() {
            match Head(words[0]).state() {
                State::Free => {}
                State::InFlight => assert_eq!([words[1], words[4]], [10, 1000]),
                _ => assert_eq!([words[1], words[2], words[4]], [10, end_word(5, 0), 1000]),
            }
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_slot_is_written_again_only_when_it_has_been_read() {
    model(|| {
        let shared = Shared::new(4);
        (0..4).for_each(|number| {
            assert_eq!(shared.claim(), Some(number));
            shared.call(number);
        });
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                let claimed = shared.cursor.claim(1).unwrap_err();
                // SAFETY: the cursor is open, and this thread's.
                let room = unsafe { shared.cursor.make_room(claimed, 1, 0, &FixedStorage, || false) };
                if let Some(number) = room {
                    shared.cells[0].with_mut(|_| ());
                    shared.call(number);
                }
                room.is_some()
            }
        });
        let read = shared.drain(ReadMode::Drain, 1);
        assert_eq!(read.len(), 1);
        let wrote = writer.join().unwrap();
        let rest = shared.drain(ReadMode::Drain, 9).len();
        assert_eq!(rest, if wrote { 4 } else { 3 });
    });
}

#[test]
fn where_the_oldest_is_overwritten_each_call_is_read_or_counted() {
    model(|| {
        let shared = Shared::with(4, Mode::Flight);
        let call = |shared: &Shared, number| {
            assert_eq!(shared.cursor.claim(1), Ok(number), "there is always room");
            shared.call(number);
        };
        (0..4).for_each(|number| call(&shared, number));
        let writer = thread::spawn({
            let shared = shared.clone();
            move || call(&shared, 4)
        });
        let (mut entries, before) = shared.pass(ReadMode::Drain, 9);
        writer.join().unwrap();
        let (rest, since) = shared.pass(ReadMode::Drain, 9);
        entries.extend(rest);
        let numbers: Vec<u64> = entries.iter().map(|(number, _)| *number).collect();
        assert!(numbers.is_sorted() && numbers.ends_with(&[4]), "{numbers:?}");
        assert_eq!(numbers.len() as u64 + before + since, 5, "{numbers:?}, {before} and {since} overwritten");
    });
}

#[test]
fn a_call_that_ends_while_it_is_passed_by_is_told_of_once() {
    model(|| {
        let shared = Shared::new(4);
        (0..2).for_each(|number| assert_eq!(shared.claim(), Some(number)));
        let outer = shared.begin(0);
        shared.call(1);
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                if !shared.cursor.end(shared.slot(0), outer, 15, 0) {
                    // SAFETY: the cursor is open, and this thread's.
                    assert!(unsafe { shared.cursor.write_note(Note::End, &[10, 0, 5, 0]) });
                }
            }
        });
        let mut entries = shared.drain(ReadMode::Drain, 9);
        writer.join().unwrap();
        entries.extend(shared.drain(ReadMode::Drain, 9));
        let numbers: Vec<u64> = entries.iter().map(|(number, _)| *number).collect();
        assert!(numbers.is_sorted() && numbers[..2] == [0, 1], "{numbers:?}");
        let Entry::Call(call) = &entries[0].1 else { panic!("a call") };
        let late = entries.iter().filter(|(_, entry)| matches!(entry, Entry::End { of: 0, .. })).count();
        assert_eq!(usize::from(call.end.is_some()) + late, 1, "the end is told of once");
    });
}

#[test]
fn what_comes_while_the_drain_looks_is_not_taken_for_a_gap() {
    model(|| {
        let shared = Shared::new(4);
        let writer = thread::spawn({
            let shared = shared.clone();
            move || (0..2).for_each(|number| shared.call(number))
        });
        let mut entries = shared.drain(ReadMode::Drain, 9);
        writer.join().unwrap();
        entries.extend(shared.drain(ReadMode::Drain, 9));
        let numbers: Vec<u64> = entries.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [0, 1]);
        let is_told = |(_, entry): &(u64, Entry)| matches!(entry, Entry::Call(call) if call.end.is_some());
        assert!(entries.iter().all(is_told));
    });
}

#[test]
fn what_a_thread_writes_before_it_ends_is_not_taken_for_a_gap_of_a_gone_one() {
    model(|| {
        let shared = Shared::new(4);
        assert_eq!(shared.cursor.claim(1), Ok(0));
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.call(0);
                // It ends; the next owner of the ring has seen that.
                shared.control.since.store(1, Ordering::Release);
            }
        });
        let mut entries = shared.drain(ReadMode::Drain, 9);
        writer.join().unwrap();
        entries.extend(shared.drain(ReadMode::Drain, 9));
        assert_eq!(entries.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0]);
    });
}

#[test]
fn who_looks_sees_all_that_was_shown_before_the_newest() {
    model(|| {
        let shared = Shared::new(4);
        let writer = thread::spawn({
            let shared = shared.clone();
            move || (0..2).for_each(|number| shared.call(number))
        });
        let run = shared.ring().read(0, ReadMode::Peek, 9);
        assert_eq!((run.first, run.next), (0, run.slots.len() as u64));
        writer.join().unwrap();
    });
}

#[test]
fn a_batch_is_never_missed_while_its_items_are_written() {
    model(|| {
        let shared = Shared::new(16);
        let head = Head::in_flight(0, Layout::Long, 7, 0);
        let follower = |nth, layout| Head::done(nth, layout, 7);
        shared.slot(1).put(follower(1, Layout::More), &[0, 0, Extent::new(4, 0, 0).0]);
        shared.slot(2).put(follower(2, Layout::Batch), &[]);
        shared.slot(3).put(follower(3, Layout::Items), &[]);
        shared.slot(0).put(head, &[10, 0, 0, 1000]);
        (4..6).for_each(|number| shared.call(number));
        shared.cursor.next.store(6, Ordering::Relaxed);
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.slot(3).clear();
                shared.slot(3).set(1, 77);
                shared.slot(3).show(follower(3, Layout::Items));
                shared.cursor.end(shared.slot(0), head, 15, 0)
            }
        });
        let run = shared.ring().read(0, ReadMode::Drain, 9);
        let ended = writer.join().unwrap();
        assert_eq!((run.first, run.slots.len()), (0, 6), "the batch and what follows");
        let state = Head(run.slots[0][0]).state();
        assert_eq!(state, if ended { State::Done } else { State::Passed });
        assert!(state != State::Done || run.slots[3][1] == 77, "done implies the items");
    });
}

#[test]
fn a_drain_that_goes_to_sleep_is_woken_or_sees_what_came() {
    use aclshim_trace::ring::doorbell;
    use loom::sync::atomic::AtomicU32;
    model(|| {
        let shared = Arc::new((AtomicU32::new(0), Control::default()));
        let writer = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.mark.store(16, Ordering::Relaxed);
                doorbell::is_wake_needed(&shared.0)
            }
        });
        doorbell::announce_sleep(&shared.0);
        let is_seen = shared.1.mark.load(Ordering::Relaxed) == 16;
        let is_woken = writer.join().unwrap();
        assert!(is_seen || is_woken, "the drain sleeps, and the writer does not wake it");
    });
}
