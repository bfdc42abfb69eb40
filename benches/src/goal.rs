//! The goals: one row each. A missed goal is reported and fails nothing, because a time depends on the machine.

use crate::figure::{
    COLD_NS, INSTRUCTIONS, NS, Part, SUSTAINED_NS, batch_ns_per_item, first_call_us, rss_kib, rss_per_thread_kib,
    startup_us, times_direct_many,
};
use crate::report::Report;
use std::fmt::{self, Display, Formatter};

/// A goal.
pub struct Goal {
    /// What is compared, in words.
    pub text: &'static str,
    /// What it is compared with.
    pub bound: Bound,
    value: fn(&Report) -> Option<f64>,
}

/// The limit of a goal.
pub enum Bound {
    /// Missed above this value.
    AtMost(f64),
    /// Missed below this value.
    AtLeast(f64),
}
use Bound::{AtLeast, AtMost};

/// All goals. "Added" is over a direct call.
pub const GOALS: &[Goal] = &[
    Goal {
        text: "record, warm: ns added, x limit",
        bound: AtMost(1.25),
        value: |run| run.case("record")?.times_limit(NS),
    },
    Goal {
        text: "record, cold: ns added, x limit",
        bound: AtMost(1.5),
        value: |run| run.case("record")?.times_limit(COLD_NS),
    },
    Goal {
        text: "check, warm: ns added, x limit",
        bound: AtMost(1.25),
        value: |run| run.case("check")?.times_limit(NS),
    },
    Goal {
        text: "record_drained, sustained: ns added, x limit",
        bound: AtMost(1.6),
        value: |run| run.case("record_drained")?.times_limit(SUSTAINED_NS),
    },
    Goal {
        text: "record: instructions added",
        bound: AtMost(100.0),
        value: |run| run.case("record")?.over(INSTRUCTIONS),
    },
    Goal {
        text: "record: gain of a second thread, x that of direct",
        bound: AtLeast(0.95),
        value: |run| {
            let gain = |name| run.case(name)?.of.thread_gain.median();
            Some(gain("record")? / gain("direct")?)
        },
    },
    Goal {
        text: "8 threads x 100,000 calls a second: calls not recorded",
        bound: AtMost(0.0),
        value: |run| Some(run.paced.as_ref()?.balance.not_recorded),
    },
    Goal {
        text: "8 threads x 100,000 calls a second: calls of which nothing is known",
        bound: AtMost(0.0),
        value: |run| Some(run.paced.as_ref()?.balance.unknown().abs()),
    },
    Goal {
        text: "record_drained, sustained: calls neither recorded nor counted",
        bound: AtMost(0.0),
        value: |run| run.case("record_drained")?.of.unknown.farthest(),
    },
    Goal {
        text: "off: ns over tail_jump",
        bound: AtMost(3.0),
        value: |run| Some(run.case("off")?.of.ns.min()? - run.case("tail_jump")?.of.ns.min()?),
    },
    Goal {
        text: "record, a library that a plugin brings, no lookup: ns, x linked",
        bound: AtMost(1.5),
        value: |run| times_linked(run, "record", |of| of.brought_ns.min()),
    },
    Goal {
        text: "off, a library that a plugin brings, no lookup: ns, x linked",
        bound: AtMost(1.5),
        value: |run| times_linked(run, "off", |of| of.brought_ns.min()),
    },
    Goal {
        text: "record, a library that lacks aclrtMemcpy: ns, x linked",
        bound: AtMost(1.5),
        value: |run| times_linked(run, "record", |of| of.partial_ns.min()),
    },
    Goal {
        text: "off, a library that lacks aclrtMemcpy: ns, x linked",
        bound: AtMost(1.5),
        value: |run| times_linked(run, "off", |of| of.partial_ns.min()),
    },
    Goal {
        text: "record, a batch of 1,000: ns added an item, without the addresses",
        bound: AtMost(2.0),
        value: |run| batch_ns_per_item(&run.case("record_items_apart")?),
    },
    Goal {
        text: "record, a batch of 1,000: ns added an item, with the addresses",
        bound: AtMost(4.0),
        value: |run| batch_ns_per_item(&run.case("record")?),
    },
    Goal { text: "naive: ns added, x record", bound: AtLeast(50.0), value: |run| times_record(run, "naive") },
    Goal { text: "lttng: ns added, x record", bound: AtLeast(6.0), value: |run| times_record(run, "lttng") },
    Goal {
        text: "defaults, a process without a copy: us over /bin/true",
        bound: AtMost(300.0),
        value: |run| startup_us(&run.case("record_drained")?),
    },
    Goal {
        text: "defaults, a process without a copy: files left",
        bound: AtMost(0.0),
        value: |run| run.case("record_drained")?.of.idle_files.max(),
    },
    Goal {
        text: "defaults, a process without a copy: threads of ours",
        bound: AtMost(0.0),
        value: |run| run.case("record_drained")?.over(|of| of.idle_threads.max()),
    },
    Goal {
        text: "defaults: first call, us",
        bound: AtMost(1000.0),
        value: |run| first_call_us(&run.case("record_drained")?),
    },
    Goal {
        text: "defaults: resident with one thread, KiB added",
        bound: AtMost(2048.0),
        value: |run| rss_kib(&run.case("record_drained")?),
    },
    Goal {
        text: "defaults: resident for each more thread, KiB added",
        bound: AtMost(128.0),
        value: |run| rss_per_thread_kib(&run.case("record_drained")?),
    },
    Goal {
        text: "defaults: 4,000 threads that live at once, x the time without us",
        bound: AtMost(1.5),
        value: |run| times_direct_many(&run.case("record_drained")?),
    },
    Goal {
        text: "defaults: ring file after 10,000 short threads, KiB",
        bound: AtMost(4096.0),
        value: |run| run.case("record_drained")?.of.ring_kib.max(),
    },
    Goal {
        text: "stat: speed, x a bare loop that reads the same records",
        bound: AtLeast(0.3),
        value: |run| run.reading.stat_times_bare(),
    },
    Goal { text: "stat: memory, x that for a tenth of the calls", bound: AtMost(1.1), value: |run| run.reading.growth },
    Goal {
        text: "export to parquet: speed, x pyarrow's writing of the same columns",
        bound: AtLeast(0.5),
        value: |run| run.reading.parquet_times_pyarrow(),
    },
    Goal {
        text: "stat: calls a second, x babeltrace2 on an LTTng trace",
        bound: AtLeast(20.0),
        value: |run| run.reading.stat_times_babeltrace(),
    },
    Goal {
        text: "beside busy loops, 8 threads x 100,000 calls a second: calls lost",
        bound: AtMost(0.0),
        value: |run| Some(run.keeping.as_ref()?.loss("paced_8x100k")?.lost()),
    },
    Goal {
        text: "beside busy loops, 1,000,000 calls a second: calls lost",
        bound: AtMost(0.0),
        value: |run| Some(run.keeping.as_ref()?.loss("paced_1x1m")?.lost()),
    },
    Goal {
        text: "beside busy loops, 8 threads x 16,384 calls back to back: calls lost",
        bound: AtMost(0.0),
        value: |run| Some(run.keeping.as_ref()?.loss("bursts_8x16384")?.lost()),
    },
    Goal {
        text: "the same with 16 MiB for rings: calls lost",
        bound: AtMost(0.0),
        value: |run| Some(run.keeping.as_ref()?.loss("bursts_8x16384_in_16_mib")?.lost()),
    },
    Goal {
        text: "the same with 2 MiB for rings: calls neither recorded nor counted",
        bound: AtMost(0.0),
        value: |run| Some(run.keeping.as_ref()?.loss("bursts_8x16384_in_2_mib")?.unknown().abs()),
    },
    Goal {
        text: "64 processes with 64 MiB for rings: calls neither recorded nor counted",
        bound: AtMost(0.0),
        value: |run| Some(run.keeping.as_ref()?.loss("processes_64x4x2000_in_64_mib")?.unknown().abs()),
    },
    Goal {
        text: "idle, drained inside: wake-ups in 10 s",
        bound: AtMost(2.0),
        value: |run| Some(run.keeping.as_ref()?.idle("inside")?.wake_ups()),
    },
    Goal {
        text: "idle, drained by collect: wake-ups in 10 s, both processes",
        bound: AtMost(2.0),
        value: |run| Some(run.keeping.as_ref()?.idle("collect")?.wake_ups()),
    },
    Goal {
        text: "1,000 calls a second, drained inside: % of a processor",
        bound: AtMost(0.1),
        value: |run| run.keeping.as_ref()?.busy(1_000)?.inside,
    },
    Goal {
        text: "1,000 calls a second, drained by run: % of a processor",
        bound: AtMost(0.1),
        value: |run| run.keeping.as_ref()?.busy(1_000)?.outside,
    },
    Goal {
        text: "20,000 calls a second, drained inside: % of a processor",
        bound: AtMost(0.4),
        value: |run| run.keeping.as_ref()?.busy(20_000)?.inside,
    },
    Goal {
        text: "20,000 calls a second, drained by run: % of a processor",
        bound: AtMost(0.4),
        value: |run| run.keeping.as_ref()?.busy(20_000)?.outside,
    },
    Goal {
        text: "100,000 calls a second, drained inside: % of a processor",
        bound: AtMost(1.2),
        value: |run| run.keeping.as_ref()?.busy(100_000)?.inside,
    },
    Goal {
        text: "100,000 calls a second, drained by run: % of a processor",
        bound: AtMost(1.2),
        value: |run| run.keeping.as_ref()?.busy(100_000)?.outside,
    },
    Goal {
        text: "full speed: ns of the drain a recorded call",
        bound: AtMost(60.0),
        value: |run| run.keeping.as_ref()?.full.drain_ns,
    },
    Goal {
        text: "lossless: calls a second into the trace",
        bound: AtLeast(8e6),
        value: |run| Some(run.keeping.as_ref()?.full.lossless_calls_per_s),
    },
    Goal {
        text: "lossless: calls lost",
        bound: AtMost(0.0),
        value: |run| Some(run.keeping.as_ref()?.full.lossless_lost),
    },
    Goal {
        text: "defaults: 10,000 threads that live at once, x the time without us",
        bound: AtMost(1.5),
        value: |run| run.keeping.as_ref()?.live.times_direct,
    },
];

impl Goal {
    /// The measured value, if there is one.
    pub fn value(&self, run: &Report) -> Option<f64> {
        (self.value)(run)
    }
}

impl Bound {
    /// Whether the goal is held.
    pub fn holds(&self, value: f64) -> bool {
        match *self {
            AtMost(bound) => value <= bound,
            AtLeast(bound) => value >= bound,
        }
    }
}

impl Display for Bound {
    fn fmt(&self, to: &mut Formatter) -> fmt::Result {
        match self {
            AtMost(bound) => write!(to, "<= {bound}"),
            AtLeast(bound) => write!(to, ">= {bound}"),
        }
    }
}

fn times_record(run: &Report, name: &str) -> Option<f64> {
    Some(run.case(name)?.over(NS)? / run.case("record")?.over(NS)?)
}

/// A measurement of a variant as a multiple of a call into a complete library that the host is linked to.
fn times_linked(run: &Report, name: &str, part: Part) -> Option<f64> {
    let case = run.case(name)?;
    Some(part(case.of)? / NS(case.of)?)
}
