//! What records add up to: calls, bytes, errors and durations by function.

use aclshim_facts::Function;
use aclshim_facts::abi::{self, aclrtMemcpyKind};
use aclshim_facts::call::Amount;
use aclshim_facts::direction::Direction;
use aclshim_trace::record::Call;
use aclshim_trace::record::slot::{Head, Layout, Words};
use aclshim_trace::system::clock::Calibration;

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
        // The sixteen buckets of a power of two from 16 on follow those of the power before, and the five highest bits of
        // the value, which are 16 to 31, say which of them it is. Smaller values are their own buckets.
        let shift = (value | 16).ilog2() - 4;
        let bucket = u64::from(shift) * 16 + (value >> shift);
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
    /// Adds a common call that returned 0, and how long it took, if that is known.
    #[inline(always)]
    pub(crate) fn add_common(&mut self, slot: &Words, duration_ns: Option<u64>) {
        self.calls += 1;
        self.bytes = self.bytes.saturating_add(slot[6]);
        if let Some(duration) = duration_ns {
            self.durations.add(duration);
        }
    }

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

/// The calls of one process, added up. Which of them are under way is known to the
/// [interpreter](crate::interpreter), which reports each change here.
#[derive(Debug, Default)]
pub struct Totals {
    /// By the header's numbers; by these and by kind where that is asked for.
    sums: Vec<Sums>,
    by_kind: bool,
}

/// Which calls are added up together: those of one function, or of one function and kind.
#[derive(Clone, Copy)]
pub(crate) struct Classes {
    by_kind: bool,
}

impl Classes {
    /// The class of a common call, by its head.
    #[inline(always)]
    pub(crate) fn of(self, head: Head) -> usize {
        self.index(head.function().into(), || kind_of_slot(head))
    }

    fn index(self, function: usize, kind: impl FnOnce() -> usize) -> usize {
        if self.by_kind { function * KINDS + kind() } else { function }
    }
}

/// The kinds of copy that totals can be counted by: those with a name, all others, and for calls without a kind, which are
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
        None => NO_KIND + direction(None, call) as usize,
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

/// Which way the bytes of a call of that kind went.
pub(crate) fn direction(kind: Option<aclrtMemcpyKind>, call: &Call) -> Direction {
    match kind {
        Some(kind) => Direction::of_kind(kind.0),
        None => call
            .batch
            .as_ref()
            .and_then(|batch| batch.direction)
            .map_or(Direction::Unknown, |(dst, src)| Direction::of_places(dst.into(), src.into())),
    }
}

/// How many bytes a call asks to move or set.
pub fn bytes(function: Function, call: &Call) -> u64 {
    match function.call(&call.arguments).amount() {
        Amount::Bytes(bytes) => bytes,
        Amount::Sum { .. } => call.batch.as_ref().map_or(0, |batch| batch.total),
    }
}

impl Totals {
    /// One that also tells the kinds of copy apart.
    pub fn of_kinds() -> Self {
        Self { by_kind: true, ..Self::default() }
    }

    fn index(&self, function: usize, kind: impl FnOnce() -> usize) -> usize {
        self.classes().index(function, kind)
    }

    /// Counts a call whose record was read.
    pub(crate) fn begun(&mut self, function: Option<Function>, call: &Call) {
        let sums = self.sums(self.index(call.function.into(), || kind_of(function, call)));
        if call.is_nested {
            sums.nested += 1;
        } else {
            sums.calls += 1;
            sums.injected += u64::from(call.is_injected());
        }
    }

    /// Adds a number of calls to those under way: 1 where the end of a call is awaited, -1 where it is no longer.
    pub(crate) fn in_flight(&mut self, function: Option<Function>, call: &Call, more: i64) {
        if !call.is_nested {
            let sums = self.sums(self.index(call.function.into(), || kind_of(function, call)));
            sums.in_flight = sums.in_flight.saturating_add_signed(more);
        }
    }

    /// Adds what a call that has ended returned, how many bytes it moved, and how long it took.
    pub(crate) fn ended(&mut self, function: Option<Function>, call: &Call, clock: Option<&Calibration>) {
        let Some(end) = call.end.filter(|_| !call.is_nested) else { return };
        let sums = self.sums(self.index(call.function.into(), || kind_of(function, call)));
        if end.code == 0 {
            sums.bytes = sums.bytes.saturating_add(function.map_or(0, |function| bytes(function, call)));
        } else {
            sums.errors += 1;
        }
        if let Some(clock) = clock {
            sums.durations.add(clock.span_ns(end.duration));
        }
    }

    /// Adds a [common](crate::interpreter::visitor::Plain) call that returned 0, and how long it took, if that is known.
    #[inline(always)]
    pub(crate) fn common(&mut self, slot: &Words, duration_ns: Option<u64>) {
        let class = self.classes().of(Head(slot[0]));
        self.sums(class).add_common(slot, duration_ns);
    }

    /// Which common calls are added up together.
    fn classes(&self) -> Classes {
        Classes { by_kind: self.by_kind }
    }

    /// Which common calls are added up together, and the sums of the classes that there were so far.
    pub(crate) fn by_class(&mut self) -> (Classes, &mut [Sums]) {
        (self.classes(), &mut self.sums)
    }

    /// All of another that tells the same apart, and in which nothing is under way.
    pub fn merge(&mut self, other: &Totals) {
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

    /// By the header's numbers; of totals without kinds.
    pub fn functions(&self) -> &[Sums] {
        &self.sums
    }

    /// By the header's numbers, whatever else is told apart.
    pub fn by_function(&self) -> Vec<Sums> {
        let each = if self.by_kind { KINDS } else { 1 };
        self.sums.chunks(each).map(sum).collect()
    }

    /// What there is by the header's number, the kind and the direction; of totals with kinds.
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
