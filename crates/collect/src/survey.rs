//! Reading what processes have left: their traces in a directory, and the rings that name it.
//!
//! A record may be in both, if its drain ended between writing it and giving the slot back. It is read
//! once: by process, ring and number.

use crate::life::{self, Life};
use crate::modules::Modules;
use crate::ownership::{Ignored, Owners};
use crate::process::From;
pub use crate::process::{Found, Process};
use crate::seen::{Abreast, Nobody, Watch};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, ReadMode, RingFileError, RingReader};
use aclshim_trace::record::slot::{self, State, Words};
use aclshim_trace::segment::format::{BlockHead, kind};
use aclshim_trace::segment::order::SegmentOrder;
use aclshim_trace::segment::reader::{Block, SegmentReader};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

mod abreast;
mod ahead;
mod order;

/// What was read, and what could not be.
#[derive(Default)]
pub struct Survey {
    processes: Vec<Process>,
    /// Their numbers, by boot, process and birth.
    numbers: BTreeMap<Key, usize>,
    /// How far each trace has been read.
    read: BTreeMap<PathBuf, u64>,
    /// Whether more is awaited: what is half there is left for the next time.
    pub follows: bool,
    /// Whether what programs call things is looked for before any call is shown; in the order of time it always is.
    pub names_first: bool,
    /// Is told now and then how many bytes of traces were read since.
    pub progress: Option<Box<dyn FnMut(u64) + Send>>,
    /// Paths that there was nothing to read under.
    pub nothing_in: Vec<PathBuf>,
    /// Rings of other users that name what is read: they do not count.
    pub ignored: BTreeSet<Ignored>,
    /// What a person should know: a file and what is wrong with it.
    pub troubles: Vec<(PathBuf, String)>,
}

type Key = (String, u32, u64);

/// What is read at once besides the slots of a block, which go past it.
const BUFFER: usize = 1 << 13;
/// So many bytes are read between two words about progress.
const STEP: u64 = 1 << 24;
/// Slots that a ring file may tell of beyond twice of what is written in it.
const SPARE: usize = 1 << 16;

fn key(origin: &Origin) -> Key {
    (origin.boot_id.clone(), origin.pid, origin.born_ns)
}

/// What there is to read.
#[derive(Default)]
struct Sources {
    rings: Vec<Snapshot>,
    traces: Vec<PathBuf>,
}

impl Survey {
    /// The processes that were found.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter()
    }

    /// The process with that number.
    pub fn process(&self, number: usize) -> Option<&Process> {
        self.processes.get(number)
    }

    /// Judges the last call of every thread, once everything has been read.
    pub fn settle(&mut self) {
        self.finish(&mut Nobody);
    }

    /// The same, and hands on what was held.
    pub fn finish<W: Watch + ?Sized>(&mut self, watch: &mut W) {
        for process in &mut self.processes {
            for ring in process.rings() {
                process.finish(ring, watch);
            }
        }
    }

    /// The same but for calls that have not ended: more is awaited.
    pub fn pause<W: Watch + ?Sized>(&mut self, watch: &mut W) {
        for process in &mut self.processes {
            for ring in process.rings() {
                process.settle(ring, watch);
            }
        }
    }

    /// Reads a trace, a ring, or a directory: its traces, and the rings in `ring_folders` and in itself whose
    /// processes write there. Done once more, it reads what is new.
    pub fn read(&mut self, path: &Path, ring_folders: &[PathBuf]) -> Result<(), String> {
        self.watch(path, ring_folders, &mut Nobody)
    }

    /// The same, and shows every call.
    pub fn watch<W: Watch + ?Sized>(
        &mut self,
        path: &Path,
        ring_folders: &[PathBuf],
        watch: &mut W,
    ) -> Result<(), String> {
        self.watch_all(&[path.to_owned()], ring_folders, watch)
    }

    /// The same of many paths. In which order they are given does not matter, nor whether they overlap.
    pub fn watch_all<W: Watch + ?Sized>(
        &mut self,
        paths: &[PathBuf],
        ring_folders: &[PathBuf],
        watch: &mut W,
    ) -> Result<(), String> {
        self.watch_each(paths, ring_folders, watch, Self::trace)
    }

    /// The same with two threads, for whoever only adds up.
    pub fn add_up<W: Abreast>(
        &mut self,
        paths: &[PathBuf],
        ring_folders: &[PathBuf],
        watch: &mut W,
    ) -> Result<(), String> {
        self.watch_each(paths, ring_folders, watch, Self::trace_abreast)
    }

    fn watch_each<W: Watch + ?Sized>(
        &mut self,
        paths: &[PathBuf],
        ring_folders: &[PathBuf],
        watch: &mut W,
        read: impl Fn(&mut Self, &Path, &mut W) -> Result<(), String>,
    ) -> Result<(), String> {
        let sources = self.all_sources(paths, ring_folders)?;
        if self.names_first {
            sources.traces.iter().for_each(|trace| self.names_in(trace));
            sources.rings.iter().for_each(|snapshot| self.names_of(snapshot));
        }
        for trace in &sources.traces {
            match read(self, trace, watch) {
                Err(why) if paths == [trace.clone()] => return Err(why),
                Err(why) => self.trouble(trace.clone(), why),
                Ok(()) => {}
            }
        }
        for snapshot in sources.rings {
            self.snapshot(snapshot, watch);
        }
        Ok(())
    }

    /// What there is to read under all paths, each file once.
    fn all_sources(&mut self, paths: &[PathBuf], ring_folders: &[PathBuf]) -> Result<Sources, String> {
        let mut all = Sources::default();
        for path in paths {
            let said = |why: String| if paths.len() == 1 { why } else { format!("{}: {why}", path.display()) };
            let Sources { rings, traces } = self.sources(path, ring_folders).map_err(said)?;
            if rings.is_empty() && traces.is_empty() && !self.nothing_in.contains(path) {
                self.nothing_in.push(path.clone());
            }
            all.rings.extend(rings);
            all.traces.extend(traces);
        }
        let mut known = BTreeSet::new();
        all.traces.retain(|path| known.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
        // By process and turn of the segment, not by name: the tenth comes after the second.
        let mut traces = Vec::new();
        let mut begins = BTreeMap::new();
        for path in all.traces {
            let opened = File::open(&path).ok().and_then(|file| SegmentReader::open(BufReader::new(file)).ok());
            let found = opened.and_then(|mut opened| {
                let whose = key(&Origin::from_bytes(&opened.header)?);
                let begin: &mut u64 = begins.entry(whose.clone()).or_insert(u64::MAX);
                *begin = opened.preamble.first_ns.min(*begin);
                Some((whose, SegmentOrder::of(&mut opened)))
            });
            traces.push((found, path));
        }
        traces.sort_by_cached_key(|(found, _)| {
            found.as_ref().map(|(whose, turn)| (begins.get(whose).copied(), whose.clone(), *turn))
        });
        all.traces = traces.into_iter().map(|(_, path)| path).collect();
        Ok(all)
    }

    /// What there is to read. First the rings: a record that is drained meanwhile is then in the trace, and read there.
    fn sources(&mut self, path: &Path, ring_folders: &[PathBuf]) -> Result<Sources, String> {
        if path.exists() && !path.is_dir() {
            return match path.extension().and_then(|extension| extension.to_str()) {
                Some("acltrace") => Ok(Sources { rings: Vec::new(), traces: vec![path.to_owned()] }),
                _ => {
                    let ring = RingReader::open(path).map_err(|why| why.to_string())?;
                    Ok(Sources { rings: vec![self.take(&ring)], traces: Vec::new() })
                }
            };
        }
        let folders: BTreeSet<PathBuf> =
            ring_folders.iter().chain([&path.to_owned()]).filter_map(|folder| folder.canonicalize().ok()).collect();
        let owners = Owners::of(path).map_err(|why| format!("it cannot be read: {why}"))?;
        let mut rings = Vec::new();
        for file in folders.iter().filter_map(|folder| reader::files(folder).ok()).flatten() {
            match RingReader::open(&file) {
                Ok(ring) if same_folder(&Origin::new(ring.header()).dir, path) => match ring.owner() {
                    Ok(uid) if owners.has(uid) => rings.push(self.take(&ring)),
                    Ok(uid) => _ = self.ignored.insert(Ignored { path: file, uid }),
                    Err(why) => self.trouble(file, why.to_string()),
                },
                // Somebody else's file, or one that is just being made or removed, is none of our business.
                Ok(_) | Err(RingFileError::NotOurs) => {}
                Err(RingFileError::Io(why))
                    if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {}
                Err(why) => self.trouble(file, why.to_string()),
            }
        }
        let entries = match std::fs::read_dir(path) {
            // Who has nothing to write does not make it.
            Err(why) if why.kind() == ErrorKind::NotFound => None,
            entries => Some(entries.map_err(|why| format!("it cannot be read: {why}"))?),
        };
        let traces = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "acltrace"))
            // An empty one is just being made, or whoever made it was killed: what it was for is in the ring.
            // (And nothing but a file is opened: a FIFO would stop us.)
            .filter(|path| path.metadata().is_ok_and(|about| about.is_file() && about.len() > 0))
            .collect();
        Ok(Sources { rings, traces })
    }

    /// Copies a ring file, and says if not all of it could be.
    fn take(&mut self, ring: &RingReader) -> Snapshot {
        let (snapshot, wrong) = Snapshot::take(ring, self.follows);
        if let Some(why) = wrong {
            self.trouble(ring.path.clone(), why);
        }
        snapshot
    }

    fn trouble(&mut self, file: PathBuf, why: String) {
        if !self.troubles.iter().any(|(known, said)| *known == file && *said == why) {
            self.troubles.push((file, why));
        }
    }

    /// The number of the process that a header describes.
    fn number(&mut self, origin: &Origin) -> usize {
        let next = self.processes.len();
        let number = *self.numbers.entry(key(origin)).or_insert(next);
        if number == next {
            self.processes.push(Process::new(origin.clone(), number));
        }
        number
    }

    /// Opens a trace where it was left, and the process that it is of.
    fn open(&mut self, path: &Path) -> Result<Trace, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut reader =
            SegmentReader::open(BufReader::with_capacity(BUFFER, file)).map_err(|stop| stop.to_string())?;
        let origin = Origin::from_bytes(&reader.header).ok_or("the header is too short")?;
        // Of another boot nobody knows the pace of the ticks but the file: where its clock does not tell, best by its last
        // moment.
        let is_known = origin.knows_its_pace || origin.is_of_this_boot == Some(true);
        let moment = if is_known { None } else { last_moment(path) }.unwrap_or_default();
        let origin = Origin::with_moment(&reader.header, moment).unwrap_or(origin);
        let process = self.number(&origin);
        let known = &mut self.processes[process];
        known.evicted = known.evicted.max(reader.preamble.evicted);
        if let Some(offset) = self.read.get(path) {
            reader.go_to(*offset).map_err(|error| error.to_string())?;
        }
        Ok(Trace { reader, process, moment })
    }

    fn trace<W: Watch + ?Sized>(&mut self, path: &Path, watch: &mut W) -> Result<(), String> {
        let trace = self.open(path)?;
        self.rest(path, trace, watch);
        Ok(())
    }

    /// The same with two threads, as far as all is well and there is much of it.
    fn trace_abreast<W: Abreast>(&mut self, path: &Path, watch: &mut W) -> Result<(), String> {
        let mut trace = self.open(path)?;
        let good = trace.reader.good();
        if ahead::is_much(&trace.reader) && !self.follows {
            let (process, moment) = (&mut self.processes[trace.process], trace.moment);
            let progress = Progress { tell: self.progress.as_mut(), told: good };
            let turn = abreast::Turn { process, watch, progress, moment, good, blocks: 0 };
            let good = abreast::read(trace.reader.get_ref().get_ref(), turn);
            trace.reader.go_to(good).map_err(|error| error.to_string())?;
        }
        self.rest(path, trace, watch);
        Ok(())
    }

    /// Reads a trace on to its end.
    fn rest<W: Watch + ?Sized>(&mut self, path: &Path, trace: Trace, watch: &mut W) {
        let Trace { mut reader, process, moment } = trace;
        let process = &mut self.processes[process];
        let mut progress = Progress { tell: self.progress.as_mut(), told: reader.good() };
        ahead::each(&mut reader, self.follows, |block, good| {
            progress.at(good);
            if block.head.kind == kind::SLOTS {
                add_slots(process, &block.head, &block.as_slots(), watch);
                process.block(&block.head);
            } else {
                learn(process, block, moment);
            }
        });
        self.read.insert(path.to_owned(), reader.good());
        self.damaged(path, &reader);
    }

    /// Takes over what a trace tells of names; what is wrong with it is said later.
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

    /// The same of a ring.
    fn names_of(&mut self, snapshot: &Snapshot) {
        let number = self.number(&snapshot.origin);
        for (_, first, slots) in &snapshot.runs {
            self.processes[number].labels.learn_slots(*first, slots);
        }
    }

    fn damaged(&mut self, path: &Path, reader: &SegmentReader<BufReader<File>>) {
        // If more is awaited, what is cut off is only about to be written.
        let follows = self.follows;
        for damage in reader.damages().iter().filter(|damage| !(follows && damage.is_cut)) {
            self.trouble(path.to_owned(), damage.to_string());
        }
    }

    fn snapshot<W: Watch + ?Sized>(&mut self, snapshot: Snapshot, watch: &mut W) {
        let process = self.meet(&snapshot);
        for (ring, first, slots) in &snapshot.runs {
            process.add(*ring, *first, slots, From::Ring, watch);
        }
    }

    /// Takes over what a ring file tells of its process, but for the slots.
    fn meet(&mut self, snapshot: &Snapshot) -> &mut Process {
        let number = self.number(&snapshot.origin);
        let process = &mut self.processes[number];
        // The ring's own counts are newer than what the trace tells of them.
        process.not_recorded = process.not_recorded.max(snapshot.not_recorded);
        process.notes_lost = process.notes_lost.max(snapshot.notes_lost);
        process.said_overwritten = process.said_overwritten.max(snapshot.overwritten);
        for (ring, first, slots) in &snapshot.lost {
            process.overwrote(*ring, *first, *slots);
        }
        process.write_failures = snapshot.write_failures;
        process.judge.learn(&snapshot.origin);
        if snapshot.life == Life::Alive {
            process.judge.modules().learn(Modules::of(&snapshot.origin.pid.to_string()));
        }
        process
    }
}

/// Who is told now and then how far a trace was read.
struct Progress<'a> {
    tell: Option<&'a mut Box<dyn FnMut(u64) + Send>>,
    /// How far that was said.
    told: u64,
}

impl Progress<'_> {
    fn at(&mut self, good: u64) {
        if let Some(tell) = self.tell.as_mut().filter(|_| good - self.told >= STEP) {
            tell(good - self.told);
            self.told = good;
        }
    }
}

/// A trace that is being read.
struct Trace {
    reader: SegmentReader<BufReader<File>>,
    process: usize,
    /// Its last moment, where that tells the pace of the ticks.
    moment: [u64; 3],
}

/// Takes a block of slots.
fn add_slots<W: Watch + ?Sized>(process: &mut Process, head: &BlockHead, slots: &[Words], watch: &mut W) {
    process.thread(head, watch);
    process.add(head.ring, head.first, slots, From::Trace, watch);
}

/// Takes over what any other block tells of its process.
fn learn(process: &mut Process, block: &Block, moment: [u64; 3]) {
    match block.head.kind {
        kind::LOSS => {
            if let Some(slots) = block.payload.first_chunk() {
                process.overwrote(block.head.ring, block.head.first, u64::from_le_bytes(*slots));
            }
        }
        kind::HEADER => {
            if let Some(origin) = Origin::with_moment(&block.payload, moment) {
                process.renew(origin);
            }
        }
        kind::MODULES => _ = process.judge.modules().learn(Modules::from_bytes(&block.payload)),
        kind::TOTALS => {
            if let Some([not_recorded, overwritten, notes_lost]) = totals(&block.payload) {
                process.not_recorded = process.not_recorded.max(not_recorded);
                process.notes_lost = process.notes_lost.max(notes_lost);
                process.said_overwritten = process.said_overwritten.max(overwritten);
            }
        }
        _ => {}
    }
}

/// The last moment that a trace tells of behind its header: ticks, realtime and monotonic.
fn last_moment(path: &Path) -> Option<[u64; 3]> {
    // A small buffer: most of the file is passed over.
    let mut reader = SegmentReader::open(BufReader::with_capacity(512, File::open(path).ok()?)).ok()?;
    let mut last = None;
    while let Ok(Some(block)) = reader.next_without_slots() {
        if block.head.kind == kind::CALIBRATION
            && let Some(monotonic) = block.payload.first_chunk()
        {
            last = Some([block.head.ticks, block.head.realtime_ns, u64::from_le_bytes(*monotonic)]);
        }
    }
    last
}

/// What a block of totals holds.
fn totals(payload: &[u8]) -> Option<[u64; 3]> {
    let (words, _) = payload.as_chunks::<8>();
    let notes_lost = words.get(2).copied().unwrap_or_default();
    Some([*words.first()?, *words.get(1)?, notes_lost].map(u64::from_le_bytes))
}

/// What a ring file held at one moment.
struct Snapshot {
    origin: Origin,
    life: Life,
    write_failures: u64,
    not_recorded: u64,
    notes_lost: u64,
    overwritten: u64,
    /// What was overwritten since: the ring, the first number, and how many.
    lost: Vec<(u32, u64, u64)>,
    runs: Vec<(u32, u64, Vec<Words>)>,
}

impl Snapshot {
    /// `follows`: what has not ended, and what stands behind it, is left for the next time. Also says what is wrong with the
    /// file.
    fn take(file: &RingReader, follows: bool) -> (Self, Option<String>) {
        let origin = Origin::new(file.header());
        let life = life::of_ring(file.file(), &origin);
        let mut snapshot = Self {
            origin,
            life,
            write_failures: file.header().write_failures.load(Ordering::Relaxed),
            not_recorded: file.header().not_recorded.load(Ordering::Relaxed),
            notes_lost: 0,
            overwritten: 0,
            lost: Vec::new(),
            runs: Vec::new(),
        };
        let mut wrong = None;
        // A record of a call in flight may say that it is longer than what is written of it. In a file that is made to harm
        // that would add up to far more memory than the file itself takes.
        let mut left = SPARE;
        let waits = follows && life != Life::Gone;
        for number in 0..file.rings() {
            let copy = match file.ring(number) {
                Ok(Some(copy)) => copy,
                Ok(None) => continue,
                Err(why) => {
                    wrong = Some(format!("ring {number} cannot be read: {why}"));
                    continue;
                }
            };
            let ring = copy.ring();
            left += 2 * copy.written_count();
            let mut from = copy.drained;
            while from < copy.end {
                // To this end, not to that which is seen from there: in a damaged ring each would lie beyond the one before.
                let mut run = ring.read_to(copy.end, from, ReadMode::Peek, left);
                if run.next == from {
                    break;
                }
                run.slots.shrink_to_fit();
                left = left.saturating_sub(run.slots.len());
                if waits {
                    let is_open = |slot: &Words| slot::Head(slot[0]).state() == State::InFlight;
                    run.slots.truncate(run.slots.iter().position(is_open).unwrap_or(run.slots.len()));
                } else {
                    // What was given back in the meantime is in the trace, and its place was free.
                    let given_back = ring.control.drained.load(Ordering::Acquire);
                    let (first, lost) = not_read_by_anybody(from, run.overwritten, given_back);
                    snapshot.overwritten = snapshot.overwritten.saturating_add(lost);
                    snapshot.lost.push((number as u32, first, lost));
                }
                // What was skipped may only be about to be written.
                let is_skipped = run.first > from && run.overwritten == 0;
                if !(waits && is_skipped) {
                    snapshot.runs.push((number as u32, run.first, run.slots));
                }
                if waits {
                    break;
                }
                from = run.next;
            }
            let load = |count: &aclshim_trace::sync::AtomicU64| count.load(Ordering::Relaxed);
            snapshot.not_recorded = snapshot.not_recorded.saturating_add(load(&ring.control.not_recorded));
            snapshot.notes_lost = snapshot.notes_lost.saturating_add(load(&ring.control.notes_lost));
            snapshot.overwritten = snapshot.overwritten.saturating_add(load(&ring.control.overwritten));
        }
        if left == 0 {
            wrong = Some("its records say that they are longer than the file: the rest was not read".into());
        }
        (snapshot, wrong)
    }
}

/// Of the slots from number `from` on that were overwritten, those that nobody has given back: the first, and how many.
fn not_read_by_anybody(from: u64, overwritten: u64, given_back: u64) -> (u64, u64) {
    let end = from.saturating_add(overwritten);
    let first = given_back.clamp(from, end);
    (first, end - first)
}

/// Whether two paths name one folder, which may not exist: a process that has nothing to write
/// does not make it.
fn same_folder(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.into());
    real(a) == real(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_drain_gives_back_while_the_ring_is_read_is_not_lost() {
        assert_eq!(not_read_by_anybody(100, 0, 100), (100, 0), "nothing was overwritten");
        assert_eq!(not_read_by_anybody(100, 40, 100), (100, 40), "nobody drains");
        assert_eq!(not_read_by_anybody(100, 40, 130), (130, 10));
        assert_eq!(not_read_by_anybody(100, 40, 900), (140, 0), "it is far ahead of us");
        assert_eq!(not_read_by_anybody(100, 40, 7), (100, 40), "a damaged ring");
    }
}
