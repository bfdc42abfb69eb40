//! What a test comes to: in a few lines, in an exit status, and as test cases.

use super::golden;
use super::junit::{CaseOutcome, JunitCase, JunitSuite};
use super::results::Results;
use crate::output::quantity::plural;
use crate::output::time::moment;
use crate::recording::run::{CompletedRun, ProgramEnd, WHY_NONE};
use aclshim_collect::trace_set::Process;
use aclshim_facts::rule::Severity;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What a test comes to.
pub struct TestVerdict<'a> {
    pub program: String,
    pub ran: &'a CompletedRun,
    /// Whether anything of it was seen.
    pub is_watched: bool,
    pub results: &'a Results,
    /// Scopes that have begun and not ended: what they expected was never looked at.
    pub open: Vec<String>,
    /// Rules that are broken, and not expected to be.
    pub findings: &'a [ExcessFindings],
    /// Its golden file, and how it compares.
    pub golden: Option<(PathBuf, golden::GoldenOutcome)>,
}

/// A rule that is broken more often than was expected, badly enough to count.
pub struct ExcessFindings {
    /// Its id, and the other product that it is about.
    pub rule: String,
    pub severity: Severity,
    pub count: u64,
}

/// The rules that are broken at least so badly, without those that are known, and those that the program expected.
pub fn counted<'a>(
    processes: impl Iterator<Item = &'a Process>,
    least: Option<Severity>,
    expected: &BTreeMap<&str, u64>,
) -> Vec<ExcessFindings> {
    let Some(least) = least else { return Vec::new() };
    let mut sums: BTreeMap<&str, (u64, u64, Severity)> = BTreeMap::new();
    for (rule, total) in processes.flat_map(|process| process.judge.totals()) {
        let bad: u64 = total.by_severity[least as usize..].iter().sum();
        let sum = sums.entry(rule).or_insert((0, 0, least));
        *sum = (sum.0 + bad, sum.1 + total.known, sum.2.max(total.worst.unwrap_or(least)));
    }
    let counted = sums.into_iter().map(|(rule, (bad, known, severity))| ExcessFindings {
        rule: rule.into(),
        severity,
        count: bad.saturating_sub(known).saturating_sub(expected.get(rule).copied().unwrap_or(0)),
    });
    counted.filter(|counted| counted.count > 0).collect()
}

impl TestVerdict<'_> {
    /// Why the test failed; nothing if it passed.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        match self.ran.end {
            ProgramEnd::Exited(0) => {}
            ProgramEnd::Exited(status) => reasons.push(format!("the program ended with {status}")),
            ProgramEnd::Killed(signal) => reasons.push(format!("the program was ended by signal {signal}")),
        }
        if !self.is_watched {
            reasons.push("nothing was watched".into());
        }
        match self.results.failed().count() {
            0 => {}
            failed => reasons.push(format!("{} failed", plural(failed as u64, "scope"))),
        }
        if !self.open.is_empty() {
            reasons.push(format!("{} never ended", plural(self.open.len() as u64, "scope")));
        }
        if !self.results.troubles.is_empty() {
            reasons.push("the results cannot be read".into());
        }
        let findings: u64 = self.findings.iter().map(|finding| finding.count).sum();
        if findings > 0 {
            reasons.push(plural(findings, "finding"));
        }
        if matches!(self.golden, Some((_, golden::GoldenOutcome::Differs(_)))) {
            reasons.push("the golden run differs".into());
        }
        reasons
    }

    /// The verdict as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut say = |line: String| _ = writeln!(text, "aclshim: {line}");
        if !self.is_watched {
            say(format!("nothing was watched ({})", self.ran.silent.unwrap_or(WHY_NONE)));
        }
        self.results.troubles.iter().for_each(|trouble| say(trouble.clone()));
        let failed = self.results.failed().count();
        if !self.results.scopes.is_empty() {
            let passed = self.results.scopes.len() - failed;
            let scopes = plural(self.results.scopes.len() as u64, "scope");
            let expectations = self.results.scopes.iter().map(|scope| scope.expectations).sum::<u64>();
            let expectations = plural(expectations, "expectation");
            say(format!("{scopes} with {expectations}: {passed} passed, {failed} failed"));
        }
        for scope in self.results.failed() {
            say(format!("  failed: {}", scope.name));
            // The program itself has printed the rest when the scope ended.
            let headlines = scope.failures.iter().filter_map(|failure| failure.text.lines().next());
            headlines.for_each(|line| say(format!("    {line}")));
        }
        for name in &self.open {
            say(format!("  never ended: {name}; what it expected was not looked at"));
        }
        for ExcessFindings { rule, severity, count } in self.findings {
            say(format!("  counts: {severity} {count} x {rule}"));
        }
        match &self.golden {
            None => {}
            Some((path, golden::GoldenOutcome::Same)) => say(format!("golden run: as in {}", path.display())),
            Some((path, golden::GoldenOutcome::Updated)) => say(format!("golden run: written to {}", path.display())),
            Some((path, golden::GoldenOutcome::Differs(why))) => say(format!("golden run {}: {why}", path.display())),
        }
        let reasons = self.reasons();
        if reasons.is_empty() {
            say("test passed".into());
        } else {
            say(format!("test failed: {}", reasons.join(", ")));
        }
        text
    }

    /// Test cases: a suite for the program, and one for each other process that has used the harness.
    pub fn suites(&self) -> Vec<JunitSuite> {
        let timestamp = moment(self.ran.since_ns).chars().take(19).collect::<String>();
        let seconds = |ns: u64| ns as f64 / 1e9;
        let scopes = |pid: u32| -> Vec<JunitCase> {
            let of_process = self.results.scopes.iter().filter(|scope| scope.pid == pid);
            let case = of_process.map(|scope| {
                let texts: Vec<&str> = scope.failures.iter().map(|failure| failure.text.as_str()).collect();
                let outcome = match scope.failures.first() {
                    None => CaseOutcome::Passed,
                    Some(first) => CaseOutcome::Failed(first.kind.clone(), texts.join("\n")),
                };
                JunitCase { name: scope.name.clone(), seconds: seconds(scope.duration_ns), outcome }
            });
            case.collect()
        };
        let mut cases = scopes(self.ran.pid);
        cases.extend(self.open.iter().map(|name| JunitCase {
            name: name.clone(),
            seconds: 0.0,
            outcome: CaseOutcome::Error(
                "open".into(),
                "the scope never ended: what it expected was not looked at".into(),
            ),
        }));
        let seconds_all = seconds(self.ran.duration_ns);
        cases.extend(self.own_cases(seconds_all));
        let mut suites = vec![JunitSuite { name: self.program.clone(), timestamp, seconds: seconds_all, cases }];
        for (pid, executable) in self.results.processes.iter().filter(|(pid, _)| **pid != self.ran.pid) {
            let cases = scopes(*pid);
            let name =
                Path::new(executable).file_name().map_or(self.program.clone(), |name| name.to_string_lossy().into());
            let timestamp = suites[0].timestamp.clone();
            let sum = cases.iter().map(|case| case.seconds).sum();
            suites.push(JunitSuite { name, timestamp, seconds: sum, cases });
        }
        suites
    }

    /// What is judged of the program as a whole.
    fn own_cases(&self, seconds: f64) -> Vec<JunitCase> {
        let case = |name: &str, outcome| JunitCase { name: name.into(), seconds: 0.0, outcome };
        let exit = match self.ran.end {
            ProgramEnd::Exited(0) => CaseOutcome::Passed,
            ProgramEnd::Exited(status) => {
                CaseOutcome::Failed("exit".into(), format!("the program ended with {status}"))
            }
            ProgramEnd::Killed(signal) => {
                CaseOutcome::Error("signal".into(), format!("the program was ended by signal {signal}"))
            }
        };
        let watched = match (self.is_watched, &self.results.troubles[..]) {
            (true, []) => CaseOutcome::Passed,
            (true, troubles) => CaseOutcome::Failed("results".into(), troubles.join("\n")),
            (false, _) => {
                let why = self.ran.silent.unwrap_or(WHY_NONE);
                CaseOutcome::Failed("watched".into(), format!("nothing was watched ({why})"))
            }
        };
        let findings: Vec<String> =
            self.findings.iter().map(|of| format!("{} {} x {}", of.severity, of.count, of.rule)).collect();
        let findings = match findings.is_empty() {
            true => CaseOutcome::Passed,
            false => CaseOutcome::Failed("findings".into(), findings.join("\n")),
        };
        let mut cases = vec![JunitCase { seconds, ..case("program ends with 0", exit) }];
        cases.push(case("calls are watched", watched));
        cases.push(case("no rule is broken", findings));
        if let Some((path, outcome)) = &self.golden {
            let outcome = match outcome {
                golden::GoldenOutcome::Differs(why) => CaseOutcome::Failed("golden".into(), why.clone()),
                _ => CaseOutcome::Passed,
            };
            cases.push(case(&format!("golden run {}", path.display()), outcome));
        }
        cases
    }
}
