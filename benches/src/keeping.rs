//! What becomes of the records, and what that costs: losses beside busy loops, the drain of a process that is idle and
//! of one that is busy, and very many threads. LTTng-UST runs the same hosts, where it is installed.

mod busy;
mod child;
mod idle;
mod live;
mod loss;
mod place;
mod threads;

use crate::preload::Ready;
use crate::progress;
use crate::scratch::Scratch;
use crate::session::Session;
use anyhow::{Context, Result};
use busy::{Busy, Full};
use idle::Idle;
use live::Live;
use loss::{Loss, Tally};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The measurements.
pub struct Keeping {
    losses: Vec<Loss>,
    idle: Vec<Idle>,
    busy: Vec<Busy>,
    /// What happens at full speed.
    pub full: Full,
    /// Very many threads.
    pub live: Live,
}

/// Those that are measured.
struct Subjects<'a> {
    scratch: &'a Scratch,
    direct: &'a Ready,
    shim: &'a Ready,
    lttng: Option<(&'a Ready, &'a Session)>,
}

impl Subjects<'_> {
    /// A folder in memory.
    fn shared(&self) -> &Path {
        &self.scratch.ring
    }
}

struct Scale {
    loss: loss::Scale,
    idle_ms: u64,
    busy_ms: u32,
    full_ms: u32,
    threads: u32,
    rounds: usize,
}

impl Scale {
    /// The scale of a run of `rounds` rounds.
    fn new(rounds: usize) -> Self {
        match rounds {
            0..=1 => Self {
                loss: loss::Scale { eight_ms: 200, one_ms: 200, bursts: 1, processes: 64 },
                idle_ms: 500,
                busy_ms: 300,
                full_ms: 200,
                threads: 500,
                rounds: 1,
            },
            2..10 => Self {
                loss: loss::Scale { eight_ms: 5000, one_ms: 3000, bursts: 5, processes: 64 },
                idle_ms: 10_000,
                busy_ms: 3000,
                full_ms: 1000,
                threads: 10_000,
                rounds: 2,
            },
            _ => Self {
                loss: loss::Scale { eight_ms: 30_000, one_ms: 10_000, bursts: 20, processes: 64 },
                idle_ms: 10_000,
                busy_ms: 10_000,
                full_ms: 2000,
                threads: 10_000,
                rounds: 5,
            },
        }
    }
}

impl Keeping {
    /// Measures all of it.
    pub fn measure(variants: &[Ready], scratch: &Scratch, rounds: usize) -> Result<Self> {
        let variant = |name: &str| variants.iter().find(|variant| variant.name == name);
        let subjects = Subjects {
            scratch,
            direct: variant("direct").context("there is no variant direct")?,
            shim: variant("record_drained").context("there is no libaclshim.so: `make build` makes it")?,
            lttng: variant("lttng").and_then(|variant| Some((variant, variant.session.as_ref()?))),
        };
        let mounts = place::own_mounts();
        if let Err(error) = &mounts {
            eprintln!("left out: losses in file systems of limited size: no mount namespace: {error}");
        }
        let scale = Scale::new(rounds);
        let keeping = Self {
            idle: idle::measure(&subjects, scale.idle_ms)?,
            busy: busy::measure(&subjects, scale.busy_ms)?,
            full: busy::measure_full(&subjects, scale.full_ms)?,
            live: live::measure(&subjects, scale.threads, scale.rounds)?,
            losses: loss::measure(&subjects, &scale.loss, mounts.is_ok())?,
        };
        progress::clear();
        Ok(keeping)
    }

    /// The calls of a load under the shim.
    pub fn loss(&self, key: &str) -> Option<&Tally> {
        self.losses.iter().find(|loss| loss.key == key)?.shim.as_ref()
    }

    /// An idle process.
    pub fn idle(&self, key: &str) -> Option<&Idle> {
        self.idle.iter().find(|idle| idle.key == key)
    }

    /// The drain at a number of calls a second.
    pub fn busy(&self, rate: u32) -> Option<&Busy> {
        self.busy.iter().find(|busy| busy.rate == rate)
    }

    /// For `bench.json`.
    pub fn json(&self) -> Value {
        let losses = self.losses.iter().map(|loss| {
            let [shim, lttng] = [&loss.shim, &loss.lttng].map(|tally| tally.as_ref().map(Tally::json));
            (loss.key.to_owned(), json!({ "aclshim": shim, "lttng": lttng }))
        });
        let idle = self.idle.iter().map(|idle| (idle.key.to_owned(), idle.json()));
        let busy = self.busy.iter().map(|busy| (busy.rate.to_string(), busy.json()));
        json!({
            "loss": losses.collect::<Map<_, _>>(),
            "idle": idle.collect::<Map<_, _>>(),
            "busy_percent": busy.collect::<Map<_, _>>(),
            "full_speed": self.full.json(),
            "live_threads": self.live.json(),
        })
    }

    /// The tables.
    pub fn table(&self) -> String {
        let number = |value: Option<f64>, digits: usize| value.map_or("-".into(), |value| format!("{value:.digits$}"));
        let heading =
            ["made", "not rec.", "unknown", "late ms", "ring KiB", "RSS KiB", "LTTng made", "disc.", "late ms"];
        let row = |name: &str, cells: &[String]| {
            let cells = cells.iter().map(|cell| format!("{cell:>12}"));
            format!("{name:<32}{}", cells.collect::<String>())
        };
        let mut lines = vec![row("losses beside busy loops", &heading.map(String::from))];
        for Loss { key, shim, lttng } in &self.losses {
            let of = |tally: &Option<Tally>, part: fn(&Tally) -> Option<f64>| tally.as_ref().and_then(part);
            let late: fn(&Tally) -> Option<f64> = |tally| Some(tally.late_us? / 1000.0);
            let cells = [
                number(of(shim, |tally| Some(tally.made)), 0),
                number(of(shim, |tally| Some(tally.not_recorded)), 0),
                number(of(shim, |tally| Some(tally.unknown())), 0),
                number(of(shim, late), 1),
                number(of(shim, |tally| tally.ring_kib), 0),
                number(of(shim, |tally| Some(tally.rss_kib)), 0),
                number(of(lttng, |tally| Some(tally.made)), 0),
                number(of(lttng, |tally| Some(tally.not_recorded)), 0),
                number(of(lttng, late), 1),
            ];
            lines.push(row(key, &cells));
        }
        lines.push(String::new());
        lines.push(row("an idle process", &["host", "drain", "in stat", "trace s"].map(String::from)));
        for idle in &self.idle {
            let is_in_stat = idle.is_in_stat.map_or("-", |is| if is { "at once" } else { "no" });
            let cells = [idle.host.to_string(), idle.drain.to_string(), is_in_stat.into(), number(idle.trace_s, 2)];
            lines.push(row(idle.key, &cells));
        }
        lines.push(String::new());
        lines.push(row("% of a processor, calls a second", &["inside", "run", "LTTng"].map(String::from)));
        for busy in &self.busy {
            let cells = [busy.inside, busy.outside, busy.lttng].map(|share| number(share, 3));
            lines.push(row(&busy.rate.to_string(), &cells));
        }
        let Full { drain_ns, lossless_calls_per_s, lttng, .. } = &self.full;
        lines.push(format!(
            "\nFull speed: {} ns of the drain a recorded call, LTTng's daemons {}; lossless {:.2} M calls a second.",
            number(*drain_ns, 1),
            number(lttng.map(|(ns, _)| ns), 1),
            lossless_calls_per_s / 1e6
        ));
        lines.join("\n") + "\n"
    }
}
