use super::*;
use crate::record::slot::{WORDS, end_word};
use crate::record::{INJECTED, REFUSED, batch_slots, found_words};

fn done(head: Head) -> u64 {
    head.ended().0
}

fn only_call(slots: &[Words], near: u64) -> Call {
    match decode(slots, near) {
        Some((Entry::Call(call), count)) if count == slots.len() => call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_linear_call_in_one_slot_gives_its_arguments_in_the_order_of_the_row() {
    let head = Head::in_flight(77, Layout::Linear, 1, 3);
    let slot = [done(head), 1000, end_word(20, -5), 0xcafe, 0xd, 0x5, 64, 0x57];
    let call = only_call(&[slot], 70);
    assert_eq!((call.number, call.function, call.begin, call.site), (77, 1, 1000, 0xcafe));
    assert_eq!(call.arguments, [0xd, 64, 0x5, 64, 3, 0x57, 0, 0, 0, 0]);
    assert_eq!(call.end, Some(End { duration: 20, code: -5 }));
    assert!(!call.is_nested && call.batch.is_none() && (call.findings, call.flags, call.scope) == (0, 0, 0));
}

#[test]
fn a_call_that_has_not_ended_has_no_end_whatever_the_word_says() {
    for head in [Head::in_flight(0, Layout::Linear, 1, 0), Head::in_flight(0, Layout::Linear, 1, 0).passed()] {
        assert_eq!(only_call(&[[head.0, 1, end_word(2, 3), 0, 0, 0, 0, 0]], 0).end, None);
    }
}

#[test]
fn a_fill_in_one_slot_gives_its_arguments_in_the_order_of_the_row() {
    let head = Head::in_flight(5, Layout::Fill, 18, 0).nested();
    let call = only_call(&[[done(head), 1, end_word(2, 0), 3, 0xd, 7, 64, 0x57]], 5);
    assert_eq!(call.arguments, [0xd, 64, 7, 64, 0x57, 0, 0, 0, 0, 0]);
    assert!(call.is_nested && call.function == 18);
}

#[test]
fn a_long_record_gives_eight_arguments_findings_flags_and_scope() {
    let head = Head::in_flight(8, Layout::Long, 3, 0);
    let more = Head::done(9, Layout::More, 3);
    let extent = Extent::new(2, INJECTED, 0xdead_beef).0;
    let slots = [[done(head), 1, end_word(2, 0), 3, 10, 11, 12, 13], [more.0, 1, 1 << 63, extent, 14, 15, 16, 17]];
    let call = only_call(&slots, 8);
    assert_eq!(call.arguments, [10, 11, 12, 13, 14, 15, 16, 17, 0, 0]);
    assert_eq!((call.findings, call.flags, call.scope), (1 | 1 << 127, INJECTED, 0xdead_beef));
}

#[test]
fn every_finding_that_there_is_room_for_is_read_back_whatever_else_is_noted() {
    let head = done(Head::in_flight(8, Layout::Long, 3, 0));
    let more = Head::done(9, Layout::More, 3).0;
    let written = |findings: &[u128]| {
        let mut slots =
            [[head, 1, end_word(2, 0), 3, 10, 11, 12, 13], [more, 0, 0, Extent::new(2, 0, 7).0, 4, 5, 6, 7]];
        let words = findings.iter().flat_map(|findings| found_words(*findings, Extent::new(0, REFUSED, 0)));
        words.for_each(|(word, value)| slots[1][word] |= value);
        let call = only_call(&slots, 8);
        assert_eq!((call.flags, call.scope, &call.arguments[..8]), (REFUSED, 7, &[10, 11, 12, 13, 4, 5, 6, 7][..]));
        call.findings
    };
    for rule in 0..u128::BITS {
        assert_eq!(written(&[1 << rule]), 1 << rule, "rule {rule}");
        // Before the call was forwarded, and after it.
        assert_eq!(written(&[1 << rule, 1 << 64 | 1]), 1 << rule | 1 << 64 | 1, "rule {rule}");
    }
}

/// A batch of three items and three attributes: 3 + 2 + 2 slots.
fn batch(state: impl Fn(Head) -> Head, follows: Follows) -> Vec<Words> {
    let head = |nth: u64, layout| Head::done(40 + nth, layout, 7).0;
    vec![
        [state(Head::in_flight(40, Layout::Long, 7, 0)).0, 1, end_word(2, 0), 3, 10, 11, 12, 13],
        [head(1, Layout::More), 0, 0, Extent::new(batch_slots(3, 3), 0, 0).0, 14, 15, 16, 17],
        [head(2, Layout::Batch), 600, 100, 300, follows.word(), 1, 18, 19],
        [head(3, Layout::Attributes), 0, 1, 2, 1, 3, 4, 0],
        [head(4, Layout::Attributes), 2, 5, 6, 0, 0, 0, 0],
        [head(5, Layout::Items), 1, 2, 100, 4, 5, 200, u64::from(-1i32 as u32) | 9 << 32],
        [head(6, Layout::Items), 7, 8, 300, 0, 0, 0, u64::from(i32::MAX as u32)],
    ]
}

const FOLLOWS: Follows = Follows { items: 3, attributes: 3, direction: Some((1, 4)), is_read: true };

#[test]
fn a_batch_gives_ten_arguments_and_what_its_arrays_held() {
    let call = only_call(&batch(Head::ended, FOLLOWS), 40);
    assert_eq!(call.arguments, [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
    let batch = call.batch.unwrap();
    assert_eq!((batch.total, batch.smallest, batch.largest, batch.too_large), (600, 100, 300, 1));
    assert_eq!(batch.direction, Some((1, 4)));
    let attribute = |first, dst, src| Attribute { first, dst, src };
    assert_eq!(batch.attributes, [attribute(0, 1, 2), attribute(1, 3, 4), attribute(2, 5, 6)]);
    let item = |dst, src, size, room| Item { dst, src, size, room };
    assert_eq!(batch.items, [item(1, 2, 100, -1), item(4, 5, 200, 9), item(7, 8, 300, i32::MAX)]);
}

#[test]
fn a_batch_that_was_not_read_or_has_not_ended_has_arguments_only() {
    let unread = only_call(&batch(Head::ended, Follows { is_read: false, ..FOLLOWS }), 40);
    let open = only_call(&batch(|head| head, FOLLOWS), 40);
    for call in [unread, open] {
        assert_eq!((call.batch, call.arguments[9]), (None, 19));
    }
}

#[test]
fn what_follows_a_batch_is_packed_into_a_word_and_back() {
    for direction in [None, Some((0, 0)), Some((255, 254))] {
        let follows = Follows { items: u32::MAX, attributes: 255, direction, is_read: direction.is_none() };
        assert_eq!(Follows::from_word(follows.word()), follows);
    }
}

#[test]
fn a_tracked_call_is_one_slot_with_four_values() {
    // By hand: done, layout 8, nested, function 700, number 5.
    let head = 2 | 8 << 2 | 1 << 6 | 700 << 12 | 5 << 24;
    let slot = |head| [head, 1000, end_word(20, -3), 30, 4, 5, 6, 7];
    let tracked = |end, is_nested| {
        let values = [4, 5, 6, 7];
        let call = TrackedCall { number: 5, function: 700, begin: 1000, end, site: 30, is_nested, values };
        Some((Entry::Tracked(call), 1))
    };
    let end = Some(End { duration: 20, code: -3 });
    assert_eq!(decode(&[slot(head), slot(head)], 3), tracked(end, true));
    let begun = Head::in_flight(5, Layout::Tracked, 700, 0);
    assert_eq!(decode(&[slot(begun.0)], 3), tracked(None, false), "without an end its word means nothing");
    assert_eq!(decode(&[slot(begun.passed().0)], 3), tracked(None, false));
    assert_eq!(decode(&[slot(begun.ended().0)], 3), tracked(end, false));
    assert!(!begun.ended().is_exact() && !begun.ended().is_outermost_call());
}

#[test]
fn a_slot_of_an_unknown_layout_is_none() {
    for layout in 9..16 {
        let head = Head(2 | layout << 2);
        assert_eq!(head.layout(), Layout::Unknown);
        assert!(decode(&[[head.0, 0, 0, 0, 0, 0, 0, 0]], 0).is_none() && !head.is_exact() && !head.is_outermost_call());
        assert_eq!(slots(&[head.0, 0, 0, 0, 0, 0, 0, 0], None), 1);
    }
}

#[test]
fn every_note_is_read_and_an_unknown_one_is_none() {
    let note = |kind: u16, words: [u64; 5]| {
        let mut slot = [0; WORDS];
        slot[0] = Head::done(3, Layout::Note, kind).0;
        slot[1..6].copy_from_slice(&words);
        decode(&[slot], 3).map(|(entry, _)| entry)
    };
    let name = |text: &[u8; 8]| u64::from_le_bytes(*text);
    let thread = note(Note::Thread as u16, [9, 4711, name(b"a-thread"), name(b"-of-15\0\0"), 0]);
    assert_eq!(thread, Some(Entry::Thread { ticks: 9, id: 4711, name: "a-thread-of-15".into() }));
    let lost = |classes| Some(Entry::Lost { from: 1, to: 2, calls: 3, notes: 4, classes });
    let classes = EffectClasses::MEMORY.union(EffectClasses::ORDER);
    assert_eq!(note(Note::Lost as u16, [1, 2, 3, 4, classes.0]), lost(classes));
    assert_eq!(note(Note::Lost as u16, [1, 2, 3, 4, 0]), lost(EffectClasses::COPY), "as version 1 wrote it");
    let end = End { duration: 1 << 40, code: -7 };
    assert_eq!(note(Note::End as u16, [5, 2, 1 << 40, -7i64 as u64, 0]), Some(Entry::End { of: 2, end }));
    let stack = Entry::Stack { of: 6, frames: [3, 1, 4, 0, 0, 0] };
    assert_eq!(note(Note::Stack as u16, [6, 3, 1, 4, 0]), Some(stack));
    assert_eq!(note(Note::Skip as u16, [7, 1 << 50, 0, 0, 0]), Some(Entry::Skip { ticks: 7, to: 1 << 50 }));
    for unknown in [11, 63, 64, 1023] {
        assert_eq!(note(unknown, [0; 5]), None, "{unknown}");
    }
}

#[test]
fn a_record_that_is_cut_or_begins_in_the_middle_is_none() {
    let whole = batch(Head::ended, FOLLOWS);
    assert!(decode(&[], 0).is_none());
    for cut in 1..whole.len() {
        assert!(decode(&whole[..cut], 40).is_none(), "{cut} slots");
        assert!(decode(&whole[cut..], 40).is_none(), "from {cut} on");
    }
}

#[test]
fn the_length_is_only_taken_from_the_slot_that_holds_it() {
    let long = [Head::in_flight(1, Layout::Long, 3, 0).0, 0, 0, 0, 0, 0, 0, 0];
    let other = [Head::done(2, Layout::Linear, 1).0, 0, 0, 5000, 0, 0, 0, 0];
    assert_eq!(slots(&long, Some(&other)), 2);
}

#[test]
fn a_finding_is_read_back_as_it_was_written() {
    for index in [None, Some(0), Some(u64::MAX)] {
        let values = [u64::MAX, 7];
        let finding =
            RecordedFinding { rule: 127, argument: 8, severity: 3, index, values, code: 107_000, fail_index: index };
        let mut words = [0; 8];
        words[0] = Head::done(9, Layout::Note, Note::Finding as u16).0;
        words[1..].copy_from_slice(&finding.words(6));
        assert_eq!(decode(&[words], 9), Some((Entry::Finding { of: 6, finding }, 1)));
    }
}
