//! The variants that are compared: one row each.

use crate::leaves::{Leaves, Left};
use crate::preload::Preload;

/// A variant.
pub struct Variant {
    /// Its key in `bench.json`.
    pub name: &'static str,
    /// Its description in the table.
    pub what: &'static str,
    /// The library in front of the vendor's.
    pub preload: Preload,
    /// The settings it runs with.
    pub settings: &'static [(&'static str, &'static str)],
    /// How its warm calls are made.
    pub load: Load,
    /// The files that a run leaves.
    pub leaves: Leaves,
    /// Measurements that are not taken of every variant.
    pub also: &'static [Also],
}

/// What one child does for the warm figures.
#[derive(PartialEq)]
pub struct Load {
    /// Duration of the calls before the first measurement.
    pub warm_ms: u32,
    /// Approximate duration of one burst of calls.
    pub burst_us: u32,
    /// Number of bursts that are measured.
    pub bursts: u32,
    /// Numbers of calls of the two runs over which instructions are counted.
    pub counted: [u64; 2],
}

/// A figure that not every variant has.
#[derive(PartialEq)]
pub enum Also {
    /// Calls a second, with one thread and with two.
    Threads,
    /// A batch of 1,000 items.
    Batch,
    /// A library that a plugin brings, and one that lacks a function.
    Found,
    /// What very many threads that live at once take.
    ManyThreads,
    /// What many short threads leave in the ring.
    BriefThreads,
    /// Whether all is recorded at a steady pace.
    Paced,
    /// What part is recorded under a sustained load.
    Share,
}

/// Short bursts. The calls that are counted go round a ring of 1,024 slots.
const BURSTS: Load = Load { warm_ms: 3, burst_us: 1000, bursts: 20, counted: [1000, 5000] };

/// For what must hold its rate for long: a warm-up that fills every buffer, then few long bursts, so that the
/// minimum is not a moment of luck. The calls that are counted fit into a ring: the drain is too slow under callgrind.
pub const SUSTAINED: Load = Load { warm_ms: 50, burst_us: 10_000, bursts: 4, counted: [100, 900] };

/// The library that is measured.
pub const SHIM: &str = "libaclshim.so";

const RING: Leaves = Leaves { ring: Left::File(""), log: Left::Nothing };
const LOG: Leaves = Leaves { ring: Left::Nothing, log: Left::File("") };

/// `direct` first: the others are compared with it.
pub const VARIANTS: &[Variant] = &[
    Variant {
        name: "direct",
        what: "no preload",
        preload: Preload::Nothing,
        settings: &[],
        load: BURSTS,
        leaves: Leaves::NOTHING,
        also: &[Also::Threads, Also::Batch, Also::Found, Also::ManyThreads],
    },
    Variant {
        name: "tail_jump",
        what: "a preload that jumps to the next in line",
        preload: Preload::Source("tail_jump.c"),
        settings: &[],
        load: BURSTS,
        leaves: Leaves::NOTHING,
        also: &[],
    },
    Variant {
        name: "off",
        what: "the shim, ACLSHIM_MODE=off",
        preload: Preload::Cargo(SHIM),
        settings: &[("ACLSHIM_MODE", "off")],
        load: BURSTS,
        leaves: Leaves::NOTHING,
        also: &[Also::Found],
    },
    Variant {
        name: "check",
        what: "the shim, ACLSHIM_MODE=enforce and no record: checks only",
        preload: Preload::Cargo(SHIM),
        settings: &[("ACLSHIM_RECORD", "off"), ("ACLSHIM_MODE", "enforce")],
        load: BURSTS,
        leaves: Leaves { ring: Left::Anything, log: Left::Nothing },
        also: &[Also::Batch],
    },
    Variant {
        name: "record",
        what: "the shim, full record, overwrites the oldest, no drain",
        preload: Preload::Cargo(SHIM),
        settings: &[("ACLSHIM_RECORD", "flight"), ("ACLSHIM_DRAIN", "off")],
        load: BURSTS,
        leaves: RING,
        also: &[Also::Threads, Also::Batch, Also::Found, Also::BriefThreads],
    },
    Variant {
        name: "record_items_apart",
        what: "as record, without the rules about the items' addresses",
        preload: Preload::Cargo(SHIM),
        settings: &[("ACLSHIM_RECORD", "flight"), ("ACLSHIM_DRAIN", "off"), ("ACLSHIM_RULES", "BATCH-UNORDERED=off")],
        load: BURSTS,
        leaves: RING,
        also: &[Also::Batch],
    },
    Variant {
        name: "record_drained",
        what: "the shim as it is by default, under a sustained load",
        preload: Preload::Cargo(SHIM),
        settings: &[],
        load: SUSTAINED,
        // What is drained need not stay in the ring.
        leaves: Leaves { ring: Left::Anything, log: Left::File(".acltrace") },
        also: &[Also::Batch, Also::BriefThreads, Also::ManyThreads, Also::Paced, Also::Share],
    },
    Variant {
        name: "limit",
        what: "a bare ring: full record, two timestamps",
        preload: Preload::Source("limit.c"),
        settings: &[],
        load: BURSTS,
        leaves: RING,
        also: &[],
    },
    Variant {
        name: "naive",
        what: "tracing + tracing-appender, JSON",
        preload: Preload::Cargo("libbench_naive.so"),
        settings: &[],
        load: BURSTS,
        leaves: LOG,
        also: &[],
    },
    Variant {
        name: "lttng",
        what: "LTTng-UST, same fields: one tracepoint at exit, duration by two clock reads, waits when full",
        preload: Preload::Lttng("lttng.c"),
        // Without it the channel may not wait for room.
        settings: &[("LTTNG_UST_ALLOW_BLOCKING", "1")],
        load: BURSTS,
        // Its files are those of its session, which has been seen to write them.
        leaves: Leaves::NOTHING,
        also: &[Also::Share],
    },
    Variant {
        name: "spdlog",
        what: "spdlog, asynchronous, a line of text",
        preload: Preload::Peer { source: "spdlog.cpp", package: "spdlog" },
        settings: &[],
        load: BURSTS,
        leaves: LOG,
        also: &[],
    },
];

impl Variant {
    /// Whether a figure is taken of it.
    pub fn has(&self, figure: Also) -> bool {
        self.also.contains(&figure)
    }
}
