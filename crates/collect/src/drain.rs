//! The drain of one process: records from its rings into its trace and its log.
//!
//! A record is on disk before its slot is given back; if writing fails, the slot stays and is
//! tried again. A drain holds the lock of the ring file ([`aclshim_trace::reader::lock`]), so there is one at a time,
//! and the next one goes on where the last one stopped.

use crate::drain::blocks::blocks;
use crate::findings::judge::Total;
use crate::findings::module_lookup::ModuleLookup;
use crate::interpreter::Interpreter;
use crate::interpreter::merge::Merger;
use crate::interpreter::totals::Totals;
use crate::interpreter::visitor::{Both, CallVisitor, NoVisitor};
use crate::live_log::log_writer::LogWriter;
pub use crate::live_log::log_writer::Losses;
use crate::live_log::stderr::Stderr;
use crate::liveness::{Liveness, liveness};
use crate::storage::budget::Sizes;
use crate::storage::failure::{Failure, Trouble};
use crate::storage::file_names::{FileNameValues, stem};
use crate::storage::rotation::OutputLocation;
use crate::storage::segment::TraceWriter;
use aclshim_facts::settings::Calls;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{MOST_RINGS, ReadMode, Ring, SlotRun};
use aclshim_trace::record::slot::Words;
use aclshim_trace::ring::layout::Header;
use aclshim_trace::segment::format::{BlockHead, kind};
use aclshim_trace::system::clock::{monotonic_ns, realtime_ns, ticks};
use aclshim_trace::system::namespace;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

pub mod adoption;
pub mod blocks;
mod drained;
pub mod inside;
mod lifecycle;
pub mod outside;

/// Number of slots that are written at once.
const RUN: usize = 1024;
/// Number of slots in which nothing is shown, behind the last that were read, that make a ring count as empty: a slot that was
/// claimed may be shown after those behind it.
const GAP: u64 = 64;

/// Where a drain runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    /// On a thread of the process that it drains.
    Inside,
    /// In another process.
    Outside,
}

impl Location {
    /// As the log has it.
    fn word(self) -> &'static str {
        match self {
            Location::Inside => "inside",
            Location::Outside => "outside",
        }
    }

    /// The drained process as `/proc` names it, if it can be looked at from here.
    fn process(self, origin: &Origin) -> Option<String> {
        match self {
            Location::Inside => Some("self".into()),
            Location::Outside => (liveness(origin) == Liveness::Alive).then(|| origin.pid.to_string()),
        }
    }
}

/// The drain of one process.
pub struct Drain {
    /// Makes events of the records, for the log.
    interpreter: Interpreter,
    modules: ModuleLookup,
    /// Whether the ticks of the process are those of here and now.
    is_of_this_boot: bool,
    calls: Calls,
    trace: TraceWriter,
    log: LogWriter,
    /// Merges the events of all rings, if that is asked for.
    merger: Option<Merger>,
    location: Location,
    has_begun: bool,
    /// Whether anything goes to standard error.
    speaks: bool,
    /// Whether the trace tells the product, as far as it is known.
    is_introduced: bool,
    /// Whether it is known how much earlier drains have written.
    knows_earlier: bool,
    minute: u64,
    second: u64,
    /// What the trace tells of.
    told: Losses,
    /// The most slots that one ring had in one pass.
    fullest: u64,
    /// Memory for the slots that are read at once.
    buffer: Vec<Words>,
    /// Whether CLOCK_MONOTONIC of the process is shifted against that of here.
    is_other_time: bool,
}

/// How many rings a process has made. A header that says more than any process has is nonsense.
fn rings(header: &Header) -> usize {
    header.rings.load(Ordering::Acquire).min(MOST_RINGS) as usize
}

/// What a process has lost so far: calls that found no ring or a full one, and what was overwritten.
pub fn losses<'a>(header: &Header, ring: impl Fn(usize) -> Option<Ring<'a>>) -> Losses {
    let mut losses = Losses { not_recorded: header.not_recorded.load(Ordering::Relaxed), ..Losses::default() };
    for ring in (0..rings(header)).filter_map(ring) {
        losses.not_recorded += ring.control.not_recorded.load(Ordering::Relaxed);
        losses.overwritten += ring.control.overwritten.load(Ordering::Relaxed);
        losses.notes += ring.control.notes_lost.load(Ordering::Relaxed);
    }
    losses
}

/// The bytes of a header.
fn bytes_of(header: &Header) -> &[u8] {
    // SAFETY: a plain structure without padding that anybody would mind.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(header).cast(), size_of::<Header>()) }
}

impl Drain {
    /// A drain inside the process that `header` describes.
    pub fn inside(header: &Header) -> Self {
        Self::new(header, Location::Inside, Origin::new(header).dir)
    }

    /// A drain of another process, which `header` describes.
    pub fn outside(header: &Header) -> Self {
        Self::outside_to(header, Origin::new(header).dir)
    }

    /// A drain of another process, with files in another directory than the process said; its path is absolute.
    pub fn outside_to(header: &Header, dir: PathBuf) -> Self {
        Self::new(header, Location::Outside, dir)
    }

    fn new(header: &Header, location: Location, dir: PathBuf) -> Self {
        let origin = Origin::new(header);
        let executable = origin.executable.file_name().unwrap_or_default().as_bytes().to_vec();
        let who = FileNameValues {
            pid: origin.pid,
            born_ns: origin.born_ns,
            host: origin.host.clone().into_bytes(),
            executable,
            rank: origin.rank.clone().into_bytes(),
        };
        // The budget is for the directory that the process named. In another one it would remove files of others.
        let budget = if dir == origin.dir { origin.budget } else { u64::MAX };
        let sizes = Sizes { segment: origin.segment, budget };
        let place = OutputLocation { dir, stem: stem(origin.pattern.as_bytes(), &who), sizes };
        let calls = origin.calls;
        Self {
            modules: ModuleLookup::new(location.process(&origin)),
            is_of_this_boot: origin.is_of_this_boot == Some(true),
            calls,
            trace: TraceWriter::new(place.clone(), bytes_of(header)),
            log: LogWriter::new(place, origin.pid, calls == Calls::Json),
            merger: None,
            is_introduced: false,
            knows_earlier: false,
            location,
            has_begun: false,
            speaks: false,
            minute: monotonic_ns(),
            second: 0,
            told: Losses::default(),
            fullest: 0,
            buffer: Vec::new(),
            is_other_time: namespace::is_other_time(header.time_ns, namespace::time()),
            interpreter: Interpreter::live(origin),
        }
    }

    /// What also goes to the standard error of the process that it runs in.
    pub fn speak(&mut self, stderr: Stderr) {
        self.speaks = stderr != Stderr::Off;
        self.log.speak(stderr);
    }

    /// Whose drain it is.
    pub fn origin(&self) -> &Origin {
        &self.interpreter.origin
    }

    /// Writes what there is, and returns how many slots that were. Errors are counted in the header,
    /// remembered, and said in the log as soon as it can be written.
    pub fn pass<'a>(&mut self, header: &Header, ring: impl Fn(usize) -> Option<Ring<'a>>, how: ReadMode) -> u64 {
        if !self.knows_earlier {
            // What is given back was written.
            let given_back = |one: Ring<'a>| one.control.drained.load(Ordering::Relaxed);
            let slots: u64 = (0..rings(header)).filter_map(&ring).map(given_back).fold(0, u64::saturating_add);
            self.trace.set_earlier(slots.saturating_mul(size_of::<Words>() as u64));
            self.knows_earlier = true;
        }
        let mut moved = 0;
        // Before the rings are counted: what a new ring holds began later.
        let begun = ticks(header.clock);
        for number in 0..rings(header) {
            let Some(one) = ring(number) else { continue };
            match self.ring(header, number as u32, one, how) {
                Ok(slots) => {
                    self.fullest = self.fullest.max(slots);
                    moved += slots;
                }
                Err(_) => {
                    header.write_failures.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
            if let Some(merger) = &mut self.merger {
                let (drained, ring) = (one.control.drained.load(Ordering::Relaxed), (0, number as u32));
                merger.add_ring(ring);
                if one.end_near(drained, GAP) == drained {
                    merger.read_to(ring, begun);
                }
            }
        }
        self.housekeeping(header, ring);
        moved
    }

    /// From now on, before there is anything: merges the begin and end events of all rings by time.
    pub fn merge_events(&mut self) {
        self.merger = Some(Merger::live());
    }

    /// Shows the merged events up to the time at which every ring was last seen empty, or all once the drain has stopped.
    /// Returns the number of events that came late, and of those that could not be held back long enough.
    pub fn show_events<W: CallVisitor + ?Sized>(&mut self, visitor: &mut W) -> [u64; 2] {
        let Some(merger) = &mut self.merger else { return [0; 2] };
        merger.release(|(_, ring), thread| self.interpreter.whose(ring, thread), visitor);
        [merger.late, merger.unordered]
    }

    fn ring(&mut self, header: &Header, number: u32, ring: Ring<'_>, how: ReadMode) -> Result<u64, Failure> {
        let drained = ring.control.drained.load(Ordering::Relaxed);
        if how != ReadMode::Finish && !ring.has_more(drained) {
            return Ok(0);
        }
        self.records(header, number, ring, how, ring.reach(drained, how))
    }

    /// Writes the records of a ring up to number `end`, and returns how many slots that were.
    fn records(
        &mut self,
        header: &Header,
        number: u32,
        ring: Ring<'_>,
        how: ReadMode,
        end: u64,
    ) -> Result<u64, Failure> {
        let mut moved = 0;
        // One that is written faster than it is drained must not keep the others waiting: what it held is enough.
        let most = if how == ReadMode::Finish { usize::MAX } else { ring.stored() / RUN + 2 };
        for _ in 0..most {
            let from = ring.control.drained.load(Ordering::Relaxed);
            let run = ring.read_into(end, from, how, RUN, std::mem::take(&mut self.buffer));
            if run.next == from {
                self.buffer = run.slots;
                break;
            }
            self.begin(header);
            // The log is all that will tell of them.
            if self.calls == Calls::Off
                && !(self.has_begun || self.speaks)
                && let Some(trouble) = self.log.trouble()
            {
                return Err(trouble.first.clone());
            }
            if !self.is_introduced && is_known(header) {
                self.introduce(header);
            }
            if let Some(modules) = self.modules.look_up(&run.slots, self.interpreter.judge.modules()) {
                if self.calls != Calls::Off {
                    self.trace.append(&self.head(kind::MODULES, header), &modules)?;
                }
                self.modules.written();
            }
            let thread = self.thread(number, &ring, &run);
            let head = BlockHead { ring: number, first: run.first, thread, ..self.head(kind::SLOTS, header) };
            if self.calls != Calls::Off {
                for (head, payload) in blocks(&run, from, head) {
                    self.trace.append(&head, &payload)?;
                }
            }
            // Before they are given back: afterwards the ring does not show it any more.
            ring.control.overwritten.fetch_add(run.overwritten, Ordering::Relaxed);
            // On disk: the writer may have the slots back. What is said of them can wait.
            ring.give_back(run.next);
            moved += run.slots.len() as u64;
            if run.overwritten > 0 {
                self.log.overwritten(&head, from, run.overwritten);
            }
            match &mut self.merger {
                None => self.interpreter.add_block(&head, &run.slots, &mut self.log),
                Some(merger) => self.interpreter.add_block(&head, &run.slots, &mut Both(&mut self.log, merger)),
            };
            let is_last = run.slots.len() < RUN / 2 && run.jumped() == 0 && how != ReadMode::Finish;
            self.buffer = run.slots;
            if is_last {
                break;
            }
        }
        // Nothing more of the ring is there now: notes about its last call would be. Of a process that is gone nothing follows.
        if moved > 0 && how == ReadMode::Finish {
            self.finish(number);
        } else if moved > 0 {
            self.interpreter.settle(number, &mut visitors(&mut self.log, &mut self.merger, &mut NoVisitor));
        }
        Ok(moved)
    }

    /// Nothing more of a ring follows.
    fn finish(&mut self, number: u32) {
        self.interpreter.finish(number, &mut visitors(&mut self.log, &mut self.merger, &mut NoVisitor));
        if let Some(merger) = &mut self.merger {
            merger.end((0, number));
        }
    }

    /// The thread that has written the slots of a run: the owner, or the last one that said so in the ring. 0 if that is
    /// not known: it may stand in what was overwritten.
    fn thread(&self, number: u32, ring: &Ring<'_>, run: &SlotRun) -> u32 {
        match ring.owner() {
            Some((owner, since)) if run.first >= since => owner,
            _ if run.overwritten > 0 => 0,
            _ => self.interpreter.thread(number),
        }
    }

    /// The head of a block that is made now.
    fn head(&self, kind: u32, header: &Header) -> BlockHead {
        let ticks = if self.is_of_this_boot { ticks(header.clock) } else { 0 };
        BlockHead { kind, ticks, realtime_ns: realtime_ns(), ..BlockHead::default() }
    }

    /// Says that these records were left behind by a process that is gone.
    pub fn adopt(&mut self, ring_file: &[u8], slots: u64) {
        self.log.adopted(ring_file, slots, &self.interpreter.totals);
    }

    /// From now on, before there is anything: counts calls by the kind of copy, too.
    pub fn count_kinds(&mut self) {
        self.interpreter.totals = Totals::of_kinds();
    }

    /// What the calls that it has written add up to.
    pub fn totals(&self) -> &Totals {
        &self.interpreter.totals
    }

    /// How often each rule was broken.
    pub fn findings(&self) -> &BTreeMap<String, Total> {
        self.interpreter.judge.totals()
    }

    /// How many calls went with older files.
    pub fn evicted(&self) -> u64 {
        self.trace.evicted()
    }

    /// The most slots that one ring had in one pass since this was last asked.
    pub fn take_fullest(&mut self) -> u64 {
        std::mem::take(&mut self.fullest)
    }

    /// Whether everything that was asked for has been written.
    pub fn is_well(&self) -> bool {
        self.trouble().is_none()
    }

    /// What goes wrong now, if anything.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trace.trouble().or(self.log.trouble())
    }
}

/// The log, and the merger if there is one.
fn visitors<'a>(
    log: &'a mut LogWriter,
    merger: &'a mut Option<Merger>,
    none: &'a mut NoVisitor,
) -> Both<'a, LogWriter, dyn CallVisitor + 'a> {
    match merger {
        Some(merger) => Both(log, merger),
        None => Both(log, none),
    }
}

/// Whether the process knows its product.
fn is_known(header: &Header) -> bool {
    header.product[0].load(Ordering::Acquire) != 0
}
