//! The quick look at calls of one slot: of nearly every call in a trace there is nothing to tell.

use aclshim_facts::Function;
use aclshim_facts::rules::ALIGN_64;
use aclshim_facts::rules::quick::{alignment_bits, has_valid_range, has_valid_ranges, is_fill, valid_kinds};
use aclshim_facts::world::RunMode;
use aclshim_trace::record::slot::{Head, Layout, Words};
use std::collections::BTreeSet;
use std::ops::Range;

/// What a linear call of one function must be like. It is looked up: which function comes next in a trace cannot be
/// foreseen, and a branch that is taken in vain costs more than the rest of the look.
#[derive(Clone)]
struct Linear {
    kinds: Range<i32>,
    /// Whether the function fills bytes.
    is_fill: bool,
    /// The bits that are 0 in addresses that are aligned.
    misaligned: usize,
}

impl Linear {
    fn new(function: Function, form: Option<RunMode>) -> Self {
        let call = function.call(&[]);
        Self {
            kinds: valid_kinds(function, &call, form),
            is_fill: is_fill(function, &call),
            misaligned: alignment_bits(&call),
        }
    }
}

/// Number of failed calls of a run whose places are remembered: a note may be about one of them.
pub(crate) const LAST: usize = 4;

/// Number of call sites that are found with one look.
const QUICK: usize = 256;

/// Call sites that ALIGN-64 was reported for: it is reported once.
#[derive(Clone)]
struct Sites {
    all: BTreeSet<u64>,
    /// Some of them, each at its place.
    quick: [Option<u64>; QUICK],
}

impl Sites {
    fn place(site: u64) -> usize {
        site.wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - QUICK.ilog2())
    }

    fn insert(&mut self, site: u64) {
        self.all.insert(site);
        self.quick[Self::place(site)] = Some(site);
    }

    #[inline]
    fn has(&self, site: u64) -> bool {
        self.quick[Self::place(site)] == Some(site) || self.all.contains(&site)
    }
}

/// All that a quick look needs to know. A copy of it can be used in another thread.
#[derive(Clone)]
pub struct QuickCheck {
    linear: [Linear; Function::ALL.len()],
    /// Whether the run is judged for no other product.
    is_alone: bool,
    told: Sites,
}

/// Calls of the common kind that follow each other: outermost, done, in one slot, and there is nothing to tell of them.
#[derive(Clone, Default)]
pub struct Run {
    /// How many.
    pub count: usize,
    /// How many of them are not aligned, at call sites that ALIGN-64 was reported for.
    pub misaligned: u64,
    /// How many of them have failed.
    failed: usize,
    /// Where the last of these stand, in turn.
    last_failed: [usize; LAST],
}

impl Run {
    /// Where the last calls stand that have failed, the first of them first.
    pub fn last_failed(&self) -> impl Iterator<Item = usize> {
        (self.failed.saturating_sub(LAST)..self.failed).map(|at| self.last_failed[at % LAST])
    }
}

/// Whether a call in one slot has failed.
#[inline(always)]
pub fn has_failed(slot: &Words) -> bool {
    slot[2] >> 32 != 0
}

/// The function that a slot is of, by the header's numbers.
#[inline(always)]
pub fn function(functions: &[Option<Function>], slot: &Words) -> Option<Function> {
    functions.get(usize::from(Head(slot[0]).function())).copied().flatten()
}

impl QuickCheck {
    /// For a run that is judged for its own product, or for others as well.
    pub fn new(is_alone: bool) -> Self {
        let told = Sites { all: BTreeSet::new(), quick: [None; QUICK] };
        Self { linear: std::array::from_fn(|number| Linear::new(Function::ALL[number], None)), is_alone, told }
    }

    /// Takes over what is known of the form by now.
    pub fn learn(&mut self, form: Option<RunMode>) {
        self.linear = std::array::from_fn(|number| Linear::new(Function::ALL[number], form));
    }

    /// ALIGN-64 was reported for this call site.
    pub fn told(&mut self, site: u64) {
        self.told.insert(site);
    }

    /// Number of call sites that it was reported for.
    pub fn sites(&self) -> usize {
        self.told.all.len()
    }

    /// The rules that a call breaks, if there is nothing to tell of it. One whose addresses are not aligned, at a call
    /// site that ALIGN-64 was reported for, is only counted.
    #[inline(always)]
    pub fn rules(&self, function: Function, slot: &Words) -> Option<u128> {
        let (head, size) = (Head(slot[0]), slot[6] as usize);
        let [dst, src] = [slot[4] as usize, slot[5] as usize];
        let is_sound = match head.layout() {
            Layout::Linear => {
                let kinds = &self.linear[function as usize].kinds;
                has_valid_ranges([dst, size, src, size]) && kinds.contains(&head.kind().into())
            }
            Layout::Fill => self.linear[function as usize].is_fill && has_valid_range([dst, size, size]),
            _ => false,
        };
        match (is_sound && self.is_alone, self.misaligned(function, slot)) {
            (true, 0) => Some(0),
            (true, rules) => self.told.has(slot[3]).then_some(rules),
            (false, _) => None,
        }
    }

    /// ALIGN-64, if that is broken by the call in a slot.
    #[inline(always)]
    pub fn misaligned(&self, function: Function, slot: &Words) -> u128 {
        let bits =
            if Head(slot[0]).layout() == Layout::Linear { self.linear[function as usize].misaligned as u64 } else { 0 };
        u128::from((slot[4] | slot[5]) & bits != 0) << ALIGN_64.number
    }

    /// The calls of the common kind that slots begin with. Every slot is handed to `each`: who has more to do with it does
    /// that best while it is looked at.
    #[inline(always)]
    pub fn run(&self, functions: &[Option<Function>], slots: &[Words], mut each: impl FnMut(&Words)) -> Run {
        let mut run = Run::default();
        for (at, slot) in slots.iter().enumerate() {
            each(slot);
            if self.goes_on(functions, slot, slots.get(at + 1), &mut run).is_none() {
                slots[at + 1..].iter().for_each(each);
                break;
            }
        }
        run
    }

    /// One more call of a run, if it is one.
    #[inline(always)]
    fn goes_on(&self, functions: &[Option<Function>], slot: &Words, next: Option<&Words>, run: &mut Run) -> Option<()> {
        let is_common = Head(slot[0]).is_exact() && slot[2] as u32 != u32::MAX;
        let rules = self.rules(function(functions, slot).filter(|_| is_common)?, slot)?;
        if has_failed(slot) {
            // What the host has noted of it would stand behind it.
            next.filter(|next| rules == 0 && Head(next[0]).layout() != Layout::Note)?;
            run.last_failed[run.failed % LAST] = run.count;
            run.failed += 1;
        }
        run.misaligned += u64::from(rules != 0);
        run.count += 1;
        Some(())
    }
}
