//! What `aclshim stat` adds up besides the totals: sums by direction and size, by call site, and the slowest calls.
//!
//! A trace may hold hundreds of millions of calls: nearly all of them arrive through [`CallVisitor::plain`].

use super::scopes::Scopes;
use aclshim_collect::interpreter::visitor::{CallView, CallVisitor, CommonCallView};
use aclshim_facts::direction::Direction;
use aclshim_facts::{FUNCTIONS, Function};
use aclshim_trace::system::clock::Calibration;
use serde::Serialize;
use std::collections::BTreeMap;

mod parallel;

/// Number of slowest calls that are listed.
pub const SLOWEST: usize = 10;

/// A sum of calls, bytes and time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopySum {
    /// Calls that ended with 0.
    pub calls: u64,
    pub bytes: u64,
    pub ns: u64,
}

impl CopySum {
    fn add(&mut self, bytes: u64, ns: u64) {
        self.calls += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.ns = self.ns.saturating_add(ns);
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &CopySum) {
        self.calls += other.calls;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns = self.ns.saturating_add(other.ns);
    }

    /// Bytes a second, if any time passed.
    pub fn bytes_per_s(&self) -> Option<u64> {
        (self.ns > 0).then(|| (self.bytes as f64 / (self.ns as f64 / 1e9)) as u64)
    }
}

/// A call that took long.
#[derive(Clone, Copy, Debug)]
pub struct SlowCall {
    pub duration_ns: u64,
    pub function: Function,
    pub bytes: u64,
    pub direction: Direction,
    pub code: Option<i32>,
    pub time_ns: Option<u64>,
    /// The process, by its number.
    pub process: usize,
    pub thread: u32,
    /// The call's number on its ring.
    pub number: u64,
    pub site: u64,
    /// The turn in which it was shown: see [`Breakdown::turn`].
    turn: u64,
}

/// The process whose common calls are being added up, with its clock and the turn at the first of them.
#[derive(Clone, Copy)]
struct Clocked {
    process: usize,
    clock: Option<Calibration>,
    turn: u64,
}

/// A call site: process, address and function.
type SiteKey = (usize, u64, Function);

/// Sizes by powers of 4: class 0 is nothing, class 1 below 4 bytes, and so on.
pub const CLASSES: usize = 33;

/// The class of a size.
pub fn class(bytes: u64) -> usize {
    bytes.checked_ilog2().map_or(0, |log| log as usize / 2 + 1)
}

/// The smallest size of the class behind `class`.
pub fn class_end(class: usize) -> u64 {
    if class == 0 { 1 } else { 1u64.checked_shl(2 * class as u32).unwrap_or(u64::MAX) }
}

/// Size of the direct-mapped cache of call sites.
const QUICK: usize = 4096;

/// Whether a function takes a stream.
pub fn has_stream(function: Function) -> bool {
    function.row().arguments.iter().any(|argument| argument.name == "stream")
}

/// Sums that are added up while calls are read.
pub struct Breakdown {
    /// Calls in one slot, by direction and class. The second half holds calls on streams, which are never shown: to test for a
    /// stream each time takes longer than to add them up.
    plain: Vec<[CopySum; CLASSES]>,
    /// All other synchronous calls.
    sizes: BTreeMap<(Direction, usize), CopySum>,
    /// Where the directions of a function begin in `plain`, by its number.
    rows: Vec<usize>,
    sites: BTreeMap<SiteKey, usize>,
    sums: Vec<(SiteKey, CopySum)>,
    /// The turn in which each of them was first seen.
    since: Vec<u64>,
    quick: Vec<usize>,
    /// The calls that took the longest time, the longest first.
    pub slowest: Vec<SlowCall>,
    /// Duration that a call must exceed to be one of the slowest.
    least: u64,
    /// When the first call began, and the last one ended.
    span: Option<(u64, u64)>,
    /// First begin and last end of the common calls of `process`, in its ticks.
    ticks: (u64, u64),
    process: Option<Clocked>,
    /// The current turn, if several breakdowns are filled in parallel; after joining it is 0.
    turn: u64,
    /// Sums by scope; a call in a scope is never of the common kind.
    pub scopes: Scopes,
}

impl Default for Breakdown {
    fn default() -> Self {
        Self {
            plain: vec![[CopySum::default(); CLASSES]; 2 * Direction::ALL.len()],
            sizes: BTreeMap::new(),
            rows: FUNCTIONS
                .iter()
                .map(|row| Function::by_name(row.name).is_some_and(has_stream))
                .map(|is_on_stream| usize::from(is_on_stream) * Direction::ALL.len())
                .collect(),
            sites: BTreeMap::new(),
            sums: Vec::new(),
            since: Vec::new(),
            quick: vec![0; QUICK],
            slowest: Vec::new(),
            least: 0,
            span: None,
            ticks: (u64::MAX, 0),
            process: None,
            turn: 0,
            scopes: Scopes::default(),
        }
    }
}

impl Breakdown {
    /// The sum of a call site.
    #[inline(always)]
    fn site(&mut self, site: SiteKey) -> &mut CopySum {
        let entry = (site.1 ^ (site.2 as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        let entry = entry as usize % QUICK;
        if self.sums.get(self.quick[entry]).is_none_or(|(known, _)| *known != site) {
            self.quick[entry] = self.look_up(site);
        }
        &mut self.sums[self.quick[entry]].1
    }

    /// Where the sum of a call site stands.
    #[cold]
    fn look_up(&mut self, site: SiteKey) -> usize {
        let at = *self.sites.entry(site).or_insert(self.sums.len());
        if at == self.sums.len() {
            self.sums.push((site, CopySum::default()));
            self.since.push(self.turn);
        }
        at
    }

    /// Takes note of when a common call was. Ticks are made times when the process is another one.
    #[inline]
    fn plain_time(&mut self, plain: &CommonCallView<'_>) {
        let process = plain.whose.process;
        if self.process.is_none_or(|clocked| clocked.process != process) {
            self.other_process();
            self.process = Some(Clocked { process, clock: plain.whose.clock().copied(), turn: self.turn });
        }
        let (begin, duration) = plain.ticks();
        self.ticks.0 = self.ticks.0.min(begin);
        self.ticks.1 = self.ticks.1.max(begin.saturating_add(duration));
    }

    #[cold]
    fn other_process(&mut self) {
        let (first, last) = std::mem::replace(&mut self.ticks, (u64::MAX, 0));
        if let Some(clock) = self.process.take().filter(|_| first <= last).and_then(|clocked| clocked.clock) {
            let begin = clock.at_ns(first);
            self.time(Some(begin), clock.at_ns(last).saturating_sub(begin));
        }
    }

    /// When the first call began, and the last one ended.
    pub fn span(&mut self) -> Option<(u64, u64)> {
        self.other_process();
        self.span
    }

    fn time(&mut self, begin: Option<u64>, duration: u64) {
        if let Some(begin) = begin {
            let end = begin.saturating_add(duration);
            let (first, last) = self.span.get_or_insert((begin, end));
            *first = begin.min(*first);
            *last = end.max(*last);
        }
    }

    #[cold]
    fn slow(&mut self, slow: SlowCall) {
        let at = self.slowest.partition_point(|other| other.duration_ns >= slow.duration_ns);
        self.slowest.insert(at, slow);
        self.slowest.truncate(SLOWEST);
        if self.slowest.len() == SLOWEST {
            self.least = self.slowest.last().map_or(0, |last| last.duration_ns);
        }
    }

    /// Synchronous calls by direction and class of size.
    pub fn sizes(&self) -> BTreeMap<(Direction, usize), CopySum> {
        let mut sizes = self.sizes.clone();
        for (direction, classes) in Direction::ALL.into_iter().zip(&self.plain) {
            for (class, sum) in classes.iter().enumerate().filter(|(_, sum)| sum.calls > 0) {
                sizes.entry((direction, class)).or_default().merge(sum);
            }
        }
        sizes
    }

    /// The call sites, those that took the longest time first.
    pub fn sites(&self) -> Vec<&(SiteKey, CopySum)> {
        let mut sites: Vec<_> = self.sums.iter().collect();
        sites.sort_by_key(|(site, sum)| (std::cmp::Reverse((sum.ns, sum.calls)), site.0, site.1));
        sites
    }
}

impl CallVisitor for Breakdown {
    fn call(&mut self, seen: &CallView<'_>) {
        if seen.call.is_nested {
            return;
        }
        let (bytes, duration, direction) = (seen.bytes(), seen.duration_ns(), seen.direction());
        let ns = duration.unwrap_or(0);
        self.time(seen.time_ns(), ns);
        self.scopes.add(seen);
        if seen.code() == Some(0) {
            self.site((seen.whose.process, seen.call.site, seen.function)).add(bytes, ns);
            if seen.stream().is_none() {
                self.sizes.entry((direction, class(bytes))).or_default().add(bytes, ns);
            }
        }
        if let Some(duration_ns) = duration.filter(|duration| *duration > self.least) {
            self.slow(SlowCall {
                duration_ns,
                function: seen.function,
                bytes,
                direction,
                code: seen.code(),
                time_ns: seen.time_ns(),
                process: seen.whose.process,
                thread: seen.whose.thread,
                number: seen.call.number,
                site: seen.call.site,
                turn: self.turn,
            });
        }
    }

    #[inline(always)]
    fn plain(&mut self, plain: &CommonCallView<'_>) {
        let (bytes, duration, function) = (plain.bytes(), plain.duration_ns, plain.function);
        let ns = duration.unwrap_or(0);
        self.plain_time(plain);
        self.site((plain.whose.process, plain.site(), function)).add(bytes, ns);
        let row = self.rows[function as usize] + plain.direction() as usize;
        self.plain[row][class(bytes)].add(bytes, ns);
        if let Some(duration_ns) = duration.filter(|duration| *duration > self.least) {
            self.slow(SlowCall {
                duration_ns,
                function,
                bytes,
                direction: plain.direction(),
                code: Some(0),
                time_ns: plain.time_ns(),
                process: plain.whose.process,
                thread: plain.whose.thread,
                number: plain.number,
                site: plain.site(),
                turn: self.turn,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_classes_by_powers_of_four() {
        for (bytes, expected) in [(0, 0), (1, 1), (3, 1), (4, 2), (15, 2), (16, 3), (1 << 20, 11), (u64::MAX, 32)] {
            assert_eq!(class(bytes), expected, "{bytes}");
            assert!(bytes < class_end(expected) || class_end(expected) == u64::MAX, "{bytes}");
            assert!(expected == 0 || bytes >= class_end(expected - 1), "{bytes}");
        }
    }
}
