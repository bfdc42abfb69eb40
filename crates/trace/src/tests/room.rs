use super::sample::Sample;
use crate::reader::ReadMode;
use crate::record::Entry;
use crate::ring::layout::Mode;
use crate::ring::storage::Pace;
use crate::sync::Ordering;

/// A call that returns at once; its number.
fn done(sample: &Sample, now: u64) -> Option<u64> {
    let open = sample.begin(now)?;
    assert!(sample.end(open, now, 0));
    Some(open.number)
}

/// The calls that a drain gets, in as many passes as it takes.
fn drain(sample: &Sample) -> Vec<u64> {
    let mut calls = Vec::new();
    loop {
        let pass = sample.pass(ReadMode::Drain, usize::MAX);
        if pass.entries.is_empty() {
            return calls;
        }
        let begins = pass.entries.iter().filter_map(|(_, entry)| match entry {
            Entry::Call(call) => Some(call.begin),
            _ => None,
        });
        calls.extend(begins);
    }
}

fn stored(sample: &Sample) -> usize {
    sample.ring().stored()
}

#[test]
fn a_ring_whose_drain_keeps_up_stays_as_small_as_it_was() {
    let sample = Sample::growing(16, 64, Mode::Audit, 0);
    for now in 0..1000 {
        assert!(done(&sample, now).is_some());
        assert_eq!(drain(&sample), [now]);
    }
    assert_eq!((stored(&sample), sample.storage.left.get()), (16, 48));
    assert!(sample.slots[16..].iter().all(|slot| slot.head().0 == 0), "nothing is written outside of the storage");
}

#[test]
fn a_ring_whose_drain_is_behind_grows_and_nothing_is_lost() {
    for first in [0, 13, (1 << 40) - 253] {
        let sample = Sample::growing(16, 256, Mode::Audit, first);
        assert!((0..200).all(|now| done(&sample, now).is_some()), "all are recorded");
        assert_eq!(sample.control.not_recorded.load(Ordering::Relaxed), 0);
        assert_eq!(drain(&sample), (0..200).collect::<Vec<_>>());
    }
}

#[test]
fn a_ring_that_is_full_amid_a_lap_goes_on_in_new_storage() {
    let sample = Sample::growing(16, 256, Mode::Audit, 0);
    // The drain is half a lap behind when the writer comes around.
    (0..14).for_each(|now| assert!(done(&sample, now).is_some()));
    assert_eq!(sample.pass(ReadMode::Drain, 9).slots, 9);
    (14..60).for_each(|now| assert!(done(&sample, now).is_some(), "{now}"));
    assert_eq!(drain(&sample), (9..60).collect::<Vec<_>>());
    // The next lap uses all of it.
    let now_stored = stored(&sample) as u64;
    assert!(now_stored >= 64);
    (0..now_stored - 2).for_each(|now| assert!(done(&sample, now).is_some(), "{now} of {now_stored}"));
    assert_eq!(stored(&sample) as u64, now_stored);
}

#[test]
fn without_storage_a_full_ring_counts_and_goes_on_when_it_is_drained() {
    let sample = Sample::growing(16, 64, Mode::Audit, 0);
    sample.storage.left.set(0);
    let recorded = (0..40).filter(|now| done(&sample, *now).is_some()).count() as u64;
    assert_eq!(recorded, 15, "one slot is for the jump");
    assert_eq!(sample.control.not_recorded.load(Ordering::Relaxed), 25);
    assert_eq!(drain(&sample), (0..15).collect::<Vec<_>>());
    assert!(done(&sample, 50).is_some());
    assert_eq!(sample.control.told.load(Ordering::Relaxed), 25);
    assert_eq!(drain(&sample), [50]);
}

/// Number of slots with storage after many laps at this pace, each call drained at once.
fn stored_after_laps(sample: &Sample, pace: Pace) -> usize {
    sample.storage.pace.set(pace);
    for now in 0..1000 {
        assert!(done(sample, now).is_some());
        assert_eq!(drain(sample), [now]);
    }
    stored(sample)
}

#[test]
fn a_ring_that_is_filled_quickly_grows_and_one_that_is_filled_slowly_shrinks() {
    let sample = Sample::growing(16, 64, Mode::Audit, 0);
    let run = |pace| stored_after_laps(&sample, pace);
    assert_eq!(run(Pace::Quick), 64);
    assert_eq!(run(Pace::Slow), 64, "a ring that has all of its storage has no laps");
    let sample = Sample::growing(16, 256, Mode::Audit, 0);
    sample.storage.left.set(48);
    let run = |pace| stored_after_laps(&sample, pace);
    assert_eq!(run(Pace::Quick), 64);
    assert_eq!(run(Pace::Steady), 64);
    assert_eq!((run(Pace::Slow), sample.storage.released.get()), (16, 48));
    assert_eq!(run(Pace::Quick), 64, "and grows again");
}

#[test]
fn slots_of_the_reserve_are_not_for_copies() {
    let sample = Sample::growing(16, 16, Mode::Audit, 0);
    sample.control.reserve.store(4, Ordering::Relaxed);
    let recorded = (0..40).filter(|now| done(&sample, *now).is_some()).count();
    assert_eq!(recorded, 12);
    let note = crate::record::slot::Note::Stack;
    assert_eq!((0..9).filter(|word| sample.note(note, &[*word])).count(), 4, "notes may use them");
}

/// A claim is interrupted at the limit by a handler that makes `calls` calls; then it goes on. All that were recorded are
/// read once, in order.
fn interrupted(slots: u64, before: u64, calls: u64, left: u32, drained: usize) {
    let sample = Sample::growing(16, 128, Mode::Audit, 0);
    sample.storage.left.set(left);
    (0..before).for_each(|now| _ = done(&sample, now));
    let early = sample.pass(ReadMode::Drain, drained);
    let mut seen: Vec<u64> = early.entries.iter().map(|(number, _)| *number).collect();
    let claim = sample.cursor.claim(slots);
    let handled: Vec<Option<u64>> = (0..calls).map(|nth| done(&sample, 1000 + nth)).collect();
    let number = match claim {
        Ok(number) => Some(number),
        // SAFETY: the cursor is open, and only this thread writes.
        Err(claimed) => unsafe { sample.cursor.make_room(claimed, slots, 2000, &sample.storage, || false) },
    };
    for number in number.into_iter().flat_map(|first| first..first + slots) {
        let words = [2000];
        let head = crate::record::slot::Head::done(number, crate::record::slot::Layout::Note, 4);
        sample.slot(number).put(head, &words);
    }
    let after: Vec<Option<u64>> = (0..40).map(|nth| done(&sample, 3000 + nth)).collect();
    loop {
        let pass = sample.pass(ReadMode::Drain, usize::MAX);
        if pass.entries.is_empty() {
            break;
        }
        seen.extend(pass.entries.iter().map(|(number, _)| *number));
    }
    let expected = handled.iter().chain(&after).flatten().copied();
    let expected = expected.chain(number.into_iter().flat_map(|first| first..first + slots));
    let what = format!("{slots} slots behind {before}, {calls} calls of the handler, {left} left, {drained} drained");
    for number in expected {
        assert!(seen.contains(&number), "{number} is not read: {what}; {seen:?}");
    }
    assert!(seen.is_sorted_by(|a, b| a < b), "{what}: {seen:?}");
    let control = &sample.control;
    let recorded = handled.iter().chain(&after).flatten().count() as u64 + u64::from(number.is_some());
    let lost = calls + 40 + 1 - recorded;
    assert!(control.not_recorded.load(Ordering::Relaxed) >= lost, "{what}: {lost} lost");
    let end = sample.cursor.next.load(Ordering::Relaxed);
    assert_eq!(
        control.drained.load(Ordering::Relaxed),
        end,
        "{what}: the drain waits for a slot that is never written"
    );
}

#[test]
fn a_handler_that_interrupts_a_claim_at_the_limit_loses_nothing() {
    for slots in [1, 2, 4] {
        for before in 0..40 {
            for calls in [1, 2, 15, 16, 40] {
                for left in [0, 16, 112] {
                    for drained in [0, 4, 99] {
                        interrupted(slots, before, calls, left, drained);
                    }
                }
            }
        }
    }
}
