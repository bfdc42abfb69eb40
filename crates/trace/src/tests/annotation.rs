use super::sample::{Pass, Sample};
use crate::reader::ReadMode;
use crate::record::annotation::{Annotation, AnnotationRef, LONGEST, NamedKind, cut, slots, slots_for, word};
use crate::record::slot::WORDS;
use crate::record::slot::{Head, Layout, Note};
use crate::record::{self, EffectClasses, Entry};
use crate::ring::layout::Mode;
use crate::ring::storage::FixedStorage;
use crate::sync::Ordering;

fn annotate(sample: &Sample, annotation: &AnnotationRef<'_>, now: u64) -> bool {
    // SAFETY: the cursor is open, and only this thread writes.
    unsafe { sample.cursor.annotate(annotation, now, &FixedStorage, || false) }
}

fn annotations(pass: &Pass) -> Vec<(u64, Annotation)> {
    let of = |(number, entry): &(u64, Entry)| match entry {
        Entry::Annotation { annotation, .. } => Some((*number, annotation.clone())),
        _ => None,
    };
    pass.entries.iter().filter_map(of).collect()
}

fn mark(text: &str) -> Annotation {
    Annotation::Mark { text: text.into() }
}

#[test]
fn what_is_told_is_read_as_it_was_written_whatever_its_length() {
    for length in (0..=LONGEST).chain([LONGEST + 1, 10_000]) {
        let sample = Sample::new(16, Mode::Audit, 0);
        let text: String = "abcdefghijklmnopqrstuvwxyz".chars().cycle().take(length).collect();
        assert!(annotate(&sample, &AnnotationRef::mark(text.as_bytes()), 7));
        let pass = sample.pass(ReadMode::Drain, 99);
        let kept = &text[..length.min(LONGEST)];
        assert_eq!(pass.entries, [(0, Entry::Annotation { ticks: 7, annotation: mark(kept) })]);
        assert_eq!(pass.slots, 1 + kept.len().saturating_sub(24).div_ceil(56) as u64);
    }
}

#[test]
fn every_kind_is_told() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let name = "a name that does not fit into one slot".to_owned();
    let all = [
        (
            AnnotationRef::scope(u32::MAX, 7, name.as_bytes()),
            Annotation::Scope { id: u32::MAX, parent: 7, name: name.clone() },
        ),
        (AnnotationRef::scope_end(3, 1 << 40), Annotation::ScopeEnd { id: 3, failures: 1 << 40 }),
        (AnnotationRef::mark(b""), mark("")),
        (
            AnnotationRef::name(NamedKind::Stream, u64::MAX, 0, name.as_bytes()),
            Annotation::Name { kind: NamedKind::Stream, begin: u64::MAX, size: 0, name: name.clone() },
        ),
        (
            AnnotationRef::name(NamedKind::Buffer, 5, u64::MAX, b"b"),
            Annotation::Name { kind: NamedKind::Buffer, begin: 5, size: u64::MAX, name: "b".into() },
        ),
    ];
    for (annotation, what) in all {
        assert!(annotate(&sample, &annotation, 9));
        assert_eq!(annotations(&sample.pass(ReadMode::Drain, 99)).pop().map(|(_, what)| what), Some(what));
    }
}

#[test]
fn a_long_text_is_cut_between_characters_and_what_is_no_text_is_kept_as_far_as_it_goes() {
    let text = "x".repeat(LONGEST - 1) + "\u{e9}more";
    assert_eq!(cut(text.as_bytes()).len(), LONGEST - 1);
    assert_eq!(cut("\u{1f600}".repeat(99).as_bytes()).len(), LONGEST);
    assert_eq!(cut(&[0x80; 999]).len(), LONGEST);
    let sample = Sample::new(16, Mode::Audit, 0);
    assert!(annotate(&sample, &AnnotationRef::mark(b"a\xff\0b"), 1));
    assert_eq!(annotations(&sample.pass(ReadMode::Drain, 99)), [(0, mark("a\u{fffd}\0b"))]);
}

#[test]
fn nobody_sees_a_note_before_all_of_it_is_there() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let text = "long enough for a second slot".as_bytes();
    let number = sample.claim(2, 0).unwrap();
    for words in [[0; 7], [word(text, 24), 0, 0, 0, 0, 0, 0]] {
        assert_eq!(sample.pass(ReadMode::Drain, 99).slots, 0, "its first slot is not shown yet");
        sample.slot(number + 1).put(Head::done(number + 1, Layout::Note, Note::Text as u16), &words);
    }
    let first = [5, 0, 0, text.len() as u64, word(text, 0), word(text, 8), word(text, 16)];
    sample.slot(number).put(Head::done(number, Layout::Note, Note::Mark as u16), &first);
    // However little is asked for at a time.
    assert_eq!(annotations(&sample.pass(ReadMode::Drain, 1)), [(0, mark("long enough for a second slot"))]);
}

#[test]
fn a_drain_beside_the_writer_sees_whole_texts_and_all_of_them() {
    const MARKS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let text = |mark: u64| vec![b'a' + (mark % 26) as u8; 30 + (mark % 7) as usize * 37];
    let sample = Sample::new(64, Mode::Audit, 0);
    let (sample, mut seen) = (&sample, 0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for mark in 0..MARKS {
                // SAFETY: the cursor is open, and only this thread writes.
                assert!(unsafe {
                    sample.cursor.annotate(&AnnotationRef::mark(&text(mark)), mark, &FixedStorage, || {
                        std::thread::yield_now();
                        true
                    })
                });
            }
        });
        while seen < MARKS {
            for (_, entry) in sample.pass(ReadMode::Drain, 16).entries {
                let what = Annotation::Mark { text: String::from_utf8(text(seen)).unwrap() };
                assert_eq!(entry, Entry::Annotation { ticks: seen, annotation: what });
                seen += 1;
            }
        }
    });
}

#[test]
fn a_kill_before_the_first_slot_leaves_a_gap_and_no_half_of_a_text() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let number = sample.claim(2, 0).unwrap();
    sample.slot(number + 1).put(Head::done(number + 1, Layout::Note, Note::Text as u16), &[1; 7]);
    assert!(annotate(&sample, &AnnotationRef::mark(b"next"), 1));
    let mut seen = Vec::new();
    let mut gaps = 0;
    for _ in 0..3 {
        let pass = sample.pass(ReadMode::Finish, 99);
        gaps += pass.gaps;
        seen.extend(annotations(&pass));
    }
    assert_eq!((seen, gaps), (vec![(2, mark("next"))], 2));
}

#[test]
fn of_a_note_that_was_overwritten_in_part_nothing_is_shown() {
    let sample = Sample::new(16, Mode::Flight, 0);
    assert!(annotate(&sample, &AnnotationRef::mark(&[b'x'; LONGEST]), 1));
    for now in 0..12 {
        assert!(sample.begin(now).is_some());
    }
    let pass = sample.pass(ReadMode::Peek, 99);
    assert_eq!((pass.overwritten, annotations(&pass), pass.entries.len()), (6, vec![], 12));
}

#[test]
fn what_finds_no_room_is_counted_and_told_with_the_next_record() {
    let sample = Sample::new(16, Mode::Audit, 0);
    for now in 0..13 {
        let open = sample.begin(now).unwrap();
        assert!(sample.end(open, now, 0));
    }
    let long = [b'x'; LONGEST];
    assert!(!annotate(&sample, &AnnotationRef::mark(&long), 20) && !annotate(&sample, &AnnotationRef::mark(&long), 21));
    assert_eq!(sample.cursor.next.load(Ordering::Relaxed), 13, "what found no room is given back");
    assert_eq!(sample.control.notes_lost.load(Ordering::Relaxed), 2);
    assert_eq!(sample.control.not_recorded.load(Ordering::Relaxed), 0, "no call is missing");
    assert_eq!(sample.numbers(ReadMode::Drain).len(), 13);
    assert!(annotate(&sample, &AnnotationRef::mark(&long), 30), "there is room again");
    let pass = sample.pass(ReadMode::Drain, 99);
    assert_eq!(annotations(&pass).len(), 1);
    assert_eq!(
        pass.entries[1].1,
        Entry::Lost { from: 20, to: 30, calls: 0, notes: 2, classes: EffectClasses::default() }
    );
}

#[test]
fn what_older_drains_have_parted_is_shown_as_far_as_it_goes() {
    let sample = Sample::new(16, Mode::Audit, 0);
    let text = "y".repeat(200);
    assert!(annotate(&sample, &AnnotationRef::mark(text.as_bytes()), 1));
    let slots = sample.ring().read(0, ReadMode::Peek, 99).slots;
    assert_eq!(slots.len(), 5);
    for cut in 1..slots.len() {
        let (entry, count) = record::decode(&slots[..cut], 0).unwrap();
        assert_eq!(count, cut);
        assert_eq!(entry, Entry::Annotation { ticks: 1, annotation: mark(&text[..24 + 56 * (cut - 1)]) });
        assert!(record::decode(&slots[cut..], 0).is_none(), "a rest is nothing");
    }
}

#[test]
fn no_words_can_make_a_note_longer_than_it_may_be() {
    let mut slot = [u64::MAX; WORDS];
    for note in [Note::Scope, Note::ScopeEnd, Note::Mark, Note::Name, Note::Text] {
        slot[0] = Head::done(3, Layout::Note, note as u16).0;
        assert!(slots(&slot) <= slots_for(LONGEST), "{note:?}");
        let rest = [Head::done(4, Layout::Note, Note::Text as u16).0, 1, 1, 1, 1, 1, 1, 1];
        if let Some((_, count)) = record::decode(&[[slot; 1].as_slice(), &[rest; 20]].concat(), 3) {
            assert!(count <= slots_for(LONGEST), "{note:?}: {count}");
        }
    }
}
