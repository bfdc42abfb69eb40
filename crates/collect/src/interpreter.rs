//! The interpreter: makes typed events of the records of one process.
//!
//! Records come ring by ring in the order of their numbers, from a drain that reads the rings of a living process as well
//! as from a reader of traces. Calls that have not ended are remembered in [`calls`], and nowhere else. Everything that is
//! said of a process, live or afterwards, is said by a [visitor](crate::interpreter::visitor::CallVisitor) of these events.

use crate::findings::judge::Judge;
use crate::findings::quick_check::{self, LAST, Run};
use crate::interpreter::common_calls::{CommonCalls, numbered};
use crate::interpreter::labels::Labels;
use crate::interpreter::totals::Totals;
use crate::interpreter::visitor::{AnnotationView, CallVisitor, Lost, ProcessView};
use aclshim_trace::origin::Origin;
use aclshim_trace::record::slot::{Head, Layout, Words};
use aclshim_trace::record::{Call, End, Entry, RecordedFinding, decode};
use aclshim_trace::segment::format::BlockHead;
use std::collections::{BTreeMap, VecDeque};

pub(crate) mod calls;
mod common_calls;
mod delivery;
pub mod labels;
pub mod merge;
pub(crate) mod side;
pub mod totals;
pub mod visitor;

use calls::{Limits, TrackedCall, TrackedCalls};

/// What a reader of traces remembers.
const OFFLINE: Limits = Limits { waiting: 65_536, left: 512, annotations: 1024 };
/// What a drain remembers, which may run inside the host and has little memory there. Its visitor takes annotations as they come.
const LIVE: Limits = Limits { waiting: 64, left: 16, annotations: 0 };

/// The state of one process: what its records have said so far.
pub struct Interpreter {
    /// Who it is.
    pub origin: Origin,
    /// What its calls add up to.
    pub totals: Totals,
    /// What it calls its scopes, streams and buffers.
    pub labels: Labels,
    /// The rulebook at work on its calls.
    pub judge: Judge,
    /// Its number among those that are read.
    number: usize,
    /// How often it was another that the header described.
    renewals: u64,
    rings: BTreeMap<u32, RingState>,
    limits: Limits,
}

/// What is known of one ring.
#[derive(Default)]
struct RingState {
    /// The number behind the last slot that was read.
    end: u64,
    /// The thread that writes to it; 0 if that is not known.
    thread: u32,
    calls: TrackedCalls,
    /// The last [common](CommonCalls) calls that failed, with their numbers: a note may be about one of them.
    failed: VecDeque<(u64, Words)>,
}

impl Interpreter {
    /// For a reader of traces; `number` is that of the process among those that are read.
    pub(crate) fn new(origin: Origin, number: usize) -> Self {
        Self::with(origin, number, Labels::default(), OFFLINE)
    }

    /// For a drain: it takes little memory, however long the process runs.
    pub(crate) fn live(origin: Origin) -> Self {
        Self::with(origin, 0, Labels::of_few(), LIVE)
    }

    fn with(origin: Origin, number: usize, labels: Labels, limits: Limits) -> Self {
        let judge = Judge::new(&origin);
        Self { origin, totals: Totals::default(), labels, judge, number, renewals: 0, rings: BTreeMap::new(), limits }
    }

    /// Takes over what the header says by now.
    pub(crate) fn renew(&mut self, origin: Origin) {
        self.judge.learn(&origin);
        self.origin = origin;
        self.renewals += 1;
    }

    /// The numbers of the rings that were read.
    pub(crate) fn rings(&self) -> Vec<u32> {
        self.rings.keys().copied().collect()
    }

    /// The thread that wrote the last records of a ring; 0 if that is not known.
    pub(crate) fn thread(&self, ring: u32) -> u32 {
        self.rings.get(&ring).map_or(0, |state| state.thread)
    }

    pub(crate) fn whose(&self, ring: u32, thread: u32) -> ProcessView<'_> {
        let Self { origin, number, labels, judge, .. } = self;
        let (modules, platform) = (judge.known_modules(), judge.platform());
        ProcessView { origin, process: *number, ring, thread, modules, labels, platform }
    }

    /// Says which thread the records of a block are of, if that is known.
    pub(crate) fn block<W: CallVisitor + ?Sized>(&mut self, head: &BlockHead, watch: &mut W) {
        let state = self.rings.entry(head.ring).or_default();
        // Behind a gap the thread may be another one, and the record that says so may be missing.
        let is_known = head.thread != 0 || head.first > state.end;
        if head.first >= state.end && is_known && head.thread != state.thread {
            self.of_ring(head.ring, |it, state| {
                if head.thread != 0 && state.thread != 0 {
                    Self::leave(&mut it.totals, state);
                }
                it.finish_state(head.ring, state, watch);
                state.thread = head.thread;
            });
        }
    }

    /// Takes a block of slots, as far as they are new; returns how many were.
    pub(crate) fn add_block<W: CallVisitor + ?Sized>(
        &mut self,
        head: &BlockHead,
        slots: &[Words],
        watch: &mut W,
    ) -> u64 {
        self.block(head, watch);
        self.add(head.ring, head.first, slots, watch)
    }

    /// Takes consecutive slots of a ring, as far as they are new; returns how many were.
    pub(crate) fn add<W: CallVisitor + ?Sized>(
        &mut self,
        ring: u32,
        first: u64,
        slots: &[Words],
        watch: &mut W,
    ) -> u64 {
        self.of_ring(ring, |it, state| it.add_to(ring, state, first, slots, watch))
    }

    fn add_to<W: CallVisitor + ?Sized>(
        &mut self,
        ring: u32,
        state: &mut RingState,
        first: u64,
        slots: &[Words],
        watch: &mut W,
    ) -> u64 {
        let mut new = 0;
        let mut rest = slots;
        while let Some((slot, others)) = rest.split_first() {
            let number = first.saturating_add((slots.len() - rest.len()) as u64);
            if number < state.end {
                // A record that was read before; of one that begins there, the rest comes with it.
                let count = decode(rest, number).map_or(1, |(_, count)| count);
                rest = &rest[count..];
                continue;
            }
            if state.calls.is_waiting() && Head(slot[0]).layout() != Layout::Note {
                self.settle_state(ring, state, watch);
            }
            if !state.calls.is_waiting() {
                let simplest = self.add_simplest(ring, state.thread, rest, watch);
                if simplest > 0 {
                    Self::leave(&mut self.totals, state);
                    state.end = number.saturating_add(simplest as u64);
                    new += simplest as u64;
                    rest = &rest[simplest..];
                    continue;
                }
                let run = self.judge.quick_check().run(rest, |_| ());
                if run.count > 0 {
                    self.pass(state, number, rest, &run);
                    self.show(ring, state.thread, number, &rest[..run.count], watch);
                    new += run.count as u64;
                    rest = &rest[run.count..];
                    continue;
                }
            }
            let Some((entry, count)) = decode(rest, number) else {
                rest = others;
                continue;
            };
            rest = &rest[count..];
            state.end = number.saturating_add(count as u64);
            new += count as u64;
            self.entry(ring, state, entry, watch);
        }
        new
    }

    /// Leaves the [common](CommonCalls) calls that a block begins with to a [side](side::Side), unless calls wait before them.
    /// Returns the thread that they are of.
    pub(crate) fn cede<W: CallVisitor + ?Sized>(
        &mut self,
        head: &BlockHead,
        slots: &[Words],
        run: &Run,
        watch: &mut W,
    ) -> Option<u32> {
        self.block(head, watch);
        self.of_ring(head.ring, |it, state| {
            if run.count == 0 || head.first < state.end {
                return None;
            }
            it.settle_state(head.ring, state, watch);
            if state.calls.is_waiting() {
                return None;
            }
            it.pass(state, head.first, slots, run);
            Some(state.thread)
        })
    }

    fn of_ring<T>(&mut self, ring: u32, work: impl FnOnce(&mut Self, &mut RingState) -> T) -> T {
        let mut state = std::mem::take(self.rings.entry(ring).or_default());
        let result = work(self, &mut state);
        self.rings.insert(ring, state);
        result
    }

    /// Takes note of common calls, which are added up elsewhere.
    fn pass(&mut self, state: &mut RingState, first: u64, slots: &[Words], run: &Run) {
        Self::leave(&mut self.totals, state);
        state.end = first.saturating_add(run.count as u64);
        self.judge.count_misaligned(run.misaligned);
        for at in run.last_failed() {
            state.failed.truncate(LAST - 1);
            state.failed.push_front((first.saturating_add(at as u64), slots[at]));
        }
    }

    /// Adds up the simplest calls that slots begin with, where the visitor does not want to see them; returns how many.
    fn add_simplest<W: CallVisitor + ?Sized>(&mut self, ring: u32, thread: u32, slots: &[Words], watch: &W) -> usize {
        let (calls, totals) = self.common_calls(ring, thread);
        if watch.wants_plain(&calls.whose) { 0 } else { calls.add_simplest(slots, totals) }
    }

    /// Adds up and shows common calls.
    fn show<W: CallVisitor + ?Sized>(&mut self, ring: u32, thread: u32, first: u64, slots: &[Words], watch: &mut W) {
        let (calls, totals) = self.common_calls(ring, thread);
        calls.show(first, slots, totals, watch);
    }

    /// What is known of common calls, and where they are added up.
    fn common_calls(&mut self, ring: u32, thread: u32) -> (CommonCalls<'_>, &mut Totals) {
        let Self { judge, totals, origin, number, labels, .. } = self;
        let (modules, platform) = (judge.known_modules(), judge.platform());
        let whose = ProcessView { origin, process: *number, ring, thread, modules, labels, platform };
        (CommonCalls { quick_check: judge.quick_check(), whose }, totals)
    }

    fn entry<W: CallVisitor + ?Sized>(&mut self, ring: u32, state: &mut RingState, entry: Entry, watch: &mut W) {
        while let Some((near, slot)) = state.failed.pop_back() {
            if let Some(function) = quick_check::function(self.judge.quick_check().functions(), &slot) {
                state.calls.push_delivered(function, numbered(&slot, near));
            }
        }
        match entry {
            Entry::Thread { id, .. } => {
                // The thread that had the ring before is gone, and with it the calls that it had under way.
                Self::leave(&mut self.totals, state);
                self.finish_state(ring, state, watch);
                state.thread = id;
            }
            Entry::Call(call) => self.begin(ring, state, call, watch),
            Entry::End { of, end } => self.end(ring, state, of, end, watch),
            Entry::Finding { of, finding } => self.note(ring, state, of, finding, watch),
            Entry::Stack { of, frames } => {
                if let Some(tracked) = state.calls.find(of) {
                    tracked.frames = frames;
                }
            }
            Entry::Annotation { ticks, annotation: what } => {
                self.labels.learn(ticks, &what);
                let whose = self.whose(ring, state.thread);
                watch.annotated(&AnnotationView { whose, ticks, what: &what });
                if let Some(what) = state.calls.annotate(ticks, what, self.limits.annotations) {
                    watch.remark(&AnnotationView { whose, ticks, what: &what });
                }
            }
            Entry::Lost { from, to, calls, notes, .. } => {
                let clock = self.origin.calibration.as_ref();
                let [from_ns, to_ns] = [from, to].map(|ticks| clock.map(|clock| clock.at_ns(ticks)));
                watch.lost(&Lost { whose: self.whose(ring, state.thread), calls, notes, from_ns, to_ns });
            }
            // No copies and fills: they are no calls here.
            Entry::Tracked(_) | Entry::Skip { .. } => {}
        }
    }

    fn begin<W: CallVisitor + ?Sized>(&mut self, ring: u32, state: &mut RingState, call: Call, watch: &mut W) {
        let function = self.judge.quick_check().functions().get(usize::from(call.function)).copied().flatten();
        self.totals.begun(function, &call);
        if !call.is_nested {
            Self::leave(&mut self.totals, state);
        }
        let tracked = TrackedCall::new(function, call);
        if tracked.awaits_end() {
            self.totals.in_flight(function, &tracked.call, 1);
        } else {
            self.totals.ended(function, &tracked.call, self.origin.calibration.as_ref());
        }
        if let Some(view) = self.view(ring, state.thread, &tracked) {
            watch.begun(&view);
            if !tracked.awaits_end() {
                watch.returned(&view);
            }
        }
        state.calls.push(tracked);
    }

    fn end<W: CallVisitor + ?Sized>(&mut self, ring: u32, state: &mut RingState, of: u64, end: End, watch: &mut W) {
        let RingState { calls, thread, .. } = state;
        calls.end(of, end, |tracked, was_in_flight| {
            let TrackedCall { function, call, .. } = tracked;
            self.totals.in_flight(*function, call, -i64::from(was_in_flight));
            self.totals.ended(*function, call, self.origin.calibration.as_ref());
            if let Some(view) = self.view(ring, *thread, tracked).filter(|_| !tracked.is_returned) {
                watch.returned(&view);
            }
        });
    }

    fn note<W: CallVisitor + ?Sized>(
        &mut self,
        ring: u32,
        state: &mut RingState,
        of: u64,
        finding: RecordedFinding,
        watch: &mut W,
    ) {
        let Some(tracked) = state.calls.find(of) else { return };
        if tracked.note(finding)
            && let Some(judged) = tracked.judged()
        {
            let reported = self.judge.noted(&judged, &[finding]);
            self.report(ring, state.thread, &judged, &reported, watch);
        }
    }

    /// What was under way when an outermost call follows was left by a jump or an exception.
    fn leave(totals: &mut Totals, state: &mut RingState) {
        state.calls.leave(|tracked| totals.in_flight(tracked.function, &tracked.call, -1));
    }
}

#[cfg(test)]
mod tests;
