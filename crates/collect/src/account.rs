//! What records add up to: calls, bytes, errors and durations by function.

use crate::seen;
use aclshim_facts::Function;
use aclshim_facts::abi;
use aclshim_facts::call::Amount;
use aclshim_facts::direction::Direction;
use aclshim_trace::record::slot::{Head, Layout, Words};
use aclshim_trace::record::{Call, End, Entry};
use aclshim_trace::system::clock::Calibration;
use std::collections::BTreeMap;

/// The most open calls that are remembered, so that a stream of calls that never end cannot eat the memory.
const MOST_OPEN: usize = 65_536;

/// Sixteen for each power of two from 16 on, and one for each smaller number.
const BUCKETS: usize = 16 * 61;

/// Durations in buckets whose width is a sixteenth of their value.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// The largest of all.
    max: u64,
    buckets: Vec<u64>,
    count: u64,
    sum: u64,
}

impl Histogram {
    /// One more.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let power = value.max(16).ilog2();
        let bucket = if value < 16 { value } else { u64::from(power - 3) * 16 + (value >> (power - 4) & 15) };
        match self.buckets.get_mut(bucket as usize) {
            Some(bucket) => *bucket += 1,
            None => self.first(bucket as usize),
        }
        self.count += 1;
        self.max = self.max.max(value);
        self.sum = self.sum.saturating_add(value);
    }

    #[cold]
    fn first(&mut self, bucket: usize) {
        self.buckets.resize(BUCKETS, 0);
        self.buckets[bucket] += 1;
    }

    /// All of another.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (mine, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += more;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All of them together.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// How many are less than a power of two, which is at least 16.
    pub fn below(&self, power: u32) -> u64 {
        self.buckets.iter().take((power as usize - 3) * 16).sum()
    }

    /// The largest value; `None` if there is none.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Each power of two that any value is below and not below its half, and how many those are.
    pub fn powers(&self) -> Vec<(u64, u64)> {
        let mut powers: Vec<(u64, u64)> = Vec::new();
        for (bucket, count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let power = if bucket < 16 {
                (bucket as u64 + 1).next_power_of_two()
            } else {
                (1u64 << (bucket / 16 + 3)).saturating_mul(2)
            };
            match powers.last_mut().filter(|(last, _)| *last == power) {
                Some((_, sum)) => *sum += count,
                None => powers.push((power, *count)),
            }
        }
        powers
    }

    /// The value that so many of a hundred do not exceed, to within a sixteenth; `None` if there is none.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let wanted = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += *count;
            seen >= wanted
        });
        bucket.map(|bucket| match bucket as u64 {
            small if small < 16 => small,
            bucket => {
                let (power, step) = ((bucket / 16 + 3) as u32, bucket % 16);
                let width = 1u64 << (power - 4);
                // The middle of the last bucket may lie above the largest value in it.
                ((1 << power) + step * width + width / 2).min(self.max)
            }
        })
    }
}

/// What is known of one function.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Outermost calls.
    pub calls: u64,
    /// Calls inside another.
    pub nested: u64,
    /// Outermost calls that returned something else than 0.
    pub errors: u64,
    /// Outermost calls that an injection has struck.
    pub injected: u64,
    /// Bytes of outermost calls that returned 0.
    pub bytes: u64,
    /// Outermost calls under way.
    pub in_flight: u64,
    /// How long outermost calls took, in nanoseconds.
    pub durations: Histogram,
}

impl Sums {
    /// Adds another.
    pub fn merge(&mut self, other: &Sums) {
        self.calls += other.calls;
        self.nested += other.nested;
        self.errors += other.errors;
        self.injected += other.injected;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.in_flight += other.in_flight;
        self.durations.merge(&other.durations);
    }
}

/// A call whose end has not been read yet.
#[derive(Debug)]
struct Open {
    index: usize,
    bytes: u64,
    is_left: bool,
    is_nested: bool,
}

/// The records of one process, added up in the order of their rings.
#[derive(Debug, Default)]
pub struct Account {
    /// By the header's numbers; by these and by kind where that is asked for.
    sums: Vec<Sums>,
    by_kind: bool,
    open: BTreeMap<(u32, u64), Open>,
}

/// The kinds of copy that an account tells apart: those with a name, all others, and for calls without a kind, which are
/// fills and batches, the directions.
const KINDS: usize = abi::KINDS.len() + 1 + Direction::ALL.len();
const OTHER_KIND: usize = abi::KINDS.len();
const NO_KIND: usize = OTHER_KIND + 1;

/// The kind of a call of one slot.
fn kind_of_slot(head: Head) -> usize {
    match head.layout() {
        Layout::Fill => NO_KIND + Direction::Unknown as usize,
        _ => OTHER_KIND.min(head.kind().into()),
    }
}

/// The kind of a call.
fn kind_of(function: Option<Function>, call: &Call) -> usize {
    let kind = function.and_then(|function| function.call(&call.arguments).kind());
    match kind {
        Some(kind) => usize::try_from(kind.0).map_or(OTHER_KIND, |kind| kind.min(OTHER_KIND)),
        None => NO_KIND + seen::direction(None, call) as usize,
    }
}

/// A kind by its name, and which way it goes.
fn named(kind: usize) -> (&'static str, Direction) {
    match kind {
        NO_KIND.. => ("NONE", Direction::ALL[kind - NO_KIND]),
        OTHER_KIND => ("OTHER", Direction::Unknown),
        _ => (abi::KINDS[kind], Direction::of_kind(kind as i32)),
    }
}

/// How many bytes a call asks to move or set.
pub fn bytes(function: Function, call: &Call) -> u64 {
    match function.call(&call.arguments).amount() {
        Amount::Bytes(bytes) => bytes,
        Amount::Sum { .. } => call.batch.as_ref().map_or(0, |batch| batch.total),
    }
}

impl Account {
    /// One that also tells the kinds of copy apart.
    pub fn of_kinds() -> Self {
        Self { by_kind: true, ..Self::default() }
    }

    fn index(&self, function: usize, kind: impl FnOnce() -> usize) -> usize {
        if self.by_kind { function * KINDS + kind() } else { function }
    }

    /// Adds a record of ring `ring`; `function` is what the process called number `call.function`.
    pub fn add(&mut self, ring: u32, entry: &Entry, function: Option<Function>, clock: Option<&Calibration>) {
        match entry {
            Entry::Call(call) => self.call(ring, call, function, clock),
            Entry::End { of, end } => {
                if let Some(open) = self.open.remove(&(ring, *of)) {
                    if !open.is_left && !open.is_nested {
                        self.sums(open.index).in_flight -= 1;
                    }
                    self.ended(&open, end, clock);
                }
            }
            Entry::Thread { .. }
            | Entry::Lost { .. }
            | Entry::Finding { .. }
            | Entry::Stack { .. }
            | Entry::Annotation { .. } => {}
        }
    }

    /// Whether a slot is a call of the common kind, which can be added as it is: outermost, done, in one
    /// slot, and it returned 0.
    pub fn takes(slot: &Words) -> bool {
        Head(slot[0]).is_exact() && slot[2] < u64::from(u32::MAX)
    }

    /// Adds a slot that it [`takes`](Self::takes), and how long that took, if that can be told. What was under way
    /// before it on its ring has been [left](Self::leave).
    #[inline(always)]
    pub fn take(&mut self, slot: &Words, duration_ns: Option<u64>) {
        let head = Head(slot[0]);
        let index = self.index(head.function().into(), || kind_of_slot(head));
        let sums = self.sums(index);
        sums.calls += 1;
        sums.bytes = sums.bytes.saturating_add(slot[6]);
        if let Some(duration) = duration_ns {
            sums.durations.add(duration);
        }
    }

    /// All of another that tells the same apart, and in which nothing is under way.
    pub fn merge(&mut self, other: &Account) {
        for (index, sums) in other.sums.iter().enumerate() {
            self.sums(index).merge(sums);
        }
    }

    #[inline]
    fn sums(&mut self, index: usize) -> &mut Sums {
        if self.sums.len() <= index {
            self.make_room(index + 1);
        }
        &mut self.sums[index]
    }

    #[cold]
    fn make_room(&mut self, len: usize) {
        self.sums.resize_with(len, Sums::default);
    }

    fn call(&mut self, ring: u32, call: &Call, function: Option<Function>, clock: Option<&Calibration>) {
        let index = self.index(call.function.into(), || kind_of(function, call));
        let open = Open {
            index,
            bytes: function.map_or(0, |function| bytes(function, call)),
            is_left: false,
            is_nested: call.is_nested,
        };
        if call.is_nested {
            self.sums(index).nested += 1;
        } else {
            let sums = self.sums(index);
            sums.calls += 1;
            sums.injected += u64::from(call.is_injected());
            self.leave(ring, call.number);
        }
        match &call.end {
            // A duration that did not fit comes in a record of its own.
            Some(end) if end.duration < u64::from(u32::MAX) => self.ended(&open, end, clock),
            _ => {
                if !call.is_nested {
                    self.sums(index).in_flight += 1;
                }
                self.open.insert((ring, call.number), open);
                if self.open.len() > MOST_OPEN {
                    self.open.pop_first();
                }
            }
        }
    }

    /// An outermost call shows that all before it on the same ring have been left.
    #[inline]
    pub fn leave(&mut self, ring: u32, number: u64) {
        if !self.open.is_empty() {
            self.leave_open(ring, number);
        }
    }

    #[inline(never)]
    fn leave_open(&mut self, ring: u32, number: u64) {
        // What stands before one that was left was left with it.
        let newest = self.open.range_mut((ring, 0)..(ring, number)).rev().map(|(_, open)| open);
        for open in newest.take_while(|open| !open.is_left) {
            if !open.is_nested {
                self.sums[open.index].in_flight -= 1;
            }
            open.is_left = true;
        }
    }

    fn ended(&mut self, open: &Open, end: &End, clock: Option<&Calibration>) {
        if open.is_nested {
            return;
        }
        let sums = self.sums(open.index);
        if end.code == 0 {
            sums.bytes = sums.bytes.saturating_add(open.bytes);
        } else {
            sums.errors += 1;
        }
        if let Some(clock) = clock {
            sums.durations.add(clock.span_ns(end.duration));
        }
    }

    /// By the header's numbers; of an account that does not tell kinds apart.
    pub fn functions(&self) -> &[Sums] {
        &self.sums
    }

    /// By the header's numbers, whatever else is told apart.
    pub fn by_function(&self) -> Vec<Sums> {
        let each = if self.by_kind { KINDS } else { 1 };
        self.sums.chunks(each).map(sum).collect()
    }

    /// What there is by the header's number, the kind and the direction; of an account that tells kinds apart.
    pub fn kinds(&self) -> impl Iterator<Item = (usize, &'static str, Direction, &Sums)> {
        let used = self.sums.iter().enumerate().filter(|(_, sums)| sums.calls + sums.nested > 0);
        used.map(|(index, sums)| {
            let (kind, direction) = named(index % KINDS);
            (index / KINDS, kind, direction, sums)
        })
    }

    /// Everything together.
    pub fn total(&self) -> Sums {
        sum(&self.sums)
    }
}

fn sum(parts: &[Sums]) -> Sums {
    parts.iter().fold(Sums::default(), |mut total, sums| {
        total.merge(sums);
        total
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use aclshim_trace::record::ARGUMENTS;

    fn call(number: u64, is_nested: bool, end: Option<End>) -> Entry {
        let mut arguments = [0; ARGUMENTS];
        arguments[3] = 100;
        Entry::Call(Call {
            number,
            function: Function::aclrtMemcpy as u8,
            arguments,
            begin: 0,
            end,
            site: 0,
            is_nested,
            findings: 0,
            flags: 0,
            scope: 0,
            batch: None,
        })
    }

    fn account(entries: &[Entry]) -> Sums {
        let mut account = Account::default();
        for entry in entries {
            account.add(7, entry, Some(Function::aclrtMemcpy), None);
        }
        account.total()
    }

    const GOOD: End = End { duration: 5, code: 0 };

    #[test]
    fn a_call_in_flight_is_left_once_another_outermost_one_follows() {
        let open = account(&[call(1, false, None)]);
        assert_eq!((open.calls, open.in_flight, open.bytes), (1, 1, 0));
        let nested = account(&[call(1, false, None), call(2, true, Some(GOOD))]);
        assert_eq!((nested.calls, nested.nested, nested.in_flight), (1, 1, 1));
        let left = account(&[call(1, false, None), call(2, false, Some(GOOD))]);
        assert_eq!((left.calls, left.in_flight, left.bytes), (2, 0, 100));
    }

    #[test]
    fn an_end_that_comes_apart_completes_its_call() {
        let end = |of, code| Entry::End { of, end: End { duration: 9, code } };
        let sums = account(&[call(1, false, None), end(1, 0)]);
        assert_eq!((sums.calls, sums.in_flight, sums.bytes, sums.errors), (1, 0, 100, 0));
        let sums = account(&[call(1, false, None), call(2, false, Some(GOOD)), end(1, 7), end(55, 0)]);
        assert_eq!((sums.calls, sums.in_flight, sums.bytes, sums.errors), (2, 0, 100, 1));
    }

    #[test]
    fn percentiles_are_right_to_a_sixteenth() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), None);
        (1..=10_000).for_each(|value| histogram.add(value));
        let mut merged = Histogram::default();
        merged.merge(&histogram);
        assert_eq!((histogram.max(), merged.max()), (Some(10_000), Some(10_000)));
        for (percent, exact) in [(50, 5000), (99, 9900), (1, 100), (100, 10_000)] {
            let found = histogram.percentile(percent).unwrap();
            assert!(found.abs_diff(exact) <= exact / 16 + 1, "{percent}: {found}");
        }
    }

    #[test]
    fn no_percentile_is_above_the_largest() {
        // Each is the first value of its bucket, whose middle lies above it.
        for largest in [1, 17, 32, 1024, 1 << 20, 1 << 63] {
            let mut histogram = Histogram::default();
            histogram.add(1);
            histogram.add(largest);
            assert_eq!(histogram.percentile(100), Some(largest));
        }
    }
}
