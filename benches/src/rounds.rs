//! The rounds of measurement: every variant once, then every variant again, so that noise affects all of them.

use crate::balance::Paced;
use crate::measured::Measured;
use crate::preload::Ready;
use crate::progress;
use crate::scratch::Scratch;
use crate::variant::Also;
use anyhow::Result;

/// Starts of `/bin/true` in each round: they are short.
const STARTS: usize = 10;
/// Number of pairs of one thread and two: enough for a median in a short run too.
const PAIRS: usize = 15;
/// Number of rounds for measurements that take long and hardly vary.
const SOME: usize = 3;
/// How long the steady pace is kept; in a run that is only a trial, not long enough to say anything.
const PACED_MS: u32 = 3000;
const PACED_TRIAL_MS: u32 = 200;

/// Measures all variants in `rounds` rounds; results are in the order of the variants.
pub fn measure(variants: &[Ready], scratch: &Scratch, rounds: usize) -> Result<Vec<Measured>> {
    let mut all: Vec<_> = variants.iter().map(|_| Measured::default()).collect();
    for round in 0..rounds {
        progress::show(format_args!("round {} of {rounds}", round + 1));
        let mut each = |step: &dyn Fn(&mut Measured, &Ready) -> Result<()>| {
            variants.iter().zip(&mut all).try_for_each(|(variant, measured)| step(measured, variant))
        };
        // All variants of a round on the same processor, each round on the next one.
        each(&|measured, variant| measured.warm(variant, scratch, round))?;
        each(&|measured, variant| measured.sustained(variant, scratch, round))?;
        each(&|measured, variant| measured.cold(variant, scratch, round))?;
        each(&|measured, variant| measured.batch(variant, scratch, round))?;
        each(&|measured, variant| measured.found(variant, scratch, round))?;
        for _ in 0..PAIRS.div_ceil(rounds) {
            each(&|measured, variant| measured.threads(variant, scratch))?;
        }
        for _ in 0..STARTS {
            each(&|measured, variant| measured.start(variant, scratch))?;
        }
        if round < SOME {
            each(&|measured, variant| measured.idle(variant, scratch))?;
            each(&|measured, variant| measured.alive(variant, scratch))?;
            each(&|measured, variant| measured.brief(variant, scratch))?;
            each(&|measured, variant| measured.many(variant, scratch))?;
            each(&|measured, variant| measured.share(variant, scratch))?;
        }
    }
    progress::clear();
    Ok(all)
}

/// Delay from which on a thread has missed its pace: it then catches up at full speed.
const LATE_US: f64 = 5000.0;
/// How often the pace is tried on a machine that does not let the host keep it.
const TRIALS: usize = 12;

/// A run at a steady pace with the variant that must record every call. Of several runs the one in which the host itself
/// had the smallest delay.
pub fn paced(variants: &[Ready], scratch: &Scratch, rounds: usize) -> Result<Option<Paced>> {
    let (ms, trials) = if rounds > 1 { (PACED_MS, TRIALS) } else { (PACED_TRIAL_MS, 1) };
    let Some(variant) = variants.iter().find(|variant| variant.row.has(Also::Paced)) else { return Ok(None) };
    let mut best: Option<Paced> = None;
    for trial in 0..trials {
        progress::show(format_args!("a steady pace, trial {}", trial + 1));
        let run = Paced::run(variant, scratch, ms)?;
        if best.as_ref().is_none_or(|best| run.late_us < best.late_us) {
            best = Some(run);
        }
        if best.as_ref().is_some_and(|best| best.late_us <= LATE_US) {
            break;
        }
    }
    progress::clear();
    Ok(best)
}
