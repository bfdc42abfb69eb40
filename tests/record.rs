//! Every call is recorded as it was, or counted as not recorded, whatever the program does to itself.
//!
//! The programs call with arguments that follow from a lane (a flow of calls) and a number, and keep a page of truth about
//! how far each lane is. What was recorded is read back slot by slot, from the trace and from the ring, and each record
//! is compared with the call that it says it is.

mod support;

use aclshim_collect::format::kind;
use aclshim_collect::segment_reader::SegmentReader;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, Reading, RingFile};
use aclshim_trace::record::{Batch, Call, Entry, decode};
use aclshim_trace::slot::{Head, State, Words};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::ops::AddAssign;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use support::{Build, Output, Run, Stat, aclshim, has, host};

// ---- The programs, and what they say of themselves ----

/// A host whose addresses are the same in each of its processes, linked to the vendor that only answers.
fn patterned(source: &str) -> PathBuf {
    Build::new(source).arg("-no-pie").link("ascendcl").program()
}

/// The folder of that vendor.
fn vendor() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let library = BUILT.get_or_init(|| Build::new("hosts/record_vendor.c").library("ascendcl"));
    library.parent().unwrap().to_owned()
}

fn hammer() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| patterned("hosts/record_hammer.c")).clone()
}

/// A run of a patterned host with the shim.
fn watched(host: &Path) -> Run {
    Run::new(host).library_path(vendor()).shim()
}

/// Runs a patterned host without and with the shim; what it shows must be the same.
#[track_caller]
fn same(host: &Path, prepare: impl Fn(Run) -> Run) -> Output {
    let without = prepare(Run::new(host).library_path(vendor())).run();
    let with = prepare(watched(host)).run();
    assert_eq!(with.seen(), without.seen(), "with the shim, and without it");
    assert_ne!(with.status.signal(), Some(libc::SIGALRM), "hung: {with:?}");
    with
}

const LANES: usize = 2047;

/// What the host says of itself in the file `truth`.
struct Truth(Vec<u8>);

/// How far a lane is.
#[derive(Clone, Copy)]
struct Lane {
    begun: u64,
    ended: u64,
    thread: u64,
    process: u64,
}

impl Truth {
    fn of(folder: &Path) -> Self {
        Self(fs::read(folder.join("truth")).unwrap_or_default())
    }

    fn word(&self, at: usize) -> u64 {
        self.0.get(8 * at..8 * at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap()))
    }

    fn lane(&self, lane: usize) -> Lane {
        let [begun, ended, thread, process] = [0, 1, 2, 3].map(|at| self.word(8 + 8 * lane + at));
        Lane { begun, ended, thread, process }
    }

    fn lanes(&self) -> impl Iterator<Item = Lane> {
        (0..LANES).map(|lane| self.lane(lane)).filter(|lane| lane.begun > 0)
    }

    fn begun(&self) -> u64 {
        self.lanes().map(|lane| lane.begun).sum()
    }

    fn ended(&self) -> u64 {
        self.lanes().map(|lane| lane.ended).sum()
    }
}

// ---- The calls that the programs make: hosts/record_pattern.h and hosts/record_host.h, told again ----

fn mix(id: u64, salt: u64) -> u64 {
    let z = id.wrapping_add(salt.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

fn code_of(id: u64) -> i32 {
    let chance = mix(id, 99);
    if chance.is_multiple_of(251) { 100_000 + (chance % 1009) as i32 } else { 0 }
}

/// How many slots call number `n` takes.
fn slots_of(n: u64) -> u64 {
    match n % 7 {
        0..=3 => 1,
        4 | 5 => 2,
        _ => 3 + 1 + (1 + n % 5).div_ceil(2),
    }
}

/// Lane and number of a recorded call, if all of it is as the host made it.
fn identify(call: &Call, function: &str) -> Result<(usize, u64), String> {
    let id = call.arguments[if function == "aclrtMemcpyBatch" { 8 } else { 0 }];
    let (lane, n) = ((id >> 40 & 0xffff) as usize, id & 0xff_ffff_ffff);
    if id >> 56 != 0x5A || lane >= LANES {
        return Err(format!("no call of the host: {id:x}"));
    }
    let (src, count, stream) = (mix(id, 1), mix(id, 2) >> 20, mix(id, 3));
    let (kind, value) = (mix(id, 4) & 15, mix(id, 5) as i32);
    let low = |word: u64| word & 0xffff_ffff;
    let mut found = call.arguments;
    let (name, expected): (&str, Vec<u64>) = match n % 7 {
        0 => ("aclrtMemcpy", vec![id, count, src, count, kind]),
        1 => ("aclrtMemcpyAsync", vec![id, count, src, count, kind, stream]),
        2 => ("aclrtMemset", vec![id, count, low(value as u64), count]),
        3 => ("aclrtMemsetAsync", vec![id, count, low(value as u64), count, stream]),
        4 => ("aclrtMemcpyAsync", vec![id, count + 1 + (mix(id, 6) & 255), src, count, kind + 16, stream]),
        5 => ("aclrtMemcpy2dAsync", vec![id, mix(id, 6), src, mix(id, 7), mix(id, 8), mix(id, 9), kind, stream]),
        _ => {
            found[..4].fill(0); // where the host's arrays were is its own affair
            found[5..7].fill(0);
            ("aclrtMemcpyBatch", vec![0, 0, 0, 0, 1 + n % 5, 0, 0, 1, id])
        }
    };
    // Of narrow arguments the upper half is undefined.
    match n % 7 {
        0 | 1 | 4 => found[4] = low(found[4]),
        2 | 3 => found[2] = low(found[2]),
        5 => found[6] = low(found[6]),
        _ => {}
    }
    if (function, &found[..expected.len()]) != (name, &expected[..]) {
        return Err(format!("{function} {found:x?} instead of {name} {expected:x?}"));
    }
    let batch = (n % 7 == 6 && code_of(id) == 0 && call.end.is_some()).then(|| batch_of(id, n));
    if call.batch != batch {
        return Err(format!("{:?} instead of {batch:?}", call.batch));
    }
    Ok((lane, n))
}

fn batch_of(id: u64, n: u64) -> Batch {
    let size = |item: u64| 1 + (mix(id, 30 + item) & 0xffff);
    let sizes: Vec<u64> = (0..1 + n % 5).map(size).collect();
    let items = (0..1 + n % 5).map(|item| aclshim_trace::record::Item {
        dst: mix(id, 10 + item),
        src: mix(id, 20 + item),
        size: size(item),
        room: (mix(id, 40 + item) & 7) as i32,
    });
    Batch {
        total: sizes.iter().sum(),
        smallest: *sizes.iter().min().unwrap(),
        largest: *sizes.iter().max().unwrap(),
        too_large: 0,
        direction: Some((0, 1)),
        attributes: vec![aclshim_trace::record::Attribute { first: 0, dst: mix(id, 6) & 255, src: 1 << 32 }],
        items: items.collect(),
    }
}

// ---- Reading back ----

/// Slots that follow each other.
struct Piece {
    first: u64,
    slots: Vec<Words>,
    /// The thread, as the block in the trace or the ring says.
    thread: Option<u32>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }
}

/// Everything that is left of one process.
struct Left {
    origin: Origin,
    /// By ring, in order.
    rings: BTreeMap<u32, Vec<Piece>>,
    /// By ring: how many lost calls in-band records tell of, as the ring itself says.
    told: BTreeMap<u32, u64>,
    not_recorded: u64,
    /// Slots that were overwritten, as is said.
    overwritten: u64,
    /// Slots that are in the trace, and in the ring as well.
    twice: u64,
    evicted: u64,
    /// Traces that end in the middle of a block.
    torn: u64,
}

impl Left {
    fn new(origin: Origin) -> Self {
        Self {
            origin,
            rings: BTreeMap::new(),
            told: BTreeMap::new(),
            not_recorded: 0,
            overwritten: 0,
            twice: 0,
            evicted: 0,
            torn: 0,
        }
    }
}

/// Reads all traces in `out` and all rings in `rings`.
fn left(out: &Path, rings: &Path) -> Vec<Left> {
    let mut processes: BTreeMap<(u32, u64), Left> = BTreeMap::new();
    let traces = fs::read_dir(out).into_iter().flatten().map(|entry| entry.unwrap().path());
    let traces = traces.filter(|path| path.extension() == Some("acltrace".as_ref()));
    let open = |path: PathBuf| {
        let file = File::open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        match SegmentReader::open(BufReader::with_capacity(1 << 20, file)) {
            Ok(trace) => Some(trace),
            // Whoever is killed between making a file and writing its first bytes leaves an empty one.
            Err(stop) => (length > 0).then(|| panic!("{}: {stop}", path.display())),
        }
    };
    let mut traces: Vec<_> = traces.filter_map(open).collect();
    traces.sort_by_key(|trace| (trace.preamble.first_ns, trace.preamble.segment));
    for mut trace in traces {
        let origin = Origin::from_bytes(&trace.header).expect("a whole header");
        let left = processes.entry((origin.pid, origin.born_ns)).or_insert_with(|| Left::new(origin));
        left.evicted = left.evicted.max(trace.preamble.evicted);
        while let Some(block) = trace.next_block().unwrap_or_else(|_| {
            left.torn += 1;
            None
        }) {
            let words: Vec<u64> = block.payload.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            match block.head.kind {
                kind::SLOTS => {
                    let pieces = left.rings.entry(block.head.ring).or_default();
                    let thread = Some(block.head.thread).filter(|thread| *thread != 0);
                    let piece = Piece { first: block.head.first, slots: block.slots().collect(), thread };
                    let end = pieces.last().map_or(0, Piece::end);
                    assert!(piece.first >= end, "slot {} is in the trace twice", piece.first);
                    pieces.push(piece);
                }
                kind::TOTALS => {
                    left.not_recorded = left.not_recorded.max(words[0]);
                    left.overwritten = left.overwritten.max(words[1]);
                }
                _ => {}
            }
        }
    }
    for path in reader::files(rings).unwrap() {
        let Ok(mut file) = RingFile::open(&path) else { continue };
        let origin = Origin::new(file.header());
        if origin.dir != out {
            continue;
        }
        let left = processes.entry((origin.pid, origin.born_ns)).or_insert_with(|| Left::new(origin));
        (left.not_recorded, left.overwritten) = (file.header().not_recorded.load(Ordering::Relaxed), 0);
        for number in 0..file.look_for_rings() {
            let Some(ring) = file.ring(number) else { continue }; // killed while it was made
            let load = |of: &aclshim_trace::sync::AtomicU64| of.load(Ordering::Relaxed);
            left.not_recorded += load(&ring.control.not_recorded);
            left.overwritten += load(&ring.control.overwritten);
            left.told.insert(number as u32, load(&ring.control.told));
            let pieces = left.rings.entry(number as u32).or_default();
            let (owner, since) = (ring.control.owner.load(Ordering::Relaxed), load(&ring.control.since));
            let mut from = load(&ring.control.drained);
            while from < ring.end(from) {
                let run = ring.read(from, Reading::Look, usize::MAX);
                assert!(run.next > from, "reading goes on");
                from = run.next;
                left.overwritten += run.overwritten;
                // Whoever is killed between writing a block and giving its slots back leaves them twice.
                let known = pieces.last().map_or(0, Piece::end).saturating_sub(run.first).min(run.slots.len() as u64);
                left.twice += known;
                let slots = run.slots[known as usize..].to_vec();
                if !slots.is_empty() {
                    let first = run.first + known;
                    pieces.push(Piece { first, slots, thread: (first >= since).then_some(owner) });
                }
            }
        }
    }
    processes.into_values().collect()
}

/// What a run has left, found to be right.
#[derive(Debug, Default, PartialEq, Clone)]
struct Content {
    processes: u64,
    /// Calls that are recorded.
    calls: u64,
    /// Of these, calls that had not ended.
    open: u64,
    /// Slots that are missing between others.
    missing: u64,
    not_recorded: u64,
    overwritten: u64,
    evicted: u64,
    /// Lost calls that in-band records tell of.
    told: u64,
    twice: u64,
    torn: u64,
    /// Slots of all kinds.
    slots: u64,
    /// By lane: how many calls, and the last one's number.
    lanes: BTreeMap<usize, (u64, u64)>,
}

impl AddAssign for Content {
    fn add_assign(&mut self, other: Self) {
        for (mine, more) in [
            (&mut self.processes, other.processes),
            (&mut self.calls, other.calls),
            (&mut self.open, other.open),
            (&mut self.missing, other.missing),
            (&mut self.not_recorded, other.not_recorded),
            (&mut self.overwritten, other.overwritten),
            (&mut self.evicted, other.evicted),
            (&mut self.told, other.told),
            (&mut self.twice, other.twice),
            (&mut self.torn, other.torn),
            (&mut self.slots, other.slots),
        ] {
            *mine += more;
        }
        for (lane, of) in other.lanes {
            assert!(self.lanes.insert(lane, of).is_none(), "lane {lane} is in two processes");
        }
    }
}

/// What was seen of a lane so far.
#[derive(Clone, Copy)]
struct Seen {
    calls: u64,
    last: u64,
    /// When its last call had ended, in ticks.
    until: u64,
}

/// Compares every record of a process with the call that it says it is.
#[track_caller]
fn compare(left: &Left, truth: &Truth) -> Content {
    let mut content = Content {
        processes: 1,
        not_recorded: left.not_recorded,
        overwritten: left.overwritten,
        evicted: left.evicted,
        twice: left.twice,
        torn: left.torn,
        ..Content::default()
    };
    let code = truth.word(0)..=truth.word(1);
    // Calls of these lanes after the last one that is recorded.
    let behind = |owners: &[usize], lanes: &BTreeMap<usize, Seen>| -> u64 {
        let next = |lane| lanes.get(lane).map_or(0, |seen: &Seen| seen.last + 1);
        owners.iter().map(|lane| truth.lane(*lane).begun - next(lane)).sum()
    };
    let mut lanes: BTreeMap<usize, Seen> = BTreeMap::new();
    for (ring, pieces) in &left.rings {
        let mut thread = None;
        let mut open: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        let (mut next, mut told, mut skipped) = (0, 0, 0);
        // The lanes of the ring's owner: more than one where a handler calls too.
        let mut owners: Vec<usize> = Vec::new();
        for piece in pieces {
            content.missing += piece.first - next;
            if piece.first > next {
                thread = piece.thread; // who it was may stand in what is missing
            }
            next = piece.end();
            content.slots += piece.slots.len() as u64;
            let mut at = 0;
            while at < piece.slots.len() {
                let number = piece.first + at as u64;
                let place = || format!("ring {ring}, slot {number} of process {}", left.origin.pid);
                let (entry, count) =
                    decode(&piece.slots[at..], number).unwrap_or_else(|| panic!("no record: {}", place()));
                for (nth, slot) in piece.slots[at..at + count].iter().enumerate() {
                    let near = number + nth as u64;
                    assert_eq!(Head(slot[0]).number(near), near, "{}", place());
                    assert!(nth == 0 || Head(slot[0]).state() == State::Done, "{}", place());
                }
                at += count;
                match entry {
                    Entry::Thread { id, .. } => {
                        skipped += behind(&owners, &lanes);
                        let is_its = |lane: &usize| truth.lane(*lane).thread == u64::from(id);
                        owners = (0..LANES).filter(is_its).collect();
                        thread = Some(id);
                    }
                    Entry::Lost { from, to, calls } => {
                        assert!(from <= to && calls > 0, "{}", place());
                        told += calls;
                    }
                    Entry::End { of, end } => {
                        let (lane, n) = open.remove(&of).unwrap_or_else(|| panic!("no open call {of}: {}", place()));
                        assert_eq!(end.code, code_of(0x5A << 56 | (lane as u64) << 40 | n), "{}", place());
                    }
                    Entry::Findings { .. } => panic!("a finding: {}", place()),
                    Entry::Call(call) => {
                        let function = &left.origin.functions[usize::from(call.function)];
                        let (lane, n) = identify(&call, function).unwrap_or_else(|why| panic!("{}: {why}", place()));
                        assert_eq!(call.number, number, "{}", place());
                        let of = truth.lane(lane);
                        assert!(n < of.begun, "{}: call {n} was not made, of {}", place(), of.begun);
                        assert_eq!(u64::from(left.origin.pid), of.process, "{}", place());
                        if let Some(thread) = thread {
                            assert_eq!(u64::from(thread), of.thread, "{}", place());
                        }
                        assert!(code.contains(&call.site), "{}: called from {:x}", place(), call.site);
                        assert!(!call.is_nested && call.findings == 0 && call.flags == 0 && call.scope == 0);
                        let seen = lanes.entry(lane).or_insert(Seen { calls: 0, last: u64::MAX, until: 0 });
                        assert!(seen.calls == 0 || n > seen.last, "{}: call {n} after {}", place(), seen.last);
                        assert!(call.begin >= seen.until, "{}: begins before the last one ended", place());
                        skipped += n.wrapping_sub(seen.last) - 1;
                        seen.calls += 1;
                        seen.last = n;
                        match call.end {
                            Some(end) => {
                                assert_eq!(end.code, code_of(0x5A << 56 | (lane as u64) << 40 | n), "{}", place());
                                seen.until = call.begin + end.duration;
                            }
                            None => {
                                seen.until = call.begin;
                                open.insert(number, (lane, n));
                            }
                        }
                        content.calls += 1;
                    }
                }
            }
        }
        content.open += open.len() as u64;
        content.told += told;
        skipped += behind(&owners, &lanes);
        // A thread that found its ring full from its first call to its last is in no record, but what it lost is told.
        let is_alone = owners.len() <= 1 && left.rings.len() >= truth.lanes().count();
        assert!(told <= skipped || !is_alone, "ring {ring}: {told} lost, {skipped} missing");
        if let Some(said) = left.told.get(ring).filter(|_| left.evicted + left.overwritten == 0) {
            assert_eq!(told, *said, "ring {ring}: lost calls that records tell of");
        }
    }
    content.lanes = lanes.into_iter().map(|(lane, seen)| (lane, (seen.calls, seen.last))).collect();
    content
}

/// Reads a run back, compares all of it, and finds that `aclshim stat` says the same.
#[track_caller]
fn content(output: &Output) -> Content {
    let truth = Truth::of(&output.scratch);
    let mut sum = Content::default();
    for left in left(&output.scratch.join("out"), &output.scratch) {
        sum += compare(&left, &truth);
    }
    let stat = output.stat();
    let said = ["processes", "calls", "nested", "not_recorded", "overwritten", "evicted"].map(|key| stat.total(key));
    let found = [sum.processes, sum.calls, 0, sum.not_recorded, sum.overwritten, sum.evicted];
    assert_eq!(said, found, "as stat says, and as was read");
    assert!(stat.total("in_flight") <= sum.open, "{} in flight, {} open", stat.total("in_flight"), sum.open);
    sum
}

/// The balance of a run that ended in order: each call is recorded or counted, none twice, none is open.
#[track_caller]
fn balanced(output: &Output) -> Content {
    let (truth, found) = (Truth::of(&output.scratch), content(output));
    assert_eq!(truth.begun(), truth.ended(), "the host came to its end");
    assert_eq!(found.calls + found.not_recorded, truth.begun(), "{found:?}");
    let wrong = [found.open, found.overwritten, found.twice, found.torn, found.missing];
    assert_eq!(wrong, [0; 5], "{found:?}");
    found
}

/// The same where older records were overwritten: all that is missing is said to be.
#[track_caller]
fn balanced_in_flight_mode(output: &Output) -> Content {
    let (truth, found) = (Truth::of(&output.scratch), content(output));
    assert_eq!([found.open, found.twice, found.torn], [0; 3], "{found:?}");
    assert_eq!(found.overwritten, found.missing, "slots that are missing, {found:?}");
    for (lane, (_, last)) in &found.lanes {
        assert_eq!(last + 1, truth.lane(*lane).begun, "lane {lane}: the newest call is there");
    }
    found
}

/// The balance of a process that was killed amid the calls of so many threads.
#[track_caller]
fn balanced_to_the_last(output: &Output, threads: u64, mode: &str) -> Content {
    let (truth, found) = (Truth::of(&output.scratch), content(output));
    assert!(found.open <= threads, "{found:?}");
    if mode != "flight" {
        let sum = found.calls + found.not_recorded;
        // A call that came while another thread made the file is counted there with its thread's next one.
        let unsaid = truth.lanes().filter(|lane| lane.begun <= 1).count() as u64;
        let [ended, begun] = [truth.ended() - unsaid.min(truth.ended()), truth.begun()];
        assert!((ended..=begun).contains(&sum), "{ended} <= {sum} <= {begun}, {found:?}");
        // Slots that were claimed for a call that did not begin any more, with a note of what was lost behind them.
        assert!(found.missing <= 2 * threads, "{found:?}");
    } else {
        // What each of them had just begun to write had taken the place of an older record already.
        let unsaid = found.missing.checked_sub(found.overwritten);
        assert!(unsaid.is_some_and(|slots| slots <= 7 * threads), "{found:?}");
    }
    found
}

/// All records of the only process, in the order of its rings.
fn entries(output: &Output) -> Vec<Entry> {
    let all = left(&output.scratch.join("out"), &output.scratch);
    let [left] = &all[..] else { panic!("{} processes", all.len()) };
    let mut entries = Vec::new();
    for piece in left.rings.values().flatten() {
        let mut at = 0;
        while let Some((entry, count)) = decode(&piece.slots[at..], piece.first + at as u64) {
            entries.push(entry);
            at += count;
        }
    }
    entries
}

fn events(output: &Output, event: &str) -> Vec<serde_json::Value> {
    output.log().into_iter().filter(|line| line["event"] == event).collect()
}

/// A folder that grew large is not left behind.
fn done(output: Output) {
    fs::remove_dir_all(output.scratch).unwrap();
}

const MODES: [&str; 3] = ["audit", "flight", "lossless"];

// ---- Ends ----

#[test]
fn however_a_process_ends_each_of_its_calls_is_recorded_as_it_was_and_the_end_is_its_own() {
    let program = patterned("hosts/record_end.c");
    let ends = ["return", "exit", "_exit", "quick_exit", "abort", "fault", "kill", "exec", "daemon", "last", "leaves"];
    for how in ends {
        for (drain, mode) in [("auto", "audit"), ("off", "audit"), ("auto", "flight"), ("auto", "lossless")] {
            let run = |run: Run| run.arg(how).env("ACLSHIM_DRAIN", drain).env("ACLSHIM_RECORD", mode);
            let output = same(&program, run);
            // What was printed is in the buffer, and only some ends write it out.
            let ends_well = ["return", "exit", "exec", "daemon", "last", "leaves"].contains(&how);
            assert_eq!(output.stdout.contains("at exit"), ends_well, "{how}: {output:?}");
            let found = balanced(&output);
            assert_eq!(found.not_recorded, 0, "{how} {drain} {mode}");
            assert_eq!(found.processes, if ["exec", "daemon"].contains(&how) { 2 } else { 1 }, "{how}");
            done(output);
        }
    }
}

#[test]
fn after_an_end_in_order_all_is_in_the_trace_and_the_log_says_so() {
    for mode in MODES {
        let output = same(&hammer(), |run| run.arg("2").arg("300").env("ACLSHIM_RECORD", mode));
        let found = balanced(&output);
        let stat = output.stat();
        let slots = &stat.0["slots"];
        assert_eq!((&slots["trace"], &slots["ring"]), (&found.slots.into(), &0.into()), "{mode}");
        let [started, stopped] = ["started", "stopped"].map(|event| events(&output, event));
        assert_eq!((started.len(), stopped.len()), (1, 1), "{mode}: {:?}", output.log());
        assert_eq!((&stopped[0]["calls"], &stopped[0]["not_recorded"]), (&601.into(), &0.into()), "{mode}");
        assert_eq!(events(&output, "failed_call").len() as u64, stat.total("errors"), "{mode}");
    }
}

/// A generator of numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 += 1;
        mix(self.0, 7) % sides
    }
}

#[test]
fn a_process_killed_at_any_instant_leaves_whole_records_of_every_call() {
    let program = hammer();
    let mut dice = Dice(20_261_116);
    for round in 0..200 {
        // Mostly early, where everything happens for the first time; now and then late.
        let most = 1 << (10 + dice.roll(13));
        let spin = dice.roll(most);
        let mode = if round % 5 < 3 { "audit" } else { MODES[round % 5 - 2] };
        let drain = if round % 8 == 7 { "off" } else { "auto" };
        let run = watched(&program).arg("4").arg("0").arg(spin.to_string());
        let output = run.env("ACLSHIM_RECORD", mode).env("ACLSHIM_DRAIN", drain).run();
        assert_eq!(output.status.signal(), Some(libc::SIGKILL), "round {round}: {output:?}");
        balanced_to_the_last(&output, 4, mode);
        done(output);
    }
}

// ---- fork ----

#[test]
fn a_thousand_children_of_a_calling_process_record_for_themselves() {
    // Small rings, so that the thread that calls all the while does not fill the disk.
    let run = |run: Run| run.arg("1000").arg("20").env("ACLSHIM_RING_SIZE", "4K");
    let output = same(&patterned("hosts/record_forks.c"), run).ok();
    let found = balanced(&output);
    assert_eq!(found.processes, 1001);
    let children = found.lanes.iter().filter(|(lane, _)| **lane >= 2);
    assert_eq!(children.clone().count(), 1000);
    assert!(children.clone().all(|(_, of)| *of == (20, 19)), "each child has recorded all of its calls");
    done(output);
}

// ---- Signals ----

#[test]
fn calls_of_a_handler_that_interrupts_calls_five_thousand_times_a_second_are_whole() {
    let program = patterned("hosts/record_signals.c");
    for stack in ["here", "stack"] {
        for mode in MODES {
            for drain in ["auto", "off"] {
                if (mode, drain) == ("lossless", "off") {
                    continue; // each call would wait
                }
                let run = watched(&program).arg(stack).arg("500");
                let output = run.env("ACLSHIM_RECORD", mode).env("ACLSHIM_DRAIN", drain).run().ok();
                assert_eq!(output.stdout, "handled\n");
                let (truth, found) = (Truth::of(&output.scratch), content(&output));
                assert!(truth.lane(1).begun >= 500);
                if mode != "flight" {
                    assert_eq!(found.calls + found.not_recorded, truth.begun(), "{stack} {mode} {drain}: {found:?}");
                }
                assert_eq!(found.open, 0, "{stack} {mode} {drain}: {found:?}");
                done(output);
            }
        }
    }
}

// ---- Small rings ----

#[test]
fn sixteen_threads_on_the_smallest_rings_lose_nothing_that_is_not_counted() {
    for mode in MODES {
        for drain in ["auto", "off"] {
            let calls = if (mode, drain) == ("lossless", "off") { "38" } else { "10000" };
            let run = |run: Run| {
                let run = run.arg("16").arg(calls).env("ACLSHIM_RING_SIZE", "4K");
                run.env("ACLSHIM_RECORD", mode).env("ACLSHIM_DRAIN", drain)
            };
            let output = same(&hammer(), run).ok();
            let found = if mode == "flight" { balanced_in_flight_mode(&output) } else { balanced(&output) };
            if (mode, drain) == ("lossless", "auto") {
                assert_eq!(found.not_recorded, 0, "{found:?}");
            }
            done(output);
        }
    }
}

// ---- Modes ----

#[test]
fn flight_keeps_the_newest_records_and_says_how_many_slots_were_overwritten() {
    const CALLS: u64 = 50_000;
    for drain in ["off", "auto"] {
        let run = |run: Run| {
            let run = run.arg("1").arg(CALLS.to_string());
            run.env("ACLSHIM_RECORD", "flight").env("ACLSHIM_DRAIN", drain)
        };
        let output = same(&hammer(), run).ok();
        let found = balanced_in_flight_mode(&output);
        // The thread's own note, and every call; the first one comes the long way, which takes two.
        let claimed = 2 + (0..CALLS).map(slots_of).sum::<u64>();
        assert_eq!(found.overwritten + found.slots, claimed, "{drain}: {found:?}");
        assert_eq!(found.not_recorded, 0);
        if drain == "off" {
            assert!((1020..=1024).contains(&found.slots), "the ring is full of the newest: {found:?}");
        } else {
            let said: u64 = events(&output, "overwritten").iter().map(|line| line["slots"].as_u64().unwrap()).sum();
            assert_eq!(said, found.overwritten, "as the log says");
        }
        done(output);
    }
}

#[test]
fn audit_says_in_band_and_in_the_log_how_many_calls_it_did_not_record_and_when() {
    let run = |run: Run| run.arg("2").arg("200000").env("ACLSHIM_RING_SIZE", "4K");
    let output = same(&hammer(), run).ok();
    let found = balanced(&output);
    assert!(found.not_recorded > 0 && found.told > 0, "two threads at full speed on rings of 64 slots: {found:?}");
    assert!(found.told <= found.not_recorded, "{found:?}");
    let entries = entries(&output);
    let notes: Vec<u64> =
        entries.iter().filter_map(|of| if let Entry::Lost { calls, .. } = of { Some(*calls) } else { None }).collect();
    let full: Vec<_> =
        events(&output, "lost").into_iter().filter(|line| line["reason"] == "the ring was full").collect();
    assert_eq!(
        full.iter().map(|line| line["calls"].as_u64().unwrap()).collect::<Vec<_>>().iter().sum::<u64>(),
        found.told
    );
    assert_eq!(full.len(), notes.len());
    for line in &full {
        assert!(line["from_ns"].as_u64() <= line["to_ns"].as_u64() && line["thread"].as_u64() > Some(0), "{line}");
    }
    // When: between the call before and the call behind.
    let mut last = 0;
    let mut lost = None;
    for entry in &entries {
        match entry {
            Entry::Thread { .. } => (last, lost) = (0, None),
            Entry::Lost { from, to, .. } => lost = Some((*from, *to)),
            Entry::Call(call) => {
                if let Some((from, to)) = lost.take() {
                    assert!(from <= to && to <= call.begin, "{from} {to} {}", call.begin);
                }
                last = last.max(call.begin);
            }
            _ => {}
        }
    }
    done(output);
}

#[test]
fn a_ring_that_passes_from_thread_to_thread_gives_each_its_own_records() {
    for mode in MODES {
        let run = |run: Run| {
            let run = run.arg("40").arg("1000").arg("relay");
            run.env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RECORD", mode)
        };
        let output = same(&hammer(), run).ok();
        // Whose a record is, is compared for each of them.
        let found = if mode == "flight" { content(&output) } else { balanced(&output) };
        assert_eq!(found.open, 0);
        done(output);
    }
}

#[test]
fn calls_that_were_lost_are_said_to_be_those_of_the_thread_that_made_them() {
    // More threads than there are rings of their own for each.
    let run = |run: Run| run.arg("40").arg("2000").arg("relay").env("ACLSHIM_RING_SIZE", "4K");
    let output = same(&hammer(), run).ok();
    let (truth, found) = (Truth::of(&output.scratch), balanced(&output));
    let mut said: BTreeMap<u64, u64> = BTreeMap::new();
    for line in events(&output, "lost").iter().filter(|line| line["reason"] == "the ring was full") {
        *said.entry(line["thread"].as_u64().unwrap()).or_default() += line["calls"].as_u64().unwrap();
    }
    for lane in 0..40 {
        let of = truth.lane(lane);
        let lost = of.begun - found.lanes.get(&lane).map_or(0, |seen| seen.0);
        let said = said.get(&of.thread).copied().unwrap_or(0);
        assert!(said <= lost, "lane {lane} has lost {lost}, and {said} are said");
    }
    done(output);
}

#[test]
fn lossless_loses_nothing_where_a_drain_keeps_writing() {
    let run = |run: Run| run.arg("4").arg("50000").env("ACLSHIM_RECORD", "lossless");
    let output = same(&hammer(), run).ok();
    let found = balanced(&output);
    assert_eq!((found.calls, found.not_recorded, found.told), (200_001, 0, 0));
    assert_eq!(events(&output, "lost").len(), 0);
    done(output);
}

#[test]
fn lossless_without_a_drain_lets_the_host_go_on_and_counts_what_is_lost() {
    // A ring of 64 slots holds about 30 of these calls; each of the others waits, and goes on.
    let run = |run: Run| {
        let run = run.arg("1").arg("38").env("ACLSHIM_RING_SIZE", "4K");
        run.env("ACLSHIM_RECORD", "lossless").env("ACLSHIM_DRAIN", "off")
    };
    let found = balanced(&same(&hammer(), run).ok());
    assert!((1..38).contains(&found.not_recorded), "{found:?}");
}

// ---- What leaves a call by another way than its end ----

#[test]
fn after_a_call_that_was_left_a_million_more_are_all_recorded_and_none_is_in_flight() {
    let name = "after_a_call_that_was_left_a_million_more_are_all_recorded_and_none_is_in_flight";
    if !has("c++", name) {
        return;
    }
    let program = host("hosts/record_left.cpp");
    for (how, fault) in [("throw", "throw@aclrtMemcpy:2"), ("jump", "longjmp@aclrtMemcpy:2")] {
        let run = |run: Run| run.sim().arg(how).arg("1000000").env("ASCENDCL_SIM_FAULT", fault);
        let without = run(Run::new(&program)).run().ok();
        let with = run(Run::new(&program).shim().env("ACLSHIM_RECORD", "lossless")).run().ok();
        assert_eq!(with.seen(), without.seen(), "{how}");
        let stat = with.stat();
        let sums = ["calls", "nested", "not_recorded", "in_flight"].map(|key| stat.total(key));
        assert_eq!(sums, [1_000_002, 0, 0, 0], "{how}");
        done(with);
    }
}

#[test]
fn a_call_that_hangs_is_seen_in_flight_with_its_arguments_and_so_after_a_kill() {
    let program = host("hosts/record_hangs.c");
    for drain in ["auto", "off"] {
        let run = Run::new(&program).sim().shim().env("ASCENDCL_SIM_FAULT", "hang@aclrtMemcpy:3");
        let (mut child, scratch) = run.env("ACLSHIM_DRAIN", drain).spawn();
        let mut output = Output { status: Default::default(), stdout: String::new(), stderr: String::new(), scratch };
        let in_flight = |output: &Output| {
            let stat = output.stat();
            (stat.total("calls"), stat.total("in_flight"))
        };
        while in_flight(&output) != (3, 1) {
            assert!(child.try_wait().unwrap().is_none(), "ended by itself");
        }
        let as_it_was_made = |output: &Output| {
            let entries = entries(output);
            let open: Vec<_> =
                entries.iter().filter_map(|of| if let Entry::Call(call) = of { Some(call) } else { None }).collect();
            let [.., call] = open[..] else { panic!("no call") };
            assert_eq!((call.end, &call.arguments[..4]), (None, &[0x1111, 0x44, 0x2222, 0x33][..]), "{drain}");
            let all = left(&output.scratch.join("out"), &output.scratch);
            assert_eq!(all[0].origin.functions[usize::from(call.function)], "aclrtMemcpy", "{drain}");
        };
        as_it_was_made(&output);
        child.kill().unwrap();
        output.status = child.wait().unwrap();
        assert_eq!(in_flight(&output), (3, 1), "{drain}: after the kill");
        as_it_was_made(&output);
    }
}

// ---- Batches and long calls ----

/// The items that hosts/record_batch.c has.
fn batch_item(i: u64) -> aclshim_trace::record::Item {
    let size = 1 + (mix(i, 3) & 0xff_ffff);
    aclshim_trace::record::Item { dst: mix(i, 1), src: mix(i, 2), size, room: i as i32 }
}

#[test]
fn a_batch_is_recorded_with_its_summary_attributes_arguments_and_as_many_items_as_are_asked_for() {
    let program = patterned("hosts/record_batch.c");
    let counts = [1u64, 2, 3, 63, 64, 65, 100, 300, 0, 5, 7];
    for (asked, most) in [(None, 64), (Some("0"), 0), (Some("1"), 1), (Some("200"), 200), (Some("4096"), 300)] {
        let run = |run: Run| match asked {
            Some(items) => run.env("ACLSHIM_BATCH_ITEMS", items),
            None => run,
        };
        let output = same(&program, run).ok();
        let truth = Truth::of(&output.scratch);
        let entries = entries(&output);
        let calls: Vec<_> =
            entries.iter().filter_map(|of| if let Entry::Call(call) = of { Some(call) } else { None }).collect();
        assert_eq!(calls.len(), counts.len());
        for (at, (call, items)) in calls.into_iter().zip(counts).enumerate() {
            let (attributes, fails) = (at as u64 + 1, at + 1 == counts.len());
            let mark = if fails { 0x5B } else { 0x5C };
            let known = [truth.word(3), 0, 0, truth.word(4), items, 0, 0, attributes, mark << 56 | at as u64];
            let mut arguments = call.arguments;
            for unknown in [1, 2, 5, 6] {
                arguments[unknown] = 0;
            }
            assert_eq!(arguments[..9], known, "batch {at}");
            assert_eq!(call.end.map(|end| end.code), Some(if fails { 107_000 } else { 0 }), "batch {at}");
            if fails || items == 0 {
                assert_eq!(call.batch, None, "batch {at}: nothing was read");
                continue;
            }
            let sizes = || (0..items).map(|i| batch_item(i).size);
            let expected = Batch {
                total: sizes().sum(),
                smallest: sizes().min().unwrap(),
                largest: sizes().max().unwrap(),
                too_large: 0,
                direction: Some((1, 0)),
                attributes: (0..attributes.min(8))
                    .map(|i| aclshim_trace::record::Attribute { first: 5 * i, dst: i | 1 << 32, src: 100 + i })
                    .collect(),
                items: (0..items.min(most)).map(batch_item).collect(),
            };
            assert_eq!(call.batch, Some(expected), "batch {at} with ACLSHIM_BATCH_ITEMS={asked:?}");
        }
    }
}

#[test]
fn a_call_of_three_seconds_has_its_duration() {
    for drain in ["auto", "off"] {
        let run = watched(&patterned("hosts/record_batch.c")).arg("slow").env("ACLSHIM_DRAIN", drain);
        let output = run.run().ok();
        let stat = output.stat();
        let sums = ["calls", "in_flight", "not_recorded", "errors"].map(|key| stat.total(key));
        assert_eq!(sums, [1, 0, 0, 0], "{drain}");
        let took = stat.0["functions"]["aclrtMemcpy"]["p50_ns"].as_u64().unwrap();
        // At least what was slept, but for a histogram's width; how much more is the machine's affair.
        assert!((2_700_000_000..30_000_000_000).contains(&took), "{drain}: {took} ns");
        let all = left(&output.scratch.join("out"), &output.scratch);
        let clock = all[0].origin.calibration.unwrap();
        let entries = entries(&output);
        let duration = entries.iter().rev().find_map(|of| match of {
            Entry::End { end, .. } => Some(end.duration),
            Entry::Call(call) => call.end.map(|end| end.duration),
            _ => None,
        });
        let took = clock.span_ns(duration.unwrap());
        assert!((2_700_000_000..30_000_000_000).contains(&took), "{drain}: {took} ns");
    }
}

// ---- The host beside its drain ----

#[test]
fn errno_codes_and_output_are_the_hosts_with_a_drain_inside() {
    // The host itself looks at errno and the code of each call, and ends early if one is wrong.
    for mode in MODES {
        let run = |run: Run| run.arg("2").arg("20000").env("ACLSHIM_RECORD", mode).env("ACLSHIM_CALLS", "json");
        done(same(&hammer(), run).ok());
        // Threads that take the rings of others, which they find gone by a system call that fails.
        let run = |run: Run| run.arg("40").arg("50").arg("relay").env("ACLSHIM_RECORD", mode);
        done(same(&hammer(), run).ok());
    }
}

#[test]
fn a_reader_beside_four_threads_never_sees_less_than_before_or_more_than_was_called() {
    // Small rings, so that the trace stays short: it is read each time.
    let (mut child, scratch) = watched(&hammer()).arg("4").arg("0").env("ACLSHIM_RING_SIZE", "4K").spawn();
    let mut before = [0; 3];
    for round in 0..8 {
        let ended = Truth::of(&scratch).ended();
        let output = aclshim()
            .env("ACLSHIM_RING_DIR", &scratch)
            .args(["stat", "--json"])
            .arg(scratch.join("out"))
            .output()
            .expect("aclshim stat");
        assert!(output.status.success() && child.try_wait().unwrap().is_none(), "{output:?}");
        let begun = Truth::of(&scratch).begun();
        let stat = Stat(serde_json::from_slice(&output.stdout).expect("one JSON object"));
        let now = ["calls", "not_recorded", "errors"].map(|key| stat.total(key));
        let sum = now[0] + now[1];
        assert!(sum <= begun, "round {round}: {sum} of {begun}");
        assert!(sum >= ended, "round {round}: {sum}, and {ended} had ended");
        assert!(before.iter().zip(now).all(|(before, now)| *before <= now), "round {round}: {before:?}, then {now:?}");
        assert!(stat.total("in_flight") <= 4 && stat.total("nested") == 0, "{}", stat.0);
        before = now;
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    let output = Output { status, stdout: String::new(), stderr: String::new(), scratch };
    balanced_to_the_last(&output, 4, "audit");
    done(output);
}
