//! The end of a scope: judged under the lock, reported without it.

use super::golden::{self, ActualRun};
use super::{exit, expect, results};
use crate::guest::{edge, log};
use crate::harness::aclshim_error::{self, ACLSHIM_BUSY};
use crate::harness::state::expectation::Failure;
use crate::harness::state::{Scope, State, access, lock};
use crate::record::annotate::annotate_scope_end;
use crate::settings::settings;

/// A scope that has ended, with its failures. Made under the lock.
pub struct Ended {
    scope: Scope,
    /// Has capacity for those that come from golden files.
    failures: Vec<Failure>,
    /// The calls to be compared with golden files.
    runs: Vec<ActualRun>,
    line: Option<String>,
}

impl Ended {
    /// Judges a scope that was removed from the state. Only under the lock.
    pub fn judged(state: &mut State, scope: Scope) -> Self {
        state.judge(scope.first);
        let (failures, runs) = (expect::judge(state, &scope), golden::runs(state, &scope));
        Self::new(state, scope, failures, runs)
    }

    /// A scope that the program has not ended: its expectations have failed.
    pub fn never_ended(state: &mut State, scope: Scope) -> Self {
        let is_expected = scope.has_expectations();
        let failures = is_expected.then(|| expect::never_ended(&scope)).into_iter().collect();
        Self::new(state, scope, failures, Vec::new())
    }

    fn new(state: &mut State, scope: Scope, mut failures: Vec<Failure>, runs: Vec<ActualRun>) -> Self {
        crate::inject::remove(scope.id as u64);
        failures.reserve(runs.len());
        let line = results::are_wanted().then(|| results::line(state, &scope));
        state.discard_unseen(scope.first);
        Self { scope, failures, runs, line }
    }

    /// Reports the end on standard error, in the results and in the record; returns how many expectations were not met. Not
    /// under the lock.
    pub fn report(mut self) -> u64 {
        let mut count = 0;
        for run in &self.runs {
            match golden::judge(run, &self.scope.name) {
                Ok(failure) => self.failures.extend(failure), // there is room
                Err(_) => {
                    log::print_line(format_args!("the calls of a scope could not be compared with a file"));
                    count += 1;
                }
            }
        }
        count += self.failures.len() as u64;
        let Self { failures, line, .. } = &mut self;
        let is_whole = line.as_mut().is_none_or(|line| access::with(|_| results::close(line, failures)).is_ok());
        let is_written = edge::with_signals_blocked(|| {
            failures.iter().for_each(|failure| log::to_stderr(failure.text.as_bytes()));
            exit::fail(count);
            let mut line = line.iter().filter(|_| is_whole);
            line.all(|line| log::append(settings().results.as_c_str(), line.as_bytes()))
        });
        if is_written == Some(false) || !is_whole {
            log::print_line(format_args!("the file that ACLSHIM_RESULTS names cannot be written to"));
        }
        let _ = annotate_scope_end(self.scope.id as u32, count);
        access::drop_locked(self);
        count
    }
}

/// Ends the scopes of threads that have ended without. Only under the lock; the caller reports them when it has left the lock.
pub fn end_orphans(state: &mut State) -> Vec<Ended> {
    let mut ended = Vec::new();
    while let Some(scope) = state.take_orphan() {
        ended.push(Ended::never_ended(state, scope));
    }
    ended
}

/// Reports the ends of several scopes.
pub fn report_all(mut ended: Vec<Ended>) {
    while let Some(one) = ended.pop() {
        one.report();
    }
    if ended.capacity() > 0 {
        access::drop_locked(ended);
    }
}

/// Runs after the program's own exit handlers: ends the scopes that are still open, and sets the exit status.
pub fn at_exit() {
    if lock::existing().is_none() {
        return;
    }
    if let Err(ACLSHIM_BUSY) = end_all() {
        log::print_line(format_args!(
            "a handler has jumped out of the harness, or its thread has ended there: what is expected of scopes that \
             were open then could not be judged"
        ));
        exit::fail(1);
    }
    exit::arm_if_failed();
}

/// Ends the scopes that still have expectations when the program ends; these have failed.
fn end_all() -> Result<(), aclshim_error> {
    while let Some(ended) = access::with(|state| {
        let at = state.scopes.iter().position(Scope::has_expectations)?;
        let scope = state.scopes.remove(at);
        Some(Ended::never_ended(state, scope))
    })? {
        ended.report();
    }
    Ok(())
}
