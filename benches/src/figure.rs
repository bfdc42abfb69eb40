//! What is said of a variant: one row a figure.

use crate::rounds::Measured;
use crate::sample::Samples;
use std::ptr;

/// A variant among the others.
pub struct Case<'a> {
    /// What was measured of it.
    pub of: &'a Measured,
    /// Of a call without us.
    pub direct: &'a Measured,
    /// Of the bare ring, if it took part.
    pub limit: Option<&'a Measured>,
}

/// A figure, if the variant has it.
pub type Figure = fn(&Case) -> Option<f64>;

/// The keys of `bench.json` that hold a number for each variant.
pub const KEYS: &[(&str, Figure)] = &[
    ("ns", ns),
    ("median_ns", median_ns),
    ("cold_ns", |case| case.of.cold_ns.min()),
    ("cold_median_ns", |case| case.of.cold_ns.median()),
    ("instructions", |case| case.of.instructions),
    ("startup_us", startup_us),
    ("startup_median_us", |case| case.over(|of| of.true_us.median())),
    ("first_call_us", first_call_us),
    ("first_call_median_us", |case| Some(case.of.first_call_ns.median()? / 1e3)),
    ("rss_kib", rss_kib),
];

/// A column: two lines of heading, digits behind the point, the figure.
pub type Column = ([&'static str; 2], usize, Figure);

/// The columns of the table. "+" is over a direct call; "x limit" compares what is added.
pub const COLUMNS: &[Column] = &[
    (["", "ns"], 1, ns),
    (["", "median"], 1, median_ns),
    (["", "+ns"], 1, |case| case.over(|of| of.ns.min())),
    (["x", "direct"], 1, |case| Some(case.of.ns.min()? / case.direct.ns.min()?)),
    (["x", "limit"], 2, |case| case.times_limit(|of| of.ns.min())),
    (["cold", "+ns"], 1, |case| case.over(|of| of.cold_ns.min())),
    (["cold", "x limit"], 2, |case| case.times_limit(|of| of.cold_ns.min())),
    (["+instr.", "a call"], 0, |case| case.over(|of| of.instructions)),
    (["startup", "+us"], 0, startup_us),
    (["first", "call us"], 1, first_call_us),
    (["RSS", "+KiB"], 0, rss_kib),
    (["M calls/s", "1 thread"], 1, |case| Some(case.of.calls_per_s[0].max()? / 1e6)),
    (["M calls/s", "2 threads"], 1, |case| Some(case.of.calls_per_s[1].max()? / 1e6)),
];

impl Case<'_> {
    /// What the variant adds to `direct`; `direct` itself adds nothing to itself.
    fn over(&self, figure: fn(&Measured) -> Option<f64>) -> Option<f64> {
        if ptr::eq(self.of, self.direct) { None } else { Some(figure(self.of)? - figure(self.direct)?) }
    }

    /// The same as a multiple of what the limit adds.
    fn times_limit(&self, figure: fn(&Measured) -> Option<f64>) -> Option<f64> {
        let limit = Case { of: self.limit?, ..*self };
        Some(self.over(figure)? / limit.over(figure)?)
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

fn startup_us(case: &Case) -> Option<f64> {
    case.over(|of| of.true_us.min())
}

fn first_call_us(case: &Case) -> Option<f64> {
    Some(case.of.first_call_ns.min()? / 1e3)
}

fn rss_kib(case: &Case) -> Option<f64> {
    case.over(|of| of.rss_kib.median())
}
