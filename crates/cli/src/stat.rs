//! `aclshim stat`: what the processes of a directory have recorded.

use aclshim_collect::account::Histogram;
use aclshim_collect::survey::{Process, Survey};
use aclshim_facts::settings::RING_DIR;
use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `aclshim stat` is told.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  aclshim stat aclshim-out\n  aclshim stat --json /dev/shm/aclshim-1234-17f0c0de.ring"
)]
pub struct Arguments {
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    traces: Traces,
}

/// What is read.
#[derive(clap::Args)]
pub struct Traces {
    /// An ACLSHIM_DIR (running and ended processes that named it are found in the ring directory), a trace or a ring file
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// How the answer is printed.
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// The answer. Its keys are used by others: see "Names that stay" in the project's design.
#[derive(Default, Serialize)]
struct Stat {
    processes: usize,
    calls: u64,
    nested: u64,
    bytes: u64,
    errors: u64,
    not_recorded: u64,
    overwritten: u64,
    evicted: u64,
    write_failures: u64,
    in_flight: u64,
    functions: BTreeMap<String, FunctionStat>,
    findings: BTreeMap<String, u64>,
    slots: Slots,
}

/// Where the slots are that were read.
#[derive(Default, Serialize)]
struct Slots {
    trace: u64,
    ring: u64,
}

#[derive(Default, Serialize)]
struct FunctionStat {
    calls: u64,
    bytes: u64,
    errors: u64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    #[serde(skip)]
    durations: Histogram,
}

impl Format {
    /// As `--json` asks for.
    pub fn new(json: bool) -> Self {
        if json { Format::Json } else { Format::Table }
    }
}

/// Prints what was recorded. Nothing at all is an answer to a program, and a question to a person.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let format = Format::new(arguments.json);
    let survey = read(&arguments.traces.paths, &format)?;
    let mut stat = Stat::default();
    survey.processes().for_each(|process| stat.add(process));
    stat.finish();
    match format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&stat)?),
        Format::Table => print!("{}", stat.table()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads what was recorded under `paths`, and says what could not be read.
pub fn read(paths: &[PathBuf], format: &Format) -> Result<Survey> {
    let folders: Vec<PathBuf> =
        std::env::var_os(RING_DIR.variable).map(PathBuf::from).into_iter().chain(["/dev/shm".into()]).collect();
    let mut survey = Survey::default();
    for path in paths {
        let before = survey.processes().count();
        survey.read(path, &folders).map_err(|why| anyhow!("{}: {why}", path.display()))?;
        if survey.processes().count() == before {
            let hint = format!(
                "{}: no process has recorded a call here. Was the program started with LD_PRELOAD=libaclshim.so and \
                 ACLSHIM_DIR={0}, and did it copy anything?",
                path.display()
            );
            match format {
                Format::Json => eprintln!("aclshim: {hint}"),
                Format::Table => bail!(hint),
            }
        }
    }
    for (file, why) in &survey.troubles {
        eprintln!("aclshim: {}: {why}", file.display());
    }
    survey.settle();
    Ok(survey)
}

impl Stat {
    fn add(&mut self, process: &Process) {
        self.processes += 1;
        self.not_recorded += process.not_recorded;
        self.overwritten += process.overwritten();
        self.evicted += process.evicted;
        self.write_failures += process.write_failures;
        let [trace, ring] = process.slots;
        self.slots.trace += trace;
        self.slots.ring += ring;
        for (rule, total) in process.judge.totals() {
            *self.findings.entry(rule.clone()).or_default() += total.found;
        }
        for (name, sums) in process.functions() {
            self.nested += sums.nested;
            self.in_flight += sums.in_flight;
            if sums.calls == 0 {
                continue;
            }
            self.calls += sums.calls;
            self.errors += sums.errors;
            self.bytes = self.bytes.saturating_add(sums.bytes);
            let function = self.functions.entry(name.into()).or_default();
            function.calls += sums.calls;
            function.errors += sums.errors;
            function.bytes = function.bytes.saturating_add(sums.bytes);
            function.durations.merge(&sums.durations);
        }
    }

    fn finish(&mut self) {
        for function in self.functions.values_mut() {
            function.p50_ns = function.durations.percentile(50);
            function.p99_ns = function.durations.percentile(99);
        }
    }

    fn table(&self) -> String {
        let mut text = String::new();
        let mut row = |cells: [&str; 6]| {
            let [name, calls, errors, bytes, half, most] = cells;
            let _ = writeln!(text, "{name:<30}{calls:>11}{errors:>9}{bytes:>13}{half:>10}{most:>10}");
        };
        row(["function", "calls", "errors", "bytes", "p50", "p99"]);
        let time = |ns: Option<u64>| ns.map_or_else(|| "-".into(), duration);
        for (name, of) in &self.functions {
            let [calls, errors] = [of.calls, of.errors].map(|number| number.to_string());
            row([name, &calls, &errors, &human(of.bytes), &time(of.p50_ns), &time(of.p99_ns)]);
        }
        row(["total", &self.calls.to_string(), &self.errors.to_string(), &human(self.bytes), "", ""]);
        let processes = if self.processes == 1 { "process" } else { "processes" };
        let _ = write!(
            text,
            "\n{} {processes}; {} nested, {} in flight, {} not recorded",
            self.processes, self.nested, self.in_flight, self.not_recorded
        );
        for (count, what) in [
            (self.overwritten, "slots overwritten"),
            (self.evicted, "calls removed to stay within ACLSHIM_BUDGET"),
            (self.write_failures, "writes to ACLSHIM_DIR failed"),
        ] {
            if count > 0 {
                let _ = write!(text, ", {count} {what}");
            }
        }
        text.push('\n');
        text
    }
}

/// A time as people read it.
fn duration(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{} us", ns / 1000),
        10_000_000..10_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

/// Bytes as people read them.
pub fn human(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(power) = bytes.checked_ilog2().map(|log| log / 10).filter(|&power| power > 0) else {
        return format!("{bytes} B");
    };
    format!("{:.1} {}", bytes as f64 / f64::from(power * 10).exp2(), units[power as usize - 1])
}

#[cfg(test)]
mod tests {
    use super::{duration, human};

    #[test]
    fn times_read_as_people_write_them() {
        assert_eq!([250, 25_000, 2_500_000_000].map(duration), ["250 ns", "25 us", "2500 ms"]);
    }

    #[test]
    fn bytes_read_as_people_write_them() {
        let cases = [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1 << 30, "1.0 GiB")];
        for (bytes, text) in cases {
            assert_eq!(human(bytes), text);
        }
        assert_eq!(human(u64::MAX), "16.0 EiB");
    }
}
