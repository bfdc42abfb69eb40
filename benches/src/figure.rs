//! The figures that are reported of a variant: one row each.

use crate::measured::Measured;
use crate::sample::Samples;
use std::ptr;

/// A variant among the others.
pub struct Case<'a> {
    /// Its measurements.
    pub of: &'a Measured,
    /// Measurements of a call without the shim.
    pub direct: &'a Measured,
    /// Measurements of the bare ring, if it took part.
    pub limit: Option<&'a Measured>,
}

/// A figure, if the variant has it.
pub type Figure = fn(&Case) -> Option<f64>;

/// The keys of `bench.json` that hold a number for each variant.
pub const KEYS: &[(&str, Figure)] = &[
    ("ns", ns),
    ("median_ns", median_ns),
    ("sustained_ns", |case| case.of.sustained_ns.min()),
    ("sustained_median_ns", |case| case.of.sustained_ns.median()),
    ("cold_ns", |case| case.of.cold_ns.min()),
    ("cold_median_ns", |case| case.of.cold_ns.median()),
    ("batch_1000_ns_per_item", batch_ns_per_item),
    ("brought_ns", |case| case.of.brought_ns.min()),
    ("partial_ns", |case| case.of.partial_ns.min()),
    ("instructions", |case| case.of.instructions),
    ("thread_gain", thread_gain),
    ("recorded_share", |case| case.of.share.median()),
    ("startup_us", startup_us),
    ("startup_median_us", |case| case.over(|of| of.true_us.median())),
    ("first_call_us", first_call_us),
    ("first_call_median_us", |case| Some(case.of.first_call_ns.median()? / 1e3)),
    ("rss_kib", rss_kib),
    ("rss_per_thread_kib", rss_per_thread_kib),
    ("times_direct_4000_threads", times_direct_many),
    ("ring_file_kib_10000_threads", |case| case.of.ring_kib.max()),
];

/// A column: two lines of heading, digits behind the point, the figure.
pub type Column = ([&'static str; 2], usize, Figure);

/// What a call costs. "+" is over a direct call; "x limit" compares what is added.
pub const OF_A_CALL: &[Column] = &[
    (["", "ns"], 1, ns),
    (["", "median"], 1, median_ns),
    (["", "+ns"], 1, |case| case.over(NS)),
    (["x", "limit"], 2, |case| case.times_limit(NS)),
    (["sustained", "+ns"], 1, |case| case.over(SUSTAINED_NS)),
    (["sustained", "x limit"], 2, |case| case.times_limit(SUSTAINED_NS)),
    (["sustained", "% kept"], 1, |case| Some(case.of.share.median()? * 100.0)),
    (["cold", "+ns"], 1, |case| case.over(COLD_NS)),
    (["cold", "x limit"], 2, |case| case.times_limit(COLD_NS)),
    (["batch", "ns/item"], 2, batch_ns_per_item),
    (["brought", "ns"], 1, |case| case.of.brought_ns.min()),
    (["partial", "ns"], 1, |case| case.of.partial_ns.min()),
    (["+instr.", "a call"], 0, |case| case.over(INSTRUCTIONS)),
];

/// Costs of a process: once, for each thread, and the gain of a second thread.
pub const OF_A_PROCESS: &[Column] = &[
    (["startup", "+us"], 0, startup_us),
    (["first", "call us"], 1, first_call_us),
    (["RSS", "+KiB"], 0, rss_kib),
    (["a thread", "+KiB"], 0, rss_per_thread_kib),
    (["M calls/s", "1 thread"], 1, |case| Some(case.of.calls_per_s[0].max()? / 1e6)),
    (["M calls/s", "2 threads"], 1, |case| Some(case.of.calls_per_s[1].max()? / 1e6)),
    (["gain of", "a second"], 2, thread_gain),
];

/// Selects a measurement.
pub type Part = fn(&Measured) -> Option<f64>;

/// Minimum of warm calls.
pub const NS: Part = |of| of.ns.min();
/// Minimum under a sustained load.
pub const SUSTAINED_NS: Part = |of| of.sustained_ns.min();
/// Minimum of cold calls.
pub const COLD_NS: Part = |of| of.cold_ns.min();
/// Instructions of a call.
pub const INSTRUCTIONS: Part = |of| of.instructions;

impl Case<'_> {
    /// The difference to `direct`; none for `direct` itself.
    pub fn over(&self, part: Part) -> Option<f64> {
        if ptr::eq(self.of, self.direct) { None } else { Some(part(self.of)? - part(self.direct)?) }
    }

    /// The difference to `direct` as a multiple of that of the limit.
    pub fn times_limit(&self, part: Part) -> Option<f64> {
        let limit = Case { of: self.limit?, ..*self };
        Some(self.over(part)? / limit.over(part)?)
    }

    /// Calls a second, with one thread and with two.
    pub fn calls_per_s(&self) -> Option<[f64; 2]> {
        let [one, two] = self.of.calls_per_s.each_ref().map(Samples::max);
        Some([one?, two?])
    }
}

fn ns(case: &Case) -> Option<f64> {
    case.of.ns.min()
}

fn median_ns(case: &Case) -> Option<f64> {
    case.of.ns.median()
}

/// Cost that an item adds to a batch.
pub fn batch_ns_per_item(case: &Case) -> Option<f64> {
    Some(case.over(|of| of.batch_ns.min())? / 1000.0)
}

/// Time that the preload adds to `/bin/true`.
pub fn startup_us(case: &Case) -> Option<f64> {
    case.over(|of| of.true_us.min())
}

/// The first call of a process.
pub fn first_call_us(case: &Case) -> Option<f64> {
    Some(case.of.first_call_ns.min()? / 1e3)
}

/// Time of 4,000 concurrent threads, as a multiple of the time without the shim.
pub fn times_direct_many(case: &Case) -> Option<f64> {
    Some(case.of.many_ms.min()? / case.direct.many_ms.min()?)
}

fn thread_gain(case: &Case) -> Option<f64> {
    case.of.thread_gain.median()
}

/// Resident memory that the calls of one thread add.
pub fn rss_kib(case: &Case) -> Option<f64> {
    case.over(|of| of.rss_kib.median())
}

/// Resident memory that the calls of each further thread add.
pub fn rss_per_thread_kib(case: &Case) -> Option<f64> {
    case.over(|of| of.rss_more_kib.median())
}
