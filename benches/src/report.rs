//! The measurements as `bench.json` and as a table.

use crate::balance::Paced;
use crate::figure::{Case, Column, KEYS, OF_A_CALL, OF_A_PROCESS};
use crate::goal::{Bound, GOALS, Goal};
use crate::keeping::Keeping;
use crate::measured::Measured;
use crate::preload::{OTHER, Ready};
use crate::reading::Reading;
use crate::variant::Variant;
use serde_json::{Map, Value, json};
use std::fs;

/// One run.
pub struct Report<'a> {
    /// The variants, `direct` first.
    pub variants: &'a [Ready],
    /// The measurements of each variant, in the order of the variants.
    pub measured: &'a [Measured],
    /// The run at a steady pace.
    pub paced: Option<Paced>,
    /// The speed of reading traces.
    pub reading: Reading,
    /// What becomes of records.
    pub keeping: Option<Keeping>,
    /// Number of rounds.
    pub rounds: usize,
}

impl Report<'_> {
    /// A variant, if it took part.
    pub fn case(&self, wanted: &str) -> Option<Case<'_>> {
        self.cases().find_map(|(name, case)| (name == wanted).then_some(case))
    }

    fn cases(&self) -> impl Iterator<Item = (&str, Case<'_>)> {
        let limit = self.variants.iter().position(|ready| ready.name == "limit").map(|at| &self.measured[at]);
        let direct = &self.measured[0];
        self.variants
            .iter()
            .zip(self.measured)
            .map(move |(ready, of)| (ready.name.as_str(), Case { of, direct, limit }))
    }

    /// The file: each key holds variant -> figure; a variant for which none was taken is not in it.
    pub fn json(&self) -> String {
        let mut document = Map::new();
        document.insert("machine".into(), machine());
        document.insert("rounds".into(), self.rounds.into());
        for (key, figure) in KEYS {
            let figures = self.cases().filter_map(|(name, case)| Some((name.into(), rounded(figure(&case)?))));
            document.insert((*key).into(), Value::Object(figures.collect()));
        }
        let rates =
            self.cases().filter_map(|(name, case)| Some((name.into(), case.calls_per_s()?.map(rounded).into())));
        document.insert("calls_per_s".into(), Value::Object(rates.collect()));
        if let Some(Paced { balance, expected, late_us }) = &self.paced {
            let [calls, not_recorded, expected] = [balance.calls, balance.not_recorded, *expected].map(|n| n as u64);
            let paced = json!({
                "calls": calls, "not_recorded": not_recorded, "expected": expected, "late_us": late_us,
            });
            document.insert("paced_8x100k".into(), paced);
        }
        let of = &self.reading;
        let reading = json!({
            "calls": of.calls,
            "stat_s": of.stat.min(),
            "bare_s": of.bare.min(),
            "stat_calls_per_s": of.calls_per_s(),
            "stat_rss_growth": of.growth,
            "parquet_s": of.parquet.min(),
            "stat_other_s": of.stat_other.min(),
            "parquet_other_s": of.parquet_other.min(),
            "pyarrow_s": of.pyarrow.min(),
            "babeltrace2_calls_per_s": of.babeltrace,
        });
        document.insert("reading".into(), reading);
        if let Some(keeping) = &self.keeping {
            document.insert("keeping".into(), keeping.json());
        }
        let goals = GOALS.iter().map(|goal| goal_json(goal, goal.value(self)));
        document.insert("goals".into(), goals.collect());
        format!("{:#}\n", Value::Object(document))
    }

    /// The tables.
    pub fn table(&self) -> String {
        let mut lines = self.rows(OF_A_CALL, |_| "");
        lines.push(String::new());
        lines.extend(self.rows(OF_A_PROCESS, |row| row.what));
        let plain = self.measured[0].true_us.min().unwrap_or_default();
        lines.push(format!(
            "\nRounds: {}. Minima, but for \"median\", \"kept\", KiB and gain. \"+\" is over direct; startup over {plain:.0} us of \
             /bin/true. \"kept\" is recorded at full rate; what is not recorded may be cheaper.{}",
            self.rounds,
            self.paced.as_ref().map_or(String::new(), |paced| format!(
                " At the steady pace a thread of the host was {:.1} ms late at most.",
                paced.late_us / 1000.0
            ))
        ));
        lines.join("\n") + "\n"
    }

    /// This build beside the other: each figure that both have, as a multiple of the other's.
    pub fn comparison(&self) -> String {
        let mut lines = vec![format!("{:<30}{:<20}{:>12}{:>12}{:>9}", "figure", "variant", "other", "this", "x other")];
        let mut add = |key: &str, variant: &str, other: Option<f64>, this: Option<f64>| {
            let (Some(other), Some(this)) = (other, this) else { return };
            lines.push(format!("{key:<30}{variant:<20}{other:>12.3}{this:>12.3}{:>9.3}", this / other));
        };
        for (key, figure) in KEYS {
            for (name, case) in self.cases() {
                if let Some(other) = self.case(&format!("{name}{OTHER}")) {
                    add(key, name, figure(&other), figure(&case));
                }
            }
        }
        let of = &self.reading;
        add("seconds", "stat", of.stat_other.min(), of.stat.min());
        add("seconds", "export", of.parquet_other.min(), of.parquet.min());
        lines.join("\n") + "\n"
    }

    /// The goals, and whether they are met.
    pub fn goals(&self) -> String {
        let mut lines = vec!["Goals:".to_owned()];
        let mut missed = 0;
        for goal in GOALS {
            let value = goal.value(self);
            let (word, value) = match value {
                Some(value) if goal.bound.holds(value) => ("holds", format!("{value:.2}")),
                Some(value) => ("MISSED", format!("{value:.2}")),
                None => ("-", "not measured".into()),
            };
            missed += usize::from(word == "MISSED");
            lines.push(format!("  {word:<6}  {value:>12}  {:<8}  {}", goal.bound.to_string(), goal.text));
        }
        lines.push(match missed {
            0 => "No goal is missed.".into(),
            _ => format!("{missed} of {} goals MISSED.", GOALS.len()),
        });
        lines.join("\n") + "\n"
    }

    /// One table: two lines of heading, then a line a variant, with a few words at its end.
    fn rows(&self, columns: &[Column], words: fn(&Variant) -> &'static str) -> Vec<String> {
        let heading = |at: usize| columns.iter().map(move |column| column.0[at].to_owned());
        let mut lines = vec![line("", columns, heading(0)), line("variant", columns, heading(1))];
        for ((name, case), ready) in self.cases().zip(self.variants) {
            let cells = columns.iter().map(|&(_, digits, figure)| match figure(&case) {
                Some(value) => format!("{value:.digits$}"),
                None => "-".into(),
            });
            let line = line(name, columns, cells) + "  " + words(ready.row);
            lines.push(line.trim_end().to_owned());
        }
        lines
    }
}

fn line(name: &str, columns: &[Column], cells: impl Iterator<Item = String>) -> String {
    let width = |column: &Column| column.0.map(str::len).into_iter().max().unwrap_or_default().max(7);
    let cells = cells.zip(columns).map(|(cell, column)| format!("  {cell:>0$}", width(column)));
    format!("{name:<14}") + &cells.collect::<String>()
}

fn goal_json(goal: &Goal, value: Option<f64>) -> Value {
    let (at, bound) = match goal.bound {
        Bound::AtMost(bound) => ("most", bound),
        Bound::AtLeast(bound) => ("least", bound),
    };
    let holds = value.map(|value| goal.bound.holds(value));
    json!({ "goal": goal.text, "value": value.map(rounded), "at": at, "bound": bound, "holds": holds })
}

/// Rounded to a thousandth: further digits are noise.
pub fn rounded(value: f64) -> Value {
    json!((value * 1e3).round() / 1e3)
}

/// Description of the machine.
fn machine() -> Value {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, model)| model);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    json!({ "arch": std::env::consts::ARCH, "model": model, "cpus": threads, "kernel": kernel.trim() })
}
