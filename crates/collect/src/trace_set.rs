//! Reading the recorded calls of processes: from the traces in a directory, and from the rings that name it.
//!
//! A [`TraceSet`] reads paths with one set of [`ReadOptions`] and shows every call to a visitor. A record may be both in a
//! trace and in a ring, if its drain ended between writing the record and releasing the slot. It is shown once: records are
//! identified by process, ring and number.

use crate::findings::modules::Modules;
use crate::interpreter::visitor::{CallVisitor, ParallelVisitor};
use crate::liveness::Liveness;
use crate::ownership::Ignored;
use crate::trace_set::process::From;
pub use crate::trace_set::process::{Found, Process};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::RingReader;
use aclshim_trace::segment::format::kind;
use aclshim_trace::segment::reader::SegmentReader;
use snapshot::Snapshot;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use trace::{Progress, Trace, last_moment, learn};

mod by_time;
mod error;
mod parallel;
mod process;
mod read_ahead;
mod snapshot;
mod source;
mod trace;

pub use error::{Cause, FileError};
pub use source::{FoundRing, ProcessKey, is_same_folder, process_key, rings_in, writes_to};

/// In which order calls are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallOrder {
    /// File by file: the calls of one thread in their order.
    #[default]
    ByThread,
    /// As [`ByThread`](Self::ByThread), after a first pass over all files that learns the names that programs give to scopes,
    /// streams and buffers.
    ByThreadNamesFirst,
    /// By the time at which they began, over all threads and processes; names are known before the first call is shown.
    ByTime,
}

/// How the files of a [`TraceSet`] are read.
#[derive(Default)]
pub struct ReadOptions {
    /// Directories in which rings are looked for, besides the directory that is read.
    pub ring_folders: Vec<PathBuf>,
    /// In which order calls are shown.
    pub order: CallOrder,
    /// More records are expected: incomplete records are left for the next [`TraceSet::read`].
    pub follow: bool,
    /// Is called now and then with the number of bytes of traces that were read since the last time.
    pub progress: Option<Box<dyn FnMut(u64) + Send>>,
}

/// The processes whose records were read, and what could not be read.
#[derive(Default)]
pub struct TraceSet {
    options: ReadOptions,
    processes: Vec<Process>,
    /// Index in `processes` by identity.
    numbers: BTreeMap<ProcessKey, usize>,
    /// Offset up to which each trace has been read.
    read: BTreeMap<PathBuf, u64>,
    /// Paths under which there was nothing to read.
    pub nothing_in: Vec<PathBuf>,
    /// Rings of other users that name a directory that was read: they do not count.
    pub ignored: BTreeSet<Ignored>,
    /// Files that could not be read, or not completely.
    pub troubles: Vec<FileError>,
}

/// Size of the read buffer; the slots of a block bypass it.
const BUFFER: usize = 1 << 13;

/// What there is to read.
#[derive(Default)]
struct Sources {
    rings: Vec<Snapshot>,
    traces: Vec<PathBuf>,
}

impl TraceSet {
    /// A set that has read nothing yet.
    pub fn new(options: ReadOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The processes that were found.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter()
    }

    /// The process with that number.
    pub fn process(&self, number: usize) -> Option<&Process> {
        self.processes.get(number)
    }

    /// Reads traces, rings and directories: of a directory its traces, and the rings in [`ReadOptions::ring_folders`] and in
    /// itself whose processes write there. The order of the paths does not matter, nor whether they overlap. Called again, it
    /// reads what is new. Returns an error if a path cannot be read; a problem with one file of many goes to `troubles`.
    pub fn read<W: CallVisitor + ?Sized>(
        &mut self,
        paths: &[impl AsRef<Path>],
        visitor: &mut W,
    ) -> Result<(), FileError> {
        match self.options.order {
            CallOrder::ByTime => self.read_by_time(paths, visitor),
            CallOrder::ByThread | CallOrder::ByThreadNamesFirst => self.read_each(paths, visitor, Self::trace),
        }
    }

    /// Reads as [`read`](Self::read) does with [`CallOrder::ByThread`], long traces with two threads.
    pub fn read_parallel<W: ParallelVisitor>(
        &mut self,
        paths: &[impl AsRef<Path>],
        visitor: &mut W,
    ) -> Result<(), FileError> {
        self.read_each(paths, visitor, Self::trace_parallel)
    }

    /// Judges the last call of every thread and shows the calls that were held back; with [`ReadOptions::follow`] all but
    /// those that have not ended.
    pub fn finish<W: CallVisitor + ?Sized>(&mut self, visitor: &mut W) {
        for process in &mut self.processes {
            for ring in process.rings() {
                if self.options.follow {
                    process.settle(ring, visitor);
                } else {
                    process.finish(ring, visitor);
                }
            }
        }
    }

    fn read_each<W: CallVisitor + ?Sized>(
        &mut self,
        paths: &[impl AsRef<Path>],
        visitor: &mut W,
        read: impl Fn(&mut Self, &Path, &mut W) -> Result<(), Cause>,
    ) -> Result<(), FileError> {
        let sources = self.sources(paths)?;
        if self.options.order == CallOrder::ByThreadNamesFirst {
            sources.traces.iter().for_each(|trace| self.names_in(trace));
            sources.rings.iter().for_each(|snapshot| self.names_of(snapshot));
        }
        for trace in sources.traces {
            if let Err(cause) = read(self, &trace, visitor) {
                self.failed(paths, trace, cause)?;
            }
        }
        for snapshot in sources.rings {
            self.snapshot(snapshot, visitor);
        }
        Ok(())
    }

    /// A trace could not be read: an error if it was the only path, else one of the troubles.
    fn failed(&mut self, paths: &[impl AsRef<Path>], trace: PathBuf, cause: Cause) -> Result<(), FileError> {
        if let [only] = paths
            && only.as_ref() == trace
        {
            return Err(FileError { path: trace, cause });
        }
        self.trouble(trace, cause);
        Ok(())
    }

    /// What there is to read under all paths, each trace once.
    fn sources(&mut self, paths: &[impl AsRef<Path>]) -> Result<Sources, FileError> {
        let mut all = Sources::default();
        for path in paths.iter().map(AsRef::as_ref) {
            let Sources { rings, traces } =
                self.sources_of(path).map_err(|cause| FileError { path: path.to_owned(), cause })?;
            if rings.is_empty() && traces.is_empty() && !self.nothing_in.iter().any(|known| known == path) {
                self.nothing_in.push(path.to_owned());
            }
            all.rings.extend(rings);
            all.traces.extend(traces);
        }
        all.traces = source::in_segment_order(all.traces);
        Ok(all)
    }

    /// What there is to read under a path. Rings come first: a record that is drained meanwhile is then in the trace, and is
    /// read there.
    fn sources_of(&mut self, path: &Path) -> Result<Sources, Cause> {
        if path.exists() && !path.is_dir() {
            if source::is_trace(path) {
                return Ok(Sources { rings: Vec::new(), traces: vec![path.to_owned()] });
            }
            let ring = RingReader::open(path).map_err(Cause::RingFile)?;
            return Ok(Sources { rings: vec![self.take(&ring)], traces: Vec::new() });
        }
        let folders = self.options.ring_folders.clone().into_iter().chain([path.to_owned()]);
        let found = rings_in(folders, path, |ring| writes_to(ring, path)).map_err(Cause::Directory)?;
        let mut rings = Vec::new();
        for ring in found {
            match ring {
                FoundRing::Counts(ring) => rings.push(self.take(&ring)),
                FoundRing::Ignored(ring) => _ = self.ignored.insert(ring),
                FoundRing::Unreadable(FileError { path, cause }) => self.trouble(path, cause),
            }
        }
        Ok(Sources { rings, traces: source::traces_in(path).map_err(Cause::Directory)? })
    }

    /// Copies a ring file, and notes what could not be copied.
    fn take(&mut self, ring: &RingReader) -> Snapshot {
        let (snapshot, wrong) = Snapshot::take(ring, self.options.follow);
        if let Some(cause) = wrong {
            self.trouble(ring.path.clone(), cause);
        }
        snapshot
    }

    fn trouble(&mut self, path: PathBuf, cause: Cause) {
        let text = cause.to_string();
        if !self.troubles.iter().any(|known| known.path == path && known.cause.to_string() == text) {
            self.troubles.push(FileError { path, cause });
        }
    }

    /// The number of the process that a header describes.
    fn number(&mut self, origin: &Origin) -> usize {
        let next = self.processes.len();
        let number = *self.numbers.entry(process_key(origin)).or_insert(next);
        if number == next {
            self.processes.push(Process::new(origin.clone(), number));
        }
        number
    }

    /// Opens a trace where reading stopped the last time, and finds its process.
    fn open(&mut self, path: &Path) -> Result<Trace, Cause> {
        let file = File::open(path).map_err(Cause::Io)?;
        let mut reader = SegmentReader::open(BufReader::with_capacity(BUFFER, file)).map_err(Cause::TraceStart)?;
        let origin = Origin::from_bytes(&reader.header).ok_or(Cause::ShortHeader)?;
        // After a reboot only the file knows the pace of its ticks: if the clock in its header does not say, its last moment
        // gives the best estimate.
        let is_known = origin.knows_its_pace || origin.is_of_this_boot == Some(true);
        let moment = if is_known { None } else { last_moment(path) }.unwrap_or_default();
        let origin = Origin::with_moment(&reader.header, moment).unwrap_or(origin);
        let process = self.number(&origin);
        let known = &mut self.processes[process];
        known.evicted = known.evicted.max(reader.preamble.evicted);
        if let Some(offset) = self.read.get(path) {
            reader.go_to(*offset).map_err(Cause::Io)?;
        }
        Ok(Trace { reader, process, moment })
    }

    fn trace<W: CallVisitor + ?Sized>(&mut self, path: &Path, visitor: &mut W) -> Result<(), Cause> {
        let trace = self.open(path)?;
        self.rest(path, trace, visitor);
        Ok(())
    }

    /// Reads a trace, with two threads if it is long, of the present version and as far as it is intact.
    fn trace_parallel<W: ParallelVisitor>(&mut self, path: &Path, visitor: &mut W) -> Result<(), Cause> {
        let mut trace = self.open(path)?;
        let good = trace.reader.good();
        let is_parallel = read_ahead::is_long(&trace.reader) && trace.reader.is_present_version();
        if is_parallel && !self.options.follow {
            let (process, moment) = (&mut self.processes[trace.process], trace.moment);
            let progress = Progress { report: self.options.progress.as_mut(), reported: good };
            let turn = parallel::Turn { process, visitor, progress, moment, good, blocks: 0 };
            let good = parallel::read(trace.reader.get_ref().get_ref(), turn);
            trace.reader.go_to(good).map_err(Cause::Io)?;
        }
        self.rest(path, trace, visitor);
        Ok(())
    }

    /// Reads a trace to its end.
    fn rest<W: CallVisitor + ?Sized>(&mut self, path: &Path, trace: Trace, visitor: &mut W) {
        let Trace { mut reader, process, moment } = trace;
        let process = &mut self.processes[process];
        let mut progress = Progress { report: self.options.progress.as_mut(), reported: reader.good() };
        read_ahead::each(&mut reader, self.options.follow, |block, good| {
            progress.at(good);
            if block.head.kind == kind::SLOTS {
                process.next_in_file(block.head.ring, visitor);
                process.add(&block.head, &block.as_slots(), From::Trace, visitor);
                process.block(&block.head);
            } else {
                learn(process, block, moment);
            }
        });
        self.read.insert(path.to_owned(), reader.good());
        self.damaged(path, &reader);
    }

    /// Learns the names in a trace. Damage is reported by the second pass.
    fn names_in(&mut self, path: &Path) {
        let Ok(Trace { mut reader, process, .. }) = self.open(path) else { return };
        loop {
            match reader.next_block() {
                Ok(Some(block)) if block.head.kind == kind::SLOTS => self.processes[process].names(&block),
                Ok(Some(_)) | Err(_) => {}
                Ok(None) => break,
            }
        }
    }

    /// Learns the names in a ring.
    fn names_of(&mut self, snapshot: &Snapshot) {
        let number = self.number(&snapshot.origin);
        for (head, slots) in &snapshot.runs {
            self.processes[number].labels.learn_slots(head.first, slots);
        }
    }

    fn damaged(&mut self, path: &Path, reader: &SegmentReader<BufReader<File>>) {
        // While following, a block that is cut off is about to be written.
        let follow = self.options.follow;
        for damage in reader.damages().iter().filter(|damage| !(follow && damage.is_cut)) {
            self.trouble(path.to_owned(), Cause::Damaged(damage.clone()));
        }
    }

    fn snapshot<W: CallVisitor + ?Sized>(&mut self, snapshot: Snapshot, visitor: &mut W) {
        let process = self.process_of(&snapshot);
        for (head, slots) in &snapshot.runs {
            process.add(head, slots, From::Ring, visitor);
        }
    }

    /// Finds the process of a ring file and takes over what the file says about it, except for the slots.
    fn process_of(&mut self, snapshot: &Snapshot) -> &mut Process {
        let number = self.number(&snapshot.origin);
        let process = &mut self.processes[number];
        // The ring's own counts are newer than those in the trace.
        process.not_recorded = process.not_recorded.max(snapshot.not_recorded);
        process.notes_lost = process.notes_lost.max(snapshot.notes_lost);
        process.said_overwritten = process.said_overwritten.max(snapshot.overwritten);
        for (ring, first, slots) in &snapshot.lost {
            process.overwrote(*ring, *first, *slots);
        }
        process.write_failures = snapshot.write_failures;
        process.judge.learn(&snapshot.origin);
        if snapshot.liveness == Liveness::Alive {
            process.judge.modules().learn(Modules::of(&snapshot.origin.pid.to_string()));
        }
        process
    }
}
