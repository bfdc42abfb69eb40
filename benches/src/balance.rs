//! The balance of a run: the calls that the host made against those that were recorded or counted as lost.

use crate::host;
use crate::preload::Ready;
use crate::scratch::Scratch;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::Command;

/// The calls of a run.
pub struct Balance {
    /// Made by the host.
    pub made: f64,
    /// Recorded.
    pub calls: f64,
    /// Counted, but not recorded.
    pub not_recorded: f64,
}

/// A run at a steady pace.
pub struct Paced {
    /// Its calls.
    pub balance: Balance,
    /// Number of calls that it should have made.
    pub expected: f64,
    /// The longest delay of a thread before it caught up.
    pub late_us: f64,
}

const THREADS: u32 = 8;
const CALLS_A_MS: u32 = 100;

impl Balance {
    /// Fraction of all calls that was recorded.
    pub fn share(&self) -> f64 {
        self.calls / self.made
    }

    /// Number of calls that are neither recorded nor counted; negative if there are more records than calls.
    pub fn unknown(&self) -> f64 {
        self.made - self.calls - self.not_recorded
    }

    /// The balance of a load.
    pub fn of(variant: &Ready, scratch: &Scratch, load: &[String]) -> Result<Self> {
        if let Some(session) = &variant.session {
            let before = session.discarded()?;
            let made = host::run(variant, scratch, load)?.one("made")?;
            let not_recorded = session.discarded()? - before;
            return Ok(Self { made, calls: made - not_recorded, not_recorded });
        }
        let (printed, [calls, not_recorded]) = host::run_and(variant, scratch, load, || stat(scratch))?;
        Ok(Self { made: printed.one("made")?, calls, not_recorded })
    }
}

impl Paced {
    /// Runs 8 threads, each with 100 calls a millisecond, for `ms` milliseconds.
    pub fn run(variant: &Ready, scratch: &Scratch, ms: u32) -> Result<Self> {
        let [threads, calls_a_ms, span] = [THREADS, CALLS_A_MS, ms].map(|number| number.to_string());
        let arguments = ["paced", &threads, &calls_a_ms, &span];
        let (printed, [calls, not_recorded]) = host::run_and(variant, scratch, &arguments, || stat(scratch))?;
        let balance = Balance { made: printed.one("made")?, calls, not_recorded };
        Ok(Self { balance, expected: f64::from(THREADS * CALLS_A_MS * ms), late_us: printed.one("late_us")? })
    }
}

/// `calls` and `not_recorded`, by our own command.
fn stat(scratch: &Scratch) -> Result<[f64; 2]> {
    let mut command = Command::new(scratch.built.join("aclshim"));
    command.args(["stat", "--json"]).arg(&scratch.log).env("ACLSHIM_RING_DIR", &scratch.ring);
    let output = command.output().context("aclshim cannot be run")?;
    ensure!(output.status.success(), "aclshim stat: {}", String::from_utf8_lossy(&output.stderr));
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let number = |key: &str| said[key].as_f64().with_context(|| format!("aclshim stat says no {key}"));
    Ok([number("calls")?, number("not_recorded")?])
}
