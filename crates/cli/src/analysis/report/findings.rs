//! What breaks a rule, and what failed, in the page's words.

use super::aggregate::Aggregate;
use super::model::{CodeRow, Example, FailureRow, RuleRow, RuleSite, SITES, file_name, rank};
use super::sample::SampledCall;
use crate::analysis::sarif;
use aclshim_collect::trace_set::{Found, Process};
use aclshim_facts::code;
use aclshim_facts::message::reference;
use aclshim_facts::rule::{Rule, Severity};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of findings of each rule and call site that are shown.
const EXAMPLES: usize = 3;

/// The values and the vendor's answer out of a finding's message, whose statement and fix stand elsewhere on the page.
fn split<'a>(message: &'a str, rule: &Rule) -> (&'a str, &'a str) {
    let fix = message.find(" Fix: ").unwrap_or(message.len());
    // The first letter of the statement may be a capital there.
    let Some(tail) = rule.statement.get(rule.statement.chars().next().map_or(0, char::len_utf8)..) else {
        return (message, "");
    };
    let Some(at) = message[..fix].find(tail).filter(|at| *at > 0 && !tail.is_empty()) else {
        return (message, "");
    };
    let begin = message[..at].char_indices().next_back().map_or(0, |(begin, _)| begin);
    let values = message[..begin].trim_end().trim_end_matches('.');
    let behind = &message[at + tail.len()..fix];
    let outcome = behind.strip_prefix(reference(rule).as_str()).unwrap_or(behind).trim_start_matches('.').trim();
    (values, outcome)
}

type BySite<'a> = BTreeMap<(String, &'static str, String), (Option<u64>, Vec<(usize, &'a Found)>)>;

/// The rules that are broken, the worst first.
pub fn rules(
    processes: &[&Process],
    aggregate: &Aggregate,
    sampled: &[SampledCall],
    begin: u64,
    site_name: &mut dyn FnMut(usize, u64) -> String,
) -> Vec<RuleRow> {
    let positions: BTreeMap<(usize, u32, u64), usize> = sampled
        .iter()
        .enumerate()
        .map(|(at, sampled)| ((sampled.call.process, sampled.call.thread, sampled.call.number), at))
        .collect();
    let broken = &aggregate.broken.map;
    let mut names: BTreeMap<&str, (Severity, u64, u64)> = BTreeMap::new();
    for (name, total) in processes.iter().flat_map(|process| process.judge.totals()) {
        let worst = total.worst.unwrap_or(Severity::Portability);
        let sum = names.entry(name).or_insert((worst, 0, 0));
        *sum = (sum.0.max(worst), sum.1 + total.found, sum.2 + total.known);
    }
    let mut by_rule: BTreeMap<String, Vec<(usize, &Found)>> = BTreeMap::new();
    for (process, found) in
        processes.iter().enumerate().flat_map(|(at, process)| process.findings.iter().map(move |found| (at, found)))
    {
        by_rule.entry(sarif::name(found)).or_default().push((process, found));
    }
    let mut rows: Vec<RuleRow> = Vec::new();
    for (name, (severity, count, known)) in names {
        let Some(rule) = Rule::by_id(name.split(' ').next().unwrap_or(name)) else { continue };
        let mut by_site: BySite = BTreeMap::new();
        let mut counted = BTreeSet::new();
        for (process, found) in by_rule.remove(name).unwrap_or_default() {
            let program = file_name(&processes[process].origin.executable);
            let at = by_site.entry((site_name(process, found.site), found.function.row().name, program)).or_default();
            // What was counted is about the product at hand.
            if found.told.on.is_none() && counted.insert((process, found.site)) {
                let count = broken.get(&(process, rule.number, found.site)).copied().unwrap_or(0);
                at.0 = Some(at.0.unwrap_or(0) + count);
            }
            at.1.push((process, found));
        }
        let mut sites: Vec<RuleSite> = by_site
            .into_iter()
            .map(|((from, function, program), (count, found))| RuleSite {
                place: from,
                function,
                program,
                count: count.filter(|count| *count > 0),
                examples: found
                    .into_iter()
                    .take(EXAMPLES)
                    .map(|(process, found)| {
                        let call = positions.get(&(process, found.thread, found.number)).copied();
                        let stack = found.told.frames.iter().map(|frame| site_name(process, *frame)).collect();
                        example(found, processes[process].origin.pid, begin, call, stack)
                    })
                    .collect(),
            })
            .collect();
        sites.sort_by_key(|site| std::cmp::Reverse(site.count));
        let more_sites = sites.len().saturating_sub(SITES);
        sites.truncate(SITES);
        rows.push(RuleRow {
            name: name.to_owned(),
            severity: severity.name(),
            count,
            known,
            statement: rule.statement,
            fix: rule.fix,
            sources: rule.sources.iter().map(ToString::to_string).collect(),
            products: rule.scope.to_string(),
            codes: rule.codes.iter().map(|(code, _)| *code).collect::<BTreeSet<_>>().into_iter().collect(),
            sites,
            more_sites,
        });
    }
    rows.sort_by_key(|row| (rank(row.severity), std::cmp::Reverse(row.count)));
    rows
}

fn example(found: &Found, pid: u32, begin: u64, call: Option<usize>, stack: Vec<String>) -> Example {
    let finding = &found.told;
    let (values, outcome) = split(&finding.message, finding.rule);
    let prefix = format!("{} {}: ", finding.severity.name(), finding.rule.id);
    Example {
        values: values.strip_prefix(&prefix).unwrap_or(values).to_owned(),
        argument: finding.argument,
        outcome: outcome.to_owned(),
        severity: finding.severity.name(),
        pid,
        thread: found.thread,
        number: found.number,
        time: found.time_ns.map(|time| time.saturating_sub(begin)),
        returned: found.returned,
        is_refused: found.is_refused,
        stack,
        call,
    }
}

/// What failed, by code and function.
pub fn failures(aggregate: &Aggregate, sampled: &[SampledCall]) -> Vec<FailureRow> {
    let mut rows: Vec<FailureRow> = aggregate
        .failures
        .map
        .iter()
        .map(|(&(code, function), count)| {
            let is_one = |sampled: &SampledCall| sampled.call.code == Some(code) && sampled.call.function == function;
            let may_be: Vec<&Rule> = Rule::by_code(code).filter(|rule| rule.applies_to(function)).collect();
            let broken: u128 =
                sampled.iter().filter(|sampled| is_one(sampled)).fold(0, |bits, sampled| bits | sampled.call.rules);
            let known: Vec<&str> =
                may_be.iter().filter(|rule| broken >> rule.number & 1 == 1).map(|rule| rule.id).collect();
            FailureRow {
                code,
                function: function.row().name,
                count: *count,
                is_known: !known.is_empty(),
                rules: if known.is_empty() { may_be.iter().map(|rule| rule.id).collect() } else { known },
                call: sampled.iter().position(is_one),
            }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows.truncate(500);
    rows
}

/// All codes that the page shows, in words.
pub fn codes(sampled: &[SampledCall], rules: &[RuleRow], failures: &[FailureRow]) -> Vec<CodeRow> {
    let returned = sampled.iter().filter_map(|sampled| sampled.call.code).chain(failures.iter().map(|row| row.code));
    let of_rules = rules.iter().flat_map(|rule| {
        let returned = rule.sites.iter().flat_map(|site| site.examples.iter().filter_map(|example| example.returned));
        rule.codes.iter().copied().chain(returned)
    });
    let all: BTreeSet<i32> = returned.chain(of_rules).filter(|code| *code != 0).collect();
    all.into_iter().map(|code| CodeRow { code, name: code::name(code), meaning: code::meaning(code) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aclshim_facts::message::message;
    use aclshim_facts::rule::{Arrays, Finding, Subject};
    use aclshim_facts::rules::RULES;
    use aclshim_facts::world::World;

    #[test]
    fn the_message_of_every_rule_is_split_into_values_and_outcome() {
        for rule in RULES {
            for severity in [Severity::Error, Severity::Violation, Severity::Portability] {
                let function = rule.functions().next().unwrap();
                let (arrays, world) = (Arrays::default(), World::UNKNOWN);
                let subject = Subject { function, call: function.call(&[7; 10]), arrays, world };
                let finding = Finding { argument: 0, index: None, severity, code: 107_000, fail_index: None };
                let text = message(rule, &subject, &finding, None);
                let (values, outcome) = split(&text, rule);
                let row = function.row();
                assert!(values.starts_with(&format!("{severity} {}: {}(", rule.id, row.name)), "{values}\n{text}");
                assert!(values.ends_with(&format!("); wrong argument: {}", row.arguments[0].name)), "{values}\n{text}");
                assert!(outcome.starts_with(char::is_uppercase) && outcome.ends_with('.'), "{outcome}\n{text}");
                assert!(!outcome.contains("Fix:"), "{outcome}");
            }
        }
        assert_eq!(split("something else", RULES[0]), ("something else", ""));
        assert_eq!(split("", RULES[0]), ("", ""));
    }
}
