//! A program that runs while its rings are drained.

use super::child::{Child, ProgramEnd};
use super::plan::{Plan, RunRequest};
use super::rings::{self, RingDrainer, RunFolders};
use super::summary::RecordSource;
use super::{NOT_FOUND, NOT_STARTED, program, say};
use crate::recording::executable::find;
use aclshim_trace::system::clock::realtime_ns;
use anyhow::{Context, Result};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

/// A run that is over.
pub struct CompletedRun {
    pub end: ProgramEnd,
    pub pid: u32,
    /// Where its records are.
    pub folders: RunFolders,
    /// Its processes were born after this moment.
    pub since_ns: u64,
    pub duration_ns: u64,
    pub record_source: RecordSource,
    /// Why no call could be seen.
    pub silent: Option<&'static str>,
    still_running: Vec<u32>,
    /// The process id of the collector that goes on writing, if one is needed.
    collector: std::io::Result<Option<u32>>,
}

impl RunRequest<'_> {
    /// Runs it to its end; the inner error is the status of a program that could not be started.
    pub fn run(&self) -> Result<Result<CompletedRun, ExitCode>> {
        let name = &self.command[0];
        let found = find(name);
        let about = found.as_deref().map(program::look).unwrap_or_default();
        let plan = Plan::new(self, about.sanitizer.as_deref())?;
        if !self.quiet {
            for complaint in &plan.complaints {
                say(format_args!("aclshim: {complaint}"));
            }
            if let (Some(obstacle), Some(path)) = (about.obstacle, &found) {
                say(format_args!("aclshim: {} {}", path.display(), obstacle.sentence()));
            }
        }
        let command = self.command.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        let since_ns = realtime_ns();
        let child = match Child::start(&command, &plan.environment).context("the program could not be started")? {
            Ok(child) => child,
            Err(why) => {
                let said = why.to_string();
                // "No such file or directory (os error 2)"
                let said = said.split(" (os error").next().unwrap_or_default();
                say(format_args!("aclshim: {}: {said}{}", name.display(), not_started_hint(name, &why)));
                let is_missing = why.raw_os_error() == Some(libc::ENOENT);
                return Ok(Err(ExitCode::from(if is_missing { NOT_FOUND } else { NOT_STARTED })));
            }
        };
        let pid = child.id();
        let rings = RingDrainer::start(&plan.folders);
        let end = child.wait();
        let duration_ns = realtime_ns().saturating_sub(since_ns);
        let going_on = rings.finish();
        let still_running = rings::still_running(&plan.marks);
        let collector =
            (going_on > 0 || !still_running.is_empty()).then(|| rings::detach(&plan.folders, &plan.marks)).transpose();
        let Plan { folders, record_source, silent, .. } = plan;
        Ok(Ok(CompletedRun {
            end,
            pid,
            folders,
            since_ns,
            duration_ns,
            record_source,
            silent,
            still_running,
            collector,
        }))
    }
}

impl CompletedRun {
    /// Whether no process of the run goes on.
    pub fn is_over(&self) -> bool {
        matches!(self.collector, Ok(None))
    }

    /// Reports which processes go on, and whether a collector writes their records.
    pub fn say_who_goes_on(&self, quiet: bool) {
        if let Some(line) = about_collector(&self.still_running, &self.collector).filter(|_| !quiet) {
            say(format_args!("aclshim: {line}"));
        }
        if let Err(why) = &self.collector {
            say(format_args!(
                "aclshim: no collector could be left behind ({why}): records stay in memory, see `aclshim collect`"
            ));
        }
    }
}

/// Why a file that is there is not found, and the like.
fn not_started_hint(name: &OsStr, why: &std::io::Error) -> &'static str {
    match why.raw_os_error() {
        Some(libc::ENOENT) if Path::new(name).exists() => " (the interpreter or loader that it names is missing)",
        Some(libc::ENOENT) if !name.as_bytes().contains(&b'/') => " (not on PATH)",
        _ => "",
    }
}

fn about_collector(still_running: &[u32], collector: &std::io::Result<Option<u32>>) -> Option<String> {
    let Ok(Some(collector)) = collector else { return None };
    let numbers = still_running.iter().take(8).map(u32::to_string).collect::<Vec<_>>().join(", ");
    let who = match still_running.len() {
        0 => "processes of the program still run".into(),
        1 => format!("process {numbers} of the program still runs"),
        _ => format!("processes {numbers} of the program still run"),
    };
    Some(format!("{who}: a collector (process {collector}) goes on writing until they have ended"))
}
