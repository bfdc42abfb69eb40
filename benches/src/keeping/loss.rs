//! Losses beside busy loops: the calls that were made, recorded, and counted as not recorded.

use super::Subjects;
use super::child::{self, BusyLoops, Running, Stat};
use super::place::Place;
use crate::host::Printed;
use crate::progress;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::io::pipe;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// One load, under the shim and under LTTng.
pub struct Loss {
    /// Its key in `bench.json`.
    pub key: &'static str,
    /// With the shim; none where it cannot be run here.
    pub shim: Option<Tally>,
    /// With LTTng.
    pub lttng: Option<Tally>,
}

/// The calls of all runs of a load.
#[derive(Default)]
pub struct Tally {
    /// Number of runs.
    pub runs: u32,
    /// Calls that the hosts made.
    pub made: f64,
    /// Calls that are in traces and rings. Of LTTng: those that were made and not discarded.
    pub recorded: f64,
    /// Calls that are counted as not recorded, or as discarded.
    pub not_recorded: f64,
    /// The longest delay of a thread at a steady pace.
    pub late_us: Option<f64>,
    /// The most shared memory of the shim's rings, all processes together.
    pub ring_kib: Option<f64>,
    /// The most resident memory of one process.
    pub rss_kib: f64,
}

impl Tally {
    /// Calls that were made and are not recorded, counted or not.
    pub fn lost(&self) -> f64 {
        self.made - self.recorded
    }

    /// Calls that are neither recorded nor counted; negative if there are more records than calls.
    pub fn unknown(&self) -> f64 {
        self.made - self.recorded - self.not_recorded
    }

    fn add(&mut self, printed: &Printed) -> Result<()> {
        self.runs += 1;
        self.made += printed.one("made")?;
        self.rss_kib = self.rss_kib.max(printed.one("rss_kib")?);
        if let Ok(late) = printed.one("late_us") {
            self.late_us = Some(self.late_us.map_or(late, |most| most.max(late)));
        }
        Ok(())
    }

    fn add_stat(&mut self, stat: &Stat) -> Result<()> {
        self.recorded += stat.total("calls")?;
        self.not_recorded += stat.total("not_recorded")?;
        Ok(())
    }

    /// For `bench.json`.
    pub fn json(&self) -> Value {
        let [made, recorded, not_recorded, unknown] =
            [self.made, self.recorded, self.not_recorded, self.unknown()].map(|number| number as i64);
        json!({
            "runs": self.runs, "made": made, "recorded": recorded, "not_recorded": not_recorded, "unknown": unknown,
            "late_us": self.late_us, "ring_kib": self.ring_kib, "rss_kib": self.rss_kib,
        })
    }
}

/// How long and how often.
pub struct Scale {
    /// Duration of 8 threads with 100,000 calls a second each.
    pub eight_ms: u32,
    /// Duration of one thread with 1,000,000 calls a second.
    pub one_ms: u32,
    /// Runs of a burst.
    pub bursts: u32,
    /// Processes at once.
    pub processes: u32,
}

/// A folder for rings that is as large as the machine's memory allows, or a file system of a given number of MiB.
type Mib = Option<u32>;

/// Measures all loads beside busy loops.
pub fn measure(subjects: &Subjects, scale: &Scale, has_mounts: bool) -> Result<Vec<Loss>> {
    let _busy = BusyLoops::start(subjects.scratch)?;
    let [eight_ms, one_ms] = [scale.eight_ms, scale.one_ms].map(|ms| ms.to_string());
    let burst = ["bursts", "8", "16384", "0"];
    let loads: [(_, &[&str], _, Mib, _); 5] = [
        ("paced_8x100k", &["paced", "8", "100", &eight_ms], 1, None, true),
        ("paced_1x1m", &["paced", "1", "1000", &one_ms], 1, None, true),
        ("bursts_8x16384", &burst, scale.bursts, None, true),
        ("bursts_8x16384_in_16_mib", &burst, scale.bursts, Some(16), false),
        ("bursts_8x16384_in_2_mib", &burst, scale.bursts, Some(2), false),
    ];
    let mut all = Vec::new();
    for (key, arguments, runs, mib, with_lttng) in loads {
        progress::show(format_args!("losses: {key}"));
        let can_run = mib.is_none() || has_mounts;
        let shim = can_run.then(|| under_shim(subjects, arguments, runs, mib)).transpose();
        let lttng = if with_lttng { under_lttng(subjects, arguments, runs) } else { Ok(None) };
        all.push(Loss { key, shim: shim.context(key)?, lttng: lttng.context(key)? });
    }
    progress::show(format_args!("losses: {} processes", scale.processes));
    let shim = has_mounts.then(|| processes(subjects, scale.processes)).transpose().context("processes")?;
    all.push(Loss { key: "processes_64x4x2000_in_64_mib", shim, lttng: None });
    Ok(all)
}

fn place(shared: &Path, mib: Mib) -> Result<Place> {
    mib.map_or_else(|| Place::new(shared), |mib| Place::limited(shared, mib))
}

fn under_shim(subjects: &Subjects, arguments: &[&str], runs: u32, mib: Mib) -> Result<Tally> {
    let mut tally = Tally::default();
    for _ in 0..runs {
        let place = place(subjects.shared(), mib)?;
        let command = child::host(subjects.shim, subjects.scratch, &place, arguments);
        let ended = child::run(command, &place, |_| ())?;
        tally.add(&ended.printed)?;
        tally.ring_kib = Some(tally.ring_kib.map_or(ended.ring_kib, |most| most.max(ended.ring_kib)));
        tally.add_stat(&Stat::of(subjects.scratch, &place)?)?;
    }
    Ok(tally)
}

fn under_lttng(subjects: &Subjects, arguments: &[&str], runs: u32) -> Result<Option<Tally>> {
    let Some((variant, session)) = subjects.lttng else { return Ok(None) };
    let place = Place::new(subjects.shared())?;
    let mut tally = Tally::default();
    let ((), discarded) = session.by_default(&place.out, || {
        for _ in 0..runs {
            let command = child::host(variant, subjects.scratch, &place, arguments);
            tally.add(&child::run(command, &place, |_| ())?.printed)?;
        }
        Ok(())
    })?;
    tally.not_recorded = discarded;
    tally.recorded = tally.made - discarded;
    Ok(Some(tally))
}

/// Many processes that make their calls at once.
fn processes(subjects: &Subjects, count: u32) -> Result<Tally> {
    let place = Place::limited(subjects.shared(), 64)?;
    let (gate, opener) = pipe()?;
    let mut children = Vec::new();
    for _ in 0..count {
        let mut command = child::host(subjects.shim, subjects.scratch, &place, &["bursts", "4", "2000", "1"]);
        children.push(Running(command.stdin(gate.try_clone()?).spawn()?));
    }
    drop(opener);
    let mut tally = Tally::default();
    let mut ring_kib = place.ring_kib();
    for mut child in children {
        while child.0.try_wait()?.is_none() {
            ring_kib = ring_kib.max(place.ring_kib());
            sleep(Duration::from_millis(1));
        }
        tally.add(&child.printed()?)?;
    }
    tally.ring_kib = Some(ring_kib);
    tally.add_stat(&Stat::of(subjects.scratch, &place)?)?;
    Ok(tally)
}
