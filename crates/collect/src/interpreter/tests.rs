//! The interpreter, record by record.

use super::*;
use crate::interpreter::visitor::{CallView, CommonCallView, FindingView, NoVisitor};
use aclshim_facts::FUNCTIONS;
use aclshim_facts::Function;
use aclshim_trace::record::slot::{Note, end_word};
use aclshim_trace::ring::layout::Header;
use aclshim_trace::system::clock::Calibration;

const RING: u32 = 7;

pub(super) fn origin() -> Origin {
    // SAFETY: zero is a valid header.
    let header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
    let functions = FUNCTIONS.iter().map(|row| row.name.to_owned()).collect();
    Origin { functions, ..Origin::new(&header) }
}

/// What happened to a call of one slot.
#[derive(Clone, Copy)]
pub(super) enum Is {
    Ended(u32, i32),
    Open,
}

/// A copy of 128 bytes to an address that is aligned, or is not.
fn copy(number: u64, is_nested: bool, is: Is, dst: u64) -> Words {
    let head = Head::in_flight(number, Layout::Linear, Function::aclrtMemcpyAsync as u16, 1);
    let head = if is_nested { head.nested() } else { head };
    let (head, end) = match is {
        Is::Ended(duration, code) => (head.ended(), end_word(duration, code)),
        Is::Open => (head.passed(), 0),
    };
    [head.0, 1000 + number, end, 0x4000, dst, 0x10000, 128, 0]
}

pub(super) fn call(number: u64, is: Is) -> Words {
    copy(number, false, is, 0x20000)
}

fn nested(number: u64, is: Is) -> Words {
    copy(number, true, is, 0x20000)
}

fn note(number: u64, note: Note, words: &[u64]) -> Words {
    let mut slot = [Head::done(number, Layout::Note, note as u16).0, 0, 0, 0, 0, 0, 0, 0];
    slot[1..=words.len()].copy_from_slice(words);
    slot
}

fn end(number: u64, of: u64, duration: u64, code: i32) -> Words {
    note(number, Note::End, &[0, of, duration, code as u32 as u64])
}

pub(super) const GOOD: Is = Is::Ended(5, 0);

/// Notes down every event.
#[derive(Default)]
struct Events(Vec<String>);

impl CallVisitor for Events {
    fn call(&mut self, call: &CallView<'_>) {
        let state = match (call.code(), call.is_left) {
            (Some(code), _) => format!("= {code}"),
            (None, true) => "left".into(),
            (None, false) => "open".into(),
        };
        self.0.push(format!("call {} {state}", call.call.number));
    }

    fn plain(&mut self, plain: &CommonCallView<'_>) {
        self.0.push(format!("common {}", plain.number));
    }

    fn begun(&mut self, call: &CallView<'_>) {
        self.0.push(format!("begun {}", call.call.number));
    }

    fn returned(&mut self, call: &CallView<'_>) {
        let end = call.call.end.expect("an end");
        self.0.push(format!("returned {} {} {}", call.call.number, end.code, end.duration));
    }

    fn finding(&mut self, view: &FindingView<'_>) {
        self.0.push(format!("finding {} {}", view.call.number, view.finding.rule.id));
    }

    fn lost(&mut self, lost: &Lost<'_>) {
        self.0.push(format!("lost {}", lost.calls));
    }

    fn annotated(&mut self, _: &AnnotationView<'_>) {
        self.0.push("annotated".into());
    }

    fn remark(&mut self, _: &AnnotationView<'_>) {
        self.0.push("annotation".into());
    }
}

fn interpret(interpreter: &mut Interpreter, slots: &[Words]) -> Vec<String> {
    let mut events = Events::default();
    // As much at a time as a drain writes.
    for block in slots.chunks(1024) {
        interpreter.add(RING, Head(block[0][0]).number(0), block, &mut events);
    }
    events.0
}

fn finish(interpreter: &mut Interpreter) -> Vec<String> {
    let mut events = Events::default();
    interpreter.finish(RING, &mut events);
    events.0
}

fn new() -> Interpreter {
    Interpreter::new(origin(), 0)
}

fn sums(slots: &[Words]) -> (u64, u64, u64, u64, u64) {
    let mut interpreter = new();
    interpret(&mut interpreter, slots);
    let total = interpreter.totals.total();
    (total.calls, total.nested, total.in_flight, total.bytes, total.errors)
}

#[test]
fn a_call_in_flight_is_left_once_another_outermost_one_follows() {
    assert_eq!(sums(&[call(1, Is::Open)]), (1, 0, 1, 0, 0));
    assert_eq!(sums(&[call(1, Is::Open), nested(2, GOOD)]), (1, 1, 1, 0, 0));
    assert_eq!(sums(&[call(1, Is::Open), call(2, GOOD)]), (2, 0, 0, 128, 0));
    let mut interpreter = new();
    let begun = interpret(&mut interpreter, &[call(1, Is::Open), nested(2, Is::Open), call(3, GOOD)]);
    assert_eq!(begun, ["begun 1", "begun 2", "begun 3", "returned 3 0 5"]);
    assert_eq!(finish(&mut interpreter), ["call 1 left", "call 2 left", "call 3 = 0"]);
    assert_eq!(finish(&mut interpreter), [""; 0], "each is delivered once");
}

#[test]
fn an_end_that_comes_apart_completes_its_call() {
    assert_eq!(sums(&[call(1, Is::Open), end(2, 1, 9, 0)]), (1, 0, 0, 128, 0));
    assert_eq!(sums(&[call(1, Is::Open), call(2, GOOD), end(3, 1, 9, 7), end(4, 55, 9, 0)]), (2, 0, 0, 128, 1));
    let mut interpreter = new();
    let events = interpret(&mut interpreter, &[call(1, Is::Open), nested(2, GOOD), end(3, 1, 9, 7), call(4, GOOD)]);
    let expected = ["begun 1", "begun 2", "returned 2 0 5", "returned 1 7 9", "call 1 = 7", "call 2 = 0", "common 4"];
    assert_eq!(events, expected);
}

#[test]
fn an_end_is_recognised_after_its_call_was_delivered_as_left() {
    let mut interpreter = new();
    interpret(&mut interpreter, &[call(1, Is::Open), call(2, GOOD)]);
    assert_eq!(finish(&mut interpreter), ["call 1 left", "call 2 = 0"]);
    let rest: Vec<_> = (3..90).map(|number| call(number, Is::Ended(5, 9))).collect();
    interpret(&mut interpreter, &rest);
    assert_eq!(interpret(&mut interpreter, &[end(90, 1, 4, 3)]), ["returned 1 3 4"]);
    assert_eq!(interpret(&mut interpreter, &[end(91, 1, 4, 3)]), [""; 0], "it has ended once");
    assert_eq!(interpreter.totals.total().errors, 87 + 1);
}

#[test]
fn a_duration_that_does_not_fit_is_waited_for() {
    let mut interpreter = new();
    let long = call(1, Is::Ended(u32::MAX, 7));
    assert_eq!(interpret(&mut interpreter, &[long]), ["begun 1"]);
    assert_eq!(interpreter.totals.total().in_flight, 1);
    assert_eq!(interpret(&mut interpreter, &[end(2, 1, 1 << 40, 7)]), [format!("returned 1 7 {}", 1u64 << 40)]);
    assert_eq!(finish(&mut interpreter), ["call 1 = 7"]);
    // The record of it was lost.
    interpret(&mut interpreter, &[call(3, Is::Ended(u32::MAX, 0))]);
    assert_eq!(finish(&mut interpreter), [format!("returned 3 0 {}", u32::MAX), "call 3 = 0".into()]);
}

#[test]
fn a_call_whose_duration_comes_too_late_is_shown_once() {
    let mut interpreter = Interpreter::live(origin());
    let mut slots = vec![call(1, Is::Ended(u32::MAX, 0))];
    slots.extend((2..300).map(|number| nested(number, GOOD)));
    slots.push(end(300, 1, 1 << 33, 0));
    let events = interpret(&mut interpreter, &slots);
    assert_eq!(events.iter().filter(|event| event.starts_with("returned 1 ")).count(), 1, "{events:?}");
    assert_eq!((interpreter.totals.total().in_flight, interpreter.totals.total().bytes), (0, 128));
}

#[test]
fn a_call_under_way_is_remembered_however_many_inside_it_were_left() {
    let mut interpreter = Interpreter::live(origin());
    let mut slots = vec![call(1, Is::Open)];
    slots.extend((2..300).map(|number| nested(number, Is::Open)));
    slots.push(end(300, 1, 9, 0));
    let events = interpret(&mut interpreter, &slots);
    assert_eq!(events.last().map(String::as_str), Some("returned 1 0 9"));
    let mut rest = finish(&mut interpreter);
    rest.extend(interpret(&mut interpreter, &[call(301, GOOD)]));
    assert_eq!(interpreter.totals.total().in_flight, 0, "{rest:?}");
}

#[test]
fn what_a_thread_had_under_way_is_left_when_another_has_the_ring() {
    let mut interpreter = new();
    interpret(&mut interpreter, &[note(1, Note::Thread, &[0, 11]), call(2, Is::Open)]);
    assert_eq!((interpreter.thread(RING), interpreter.totals.total().in_flight), (11, 1));
    let events = interpret(&mut interpreter, &[note(3, Note::Thread, &[0, 12])]);
    assert_eq!(events, ["call 2 left"]);
    assert_eq!((interpreter.thread(RING), interpreter.totals.total().in_flight), (12, 0));
    // The record that says so may have been overwritten.
    let mut events = Events::default();
    let block = |first, thread| BlockHead { ring: RING, first, thread, ..BlockHead::default() };
    interpreter.block(&block(4, 0), &mut events);
    assert_eq!(interpreter.thread(RING), 12, "nothing is missing");
    interpreter.block(&block(40, 0), &mut events);
    assert_eq!(interpreter.thread(RING), 0);
    interpreter.block(&block(40, 13), &mut events);
    assert_eq!(interpreter.thread(RING), 13);
}

#[test]
fn a_call_is_judged_when_no_note_about_it_can_follow() {
    let mut interpreter = new();
    // Its addresses are not aligned.
    let misaligned = copy(1, false, GOOD, 0x20001);
    assert_eq!(interpret(&mut interpreter, &[misaligned]), ["begun 1", "returned 1 0 5"]);
    assert_eq!(interpret(&mut interpreter, &[call(2, GOOD)]), ["finding 1 ALIGN-64", "call 1 = 0", "common 2"]);
    assert_eq!(interpret(&mut interpreter, &[copy(3, false, GOOD, 0x20001)]), ["common 3"], "reported once a site");
    assert_eq!(interpreter.judge.totals()["ALIGN-64"].found, 2);
}

#[test]
fn what_a_program_says_of_itself_is_delivered_behind_the_call_before_it() {
    let mark = |number| note(number, Note::Mark, &[5, 0, 0]);
    let mut interpreter = new();
    let events = interpret(&mut interpreter, &[mark(1), copy(2, false, Is::Ended(5, 1), 0x20001), mark(3)]);
    assert_eq!(events, ["annotated", "annotation", "begun 2", "returned 2 1 5", "annotated"]);
    assert_eq!(finish(&mut interpreter), ["finding 2 ALIGN-64", "call 2 = 1", "annotation"]);
}

#[test]
fn a_record_counts_once_however_often_it_is_read() {
    let mut interpreter = new();
    let slots = [call(1, GOOD), call(2, Is::Ended(5, 1)), call(3, GOOD), note(4, Note::Lost, &[0, 0, 9, 0])];
    let first = interpret(&mut interpreter, &slots);
    let failed = ["begun 2", "returned 2 1 5", "call 2 = 1"];
    assert_eq!(first, [&["common 1"], &failed[..], &["common 3", "lost 9"]].concat());
    assert_eq!(interpret(&mut interpreter, &slots), [""; 0]);
    assert_eq!(interpreter.totals.total().calls, 3);
}

#[test]
fn calls_that_never_end_take_no_more_than_their_share_of_memory() {
    let slots: Vec<_> = (1..=100_000).map(|number| call(number, Is::Open)).collect();
    for mut interpreter in [new(), Interpreter::live(origin())] {
        let events = interpret(&mut interpreter, &slots);
        assert!(events.iter().filter(|event| event.ends_with("left")).count() >= 99_900);
        assert!(interpreter.rings[&RING].calls.len() < 1000);
        assert_eq!(interpreter.totals.total().in_flight, 1);
    }
    let slots: Vec<_> = (2..=100_000).map(|number| nested(number, GOOD)).collect();
    for (mut interpreter, most) in [(new(), OFFLINE.waiting), (Interpreter::live(origin()), LIVE.waiting)] {
        interpret(&mut interpreter, &[call(1, Is::Open)]);
        interpret(&mut interpreter, &slots);
        assert!(interpreter.rings[&RING].calls.len() <= most + 8);
        let rest = interpret(&mut interpreter, &[end(100_001, 1, 5, 0)]);
        assert_eq!(rest, ["returned 1 0 5"], "it is not forgotten");
    }
}

/// Adds up and shows nothing, but is shown every call.
struct Indifferent;

impl CallVisitor for Indifferent {
    fn call(&mut self, _: &CallView<'_>) {}
}

#[test]
fn calls_add_up_to_the_same_whether_a_visitor_wants_to_see_them_or_not() {
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let functions = [Function::aclrtMemcpyAsync, Function::aclrtMemcpy, Function::aclrtMemset];
    let mut slots = Vec::new();
    for number in 0..20_000 {
        // Mostly of one kind, as programs do; now and then everything that can be different is.
        let function = functions[if random(10) == 0 { random(3) as usize } else { 0 }];
        let layout = if function == Function::aclrtMemset { Layout::Fill } else { Layout::Linear };
        let mut slot = copy(number, random(50) == 0, Is::Ended(random(1 << 20) as u32, 0), 0x20000);
        let kind = if random(20) == 0 { random(8) as u32 } else { 1 };
        let is_nested = Head(slot[0]).is_nested();
        let head = Head::in_flight(number, layout, function as u16, if layout == Layout::Fill { 0 } else { kind });
        slot[0] = if is_nested { head.nested().ended().0 } else { head.ended().0 };
        slot[6] = 64 * random(40);
        match random(60) {
            0 => slot[2] = end_word(9, 107_000),
            1 => slot[2] = end_word(u32::MAX, 0),
            2 => slot[4] += 4,
            3 => slot[4] = 0,
            4 => slot[5] = u64::MAX - 63,
            5 => slot[4] = slot[5] + 64,
            6 => slot = end(number, number - 1, 77, 0),
            _ => {}
        }
        slots.push(slot);
    }
    let calibration = Some(Calibration { ticks: 0, realtime_ns: 0, ns_a_tick: 0.4 });
    for by_kind in [false, true] {
        let mut made = [(); 2].map(|()| {
            let mut interpreter = Interpreter::live(Origin { calibration, ..origin() });
            if by_kind {
                interpreter.totals = Totals::of_kinds();
            }
            interpreter
        });
        for (block, first) in slots.chunks(1000).zip((0..).step_by(1000)) {
            made[0].add(RING, first, block, &mut Indifferent);
            made[1].add(RING, first, block, &mut NoVisitor);
        }
        let [shown, unseen] = made.map(|interpreter| {
            let total = interpreter.totals.total();
            assert!(
                total.calls > 15_000 && total.errors > 100 && total.nested > 100 && total.durations.count() > 15_000
            );
            (format!("{:?}", interpreter.totals), format!("{:?}", interpreter.judge.totals()))
        });
        assert!(shown.1.contains("ALIGN-64"), "{}", shown.1);
        assert_eq!(shown, unseen);
    }
}
