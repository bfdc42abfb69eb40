//! Whether what is expected of a scope was met.

use super::wording;
use crate::harness::aclshim_error;
use crate::harness::state::entry::{Entry, EntryFinding};
use crate::harness::state::expectation::{Bounds, Expectation, Failure, NamedSelector};
use crate::harness::state::{Scope, State};
use aclshim_facts::rule::{Rule, Severity};
use std::fmt::Write;

/// Judges all expectations of a scope.
pub fn judge(state: &State, scope: &Scope) -> Vec<Failure> {
    let mut failures: Vec<_> =
        scope.expectations.iter().filter_map(|expected| judge_one(expected, state, scope)).collect();
    if scope.dropped_expectations > 0 {
        let more = wording::number(scope.dropped_expectations, "expectation");
        let text = format!("{}there was no memory for {more}\n", wording::title(&scope.name));
        failures.push(Failure { kind: "refused", text });
    }
    let unseen = scope.unseen();
    if unseen > 0 && scope.has_expectations() {
        let calls = wording::number(unseen, "call");
        let text = format!("{}{calls} could not be seen, so nothing here is certain\n", wording::title(&scope.name));
        failures.push(Failure { kind: "unseen", text });
    }
    failures
}

/// The failure of a scope that was never ended.
pub fn never_ended(scope: &Scope) -> Failure {
    let expected = wording::number(scope.expectations.len() as u64 + scope.dropped_expectations, "expectation");
    let text = format!("{}never ended, so {expected} could not be judged\n", wording::title(&scope.name));
    Failure { kind: "unended", text }
}

/// The findings of a scope, each with its call and the place of that.
pub fn findings<'a>(
    state: &'a State,
    scope: &Scope,
) -> impl Iterator<Item = (u64, &'a Entry, &'a EntryFinding)> + Clone {
    let of = |(order, entry): (u64, &'a Entry)| entry.findings.iter().map(move |found| (order, entry, found));
    (0..).zip(state.seen(scope)).flat_map(of)
}

/// Number of findings of a rule that are expected, if there is an expectation about it.
pub fn expected(scope: &Scope, rule: &Rule) -> Option<u64> {
    scope.expectations.iter().rev().find_map(|other| match other {
        Expectation::Finding { rule: other, count } if other.number == rule.number => Some(*count),
        _ => None,
    })
}

/// Judges one expectation of a scope.
fn judge_one(expected: &Expectation, state: &State, scope: &Scope) -> Option<Failure> {
    let (kind, text) = match expected {
        Expectation::Calls(bounds) => ("calls", calls(state, scope, bounds)?),
        Expectation::Bytes(bounds) => ("bytes", bytes(state, scope, bounds)?),
        Expectation::Order { stream, each } => ("order", order(state, scope, *stream, each)?),
        Expectation::Finding { rule, count } => ("finding", finding(state, scope, rule, *count)?),
        Expectation::Clean { severity } => ("clean", clean(state, scope, *severity)?),
        Expectation::Golden { .. } => return None,
        Expectation::Refused { function, error } => {
            let (kind, why) = match error {
                aclshim_error::ACLSHIM_MEMORY => ("refused", "found no room"),
                aclshim_error::ACLSHIM_REFUSED => ("refused", "is refused, because ACLSHIM_PRESET=production"),
                _ => ("nonsense", "makes no sense"),
            };
            (kind, format!("what was said to {function} {why}, and nobody has judged it\n"))
        }
    };
    Some(Failure { kind, text: format!("{}{text}", wording::title(&scope.name)) })
}

fn is_selected(state: &State, selected: &NamedSelector, entry: &Entry) -> bool {
    entry.known(|known| selected.which.matches(known, &state.names.at(entry.at)))
}

/// All calls of a scope, with a mark at those that are selected.
fn with_marks(state: &State, scope: &Scope, is_selected: impl Fn(&Entry) -> bool) -> String {
    wording::calls((0..).zip(state.seen(scope)), &state.names, |entry| is_selected(entry).then_some("counted"))
}

fn calls(state: &State, scope: &Scope, bounds: &Bounds) -> Option<String> {
    let seen = state.selected(scope, &bounds.selected.which).count() as u64;
    if bounds.holds(seen) {
        return None;
    }
    let (wanted, of) = (wording::bounds(bounds.least, bounds.most, "call"), bounds.selected.shown("of"));
    let is_selected = |entry: &Entry| is_selected(state, &bounds.selected, entry);
    Some(format!("expected {wanted}{of}, saw {seen}\n{}", with_marks(state, scope, is_selected)))
}

fn bytes(state: &State, scope: &Scope, bounds: &Bounds) -> Option<String> {
    let moved = state.selected(scope, &bounds.selected.which).map(|(_, entry)| entry.moved());
    let seen = moved.fold(0, u64::saturating_add);
    if bounds.holds(seen) {
        return None;
    }
    let (wanted, by) = (wording::bounds(bounds.least, bounds.most, "byte"), bounds.selected.shown("by"));
    let is_selected = |entry: &Entry| is_selected(state, &bounds.selected, entry) && entry.moved() > 0;
    Some(format!("expected {wanted}{by}, saw {seen}\n{}", with_marks(state, scope, is_selected)))
}

fn order(state: &State, scope: &Scope, stream: u64, each: &[NamedSelector]) -> Option<String> {
    let is_on = |entry: &Entry| entry.call().stream.is_some_and(|other| other as u64 == stream);
    let seen: Vec<_> = (0..).zip(state.seen(scope)).filter(|(_, entry)| is_on(entry)).collect();
    let fits = |nth: usize| match (each.get(nth), seen.get(nth)) {
        (Some(selected), Some((_, entry))) => is_selected(state, selected, entry),
        _ => false,
    };
    let wrong = (0..each.len().max(seen.len())).find(|nth| !fits(*nth))?;
    let at = seen.first().map_or(u64::MAX, |(_, entry)| entry.at);
    let name = match stream {
        0 => "the default stream".into(),
        stream => state
            .names
            .at(at)
            .of_stream(stream)
            .map_or_else(|| format!("stream {stream:#x}"), |name| format!("stream {name}")),
    };
    let wanted = wording::number(each.len() as u64, "call");
    let mut text = format!(
        "expected {wanted} on {name} in this order, saw {}; the first difference is at {}\n",
        seen.len(),
        wrong + 1
    );
    for (nth, selected) in each.iter().enumerate() {
        let mark = if nth == wrong { "   <- not so" } else { "" };
        let shown = if selected.text.trim().is_empty() { "any call" } else { selected.text.trim() };
        let _ = writeln!(text, "  expected {}: {shown}{mark}", nth + 1);
    }
    let wrong = seen.get(wrong).map(|(_, entry)| entry.number);
    let mark = |entry: &Entry| (Some(entry.number) == wrong).then_some("saw this");
    text.push_str(&wording::calls(seen.iter().copied(), &state.names, mark));
    Some(text)
}

fn finding(state: &State, scope: &Scope, rule: &Rule, count: u64) -> Option<String> {
    let found = || findings(state, scope).filter(|(_, _, found)| found.rule.number == rule.number);
    let seen = found().count() as u64;
    if seen == count {
        return None;
    }
    let mut text = format!("expected {} of {}, saw {seen}\n", wording::number(count, "finding"), rule.id);
    text.push_str(&wording::findings(found().map(|(order, _, found)| (order, found))));
    // Without any, all calls are of interest.
    let is_it = |entry: &Entry| seen == 0 || entry.findings.iter().any(|found| found.rule.number == rule.number);
    text.push_str(&found_in(state, scope, is_it));
    if seen < count {
        let _ = writeln!(text, "  {}: {}.", rule.id, rule.statement);
    }
    Some(text)
}

fn clean(state: &State, scope: &Scope, severity: Severity) -> Option<String> {
    let is_one = |found: &EntryFinding| found.severity >= severity && expected(scope, found.rule).is_none();
    let found = || findings(state, scope).filter(|(_, _, found)| is_one(found));
    let seen = found().count();
    if seen == 0 {
        return None;
    }
    let mut text = format!("expected no finding of severity {severity} or worse, saw {seen}\n");
    text.push_str(&wording::findings(found().map(|(order, _, found)| (order, found))));
    text.push_str(&found_in(state, scope, |entry| entry.findings.iter().any(is_one)));
    Some(text)
}

/// The calls that findings are about.
fn found_in(state: &State, scope: &Scope, is_it: impl Fn(&Entry) -> bool) -> String {
    wording::calls((0..).zip(state.seen(scope)).filter(|(_, entry)| is_it(entry)), &state.names, |_| None)
}
