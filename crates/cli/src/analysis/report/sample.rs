//! The calls that the page shows one by one: all of a short trace; of a long one the slowest, and some of those that
//! failed or break a rule.

use super::event::TimelineEvent;
use crate::reading::traces::rule_numbers;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Number of calls up to which a trace is shown completely.
const ALL: usize = 20_000;
/// Number of slowest calls that are sampled.
const SLOWEST: usize = 500;
/// Maximum number of calls of each rule and of each code.
const EACH: u32 = 100;
/// Maximum number of calls that failed or break a rule, in total.
const STRIKING: usize = 5_000;

/// A call, and the tracks that it is on.
#[derive(Clone, Debug)]
pub struct SampledCall {
    pub call: TimelineEvent,
    pub thread: usize,
    pub stream: Option<usize>,
}

/// Chooses the calls that the page shows.
#[derive(Default)]
pub struct CallSampler {
    seen: u64,
    all: Vec<SampledCall>,
    /// By duration and number; of two equal durations the earlier call counts as slower.
    slowest: BTreeMap<(u64, Reverse<u64>), SampledCall>,
    striking: BTreeMap<u64, SampledCall>,
    of_rule: BTreeMap<u8, u32>,
    of_code: BTreeMap<i32, u32>,
}

impl CallSampler {
    /// Adds a call.
    pub fn add(&mut self, call: &TimelineEvent, thread: usize, stream: Option<usize>) {
        let number = self.seen;
        self.seen += 1;
        let sampled = || SampledCall { call: call.clone(), thread, stream };
        if self.seen <= ALL as u64 {
            self.all.push(sampled());
        } else if !self.is_complete() {
            self.all = Vec::new();
        }
        if let Some(duration) = call.duration_ns {
            let least = self.slowest.first_key_value().map_or(0, |((duration, _), _)| *duration);
            if self.slowest.len() < SLOWEST || duration > least {
                self.slowest.insert((duration, Reverse(number)), sampled());
            }
            if self.slowest.len() > SLOWEST {
                self.slowest.pop_first();
            }
        }
        if (call.rules != 0 || call.has_failed()) && self.striking.len() < STRIKING && self.is_new(call) {
            self.striking.insert(number, sampled());
        }
    }

    /// Whether there are few calls yet that break one of its rules, or returned its code.
    fn is_new(&mut self, call: &TimelineEvent) -> bool {
        let mut is_new = false;
        let mut count = |count: &mut u32| {
            is_new |= *count < EACH;
            *count = (*count + 1).min(EACH);
        };
        for rule in rule_numbers(call.rules) {
            count(self.of_rule.entry(rule).or_default());
        }
        if let Some(code) = call.code.filter(|code| *code != 0)
            && (self.of_code.len() < STRIKING || self.of_code.contains_key(&code))
        {
            count(self.of_code.entry(code).or_default());
        }
        is_new
    }

    /// Whether the sample holds every call.
    pub fn is_complete(&self) -> bool {
        self.seen <= ALL as u64
    }

    /// The sampled calls in the order in which they were added.
    pub fn finish(self) -> Vec<SampledCall> {
        if self.is_complete() {
            return self.all;
        }
        let mut sampled = self.striking;
        sampled.extend(self.slowest.into_iter().map(|((_, Reverse(number)), call)| (number, call)));
        sampled.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::tests::copy;
    use super::*;

    #[test]
    fn a_short_trace_is_kept_as_it_is() {
        let mut sampler = CallSampler::default();
        (0..ALL as u64).for_each(|time| sampler.add(&copy(time), 0, None));
        assert!(sampler.is_complete());
        assert_eq!(sampler.finish().len(), ALL);
    }

    #[test]
    fn of_a_long_trace_the_slowest_and_the_bad_are_sampled() {
        let mut sampler = CallSampler::default();
        for time in 0..100_000u64 {
            let rules = if time % 10 == 0 { 1 << 5 } else { 0 };
            let code = Some(if time % 1000 == 1 { 107_000 } else { 0 });
            sampler.add(&TimelineEvent { duration_ns: Some(time), rules, code, ..copy(time) }, 0, None);
        }
        assert!(!sampler.is_complete() && sampler.all.is_empty());
        let kept = sampler.finish();
        let slow = kept.iter().filter(|kept| kept.call.duration_ns >= Some(100_000 - SLOWEST as u64)).count();
        let breaking = kept.iter().filter(|kept| kept.call.rules != 0).count();
        let failed = kept.iter().filter(|kept| kept.call.has_failed()).count();
        assert_eq!((slow, breaking, failed), (SLOWEST, 100 + SLOWEST / 10, 100));
        assert!(kept.is_sorted_by_key(|kept| kept.call.time_ns), "in their order, and each once");
    }
}
