//! Results of the scopes of a test, a line of JSON each (`ACLSHIM_RESULTS`): `aclshim test` reads them.

use super::expect::{expected, findings};
use crate::harness::state::expectation::Failure;
use crate::harness::state::{Reach, Scope, State};
use crate::settings::settings;
use aclshim_facts::rule::{Rule, Severity};
use aclshim_trace::system::clock::monotonic_ns;
use std::fmt::Write;

/// Whether a setting asks for results.
pub fn are_wanted() -> bool {
    !settings().results.as_bytes().is_empty()
}

/// The line of a scope that has ended, up to its failures; the first line of a process comes before it.
pub fn line(state: &mut State, scope: &Scope) -> String {
    let mut line = String::new();
    let process = std::process::id();
    if !std::mem::replace(&mut state.has_first_line, true) {
        let executable = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        let executable = quoted(&executable.to_string_lossy());
        let _ = writeln!(line, r#"{{"harness":1,"pid":{process},"executable":{executable}}}"#);
    }
    let (calls, bytes) =
        state.seen(scope).fold((0u64, 0u64), |(calls, bytes), entry| (calls + 1, bytes.saturating_add(entry.moved())));
    let reach = if scope.reach == Reach::Thread { "thread" } else { "process" };
    let duration = monotonic_ns().saturating_sub(scope.begun_ns);
    let _ = write!(line, r#"{{"scope":{},"id":{},"reach":"{reach}","#, quoted(&scope.name), scope.id);
    let _ = write!(line, r#""pid":{process},"thread":{},"begin_ns":{},"#, scope.system_thread, scope.begun_ns);
    let _ = write!(line, r#""duration_ns":{duration},"calls":{calls},"bytes":{bytes},"unseen":{},"#, scope.unseen());
    let _ = write!(line, r#""expectations":{},"findings":["#, scope.expectations.len());
    for (nth, (rule, severity, count)) in counts(state, scope).into_iter().enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        let expected = expected(scope, rule).map_or(0, |expected| expected.min(count));
        let _ = write!(line, r#"{comma}{{"rule":"{}","severity":"{severity}","count":{count},"#, rule.id);
        let _ = write!(line, r#""expected":{expected}}}"#);
    }
    line.push_str(r#"],"failures":["#);
    line
}

/// Adds the failures and the end of the line.
pub fn close(line: &mut String, failures: &[Failure]) {
    for (nth, failure) in failures.iter().enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        let _ = write!(line, r#"{comma}{{"kind":"{}","text":{}}}"#, failure.kind, quoted(failure.text.trim_end()));
    }
    line.push_str("]}\n");
}

/// How often each rule was broken, by its severity.
fn counts(state: &State, scope: &Scope) -> Vec<(&'static Rule, Severity, u64)> {
    let mut counts: Vec<(&'static Rule, Severity, u64)> = Vec::new();
    for (_, _, found) in findings(state, scope) {
        let is_it = |(rule, severity, _): &&mut (&'static Rule, Severity, u64)| {
            rule.number == found.rule.number && *severity == found.severity
        };
        match counts.iter_mut().find(is_it) {
            Some((_, _, count)) => *count += 1,
            None => counts.push((found.rule, found.severity, 1)),
        }
    }
    counts
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            letter if letter < ' ' || letter == '\u{7f}' => _ = write!(quoted, "\\u{:04x}", letter as u32),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
