//! `aclshim log`: the calls, one a line, in the order in which they began.

mod annotation;
mod filter;

use crate::files::ring_folders;
use crate::output::escape;
use crate::output::quantity::{duration, human};
use crate::output::time::moment;
use crate::reading::symbols::{SourceLocation, Symbols};
use crate::reading::traces::{Nothing, Traces, say_ignored};
use aclshim_collect::findings::rule_bits::rule_ids;
use aclshim_collect::interpreter::visitor::{AnnotationView, CallView, CallVisitor, Lost};
use aclshim_collect::trace_set::{CallOrder, ReadOptions, TraceSet};
use aclshim_facts::code;
use aclshim_facts::message::value;
use anyhow::Result;
use filter::Filter;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `aclshim log`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  aclshim log aclshim-out
  aclshim log -f aclshim-out
  aclshim log --failed --json aclshim-out | jq .function
  aclshim log --scope prefill aclshim-out
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

/// The JSON object of a call.
#[derive(Serialize)]
struct CallLine<'a> {
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
    stream_name: Option<&'a str>,
    /// Arguments that point into a buffer with a name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    buffers: BTreeMap<&'a str, String>,
    scope: Option<Cow<'a, str>>,
    scope_id: Option<u32>,
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
    rules: Vec<Cow<'static, str>>,
}

/// The arguments of a call by name, as C code would write them.
pub fn arguments(seen: &CallView<'_>) -> impl Iterator<Item = (&'static str, String)> {
    let words = seen.call.arguments;
    seen.function.row().arguments.iter().zip(words).map(|(argument, word)| {
        // Narrow arguments leave the upper half undefined.
        let word = if argument.c_type == "aclrtMemcpyKind" { u64::from(word as u32) } else { word };
        (argument.name, value(argument.c_type, word))
    })
}

/// An argument that points into a buffer with a name.
fn buffer(seen: &CallView<'_>, c_type: &str, word: u64) -> Option<String> {
    let (name, offset) = matches!(c_type, "void *" | "const void *").then(|| seen.buffer(word)).flatten()?;
    Some(format!("{name}+{offset:#x}"))
}

/// The arguments as [`arguments`] has them, streams and buffers by their names.
fn named_arguments(seen: &CallView<'_>) -> Vec<String> {
    let words = seen.function.row().arguments.iter().zip(seen.call.arguments);
    let names = words.map(|(argument, word)| match argument.c_type {
        "aclrtStream" => seen.stream_name().map(str::to_owned),
        c_type => buffer(seen, c_type, word),
    });
    let named = arguments(seen).zip(names);
    named
        .map(|((argument, value), name)| match name {
            Some(name) => format!("{argument}={}", escape::line(&name)),
            None => format!("{argument}={value}"),
        })
        .collect()
}

/// Formats the calls and annotations that the filter accepts.
struct LineVisitor<'a, F> {
    filter: &'a Filter,
    is_json: bool,
    sites: SiteNames,
    /// Marks, names and scopes that are missing.
    lost: u64,
    /// Takes a line, and when that was.
    take: F,
}

impl<F: FnMut(Option<u64>, String)> CallVisitor for LineVisitor<'_, F> {
    fn call(&mut self, seen: &CallView<'_>) {
        if self.filter.accepts(seen) {
            let line = if self.is_json { as_json(seen, &mut self.sites) } else { as_text(seen, &mut self.sites) };
            (self.take)(seen.time_ns(), line);
        }
    }

    fn lost(&mut self, lost: &Lost<'_>) {
        self.lost += lost.notes;
    }

    fn remark(&mut self, remark: &AnnotationView<'_>) {
        if self.filter.accepts_annotation(remark) {
            let line = if self.is_json { annotation::as_json(remark) } else { annotation::as_text(remark) };
            (self.take)(remark.time_ns(), line);
        }
    }
}

/// Prints the calls.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { follow, json, filter, traces } = arguments;
    let (filter, mut out) = (filter.check()?, BufWriter::new(std::io::stdout().lock()));
    if follow {
        return follow_on(&traces, &filter, json, &mut out);
    }
    let mut failure = None;
    let take = |_, line: String| {
        if failure.is_none() {
            failure = writeln!(out, "{line}").err();
        }
    };
    let mut lines = LineVisitor { filter: &filter, is_json: json, sites: SiteNames::default(), lost: 0, take };
    let nothing = if json { Nothing::IsFine } else { Nothing::IsAnError };
    let set = traces.read(CallOrder::ByTime, nothing, &mut lines)?;
    let annotations_lost = lines.lost;
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    out.flush()?;
    let missing: u64 = set.processes().map(|process| process.not_recorded).sum();
    if missing > 0 {
        eprintln!("aclshim: {missing} calls were made and not recorded; `aclshim stat` tells more");
    }
    let unsaid: u64 = set.processes().map(|process| process.notes_lost).sum::<u64>().max(annotations_lost);
    if unsaid > 0 {
        eprintln!("aclshim: {unsaid} marks, scopes or names were told and not recorded: there was no room for them");
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints new calls until it is interrupted.
fn follow_on(traces: &Traces, filter: &Filter, is_json: bool, out: &mut impl Write) -> Result<ExitCode> {
    let mut set = TraceSet::new(ReadOptions {
        ring_folders: ring_folders(),
        order: CallOrder::ByThreadNamesFirst,
        follow: true,
        progress: None,
    });
    let mut sites = SiteNames::default();
    let mut ignored = BTreeSet::new();
    loop {
        let mut lines = Vec::new();
        let take = |time: Option<u64>, line| lines.push((time.unwrap_or(0), line));
        let mut keep = LineVisitor { filter, is_json, sites, lost: 0, take };
        for path in &traces.paths {
            // A folder or a file that is not there yet may still come.
            let _ = set.read(&[path], &mut keep);
        }
        set.finish(&mut keep);
        sites = keep.sites;
        say_ignored(&set.ignored.difference(&ignored).cloned().collect());
        ignored.clone_from(&set.ignored);
        lines.sort_by_key(|(time, _)| *time);
        for (_, line) in lines {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Names of call sites, each looked up once.
#[derive(Default)]
struct SiteNames {
    symbols: Symbols,
    known: BTreeMap<(usize, u64), (String, Option<SourceLocation>)>,
}

impl SiteNames {
    fn of(&mut self, seen: &CallView<'_>) -> &(String, Option<SourceLocation>) {
        let (whose, address) = (&seen.whose, seen.call.site);
        self.known.entry((whose.process, address)).or_insert_with(|| {
            let text = self.symbols.site(whose.origin, whose.modules, address);
            (text, self.symbols.location(whose.origin, whose.modules, address))
        })
    }
}

fn as_text(seen: &CallView<'_>, sites: &mut SiteNames) -> String {
    let time = seen.time_ns().map_or_else(|| "-".into(), moment);
    let (pid, thread) = (seen.whose.origin.pid, seen.whose.thread);
    let arguments = named_arguments(seen);
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
    if let Some(scope) = seen.scope() {
        let _ = write!(line, " in \"{}\"", escape::line(&scope));
    }
    if seen.is_refused() {
        line.push_str(" refused");
    }
    if seen.call.is_injected() {
        line.push_str(" injected");
    }
    if seen.rules != 0 {
        let _ = write!(line, " [{}]", rule_ids(seen.rules).collect::<Vec<_>>().join(" "));
    }
    // A call site is shown by the names of files.
    escape::line(&line).into_owned()
}

fn as_json(seen: &CallView<'_>, sites: &mut SiteNames) -> String {
    let (_, location) = sites.of(seen);
    let site = seen.site();
    let words = seen.function.row().arguments.iter().zip(seen.call.arguments);
    let line = CallLine {
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
        stream_name: seen.stream_name(),
        buffers: words.filter_map(|(of, word)| Some((of.name, buffer(seen, of.c_type, word)?))).collect(),
        scope: seen.scope(),
        scope_id: Some(seen.call.scope).filter(|scope| *scope != 0),
        code: seen.code(),
        duration_ns: seen.duration_ns(),
        nested: seen.call.is_nested,
        refused: seen.is_refused(),
        injected: seen.call.is_injected(),
        site: format!("{:#x}", seen.call.site),
        module: site.as_ref().map(|site| site.module.clone()),
        offset: site.as_ref().map(|site| site.offset),
        symbol: location.as_ref().map(|location| location.symbol.as_str()),
        file: location.as_ref().and_then(|location| location.file.as_deref()),
        line: location.as_ref().and_then(|location| location.line),
        rules: rule_ids(seen.rules).collect(),
    };
    serde_json::to_string(&line).unwrap_or_default()
}
