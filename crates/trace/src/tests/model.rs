//! Any sequence of what a writer and a drain may do, against a model that remembers everything.

use super::sample::{Open, Pass, Sample};
use crate::reader::ReadMode;
use crate::record::annotation::{Annotation, AnnotationRef};
use crate::record::slot::{Head, Layout, Note};
use crate::record::{End, Entry};
use crate::ring::layout::Mode;
use crate::ring::storage::Pace;
use crate::sync::{AtomicU64, Ordering};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    /// A call begins inside those that are open.
    Begin,
    /// A call of this many slots begins.
    BeginLong(u64),
    /// The innermost call returns.
    End(i32),
    /// The innermost calls are left by a jump.
    Leave(usize),
    /// Slots are claimed, and nothing is written, yet.
    Claim(u64),
    /// The last claimant was only delayed, and writes.
    Fill,
    /// The thread ends, and another takes the ring over.
    HandOver,
    /// A note is left.
    Note,
    /// An annotation with a text of this many bytes is written.
    Tell(usize),
    /// The drain takes this many slots.
    Drain(usize),
    /// A reader looks.
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Begin),
        2 => (2..5u64).prop_map(Step::BeginLong),
        6 => (-3..3i32).prop_map(Step::End),
        1 => (1..4usize).prop_map(Step::Leave),
        1 => (1..4u64).prop_map(Step::Claim),
        1 => Just(Step::Fill),
        1 => Just(Step::HandOver),
        1 => Just(Step::Note),
        2 => (0..300usize).prop_map(Step::Tell),
        4 => (1..40usize).prop_map(Step::Drain),
        1 => Just(Step::Look),
    ]
}

/// What the model knows of a record.
#[derive(Clone, Debug, PartialEq)]
enum Fact {
    Call {
        begin: u64,
        slots: u64,
        end: Option<End>,
    },
    Note {
        id: u64,
    },
    Annotation {
        ticks: u64,
        bytes: usize,
    },
    /// The end of an earlier call.
    Late {
        of: u64,
    },
    /// Notes that tell of losses come where the ring likes.
    Lost,
}

struct Model {
    sample: Sample,
    mode: Mode,
    /// Whether numbers may be jumped over.
    grows: bool,
    now: u64,
    open: Vec<(Open, u64)>,
    /// Claims of the ring's thread that nothing is written to, and how many slots of others never will be.
    claims: Vec<std::ops::Range<u64>>,
    forsaken: u64,
    facts: BTreeMap<u64, Fact>,
    read: BTreeMap<u64, Entry>,
    first: u64,
    slots: u64,
    overwritten: u64,
    gaps: u64,
    lost: u64,
    notes_lost: u64,
    /// Annotations that were written where jumps may have moved them.
    texts: u64,
}

impl Model {
    fn new(stored: usize, slots: usize, mode: Mode, first: u64) -> Self {
        Self {
            sample: Sample::growing(stored, slots, mode, first),
            mode,
            grows: stored < slots,
            now: 0,
            open: Vec::new(),
            claims: Vec::new(),
            forsaken: 0,
            facts: BTreeMap::new(),
            read: BTreeMap::new(),
            first,
            slots: 0,
            overwritten: 0,
            gaps: 0,
            lost: 0,
            notes_lost: 0,
            texts: 0,
        }
    }

    fn next(&self) -> u64 {
        self.sample.cursor.next.load(Ordering::Relaxed)
    }

    /// Something was claimed: what lies behind `own` slots is a note of what was lost.
    fn claimed(&mut self, own: Option<u64>, before: u64) {
        match own {
            Some(_) if self.grows => {}
            Some(slots) => (before + slots..self.next()).for_each(|number| {
                self.facts.insert(number, Fact::Lost);
            }),
            None => {
                self.lost += 1;
                assert!(self.next() == before || self.grows, "what found no room is given back");
            }
        }
    }

    fn begin(&mut self, slots: u64) {
        let before = self.next();
        let open = if slots == 1 { self.sample.begin(self.now) } else { self.sample.begin_long(slots, self.now) };
        self.claimed(open.map(|_| slots), before);
        if let Some(open) = open {
            assert!(open.number == before || self.grows);
            self.facts.insert(open.number, Fact::Call { begin: self.now, slots, end: None });
            self.open.push((open, self.now));
        }
    }

    fn end(&mut self, code: i32) {
        let Some((open, begin)) = self.open.pop() else { return };
        let before = self.next();
        if self.sample.end(open, self.now, code)
            && let Some(Fact::Call { end, .. }) = self.facts.get_mut(&open.number)
        {
            *end = Some(End { duration: self.now - begin, code });
        }
        if self.next() > before && !self.grows {
            self.facts.insert(before, Fact::Late { of: open.number });
        }
    }

    /// The latest claim is written to after all, unless others have its slots (flight).
    fn fill(&mut self) {
        let Some(claim) = self.claims.pop() else { return };
        if claim.start + self.sample.slots.len() as u64 >= self.next() {
            for number in claim {
                self.sample.slot(number).put(Head::done(number, Layout::Note, Note::Stack as u16), &[self.now]);
                self.facts.insert(number, Fact::Note { id: self.now });
            }
        }
    }

    fn take(&mut self, pass: Pass) {
        for (number, entry) in pass.entries {
            self.check(number, &entry);
            assert!(self.read.insert(number, entry).is_none(), "{number} was read twice");
        }
        self.slots += pass.slots;
        self.overwritten += pass.overwritten;
        self.gaps += pass.gaps;
        let drained = self.sample.control.drained.load(Ordering::Relaxed);
        let in_ring = self.next() - drained;
        assert_eq!(self.next() - self.first, self.slots + self.overwritten + self.gaps + in_ring, "the balance");
    }

    /// What is shown is what was written there.
    fn check(&self, number: u64, entry: &Entry) {
        let fact = self.facts.get(&number);
        if self.grows && fact.is_none() {
            // Where a note lies depends on jumps.
            assert!(!matches!(entry, Entry::Call(_)), "{number}: {entry:?}");
            return;
        }
        match (entry, fact.unwrap_or_else(|| panic!("{number}: {entry:?}"))) {
            (Entry::Call(call), Fact::Call { begin, slots, end }) => {
                assert_eq!((call.number, call.begin, call.site), (number, *begin, *begin));
                let known = if *slots == 1 {
                    4
                } else if *slots == 2 {
                    8
                } else {
                    10
                };
                assert!(call.arguments[..known].iter().all(|word| *word == *begin), "{call:?}");
                assert!(call.end.is_none() || call.end == *end, "{call:?} {end:?}");
            }
            (Entry::Stack { of, .. }, Fact::Note { id }) => assert_eq!(of, id),
            (
                Entry::Annotation { ticks: at, annotation: Annotation::Mark { text } },
                Fact::Annotation { ticks, bytes },
            ) => {
                let byte = |ticks: &u64| b'a' + (ticks % 26) as u8;
                assert!(at == ticks && text.len() == *bytes && text.bytes().all(|letter| letter == byte(ticks)));
            }
            (Entry::End { of, .. }, Fact::Late { of: call }) => assert_eq!(of, call),
            (Entry::Lost { .. }, Fact::Lost) => {}
            (entry, fact) => panic!("{number}: {entry:?} for {fact:?}"),
        }
    }

    fn step(&mut self, step: &Step) {
        self.now += 1;
        match *step {
            Step::Begin => self.begin(1),
            Step::BeginLong(slots) => self.begin(slots),
            Step::End(code) => self.end(code),
            Step::Leave(calls) => self.open.truncate(self.open.len().saturating_sub(calls)),
            Step::Claim(slots) => {
                let before = self.next();
                let claimed = self.sample.claim(slots, self.now);
                self.claimed(claimed.map(|_| slots), before);
                self.claims.extend(claimed.map(|first| first..first + slots));
            }
            Step::Fill => self.fill(),
            Step::HandOver => {
                self.open.clear();
                self.forsaken += self.claims.drain(..).map(|claim| claim.end - claim.start).sum::<u64>();
                self.sample.hand_over();
            }
            Step::Note => {
                let before = self.next();
                if self.sample.note(Note::Stack, &[self.now, 1, 2]) && !self.grows {
                    self.facts.insert(before, Fact::Note { id: self.now });
                }
            }
            Step::Tell(bytes) => {
                let before = self.next();
                let text = vec![b'a' + (self.now % 26) as u8; bytes];
                let annotation = AnnotationRef::mark(&text);
                // SAFETY: the cursor is open, and only this thread writes.
                let is_written =
                    unsafe { self.sample.cursor.annotate(&annotation, self.now, &self.sample.storage, || false) };
                if self.grows {
                    self.notes_lost += u64::from(!is_written);
                    self.texts += u64::from(is_written);
                } else if is_written {
                    self.facts.insert(before, Fact::Annotation { ticks: self.now, bytes: bytes.min(256) });
                    let behind = before + annotation.slots();
                    (behind..self.next()).for_each(|number| _ = self.facts.insert(number, Fact::Lost));
                } else {
                    self.notes_lost += 1;
                    assert_eq!(self.next(), before, "what found no room is given back");
                }
            }
            Step::Drain(most) => {
                let pass = self.sample.pass(ReadMode::Drain, most);
                self.take(pass);
                let drained = self.sample.control.drained.load(Ordering::Relaxed);
                let is_waited_for = self.claims.first().is_some_and(|claim| claim.start < drained);
                assert!(!is_waited_for || self.mode == Mode::Flight, "a slot was given back that may be written to");
            }
            Step::Look => {
                let heads: Vec<_> = self.sample.slots.iter().map(|slot| slot.head()).collect();
                for (number, entry) in self.sample.pass(ReadMode::Peek, usize::MAX).entries {
                    assert!(!self.read.contains_key(&number), "{number} was drained");
                    self.check(number, &entry);
                }
                assert!(self.sample.slots.iter().map(|slot| slot.head()).eq(heads), "looking changes nothing");
            }
        }
    }

    /// The process ends; a drain then reads the rest.
    fn finish(mut self) {
        loop {
            let before = self.sample.control.drained.load(Ordering::Relaxed);
            let pass = self.sample.pass(ReadMode::Finish, usize::MAX);
            self.take(pass);
            if self.sample.control.drained.load(Ordering::Relaxed) == before {
                break;
            }
        }
        let oldest = self.next().saturating_sub(self.sample.slots.len() as u64);
        let mut written = 0;
        for (number, fact) in &self.facts {
            let slots = match fact {
                Fact::Call { slots, .. } => *slots,
                Fact::Annotation { bytes, .. } => AnnotationRef::mark(&vec![b'x'; *bytes]).slots(),
                _ => 1,
            };
            written += slots;
            let is_read = self.read.contains_key(number);
            assert!(is_read || self.mode == Mode::Flight && *number < oldest, "{number}: {fact:?} was not read");
            // An end is in the record, or comes in one of its own.
            if let (Some(Entry::Call(call)), Fact::Call { end: Some(end), .. }) = (self.read.get(number), fact) {
                let late = |entry: &Entry| *entry == Entry::End { of: *number, end: *end };
                let lates = self.read.values().filter(|entry| late(entry)).count();
                let told = usize::from(call.end.is_some()) + lates;
                assert!(told == 1 || self.mode == Mode::Flight && told == 0, "{call:?}: told {told} times");
            }
        }
        let lost = self.read.values().fold((0, 0), |(lost, unsaid), entry| match entry {
            Entry::Lost { calls, notes, .. } => (lost + calls, unsaid + notes),
            _ => (lost, unsaid),
        });
        let control = &self.sample.control;
        let load = |[one, other]: [&AtomicU64; 2]| (one.load(Ordering::Relaxed), other.load(Ordering::Relaxed));
        let told = load([&control.told, &control.notes_told]);
        assert_eq!(load([&control.not_recorded, &control.notes_lost]), (self.lost, self.notes_lost));
        if self.grows {
            let texts = self.read.values().filter(|entry| matches!(entry, Entry::Annotation { .. })).count() as u64;
            assert_eq!((self.overwritten, lost, texts), (0, told, self.texts));
        } else if self.mode == Mode::Audit {
            assert_eq!((self.overwritten, lost, self.slots), (0, told, written));
            // Behind the last record no note names them.
            let claims = self.claims.iter().map(|claim| claim.end - claim.start).sum::<u64>();
            assert!(self.gaps <= self.forsaken + claims, "{} gaps", self.gaps);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 500 },
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1), // the same runs for everybody
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_record_is_read_once_as_it_was_written_or_counted(
        size in 4..7u32,
        is_flight: bool,
        first in prop_oneof![Just(0u64), Just((1 << 40) - 20), 0..100u64],
        steps in prop::collection::vec(step(), 1..if cfg!(miri) { 60 } else { 300 }),
    ) {
        let mode = if is_flight { Mode::Flight } else { Mode::Audit };
        let mut model = Model::new(1 << size, 1 << size, mode, first);
        steps.iter().for_each(|step| model.step(step));
        model.finish();
    }

    #[test]
    fn a_ring_that_grows_and_shrinks_loses_no_record(
        size in 4..6u32,
        left in 0..100u32,
        first in prop_oneof![Just(0u64), Just((1 << 40) - 250), 0..10u64],
        steps in prop::collection::vec((step(), 0..3u8), 1..if cfg!(miri) { 60 } else { 300 }),
    ) {
        let mut model = Model::new(1 << size, 256, Mode::Audit, first);
        model.sample.storage.left.set(left);
        for (step, pace) in &steps {
            model.sample.storage.pace.set([Pace::Quick, Pace::Steady, Pace::Slow][usize::from(*pace)]);
            model.step(step);
        }
        model.finish();
    }
}
