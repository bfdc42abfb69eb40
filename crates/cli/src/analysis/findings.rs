//! `aclshim findings`: what breaks a rule, in what was recorded; `aclshim rules`: the rulebook.

use crate::analysis::sarif::{self, SiteCounts};
use crate::output::escape;
use crate::reading::symbols::Symbols;
use crate::reading::traces::{Nothing, Traces};
use aclshim_collect::findings::mute;
use aclshim_collect::interpreter::visitor::NoVisitor;
use aclshim_collect::trace_set::{CallOrder, Found, Process};
use aclshim_facts::rule::Rule;
use aclshim_facts::rules::RULES;
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Arguments of `aclshim findings`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  aclshim findings aclshim-out\n  aclshim findings --sarif aclshim-out > findings.sarif\n  aclshim findings --baseline aclshim-out > known.txt\n  ACLSHIM_BASELINE=known.txt ..."
)]
pub struct Arguments {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// As a file of known findings for ACLSHIM_BASELINE
    #[arg(long, conflicts_with = "json")]
    baseline: bool,
    /// As SARIF 2.1.0, one result a rule and call site
    #[arg(long, conflicts_with_all = ["json", "baseline"])]
    sarif: bool,
    #[command(flatten)]
    traces: Traces,
}

/// Arguments of `aclshim rules`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  aclshim rules\n  aclshim rules --json | jq '.[] | select(.severity == \"perf\") | .id'\n  aclshim explain ALIGN-64"
)]
pub struct RulesArguments {
    /// One JSON array
    #[arg(long)]
    json: bool,
}

/// The JSON object of a finding. Other programs use its keys: they do not change.
#[derive(Serialize)]
struct FindingLine<'a> {
    rule: &'a str,
    severity: &'a str,
    function: &'a str,
    argument: Option<&'a str>,
    index: Option<u64>,
    message: &'a str,
    source: String,
    products: String,
    versions: String,
    fix: &'a str,
    code: Option<i32>,
    returned: Option<i32>,
    refused: bool,
    on: Option<&'a str>,
    pid: u32,
    thread: u32,
    number: u64,
    time_ns: Option<u64>,
    site: String,
    module: Option<&'a str>,
    offset: Option<u64>,
    stack: &'a [String],
    symbol: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

fn line<'a>(process: &Process, found: &'a Found, symbols: &mut Symbols) -> FindingLine<'a> {
    let finding = &found.told;
    let location = symbols.location(&process.origin, process.modules(), found.site);
    FindingLine {
        rule: finding.rule.id,
        severity: finding.severity.name(),
        function: found.function.row().name,
        argument: finding.argument,
        index: finding.index,
        message: &finding.message,
        source: finding.rule.sources.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        products: finding.rule.scope.products(),
        versions: finding.rule.scope.versions(),
        fix: finding.rule.fix,
        code: finding.code,
        returned: found.returned,
        refused: found.is_refused,
        on: finding.on.as_deref(),
        pid: process.origin.pid,
        thread: found.thread,
        number: found.number,
        time_ns: found.time_ns,
        site: format!("{:#x}", found.site),
        module: finding.site.as_ref().map(|site| site.module.as_str()),
        offset: finding.site.as_ref().map(|site| site.offset),
        stack: &finding.stack,
        line: location.as_ref().and_then(|location| location.line),
        file: location.as_ref().and_then(|location| location.file.clone()),
        symbol: location.map(|location| location.symbol),
    }
}

/// Prints what was found.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { json, baseline, sarif, traces } = arguments;
    let nothing = if json || baseline || sarif { Nothing::IsFine } else { Nothing::IsAnError };
    if sarif {
        let mut counts = SiteCounts::default();
        let set = traces.read(CallOrder::ByThread, nothing, &mut counts)?;
        let report = sarif::report(&set, &counts, &BTreeSet::new(), &|_| true);
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    let set = traces.read(CallOrder::ByThread, nothing, &mut NoVisitor)?;
    let all = set.processes().flat_map(|process| process.findings.iter().map(move |found| (process, found)));
    let mut symbols = Symbols::default();
    if json {
        for (process, found) in all {
            println!("{}", serde_json::to_string(&line(process, found, &mut symbols))?);
        }
    } else if baseline {
        let lines = all.map(|(_, found)| mute::line(found.told.rule.id, found.function, found.told.site.as_ref()));
        for line in lines.collect::<BTreeSet<_>>() {
            // A file for ACLSHIM_BASELINE has names as they are; a terminal is not shown them so.
            let shown = if std::io::stdout().is_terminal() { escape::line(&line) } else { line.as_str().into() };
            println!("{shown}");
        }
    } else {
        all.for_each(|(process, found)| print(process, found, &mut symbols));
        summary(&set.processes().collect::<Vec<_>>());
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a finding for people.
fn print(process: &Process, found: &Found, symbols: &mut Symbols) {
    let site = symbols.site(&process.origin, process.modules(), found.site);
    let returned = match (found.is_refused, found.returned) {
        (true, Some(code)) => format!("refused with {code}"),
        (_, Some(code)) => format!("returned {code}"),
        (_, None) => "has not returned".into(),
    };
    outln!("{}", found.told.message);
    let (pid, thread) = (process.origin.pid, found.thread);
    outln!("    call from {}, process {pid}, thread {thread}; {returned}", escape::line(&site));
    for frame in &found.told.frames {
        outln!("    from {}", escape::line(&symbols.site(&process.origin, process.modules(), *frame)));
    }
    println!();
}

fn summary(processes: &[&Process]) {
    let names: BTreeSet<&str> =
        processes.iter().flat_map(|process| process.judge.totals().keys().map(String::as_str)).collect();
    for name in &names {
        let totals = || processes.iter().filter_map(|process| process.judge.totals().get(*name));
        let [found, known] = [totals().map(|total| total.found).sum::<u64>(), totals().map(|total| total.known).sum()];
        let known = if known > 0 { format!(", {known} of them known and not shown") } else { String::new() };
        let worst = totals().filter_map(|total| total.worst).max().map_or("", |worst| worst.name());
        outln!("{found:>8} x {name} ({worst}){known}");
    }
    if names.is_empty() {
        println!("No rule is broken.");
    }
}

/// The JSON object of a rule.
#[derive(Serialize)]
struct RuleLine<'a> {
    id: &'a str,
    severity: &'a str,
    grades: Vec<GradeLine<'a>>,
    functions: Vec<&'a str>,
    products: String,
    versions: String,
    codes: Vec<i32>,
    statement: &'a str,
    sources: Vec<String>,
    fix: &'a str,
}

/// When a rule is how bad.
#[derive(Serialize)]
struct GradeLine<'a> {
    severity: &'a str,
    when: &'a str,
}

fn rule_line(rule: &Rule) -> RuleLine<'_> {
    RuleLine {
        id: rule.id,
        severity: rule.severity.name(),
        grades: rule
            .grades
            .iter()
            .map(|grade| GradeLine { severity: grade.severity.name(), when: grade.when })
            .collect(),
        functions: rule.functions().map(|function| function.row().name).collect(),
        products: rule.scope.products(),
        versions: rule.scope.versions(),
        codes: rule.codes.iter().map(|(code, _)| *code).collect(),
        statement: rule.statement,
        sources: rule.sources.iter().map(ToString::to_string).collect(),
        fix: rule.fix,
    }
}

/// Prints the rulebook.
pub fn rules(arguments: RulesArguments) -> Result<ExitCode> {
    if arguments.json {
        let all: Vec<_> = RULES.iter().map(|rule| rule_line(rule)).collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    for rule in RULES {
        println!("{:<22} {:<12} {}", rule.id, rule.severity.name(), rule.statement);
    }
    println!("\nEach with its sources and examples: aclshim explain RULE");
    Ok(ExitCode::SUCCESS)
}
