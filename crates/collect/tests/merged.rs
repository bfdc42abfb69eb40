//! Programs of several threads: what a drain shows and logs while they run, and what a reader shows afterwards.

use aclshim_collect::drain::Drain;
use aclshim_collect::interpreter::visitor::{CallView, CallVisitor, NoVisitor};
use aclshim_collect::trace_set::{CallOrder, ReadOptions, TraceSet};
use aclshim_trace::reader::{ReadMode, Ring};
use aclshim_trace::record::slot::{Head, Layout, Note, Slot};
use aclshim_trace::ring::cursor::RingCursor;
use aclshim_trace::ring::file::{self, OwnRingFile, RingSize};
use aclshim_trace::ring::layout::{Control, Mode};
use aclshim_trace::ring::storage::FixedStorage;
use aclshim_trace::system::clock::ticks;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

const RINGS: usize = 3;
const SLOTS: u32 = 256;

/// The kind of an event, the ring, the call's number, and the time in ticks.
type Event = (&'static str, u32, u64, u64);

/// Notes down the events, in order.
#[derive(Default)]
struct Events(Vec<Event>);

impl CallVisitor for Events {
    fn call(&mut self, _: &CallView<'_>) {}

    fn begun(&mut self, view: &CallView<'_>) {
        self.0.push(("begin", view.whose.ring, view.call.number, view.call.begin));
    }

    fn returned(&mut self, view: &CallView<'_>) {
        let end = view.call.begin + view.call.end.expect("an end").duration;
        self.0.push(("end", view.whose.ring, view.call.number, end));
    }

    fn wants_merged_events(&self) -> bool {
        true
    }
}

/// A thread of the program: where it records, and its calls under way.
struct Thread {
    control: &'static Control,
    slots: &'static [Slot],
    cursor: RingCursor,
    open: Vec<(Head, u64, u64)>,
}

/// A program of three threads, each of which calls on request.
struct Program {
    folder: PathBuf,
    file: OwnRingFile,
    threads: Vec<Thread>,
    /// The destination of its copies.
    dst: u64,
}

impl Program {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("aclshim-merged-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let bytes = folder.as_os_str().as_bytes();
        let file = file::create(bytes, RingSize::fixed(SLOTS), |header| {
            header.functions = 1;
            header.names[..11].copy_from_slice(b"aclrtMemcpy");
            header.dir[..bytes.len()].copy_from_slice(bytes);
            (header.segment, header.budget) = (1 << 30, 1 << 40);
        })
        .unwrap();
        let threads = (0..RINGS as u32).map(|number| {
            let (control, slots) = file.add_ring(bytes, number).unwrap();
            control.owner.store(7 + number, Ordering::Relaxed);
            let cursor = RingCursor::default();
            cursor.open(control, slots, SLOTS, Mode::Audit, 0);
            Thread { control, slots, cursor, open: Vec::new() }
        });
        let threads = threads.collect();
        file.header.rings.store(RINGS as u32, Ordering::Release);
        Self { folder, file, threads, dst: 0x1000 }
    }

    fn now(&self) -> u64 {
        ticks(self.file.header.clock)
    }

    /// Begins a call, if there is room for it; inside the one under way, if there is one.
    fn begin(&mut self, thread: usize) {
        let now = self.now();
        let Thread { cursor, open, .. } = &mut self.threads[thread];
        // SAFETY: the cursor was opened, and is this thread's.
        let number = cursor
            .claim(1)
            .or_else(|claimed| unsafe { cursor.make_room(claimed, 1, 0, &FixedStorage, || false) }.ok_or(()));
        let Ok(number) = number else { return };
        let head = Head::in_flight(number, Layout::Linear, 0, 1);
        let head = if open.is_empty() { head } else { head.nested() };
        // SAFETY: the cursor was opened.
        unsafe { cursor.slot(number) }.put(head, &[now, 0, 0x40, self.dst, 0x2000, 64, 0]);
        open.push((head, number, now));
    }

    /// Ends the innermost call.
    fn end(&mut self, thread: usize, code: i32) {
        let now = self.now();
        let Thread { cursor, open, .. } = &mut self.threads[thread];
        let Some((head, number, begin)) = open.pop() else { return };
        // SAFETY: the cursor was opened, and is this thread's.
        unsafe {
            if !cursor.slot(number).end_racing(head, now - begin, code) {
                cursor.write_note(Note::End, &[begin, number, now - begin, code as u64]);
            }
        }
    }

    fn pass(&self, drain: &mut Drain, mode: ReadMode) -> u64 {
        drain.pass(self.file.header, |number| self.ring(number), mode)
    }

    fn ring(&self, number: usize) -> Option<Ring<'static>> {
        self.threads.get(number).map(|thread| Ring { control: thread.control, slots: thread.slots })
    }

    /// The events that are read from the trace.
    fn offline(&self) -> Vec<Event> {
        let mut events = Events::default();
        let mut set = TraceSet::new(ReadOptions { order: CallOrder::ByTime, ..ReadOptions::default() });
        set.read(&[&self.folder], &mut events).unwrap();
        set.finish(&mut events);
        events.0
    }
}

#[test]
fn a_drain_and_a_reader_of_its_trace_show_the_events_of_all_threads_in_one_order() {
    for seed in 0..20u64 {
        let mut program = Program::new(&format!("equal-{seed}"));
        let mut drain = Drain::outside(program.file.header);
        drain.merge_events();
        let mut live = Events::default();
        let mut dice = seed;
        for _ in 0..4000 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let thread = (dice >> 33) as usize % RINGS;
            let depth = program.threads[thread].open.len();
            match (dice >> 40) % 64 {
                0 => {
                    program.pass(&mut drain, ReadMode::Drain);
                    assert_eq!(drain.show_events(&mut live), [0, 0], "late, and not held back long enough");
                }
                // Now and then for long: the drain passes by the calls around it.
                turn if turn < 32 && depth < 3 => program.begin(thread),
                turn if depth > 1 || turn == 63 => program.end(thread, (turn % 2) as i32),
                _ => {}
            }
        }
        (0..RINGS).for_each(|thread| (0..3).for_each(|_| program.end(thread, 0)));
        while program.pass(&mut drain, ReadMode::Flush) > 0 {}
        drain.stop(program.file.header, |number| program.ring(number), "the program ends");
        let shown_before_the_end = live.0.len();
        assert_eq!(drain.show_events(&mut live), [0, 0]);
        assert!(live.0.len() > 500 && shown_before_the_end > 0, "{shown_before_the_end} of {}", live.0.len());
        assert!(live.0.is_sorted_by_key(|(_, _, _, ticks)| *ticks), "by time");
        let offline = program.offline();
        let differ = live.0.iter().zip(&offline).position(|(live, offline)| live != offline);
        let around = differ.map_or(0..0, |at| at.saturating_sub(2)..at + 3);
        assert_eq!(live.0.get(around.clone()), offline.get(around), "seed {seed}, event {differ:?}");
        assert_eq!(live.0.len(), offline.len(), "seed {seed}");
        fs::remove_dir_all(&program.folder).unwrap();
    }
}

/// A call under way in one thread holds back later events of the others, and no earlier ones.
#[test]
fn events_are_held_back_until_every_ring_was_seen_empty() {
    let mut program = Program::new("held");
    let mut drain = Drain::outside(program.file.header);
    drain.merge_events();
    let mut live = Events::default();
    let mut shown = |program: &Program, drain: &mut Drain| {
        program.pass(drain, ReadMode::Drain);
        assert_eq!(drain.show_events(&mut live), [0, 0]);
        live.0.drain(..).map(|(what, ring, ..)| (what, ring)).collect::<Vec<_>>()
    };
    program.begin(0);
    program.end(0, 0);
    assert_eq!(shown(&program, &mut drain), [("begin", 0), ("end", 0)]);
    program.begin(1);
    program.begin(0);
    program.end(0, 0);
    assert_eq!(shown(&program, &mut drain), [], "an earlier event of the second ring may follow");
    program.end(1, 0);
    assert_eq!(shown(&program, &mut drain), [("begin", 1), ("begin", 0), ("end", 0), ("end", 1)]);
    fs::remove_dir_all(&program.folder).unwrap();
}

/// The thread that each ring is shown with.
#[derive(Default)]
struct Threads(BTreeMap<u32, BTreeSet<u32>>);

impl CallVisitor for Threads {
    fn call(&mut self, view: &CallView<'_>) {
        self.0.entry(view.whose.ring).or_default().insert(view.whose.thread);
    }
}

/// The record that names the thread is overwritten; the ring still has the number of its owner.
#[test]
fn the_thread_of_a_ring_that_no_drain_has_read_is_known() {
    for order in [CallOrder::ByThread, CallOrder::ByTime] {
        let mut program = Program::new(&format!("owner-{order:?}"));
        for thread in 0..RINGS {
            let Thread { control, slots, cursor, .. } = &mut program.threads[thread];
            cursor.open(control, slots, SLOTS, Mode::Flight, 0);
            for _ in 0..2 * SLOTS {
                program.begin(thread);
                program.end(thread, 0);
            }
        }
        let mut threads = Threads::default();
        let mut set = TraceSet::new(ReadOptions { order, ..ReadOptions::default() });
        set.read(&[&program.folder], &mut threads).unwrap();
        set.finish(&mut threads);
        assert_eq!(threads.0, (0..3).map(|ring| (ring, BTreeSet::from([7 + ring]))).collect(), "{order:?}");
        fs::remove_dir_all(&program.folder).unwrap();
    }
}

/// Of the findings of one call site only the first are reported: the same ones live and afterwards, whichever thread made them.
#[test]
fn of_many_findings_of_two_threads_the_drain_and_a_reader_report_the_same_ones() {
    let mut program = Program::new("findings");
    program.dst = 0;
    let mut drain = Drain::outside(program.file.header);
    for turn in 0..9 {
        for thread in [2, 0, 1] {
            program.begin(thread);
            program.end(thread, 0);
        }
        if turn % 2 == 0 {
            program.pass(&mut drain, ReadMode::Drain);
        }
    }
    while program.pass(&mut drain, ReadMode::Flush) > 0 {}
    drain.stop(program.file.header, |number| program.ring(number), "the program ends");
    let number = |line: &str, key: &str| -> u64 {
        let value = line.split(key).nth(1).and_then(|rest| rest.split([',', '}']).next());
        value.and_then(|value| value.parse().ok()).expect("a number")
    };
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    let logs = fs::read_dir(&program.folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_log);
    let text: String = logs.map(|path| fs::read_to_string(path).unwrap()).collect();
    let lines = text.lines().filter(|line| line.contains("\"event\":\"finding\""));
    let live: Vec<_> = lines.map(|line| (number(line, "\"thread\":"), number(line, "\"number\":"))).collect();
    let mut set = TraceSet::default();
    set.read(&[&program.folder], &mut NoVisitor).unwrap();
    set.finish(&mut NoVisitor);
    let [process] = &set.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
    let offline: Vec<_> = process.findings.iter().map(|found| (found.thread.into(), found.number)).collect();
    assert!(live.len() >= 10, "{text}");
    assert_eq!(live, offline);
    fs::remove_dir_all(&program.folder).unwrap();
}
