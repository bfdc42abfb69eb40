//! Filling several breakdowns in parallel, each with a part of the calls, and joining them.

use super::{Breakdown, CopySum, SLOWEST, SiteKey};
use aclshim_collect::interpreter::visitor::ParallelVisitor;
use std::cmp::Reverse;

impl ParallelVisitor for Breakdown {
    fn another(&self) -> Self {
        Self::default()
    }

    fn at(&mut self, turn: u64) {
        // 0 is for what came before.
        self.turn = turn + 1;
    }

    fn join(&mut self, others: Vec<Self>) {
        self.join_sites(&others);
        for other in others {
            self.join_sizes(&other);
            self.join_times(&other);
            self.slowest.extend(other.slowest);
        }
        self.slowest.sort_by_key(|slow| (Reverse(slow.duration_ns), slow.turn));
        self.slowest.truncate(SLOWEST);
        self.slowest.iter_mut().for_each(|slow| slow.turn = 0);
        self.process.iter_mut().for_each(|clocked| clocked.turn = 0);
        self.least = self.slowest.get(SLOWEST - 1).map_or(0, |last| last.duration_ns);
        self.turn = 0;
    }
}

impl Breakdown {
    /// The call sites of all, in the order in which they came first.
    fn join_sites(&mut self, others: &[Self]) {
        let sites =
            |breakdown: &Self| breakdown.since.iter().copied().zip(breakdown.sums.iter().copied()).collect::<Vec<_>>();
        let mut all: Vec<(u64, (SiteKey, CopySum))> = sites(self);
        all.extend(others.iter().flat_map(sites));
        all.sort_by_key(|(since, _)| *since);
        self.turn = 0;
        (self.sites, self.sums, self.since) = Default::default();
        for (_, (site, sum)) in all {
            self.site(site).merge(&sum);
        }
    }

    fn join_sizes(&mut self, other: &Self) {
        for (mine, more) in self.plain.iter_mut().flatten().zip(other.plain.iter().flatten()) {
            mine.merge(more);
        }
        for (of, sum) in &other.sizes {
            self.sizes.entry(*of).or_default().merge(sum);
        }
    }

    /// The times of all. Ticks go by the clock that the process had when the first of them came.
    fn join_times(&mut self, other: &Self) {
        if let Some((first, last)) = other.span {
            self.time(Some(first), last - first);
        }
        let Some(theirs) = other.process else { return };
        match self.process.filter(|mine| mine.process == theirs.process) {
            Some(mine) if mine.turn <= theirs.turn => {}
            Some(_) => self.process = Some(theirs),
            None => {
                self.other_process();
                self.process = Some(theirs);
            }
        }
        self.ticks = (self.ticks.0.min(other.ticks.0), self.ticks.1.max(other.ticks.1));
    }
}

#[cfg(test)]
mod tests;
