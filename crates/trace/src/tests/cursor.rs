use super::sample::Sample;
use crate::reader::ReadMode;
use crate::record::slot::Note;
use crate::record::{EffectClasses, Entry};
use crate::ring::cursor::RingCursor;
use crate::ring::layout::Mode;
use crate::ring::storage::FixedStorage;
use crate::sync::Ordering;

fn counts(sample: &Sample) -> [u64; 3] {
    let control = &sample.control;
    [&control.not_recorded, &control.told, &control.lost_since].map(|count| count.load(Ordering::Relaxed))
}

#[test]
fn a_place_of_zeroes_has_no_room_and_is_not_open() {
    let cursor = RingCursor::default();
    assert!(!cursor.is_open());
    assert_eq!(cursor.claim(1), Err(0));
    assert!(cursor.give_back(0, 1));
    assert_eq!(cursor.next.load(Ordering::Relaxed), 0);
}

#[test]
fn claims_are_consecutive_and_end_where_the_ring_does() {
    let sample = Sample::new(16, Mode::Audit, 100);
    assert_eq!(sample.cursor.claim(3), Ok(100));
    assert_eq!(sample.cursor.claim(12), Err(103), "the drain is to be woken behind a quarter of the ring");
    assert!(sample.cursor.give_back(103, 12));
    assert_eq!(sample.claim(12, 0), Some(103));
    assert_eq!(sample.claim(2, 0), None, "one slot is left");
    assert_eq!(sample.claim(1, 0), Some(115));
    assert_eq!(sample.cursor.claim(1), Err(116));
}

#[test]
fn a_claim_behind_which_another_was_made_cannot_be_given_back() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let (first, _handlers) = (sample.cursor.claim(1).unwrap(), sample.cursor.claim(1).unwrap());
    assert!(!sample.cursor.give_back(first, 1));
    assert_eq!(sample.cursor.next.load(Ordering::Relaxed), 2);
}

#[test]
fn a_claim_that_is_given_up_behind_a_handlers_is_filled_so_that_nobody_waits_for_it() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let full: Vec<_> = (0..16).map(|now| sample.begin(now).unwrap()).collect();
    let in_vain = sample.cursor.claim(1).unwrap_err();
    for call in full {
        assert!(sample.end(call, 20, 0));
    }
    sample.ring().give_back(16);
    // A handler comes, finds room, and records a call; then the interrupted one goes on.
    let handlers = sample.begin(30).unwrap();
    assert!(sample.end(handlers, 40, 0));
    // SAFETY: the test's own place.
    unsafe { sample.cursor.give_up(in_vain) };
    let run = sample.ring().read(16, ReadMode::Drain, 99);
    assert_eq!((run.first, run.slots.len(), run.next), (16, 2, 18));
}

#[test]
fn a_call_without_room_is_counted_and_told_of_once_there_is() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let open: Vec<_> = (0..16).map(|now| sample.begin(now).unwrap()).collect();
    for now in 50..53 {
        assert!(sample.begin(now).is_none());
    }
    assert_eq!((counts(&sample), sample.cursor.next.load(Ordering::Relaxed)), ([3, 0, 50], 16));
    open.iter().rev().for_each(|call| assert!(sample.end(*call, 60, 0)));
    assert_eq!(sample.numbers(ReadMode::Drain), (0..16).collect::<Vec<_>>());
    sample.begin(70).unwrap();
    assert_eq!(counts(&sample), [3, 3, 50]);
    let told = sample.pass(ReadMode::Peek, 99).entries;
    assert_eq!(told[1], (17, Entry::Lost { from: 50, to: 70, calls: 3, notes: 0, classes: EffectClasses::COPY }));
    // The next loss begins anew.
    while sample.begin(80).is_some() {}
    assert_eq!(counts(&sample), [4, 3, 80]);
}

#[test]
fn the_effect_classes_of_lost_calls_stand_in_one_note() {
    let sample = Sample::new(16, Mode::Audit, 0);
    while sample.begin(1).is_some() {}
    sample.control.lost_classes.store(EffectClasses::STREAM.0, Ordering::Relaxed);
    sample.pass(ReadMode::Finish, 99);
    sample.begin(2).unwrap();
    let classes = EffectClasses::COPY.union(EffectClasses::STREAM);
    let lost = |entry: &Entry| matches!(entry, Entry::Lost { classes: found, .. } if *found == classes);
    assert!(sample.pass(ReadMode::Finish, 99).entries.iter().any(|(_, entry)| lost(entry)));
    assert_eq!(sample.control.lost_classes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_loss_that_finds_no_room_to_be_told_is_told_later() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let mut open: Vec<_> = (0..16).map(|now| sample.begin(now).unwrap()).collect();
    assert!(sample.begin(20).is_none());
    sample.end(open.remove(0), 30, 0);
    assert_eq!(sample.pass(ReadMode::Drain, 1).slots, 1);
    assert_eq!(sample.begin(40).unwrap().number, 16, "room for the call, and none for the note");
    assert_eq!(counts(&sample), [1, 0, 20]);
    open.into_iter().for_each(|call| assert!(sample.end(call, 50, 0)));
    sample.pass(ReadMode::Drain, 99);
    assert_eq!(sample.begin(60).unwrap().number, 17);
    assert_eq!(counts(&sample), [1, 1, 20]);
}

#[test]
fn a_call_that_finds_the_ring_still_full_is_counted_by_the_short_way() {
    let lost_too = |sample: &Sample| {
        let claimed = sample.cursor.claim(1).unwrap_err();
        // SAFETY: the cursor is open, and only this thread writes.
        let is_lost = unsafe { sample.cursor.is_still_full(claimed, 1) };
        assert!(is_lost || sample.cursor.give_back(claimed, 1));
        is_lost
    };
    for mode in [Mode::Audit, Mode::Lossless] {
        let sample = Sample::new(16, mode, 0);
        let open: Vec<_> = (0..16).map(|now| sample.begin(now).unwrap()).collect();
        assert!(!lost_too(&sample), "the first one says when it was");
        assert!(sample.begin(20).is_none());
        assert_eq!(lost_too(&sample), mode == Mode::Audit, "who is to wait waits");
        assert_eq!(
            (counts(&sample)[0], sample.cursor.next.load(Ordering::Relaxed)),
            (1 + u64::from(mode == Mode::Audit), 16)
        );
        open.into_iter().for_each(|call| assert!(sample.end(call, 50, 0)));
        sample.pass(ReadMode::Drain, 99);
        assert!(!lost_too(&sample), "there is room again");
    }
}

#[test]
fn whoever_waits_gets_room_as_soon_as_there_is_some() {
    let sample = Sample::new(16, Mode::Lossless, 0);
    assert_eq!(sample.claim(16, 0), Some(0));
    let claimed = sample.cursor.claim(1).unwrap_err();
    let mut waits = 0;
    let wait = || {
        waits += 1;
        sample.ring().give_back(waits / 3);
        true
    };
    // SAFETY: the cursor is open, and only this thread writes.
    assert_eq!(unsafe { sample.cursor.make_room(claimed, 1, 0, &FixedStorage, wait) }, Some(16));
    assert_eq!((waits, counts(&sample)), (3, [0; 3]));
}

#[test]
fn a_handler_that_found_no_room_in_between_leaves_a_gap_and_no_wrong_number() {
    let sample = Sample::new(16, Mode::Audit, 0);
    (0..16).for_each(|now| assert!(sample.end(sample.begin(now).unwrap(), now, 0)));
    let claimed = sample.cursor.claim(2).unwrap_err();
    let mut jumps = Some(());
    let handler = || {
        // It claims as well, and then it jumps away: its claim is never given back.
        jumps.take().map(|()| sample.cursor.claim(1).unwrap_err());
        false
    };
    // SAFETY: the cursor is open, and only this thread writes.
    assert_eq!(unsafe { sample.cursor.make_room(claimed, 2, 5, &FixedStorage, handler) }, None);
    assert_eq!((counts(&sample)[0], sample.cursor.next.load(Ordering::Relaxed)), (1, 17));
    assert_eq!(sample.numbers(ReadMode::Drain).len(), 16);
    assert_eq!(sample.begin(6).unwrap().number, 17);
}

#[test]
fn flight_always_has_room() {
    let sample = Sample::new(16, Mode::Flight, 0);
    (0..100).for_each(|now| assert_eq!(sample.begin(now).unwrap().number, now));
    assert_eq!(counts(&sample), [0; 3]);
}

#[test]
fn a_ring_is_taken_over_where_it_stands() {
    let sample = Sample::new(16, Mode::Audit, 0);
    sample.begin(1).unwrap();
    sample.cursor.outermost.store(77, Ordering::Relaxed);
    sample.hand_over();
    assert_eq!(sample.cursor.outermost.load(Ordering::Relaxed), 0);
    assert_eq!(sample.begin(2).unwrap().number, 1);
}

#[test]
fn a_place_that_was_copied_from_the_process_that_forked_is_not_open() {
    let sample = Sample::new(16, Mode::Audit, 0);
    assert!(!sample.cursor.open(&sample.control, &sample.slots, 16, Mode::Audit, 9), "only once");
    sample.cursor.generation.store(crate::system::generation::current() + 1, Ordering::Relaxed);
    assert!(!sample.cursor.is_open() && sample.cursor.control().is_none());
    assert_eq!(sample.cursor.claim(1), Err(0));
    assert!(!sample.note(Note::Mark, &[1]), "nothing is written");
    // SAFETY: the test's own place.
    let room = unsafe { sample.cursor.make_room(1, 1, 5, &FixedStorage, || false) };
    assert_eq!((room, counts(&sample)), (None, [0; 3]), "and nothing counted");
}
