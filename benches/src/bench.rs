//! `make bench`: what a call costs, all variants side by side in one run.
//!
//! A preload applies to a whole process, so every figure comes from a short-lived child process ([`host`]). A shared machine
//! is never quiet, so the variants take turns in many short rounds ([`rounds`]), of which minima and medians count. Each
//! variant is a row in [`variant`], each goal a row in [`goal`]; a missed goal is reported and does not fail the run.

mod balance;
mod callgrind;
mod compiler;
mod figure;
mod goal;
mod host;
mod leaves;
mod measured;
mod preload;
mod progress;
mod reading;
mod report;
mod rounds;
mod sample;
mod scratch;
mod session;
mod variant;

use anyhow::{Context, Result, bail};
use std::path::PathBuf;

const USAGE: &str = "usage: aclshim-bench [--quick | --rounds N] [--only-reading] [--against FOLDER] [--out FILE]";
const FULL: usize = 80;
const QUICK: usize = 4;

struct Arguments {
    rounds: usize,
    /// Whether calls are left out, and only the reading of traces is measured.
    only_reading: bool,
    /// A folder with `libaclshim.so` and `aclshim` of another build, which take turns with this one's.
    against: Option<PathBuf>,
    out: Option<PathBuf>,
}

fn arguments() -> Result<Arguments> {
    let mut wanted = Arguments { rounds: FULL, only_reading: false, against: None, out: None };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--quick" => wanted.rounds = QUICK,
            "--rounds" => {
                wanted.rounds = given.next().context(USAGE)?.parse().ok().filter(|&n| n > 0).context(USAGE)?
            }
            "--only-reading" => wanted.only_reading = true,
            "--against" => wanted.against = Some(given.next().context(USAGE)?.into()),
            "--out" => wanted.out = Some(given.next().context(USAGE)?.into()),
            _ => bail!("{USAGE}"),
        }
    }
    Ok(wanted)
}

fn main() -> Result<()> {
    let Arguments { rounds, only_reading, against, out } = arguments()?;
    let scratch = scratch::Scratch::new()?;
    let out = out.unwrap_or_else(|| scratch.bench.join("bench.json"));
    let variants = preload::available(&scratch, against.as_deref())?;

    let reading = reading::Reading::measure(&variants, &scratch, against.as_deref(), rounds)?;
    let calls = if only_reading { 0 } else { rounds };
    let mut measured = rounds::measure(&variants, &scratch, calls)?;
    let paced = if only_reading { None } else { rounds::paced(&variants, &scratch, rounds)? };
    if !only_reading {
        callgrind::count(&variants, &scratch, &mut measured);
    }

    let report = report::Report { variants: &variants, measured: &measured, paced, reading, rounds };
    std::fs::write(&out, report.json()).with_context(|| format!("{} cannot be written", out.display()))?;
    if !only_reading {
        println!("{}", report.table());
    }
    if against.is_some() {
        println!("{}", report.comparison());
    }
    print!("{}", report.goals());
    println!("\n{}", out.display());
    Ok(())
}
