//! `aclshim diff`: what is different between two runs, by what the calls are and not where their memory is.

use crate::files::ring_folders;
use crate::output::escape;
use crate::reading::traces::{rule_numbers, say_troubles};
use aclshim_collect::interpreter::totals::Histogram;
use aclshim_collect::interpreter::visitor::{CallView, CallVisitor};
use aclshim_collect::trace_set::{ReadOptions, TraceSet};
use aclshim_facts::Function;
use aclshim_facts::rule::Severity;
use aclshim_facts::rules::RULES;
use anyhow::{Result, anyhow};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `aclshim diff`.
#[derive(clap::Args)]
#[command(
    after_help = "Calls are compared by function, call site, size class and direction; addresses, threads and times are not. \
    Durations are shown where they are clearly different, and never make two runs differ.\n\n\
    Exit status:\n  \
    0  the same\n  \
    1  different\n  \
    2  something cannot be read\n\n\
    Examples:\n  \
    aclshim diff before/aclshim-out after/aclshim-out\n  \
    aclshim diff --json before after | jq '.findings.new'"
)]
pub struct Arguments {
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
    /// The run before: an ACLSHIM_DIR, a trace or a ring file
    #[arg(value_name = "A")]
    before: PathBuf,
    /// The run after
    #[arg(value_name = "B")]
    after: PathBuf,
}

/// Compares two runs.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let compared = run(&arguments.before).and_then(|before| Ok(compare(&before, &run(&arguments.after)?)));
    match compared {
        Ok(difference) => {
            if arguments.json {
                println!("{}", serde_json::to_string_pretty(&difference)?);
            } else {
                print!("{}", escape::lines(&difference.text()));
            }
            Ok(ExitCode::from(u8::from(difference.is_any())))
        }
        Err(error) => {
            errln!("aclshim: {error:#}");
            Ok(ExitCode::from(2))
        }
    }
}

/// Where a call is: the process's number and the address, until its module is known.
type SiteAddress = (usize, u64);

/// What one run has done.
#[derive(Default)]
struct GroupedCalls {
    groups: BTreeMap<(Function, SiteAddress, Option<u32>, &'static str), GroupSum>,
    findings: BTreeMap<(u8, Function, SiteAddress), u64>,
    durations: BTreeMap<&'static str, Histogram>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct GroupSum {
    calls: u64,
    bytes: u64,
    errors: u64,
}

/// The power of two that a size is at most; none for nothing.
fn class(bytes: u64) -> Option<u32> {
    bytes.checked_sub(1).map(|less| less.checked_ilog2().map_or(0, |log| log + 1))
}

impl CallVisitor for GroupedCalls {
    fn call(&mut self, seen: &CallView<'_>) {
        if seen.call.is_nested {
            return;
        }
        let (bytes, address) = (seen.bytes(), (seen.whose.process, seen.call.site));
        let sum = self.groups.entry((seen.function, address, class(bytes), seen.direction().name())).or_default();
        sum.calls += 1;
        match seen.code() {
            Some(0) => sum.bytes = sum.bytes.saturating_add(bytes),
            Some(_) => sum.errors += 1,
            None => {}
        }
        if let Some(duration) = seen.duration_ns() {
            self.durations.entry(seen.function.row().name).or_default().add(duration);
        }
        for rule in rule_numbers(seen.rules) {
            *self.findings.entry((rule, seen.function, address)).or_default() += 1;
        }
    }
}

/// One run, with names instead of addresses.
#[derive(Default)]
struct RunTotals {
    groups: BTreeMap<CallGroup, GroupSum>,
    findings: BTreeMap<FindingGroup, u64>,
    /// Durations by function.
    durations: BTreeMap<&'static str, Histogram>,
    /// Calls by function.
    counts: BTreeMap<&'static str, u64>,
    not_recorded: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct CallGroup {
    function: &'static str,
    site: String,
    /// The power of two, in bytes, that the size is at most.
    up_to: Option<u128>,
    direction: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct FindingGroup {
    rule: &'static str,
    severity: &'static str,
    function: &'static str,
    site: String,
}

fn run(path: &Path) -> Result<RunTotals> {
    let progress = crate::output::progress::of_traces(&[path.to_owned()]);
    let options = ReadOptions { ring_folders: ring_folders(), progress, ..ReadOptions::default() };
    let (mut set, mut calls) = (TraceSet::new(options), GroupedCalls::default());
    set.read(&[path], &mut calls)?;
    set.finish(&mut calls);
    say_troubles(&set);
    if set.processes().count() == 0 {
        return Err(anyhow!("{}: no process has recorded a call here", path.display()));
    }
    let mut run = RunTotals::default();
    let mut sites: BTreeMap<SiteAddress, String> = BTreeMap::new();
    let mut site = |set: &mut TraceSet, (process, address): SiteAddress| {
        let named =
            || set.process(process).and_then(|process| process.modules().site(address)).map(|site| site.to_string());
        // Without its module an address means nothing in another run.
        sites.entry((process, address)).or_insert_with(|| named().unwrap_or_else(|| "unknown".into())).clone()
    };
    for ((function, address, class, direction), sum) in calls.groups {
        *run.counts.entry(function.row().name).or_default() += sum.calls;
        let up_to = class.map(|class| 1u128 << class);
        let group = CallGroup { function: function.row().name, site: site(&mut set, address), up_to, direction };
        let all = run.groups.entry(group).or_default();
        all.calls += sum.calls;
        all.bytes = all.bytes.saturating_add(sum.bytes);
        all.errors += sum.errors;
    }
    for ((rule, function, address), count) in calls.findings {
        let Some(rule) = RULES.get(usize::from(rule)) else { continue };
        let totals = set.process(address.0).and_then(|process| process.judge.totals().get(rule.id));
        let severity = totals.and_then(|total| total.worst).unwrap_or(rule.severity);
        let finding = FindingGroup {
            rule: rule.id,
            severity: severity.name(),
            function: function.row().name,
            site: site(&mut set, address),
        };
        *run.findings.entry(finding).or_default() += count;
    }
    run.durations = calls.durations;
    run.not_recorded = set.processes().map(|process| process.not_recorded).sum();
    Ok(run)
}

/// The difference between two runs.
#[derive(Debug, Serialize)]
struct Difference {
    functions: BTreeMap<&'static str, Two<u64>>,
    calls: ChangeList<Changed<CallGroup, GroupSum>>,
    findings: ChangeList<Changed<FindingGroup, u64>>,
    /// Calls that A or B did not record: some differences may only be missing in the record.
    not_recorded: Two<u64>,
    durations: BTreeMap<&'static str, Durations>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Two<T> {
    a: T,
    b: T,
}

#[derive(Debug, Serialize)]
struct ChangeList<T> {
    new: Vec<T>,
    gone: Vec<T>,
    changed: Vec<T>,
}

impl<T> ChangeList<T> {
    /// All changes, each with what it is.
    fn each(&self) -> impl Iterator<Item = (&'static str, &T)> {
        let lists = [("new", &self.new), ("gone", &self.gone), ("changed", &self.changed)];
        lists.into_iter().flat_map(|(what, list)| list.iter().map(move |change| (what, change)))
    }
}

#[derive(Debug, Serialize)]
struct Changed<K, V> {
    #[serde(flatten)]
    what: K,
    a: V,
    b: V,
}

#[derive(Debug, Serialize)]
struct Durations {
    p50_ns: Two<u64>,
    p99_ns: Two<u64>,
}

fn changes<K: Ord + Clone, V: Copy + Default + PartialEq>(
    a: &BTreeMap<K, V>,
    b: &BTreeMap<K, V>,
) -> ChangeList<Changed<K, V>> {
    let mut changes = ChangeList { new: Vec::new(), gone: Vec::new(), changed: Vec::new() };
    for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
        let of = |run: &BTreeMap<K, V>| run.get(key).copied().unwrap_or_default();
        let change = Changed { what: key.clone(), a: of(a), b: of(b) };
        match (a.contains_key(key), b.contains_key(key)) {
            (false, _) => changes.new.push(change),
            (_, false) => changes.gone.push(change),
            _ if change.a != change.b => changes.changed.push(change),
            _ => {}
        }
    }
    changes
}

/// Number of calls below which durations are not compared.
const MANY: u64 = 50;

fn compare(a: &RunTotals, b: &RunTotals) -> Difference {
    let names = a.counts.keys().chain(b.counts.keys()).collect::<BTreeSet<_>>();
    let functions = names.into_iter().map(|name| {
        let of = |run: &RunTotals| run.counts.get(name).copied().unwrap_or(0);
        (*name, Two { a: of(a), b: of(b) })
    });
    let mut durations = BTreeMap::new();
    for (name, of_a) in &a.durations {
        let Some(of_b) = b.durations.get(name) else { continue };
        let many = |run: &RunTotals| run.counts.get(name).is_some_and(|count| *count >= MANY);
        let at = |percent| Some(Two { a: of_a.percentile(percent)?, b: of_b.percentile(percent)? });
        let (Some(p50_ns), Some(p99_ns)) = (at(50), at(99)) else { continue };
        // A busy machine does not double the median of this number of calls.
        let differs = |two: Two<u64>| two.a.max(two.b) >= 2 * two.a.min(two.b).max(1) && two.a.abs_diff(two.b) >= 1000;
        if many(a) && many(b) && (differs(p50_ns) || differs(p99_ns)) {
            durations.insert(*name, Durations { p50_ns, p99_ns });
        }
    }
    Difference {
        functions: functions.filter(|(_, two)| two.a != two.b).collect(),
        calls: changes(&a.groups, &b.groups),
        findings: changes(&a.findings, &b.findings),
        not_recorded: Two { a: a.not_recorded, b: b.not_recorded },
        durations,
    }
}

impl Difference {
    /// Whether there is any, but for durations.
    fn is_any(&self) -> bool {
        self.calls.each().next().is_some() || self.findings.each().next().is_some()
    }

    fn text(&self) -> String {
        let mut lines = Vec::new();
        let all = || self.findings.each().map(|(_, one)| one);
        // First what a person wants to know: what got worse, rule by rule.
        let rules: BTreeSet<(&str, &str)> = all().map(|one| (one.what.rule, one.what.severity)).collect();
        for (rule, severity) in rules {
            let sum = |of: fn(&Changed<FindingGroup, u64>) -> u64| {
                all().filter(|one| one.what.rule == rule).map(of).sum::<u64>()
            };
            let (a, b) = (sum(|one| one.a), sum(|one| one.b));
            let what = if severity == Severity::Perf.name() { "slow copies" } else { "calls" };
            lines.push(match b.checked_sub(a) {
                Some(0) => format!("B has as many {what} that break {rule} ({severity}), at other places"),
                Some(more) => format!("B has {more} new {what} that break {rule} ({severity})"),
                None => format!("B has {} fewer {what} that break {rule} ({severity})", a - b),
            });
        }
        for (head, one) in self.findings.each() {
            let FindingGroup { rule, severity, function, site } = &one.what;
            lines.push(format!("  {head}: {rule} ({severity}), {function} at {site}: {} -> {}", one.a, one.b));
        }
        for (name, two) in &self.functions {
            lines.push(format!("{name}: {} -> {} calls", two.a, two.b));
        }
        for (head, one) in self.calls.each() {
            let CallGroup { function, site, up_to, direction } = &one.what;
            let size = up_to.map_or_else(|| "no bytes".into(), |size| format!("up to {size} bytes"));
            let [a, b] = [one.a, one.b].map(|sum| {
                let errors = if sum.errors > 0 { format!(", {} errors", sum.errors) } else { String::new() };
                format!("{} calls, {} bytes{errors}", sum.calls, sum.bytes)
            });
            lines.push(format!("  {head}: {function} at {site}, {size}, {direction}: {a} -> {b}"));
        }
        for (name, Durations { p50_ns, p99_ns }) in &self.durations {
            lines.push(format!(
                "{name}: p50 {} -> {} ns, p99 {} -> {} ns (durations do not count as a difference)",
                p50_ns.a, p50_ns.b, p99_ns.a, p99_ns.b
            ));
        }
        if !self.is_any() {
            lines.insert(0, "The same calls, and the same findings.".into());
        }
        let Two { a, b } = self.not_recorded;
        if a + b > 0 {
            lines.insert(
                0,
                format!("{a} calls of A and {b} of B were not recorded: what is missing may have been made"),
            );
        }
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn a_size_class_is_the_power_of_two_that_a_size_is_at_most() {
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 1024, 1025].map(class),
            [None, Some(0), Some(1), Some(2), Some(2), Some(3), Some(10), Some(11)]
        );
        assert_eq!(class(u64::MAX), Some(64));
    }
}
