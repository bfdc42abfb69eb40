//! The checks of each shape of call, in order: put together at compile time from the steps of all rules.
//!
//! Releases differ in what they accept early (see [`Subject::is_nothing`]); where an older release checks in
//! another order, the codes are equal, and one order stands for both.

use super::entries::argument::is_same;
use super::entries::{batch, words};
use super::table::RULES;
use crate::call::Call;
use crate::call::functions::Function;
use crate::call::shape::{BATCH, FILL, FILL_WORDS, INDIRECT, LINEAR, PITCHED, SYMBOLS, Shape, Shapes};
use crate::rules::rule::{Phase, Rule, Step, Subject};

/// A point of the vendor's order at which it may accept a call, with nothing to do.
pub struct Acceptance {
    /// Its position among the vendor's checks.
    pub position: u16,
    /// The shapes of calls that are accepted here.
    pub shapes: Shapes,
    /// Whether the vendor accepts a call; `None` if that is not known.
    pub accepts: fn(&Subject) -> Option<bool>,
}

static ACCEPTANCES: [Acceptance; 5] = [
    Acceptance {
        position: 10,
        shapes: LINEAR.or(PITCHED).or(INDIRECT).or(SYMBOLS).or(FILL).or(FILL_WORDS),
        accepts: |s| s.is_nothing(),
    },
    Acceptance { position: 40, shapes: BATCH, accepts: batch::is_nothing },
    Acceptance { position: 350, shapes: LINEAR.synchronous(), accepts: is_same },
    Acceptance { position: 580, shapes: LINEAR.asynchronous().or(SYMBOLS), accepts: is_same },
    Acceptance { position: 680, shapes: FILL_WORDS, accepts: words::is_ignored },
];

/// One check of a call.
pub enum Check {
    /// The vendor may accept the call here.
    Accept(&'static Acceptance),
    /// A step of a rule.
    Rule(&'static Rule, &'static Step),
}

/// The checks of one shape of call.
#[derive(Clone, Copy)]
pub struct Checklist {
    entries: [Entry; Self::ROOM],
    /// Where the entries of each phase end.
    ends: [u8; Phase::COUNT],
}

/// One check by numbers, which need no relocation: the table costs a process nothing.
#[derive(Clone, Copy)]
enum Entry {
    /// By its position in [`ACCEPTANCES`].
    Accept(u8),
    /// A rule by its number, and a step of it.
    Step(u8, u8),
}

impl Entry {
    /// Its phase, and its position in that.
    const fn sort_key(self) -> (Phase, u16) {
        match self {
            Entry::Accept(index) => (Phase::Vendor, ACCEPTANCES[index as usize].position),
            Entry::Step(rule, step) => {
                let step = RULES[rule as usize].steps[step as usize];
                (step.phase, step.position)
            }
        }
    }
}

impl Checklist {
    const ROOM: usize = 40;
    const EMPTY: Self = Self { entries: [Entry::Accept(0); Self::ROOM], ends: [0; Phase::COUNT] };

    const fn new(shape: Shape) -> Self {
        let mut checklist = Self::EMPTY;
        let mut index = 0;
        while index < ACCEPTANCES.len() {
            if ACCEPTANCES[index].shapes.has(shape) {
                checklist.insert(Entry::Accept(index as u8));
            }
            index += 1;
        }
        let mut number = 0;
        while number < RULES.len() {
            let steps = RULES[number].steps;
            let mut index = 0;
            while index < steps.len() {
                if steps[index].shapes.has(shape) && !matches!(steps[index].phase, Phase::Items) {
                    checklist.insert(Entry::Step(number as u8, index as u8));
                }
                index += 1;
            }
            number += 1;
        }
        checklist
    }

    /// Inserts an entry behind those of earlier positions.
    const fn insert(&mut self, entry: Entry) {
        let (phase, position) = entry.sort_key();
        let first = if phase as usize == 0 { 0 } else { self.ends[phase as usize - 1] as usize };
        let mut at = self.ends[Phase::COUNT - 1] as usize;
        while at > first {
            let (other, before) = self.entries[at - 1].sort_key();
            let is_behind = other as usize > phase as usize || before > position;
            assert!(is_behind || before < position, "two checks of one shape have one position");
            if !is_behind {
                break;
            }
            self.entries[at] = self.entries[at - 1];
            at -= 1;
        }
        self.entries[at] = entry;
        let mut later = phase as usize;
        while later < Phase::COUNT {
            self.ends[later] += 1;
            later += 1;
        }
    }

    /// The checks of a phase for a function of this shape, in order.
    pub fn checks(&self, phase: Phase, function: Function) -> impl Iterator<Item = Check> {
        let end = usize::from(self.ends[phase as usize]);
        let start = (phase as usize).checked_sub(1).map_or(0, |before| usize::from(self.ends[before]));
        self.entries[start..end].iter().filter_map(move |entry| match *entry {
            Entry::Accept(index) => Some(Check::Accept(&ACCEPTANCES[index as usize])),
            Entry::Step(number, step) => {
                let rule = RULES[number as usize];
                let step = &rule.steps[step as usize];
                step.concerns(function).then_some(Check::Rule(rule, step))
            }
        })
    }
}

static CHECKLISTS: [Checklist; Shape::COUNT] = {
    let mut checklists = [Checklist::EMPTY; Shape::COUNT];
    let mut number = 0;
    while number < Shape::COUNT {
        checklists[number] = Checklist::new(Shape::from_number(number));
        number += 1;
    }
    checklists
};

/// The checklist of a call, by its shape.
pub fn checklist(call: &Call) -> &'static Checklist {
    &CHECKLISTS[call.shape().number()]
}
