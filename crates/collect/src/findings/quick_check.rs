//! The quick look at calls of one slot: of nearly every call in a trace there is nothing to tell.

use aclshim_facts::Function;
use aclshim_facts::rules::ALIGN_64;
use aclshim_facts::rules::quick::{alignment_bits, has_valid_range, has_valid_ranges, is_fill, valid_kinds};
use aclshim_facts::world::RunMode;
use aclshim_trace::record::slot::{Head, KIND_MAX, Layout, Words};
use std::collections::BTreeSet;

/// What a linear call of one function must be like. It is looked up: which function comes next in a trace cannot be
/// foreseen, and a branch that is taken in vain costs more than the rest of the look. The default fits no call.
#[derive(Clone, Copy, Default)]
struct Linear {
    /// The kinds that break no rule, a bit each.
    kinds: u32,
    /// Whether the function fills bytes.
    is_fill: bool,
    /// The bits that are 0 in addresses that are aligned.
    misaligned: u64,
}

impl Linear {
    fn new(function: Function, form: Option<RunMode>) -> Self {
        const { assert!(KIND_MAX < u32::BITS) };
        let call = function.call(&[]);
        let valid = valid_kinds(function, &call, form);
        Self {
            kinds: (0..=KIND_MAX).filter(|kind| valid.contains(&(*kind as i32))).fold(0, |bits, kind| bits | 1 << kind),
            is_fill: is_fill(function, &call),
            misaligned: alignment_bits(&call) as u64,
        }
    }

    /// Whether an exact call with this head breaks no rule by its kind.
    #[inline(always)]
    fn allows(self, head: Head) -> bool {
        match head.layout() {
            Layout::Linear => self.kinds >> head.kind() & 1 == 1,
            Layout::Fill => self.is_fill,
            _ => false,
        }
    }

    /// Whether an exact call breaks no rule but ALIGN-64.
    #[inline(always)]
    fn is_sound(self, head: Head, slot: &Words) -> bool {
        let [dst, src, size] = [slot[4], slot[5], slot[6]].map(|word| word as usize);
        self.allows(head)
            && match head.layout() {
                Layout::Linear => has_valid_ranges([dst, size, src, size]),
                _ => has_valid_range([dst, size, size]),
            }
    }

    /// Whether a linear call breaks ALIGN-64.
    #[inline(always)]
    fn is_misaligned(self, head: Head, slot: &Words) -> bool {
        head.layout() == Layout::Linear && (slot[4] | slot[5]) & self.misaligned != 0
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
    /// The functions by the header's numbers.
    functions: Vec<Option<Function>>,
    /// What their calls must be like, by the same numbers.
    linear: Vec<Linear>,
    /// Whether the run is judged for no other product. Else there is more to find out about every call.
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
    /// For a process with these functions, whose run is judged for its own product alone, or for others as well.
    pub fn new(functions: Vec<Option<Function>>, is_alone: bool) -> Self {
        let told = Sites { all: BTreeSet::new(), quick: [None; QUICK] };
        let mut check = Self { functions, linear: Vec::new(), is_alone, told };
        check.learn(None);
        check
    }

    /// Takes over what is known of the form by now.
    pub fn learn(&mut self, form: Option<RunMode>) {
        let linear = |function: &Option<Function>| function.map(|function| Linear::new(function, form));
        let of_each = self.functions.iter().map(|function| linear(function).filter(|_| self.is_alone));
        self.linear = of_each.map(Option::unwrap_or_default).collect();
    }

    /// The functions by the header's numbers.
    pub fn functions(&self) -> &[Option<Function>] {
        &self.functions
    }

    /// ALIGN-64 was reported for this call site.
    pub fn told(&mut self, site: u64) {
        self.told.insert(site);
    }

    /// Number of call sites that it was reported for.
    pub fn sites(&self) -> usize {
        self.told.all.len()
    }

    /// ALIGN-64, if that is broken by the common call in a slot.
    #[inline(always)]
    pub fn misaligned(&self, slot: &Words) -> u128 {
        let head = Head(slot[0]);
        let linear = self.linear.get(usize::from(head.function())).copied().unwrap_or_default();
        u128::from(linear.is_misaligned(head, slot)) << ALIGN_64.number
    }

    /// The calls of the common kind that slots begin with. Every slot is handed to `each`: who has more to do with it does
    /// that best while it is looked at.
    #[inline(always)]
    pub fn run(&self, slots: &[Words], mut each: impl FnMut(&Words)) -> Run {
        let mut run = Run::default();
        for (at, slot) in slots.iter().enumerate() {
            each(slot);
            if self.goes_on(slot, slots.get(at + 1), &mut run).is_none() {
                slots[at + 1..].iter().for_each(each);
                break;
            }
        }
        run
    }

    /// The aligned linear calls that returned 0 and are of the common kind, with which slots begin: the simplest ones. Each is
    /// handed to `add`, with the class that it is of by its head; a call for which `class` has none ends them.
    ///
    /// Consecutive calls of one function and kind have heads that differ in the number alone. What follows from the head is
    /// found out once for all of them.
    #[inline(always)]
    pub fn simplest(
        &self,
        slots: &[Words],
        class: impl Fn(Head) -> Option<usize>,
        mut add: impl FnMut(usize, &Words),
    ) -> usize {
        /// The difference of the heads of consecutive numbers.
        const STEP: u64 = Head::done(1, Layout::Linear, 0).0.wrapping_sub(Head::done(0, Layout::Linear, 0).0);
        // The head of the next call if it is like the last one, the bits that its addresses must not have, and its class.
        let (mut expected, mut misaligned, mut of) = (0, 0, 0);
        for (at, slot) in slots.iter().enumerate() {
            let head = Head(slot[0]);
            if head.0 != expected {
                let linear = self.linear.get(usize::from(head.function())).copied().unwrap_or_default();
                if !head.is_exact() || head.layout() != Layout::Linear || !linear.allows(head) {
                    return at;
                }
                let Some(class) = class(head) else { return at };
                (misaligned, of) = (linear.misaligned, class);
            }
            expected = head.0.wrapping_add(STEP);
            let [dst, src, size] = [slot[4], slot[5], slot[6]].map(|word| word as usize);
            // A code is not 0, or the duration stands elsewhere.
            let is_simple = slot[2] < u64::from(u32::MAX) && (slot[4] | slot[5]) & misaligned == 0;
            if !is_simple || !has_valid_ranges([dst, size, src, size]) {
                return at;
            }
            add(of, slot);
        }
        slots.len()
    }

    /// One more call of a run, if it is one: there is nothing to tell of it. One whose addresses are not aligned, at a call
    /// site that ALIGN-64 was reported for, is only counted.
    #[inline(always)]
    fn goes_on(&self, slot: &Words, next: Option<&Words>, run: &mut Run) -> Option<()> {
        let head = Head(slot[0]);
        let linear = self.linear.get(usize::from(head.function()))?;
        if !head.is_exact() || slot[2] as u32 == u32::MAX || !linear.is_sound(head, slot) {
            return None;
        }
        let is_misaligned = linear.is_misaligned(head, slot);
        if is_misaligned && !self.told.has(slot[3]) {
            return None;
        }
        if has_failed(slot) {
            // What the host has noted of it would stand behind it.
            next.filter(|next| !is_misaligned && Head(next[0]).layout() != Layout::Note)?;
            run.last_failed[run.failed % LAST] = run.count;
            run.failed += 1;
        }
        run.misaligned += u64::from(is_misaligned);
        run.count += 1;
        Some(())
    }
}
