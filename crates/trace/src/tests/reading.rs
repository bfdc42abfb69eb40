use super::sample::{Open, Sample};
use crate::reader::ReadMode;
use crate::record::slot::Note;
use crate::record::slot::{Head, Layout, State};
use crate::record::{EffectClasses, End, Entry, TrackedCall};
use crate::ring::layout::Mode;
use crate::sync::Ordering;

const ALL: [ReadMode; 3] = [ReadMode::Drain, ReadMode::Finish, ReadMode::Peek];

fn done(sample: &Sample, now: u64) -> u64 {
    let open = sample.begin(now).unwrap();
    assert!(sample.end(open, now + 1, 0));
    open.number
}

fn end_of(entry: &Entry) -> Option<End> {
    match entry {
        Entry::Call(call) => call.end,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_readings_show_done_records_in_order() {
    for how in ALL {
        let sample = Sample::new(16, Mode::Audit, 0);
        (0..10).for_each(|now| assert_eq!(done(&sample, now), now));
        assert_eq!(sample.numbers(how), (0..10).collect::<Vec<_>>(), "{how:?}");
    }
}

#[test]
fn reading_goes_on_across_the_end_of_the_ring_and_of_40_bits() {
    for first in [10, (1 << 40) - 7] {
        for how in ALL {
            let sample = Sample::new(16, Mode::Audit, first);
            (0..16).for_each(|now| assert_eq!(done(&sample, now), first + now));
            assert_eq!(sample.numbers(how), (first..first + 16).collect::<Vec<_>>(), "{how:?}");
        }
    }
}

#[test]
fn no_more_is_read_at_once_than_asked_for() {
    let sample = Sample::new(64, Mode::Audit, 0);
    (0..40).for_each(|now| assert_eq!(done(&sample, now), now));
    let sizes: Vec<_> = (0..4).map(|_| sample.pass(ReadMode::Drain, 15).entries.len()).collect();
    assert_eq!(sizes, [15, 15, 10, 0]);
}

#[test]
fn plain_records_are_read_in_bulk_up_to_any_other_and_from_there_on_again() {
    for how in ALL {
        let sample = Sample::new(256, Mode::Audit, 200);
        let (mut expected, mut number) = (Vec::new(), 200);
        for now in 0..150 {
            expected.push(number);
            // A longer record in the middle of what is copied at once, at its end, and across the end of the ring.
            number = if matches!(number, 220 | 255 | 263) {
                assert!(sample.end(sample.begin_long(2, now).unwrap(), now + 1, 0));
                number + 2
            } else {
                assert_eq!(done(&sample, now), number);
                number + 1
            };
        }
        let words = |number: u64| sample.slot(number).read().unwrap();
        let slots = (200..number).map(words).collect::<Vec<_>>();
        let run = sample.ring().read(200, how, 1000);
        assert_eq!((run.first, run.next, run.overwritten), (200, number, 0), "{how:?}");
        assert_eq!(run.slots, slots, "{how:?}");
        assert_eq!(sample.numbers(how), expected, "{how:?}");
    }
}

#[test]
fn the_memory_of_an_earlier_run_is_used_again_and_what_it_held_is_not() {
    let sample = Sample::new(64, Mode::Audit, 0);
    (0..40).for_each(|now| assert_eq!(done(&sample, now), now));
    let ring = sample.ring();
    let first = ring.read_into(u64::MAX, 0, ReadMode::Drain, 30, Vec::new());
    let (memory, at) = (first.slots.capacity(), first.slots.as_ptr());
    let second = ring.read_into(u64::MAX, first.next, ReadMode::Drain, 30, first.slots);
    assert_eq!((second.first, second.next, second.slots.len()), (30, 40, 10));
    assert_eq!((second.slots.capacity(), second.slots.as_ptr()), (memory, at));
    let third = ring.read_into(u64::MAX, second.next, ReadMode::Drain, 30, second.slots);
    assert_eq!((third.next, third.slots.len()), (40, 0));
    assert_eq!(ring.read(40, ReadMode::Drain, 30).slots.capacity(), 0, "an empty ring takes no memory");
}

#[test]
fn a_ring_has_more_where_a_drain_finds_a_record_or_a_slot_that_is_never_written() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let has_more = |sample: &Sample| sample.ring().has_more(sample.control.drained.load(Ordering::Relaxed));
    assert!(!has_more(&sample));
    let open = sample.begin(0).unwrap();
    assert!(has_more(&sample), "it may have to be passed by");
    assert!(sample.end(open, 1, 0));
    assert_eq!(sample.numbers(ReadMode::Drain), [0]);
    (1..17).for_each(|now| assert_eq!(done(&sample, now), now));
    assert!(has_more(&sample));
    assert_eq!(sample.numbers(ReadMode::Drain).len(), 16);
    assert!(!has_more(&sample), "a record of the round before is none");
    sample.claim(1, 0).unwrap();
    assert!(!has_more(&sample));
    sample.control.since.store(18, Ordering::Relaxed);
    assert!(has_more(&sample), "its thread is gone");
}

#[test]
fn a_call_in_flight_is_waited_for_and_then_passed_and_its_end_comes_later() {
    let sample = Sample::new(16, Mode::Audit, 0);
    done(&sample, 0);
    let outer = sample.begin(1).unwrap();
    for now in 2..5 {
        done(&sample, now);
    }
    assert_eq!(sample.numbers(ReadMode::Drain), [0], "a quarter of the ring is not ahead of it yet");
    assert_eq!(sample.numbers(ReadMode::Drain), []);
    assert_eq!(sample.numbers(ReadMode::Peek), [1, 2, 3, 4], "who only looks sees it");
    assert_eq!(sample.slot(1).head().state(), State::InFlight, "and leaves it as it is");
    done(&sample, 5);
    let pass = sample.pass(ReadMode::Drain, 99);
    assert_eq!(pass.entries.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!((end_of(&pass.entries[0].1), sample.slot(1).head()), (None, outer.head.passed()));
    assert!(sample.end(outer, 101, -9));
    let late = Entry::End { of: 1, end: End { duration: 100, code: -9 } };
    assert_eq!(sample.pass(ReadMode::Drain, 99).entries, [(6, late)]);
}

#[test]
fn a_tracked_call_in_flight_is_passed_as_a_copy_is_and_leaves_no_call_in_flight_behind() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let copy = sample.begin(0).unwrap();
    let tracked = sample.begin_tracked(1).unwrap();
    assert_eq!(sample.numbers(ReadMode::Flush), [], "a tracked call behind a copy does not show that it was left");
    (2..5).for_each(|now| _ = done(&sample, now));
    let pass = sample.pass(ReadMode::Drain, 99);
    assert_eq!(pass.entries.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0], "it waits for the second");
    (5..8).for_each(|now| _ = done(&sample, now));
    let pass = sample.pass(ReadMode::Drain, 99);
    let values = [1, 1, 1, 1];
    let call = TrackedCall { number: 1, function: 700, begin: 1, end: None, site: 1, is_nested: false, values };
    assert_eq!(pass.entries[0], (1, Entry::Tracked(call)));
    assert_eq!(sample.slot(1).head(), tracked.head.passed());
    assert!(sample.end(tracked, 101, -9) && sample.end(copy, 102, 0));
    let late = Entry::End { of: 1, end: End { duration: 100, code: -9 } };
    assert_eq!(sample.pass(ReadMode::Drain, 99).entries[0].1, late);
}

#[test]
fn what_a_dead_process_had_in_flight_is_shown_once() {
    let sample = Sample::new(16, Mode::Audit, 0);
    sample.begin(0).unwrap();
    sample.begin_long(2, 1).unwrap();
    assert_eq!(sample.numbers(ReadMode::Finish), [0, 1]);
    assert_eq!(sample.numbers(ReadMode::Finish), []);
}

#[test]
fn a_duration_that_does_not_fit_comes_in_a_record_of_its_own() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let open = sample.begin(5).unwrap();
    assert!(sample.end(open, 5 + (1 << 33), 4));
    let entries = sample.pass(ReadMode::Drain, 99).entries;
    assert_eq!(end_of(&entries[0].1), Some(End { duration: u32::MAX.into(), code: 4 }));
    assert_eq!(entries[1].1, Entry::End { of: 0, end: End { duration: 1 << 33, code: 4 } });
}

#[test]
fn who_only_looks_and_who_finishes_goes_past_a_gap_at_once() {
    for how in [ReadMode::Peek, ReadMode::Finish] {
        let sample = Sample::new(16, Mode::Audit, 0);
        sample.claim(2, 0).unwrap();
        (2..4).for_each(|now| assert_eq!(done(&sample, now), now));
        let pass = sample.pass(how, 99);
        assert_eq!((pass.gaps, pass.entries.len()), (2, 2));
    }
}

#[test]
fn a_gap_where_overtaking_is_looked_for_does_not_stop_the_drain_for_ever() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let _left = sample.begin(0).unwrap();
    (1..4).for_each(|now| assert_eq!(done(&sample, now), now));
    sample.claim(4, 0).unwrap();
    while let Some(open) = sample.begin(8) {
        assert!(sample.end(open, 9, 0));
    }
    assert_eq!(sample.numbers(ReadMode::Drain), [0, 1, 2, 3]);
}

#[test]
fn a_gap_is_waited_for_while_its_thread_may_fill_it_and_skipped_once_the_ring_is_anothers() {
    for how in [ReadMode::Drain, ReadMode::Flush] {
        let sample = Sample::new(16, Mode::Audit, 0);
        done(&sample, 0);
        let [held_up, forsaken] = [sample.claim(1, 0).unwrap(), sample.claim(2, 0).unwrap()];
        while let Some(open) = sample.begin(4) {
            assert!(sample.end(open, 5, 0));
        }
        assert_eq!(sample.numbers(how), [0]);
        assert_eq!(sample.numbers(how), [], "however many calls are behind it");
        sample.slot(held_up).put(Head::done(held_up, Layout::Note, Note::Stack as u16), &[]);
        assert_eq!(sample.numbers(how), [held_up], "a signal handler has returned");
        sample.hand_over();
        let pass = sample.pass(how, 99);
        assert_eq!((pass.gaps, pass.slots, pass.entries[0].0), (2, 12, forsaken + 2));
        // The new thread's own gap is waited for.
        let own = sample.claim(1, 0).unwrap();
        done(&sample, 17);
        assert_eq!((own, sample.numbers(how)), (16, vec![]), "{how:?}");
    }
}

#[test]
fn in_a_gap_an_old_record_of_the_same_slot_is_not_shown_again() {
    let sample = Sample::new(16, Mode::Audit, 0);
    (0..16).for_each(|now| assert_eq!(done(&sample, now), now));
    assert_eq!(sample.numbers(ReadMode::Drain).len(), 16);
    sample.claim(1, 0).unwrap();
    done(&sample, 17);
    assert_eq!(sample.numbers(ReadMode::Peek), [17]);
}

#[test]
fn what_flight_overwrites_is_counted_and_the_rest_is_read() {
    for how in ALL {
        let sample = Sample::new(16, Mode::Flight, 0);
        (0..50).for_each(|now| assert_eq!(done(&sample, now), now));
        let pass = sample.pass(how, 99);
        assert_eq!((pass.overwritten, pass.slots, pass.entries[0].0), (34, 16, 34), "{how:?}");
    }
}

#[test]
fn a_long_record_whose_beginning_is_overwritten_is_not_shown() {
    let sample = Sample::new(16, Mode::Flight, 0);
    let long = sample.begin_long(4, 0).unwrap();
    assert!(sample.end(long, 1, 0));
    (4..18).for_each(|now| assert_eq!(done(&sample, now), now));
    let pass = sample.pass(ReadMode::Drain, 99);
    assert_eq!((pass.overwritten, pass.gaps, pass.slots, pass.entries[0].0), (4, 0, 14, 4));
}

#[test]
fn a_long_record_across_the_end_of_the_ring_is_whole() {
    for how in ALL {
        let sample = Sample::new(16, Mode::Audit, 14);
        let open = sample.begin_long(4, 7).unwrap();
        assert!(sample.end(open, 9, 0));
        let pass = sample.pass(how, 99);
        assert_eq!((pass.slots, pass.entries.len()), (4, 1), "{how:?}");
        let Entry::Call(call) = &pass.entries[0].1 else { panic!("a call") };
        assert_eq!((call.number, call.arguments), (14, [7; 10]));
    }
}

#[test]
fn a_slot_that_is_being_written_is_never_shown() {
    for mode in [Mode::Audit, Mode::Flight] {
        let sample = Sample::new(16, mode, 0);
        (0..16).for_each(|now| assert_eq!(done(&sample, now), now));
        if mode == Mode::Audit {
            sample.pass(ReadMode::Drain, 99);
        }
        let torn = sample.claim(1, 0).unwrap();
        sample.slot(torn).clear();
        sample.slot(torn).set(4, 0xbad);
        for how in [ReadMode::Peek, ReadMode::Finish] {
            assert!(sample.numbers(how).iter().all(|number| number % 16 != torn % 16), "{mode:?} {how:?}");
        }
    }
}

#[test]
fn a_batch_that_ends_with_the_process_while_its_items_are_written_is_still_a_call() {
    for how in ALL {
        let sample = Sample::new(16, Mode::Audit, 0);
        let Open { number, .. } = sample.begin_long(4, 7).unwrap();
        (4..7).for_each(|now| assert_eq!(done(&sample, now), now));
        sample.slot(number + 3).clear();
        let pass = sample.pass(how, 99);
        let Entry::Call(call) = &pass.entries[0].1 else { panic!("a call") };
        assert_eq!((call.number, call.end, &call.batch, call.arguments), (0, None, &None, [7; 10]), "{how:?}");
        assert_eq!((pass.entries.len(), pass.gaps), (4, 0));
    }
}

#[test]
fn notes_are_records_like_others() {
    let sample = Sample::new(16, Mode::Audit, 0);
    assert!(sample.note(Note::Stack, &[2, 3, 4]));
    assert!(sample.note(Note::Lost, &[1, 2, 3]));
    let findings = Entry::Stack { of: 2, frames: [3, 4, 0, 0, 0, 0] };
    let lost = Entry::Lost { from: 1, to: 2, calls: 3, notes: 0, classes: EffectClasses::COPY };
    assert_eq!(sample.pass(ReadMode::Drain, 99).entries, [(0, findings), (1, lost)]);
}

#[test]
fn the_newest_slot_ends_the_ring_wherever_it_lies() {
    let sample = Sample::new(16, Mode::Flight, 0);
    assert_eq!((sample.ring().end(0), sample.ring().end(9)), (0, 9));
    (0..21).for_each(|now| assert_eq!(done(&sample, now), now));
    assert_eq!((sample.ring().end(0), sample.ring().end(21), sample.ring().end(30)), (21, 21, 30));
}

#[test]
fn the_end_is_found_near_by_behind_what_is_missing() {
    let sample = Sample::new(16, Mode::Audit, 100);
    let end = |from| (sample.ring().end(from), sample.ring().end_near(from, 3));
    assert_eq!(end(100), (100, 100));
    (0..4).for_each(|now| _ = done(&sample, now));
    assert_eq!(end(100), (104, 104));
    sample.claim(3, 0).unwrap();
    assert_eq!(end(100), (104, 104), "claimed and not shown");
    done(&sample, 9);
    assert_eq!(end(100), (108, 108), "behind a gap");
    sample.ring().give_back(108);
    (0..16).for_each(|now| _ = done(&sample, now));
    assert_eq!(end(108), (124, 124), "to the last slot");
    let sample = Sample::new(16, Mode::Flight, 0);
    (0..40).for_each(|now| _ = done(&sample, now));
    assert_eq!((sample.ring().end_near(0, 3), sample.ring().end_near(30, 3)), (40, 40), "over all that is overwritten");
}
