//! `aclshim log`: the calls, one a line, in the order in which they began.

mod filter;

use crate::stat::{duration, human};
use crate::symbols::{Place, Symbols};
use crate::time::moment;
use crate::traces::{Nothing, Traces, ring_folders};
use aclshim_collect::seen::Seen;
use aclshim_collect::survey::Survey;
use aclshim_facts::code;
use aclshim_facts::message::value;
use aclshim_facts::rules::RULES;
use anyhow::Result;
use filter::Filter;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

/// What `aclshim log` is told.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  aclshim log aclshim-out
  aclshim log -f aclshim-out
  aclshim log --failed --json aclshim-out | jq .function
  aclshim log --function '*Async' --larger 1M --longer 100us aclshim-out
  aclshim log --rule ALIGN-64 --from 2026-11-16T12:00 --to 2026-11-16T13:00 aclshim-out")]
pub struct Arguments {
    /// Go on as calls are made, until interrupted
    #[arg(short, long)]
    follow: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    traces: Traces,
}

/// A call for programs.
#[derive(Serialize)]
struct Line<'a> {
    time_ns: Option<u64>,
    pid: u32,
    thread: u32,
    number: u64,
    function: &'a str,
    arguments: serde_json::Map<String, serde_json::Value>,
    kind: Option<&'a str>,
    direction: &'a str,
    bytes: u64,
    stream: Option<String>,
    code: Option<i32>,
    duration_ns: Option<u64>,
    nested: bool,
    refused: bool,
    injected: bool,
    site: String,
    module: Option<String>,
    offset: Option<u64>,
    symbol: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    rules: Vec<&'a str>,
}

/// The ids of rules.
pub fn rule_ids(bits: u128) -> Vec<&'static str> {
    RULES.iter().filter(|rule| bits >> rule.number & 1 == 1).map(|rule| rule.id).collect()
}

/// The arguments of a call by name, as C code would write them.
pub fn arguments(seen: &Seen<'_>) -> impl Iterator<Item = (&'static str, String)> {
    let words = seen.call.arguments;
    seen.function.row().arguments.iter().zip(words).map(|(argument, word)| {
        // Narrow arguments leave the upper half undefined.
        let word = if argument.c_type == "aclrtMemcpyKind" { u64::from(word as u32) } else { word };
        (argument.name, value(argument.c_type, word))
    })
}

/// Prints the calls.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { follow, json, filter, traces } = arguments;
    let (filter, mut out) = (filter.check()?, BufWriter::new(std::io::stdout().lock()));
    let mut sites = Sites::default();
    let mut line = |seen: &Seen<'_>| if json { as_json(seen, &mut sites) } else { as_text(seen, &mut sites) };
    if follow {
        return follow_on(&traces, &filter, &mut line, &mut out);
    }
    let mut failure = None;
    let mut print = |seen: &Seen<'_>| {
        if failure.is_none() && filter.takes(seen) {
            failure = writeln!(out, "{}", line(seen)).err();
        }
    };
    let survey = traces.in_order(if json { Nothing::IsFine } else { Nothing::IsAnError }, &mut print)?;
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    out.flush()?;
    let missing: u64 = survey.processes().map(|process| process.not_recorded).sum();
    if missing > 0 {
        eprintln!("aclshim: {missing} calls were made and not recorded; `aclshim stat` tells more");
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what comes, until somebody ends us.
fn follow_on(
    traces: &Traces,
    filter: &Filter,
    line: &mut dyn FnMut(&Seen<'_>) -> String,
    out: &mut impl Write,
) -> Result<ExitCode> {
    let mut survey = Survey::default();
    survey.follows = true;
    loop {
        let mut lines = Vec::new();
        let mut keep = |seen: &Seen<'_>| {
            if filter.takes(seen) {
                lines.push((seen.time_ns().unwrap_or(0), line(seen)));
            }
        };
        for path in &traces.paths {
            // A folder or a file that is not there yet may still come.
            let _ = survey.watch(path, &ring_folders(), &mut keep);
        }
        survey.pause(&mut keep);
        lines.sort_by_key(|(time, _)| *time);
        for (_, line) in lines {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Where calls come from, each looked up once.
#[derive(Default)]
struct Sites {
    symbols: Symbols,
    known: BTreeMap<(usize, u64), (String, Option<Place>)>,
}

impl Sites {
    fn of(&mut self, seen: &Seen<'_>) -> &(String, Option<Place>) {
        let (whose, address) = (&seen.whose, seen.call.site);
        self.known.entry((whose.process, address)).or_insert_with(|| {
            let text = self.symbols.site(whose.origin, whose.modules, address);
            (text, self.symbols.place(whose.origin, whose.modules, address))
        })
    }
}

fn as_text(seen: &Seen<'_>, sites: &mut Sites) -> String {
    let time = seen.time_ns().map_or_else(|| "-".into(), moment);
    let (pid, thread) = (seen.whose.origin.pid, seen.whose.thread);
    let arguments: Vec<_> = arguments(seen).map(|(name, value)| format!("{name}={value}")).collect();
    let nested = if seen.call.is_nested { "  " } else { "" };
    let mut line = format!("{time} {pid}/{thread} {nested}{}({})", seen.function.row().name, arguments.join(", "));
    let _ = match seen.code() {
        None => write!(line, " = ?"),
        Some(code) => match code::name(code).filter(|_| code != 0) {
            Some(name) => write!(line, " = {code} {name}"),
            None => write!(line, " = {code}"),
        },
    };
    if let Some(ns) = seen.duration_ns() {
        let _ = write!(line, " <{}>", duration(ns));
    }
    if let Some(batch) = &seen.call.batch {
        let _ = write!(
            line,
            " {} in all, {} to {} an item",
            human(batch.total),
            human(batch.smallest),
            human(batch.largest)
        );
    }
    let _ = write!(line, " from {}", sites.of(seen).0);
    if seen.is_refused() {
        line.push_str(" refused");
    }
    if seen.call.is_injected() {
        line.push_str(" injected");
    }
    if seen.rules != 0 {
        let _ = write!(line, " [{}]", rule_ids(seen.rules).join(" "));
    }
    line
}

fn as_json(seen: &Seen<'_>, sites: &mut Sites) -> String {
    let (_, place) = sites.of(seen);
    let site = seen.site();
    let line = Line {
        time_ns: seen.time_ns(),
        pid: seen.whose.origin.pid,
        thread: seen.whose.thread,
        number: seen.call.number,
        function: seen.function.row().name,
        arguments: arguments(seen).map(|(name, value)| (name.to_owned(), value.into())).collect(),
        kind: seen.kind().and_then(|kind| kind.name()),
        direction: seen.direction().name(),
        bytes: seen.bytes(),
        stream: seen.stream().map(|stream| format!("{stream:#x}")),
        code: seen.code(),
        duration_ns: seen.duration_ns(),
        nested: seen.call.is_nested,
        refused: seen.is_refused(),
        injected: seen.call.is_injected(),
        site: format!("{:#x}", seen.call.site),
        module: site.as_ref().map(|site| site.module.clone()),
        offset: site.as_ref().map(|site| site.offset),
        symbol: place.as_ref().map(|place| place.symbol.as_str()),
        file: place.as_ref().and_then(|place| place.file.as_deref()),
        line: place.as_ref().and_then(|place| place.line),
        rules: rule_ids(seen.rules),
    };
    serde_json::to_string(&line).unwrap_or_default()
}
