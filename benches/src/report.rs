//! What was measured, as `bench.json` and as a table.

use crate::figure::{COLUMNS, Case, Column, KEYS};
use crate::rounds::Measured;
use crate::variant::Ready;
use serde_json::{Map, Value, json};
use std::fs;

/// One run.
pub struct Report<'a> {
    /// The variants, `direct` first, ...
    pub variants: &'a [Ready],
    /// ... and what was measured of each, in the same order.
    pub measured: &'a [Measured],
    /// How many rounds there were.
    pub rounds: usize,
}

impl Report<'_> {
    fn cases(&self) -> impl Iterator<Item = (&'static str, Case<'_>)> {
        let name = |ready: &Ready| ready.row.name;
        let limit = self.variants.iter().position(|ready| name(ready) == "limit").map(|at| &self.measured[at]);
        let direct = &self.measured[0];
        self.variants.iter().zip(self.measured).map(move |(ready, of)| (name(ready), Case { of, direct, limit }))
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
        format!("{:#}\n", Value::Object(document))
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut lines: Vec<String> = (0..2)
            .map(|line| self.line(["", "variant"][line], COLUMNS.iter().map(|column| column.0[line].to_owned())))
            .collect();
        lines[1].push_str("  what it is");
        for ((name, case), ready) in self.cases().zip(self.variants) {
            let cells = COLUMNS.iter().map(|&(_, digits, figure)| match figure(&case) {
                Some(value) => format!("{value:.digits$}"),
                None => "-".into(),
            });
            lines.push(self.line(name, cells) + "  " + ready.row.what);
        }
        let plain = self.measured[0].true_us.min().unwrap_or_default();
        lines.push(format!(
            "\nRounds: {}. Minima, but for \"median\" and RSS. \"+\" is over direct; startup over {plain:.0} us of /bin/true.",
            self.rounds
        ));
        lines.join("\n") + "\n"
    }

    fn line(&self, name: &str, cells: impl Iterator<Item = String>) -> String {
        let width = |column: &Column| column.0.map(str::len).into_iter().max().unwrap_or_default().max(7);
        let cells = cells.zip(COLUMNS).map(|(cell, column)| format!("  {cell:>0$}", width(column)));
        format!("{name:<14}") + &cells.collect::<String>()
    }
}

/// To a thousandth: what is behind that is noise.
fn rounded(value: f64) -> Value {
    json!((value * 1e3).round() / 1e3)
}

/// What the figures were taken on.
fn machine() -> Value {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, model)| model);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    json!({ "arch": std::env::consts::ARCH, "model": model, "cpus": threads, "kernel": kernel.trim() })
}
