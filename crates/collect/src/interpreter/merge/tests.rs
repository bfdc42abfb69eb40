//! The order of events, step by step.

use super::*;
use crate::interpreter::Interpreter;
use crate::interpreter::tests::{GOOD, Is, call, origin};
use aclshim_trace::record::slot::Words;

/// Notes down the events: what happened, in which ring, to which call.
#[derive(Default)]
struct Events(Vec<(&'static str, u32, u64)>);

impl CallVisitor for Events {
    fn call(&mut self, _: &CallView<'_>) {}

    fn begun(&mut self, view: &CallView<'_>) {
        self.0.push(("begin", view.whose.ring, view.call.number));
    }

    fn returned(&mut self, view: &CallView<'_>) {
        self.0.push(("end", view.whose.ring, view.call.number));
    }
}

/// A drain whose rings are read by hand. Call number N begins at 1000 + N.
struct Drained {
    interpreter: Interpreter,
    merger: Merger,
}

impl Drained {
    fn new(rings: u32) -> Self {
        let mut merger = Merger::live();
        (0..rings).for_each(|ring| merger.add_ring((0, ring)));
        Self { interpreter: Interpreter::live(origin()), merger }
    }

    fn read(&mut self, ring: u32, first: u64, slots: &[Words]) {
        self.interpreter.add(ring, first, slots, &mut self.merger);
    }

    /// Both rings were seen empty at that time.
    fn seen_empty(&mut self, ticks: u64) -> Vec<(&'static str, u32, u64)> {
        (0..2).for_each(|ring| self.merger.read_to((0, ring), ticks));
        self.released()
    }

    fn released(&mut self) -> Vec<(&'static str, u32, u64)> {
        let mut events = Events::default();
        self.merger.release(|(_, ring), thread| self.interpreter.whose(ring, thread), &mut events);
        events.0
    }
}

#[test]
fn events_at_one_time_come_by_ring_and_number() {
    let mut drained = Drained::new(2);
    let at_once = Is::Ended(0, 0);
    drained.read(1, 1, &[call(1, at_once), call(2, at_once)]);
    drained.read(0, 1, &[call(1, GOOD), call(2, Is::Ended(4, 7))]);
    let expected = [("begin", 0, 1), ("begin", 1, 1), ("end", 1, 1), ("begin", 0, 2), ("begin", 1, 2), ("end", 1, 2)];
    assert_eq!(drained.seen_empty(1005), expected);
    assert_eq!(drained.seen_empty(2000), [("end", 0, 1), ("end", 0, 2)]);
    assert_eq!((drained.merger.late, drained.merger.unordered), (0, 0));
}

#[test]
fn what_comes_too_late_is_shown_at_once_and_counted() {
    let mut drained = Drained::new(2);
    drained.read(0, 100, &[call(100, GOOD)]);
    assert_eq!(drained.seen_empty(2000).len(), 2);
    drained.read(1, 50, &[call(50, GOOD), call(3000, GOOD)]);
    assert_eq!(drained.released(), [("begin", 1, 50), ("end", 1, 50)], "and what is not late is held back");
    assert_eq!((drained.merger.late, drained.merger.unordered), (2, 0));
}

#[test]
fn no_more_is_held_back_than_there_is_memory_for() {
    let mut drained = Drained::new(2);
    let calls = MOST_LIVE as u64;
    for number in 1..=calls {
        drained.read(0, number, &[call(number, GOOD)]);
    }
    let released = drained.released();
    assert_eq!(released[..2], [("begin", 0, 1), ("begin", 0, 2)], "the oldest");
    assert_eq!(drained.merger.held, MOST_LIVE);
    // What was called, and its begin and its end.
    assert_eq!((drained.merger.late, drained.merger.unordered), (0, 3 * calls - MOST_LIVE as u64));
}

#[test]
fn the_end_of_a_ring_holds_nothing_back() {
    let mut drained = Drained::new(2);
    drained.read(0, 1, &[call(1, GOOD)]);
    drained.merger.read_to((0, 0), 5000);
    assert_eq!((drained.released().len(), drained.merger.slowest()), (0, Some((0, 1))));
    drained.merger.end((0, 1));
    assert_eq!((drained.released().len(), drained.merger.slowest()), (2, Some((0, 0))));
    drained.merger.end((0, 0));
    assert_eq!(drained.merger.slowest(), None);
}
