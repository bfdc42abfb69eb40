//! The measurements of one variant, and how they are taken.

use crate::balance::Balance;
use crate::host;
use crate::preload::Ready;
use crate::sample::Samples;
use crate::scratch::Scratch;
use crate::variant::{Also, Load, SUSTAINED};
use anyhow::{Context, Result};
use std::process::Stdio;
use std::time::Instant;

/// All measurements of a variant.
#[derive(Default)]
pub struct Measured {
    /// Nanoseconds a call, warm, each of a burst.
    pub ns: Samples,
    /// Nanoseconds a call under a sustained load, each of a burst.
    pub sustained_ns: Samples,
    /// Nanoseconds a call, cold, each the middle of a group of calls.
    pub cold_ns: Samples,
    /// Nanoseconds a batch, each of a burst.
    pub batch_ns: Samples,
    /// Nanoseconds a call, warm, where a plugin brings the vendor's library and nothing is looked up.
    pub brought_ns: Samples,
    /// Nanoseconds a call, warm, where the vendor's library lacks `aclrtMemcpy`.
    pub partial_ns: Samples,
    /// Nanoseconds of a process's first call.
    pub first_call_ns: Samples,
    /// Resident memory after the calls.
    pub rss_kib: Samples,
    /// Resident memory that each further calling thread adds.
    pub rss_more_kib: Samples,
    /// Milliseconds for many threads that live at once.
    pub many_ms: Samples,
    /// The files in memory after many short threads.
    pub ring_kib: Samples,
    /// Calls a second with one thread and with two.
    pub calls_per_s: [Samples; 2],
    /// How many times as fast two threads are as one, one right after the other.
    pub thread_gain: Samples,
    /// Microseconds from start to end of `/bin/true`.
    pub true_us: Samples,
    /// Threads of a process that makes no call.
    pub idle_threads: Samples,
    /// Files that it leaves.
    pub idle_files: Samples,
    /// Fraction of the calls that is recorded under a sustained load.
    pub share: Samples,
    /// Calls of such a load that were neither recorded nor counted.
    pub unknown: Samples,
    /// Instructions a call, where they can be counted.
    pub instructions: Option<f64>,
}

const COLD_GROUPS: &str = "5";
const THREADS_MS: &str = "30";
const MORE_THREADS: &str = "64";
const MANY_THREADS: &str = "4000";
const BRIEF_THREADS: &str = "10000";

impl Measured {
    /// Calls as the variant's row says.
    pub fn warm(&mut self, variant: &Ready, scratch: &Scratch, round: usize) -> Result<()> {
        let printed = host::run(variant, scratch, &load("warm", round, &variant.row.load))?;
        self.ns.extend(printed.all("ns")?);
        self.first_call_ns.extend(printed.all("first_call_ns")?);
        self.rss_kib.extend(printed.all("rss_kib")?);
        Ok(())
    }

    /// Calls for a longer time.
    pub fn sustained(&mut self, variant: &Ready, scratch: &Scratch, round: usize) -> Result<()> {
        if variant.row.load == SUSTAINED {
            self.sustained_ns = self.ns.clone();
            return Ok(());
        }
        let printed = host::run(variant, scratch, &load("warm", round, &SUSTAINED))?;
        self.sustained_ns.extend(printed.all("ns")?);
        Ok(())
    }

    /// Calls whose memory has left the caches.
    pub fn cold(&mut self, variant: &Ready, scratch: &Scratch, round: usize) -> Result<()> {
        let printed = host::run(variant, scratch, &["cold", &round.to_string(), COLD_GROUPS])?;
        self.cold_ns.extend(printed.all("cold_ns")?);
        Ok(())
    }

    /// Batches.
    pub fn batch(&mut self, variant: &Ready, scratch: &Scratch, round: usize) -> Result<()> {
        if variant.row.has(Also::Batch) {
            let printed = host::run(variant, scratch, &load("batch", round, &variant.row.load))?;
            self.batch_ns.extend(printed.all("batch_ns")?);
        }
        Ok(())
    }

    /// Calls into a library that a plugin brings, and into one that lacks a function.
    pub fn found(&mut self, variant: &Ready, scratch: &Scratch, round: usize) -> Result<()> {
        if variant.row.has(Also::Found) {
            let run = |program| host::run_as(program, variant, scratch, &load("warm", round, &variant.row.load));
            self.brought_ns.extend(run(&scratch.brought)?.all("ns")?);
            self.partial_ns.extend(run(&scratch.partial)?.all("ns")?);
        }
        Ok(())
    }

    /// One thread, then two.
    pub fn threads(&mut self, variant: &Ready, scratch: &Scratch) -> Result<()> {
        if variant.row.has(Also::Threads) {
            let rate = |threads| host::run(variant, scratch, &["threads", threads, THREADS_MS])?.one("calls_per_s");
            let rates = [rate("1")?, rate("2")?];
            self.thread_gain.push(rates[1] / rates[0]);
            self.calls_per_s.iter_mut().zip(rates).for_each(|(samples, rate)| samples.push(rate));
        }
        Ok(())
    }

    /// A process that makes no call, from start to end.
    pub fn start(&mut self, variant: &Ready, scratch: &Scratch) -> Result<()> {
        let mut command = host::command("/bin/true", variant, scratch);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let begin = Instant::now();
        command.status().context("/bin/true cannot be run")?;
        self.true_us.push(begin.elapsed().as_nanos() as f64 / 1000.0);
        let found = scratch.sweep()?;
        self.idle_files.push((found.ring.len() + found.log.len()) as f64);
        Ok(())
    }

    /// The threads of a process that makes no call.
    pub fn idle(&mut self, variant: &Ready, scratch: &Scratch) -> Result<()> {
        let output = host::command("/bin/cat", variant, scratch).arg("/proc/self/status").output()?;
        let status = String::from_utf8_lossy(&output.stdout).into_owned();
        let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")?.trim().parse().ok());
        self.idle_threads.push(threads.context("/proc/self/status names no threads")?);
        scratch.sweep()?;
        Ok(())
    }

    /// Many threads at a time.
    pub fn alive(&mut self, variant: &Ready, scratch: &Scratch) -> Result<()> {
        let printed = host::run(variant, scratch, &["alive", MORE_THREADS])?;
        self.rss_more_kib.extend(printed.all("rss_more_kib")?);
        Ok(())
    }

    /// Very many threads that live at once, from the start of the first to the end of the last.
    pub fn many(&mut self, variant: &Ready, scratch: &Scratch) -> Result<()> {
        if variant.row.has(Also::ManyThreads) {
            let printed = host::run(variant, scratch, &["many", MANY_THREADS])?;
            self.many_ms.extend(printed.all("many_ms")?);
        }
        Ok(())
    }

    /// Many threads, one after the other.
    pub fn brief(&mut self, variant: &Ready, scratch: &Scratch) -> Result<()> {
        if variant.row.has(Also::BriefThreads) {
            let printed = host::run(variant, scratch, &["brief", BRIEF_THREADS])?;
            self.ring_kib.extend(printed.all("ring_kib")?);
        }
        Ok(())
    }

    /// What is kept of a sustained load.
    pub fn share(&mut self, variant: &Ready, scratch: &Scratch) -> Result<()> {
        if variant.row.has(Also::Share) {
            let balance = Balance::of(variant, scratch, &load("warm", 0, &SUSTAINED))?;
            self.share.push(balance.share());
            self.unknown.push(balance.unknown());
        }
        Ok(())
    }
}

/// The arguments of the host.
fn load(mode: &str, round: usize, load: &Load) -> [String; 5] {
    let numbers = [load.warm_ms, load.burst_us, load.bursts].map(|number| number.to_string());
    let [warm_ms, burst_us, bursts] = numbers;
    [mode.into(), round.to_string(), warm_ms, burst_us, bursts]
}
