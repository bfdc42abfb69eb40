//! The collector's metrics and their formats: OpenMetrics, and the older text format that node_exporter reads.
//!
//! A call has the labels `function`, `kind` and `direction` and no others, which bounds the number of series. Metrics of one
//! process, its losses and the fill level of its rings, are published while it is drained, and then added to the totals.

mod page;

pub use page::MetricsFormat;

use aclshim_collect::drain::losses;
use aclshim_collect::drain::outside::Drained;
use aclshim_collect::interpreter::totals::Sums;
use aclshim_facts::Function;
use aclshim_facts::abi;
use aclshim_facts::direction::Direction;
use aclshim_facts::rule::{Rule, Severity};
use aclshim_trace::ring::layout::{PREFIX, SUFFIX};
use page::{MetricType, MetricsPage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// The upper bounds of the durations, as powers of two of a nanosecond: from 256 ns to 4.3 s. (Durations are cut to whole
/// nanoseconds, so those that are counted as less than 256 took no more than that.)
const POWERS: [u32; 13] = [8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32];

/// The name of a function that this program does not know.
const UNKNOWN: &str = "unknown";

/// Maximum number of processes with metrics of their own.
const MOST_PROCESSES: usize = 1000;

/// What calls of one function and kind add up to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallMetrics {
    calls: u64,
    nested: u64,
    errors: u64,
    bytes: u64,
    /// How many took less than each of [`POWERS`].
    below: [u64; POWERS.len()],
    timed: u64,
    duration_ns: u64,
}

impl CallMetrics {
    fn of(sums: &Sums) -> Self {
        Self {
            calls: sums.calls,
            nested: sums.nested,
            errors: sums.errors,
            bytes: sums.bytes,
            below: POWERS.map(|power| sums.durations.below(power)),
            timed: sums.durations.count(),
            duration_ns: sums.durations.sum(),
        }
    }

    fn add(&mut self, other: &CallMetrics) {
        let Self { calls, nested, errors, bytes, below, timed, duration_ns } = self;
        let mine = [calls, nested, errors, bytes, timed, duration_ns];
        let more = [other.calls, other.nested, other.errors, other.bytes, other.timed, other.duration_ns];
        for (mine, more) in mine.into_iter().chain(below).zip(more.iter().chain(&other.below)) {
            *mine = mine.saturating_add(*more);
        }
    }
}

/// Counters of what was lost, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossMetrics {
    not_recorded: u64,
    overwritten: u64,
    evicted: u64,
    write_failures: u64,
}

impl LossMetrics {
    fn zip(self, other: LossMetrics, with: impl Fn(u64, u64) -> u64) -> LossMetrics {
        LossMetrics {
            not_recorded: with(self.not_recorded, other.not_recorded),
            overwritten: with(self.overwritten, other.overwritten),
            evicted: with(self.evicted, other.evicted),
            write_failures: with(self.write_failures, other.write_failures),
        }
    }

    fn add(&mut self, other: LossMetrics) {
        *self = self.zip(other, u64::saturating_add);
    }
}

/// Counters that only grow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricTotals {
    /// Calls by function, and by kind and direction.
    calls: BTreeMap<String, BTreeMap<String, CallMetrics>>,
    /// Findings by rule and severity.
    findings: BTreeMap<String, BTreeMap<String, u64>>,
    lost: LossMetrics,
}

impl MetricTotals {
    /// Adds what was read of a process, but for what was lost.
    pub fn add_process(&mut self, one: &Drained) {
        let names = &one.drain.origin().functions;
        for (function, kind, direction, sums) in one.drain.totals().kinds() {
            let name = names.get(function).filter(|name| Function::by_name(name).is_some());
            let function = self.calls.entry(name.map_or(UNKNOWN, String::as_str).to_owned()).or_default();
            function.entry(format!("{kind},{}", direction.name())).or_default().add(&CallMetrics::of(sums));
        }
        for (rule, total) in one.drain.findings() {
            for (severity, found) in SEVERITIES.iter().zip(total.by_severity).filter(|(_, found)| *found > 0) {
                let rule = self.findings.entry(rule.clone()).or_default();
                *rule.entry(severity.name().to_owned()).or_default() += found;
            }
        }
    }

    /// Adds a process that is not drained any more, with its losses.
    pub fn add_ended(&mut self, one: &Drained) {
        self.add_process(one);
        self.lost.add(ProcessMetrics::of(one, 0).lost);
    }

    /// Adds others. They come from a process of another user: unknown names are left out.
    fn add(&mut self, others: &MetricTotals) {
        for (function, kinds) in &others.calls {
            for (kind, calls) in kinds {
                if (function == UNKNOWN || Function::by_name(function).is_some()) && is_kind(kind) {
                    self.calls.entry(function.clone()).or_default().entry(kind.clone()).or_default().add(calls);
                }
            }
        }
        for (rule, severities) in &others.findings {
            for (severity, found) in severities {
                let is_severity = SEVERITIES.iter().any(|one| one.name() == severity);
                if is_severity && Rule::by_id(split(rule).0).is_some() && rule.len() < 128 {
                    let rule = self.findings.entry(rule.clone()).or_default();
                    let count = rule.entry(severity.clone()).or_default();
                    *count = count.saturating_add(*found);
                }
            }
        }
        self.lost.add(others.lost);
    }
}

const SEVERITIES: [Severity; 4] = [Severity::Portability, Severity::Perf, Severity::Violation, Severity::Error];

/// A rule, and the other product that it was broken on.
fn split(rule: &str) -> (&str, Option<&str>) {
    rule.split_once(" on ").map_or((rule, None), |(rule, product)| (rule, Some(product)))
}

/// A process that is drained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessMetrics {
    /// The process id in the name of the ring file.
    pid: String,
    /// Birth as in the name of the ring file: together with the pid it identifies the file.
    born: String,
    executable: String,
    lost: LossMetrics,
    /// The share of its fullest ring, in thousandths.
    fill: u64,
}

impl ProcessMetrics {
    /// What is known of it; `fullest` is the most slots that one of its rings had.
    pub fn of(one: &Drained, fullest: u64) -> Self {
        let header = one.file.header();
        let losses = losses(header, |number| one.file.ring(number));
        let name = one.file.path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(SUFFIX)).unwrap_or_default();
        let (pid, born) = name.split_once('-').unwrap_or_default();
        let executable = one.drain.origin().executable.file_name().unwrap_or_default().to_string_lossy();
        Self {
            pid: pid.to_owned(),
            born: born.to_owned(),
            executable: executable.chars().take(64).collect(),
            lost: LossMetrics {
                not_recorded: losses.not_recorded,
                overwritten: losses.overwritten,
                evicted: one.drain.evicted(),
                write_failures: header.write_failures.load(Ordering::Relaxed),
            },
            fill: (1000 * fullest.min(1 << 24)).div_ceil(u64::from(header.slots).max(1)).min(1000),
        }
    }

    /// Whether it is named as a ring file is. (Any user may create files with other names.)
    fn is_named(&self) -> bool {
        let is_all = |text: &str, most: usize, is: fn(&char) -> bool| {
            (1..=most).contains(&text.len()) && text.chars().all(|letter| is(&letter))
        };
        is_all(&self.pid, 10, char::is_ascii_digit) && is_all(&self.born, 16, char::is_ascii_hexdigit)
    }
}

/// A worker's report: complete each time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// What it has counted; losses only of processes that are gone.
    pub totals: MetricTotals,
    pub processes: Vec<ProcessMetrics>,
}

/// The reports of all workers.
#[derive(Default)]
pub struct Metrics {
    /// The last report of each user's worker.
    pub workers: BTreeMap<u32, WorkerReport>,
    /// Workers that ended by themselves.
    pub failures: u64,
    /// Users who have rings and wait for a worker.
    pub held_back: u64,
    pub ring_files: u64,
    past: MetricTotals,
    /// Losses that were published: a counter must not go back while a worker has ended and the next one has not read the
    /// rings yet.
    published: LossMetrics,
}

impl Metrics {
    /// A worker has ended: its report stays. Losses of processes that it was draining are still in their rings for the next
    /// worker, except for those that only the worker knew.
    pub fn end(&mut self, user: u32) {
        let Some(report) = self.workers.remove(&user) else { return };
        self.past.add(&report.totals);
        for process in &report.processes {
            self.past.lost.add(LossMetrics { evicted: process.lost.evicted, ..LossMetrics::default() });
        }
    }

    /// The metrics in one of the formats that Prometheus reads.
    pub fn render(&mut self, format: MetricsFormat) -> String {
        let mut totals = self.past.clone();
        let mut processes = Vec::new();
        for report in self.workers.values() {
            totals.add(&report.totals);
            report.processes.iter().for_each(|process| totals.lost.add(process.lost));
            processes.extend(&report.processes);
        }
        self.published = self.published.zip(totals.lost, u64::max);
        let mut page = MetricsPage::new(format);
        page.family("aclshim_build", MetricType::Info, "", "The collector.");
        page.sample("_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        let help = "Processes that are drained now.";
        page.single("aclshim_processes", MetricType::Gauge, help, processes.len() as u64);
        let help = "Workers that ended by a failure and were started again.";
        page.single("aclshim_worker_failures", MetricType::Counter, help, self.failures);
        let help = "Users who have rings and wait for a worker because a limit is reached.";
        page.single("aclshim_users_held_back", MetricType::Gauge, help, self.held_back);
        let help = "Ring files in the folder when it was last looked through.";
        page.single("aclshim_ring_files", MetricType::Gauge, help, self.ring_files);
        write_calls(&mut page, &totals.calls);
        page.family("aclshim_findings", MetricType::Counter, "", "Calls that break a rule, by rule and severity.");
        for (rule, severities) in &totals.findings {
            let (rule, product) = split(rule);
            for (severity, found) in severities {
                let labels = [("rule", rule), ("severity", severity), ("product", product.unwrap_or_default())];
                page.sample("_total", &labels[..if product.is_some() { 3 } else { 2 }], *found);
            }
        }
        for Counter { name, of, help } in LOSSES {
            page.single(&format!("aclshim_{name}"), MetricType::Counter, help, of(&self.published));
        }
        let named: Vec<_> = processes.into_iter().filter(|process| process.is_named()).take(MOST_PROCESSES).collect();
        for Counter { name, of, help } in LOSSES {
            let help = format!("{help} Of one process.");
            page.family(&format!("aclshim_process_{name}"), MetricType::Counter, "", &help);
            for process in &named {
                page.sample("_total", &labels(process), of(&process.lost));
            }
        }
        page.family(
            "aclshim_process_ring_fill_ratio",
            MetricType::Gauge,
            "ratio",
            "How full the fullest ring of a process was in the last minute or two; at 1 calls are lost.",
        );
        for process in &named {
            page.sample("", &labels(process), process.fill as f64 / 1000.0);
        }
        page.end()
    }
}

fn labels(process: &ProcessMetrics) -> [(&'static str, &str); 3] {
    [("pid", &process.pid), ("executable", &process.executable), ("born", &process.born)]
}

/// One counter: its name, its help text and its value.
struct Counter<T> {
    name: &'static str,
    of: fn(&T) -> u64,
    help: &'static str,
}

const CALLS: [Counter<CallMetrics>; 3] = [
    Counter {
        name: "calls",
        of: |of| of.calls,
        help: "Calls that were recorded, those under way included; without nested ones.",
    },
    Counter {
        name: "nested_calls",
        of: |of| of.nested,
        help: "Calls that the vendor's library made inside another call.",
    },
    Counter { name: "call_errors", of: |of| of.errors, help: "Calls that returned something else than 0." },
];

const LOSSES: [Counter<LossMetrics>; 4] = [
    Counter {
        name: "calls_not_recorded",
        of: |lost| lost.not_recorded,
        help: "Calls that were forwarded and not recorded: there was no ring, or it was full.",
    },
    Counter {
        name: "slots_overwritten",
        of: |lost| lost.overwritten,
        help: "Slots of 64 bytes that were overwritten before they could be read (ACLSHIM_RECORD=flight).",
    },
    Counter {
        name: "calls_evicted",
        of: |lost| lost.evicted,
        help: "Recorded calls that went with older files, as ACLSHIM_BUDGET asks.",
    },
    Counter {
        name: "write_failures",
        of: |lost| lost.write_failures,
        help: "Writes that failed; they are tried again.",
    },
];

fn write_calls(page: &mut MetricsPage, calls: &BTreeMap<String, BTreeMap<String, CallMetrics>>) {
    let each = || calls.iter().flat_map(|(function, kinds)| kinds.iter().map(move |(kind, of)| (function, kind, of)));
    for Counter { name, of: value, help } in CALLS {
        page.family(&format!("aclshim_{name}"), MetricType::Counter, "", help);
        for (function, kind, of) in each() {
            page.sample("_total", &call_labels(function, kind), value(of));
        }
    }
    page.family("aclshim_copied_bytes", MetricType::Counter, "bytes", "Bytes of calls that returned 0.");
    for (function, kind, of) in each() {
        page.sample("_total", &call_labels(function, kind), of.bytes);
    }
    let help = "How long calls took, from entry to return.";
    page.family("aclshim_call_duration_seconds", MetricType::Histogram, "seconds", help);
    for (function, kind, of) in each() {
        let [function, kind, direction] = call_labels(function, kind);
        for (power, below) in POWERS.iter().zip(of.below) {
            let bound = ((1u64 << power) as f64 / 1e9).to_string();
            page.sample("_bucket", &[function, kind, direction, ("le", &bound)], below);
        }
        page.sample("_bucket", &[function, kind, direction, ("le", "+Inf")], of.timed);
        page.sample("_count", &[function, kind, direction], of.timed);
        page.sample("_sum", &[function, kind, direction], of.duration_ns as f64 / 1e9);
    }
}

fn call_labels<'a>(function: &'a str, kind: &'a str) -> [(&'static str, &'a str); 3] {
    let (kind, direction) = kind.split_once(',').unwrap_or_default();
    [("function", function), ("kind", kind), ("direction", direction)]
}

/// Whether that is a kind and a direction.
fn is_kind(text: &str) -> bool {
    let (kind, direction) = text.split_once(',').unwrap_or_default();
    let is_direction = Direction::ALL.iter().any(|one| one.name() == direction);
    is_direction && (abi::KINDS.contains(&kind) || ["NONE", "OTHER"].contains(&kind))
}
