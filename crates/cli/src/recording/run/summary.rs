//! The summary of a run in a few lines.

use super::rings::{self, RunFolders};
use crate::files;
use crate::output::quantity::{human, plural};
use aclshim_collect::interpreter::visitor::CallVisitor;
use aclshim_collect::liveness::{Liveness, liveness};
use aclshim_collect::trace_set::{ReadOptions, TraceSet};
use aclshim_facts::rule::Severity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The sums of a run.
#[derive(Default)]
pub struct Summary {
    processes: usize,
    calls: u64,
    bytes: u64,
    errors: u64,
    injected: u64,
    /// Findings by rule: the highest severity, and the number without known ones.
    findings: BTreeMap<String, (Option<Severity>, u64)>,
    known: u64,
    not_recorded: u64,
    overwritten: u64,
    evicted: u64,
    write_failures: u64,
    in_memory: u64,
    /// Processes that have called and ended, and whose log could not be finished.
    unlogged: usize,
    /// What the shim had to say, and what could not be read.
    remarks: BTreeSet<String>,
    /// The names of its traces and logs.
    pub files: Vec<String>,
}

/// Where the calls of a run are recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RecordSource {
    /// The trace, which has every call.
    Trace,
    /// There is none (`ACLSHIM_CALLS=off`): the log has the sums.
    Log,
}

impl Summary {
    /// Reads what processes have recorded to a directory since; `watch` is shown their calls.
    pub fn read(
        folders: &RunFolders,
        since_ns: u64,
        record_source: RecordSource,
        watch: &mut dyn CallVisitor,
    ) -> (Self, TraceSet) {
        let mut summary = Self::default();
        let options = ReadOptions { ring_folders: vec![folders.rings.clone()], ..ReadOptions::default() };
        let mut set = TraceSet::new(options);
        let files = match record_source {
            RecordSource::Trace => {
                if let Err(error) = set.read(&[&folders.dir], watch) {
                    summary.remarks.insert(error.to_string());
                }
                Vec::new()
            }
            RecordSource::Log => {
                summary.read_logs(&folders.dir, since_ns);
                // Calls that are not in a log yet.
                rings::own(folders)
            }
        };
        for file in files {
            // One that cannot be read any more was just written and removed.
            let _ = set.read(&[file], watch);
        }
        set.finish(watch);
        summary.remarks.extend(set.troubles.iter().map(ToString::to_string));
        let mut stems = Vec::new();
        for process in set.processes().filter(|process| process.origin.born_ns >= since_ns) {
            summary.processes += 1;
            stems.push(files::stem(&process.origin));
            summary.not_recorded += process.not_recorded;
            summary.overwritten += process.overwritten();
            summary.evicted += process.evicted;
            summary.write_failures += process.write_failures;
            summary.in_memory += process.slots[1];
            if record_source == RecordSource::Log && liveness(&process.origin) == Liveness::Gone {
                summary.unlogged += 1;
                let pid = process.origin.pid;
                summary.remarks.insert(format!("process {pid} has ended, and not all that it did is in its log"));
            }
            for (_, sums) in process.functions() {
                summary.calls += sums.calls;
                summary.errors += sums.errors;
                summary.injected += sums.injected;
                summary.bytes = summary.bytes.saturating_add(sums.bytes);
            }
            for (rule, total) in process.judge.totals() {
                summary.known += total.known;
                let new = total.found.saturating_sub(total.known);
                if new > 0 {
                    let of_rule = summary.findings.entry(rule.clone()).or_default();
                    *of_rule = (of_rule.0.max(total.worst), of_rule.1 + new);
                }
            }
        }
        for (pid, uid) in rings::of_others(folders, since_ns) {
            summary.remarks.insert(format!(
                "process {pid} belongs to user {uid}: its records stay in memory; `aclshim collect` of that user writes them"
            ));
        }
        summary.look_into(&folders.dir, &stems, since_ns);
        (summary, set)
    }

    /// The files of the run, and what the shim itself had to say in them.
    fn look_into(&mut self, dir: &Path, stems: &[String], since_ns: u64) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let has_remarks = is_own_log(&name) && self.read_log(&entry.path(), since_ns);
            if has_remarks || stems.iter().any(|stem| name.starts_with(stem.as_str())) {
                self.files.push(name);
            }
        }
        self.files.sort();
        self.files.dedup();
    }

    /// Adds the messages of a log; whether there are any that are new.
    fn read_log(&mut self, path: &Path, since_ns: u64) -> bool {
        // Invalid settings were reported before the program started.
        let lines = lines_since(path, since_ns).into_iter().filter(|line| line["event"] != "setting");
        let messages: Vec<String> = lines.filter_map(|line| Some(line["message"].as_str()?.to_owned())).collect();
        let is_new = !messages.is_empty();
        self.remarks.extend(messages);
        is_new
    }

    /// Adds up what the logs say of processes that have ended since.
    fn read_logs(&mut self, dir: &Path, since_ns: u64) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let lines = if name.ends_with(".jsonl") { lines_since(&entry.path(), since_ns) } else { continue };
            let before = self.processes;
            for line in lines {
                let number = |key: &str| line[key].as_u64().unwrap_or(0);
                let rule = || line["rule"].as_str().unwrap_or_default().to_owned();
                match line["event"].as_str() {
                    Some("finding") => {
                        let on = line["on"].as_str().map_or_else(String::new, |on| format!(" on {on}"));
                        let worst = line["severity"].as_str().and_then(|name| super::severity(name).ok());
                        let of_rule = self.findings.entry(rule() + &on).or_default();
                        of_rule.0 = of_rule.0.max(worst);
                    }
                    Some("findings") => {
                        self.known += number("known");
                        self.findings.entry(rule()).or_default().1 += number("found").saturating_sub(number("known"));
                    }
                    Some("stopped") => {
                        self.processes += 1;
                        self.calls += number("calls");
                        self.errors += number("errors");
                        self.bytes = self.bytes.saturating_add(number("bytes"));
                        self.not_recorded += number("not_recorded");
                        self.overwritten += number("overwritten");
                    }
                    _ => {}
                }
            }
            if self.processes > before {
                self.files.push(name);
            }
        }
        self.findings.retain(|_, (_, count)| *count > 0);
    }

    /// Whether any call was seen.
    pub fn has_calls(&self) -> bool {
        self.has_counts() || self.unlogged > 0
    }

    fn has_counts(&self) -> bool {
        self.calls + self.not_recorded + self.evicted > 0
    }

    /// How many findings are at least that bad.
    pub fn findings_from(&self, severity: Severity) -> u64 {
        self.findings.values().filter(|(worst, _)| *worst >= Some(severity)).map(|(_, count)| count).sum()
    }

    /// The summary as text; `dir` as the user would type it. `why_none`: why there is no call, if that was not reported.
    pub fn text(&self, dir: &Path, command: &str, why_none: Option<&str>) -> String {
        let mut text = String::new();
        let mut say = |line: String| _ = writeln!(text, "aclshim: {line}");
        if let Some(why) = why_none.filter(|_| !self.has_calls()) {
            say(format!("no call was seen ({why})"));
        }
        let processes = if self.processes == 1 { "1 process".into() } else { format!("{} processes", self.processes) };
        let (calls, errors) = (plural(self.calls, "call"), plural(self.errors, "error"));
        if self.has_counts() {
            say(format!("{calls}, {}, {errors} in {processes}", human(self.bytes)));
        }
        if self.injected > 0 {
            say(format!("{} of them struck by an injection, as asked for", self.injected));
        }
        for remark in self.remarks.iter().take(8) {
            say(remark.clone());
        }
        if self.has_calls() {
            let mut findings: Vec<_> = self.findings.iter().collect();
            findings.sort_by_key(|(rule, (worst, count))| (std::cmp::Reverse((*worst, *count)), rule.as_str()));
            let known = if self.known > 0 { format!(" ({} known and not counted)", self.known) } else { String::new() };
            match findings.iter().map(|(_, (_, count))| count).sum::<u64>() {
                0 if self.is_whole() => say(format!("no rule is broken{known}")),
                0 => say(format!("no rule is broken in what was recorded{known}")),
                all => say(format!("{}{known}:", plural(all, "finding"))),
            }
            for (rule, (worst, count)) in findings {
                say(format!("  {:<12}{count:>6} x {rule}", worst.map_or("", Severity::name)));
            }
            say(self.losses(dir));
            self.remedies(dir, command).into_iter().for_each(&mut say);
        }
        if !self.files.is_empty() {
            let shown = self.files.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
            let more = if self.files.len() > 4 { ", ..." } else { "" };
            say(format!("trace and log in {}: {shown}{more}", dir.display()));
            let next = if self.findings.is_empty() { "stat" } else { "findings" };
            say(format!("next: {command} {next} {}", dir.display()));
        }
        text
    }

    /// Whether everything was recorded and is still there.
    pub fn is_whole(&self) -> bool {
        self.not_recorded + self.overwritten + self.evicted == 0 && self.unlogged == 0
    }

    /// What can be done about losses.
    fn remedies(&self, dir: &Path, command: &str) -> Vec<String> {
        let mut remedies = Vec::new();
        if self.not_recorded > 0 {
            remedies.push("  a larger ACLSHIM_RING_SIZE, or ACLSHIM_RECORD=lossless, keeps all calls".into());
        } else if self.overwritten > 0 {
            remedies.push("  a larger ACLSHIM_RING_SIZE keeps more of them".into());
        }
        if self.write_failures > 0 && self.in_memory > 0 {
            let dir = dir.display();
            remedies
                .push(format!("  when {dir} can be written, or to another directory: {command} recover --out {dir}"));
        }
        remedies
    }

    fn losses(&self, dir: &Path) -> String {
        let failed = format!("to {} failed", dir.display());
        let losses = [
            (self.not_recorded, "call", "not recorded"),
            (self.overwritten, "slot", "overwritten"),
            (self.evicted, "call", "removed to stay within ACLSHIM_BUDGET"),
            (self.write_failures, "write", failed.as_str()),
            (self.in_memory, "slot", "still in memory"),
        ];
        let losses = losses.into_iter().filter(|(count, ..)| *count > 0);
        let lost: Vec<String> = losses.map(|(count, what, how)| format!("{} {how}", plural(count, what))).collect();
        if lost.is_empty() { "nothing was lost".into() } else { format!("losses: {}", lost.join(", ")) }
    }
}

/// The lines of a log that were written since.
fn lines_since(path: &Path, since_ns: u64) -> Vec<Value> {
    let text = text_of(path);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["time_ns"].as_u64().is_some_and(|time| time >= since_ns)).collect()
}

/// The text of a plain file: anything else, such as a pipe, could keep us for ever.
fn text_of(path: &Path) -> String {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let mut text = String::new();
    if let Ok(mut file) = OpenOptions::new().read(true).custom_flags(flags).open(path)
        && file.metadata().is_ok_and(|about| about.is_file())
        && file.read_to_string(&mut text).is_err()
    {
        text.clear();
    }
    text
}

/// `aclshim-PID.jsonl`: what the shim itself writes.
fn is_own_log(name: &str) -> bool {
    let number = name.strip_prefix("aclshim-").and_then(|rest| rest.strip_suffix(".jsonl"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
