//! `aclshim stat`: what the processes of a directory have recorded.

mod breakdown;
mod scopes;

use crate::output::escape;
use crate::output::quantity::{duration, human, plural};
use crate::reading::symbols::Symbols;
use crate::reading::traces::{Nothing, Traces};
use aclshim_collect::interpreter::totals::Histogram;
use aclshim_collect::ownership::Ignored;
use aclshim_collect::trace_set::{Process, TraceSet};
use aclshim_facts::Function;
use aclshim_facts::direction::Direction;
use anyhow::Result;
use breakdown::{Breakdown, CopySum, class_end, has_stream};
use scopes::ScopeStat;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

/// Arguments of `aclshim stat`.
#[derive(clap::Args)]
#[command(
    after_help = "Bandwidth is that of synchronous calls: an asynchronous one returns before its bytes are there.

Examples:
  aclshim stat aclshim-out
  aclshim stat --json /dev/shm/aclshim-1234-17f0c0de.ring"
)]
pub struct Arguments {
    /// One JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// How many of the slowest calls and of the call sites are shown
    #[arg(long, default_value_t = 5, value_name = "N")]
    top: usize,
    #[command(flatten)]
    traces: Traces,
}

/// The JSON object that is printed. Other programs use its keys: they do not change.
#[derive(Default, Serialize)]
struct Stat {
    processes: usize,
    calls: u64,
    nested: u64,
    bytes: u64,
    errors: u64,
    injected: u64,
    not_recorded: u64,
    overwritten: u64,
    evicted: u64,
    write_failures: u64,
    notes_lost: u64,
    in_flight: u64,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
    functions: BTreeMap<String, FunctionStat>,
    directions: BTreeMap<&'static str, DirectionStat>,
    /// Calls by the name of the innermost scope that was open.
    scopes: BTreeMap<String, ScopeStat>,
    asynchronous: u64,
    /// Asynchronous calls on pageable memory; `None` where memory is not tracked.
    pageable: Option<u64>,
    slowest: Vec<SlowStat>,
    sites: Vec<SiteStat>,
    findings: BTreeMap<String, u64>,
    slots: SlotStat,
    /// Rings of other users that name the directory: nothing of them is in the numbers above.
    ignored_rings: Vec<IgnoredStat>,
}

#[derive(Serialize)]
struct IgnoredStat {
    path: String,
    uid: u32,
}

/// Where the slots are that were read.
#[derive(Default, Serialize)]
struct SlotStat {
    trace: u64,
    ring: u64,
}

#[derive(Default, Serialize)]
struct FunctionStat {
    calls: u64,
    bytes: u64,
    errors: u64,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
    /// Durations below each power of two that any reached, and how many.
    histogram: Vec<(u64, u64)>,
    #[serde(skip)]
    durations: Histogram,
}

/// Synchronous calls of one direction.
#[derive(Serialize)]
struct DirectionStat {
    #[serde(flatten)]
    sum: CopySum,
    bytes_per_s: Option<u64>,
    sizes: Vec<SizeStat>,
}

#[derive(Serialize)]
struct SizeStat {
    /// The sizes are below this one, and not below that of the class before.
    below: u64,
    #[serde(flatten)]
    sum: CopySum,
    bytes_per_s: Option<u64>,
}

#[derive(Serialize)]
struct SlowStat {
    duration_ns: u64,
    function: &'static str,
    direction: &'static str,
    bytes: u64,
    code: Option<i32>,
    time_ns: Option<u64>,
    pid: u32,
    thread: u32,
    number: u64,
    site: String,
}

#[derive(Serialize)]
struct SiteStat {
    site: String,
    pid: u32,
    function: &'static str,
    #[serde(flatten)]
    sum: CopySum,
}

/// Prints what was recorded. Nothing at all is an answer to a program, and a question to a person.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let nothing = if arguments.json { Nothing::IsFine } else { Nothing::IsAnError };
    let mut breakdown = Breakdown::default();
    let set = arguments.traces.read_parallel(nothing, &mut breakdown)?;
    let stat = Stat::new(&set, &mut breakdown, arguments.top);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&stat)?);
    } else {
        print!("{}", escape::lines(&stat.table()));
    }
    Ok(ExitCode::SUCCESS)
}

impl Stat {
    fn new(set: &TraceSet, breakdown: &mut Breakdown, top: usize) -> Self {
        let mut stat = Self::default();
        set.processes().for_each(|process| stat.add(process));
        for function in stat.functions.values_mut() {
            let percentile = |percent| function.durations.percentile(percent);
            [function.p50_ns, function.p90_ns, function.p99_ns] = [50, 90, 99].map(percentile);
            function.max_ns = function.durations.max();
            function.histogram = function.durations.powers();
        }
        (stat.first_ns, stat.last_ns) = breakdown.span().unzip();
        let ignored = |ring: &Ignored| IgnoredStat { path: ring.path.to_string_lossy().into_owned(), uid: ring.uid };
        stat.ignored_rings = set.ignored.iter().map(ignored).collect();
        stat.pageable = stat.findings.get("ASYNC-PAGEABLE").copied();
        stat.directions(breakdown);
        stat.scopes = std::mem::take(&mut breakdown.scopes).by_name(set);
        let pids: Vec<u32> = set.processes().map(|process| process.origin.pid).collect();
        let pid = |process: usize| pids.get(process).copied().unwrap_or(0);
        let mut symbols = Symbols::default();
        let mut site = |process: usize, address: u64| match set.process(process) {
            Some(process) => symbols.site(&process.origin, process.modules(), address),
            None => format!("{address:#x}"),
        };
        for slow in breakdown.slowest.iter().take(top) {
            stat.slowest.push(SlowStat {
                duration_ns: slow.duration_ns,
                function: slow.function.row().name,
                direction: slow.direction.name(),
                bytes: slow.bytes,
                code: slow.code,
                time_ns: slow.time_ns,
                pid: pid(slow.process),
                thread: slow.thread,
                number: slow.number,
                site: site(slow.process, slow.site),
            });
        }
        for ((process, address, function), sum) in breakdown.sites().into_iter().take(top) {
            stat.sites.push(SiteStat {
                site: site(*process, *address),
                pid: pid(*process),
                function: function.row().name,
                sum: *sum,
            });
        }
        stat
    }

    fn add(&mut self, process: &Process) {
        self.processes += 1;
        self.not_recorded += process.not_recorded;
        self.overwritten += process.overwritten();
        self.evicted += process.evicted;
        self.write_failures += process.write_failures;
        self.notes_lost += process.notes_lost;
        let [trace, ring] = process.slots;
        self.slots.trace += trace;
        self.slots.ring += ring;
        for (rule, total) in process.judge.totals() {
            *self.findings.entry(rule.clone()).or_default() += total.found;
        }
        for (name, sums) in process.functions() {
            self.nested += sums.nested;
            self.injected += sums.injected;
            self.in_flight += sums.in_flight;
            if sums.calls == 0 {
                continue;
            }
            self.calls += sums.calls;
            self.errors += sums.errors;
            self.bytes = self.bytes.saturating_add(sums.bytes);
            if Function::by_name(name).is_some_and(has_stream) {
                self.asynchronous += sums.calls;
            }
            let function = self.functions.entry(name.into()).or_default();
            function.calls += sums.calls;
            function.errors += sums.errors;
            function.bytes = function.bytes.saturating_add(sums.bytes);
            function.durations.merge(&sums.durations);
        }
    }

    fn directions(&mut self, breakdown: &Breakdown) {
        let sizes = breakdown.sizes();
        for direction in Direction::ALL {
            let mut classes: Vec<(usize, CopySum)> =
                sizes.iter().filter(|((of, _), _)| *of == direction).map(|((_, class), sum)| (*class, *sum)).collect();
            classes.sort_by_key(|(class, _)| *class);
            let mut all = CopySum::default();
            classes.iter().for_each(|(_, sum)| all.merge(sum));
            if all.calls == 0 {
                continue;
            }
            let size = |(class, sum): (usize, CopySum)| {
                let below = class_end(class);
                SizeStat { below, sum, bytes_per_s: sum.bytes_per_s() }
            };
            let sizes = classes.into_iter().map(size).collect();
            let of = DirectionStat { sum: all, bytes_per_s: all.bytes_per_s(), sizes };
            self.directions.insert(direction.name(), of);
        }
    }

    fn table(&self) -> String {
        let mut text = String::new();
        let mut row = |cells: [&str; 7]| {
            let [name, calls, errors, bytes, half, most, longest] = cells;
            let _ = writeln!(text, "{name:<30}{calls:>11}{errors:>9}{bytes:>13}{half:>10}{most:>10}{longest:>10}");
        };
        row(["function", "calls", "errors", "bytes", "p50", "p99", "max"]);
        let time = |ns: Option<u64>| ns.map_or_else(|| "-".into(), duration);
        for (name, of) in &self.functions {
            let [calls, errors] = [of.calls, of.errors].map(|number| number.to_string());
            let [half, most, longest] = [of.p50_ns, of.p99_ns, of.max_ns].map(time);
            row([&escape::line(name), &calls, &errors, &human(of.bytes), &half, &most, &longest]);
        }
        row(["total", &self.calls.to_string(), &self.errors.to_string(), &human(self.bytes), "", "", ""]);
        self.more(&mut text);
        let processes = if self.processes == 1 { "process" } else { "processes" };
        let _ = write!(
            text,
            "\n{} {processes}; {} nested, {} in flight, {} not recorded",
            self.processes, self.nested, self.in_flight, self.not_recorded
        );
        for (count, what) in [
            (self.injected, "calls struck by an injection"),
            (self.overwritten, "slots overwritten"),
            (self.evicted, "calls removed to stay within ACLSHIM_BUDGET"),
            (self.write_failures, "writes to ACLSHIM_DIR failed"),
            (self.notes_lost, "marks, scopes or names not recorded"),
        ] {
            if count > 0 {
                let _ = write!(text, ", {count} {what}");
            }
        }
        text.push('\n');
        text
    }

    /// Directions, sizes, the slowest calls and the call sites.
    fn more(&self, text: &mut String) {
        let pace = |bytes: Option<u64>| bytes.map_or_else(|| "-".into(), |bytes| format!("{}/s", human(bytes)));
        if self.directions.is_empty() {
            text.push_str("\nno synchronous call that succeeded: no bandwidth\n");
        } else {
            let _ = writeln!(text, "\nsynchronous{:>30}{:>13}{:>16}", "calls", "bytes", "bandwidth");
        }
        for (name, of) in &self.directions {
            let mut row = |name: &str, sum: &CopySum, bytes_per_s| {
                let (bytes, pace) = (human(sum.bytes), pace(bytes_per_s));
                let _ = writeln!(text, "{name:<30}{:>11}{bytes:>13}{pace:>16}", sum.calls);
            };
            row(name, &of.sum, of.bytes_per_s);
            for size in &of.sizes {
                row(&format!("  below {}", human(size.below)), &size.sum, size.bytes_per_s);
            }
        }
        if !self.scopes.is_empty() {
            let _ = writeln!(text, "\nscope{:>36}{:>9}{:>13}{:>10}", "calls", "errors", "bytes", "p50");
        }
        for (name, of) in &self.scopes {
            let half = of.p50_ns.map_or_else(|| "-".into(), duration);
            let (calls, errors, bytes) = (of.calls, of.errors, human(of.bytes));
            let _ = write!(text, "{:<30}{calls:>11}{errors:>9}{bytes:>13}{half:>10}", escape::line(name));
            let _ = match of.failures {
                0 => writeln!(text),
                failures => writeln!(text, "  {failures} failed expectations"),
            };
        }
        if !self.slowest.is_empty() {
            text.push_str("\nslowest calls\n");
        }
        for slow in &self.slowest {
            let (time, bytes) = (duration(slow.duration_ns), human(slow.bytes));
            let SlowStat { function, direction, pid, thread, .. } = slow;
            let site = escape::line(&slow.site);
            let direction = if *direction == "unknown" { "" } else { direction };
            let _ = writeln!(
                text,
                "{time:>10}  {function} {bytes} {direction} from {site}, process {pid}, thread {thread}"
            );
        }
        if !self.sites.is_empty() {
            text.push_str("\ncall sites that took the longest\n");
        }
        for of in &self.sites {
            let (time, calls, bytes) = (duration(of.sum.ns), plural(of.sum.calls, "call"), human(of.sum.bytes));
            let _ = writeln!(text, "{time:>10}  {} from {}: {calls}, {bytes}", of.function, escape::line(&of.site));
        }
        let _ = match (self.pageable, self.asynchronous) {
            (_, 0) => Ok(()),
            (None, _) => writeln!(text, "\npageable share: not known (memory is not tracked)"),
            (Some(pageable), all) => writeln!(text, "\npageable share: {pageable} of {all} asynchronous calls"),
        };
        if !self.findings.is_empty() {
            text.push_str("\nfindings (`aclshim findings` tells more)\n");
        }
        for (rule, count) in &self.findings {
            let _ = writeln!(text, "{count:>10} x {rule}");
        }
    }
}
