use super::*;

const NO_REASON: SlowPathReasons = SlowPathReasons::room_differs(0, 0);

const LAYOUTS: [Layout; 9] = [
    Layout::Linear,
    Layout::Fill,
    Layout::Long,
    Layout::More,
    Layout::Batch,
    Layout::Attributes,
    Layout::Items,
    Layout::Note,
    Layout::Tracked,
];

#[test]
fn every_field_of_a_head_is_read_back_whatever_the_others_are() {
    for layout in LAYOUTS {
        for (number, function, kind) in [(0, 0, 0), (1, FUNCTION_MAX, 15), ((1 << 40) - 1, 21, 6)] {
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
fn only_a_done_copy_or_fill_that_is_not_nested_is_exact() {
    for layout in LAYOUTS {
        let head = Head::in_flight(u64::MAX, layout, FUNCTION_MAX, KIND_MAX);
        let is_short = matches!(layout, Layout::Linear | Layout::Fill);
        assert_eq!(head.ended().is_exact(), is_short, "{layout:?}");
        assert!(!head.is_exact() && !head.passed().is_exact() && !head.nested().ended().is_exact(), "{layout:?}");
        assert_eq!(head.is_outermost_call(), is_short || layout == Layout::Long, "{layout:?}");
    }
}

#[test]
fn a_claim_behind_a_record_is_a_reason_whatever_its_head_holds() {
    for number in [0, 9, (1 << 40) - 1, 1 << 40, 1 << 50] {
        let begun = Head::in_flight(number, Layout::Tracked, FUNCTION_MAX, KIND_MAX).nested();
        assert!(SlowPathReasons::claimed_behind(begun, number + 1).is_empty(), "{number}");
        assert!(!SlowPathReasons::claimed_behind(begun, number + 2).is_empty(), "{number}");
    }
}

#[test]
fn a_number_is_completed_to_the_one_nearest() {
    const ROUND: u64 = 1 << 40;
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
