//! What is known of one process: its records, read in the order of their rings, added up, judged, and handed on.

use crate::account::{Account, Sums};
use crate::common::{Common, numbered};
use crate::glance::{self, Run};
use crate::judge::{HELD, Judge, Told};
use crate::labels::{Labels, is_told};
use crate::modules::Modules;
use crate::seen::{Lost, Remark, Seen, Watch, Whose};
use aclshim_facts::Function;
use aclshim_trace::origin::Origin;
use aclshim_trace::record::annotation::Annotation as Said;
use aclshim_trace::record::slot::{Head, Layout, Words};
use aclshim_trace::record::{Call, Entry, REFUSED, decode};
use aclshim_trace::segment::format::BlockHead;
use aclshim_trace::segment::reader::Block;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

mod aside;

pub(crate) use aside::Aside;

/// What is known of one process.
pub struct Process {
    /// Who it is.
    pub origin: Origin,
    /// What its calls add up to.
    pub account: Account,
    /// Calls that were forwarded and not recorded.
    pub not_recorded: u64,
    /// Marks, names and scopes that the program told and that were not recorded.
    pub notes_lost: u64,
    /// What it calls its scopes, streams and buffers.
    pub labels: Labels,
    /// Slots that were overwritten before they were given back, as is said.
    pub(crate) said_overwritten: u64,
    /// Of these, slots that the trace holds.
    written_before: u64,
    /// Writes of the drain that failed.
    pub write_failures: u64,
    /// Calls whose records went with older segments.
    pub evicted: u64,
    /// Slots in the trace, and slots that are only in the ring.
    pub slots: [u64; 2],
    /// What breaks a rule, as far as it is told one by one.
    pub findings: Vec<Found>,
    /// The rulebook at work on its calls.
    pub judge: Judge,
    /// Its number among those that are read.
    number: usize,
    functions: Vec<Option<Function>>,
    /// How often it was another that the header told of it.
    renewals: u64,
    lanes: BTreeMap<u32, Lane>,
}

/// What is known of one ring.
#[derive(Default)]
struct Lane {
    /// The number behind the last slot that was read.
    end: u64,
    /// The thread that writes to it.
    thread: u32,
    /// The last two blocks of its trace.
    blocks: [Range<u64>; 2],
    /// Calls that are not handed on yet: notes about them, or their ends, may follow.
    pending: VecDeque<Pending>,
    /// The last calls that have failed and were passed, with their numbers: the judge does not know of them yet.
    passed: VecDeque<(u64, Words)>,
}

struct Pending {
    function: Function,
    call: Call,
    rules: u128,
    is_judged: bool,
    /// Whether its end comes in a record of its own, if it does.
    awaits_end: bool,
    /// Whether an outermost call followed.
    is_left: bool,
    /// What the program told behind it.
    behind: Vec<(u64, Said)>,
}

/// So many calls are held behind one whose end has not come, and behind one that seems to have been left by a jump.
const MOST_PENDING: usize = 65_536;
const MOST_BEHIND_LEFT: usize = 64;
/// So much of what the program tells is held behind a call; then it comes before it.
const MOST_BEHIND: usize = 1024;

/// A finding, and the call that it is about.
pub struct Found {
    /// What was found.
    pub told: Told,
    /// The function.
    pub function: Function,
    /// The thread.
    pub thread: u32,
    /// The call's number on its thread.
    pub number: u64,
    /// When it began, in nanoseconds since 1970, if that can be told.
    pub time_ns: Option<u64>,
    /// Where it came from.
    pub site: u64,
    /// What it returned.
    pub returned: Option<i32>,
    /// Whether it was refused and not forwarded.
    pub is_refused: bool,
}

/// Where slots were read.
#[derive(Clone, Copy)]
pub(crate) enum From {
    Trace = 0,
    Ring = 1,
}

impl Process {
    pub(crate) fn new(origin: Origin, number: usize) -> Self {
        let judge = Judge::new(&origin);
        Self {
            functions: origin.functions.iter().map(|name| Function::by_name(name)).collect(),
            origin,
            account: Account::default(),
            not_recorded: 0,
            notes_lost: 0,
            labels: Labels::default(),
            said_overwritten: 0,
            written_before: 0,
            write_failures: 0,
            evicted: 0,
            slots: [0; 2],
            findings: Vec::new(),
            judge,
            number,
            renewals: 0,
            lanes: BTreeMap::new(),
        }
    }

    /// What is known by function name.
    pub fn functions(&self) -> impl Iterator<Item = (&str, &Sums)> {
        let sums = self.account.functions().iter().enumerate();
        sums.filter_map(|(number, sums)| Some((self.origin.functions.get(number)?.as_str(), sums)))
    }

    /// Slots that were overwritten before anybody read them.
    pub fn overwritten(&self) -> u64 {
        self.said_overwritten.saturating_sub(self.written_before)
    }

    /// Its modules, as far as they are known.
    pub fn modules(&self) -> &Modules {
        self.judge.known_modules()
    }

    pub(crate) fn whose(&self, ring: u32, thread: u32) -> Whose<'_> {
        let (modules, labels) = (self.judge.known_modules(), &self.labels);
        Whose { origin: &self.origin, process: self.number, ring, thread, modules, labels }
    }

    /// Takes over what the header tells by now.
    pub(crate) fn renew(&mut self, origin: Origin) {
        self.judge.learn(&origin);
        self.origin = origin;
        self.renewals += 1;
    }

    /// The rings that were read.
    pub(crate) fn rings(&self) -> Vec<u32> {
        self.lanes.keys().copied().collect()
    }

    /// The thread that a new block of a ring begins with, if that is known.
    pub(crate) fn thread<W: Watch + ?Sized>(&mut self, head: &BlockHead, watch: &mut W) {
        let lane = self.lanes.entry(head.ring).or_default();
        if head.thread != 0 && head.thread != lane.thread && head.first >= lane.end {
            self.finish(head.ring, watch);
            self.lanes.entry(head.ring).or_default().thread = head.thread;
        }
    }

    /// Takes note of a block that the trace holds.
    pub(crate) fn block(&mut self, head: &BlockHead) {
        let blocks = &mut self.lanes.entry(head.ring).or_default().blocks;
        blocks.swap(0, 1);
        blocks[1] = head.first..head.first.saturating_add(head.slots.into());
    }

    /// Slots that are said to be overwritten may be in the trace for all that, if its drain ended between writing a
    /// block and giving it back.
    pub(crate) fn overwrote(&mut self, ring: u32, first: u64, slots: u64) {
        let lost = first..first.saturating_add(slots);
        let common = |block: &Range<u64>| block.end.min(lost.end).saturating_sub(block.start.max(lost.start));
        let blocks = &self.lanes.entry(ring).or_default().blocks;
        let written = blocks.iter().map(common).fold(0, u64::saturating_add);
        self.written_before = self.written_before.saturating_add(written);
    }

    /// Takes over what a block tells of names, and nothing else.
    pub(crate) fn names(&mut self, block: &Block) {
        if block.slots().any(|slot| is_told(&slot)) {
            self.labels.learn_slots(block.head.first, &block.slots().collect::<Vec<_>>());
        }
    }

    /// Adds consecutive slots of a ring, as far as they are new.
    pub(crate) fn add<W: Watch + ?Sized>(&mut self, ring: u32, first: u64, slots: &[Words], from: From, watch: &mut W) {
        let mut lane = std::mem::take(self.lanes.entry(ring).or_default());
        let mut rest = slots;
        while let Some((slot, others)) = rest.split_first() {
            let number = first.saturating_add((slots.len() - rest.len()) as u64);
            if number < lane.end {
                // A record that was read before; of one that begins there, the rest comes with it.
                let count = decode(rest, number).map_or(1, |(_, count)| count);
                rest = &rest[count..];
                continue;
            }
            if !lane.pending.is_empty() && Head(slot[0]).layout() != Layout::Note {
                self.settle_lane(ring, &mut lane, watch);
            }
            if lane.pending.is_empty() {
                let run = self.judge.glance().run(&self.functions, rest, |_| ());
                self.pass(ring, &mut lane, number, rest, &run, from);
                self.show(ring, lane.thread, number, &rest[..run.count], watch);
                if run.count > 0 {
                    rest = &rest[run.count..];
                    continue;
                }
            }
            let Some((entry, count)) = decode(rest, number) else {
                rest = others;
                continue;
            };
            rest = &rest[count..];
            lane.end = number.saturating_add(count as u64);
            self.slots[from as usize] += count as u64;
            self.entry(ring, &mut lane, entry, watch);
        }
        self.lanes.insert(ring, lane);
    }

    /// Leaves the calls of the common kind that a block begins with to somebody [beside](Aside), unless something stands
    /// in the way; the thread that they are of.
    pub(crate) fn cede<W: Watch + ?Sized>(
        &mut self,
        head: &BlockHead,
        slots: &[Words],
        run: &Run,
        watch: &mut W,
    ) -> Option<u32> {
        self.thread(head, watch);
        let mut lane = std::mem::take(self.lanes.entry(head.ring).or_default());
        let is_new = run.count > 0 && head.first >= lane.end;
        if is_new {
            self.settle_lane(head.ring, &mut lane, watch);
        }
        let thread = (is_new && lane.pending.is_empty()).then_some(lane.thread);
        if thread.is_some() {
            self.pass(head.ring, &mut lane, head.first, slots, run, From::Trace);
        }
        self.lanes.insert(head.ring, lane);
        thread
    }

    /// Passes calls of the common kind; whoever has looked at them adds them up.
    fn pass(&mut self, ring: u32, lane: &mut Lane, first: u64, slots: &[Words], run: &Run, from: From) {
        let end = first.saturating_add(run.count as u64);
        self.account.leave(ring, end.saturating_sub(1));
        if run.count == 0 {
            return;
        }
        lane.end = end;
        self.slots[from as usize] += run.count as u64;
        self.judge.count_askew(run.askew);
        for at in run.last_failed() {
            lane.passed.truncate(HELD - 1);
            lane.passed.push_front((first.saturating_add(at as u64), slots[at]));
        }
    }

    /// Adds up and shows calls that were passed.
    fn show<W: Watch + ?Sized>(&mut self, ring: u32, thread: u32, first: u64, slots: &[Words], watch: &mut W) {
        let Self { functions, judge, account, origin, number, labels, .. } = self;
        let whose = Whose { origin, process: *number, ring, thread, modules: judge.known_modules(), labels };
        Common { functions, glance: judge.glance(), whose }.show(first, slots, account, watch);
    }

    /// Makes the calls known to the judge that were passed: what is noted of them may follow.
    fn catch_up(&mut self, ring: u32, lane: &mut Lane) {
        while let Some((near, slot)) = lane.passed.pop_back() {
            if let Some(function) = glance::function(&self.functions, &slot) {
                self.judge.remember(ring, function, numbered(&slot, near));
            }
        }
    }

    fn entry<W: Watch + ?Sized>(&mut self, ring: u32, lane: &mut Lane, entry: Entry, watch: &mut W) {
        self.catch_up(ring, lane);
        let function = match &entry {
            Entry::Call(call) => self.functions.get(usize::from(call.function)).copied().flatten(),
            _ => None,
        };
        self.account.add(ring, &entry, function, self.origin.calibration.as_ref());
        match entry {
            Entry::Thread { id, .. } => {
                // Whoever had the ring before is gone.
                lane.pending.iter_mut().for_each(|pending| pending.is_left = true);
                self.finish_lane(ring, lane, watch);
                lane.thread = id;
            }
            Entry::Finding { of, finding } => {
                self.judge(lane.thread, |judge, tell| judge.note(ring, of, finding, tell));
                let rules = self.judge.judged(ring, of);
                if let Some(pending) = lane.pending.iter_mut().find(|pending| pending.call.number == of) {
                    pending.rules |= rules;
                }
            }
            Entry::Stack { of, frames } => self.judge.stack(ring, of, frames),
            Entry::End { of, end } => {
                if let Some(pending) = lane.pending.iter_mut().find(|pending| pending.call.number == of) {
                    pending.call.end = Some(end);
                    pending.awaits_end = false;
                }
            }
            Entry::Annotation { ticks, annotation: what } => {
                self.labels.learn(ticks, &what);
                match lane.pending.back_mut() {
                    Some(call) if call.behind.len() < MOST_BEHIND => call.behind.push((ticks, what)),
                    _ => watch.remark(&Remark { whose: self.whose(ring, lane.thread), ticks, what: &what }),
                }
            }
            Entry::Lost { from, to, calls, notes } => {
                let clock = self.origin.calibration.as_ref();
                let [from_ns, to_ns] = [from, to].map(|ticks| clock.map(|clock| clock.at_ns(ticks)));
                let whose = self.whose(ring, lane.thread);
                watch.lost(&Lost { whose, calls, notes, from_ns, to_ns });
            }
            Entry::Call(call) => {
                let Some(function) = function else { return };
                if !call.is_nested {
                    lane.pending.iter_mut().for_each(|pending| pending.is_left |= !pending.call.is_nested);
                }
                self.judge(lane.thread, |judge, tell| judge.take(ring, function, &call, tell));
                let awaits_end = call.end.is_none_or(|end| end.duration >= u64::from(u32::MAX));
                lane.pending.push_back(Pending {
                    function,
                    call,
                    rules: 0,
                    is_judged: false,
                    awaits_end,
                    is_left: false,
                    behind: Vec::new(),
                });
            }
        }
    }

    /// Lets the rulebook work, and keeps what is to be told.
    fn judge(&mut self, thread: u32, work: impl FnOnce(&mut Judge, &mut dyn FnMut(Function, &Call, Told))) {
        let clock = self.origin.calibration;
        let findings = &mut self.findings;
        let mut tell = |function: Function, call: &Call, told: Told| {
            findings.push(Found {
                told,
                function,
                thread,
                number: call.number,
                time_ns: clock.map(|clock| clock.at_ns(call.begin)),
                site: call.site,
                returned: call.end.map(|end| end.code),
                is_refused: call.flags & REFUSED != 0,
            });
        };
        work(&mut self.judge, &mut tell);
    }

    /// Judges the last call of a ring: no more notes about it follow. Then hands on what nothing can follow any more.
    fn settle_lane<W: Watch + ?Sized>(&mut self, ring: u32, lane: &mut Lane, watch: &mut W) {
        let Some(last) = lane.pending.back_mut() else { return };
        if !last.is_judged {
            self.judge(lane.thread, |judge, tell| judge.settle(ring, tell));
            last.rules |= self.judge.judged(ring, last.call.number);
            last.is_judged = true;
        }
        while let Some(front) = lane.pending.front() {
            let most = if front.is_left { MOST_BEHIND_LEFT } else { MOST_PENDING };
            if (!front.is_judged || front.awaits_end) && lane.pending.len() <= most {
                return;
            }
            self.hand_on(ring, lane, watch);
        }
    }

    fn hand_on<W: Watch + ?Sized>(&self, ring: u32, lane: &mut Lane, watch: &mut W) {
        let Some(Pending { function, call, rules, is_left, behind, .. }) = lane.pending.pop_front() else { return };
        let (whose, is_left) = (self.whose(ring, lane.thread), is_left && call.end.is_none());
        watch.call(&Seen { whose, function, call: &call, rules, is_left });
        for (ticks, what) in &behind {
            watch.remark(&Remark { whose, ticks: *ticks, what });
        }
    }

    fn finish_lane<W: Watch + ?Sized>(&mut self, ring: u32, lane: &mut Lane, watch: &mut W) {
        self.settle_lane(ring, lane, watch);
        while !lane.pending.is_empty() {
            self.hand_on(ring, lane, watch);
        }
    }

    /// Judges the last call of a ring, and hands on what has ended.
    pub(crate) fn settle<W: Watch + ?Sized>(&mut self, ring: u32, watch: &mut W) {
        let mut lane = std::mem::take(self.lanes.entry(ring).or_default());
        self.settle_lane(ring, &mut lane, watch);
        self.lanes.insert(ring, lane);
    }

    /// Judges and hands on what is still held of a ring: nothing follows.
    pub(crate) fn finish<W: Watch + ?Sized>(&mut self, ring: u32, watch: &mut W) {
        let mut lane = std::mem::take(self.lanes.entry(ring).or_default());
        self.finish_lane(ring, &mut lane, watch);
        self.lanes.insert(ring, lane);
    }
}
