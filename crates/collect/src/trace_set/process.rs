//! What a reader of traces knows of one process: what its records say, where they came from, and what is missing.

use crate::findings::judge::ReportedFinding;
use crate::findings::modules::Modules;
use crate::findings::quick_check::Run;
use crate::interpreter::Interpreter;
use crate::interpreter::labels::is_told;
use crate::interpreter::totals::Sums;
use crate::interpreter::visitor::{Both, CallView, CallVisitor, CommonCallView, FindingView, ProcessView};
use aclshim_facts::Function;
use aclshim_trace::origin::Origin;
use aclshim_trace::record::REFUSED;
use aclshim_trace::record::slot::Words;
use aclshim_trace::segment::format::BlockHead;
use aclshim_trace::segment::reader::Block;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut, Range};

/// What is known of one process.
pub struct Process {
    interpreter: Interpreter,
    /// Calls that were forwarded and not recorded.
    pub not_recorded: u64,
    /// Marks, names and scopes of the program that were not recorded.
    pub notes_lost: u64,
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
    /// The findings that are reported one by one.
    pub findings: Vec<Found>,
    /// The ring of the last block that was read in the order of a file.
    last_ring: Option<u32>,
    /// By ring: the last two blocks of its trace.
    blocks: BTreeMap<u32, [Range<u64>; 2]>,
}

/// A finding, and the call that it is about.
pub struct Found {
    /// What was found.
    pub told: ReportedFinding,
    /// The function.
    pub function: Function,
    /// The thread.
    pub thread: u32,
    /// The call's number on its thread.
    pub number: u64,
    /// When it began, in nanoseconds since 1970, if that is known.
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

impl Deref for Process {
    type Target = Interpreter;

    fn deref(&self) -> &Interpreter {
        &self.interpreter
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Interpreter {
        &mut self.interpreter
    }
}

impl Process {
    pub(crate) fn new(origin: Origin, number: usize) -> Self {
        Self {
            interpreter: Interpreter::new(origin, number),
            not_recorded: 0,
            notes_lost: 0,
            said_overwritten: 0,
            written_before: 0,
            write_failures: 0,
            evicted: 0,
            slots: [0; 2],
            findings: Vec::new(),
            last_ring: None,
            blocks: BTreeMap::new(),
        }
    }

    /// What is known by function name.
    pub fn functions(&self) -> impl Iterator<Item = (&str, &Sums)> {
        let sums = self.totals.functions().iter().enumerate();
        sums.filter_map(|(number, sums)| Some((self.origin.functions.get(number)?.as_str(), sums)))
    }

    /// Slots that were overwritten before they were read.
    pub fn overwritten(&self) -> u64 {
        self.said_overwritten.saturating_sub(self.written_before)
    }

    /// Its modules, as far as they are known.
    pub fn modules(&self) -> &Modules {
        self.judge.known_modules()
    }

    pub(crate) fn whose(&self, ring: u32, thread: u32) -> ProcessView<'_> {
        self.interpreter.whose(ring, thread)
    }

    /// The next block in the order in which a drain wrote them is of this ring. If the last one was of another, the drain had
    /// read that ring to its end, and had judged its last call.
    pub(crate) fn next_in_file<W: CallVisitor + ?Sized>(&mut self, ring: u32, watch: &mut W) {
        if let Some(last) = self.last_ring.replace(ring).filter(|last| *last != ring) {
            self.settle(last, watch);
        }
    }

    /// Takes note of a block that the trace holds.
    pub(crate) fn block(&mut self, head: &BlockHead) {
        let blocks = self.blocks.entry(head.ring).or_default();
        blocks.swap(0, 1);
        blocks[1] = head.first..head.first.saturating_add(head.slots.into());
    }

    /// Slots that are said to be overwritten may be in the trace for all that, if its drain ended between writing a
    /// block and giving it back.
    pub(crate) fn overwrote(&mut self, ring: u32, first: u64, slots: u64) {
        let lost = first..first.saturating_add(slots);
        let common = |block: &Range<u64>| block.end.min(lost.end).saturating_sub(block.start.max(lost.start));
        let blocks = self.blocks.entry(ring).or_default();
        let written = blocks.iter().map(common).fold(0, u64::saturating_add);
        self.written_before = self.written_before.saturating_add(written);
    }

    /// Takes over what a block tells of names, and nothing else.
    pub(crate) fn names(&mut self, block: &Block) {
        if block.slots().any(|slot| is_told(&slot)) {
            self.labels.learn_slots(block.head.first, &block.slots().collect::<Vec<_>>());
        }
    }

    /// Adds a block of slots, as far as they are new.
    pub(crate) fn add<W: CallVisitor + ?Sized>(
        &mut self,
        head: &BlockHead,
        slots: &[Words],
        from: From,
        watch: &mut W,
    ) {
        let visitor = &mut Both(&mut Findings(&mut self.findings), watch);
        self.slots[from as usize] += self.interpreter.add_block(head, slots, visitor);
    }

    /// See [`Interpreter::cede`].
    pub(crate) fn cede<W: CallVisitor + ?Sized>(
        &mut self,
        head: &BlockHead,
        slots: &[Words],
        run: &Run,
        watch: &mut W,
    ) -> Option<u32> {
        let visitor = &mut Both(&mut Findings(&mut self.findings), watch);
        let thread = self.interpreter.cede(head, slots, run, visitor)?;
        self.slots[From::Trace as usize] += run.count as u64;
        Some(thread)
    }

    /// Judges the last call of a ring, and hands on what has ended.
    pub(crate) fn settle<W: CallVisitor + ?Sized>(&mut self, ring: u32, watch: &mut W) {
        self.interpreter.settle(ring, &mut Both(&mut Findings(&mut self.findings), watch));
    }

    /// Judges and hands on what is still held of a ring: nothing follows.
    pub(crate) fn finish<W: CallVisitor + ?Sized>(&mut self, ring: u32, watch: &mut W) {
        self.interpreter.finish(ring, &mut Both(&mut Findings(&mut self.findings), watch));
    }
}

/// Collects the findings.
struct Findings<'a>(&'a mut Vec<Found>);

impl CallVisitor for Findings<'_> {
    fn call(&mut self, _: &CallView<'_>) {}

    #[inline(always)]
    fn plain(&mut self, _: &CommonCallView<'_>) {}

    fn finding(&mut self, finding: &FindingView<'_>) {
        let call = finding.call;
        self.0.push(Found {
            told: finding.finding.clone(),
            function: finding.function,
            thread: finding.whose.thread,
            number: call.number,
            time_ns: finding.time_ns(),
            site: call.site,
            returned: call.end.map(|end| end.code),
            is_refused: call.flags & REFUSED != 0,
        });
    }
}
