//! When calls are judged and shown: once nothing more is to be learned of them, in the order of their ring.

use super::calls::TrackedCall;
use super::{Interpreter, RingState};
use crate::findings::judge::{JudgedCall, ReportedFinding};
use crate::interpreter::visitor::{AnnotationView, CallView, CallVisitor, FindingView};

impl Interpreter {
    /// Judges the last call of a ring: no more notes about it follow. Then delivers the calls of which all is known.
    pub(super) fn settle_state<W: CallVisitor + ?Sized>(&mut self, ring: u32, state: &mut RingState, watch: &mut W) {
        let RingState { calls, thread, .. } = state;
        if let Some(last) = calls.last_waiting().filter(|last| last.rules.is_none()) {
            let notes = last.take_notes();
            let Some(judged) = last.judged() else {
                last.rules = Some(0);
                return self.deliver_complete(ring, state, watch);
            };
            let (rules, reported) = self.judge.judge(&judged, &notes);
            self.report(ring, *thread, &judged, &reported, watch);
            last.rules = Some(rules);
        }
        self.deliver_complete(ring, state, watch);
    }

    fn deliver_complete<W: CallVisitor + ?Sized>(&mut self, ring: u32, state: &mut RingState, watch: &mut W) {
        while let Some(tracked) = state.calls.next_complete(self.limits.waiting) {
            self.deliver(ring, state.thread, tracked, watch);
            self.delivered(state);
        }
    }

    /// Takes note that a call was delivered.
    fn delivered(&mut self, state: &mut RingState) {
        let dropped = state.calls.delivered(self.limits.left).filter(TrackedCall::is_in_flight);
        if let Some(dropped) = dropped {
            self.totals.in_flight(dropped.function, &dropped.call, -1);
        }
    }

    fn deliver<W: CallVisitor + ?Sized>(&self, ring: u32, thread: u32, tracked: &mut TrackedCall, watch: &mut W) {
        if let Some(view) = self.view(ring, thread, tracked) {
            if tracked.awaits_end() && view.call.end.is_some() {
                // The record of its duration is missing.
                watch.returned(&view);
            }
            watch.call(&view);
            tracked.is_returned = tracked.call.end.is_some();
        }
        let whose = self.whose(ring, thread);
        for (ticks, what) in std::mem::take(&mut tracked.annotations) {
            watch.remark(&AnnotationView { whose, ticks, what: &what });
        }
    }

    pub(super) fn finish_state<W: CallVisitor + ?Sized>(&mut self, ring: u32, state: &mut RingState, watch: &mut W) {
        self.settle_state(ring, state, watch);
        while let Some(tracked) = state.calls.next_waiting() {
            self.deliver(ring, state.thread, tracked, watch);
            self.delivered(state);
        }
    }

    pub(super) fn view<'a>(&'a self, ring: u32, thread: u32, tracked: &'a TrackedCall) -> Option<CallView<'a>> {
        let rules = self.judge.in_force(tracked.rules.unwrap_or(0));
        let (whose, call) = (self.whose(ring, thread), &tracked.call);
        Some(CallView { whose, function: tracked.function?, call, rules, is_left: tracked.is_left() })
    }

    pub(super) fn report<W: CallVisitor + ?Sized>(
        &self,
        ring: u32,
        thread: u32,
        of: &JudgedCall<'_>,
        reported: &[ReportedFinding],
        watch: &mut W,
    ) {
        for finding in reported {
            let whose = self.whose(ring, thread);
            watch.finding(&FindingView { whose, function: of.function, call: of.call, finding });
        }
    }

    /// Judges the last call of a ring, and delivers the calls that have ended.
    pub(crate) fn settle<W: CallVisitor + ?Sized>(&mut self, ring: u32, watch: &mut W) {
        self.of_ring(ring, |it, state| it.settle_state(ring, state, watch));
    }

    /// Judges and delivers all calls of a ring: nothing follows.
    pub(crate) fn finish<W: CallVisitor + ?Sized>(&mut self, ring: u32, watch: &mut W) {
        self.of_ring(ring, |it, state| it.finish_state(ring, state, watch));
    }
}
