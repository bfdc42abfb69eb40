//! The measuring: every variant once, then every variant again, so that a noisy moment meets them all.

use crate::sample::Samples;
use crate::scratch::Scratch;
use crate::variant::Ready;
use crate::{host, progress};
use anyhow::{Context, Result};
use std::process::Stdio;
use std::time::Instant;

/// What was measured of one variant.
#[derive(Default)]
pub struct Measured {
    /// Nanoseconds a call, warm, each of a burst.
    pub ns: Samples,
    /// Nanoseconds a call, cold, each the middle of a group of calls.
    pub cold_ns: Samples,
    /// Nanoseconds of a process's first call.
    pub first_call_ns: Samples,
    /// What is resident after the calls.
    pub rss_kib: Samples,
    /// Calls a second with one thread and with two.
    pub calls_per_s: [Samples; 2],
    /// Microseconds from start to end of `/bin/true`.
    pub true_us: Samples,
    /// Instructions a call, where they can be counted.
    pub instructions: Option<f64>,
}

const COLD_GROUPS: &str = "5";
const THREADS_MS: &str = "30";
/// Starts of `/bin/true` in each round: they are short.
const STARTS: usize = 10;

/// So many rounds over all variants, in the order of the variants.
pub fn measure(variants: &[Ready], scratch: &Scratch, rounds: usize) -> Result<Vec<Measured>> {
    let mut all: Vec<_> = variants.iter().map(|_| Measured::default()).collect();
    for round in 0..rounds {
        progress::show(format_args!("round {} of {rounds}", round + 1));
        // All variants of a round on the same processor, each round on the next one.
        let cpu = round.to_string();
        for (variant, measured) in variants.iter().zip(&mut all) {
            measured.warm(variant, scratch, &cpu)?;
        }
        for (variant, measured) in variants.iter().zip(&mut all) {
            let printed = host::run(variant, scratch, &["cold", &cpu, COLD_GROUPS])?;
            measured.cold_ns.extend(printed.get("cold_ns").context("no cold_ns")?);
        }
        for (variant, measured) in variants.iter().zip(&mut all).filter(|(variant, _)| variant.row.threads) {
            for (rates, threads) in measured.calls_per_s.iter_mut().zip(["1", "2"]) {
                let printed = host::run(variant, scratch, &["threads", threads, THREADS_MS])?;
                rates.extend(printed.get("calls_per_s").context("no calls_per_s")?);
            }
        }
        for _ in 0..STARTS {
            for (variant, measured) in variants.iter().zip(&mut all) {
                measured.start(variant, scratch)?;
            }
        }
    }
    progress::clear();
    Ok(all)
}

impl Measured {
    fn warm(&mut self, variant: &Ready, scratch: &Scratch, cpu: &str) -> Result<()> {
        let load = &variant.row.load;
        let [warm_ms, burst_us, bursts] = [load.warm_ms, load.burst_us, load.bursts].map(|number| number.to_string());
        let printed = host::run(variant, scratch, &["warm", cpu, &warm_ms, &burst_us, &bursts])?;
        for (samples, key) in
            [(&mut self.ns, "ns"), (&mut self.first_call_ns, "first_call_ns"), (&mut self.rss_kib, "rss_kib")]
        {
            samples.extend(printed.get(key).with_context(|| format!("no {key}"))?);
        }
        Ok(())
    }

    fn start(&mut self, variant: &Ready, scratch: &Scratch) -> Result<()> {
        let mut command = host::command("/bin/true", variant, scratch);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let begin = Instant::now();
        command.status().context("/bin/true cannot be run")?;
        self.true_us.push(begin.elapsed().as_nanos() as f64 / 1000.0);
        Ok(())
    }
}
