//! What the page is made of, gathered call by call. The memory that it takes does not grow with the number of calls.

use super::event::TimelineEvent;
use super::sample::CallSampler;
use super::timeline::Timeline;
use crate::reading::traces::rule_numbers;
use aclshim_collect::interpreter::visitor::{AnnotationView, CallView, CallVisitor, Lost};
use aclshim_facts::Function;
use aclshim_trace::record::annotation::Annotation;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum number of call sites with sums of their own.
const SITES: usize = 65_536;
/// Maximum number of time spans of lost calls.
const GAPS: usize = 2_000;
/// Maximum number of marks and scopes.
const NOTES: usize = 5_000;
/// Buckets for each power of two of a duration.
const STEPS: u64 = 4;

/// What is known of one function beside its sums.
#[derive(Clone)]
pub struct Distribution {
    /// Calls by size: none, 1, 2 to 3, 4 to 7 and so on.
    pub sizes: [u64; 65],
    /// Calls by duration: four buckets for each power of two of nanoseconds.
    pub durations: [u64; 64 * STEPS as usize],
    pub longest_ns: Option<u64>,
}

/// What happened at a call site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SiteSums {
    /// Outermost calls.
    pub calls: u64,
    /// The bytes that they moved.
    pub bytes: u64,
    /// The time that they took.
    pub busy_ns: u64,
    /// Of these, calls that failed.
    pub errors: u64,
    /// Of these, calls that break a rule.
    pub findings: u64,
    /// The functions, a bit each.
    #[serde(skip)]
    pub functions: u32,
}

/// A time in which calls of a thread were not recorded.
#[derive(Serialize)]
pub struct GapRow {
    /// By position of the track.
    pub track: usize,
    /// From when on: in nanoseconds since 1970 while calls are read, on the page counted from the first call.
    pub from: i64,
    pub to: i64,
    pub calls: u64,
}

/// A mark, or the beginning of a scope.
pub struct ProgramNote {
    /// The process, by number.
    pub process: usize,
    pub track: usize,
    /// When, in nanoseconds since 1970.
    pub time_ns: u64,
    /// What a mark says; of a scope its number.
    pub what: Result<String, u32>,
}

/// Everything that is added up of the calls.
#[derive(Default)]
pub struct Aggregate {
    /// Calls over time.
    pub timeline: Timeline,
    /// Calls one by one.
    pub sampler: CallSampler,
    /// Sizes and durations by function.
    pub distributions: BTreeMap<Function, Distribution>,
    /// Sums by process and address of the call site.
    pub sites: BoundedMap<(usize, u64), SiteSums>,
    /// Calls that break a rule: by process, rule and address.
    pub broken: BoundedMap<(usize, u8, u64), u64>,
    /// Calls that failed, by code and function.
    pub failures: BoundedMap<(i32, Function), u64>,
    /// When the calls of each process began and ended.
    pub spans: BTreeMap<usize, (u64, u64)>,
    /// Where calls are missing, as far as that is known.
    pub gaps: Vec<GapRow>,
    pub notes: Vec<ProgramNote>,
    pub more_notes: u64,
    /// Calls whose time is not known.
    pub untimed: u64,
    pub seen: u64,
}

/// A map that stops taking new keys when it is full, and counts what did not find a place.
pub struct BoundedMap<K, V> {
    pub map: BTreeMap<K, V>,
    /// What did not find a place.
    pub others: V,
}

impl<K, V: Default> Default for BoundedMap<K, V> {
    fn default() -> Self {
        Self { map: BTreeMap::new(), others: V::default() }
    }
}

impl<K: Ord, V: Default> BoundedMap<K, V> {
    fn at(&mut self, key: K) -> &mut V {
        if self.map.len() >= SITES && !self.map.contains_key(&key) {
            return &mut self.others;
        }
        self.map.entry(key).or_default()
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self { sizes: [0; 65], durations: [0; 64 * STEPS as usize], longest_ns: None }
    }
}

/// The bucket of a size: the number of its binary digits.
fn size_bucket(bytes: u64) -> usize {
    bytes.checked_ilog2().map_or(0, |log| log as usize + 1)
}

/// The bucket of a duration. Below 4 ns some stay empty.
fn duration_bucket(ns: u64) -> usize {
    let ns = ns.max(1);
    let power = ns.ilog2();
    let step = if power >= 2 { ns >> (power - 2) & (STEPS - 1) } else { (ns << (2 - power)) & (STEPS - 1) };
    (u64::from(power) * STEPS + step) as usize
}

/// Where the bucket of a duration begins, and where it ends, in nanoseconds.
pub fn duration_span(bucket: usize) -> (u64, u64) {
    let begin = |bucket: u64| {
        let begin = (u128::from(STEPS + bucket % STEPS) << (bucket / STEPS)) / u128::from(STEPS);
        u64::try_from(begin).unwrap_or(u64::MAX)
    };
    let from = begin(bucket as u64);
    (from, begin(bucket as u64 + 1).max(from.saturating_add(1)))
}

impl Aggregate {
    /// Adds a call.
    pub fn add(&mut self, call: &TimelineEvent) {
        self.seen += 1;
        match call.time_ns {
            Some(begin) => {
                let end = begin.saturating_add(call.duration_ns.unwrap_or(0));
                let span = self.spans.entry(call.process).or_insert((begin, end));
                *span = (span.0.min(begin), span.1.max(end));
            }
            None => self.untimed += 1,
        }
        let (thread, stream) = self.timeline.tracks_of(call);
        self.sampler.add(call, thread, stream);
        for rule in rule_numbers(call.rules) {
            *self.broken.at((call.process, rule, call.site)) += 1;
        }
        // What a call does inside is part of it.
        if call.is_nested {
            return;
        }
        self.timeline.add(call, thread, stream);
        if let Some(code) = call.code.filter(|code| *code != 0) {
            *self.failures.at((code, call.function)) += 1;
        }
        let distribution = self.distributions.entry(call.function).or_default();
        distribution.sizes[size_bucket(call.bytes)] += 1;
        if let Some(duration) = call.duration_ns {
            distribution.durations[duration_bucket(duration)] += 1;
            distribution.longest_ns = distribution.longest_ns.max(Some(duration));
        }
        let site = self.sites.at((call.process, call.site));
        site.calls += 1;
        site.bytes = site.bytes.saturating_add(call.moved());
        site.busy_ns = site.busy_ns.saturating_add(call.duration_ns.unwrap_or(0));
        site.errors += u64::from(call.has_failed());
        site.findings += u64::from(call.rules != 0);
        site.functions |= 1 << call.function as u8;
    }
}

impl Aggregate {
    /// Calls of a thread are missing.
    fn gap(&mut self, process: usize, thread: u32, time_ns: Range<u64>, calls: u64) {
        if self.gaps.len() < GAPS {
            let track = self.timeline.thread(process, thread);
            let (from, to) = (time_ns.start as i64, time_ns.end.max(time_ns.start) as i64);
            self.gaps.push(GapRow { track, from, to, calls });
        }
    }
}

impl CallVisitor for Aggregate {
    fn call(&mut self, seen: &CallView<'_>) {
        self.add(&TimelineEvent::new(seen));
    }

    fn lost(&mut self, lost: &Lost<'_>) {
        if let (Some(from_ns), Some(to_ns), 1..) = (lost.from_ns, lost.to_ns, lost.calls) {
            self.gap(lost.whose.process, lost.whose.thread, from_ns..to_ns, lost.calls);
        }
    }

    fn remark(&mut self, remark: &AnnotationView<'_>) {
        let what = match remark.what {
            Annotation::Mark { text } => Ok(text.clone()),
            Annotation::Scope { id, .. } => Err(*id),
            Annotation::ScopeEnd { .. } | Annotation::Name { .. } => return,
        };
        let Some(time_ns) = remark.time_ns() else { return };
        if self.notes.len() >= NOTES {
            self.more_notes += 1;
            return;
        }
        let (process, thread) = (remark.whose.process, remark.whose.thread);
        self.notes.push(ProgramNote { process, track: self.timeline.thread(process, thread), time_ns, what });
    }
}

impl SiteSums {
    /// Adds the sums of another call site.
    pub fn add(&mut self, other: &SiteSums) {
        self.calls += other.calls;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.errors += other.errors;
        self.findings += other.findings;
        self.functions |= other.functions;
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::tests::copy;
    use super::*;

    #[test]
    fn a_bucket_begins_where_the_one_before_ends() {
        assert_eq!([0, 1, 2, 3, 4, u64::MAX].map(size_bucket), [0, 1, 2, 2, 3, 64]);
        for ns in [1, 2, 3, 4, 5, 7, 8, 9, 100, 1000, 123_456_789, u64::MAX] {
            let (from, to) = duration_span(duration_bucket(ns));
            assert!(from <= ns && (ns < to || to == u64::MAX), "{ns}: {from} to {to}");
            assert!(to == u64::MAX || to - from <= from / 4 + 1, "{ns}: {from} to {to}");
        }
    }

    #[test]
    fn calls_are_counted_where_they_came_from_and_nested_ones_are_part_of_their_call() {
        let mut aggregate = Aggregate::default();
        aggregate.add(&copy(1));
        aggregate.add(&TimelineEvent { code: Some(107_000), rules: 1 << 3 | 1 << 9, ..copy(2) });
        aggregate.add(&TimelineEvent { is_nested: true, rules: 1 << 3, ..copy(3) });
        aggregate.add(&TimelineEvent { time_ns: None, duration_ns: None, ..copy(3) });
        let sums = SiteSums { calls: 3, bytes: 128, busy_ns: 20, errors: 1, findings: 1, functions: 1 };
        assert_eq!(aggregate.sites.map.values().collect::<Vec<_>>(), [&sums]);
        assert_eq!(aggregate.broken.map.values().collect::<Vec<_>>(), [&2, &1]);
        assert_eq!((aggregate.untimed, aggregate.seen), (1, 4));
        let distribution = &aggregate.distributions[&Function::aclrtMemcpy];
        assert_eq!((distribution.sizes[7], distribution.durations[13], distribution.longest_ns), (3, 2, Some(10)));
    }

    #[test]
    fn where_calls_are_missing_is_kept_on_the_track_of_their_thread() {
        let mut aggregate = Aggregate::default();
        aggregate.add(&TimelineEvent { thread: 5, stream: Some(1), ..copy(1) });
        aggregate.add(&copy(2));
        (0..5000).for_each(|at| aggregate.gap(0, 7, at..at + 3, 9));
        let thread = aggregate.timeline.tracks_of(&copy(3)).0;
        assert_eq!(aggregate.gaps.len(), GAPS);
        assert!(aggregate.gaps.iter().all(|gap| gap.track == thread && gap.to == gap.from + 3 && gap.calls == 9));
    }

    #[test]
    fn a_program_with_a_call_site_for_every_call_takes_no_more_than_its_share() {
        let mut aggregate = Aggregate::default();
        (0..100_000).for_each(|site| aggregate.add(&TimelineEvent { site, rules: 2, ..copy(site) }));
        assert_eq!((aggregate.sites.map.len(), aggregate.sites.others.calls), (SITES, 100_000 - SITES as u64));
        assert_eq!((aggregate.broken.map.len(), aggregate.broken.others), (SITES, 100_000 - SITES as u64));
    }
}
