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
mod keeping;
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

const USAGE: &str =
    "usage: aclshim-bench [--quick | --rounds N] [--only-reading | --only-keeping] [--against FOLDER] [--out FILE]";
const FULL: usize = 80;
const QUICK: usize = 4;

/// A part of the run.
#[derive(PartialEq)]
enum Part {
    /// What a call costs.
    Calls,
    /// The reading of traces.
    Reading,
    /// What becomes of records.
    Keeping,
}

struct Arguments {
    rounds: usize,
    /// The one part that is measured.
    only: Option<Part>,
    /// A folder with `libaclshim.so` and `aclshim` of another build, which take turns with this one's.
    against: Option<PathBuf>,
    out: Option<PathBuf>,
}

fn arguments() -> Result<Arguments> {
    let mut wanted = Arguments { rounds: FULL, only: None, against: None, out: None };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--quick" => wanted.rounds = QUICK,
            "--rounds" => {
                wanted.rounds = given.next().context(USAGE)?.parse().ok().filter(|&n| n > 0).context(USAGE)?
            }
            "--only-reading" => wanted.only = Some(Part::Reading),
            "--only-keeping" => wanted.only = Some(Part::Keeping),
            "--against" => wanted.against = Some(given.next().context(USAGE)?.into()),
            "--out" => wanted.out = Some(given.next().context(USAGE)?.into()),
            _ => bail!("{USAGE}"),
        }
    }
    Ok(wanted)
}

fn main() -> Result<()> {
    let Arguments { rounds, only, against, out } = arguments()?;
    let scratch = scratch::Scratch::new()?;
    let out = out.unwrap_or_else(|| scratch.bench.join("bench.json"));
    let variants = preload::available(&scratch, against.as_deref())?;
    let wants = |part: Part| only.as_ref().is_none_or(|only| *only == part);

    let mut reading = reading::Reading::default();
    if wants(Part::Reading) {
        reading = reading::Reading::measure(&variants, &scratch, against.as_deref(), rounds)?;
    }
    let calls = if wants(Part::Calls) { rounds } else { 0 };
    let mut measured = rounds::measure(&variants, &scratch, calls)?;
    let mut paced = None;
    if wants(Part::Calls) {
        paced = rounds::paced(&variants, &scratch, rounds)?;
        callgrind::count(&variants, &scratch, &mut measured);
    }
    let mut keeping = None;
    if wants(Part::Keeping) {
        keeping = Some(keeping::Keeping::measure(&variants, &scratch, rounds)?);
    }

    let report = report::Report { variants: &variants, measured: &measured, paced, reading, keeping, rounds };
    std::fs::write(&out, report.json()).with_context(|| format!("{} cannot be written", out.display()))?;
    if wants(Part::Calls) {
        println!("{}", report.table());
    }
    if let Some(keeping) = &report.keeping {
        println!("{}", keeping.table());
    }
    if against.is_some() {
        println!("{}", report.comparison());
    }
    print!("{}", report.goals());
    println!("\n{}", out.display());
    Ok(())
}
