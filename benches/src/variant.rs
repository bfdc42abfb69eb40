//! What is compared: one row a variant.

use crate::scratch::Scratch;
use anyhow::Result;
use std::path::PathBuf;

/// A row.
pub struct Variant {
    /// Its key in `bench.json`.
    pub name: &'static str,
    /// What it is, for the table.
    pub what: &'static str,
    /// What stands in front of the vendor's library.
    pub preload: Preload,
    /// The settings it runs with.
    pub settings: &'static [(&'static str, &'static str)],
    /// How long it is warmed up and measured.
    pub load: Load,
    /// What a run leaves behind. It is looked at: a recorder that does not record would look fast.
    pub leaves: Leaves,
    /// Whether its calls a second are measured, with one thread and with two.
    pub threads: bool,
}

/// A preloaded library.
pub enum Preload {
    /// None.
    Nothing,
    /// `benches/c/<name>.c`.
    C(&'static str),
    /// One that cargo has built beside the benchmark.
    Cargo(&'static str),
}

/// What one child does for the warm figures.
pub struct Load {
    /// How long calls are made before anything is measured.
    pub warm_ms: u32,
    /// How long one burst of calls takes, about.
    pub burst_us: u32,
    /// How many bursts are measured.
    pub bursts: u32,
}

/// Where a run leaves a file.
#[derive(PartialEq, Eq, Debug)]
pub enum Leaves {
    /// Nowhere.
    Nothing,
    /// In `ACLSHIM_RING_DIR`.
    Ring,
    /// In `ACLSHIM_DIR`.
    Log,
}

/// Short bursts. (For what must hold its rate for long, a row has a load of its own: a warm-up that
/// fills every buffer, then few long bursts, so that the minimum is not a moment of luck.)
const BURSTS: Load = Load { warm_ms: 3, burst_us: 1000, bursts: 20 };

/// `direct` first: the others are compared with it.
const VARIANTS: &[Variant] = &[
    Variant {
        name: "direct",
        what: "no preload",
        preload: Preload::Nothing,
        settings: &[],
        load: BURSTS,
        leaves: Leaves::Nothing,
        threads: true,
    },
    Variant {
        name: "tail_jump",
        what: "a preload that jumps to the next in line",
        preload: Preload::C("tail_jump"),
        settings: &[],
        load: BURSTS,
        leaves: Leaves::Nothing,
        threads: false,
    },
    Variant {
        name: "off",
        what: "the shim, ACLSHIM_MODE=off",
        preload: Preload::Cargo("libaclshim.so"),
        settings: &[("ACLSHIM_MODE", "off")],
        load: BURSTS,
        leaves: Leaves::Nothing,
        threads: false,
    },
    Variant {
        name: "count",
        what: "the shim, counting calls",
        preload: Preload::Cargo("libaclshim.so"),
        settings: &[],
        load: BURSTS,
        leaves: Leaves::Ring,
        threads: true,
    },
    Variant {
        name: "limit",
        what: "a bare ring: full record, two timestamps",
        preload: Preload::C("limit"),
        settings: &[],
        load: BURSTS,
        leaves: Leaves::Ring,
        threads: false,
    },
    Variant {
        name: "naive",
        what: "tracing + tracing-appender, JSON",
        preload: Preload::Cargo("libbench_naive.so"),
        settings: &[],
        load: BURSTS,
        leaves: Leaves::Log,
        threads: false,
    },
];

/// A variant that can run here.
pub struct Ready {
    /// Its row.
    pub row: &'static Variant,
    /// The library to preload.
    pub library: Option<PathBuf>,
}

/// All variants with their libraries built; one that is not there is named and left out.
pub fn available(scratch: &Scratch) -> Result<Vec<Ready>> {
    let mut ready = Vec::new();
    for row in VARIANTS {
        let library = match row.preload {
            Preload::Nothing => None,
            Preload::C(name) => Some(scratch.compile_library(name)?),
            Preload::Cargo(file) => Some(scratch.built.join(file)),
        };
        match library {
            Some(path) if !path.exists() => eprintln!("left out: {}: there is no {}", row.name, path.display()),
            library => ready.push(Ready { row, library }),
        }
    }
    Ok(ready)
}
