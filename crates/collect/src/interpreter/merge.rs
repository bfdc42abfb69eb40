//! One order of time over all rings.
//!
//! Records are interpreted ring by ring. A [`Merger`] is a visitor that holds back what it is shown of each ring until it lies
//! below the **watermark**: the earliest of the times up to which the rings are completely read. A drain reports such a time
//! when it has seen a ring empty; a reader of traces reads on in the ring that holds the watermark back, and lifts it at the
//! end of the ring. What is held back is then shown by time; at equal times by process, ring and number.
//!
//! The begin and the end of a call are two events, each with its own time. So a call that lasts long holds nothing up.

use crate::interpreter::visitor::{AnnotationView, CallView, CallVisitor, CommonCallView, Lost, ProcessView};
use aclshim_facts::Function;
use aclshim_trace::record::Call;
use aclshim_trace::record::annotation::Annotation;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Number of items that are held back in a drain, which may run inside the host and has little memory there.
const MOST_LIVE: usize = 4096;

/// A ring of a process: the number of the process among those that are read, and the number of the ring.
pub(crate) type RingKey = (usize, u32);

/// A time that items are ordered by: nanoseconds since 1970, then ticks. Within one process ticks are exact, and the first is 0.
type Moment = (u64, u64);

/// An event, taken out of its block.
#[allow(clippy::large_enum_variant)] // nearly all of them are calls
enum Item {
    Begun(OwnedCall),
    Returned(OwnedCall),
    Call(OwnedCall),
    Lost { thread: u32, calls: u64, notes: u64, from_ns: Option<u64>, to_ns: Option<u64> },
    Annotation { thread: u32, ticks: u64, what: Annotation },
}

/// A [`CallView`] without its process.
struct OwnedCall {
    thread: u32,
    function: Function,
    call: Call,
    rules: u128,
    is_left: bool,
}

impl OwnedCall {
    fn new(view: &CallView<'_>) -> Self {
        let CallView { whose, function, call, rules, is_left } = *view;
        Self { thread: whose.thread, function, call: call.clone(), rules, is_left }
    }

    fn view<'a>(&'a self, whose: impl FnOnce(u32) -> ProcessView<'a>) -> CallView<'a> {
        let Self { thread, function, call, rules, is_left } = self;
        CallView { whose: whose(*thread), function: *function, call, rules: *rules, is_left: *is_left }
    }
}

/// What is held back of one ring.
struct Lane {
    items: VecDeque<(Moment, Item)>,
    /// The latest of the items that have come in the order of the ring.
    last: Moment,
    /// Nothing earlier than this will follow; `None` if nothing at all will.
    read_to: Option<Moment>,
}

/// Brings the events of all rings into one order of time.
#[derive(Default)]
pub struct Merger {
    lanes: BTreeMap<RingKey, Lane>,
    /// The first item of every lane that has one.
    fronts: BTreeSet<(Moment, RingKey)>,
    /// The `read_to` of every lane that has one: the first is the watermark.
    limits: BTreeSet<(Moment, RingKey)>,
    /// Whether events of one process are merged, in a drain.
    is_live: bool,
    /// Whether begin and end events are merged, not only whole calls.
    has_events: bool,
    held: usize,
    shown: Moment,
    /// Number of events that came when later ones had been shown already.
    pub late: u64,
    /// Number of items that were shown above the watermark, because too many were held back.
    pub unordered: u64,
}

impl Merger {
    /// For a reader of traces. With `has_events`, the begin and the end of each call are shown as well.
    pub(crate) fn offline(has_events: bool) -> Self {
        Self { has_events, ..Self::default() }
    }

    /// For the drain of one process.
    pub(crate) fn live() -> Self {
        Self { has_events: true, is_live: true, ..Self::default() }
    }

    /// There is such a ring: it holds back the others until it is known how far it was read.
    pub(crate) fn add_ring(&mut self, ring: RingKey) {
        self.lane(ring);
    }

    /// All records of a ring that began before `ticks` were read.
    pub(crate) fn read_to(&mut self, ring: RingKey, ticks: u64) {
        self.limit(ring, Some((0, ticks)));
    }

    /// What was read of a ring is complete up to the last call in it.
    pub(crate) fn read_to_last(&mut self, ring: RingKey) {
        let last = self.lane(ring).last;
        self.limit(ring, Some(last));
    }

    /// Nothing more follows of a ring.
    pub(crate) fn end(&mut self, ring: RingKey) {
        self.limit(ring, None);
    }

    fn limit(&mut self, ring: RingKey, read_to: Option<Moment>) {
        let before = std::mem::replace(&mut self.lane(ring).read_to, read_to);
        before.map(|before| self.limits.remove(&(before, ring)));
        self.limits.extend(read_to.map(|read_to| (read_to, ring)));
    }

    /// What is held back of a ring.
    fn lane(&mut self, ring: RingKey) -> &mut Lane {
        let Self { lanes, limits, .. } = self;
        lanes.entry(ring).or_insert_with(|| {
            let begin = Moment::default();
            limits.insert((begin, ring));
            Lane { items: VecDeque::new(), last: begin, read_to: Some(begin) }
        })
    }

    /// The ring that holds back the others; `None` if all have ended.
    pub(crate) fn slowest(&self) -> Option<RingKey> {
        self.limits.first().map(|(_, ring)| *ring)
    }

    /// Shows what lies below the watermark; `whose` describes the thread of a ring.
    pub(crate) fn release<'a, W: CallVisitor + ?Sized>(
        &mut self,
        whose: impl Fn(RingKey, u32) -> ProcessView<'a>,
        visitor: &mut W,
    ) {
        while let Some((ring, item)) = self.next() {
            let of = |thread| whose(ring, thread);
            match item {
                Item::Begun(call) => visitor.begun(&call.view(of)),
                Item::Returned(call) => visitor.returned(&call.view(of)),
                Item::Call(call) => visitor.call(&call.view(of)),
                Item::Lost { thread, calls, notes, from_ns, to_ns } => {
                    visitor.lost(&Lost { whose: of(thread), calls, notes, from_ns, to_ns });
                }
                Item::Annotation { thread, ticks, what } => {
                    visitor.remark(&AnnotationView { whose: of(thread), ticks, what: &what });
                }
            }
        }
    }

    fn next(&mut self) -> Option<(RingKey, Item)> {
        let front = *self.fronts.first()?;
        let is_above = self.limits.first().is_some_and(|watermark| front > *watermark);
        if is_above && !(self.is_live && self.held > MOST_LIVE) {
            return None;
        }
        self.unordered += u64::from(is_above);
        self.fronts.pop_first();
        let (_, ring) = front;
        let lane = self.lanes.get_mut(&ring)?;
        let (moment, item) = lane.items.pop_front()?;
        self.fronts.extend(lane.items.front().map(|(next, _)| (*next, ring)));
        self.shown = self.shown.max(moment);
        self.held -= 1;
        Some((ring, item))
    }

    fn moment(&self, whose: &ProcessView<'_>, ticks: u64) -> Moment {
        match whose.clock() {
            _ if self.is_live => (0, ticks),
            Some(clock) => (clock.at_ns(ticks), ticks),
            None => (0, 0),
        }
    }

    /// Takes what comes in the order of the ring, and is shown in that order.
    fn push_in_turn(&mut self, whose: &ProcessView<'_>, moment: Moment, item: Item) {
        let ring = (whose.process, whose.ring);
        let lane = self.lane(ring);
        lane.last = moment.max(lane.last);
        let moment = lane.last;
        self.push(ring, moment, item);
    }

    /// Takes a begin or an end, which is shown at its own time.
    fn push_event(&mut self, call: &CallView<'_>, after: u64, event: fn(OwnedCall) -> Item) {
        let moment = self.moment(&call.whose, call.call.begin.saturating_add(after));
        self.late += u64::from(moment < self.shown);
        self.push((call.whose.process, call.whose.ring), moment, event(OwnedCall::new(call)));
    }

    fn push(&mut self, ring: RingKey, moment: Moment, item: Item) {
        let lane = self.lane(ring);
        let before = lane.items.front().map(|(front, _)| (*front, ring));
        // Nearly always the last place.
        let later = lane.items.iter().rev().take_while(|(other, _)| *other > moment).count();
        lane.items.insert(lane.items.len() - later, (moment, item));
        self.held += 1;
        if before.is_none_or(|(front, _)| moment < front) {
            before.map(|before| self.fronts.remove(&before));
            self.fronts.insert((moment, ring));
        }
    }
}

impl CallVisitor for Merger {
    fn call(&mut self, call: &CallView<'_>) {
        let moment = self.moment(&call.whose, call.call.begin);
        self.push_in_turn(&call.whose, moment, Item::Call(OwnedCall::new(call)));
    }

    fn plain(&mut self, plain: &CommonCallView<'_>) {
        let call = plain.call();
        let CommonCallView { whose, function, rules, .. } = *plain;
        let view = CallView { whose, function, call: &call, rules, is_left: false };
        self.begun(&view);
        self.returned(&view);
        self.call(&view);
    }

    fn begun(&mut self, call: &CallView<'_>) {
        if self.has_events {
            self.push_event(call, 0, Item::Begun);
        }
    }

    fn returned(&mut self, call: &CallView<'_>) {
        if let Some(end) = call.call.end.filter(|_| self.has_events) {
            self.push_event(call, end.duration, Item::Returned);
        }
    }

    fn lost(&mut self, lost: &Lost<'_>) {
        let Lost { whose, calls, notes, from_ns, to_ns } = *lost;
        let moment = if self.is_live { (0, 0) } else { (from_ns.unwrap_or(0), 0) };
        self.push_in_turn(&whose, moment, Item::Lost { thread: whose.thread, calls, notes, from_ns, to_ns });
    }

    fn remark(&mut self, remark: &AnnotationView<'_>) {
        let AnnotationView { whose, ticks, what } = *remark;
        let item = Item::Annotation { thread: whose.thread, ticks, what: what.clone() };
        self.push_in_turn(&whose, self.moment(&whose, ticks), item);
    }
}

#[cfg(test)]
mod tests;
