//! `aclshim stat`: what the processes of a directory have counted.

use aclshim_facts::settings::RING_DIR;
use aclshim_trace::reader::{self, Counts, Tally};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// How the answer is printed.
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// The answer. Its keys are used by others: see "Names that stay" in the project's design.
#[derive(Default, Serialize)]
struct Stat {
    processes: usize,
    calls: u64,
    nested: u64,
    bytes: u64,
    errors: u64,
    not_recorded: u64,
    in_flight: u64,
    functions: BTreeMap<String, FunctionStat>,
    findings: BTreeMap<String, u64>,
}

#[derive(Default, Serialize)]
struct FunctionStat {
    calls: u64,
    bytes: u64,
    errors: u64,
    /// Durations are not recorded yet.
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
}

/// Prints what was counted under `paths`. Nothing at all is an answer to a program, and a question
/// to a person.
pub fn stat(paths: &[PathBuf], format: Format) -> Result<()> {
    let mut stat = Stat::default();
    for path in paths {
        let found = counts_of(path)?;
        if found.is_empty() {
            let hint = format!(
                "{}: no process has counted a call here. Was the program started with LD_PRELOAD=libaclshim.so and \
                 ACLSHIM_DIR={0}, and did it copy anything?",
                path.display()
            );
            match format {
                Format::Json => eprintln!("aclshim: {hint}"),
                Format::Table => bail!(hint),
            }
        }
        found.into_iter().for_each(|counts| stat.add(counts));
    }
    match format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&stat)?),
        Format::Table => print!("{}", stat.table()),
    }
    Ok(())
}

/// What a path stands for: a count file, or the processes that named it as their directory.
fn counts_of(path: &Path) -> Result<Vec<Counts>> {
    if path.is_file() {
        return Ok(vec![reader::read(path).with_context(|| path.display().to_string())?]);
    }
    let mut found = Vec::new();
    for file in ring_folders(path).iter().filter_map(|folder| reader::files(folder).ok()).flatten() {
        match reader::read(&file) {
            Ok(counts) if same_folder(&counts.dir, path) => found.push(counts),
            Ok(_) => {}
            // Somebody else's file, or one that is just being made, is none of our business.
            Err(reader::Unreadable::NotOurs | reader::Unreadable::Io(_)) => {}
            Err(why) => eprintln!("aclshim: {}: {why}", file.display()),
        }
    }
    Ok(found)
}

/// Where count files may be: where the setting says, where they are by default, and in the folder itself.
fn ring_folders(path: &Path) -> BTreeSet<PathBuf> {
    let set = std::env::var_os(RING_DIR.variable).map(PathBuf::from);
    let folders = set.into_iter().chain([PathBuf::from("/dev/shm"), path.to_owned()]);
    folders.filter_map(|folder| folder.canonicalize().ok()).collect()
}

/// Whether two paths name one folder, which may not exist: a process that has nothing to write
/// does not make it.
fn same_folder(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.into());
    real(a) == real(b)
}

impl Stat {
    fn add(&mut self, counts: Counts) {
        self.processes += 1;
        self.not_recorded += counts.not_recorded;
        self.in_flight += counts.in_flight;
        for (name, Tally { calls, nested, errors, bytes }) in counts.functions {
            self.nested += nested;
            if calls > 0 {
                let function = self.functions.entry(name).or_default();
                for (sum, more) in [(&mut self.calls, calls), (&mut self.errors, errors), (&mut self.bytes, bytes)] {
                    *sum = sum.saturating_add(more);
                }
                function.calls += calls;
                function.errors += errors;
                function.bytes = function.bytes.saturating_add(bytes);
            }
        }
    }

    fn table(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, calls: &str, errors: &str, bytes: &str| {
            let _ = writeln!(text, "{name:<32}{calls:>12}{errors:>10}{bytes:>16}");
        };
        row("function", "calls", "errors", "bytes");
        for (name, of) in &self.functions {
            row(name, &of.calls.to_string(), &of.errors.to_string(), &human(of.bytes));
        }
        row("total", &self.calls.to_string(), &self.errors.to_string(), &human(self.bytes));
        let processes = if self.processes == 1 { "process" } else { "processes" };
        let _ = writeln!(
            text,
            "\n{} {processes}; {} nested, {} in flight, {} not recorded",
            self.processes, self.nested, self.in_flight, self.not_recorded
        );
        text
    }
}

/// Bytes as people read them.
fn human(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let Some(power) = bytes.checked_ilog2().map(|log| log / 10).filter(|&power| power > 0) else {
        return format!("{bytes} B");
    };
    format!("{:.1} {}", bytes as f64 / f64::from(power * 10).exp2(), units[power as usize - 1])
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn bytes_read_as_people_write_them() {
        let cases = [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1 << 30, "1.0 GiB")];
        for (bytes, text) in cases {
            assert_eq!(human(bytes), text);
        }
        assert_eq!(human(u64::MAX), "16.0 EiB");
    }
}
