//! Processor time of what drains, at several paces and at full speed.

use super::Subjects;
use super::child::{self, Stat};
use super::place::Place;
use super::threads::{CPU_NS, Watch, Whose};
use crate::preload::Ready;
use crate::progress;
use crate::report::rounded;
use crate::scratch::Scratch;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Calls a second of one thread, as calls a millisecond.
pub const CALLS_A_MS: [u32; 3] = [1, 20, 100];

/// Share of a processor, in percent, at one pace.
pub struct Busy {
    /// Calls a second.
    pub rate: u32,
    /// Of the thread in the program.
    pub inside: Option<f64>,
    /// Of `aclshim run`.
    pub outside: Option<f64>,
    /// Of LTTng's daemons.
    pub lttng: Option<f64>,
}

/// What happens at full speed.
pub struct Full {
    /// Processor time of the drain a recorded call, in nanoseconds.
    pub drain_ns: Option<f64>,
    /// Calls that are in the trace of that run.
    pub recorded: f64,
    /// Calls counted as not recorded in that run.
    pub not_recorded: f64,
    /// As `drain_ns`, of LTTng's daemons; with the share of the calls that was recorded.
    pub lttng: Option<(f64, f64)>,
    /// Calls a second that are in the trace, with `ACLSHIM_RECORD=lossless`.
    pub lossless_calls_per_s: f64,
    /// Calls that were lost in that run.
    pub lossless_lost: f64,
}

impl Busy {
    /// For `bench.json`.
    pub fn json(&self) -> Value {
        let [inside, outside, lttng] = [self.inside, self.outside, self.lttng].map(|share| share.map(rounded));
        json!({ "inside": inside, "run": outside, "lttng": lttng })
    }
}

impl Full {
    /// For `bench.json`.
    pub fn json(&self) -> Value {
        json!({
            "drain_ns_a_call": self.drain_ns.map(rounded), "recorded": self.recorded, "not_recorded": self.not_recorded,
            "lttng_ns_a_call": self.lttng.map(|(ns, _)| rounded(ns)), "lttng_recorded_share": self.lttng.map(|(_, share)| rounded(share)),
            "lossless_calls_per_s": rounded(self.lossless_calls_per_s), "lossless_lost": self.lossless_lost,
        })
    }
}

/// Time before the window begins: the start of a drain is not its work.
const SETTLE: Duration = Duration::from_millis(500);
/// How much longer than the window the host runs.
const SLACK_MS: u32 = 2000;
/// Name of the shim's thread.
const DRAIN: &str = "aclshim";

type Prepare = fn(&Ready, &Scratch, &Place, &[&str]) -> Command;

/// Measures all paces, each for `ms` milliseconds.
pub fn measure(subjects: &Subjects, ms: u32) -> Result<Vec<Busy>> {
    let mut all = Vec::new();
    for calls_a_ms in CALLS_A_MS {
        let rate = calls_a_ms * 1000;
        progress::show(format_args!("{rate} calls a second"));
        let [pace, span] = [calls_a_ms, ms + SLACK_MS].map(|number| number.to_string());
        let arguments = ["paced", "1", &pace, &span];
        let share = |prepare: Prepare, whose: fn(u32) -> Whose| {
            let place = Place::new(subjects.shared())?;
            let command = prepare(subjects.shim, subjects.scratch, &place, &arguments);
            share(command, &place, ms, whose)
        };
        let inside = share(child::host, |process| Whose::Named(process, DRAIN))?;
        let outside = share(child::host_under_run, Whose::Tree)?;
        let mut lttng = None;
        if let Some((variant, session)) = subjects.lttng {
            let place = Place::new(subjects.shared())?;
            let daemon = session.daemon();
            let command = child::host(variant, subjects.scratch, &place, &arguments);
            (lttng, _) =
                session.by_default(&place.out, || self::share(command, &place, ms, |_| Whose::Tree(daemon)))?;
        }
        all.push(Busy { rate, inside, outside, lttng });
    }
    Ok(all)
}

/// Share of a processor that threads have in a window of `ms` milliseconds, in percent.
fn share(command: Command, place: &Place, ms: u32, whose: impl Fn(u32) -> Whose) -> Result<Option<f64>> {
    let settled = Instant::now() + SETTLE;
    let window = Duration::from_millis(ms.into());
    let mut watch = None;
    let (mut first, mut last): (Option<(Instant, u64)>, _) = (None, None);
    child::run(command, place, |child: &Child| {
        let watch = watch.get_or_insert_with(|| Watch::new(whose(child.id()), CPU_NS));
        let now = Instant::now();
        // The window begins when it is first looked at, however late that is on a busy machine.
        match first {
            None if now >= settled => first = Some((now, watch.total())),
            Some((begin, _)) if last.is_none() && now >= begin + window => last = Some((now, watch.total())),
            _ => {}
        }
    })?;
    let (Some((begin, before)), Some((end, after))) = (first, last) else { return Ok(None) };
    if watch.is_none_or(|watch| watch.threads() == 0) {
        return Ok(None);
    }
    Ok(Some((after - before) as f64 / (end - begin).as_nanos() as f64 * 100.0))
}

/// Measures full speed for `ms` milliseconds.
pub fn measure_full(subjects: &Subjects, ms: u32) -> Result<Full> {
    progress::show(format_args!("full speed"));
    let span = ms.to_string();
    let arguments = ["full", &span];

    let place = Place::new(subjects.shared())?;
    let mut watch = None;
    let command = child::host(subjects.shim, subjects.scratch, &place, &arguments);
    child::run(command, &place, |child| {
        watch.get_or_insert_with(|| Watch::new(Whose::Named(child.id(), DRAIN), CPU_NS)).total();
    })?;
    let traced = Stat::of_traces(subjects.scratch, &place)?;
    let (recorded, not_recorded) = (traced.total("calls")?, traced.total("not_recorded")?);
    let spent = watch.map(|mut watch| watch.total()).filter(|ns| *ns > 0);
    let drain_ns = spent.map(|ns| ns as f64 / recorded);

    let place = Place::new(subjects.shared())?;
    let mut command = child::host(subjects.shim, subjects.scratch, &place, &arguments);
    command.env("ACLSHIM_RECORD", "lossless");
    let ended = child::run(command, &place, |_| ())?;
    let calls = Stat::of_traces(subjects.scratch, &place)?.total("calls")?;
    let lossless_calls_per_s = calls / ended.seconds;
    let kept = Stat::of(subjects.scratch, &place)?.total("calls")?;
    let lossless_lost = ended.printed.one("made")? - kept;

    let lttng = subjects.lttng.map(|_| full_under_lttng(subjects, &arguments)).transpose().context("lttng")?;
    Ok(Full { drain_ns, recorded, not_recorded, lttng, lossless_calls_per_s, lossless_lost })
}

fn full_under_lttng(subjects: &Subjects, arguments: &[&str]) -> Result<(f64, f64)> {
    let (variant, session) = subjects.lttng.context("LTTng takes part")?;
    let place = Place::new(subjects.shared())?;
    let mut watch = Watch::new(Whose::Tree(session.daemon()), CPU_NS);
    let ((made, spent), discarded) = session.by_default(&place.out, || {
        let before = watch.total();
        let command = child::host(variant, subjects.scratch, &place, arguments);
        let made = child::run(command, &place, |_| ())?.printed.one("made")?;
        Ok((made, watch.total() - before))
    })?;
    let recorded = made - discarded;
    Ok((spent as f64 / recorded, recorded / made))
}
