//! Very many threads that live at once: time and memory.

use super::Subjects;
use super::child::{self, Ended, Stat};
use super::place::Place;
use crate::preload::Ready;
use crate::progress;
use crate::report::rounded;
use crate::sample::Samples;
use anyhow::Result;
use serde_json::{Value, json};

/// Threads that live at once, with ten calls each.
pub struct Live {
    threads: u32,
    /// Time as a multiple of that without the shim.
    pub times_direct: Option<f64>,
    /// Resident memory that the shim adds for a thread.
    pub rss_kib: Option<f64>,
    /// Shared memory of the rings for a thread.
    pub ring_kib: Option<f64>,
    /// Calls that were made and are not recorded, in all rounds.
    pub lost: f64,
}

impl Live {
    /// For `bench.json`.
    pub fn json(&self) -> Value {
        json!({
            "threads": self.threads, "times_direct": self.times_direct.map(rounded),
            "rss_kib_a_thread": self.rss_kib.map(rounded),
            "ring_kib_a_thread": self.ring_kib.map(rounded), "lost": self.lost,
        })
    }
}

/// Measures the time and the memory of `threads` threads, `rounds` times with and without the shim.
pub fn measure(subjects: &Subjects, threads: u32, rounds: usize) -> Result<Live> {
    let [mut direct_ms, mut shim_ms, mut direct_kib, mut shim_kib, mut ring_kib] = [(); 5].map(|()| Samples::default());
    let mut lost = 0.0;
    for round in 0..rounds {
        progress::show(format_args!("{threads} threads, round {} of {rounds}", round + 1));
        let (ended, _) = run(subjects, subjects.direct, threads)?;
        direct_ms.push(ended.printed.one("live_ms")?);
        direct_kib.push(ended.printed.one("rss_kib")?);
        let (ended, place) = run(subjects, subjects.shim, threads)?;
        lost += ended.printed.one("made")? - Stat::of(subjects.scratch, &place)?.total("calls")?;
        shim_ms.push(ended.printed.one("live_ms")?);
        shim_kib.push(ended.printed.one("rss_kib")?);
        ring_kib.push(ended.ring_kib);
    }
    let times_direct = shim_ms.min().zip(direct_ms.min()).map(|(shim, direct)| shim / direct);
    let rss_kib = shim_kib.median().zip(direct_kib.median()).map(|(shim, direct)| (shim - direct) / f64::from(threads));
    Ok(Live { threads, times_direct, rss_kib, ring_kib: ring_kib.max().map(|kib| kib / f64::from(threads)), lost })
}

fn run(subjects: &Subjects, variant: &Ready, threads: u32) -> Result<(Ended, Place)> {
    let place = Place::new(subjects.shared())?;
    let command = child::host(variant, subjects.scratch, &place, &["live", &threads.to_string()]);
    Ok((child::run(command, &place, |_| ())?, place))
}
