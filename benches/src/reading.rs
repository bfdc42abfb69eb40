//! The speed of reading traces, compared with programs that do nothing else: a bare loop, pyarrow, babeltrace2.
//!
//! The compared programs take turns; minima count.

mod generate;

use crate::compiler;
use crate::host;
use crate::preload::Ready;
use crate::progress;
use crate::sample::Samples;
use crate::scratch::Scratch;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufReader, Read};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The measurements; `None` where one could not be taken.
#[derive(Default)]
pub struct Reading {
    /// Calls in the trace.
    pub calls: u64,
    /// Seconds of `aclshim stat` over all calls.
    pub stat: Samples,
    /// As `stat`, of the other build.
    pub stat_other: Samples,
    /// Seconds of a loop that reads the same file record by record.
    pub bare: Samples,
    /// The most memory of `stat`, over that for a tenth of the calls.
    pub growth: Option<f64>,
    /// Seconds of a parquet export of fewer calls.
    pub parquet: Samples,
    /// As `parquet`, of the other build.
    pub parquet_other: Samples,
    /// Seconds of pyarrow to write the columns of that export.
    pub pyarrow: Samples,
    /// Calls a second that babeltrace2 reads of an LTTng trace.
    pub babeltrace: Option<f64>,
}

/// Numbers of calls: for reading, and for what takes longer a call.
struct Scale {
    calls: u64,
    exported: u64,
    traced: u64,
    /// Number of attempts, for reading and for what takes longer. `stat` is fast only while no other program uses any of its
    /// processors: that takes more attempts.
    rounds: [usize; 2],
}

impl Scale {
    /// The scale of a run of `rounds` rounds.
    fn new(rounds: usize) -> Self {
        match rounds {
            0..=1 => Self { calls: 200_000, exported: 20_000, traced: 20_000, rounds: [1, 1] },
            2..10 => Self { calls: 5_000_000, exported: 500_000, traced: 200_000, rounds: [2, 2] },
            _ => Self { calls: 50_000_000, exported: 5_000_000, traced: 2_000_000, rounds: [15, 5] },
        }
    }
}

impl Reading {
    /// Speed of `stat` as a multiple of the bare loop's.
    pub fn stat_times_bare(&self) -> Option<f64> {
        Some(self.bare.min()? / self.stat.min()?)
    }

    /// Speed of the export as a multiple of pyarrow's.
    pub fn parquet_times_pyarrow(&self) -> Option<f64> {
        Some(self.pyarrow.min()? / self.parquet.min()?)
    }

    /// Calls a second that `stat` reads.
    pub fn calls_per_s(&self) -> Option<f64> {
        Some(self.calls as f64 / self.stat.min()?)
    }

    /// Calls a second that `stat` reads, as a multiple of babeltrace2's.
    pub fn stat_times_babeltrace(&self) -> Option<f64> {
        Some(self.calls_per_s()? / self.babeltrace?)
    }

    /// Measures all of it, and the command of another build beside it.
    pub fn measure(variants: &[Ready], scratch: &Scratch, against: Option<&Path>, rounds: usize) -> Result<Self> {
        let scale = Scale::new(rounds);
        let aclshim = scratch.built.join("aclshim");
        ensure!(aclshim.exists(), "there is no {}: `make build` makes it", aclshim.display());
        let mut reading = Self { calls: scale.calls, ..Self::default() };
        progress::show(format_args!("a trace of {} calls", scale.calls));
        let file = |name: &str, calls: u64| {
            let path = scratch.own.join(format!("{name}.acltrace"));
            generate::generate(&path, calls).map(|()| path)
        };
        let (long, short) = (file("long", scale.calls)?, file("short", scale.calls / 10)?);
        let other = against.map(|folder| folder.join("aclshim"));
        let stat = |aclshim: &Path, trace: &Path| {
            let mut command = Command::new(aclshim);
            command.args(["stat", "--json"]).arg(trace);
            run(command)
        };
        let mut most = 0;
        let [reads, exports] = scale.rounds;
        for round in 0..reads {
            progress::show(format_args!("reading, round {} of {reads}", round + 1));
            reading.bare.push(bare(&long, scale.calls)?);
            let cost = stat(&aclshim, &long)?;
            reading.stat.push(cost.seconds);
            most = cost.kib;
            if let Some(other) = &other {
                reading.stat_other.push(stat(other, &long)?.seconds);
            }
        }
        reading.growth = Some(most as f64 / stat(&aclshim, &short)?.kib as f64);
        fs::remove_file(long)?;
        reading.export([Some(&aclshim), other.as_ref()], &file("export", scale.exported)?, scratch, exports)?;
        reading.babeltrace = babeltrace(variants, scratch, scale.traced)?;
        progress::clear();
        Ok(reading)
    }

    fn export(&mut self, aclshim: [Option<&PathBuf>; 2], trace: &Path, scratch: &Scratch, rounds: usize) -> Result<()> {
        let python = scratch.built.parent().context("target")?.join("python/bin/python3");
        let script = compiler::source("../pyarrow_write.py");
        let has_pyarrow = python.exists()
            && Command::new(&python).args(["-c", "import pyarrow"]).stderr(Stdio::null()).status()?.success();
        if !has_pyarrow {
            eprintln!("left out: pyarrow is not installed in target/python");
            return Ok(());
        }
        for round in 0..rounds {
            progress::show(format_args!("parquet, round {} of {rounds}", round + 1));
            let out = scratch.own.join(format!("parquet-{round}"));
            for (aclshim, seconds) in aclshim.into_iter().zip([&mut self.parquet, &mut self.parquet_other]).rev() {
                let Some(aclshim) = aclshim else { continue };
                if out.exists() {
                    fs::remove_dir_all(&out)?;
                }
                let mut command = Command::new(aclshim);
                command.args(["export", "--format", "parquet", "-o"]).arg(&out).arg(trace);
                seconds.push(run(command)?.seconds);
            }
            let ran = Command::new(&python).arg(&script).arg(&out).output()?;
            let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
            let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
            let seconds = printed.trim().parse().with_context(|| format!("pyarrow: {printed}{errors}"))?;
            self.pyarrow.push(seconds);
            fs::remove_dir_all(out)?;
        }
        Ok(())
    }
}

/// Duration and peak memory of a command.
struct Cost {
    seconds: f64,
    kib: u64,
}

fn run(mut command: Command) -> Result<Cost> {
    let begin = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: our own child, which nothing else waits for; both values are ours.
    let ended = unsafe { libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()) };
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(ended == child.id() as i32 && status == 0, "{command:?} ended with {status:#x}");
    // SAFETY: zero is a valid value, and the call has filled it.
    let kib = unsafe { usage.assume_init() }.ru_maxrss as u64;
    Ok(Cost { seconds, kib })
}

/// The seconds of a loop that reads a trace record by record, and looks at one word of each.
fn bare(trace: &Path, calls: u64) -> Result<f64> {
    let begin = Instant::now();
    let mut file = BufReader::with_capacity(1 << 20, File::open(trace)?);
    let (mut record, mut records, mut sum) = ([0; 64], 0, 0u64);
    while file.read_exact(&mut record).is_ok() {
        records += 1;
        sum = sum.wrapping_add(u64::from_le_bytes(record[48..56].try_into()?));
    }
    black_box(sum);
    ensure!(records > calls, "only {records} records were read");
    Ok(begin.elapsed().as_secs_f64())
}

/// Calls a second that babeltrace2 reads and throws away, of a trace that LTTng made of as many calls.
fn babeltrace(variants: &[Ready], scratch: &Scratch, calls: u64) -> Result<Option<f64>> {
    let Some((variant, session)) = variants.iter().find_map(|ready| Some((ready, ready.session.as_ref()?))) else {
        return Ok(None);
    };
    if !compiler::runs("babeltrace2") {
        eprintln!("left out: there is no babeltrace2");
        return Ok(None);
    }
    progress::show(format_args!("babeltrace2"));
    let trace: PathBuf = session.record(|| host::run(variant, scratch, &["calls", &calls.to_string()]).map(drop))?;
    let mut command = Command::new("babeltrace2");
    command.args(["--output-format", "dummy"]).arg(&trace);
    let seconds = run(command)?.seconds;
    let counted = Command::new("babeltrace2").arg(&trace).args(["--component", "sink.utils.counter"]).output()?;
    let text = String::from_utf8_lossy(&counted.stdout).into_owned();
    // It prints the count now and then, and at the end.
    let number = |line: &str| line.trim().strip_suffix("Event messages")?.trim().replace(',', "").parse().ok();
    let events = text.lines().filter_map(number).next_back();
    let events: u64 = events.with_context(|| format!("babeltrace2 counts no events: {text}"))?;
    ensure!(events >= calls, "the LTTng trace holds {events} of {calls} calls");
    Ok(Some(events as f64 / seconds))
}
