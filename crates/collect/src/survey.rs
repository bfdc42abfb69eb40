//! Reading what processes have left: their traces in a directory, and the rings that name it.
//!
//! A record may be in both, if its drain ended between writing it and giving the slot back. It is read
//! once: by process, ring and number.

use crate::account::{Account, Sums};
use crate::adoption::is_gone;
use crate::judge::{Judge, Told};
use crate::modules::Modules;
use aclshim_facts::Function;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, Reading, RingFile, Unreadable};
use aclshim_trace::record::{Call, Entry, REFUSED, decode};
use aclshim_trace::segment::kind;
use aclshim_trace::segment_reader::{Block, SegmentReader};
use aclshim_trace::slot::Words;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// What is known of one process.
pub struct Process {
    /// Who it is.
    pub origin: Origin,
    /// What its calls add up to.
    pub account: Account,
    /// Calls that were forwarded and not recorded.
    pub not_recorded: u64,
    /// Slots that were overwritten before they were given back, as is said.
    said_overwritten: u64,
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
    functions: Vec<Option<Function>>,
    /// Where each ring's trace ends.
    rings: BTreeMap<u32, u64>,
    /// The last two blocks of each ring's trace.
    blocks: BTreeMap<u32, [Range<u64>; 2]>,
    /// The thread that writes to each ring.
    threads: BTreeMap<u32, u32>,
}

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

impl Process {
    fn new(origin: Origin) -> Self {
        let judge = Judge::new(&origin);
        Self {
            functions: origin.functions.iter().map(|name| Function::by_name(name)).collect(),
            origin,
            account: Account::default(),
            not_recorded: 0,
            said_overwritten: 0,
            written_before: 0,
            write_failures: 0,
            evicted: 0,
            slots: [0; 2],
            findings: Vec::new(),
            judge,
            rings: BTreeMap::new(),
            blocks: BTreeMap::new(),
            threads: BTreeMap::new(),
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

    /// Takes note of a block that the trace holds.
    fn block(&mut self, ring: u32, first: u64, slots: usize) {
        let last = self.blocks.entry(ring).or_insert([0..0, 0..0]);
        last.swap(0, 1);
        last[1] = first..first + slots as u64;
    }

    /// Slots that are said to be overwritten may be in the trace for all that, if its drain ended between writing a
    /// block and giving it back.
    fn lost(&mut self, ring: u32, first: u64, slots: u64) {
        let lost = first..first.saturating_add(slots);
        let common = |block: &Range<u64>| block.end.min(lost.end).saturating_sub(block.start.max(lost.start));
        self.written_before += self.blocks.get(&ring).map_or(0, |blocks| blocks.iter().map(common).sum());
    }

    /// Adds consecutive slots of a ring, as far as they are new.
    fn add(&mut self, ring: u32, first: u64, slots: &[Words], from: From) {
        let mut at = 0;
        while let Some(rest) = slots.get(at..).filter(|rest| !rest.is_empty()) {
            let number = first + at as u64;
            let Some((entry, count)) = decode(rest, number) else {
                at += 1;
                continue;
            };
            let end = self.rings.entry(ring).or_default();
            if number >= *end {
                *end = number + count as u64;
                self.slots[from as usize] += count as u64;
                let function = match &entry {
                    Entry::Call(call) => self.functions.get(usize::from(call.function)),
                    _ => None,
                };
                let function = function.copied().flatten();
                self.account.add(ring, &entry, function, self.origin.calibration.as_ref());
                self.judge(ring, Some((entry, function)));
            }
            at += count;
        }
    }

    /// Judges what an entry tells of; at the end, without one, what is still held.
    fn judge(&mut self, ring: u32, entry: Option<(Entry, Option<Function>)>) {
        let thread = self.threads.get(&ring).copied().unwrap_or(0);
        let clock = self.origin.calibration;
        let found = |function: Function, call: &Call, told: Told| Found {
            told,
            function,
            thread,
            number: call.number,
            time_ns: clock.map(|clock| clock.at_ns(call.begin)),
            site: call.site,
            returned: call.end.map(|end| end.code),
            is_refused: call.flags & REFUSED != 0,
        };
        let mut tell = |function: Function, call: &Call, told| self.findings.push(found(function, call, told));
        let Some((entry, function)) = entry else { return self.judge.settle(ring, &mut tell) };
        match (entry, function) {
            (Entry::Thread { id, .. }, _) => _ = self.threads.insert(ring, id),
            (Entry::Finding { of, finding }, _) => self.judge.note(ring, of, finding, &mut tell),
            (Entry::Stack { of, frames }, _) => self.judge.stack(ring, of, frames),
            (Entry::Call(call), Some(function)) => self.judge.take(ring, function, &call, &mut tell),
            _ => {}
        }
    }

    /// Judges what is still held.
    fn settle(&mut self) {
        let rings: Vec<u32> = self.rings.keys().copied().collect();
        for ring in rings {
            self.judge(ring, None);
        }
    }
}

#[derive(Clone, Copy)]
enum From {
    Trace = 0,
    Ring = 1,
}

/// What was read, and what could not be.
#[derive(Default)]
pub struct Survey {
    /// By process and birth.
    processes: BTreeMap<Key, Process>,
    /// What a person should know: a file and what is wrong with it.
    pub troubles: Vec<(PathBuf, String)>,
}

type Key = (String, u32, u64);

fn key(origin: &Origin) -> Key {
    (origin.boot_id.clone(), origin.pid, origin.born_ns)
}

impl Survey {
    /// The processes that were found.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    /// Judges the last call of every thread, once everything has been read.
    pub fn settle(&mut self) {
        self.processes.values_mut().for_each(Process::settle);
    }

    /// Reads a trace, a ring, or a directory: its traces, and the rings in `ring_folders` and in itself whose
    /// processes write there.
    pub fn read(&mut self, path: &Path, ring_folders: &[PathBuf]) -> Result<(), String> {
        if path.exists() && !path.is_dir() {
            return match path.extension().and_then(|extension| extension.to_str()) {
                Some("acltrace") => self.trace(path),
                _ => self.ring(path).map_err(|why| why.to_string()),
            };
        }
        // First the rings: a record that is drained meanwhile is then in the trace, and read there.
        let folders: BTreeSet<PathBuf> =
            ring_folders.iter().chain([&path.to_owned()]).filter_map(|folder| folder.canonicalize().ok()).collect();
        let mut rings = Vec::new();
        for file in folders.iter().filter_map(|folder| reader::files(folder).ok()).flatten() {
            match RingFile::open(&file) {
                Ok(ring) if same_folder(&Origin::new(ring.header()).dir, path) => rings.push(ring),
                // Somebody else's file, or one that is just being made, is none of our business.
                Ok(_) | Err(Unreadable::NotOurs | Unreadable::Io(_)) => {}
                Err(why) => self.troubles.push((file, why.to_string())),
            }
        }
        let read: Vec<_> = rings.into_iter().map(Snapshot::take).collect();
        let mut traces: Vec<PathBuf> = std::fs::read_dir(path)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "acltrace"))
            // An empty one is just being made, or whoever made it was killed: what it was for is in the ring.
            .filter(|path| !path.metadata().is_ok_and(|about| about.len() == 0))
            .collect();
        self.sort(&mut traces);
        for trace in traces {
            if let Err(why) = self.trace(&trace) {
                self.troubles.push((trace, why));
            }
        }
        read.into_iter().for_each(|snapshot| self.snapshot(snapshot));
        Ok(())
    }

    /// By process and number of the segment, not by name: the tenth comes after the second.
    fn sort(&mut self, traces: &mut [PathBuf]) {
        traces.sort_by_cached_key(|path| {
            let opened = File::open(path).ok().and_then(|file| SegmentReader::open(file).ok());
            opened.map(|opened| (opened.preamble.first_ns, opened.preamble.segment))
        });
    }

    fn trace(&mut self, path: &Path) -> Result<(), String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut reader =
            SegmentReader::open(BufReader::with_capacity(1 << 20, file)).map_err(|stop| stop.to_string())?;
        let origin = Origin::from_bytes(&reader.header).ok_or("the header is too short")?;
        // Of another boot nobody knows the pace of the ticks but the file, and best by its last moment.
        let moment = if origin.is_of_this_boot() { None } else { last_moment(path) };
        let origin_of = |header: &[u8]| Origin::with_moment(header, moment.unwrap_or_default());
        let process = self.processes.entry(key(&origin));
        let process = process.or_insert_with(|| Process::new(origin_of(&reader.header).unwrap_or(origin)));
        process.evicted = process.evicted.max(reader.preamble.evicted);
        loop {
            match reader.next_block() {
                Ok(Some(block)) => {
                    let head = block.head;
                    if head.kind == kind::SLOTS {
                        process.threads.entry(head.ring).or_insert(head.thread);
                        let slots: Vec<Words> = block.slots().collect();
                        process.add(head.ring, head.first, &slots, From::Trace);
                        process.block(head.ring, head.first, slots.len());
                    } else if head.kind == kind::LOSS
                        && let Some(slots) = block.payload.first_chunk()
                    {
                        process.lost(head.ring, head.first, u64::from_le_bytes(*slots));
                    } else if head.kind == kind::HEADER {
                        process.origin = origin_of(&block.payload).unwrap_or_else(|| process.origin.clone());
                        process.judge.learn(&process.origin);
                    } else if head.kind == kind::MODULES {
                        process.judge.modules().learn(Modules::from_bytes(&block.payload));
                    } else if head.kind == kind::TOTALS
                        && let Some([not_recorded, overwritten]) = totals(&block.payload)
                    {
                        process.not_recorded = process.not_recorded.max(not_recorded);
                        process.said_overwritten = process.said_overwritten.max(overwritten);
                    }
                }
                Ok(None) => break,
                Err(_) => {} // goes on behind it
            }
        }
        self.troubles.extend(reader.damages().iter().map(|damage| (path.to_owned(), damage.to_string())));
        Ok(())
    }

    fn ring(&mut self, path: &Path) -> Result<(), Unreadable> {
        let snapshot = Snapshot::take(RingFile::open(path)?);
        self.snapshot(snapshot);
        Ok(())
    }

    fn snapshot(&mut self, snapshot: Snapshot) {
        let process =
            self.processes.entry(key(&snapshot.origin)).or_insert_with(|| Process::new(snapshot.origin.clone()));
        // The ring's own counts are newer than what the trace tells of them.
        process.not_recorded = process.not_recorded.max(snapshot.not_recorded);
        process.said_overwritten = process.said_overwritten.max(snapshot.overwritten);
        for (ring, first, slots) in snapshot.lost {
            process.lost(ring, first, slots);
        }
        process.write_failures = snapshot.write_failures;
        process.judge.learn(&snapshot.origin);
        if snapshot.origin.is_of_this_boot() && !is_gone(&snapshot.origin) {
            process.judge.modules().learn(Modules::of(&snapshot.origin.pid.to_string()));
        }
        for (ring, first, slots) in &snapshot.runs {
            process.add(*ring, *first, slots, From::Ring);
        }
    }
}

/// The last moment that a trace tells of behind its header: ticks, realtime and monotonic.
fn last_moment(path: &Path) -> Option<[u64; 3]> {
    let reader = SegmentReader::open(BufReader::with_capacity(1 << 20, File::open(path).ok()?)).ok()?;
    let blocks = reader.filter_map(Result::ok).filter(|block| block.head.kind == kind::CALIBRATION);
    let moment = |block: Block| {
        let monotonic = u64::from_le_bytes(*block.payload.first_chunk()?);
        Some([block.head.ticks, block.head.realtime_ns, monotonic])
    };
    blocks.filter_map(moment).last()
}

/// What a block of totals holds.
fn totals(payload: &[u8]) -> Option<[u64; 2]> {
    let (words, _) = payload.as_chunks::<8>();
    Some([u64::from_le_bytes(*words.first()?), u64::from_le_bytes(*words.get(1)?)])
}

/// What a ring file held at one moment.
struct Snapshot {
    origin: Origin,
    write_failures: u64,
    not_recorded: u64,
    overwritten: u64,
    /// What was overwritten since: the ring, the first number, and how many.
    lost: Vec<(u32, u64, u64)>,
    runs: Vec<(u32, u64, Vec<Words>)>,
}

impl Snapshot {
    fn take(mut file: RingFile) -> Self {
        let rings = file.look_for_rings();
        let mut snapshot = Self {
            origin: Origin::new(file.header()),
            write_failures: file.header().write_failures.load(Ordering::Relaxed),
            not_recorded: file.header().not_recorded.load(Ordering::Relaxed),
            overwritten: 0,
            lost: Vec::new(),
            runs: Vec::new(),
        };
        for number in 0..rings {
            let Some(ring) = file.ring(number) else { continue };
            let mut from = ring.control.drained.load(Ordering::Acquire);
            let end = ring.end(from);
            while from < end {
                let run = ring.read(from, Reading::Look, usize::MAX);
                snapshot.overwritten += run.overwritten;
                snapshot.lost.push((number as u32, from, run.overwritten));
                if run.next == from {
                    break;
                }
                from = run.next;
                snapshot.runs.push((number as u32, run.first, run.slots));
            }
            snapshot.not_recorded += ring.control.not_recorded.load(Ordering::Relaxed);
            snapshot.overwritten += ring.control.overwritten.load(Ordering::Relaxed);
        }
        snapshot
    }
}

/// Whether two paths name one folder, which may not exist: a process that has nothing to write
/// does not make it.
fn same_folder(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.into());
    real(a) == real(b)
}
