//! Wake-ups of a process that made one copy and sleeps, and of all that drains it.

use super::Subjects;
use super::child::{self, Running, Stat};
use super::place::Place;
use super::threads::{WAKE_UPS, Watch, Whose};
use crate::progress;
use crate::report::rounded;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// An idle process with its drain.
pub struct Idle {
    /// Its key in `bench.json`.
    pub key: &'static str,
    /// Wake-ups of all threads of the process in the window.
    pub host: u64,
    /// Wake-ups of all threads of other processes that drain it.
    pub drain: u64,
    /// Whether `aclshim stat` has the call when it is asked right after it.
    pub is_in_stat: Option<bool>,
    /// Seconds from the call until it is in the trace; none if it was not within the window.
    pub trace_s: Option<f64>,
}

impl Idle {
    /// Wake-ups of all threads.
    pub fn wake_ups(&self) -> f64 {
        (self.host + self.drain) as f64
    }

    /// For `bench.json`.
    pub fn json(&self) -> Value {
        json!({
            "wake_ups": self.host + self.drain, "host": self.host, "drain": self.drain,
            "is_in_stat": self.is_in_stat, "trace_s": self.trace_s.map(rounded),
        })
    }
}

/// Time between the copy and the begin of the window.
const SETTLE: Duration = Duration::from_secs(1);
/// How much longer than the window the host would sleep; it is ended after the window.
const SLACK_MS: u64 = 30_000;

/// A host that sleeps.
struct Sleeper {
    key: &'static str,
    child: Running,
    /// What drains it beside the child.
    collector: Option<Running>,
    place: Place,
    process: i32,
    called: Instant,
    host: Watch,
    drain: Option<Watch>,
    before: [u64; 2],
    is_in_stat: Option<bool>,
    trace_s: Option<f64>,
    trace_bytes: u64,
}

/// Measures a window of `ms` milliseconds: first all ways to drain the shim at once, then LTTng.
pub fn measure(subjects: &Subjects, ms: u64) -> Result<Vec<Idle>> {
    progress::show(format_args!("idle processes"));
    let shim = ["inside", "run", "collect"].map(|key| Sleeper::of_shim(subjects, key, ms));
    let mut all = watched(subjects, shim.into_iter().collect::<Result<_>>()?, ms)?;
    if let Some((_, session)) = subjects.lttng {
        let trace = Place::new(subjects.shared())?;
        let (lttng, _) = session.by_default(&trace.out, || {
            let sleeper = Sleeper::of_lttng(subjects, ms)?;
            watched(subjects, vec![sleeper], ms)
        })?;
        all.extend(lttng);
    }
    Ok(all)
}

impl Sleeper {
    fn of_shim(subjects: &Subjects, key: &'static str, ms: u64) -> Result<Self> {
        let place = Place::new(subjects.shared())?;
        let span = (ms + SLACK_MS).to_string();
        let arguments = ["idle", &span];
        let mut collector = None;
        let command = match key {
            "run" => child::host_under_run(subjects.shim, subjects.scratch, &place, &arguments),
            "collect" => {
                let mut command = Command::new(subjects.scratch.built.join("aclshim"));
                command.arg("collect").arg(&place.rings);
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                collector = Some(Running(command.spawn()?));
                let mut command = child::host(subjects.shim, subjects.scratch, &place, &arguments);
                command.env("ACLSHIM_DRAIN", "outside");
                command
            }
            _ => child::host(subjects.shim, subjects.scratch, &place, &arguments),
        };
        let mut sleeper = Self::start(key, place, command).context(key)?;
        let outside = if key == "run" { Some(sleeper.child.0.id()) } else { collector.as_ref().map(|it| it.0.id()) };
        sleeper.drain = outside.map(|root| Watch::new(Whose::Tree(root), WAKE_UPS));
        sleeper.collector = collector;
        sleeper.is_in_stat = Some(Stat::of(subjects.scratch, &sleeper.place)?.total("calls")? == 1.0);
        Ok(sleeper)
    }

    fn of_lttng(subjects: &Subjects, ms: u64) -> Result<Self> {
        let (variant, session) = subjects.lttng.context("LTTng takes part")?;
        let place = Place::new(subjects.shared())?;
        let command = child::host(variant, subjects.scratch, &place, &["idle", &(ms + SLACK_MS).to_string()]);
        let mut sleeper = Self::start("lttng", place, command)?;
        sleeper.drain = Some(Watch::new(Whose::Tree(session.daemon()), WAKE_UPS));
        Ok(sleeper)
    }

    /// Starts a host and waits until it has made its call.
    fn start(key: &'static str, place: Place, mut command: Command) -> Result<Self> {
        let mut child = Running(command.spawn()?);
        let mut line = String::new();
        let stdout = child.0.stdout.as_mut().context("its output is a pipe")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let called = Instant::now();
        let process = line.trim().strip_prefix("pid ").and_then(|number| number.parse::<i32>().ok());
        let process = process.with_context(|| format!("the host printed {line:?}"))?;
        Ok(Self {
            key,
            child,
            collector: None,
            place,
            process,
            called,
            host: Watch::new(Whose::Process(process.cast_unsigned()), WAKE_UPS),
            drain: None,
            before: [0; 2],
            is_in_stat: None,
            trace_s: None,
            trace_bytes: 0,
        })
    }

    fn totals(&mut self) -> [u64; 2] {
        [self.host.total(), self.drain.as_mut().map_or(0, Watch::total)]
    }

    /// Looks whether the call is in the trace. `aclshim stat` is only asked when the trace has grown.
    fn look_at_trace(&mut self, subjects: &Subjects) -> Result<()> {
        let bytes = self.place.trace_bytes();
        if self.is_in_stat.is_some() && self.trace_s.is_none() && bytes != self.trace_bytes {
            self.trace_bytes = bytes;
            let seconds = self.called.elapsed().as_secs_f64();
            // A trace whose first block is being written may not be readable yet.
            let calls = Stat::of_traces(subjects.scratch, &self.place).and_then(|stat| stat.total("calls"));
            self.trace_s = calls.is_ok_and(|calls| calls == 1.0).then_some(seconds);
        }
        Ok(())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        if matches!(self.child.0.try_wait(), Ok(None)) {
            // SAFETY: a system call; the host is our child, or that of `aclshim run`, which ends with it.
            unsafe { libc::kill(self.process, libc::SIGTERM) };
            // What it prints is not read.
            let _ = self.child.0.wait();
        }
    }
}

/// Watches all of them for the same window; then waits for their ends.
fn watched(subjects: &Subjects, mut all: Vec<Sleeper>, ms: u64) -> Result<Vec<Idle>> {
    let begin = Instant::now() + SETTLE;
    let wait_until = |then: Instant, all: &mut Vec<Sleeper>| -> Result<()> {
        while Instant::now() < then {
            all.iter_mut().try_for_each(|sleeper| sleeper.look_at_trace(subjects))?;
            sleep(Duration::from_millis(10));
        }
        Ok(())
    };
    wait_until(begin, &mut all)?;
    all.iter_mut().for_each(|sleeper| sleeper.before = sleeper.totals());
    wait_until(Instant::now() + Duration::from_millis(ms), &mut all)?;
    let mut idle = Vec::new();
    for sleeper in &mut all {
        let after = sleeper.totals();
        let is_running = sleeper.child.0.try_wait()?.is_none() && sleeper.host.threads() > 0;
        ensure!(is_running, "{}: the host has ended too early", sleeper.key);
        let [host, drain] = [0, 1].map(|at| after[at] - sleeper.before[at]);
        let Sleeper { key, is_in_stat, trace_s, .. } = *sleeper;
        idle.push(Idle { key, host, drain, is_in_stat, trace_s });
    }
    Ok(idle)
}
