//! A trial: the program is started once with the shim, and the outcome is reported.

use super::loader;
use super::report::{DoctorReport, Sight, many};
use aclshim_collect::interpreter::visitor::NoVisitor;
use aclshim_collect::trace_set::{Process, ReadOptions, TraceSet};
use aclshim_facts::settings::{DIR, DRAIN, MODE, RECORD, RING_DIR};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};

/// A folder that is removed when it is dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new(above: &Path) -> Result<Self> {
        let path = above.join(format!("aclshim-doctor-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The process id of the program that runs, for the signal handler that ends it; 0 if there is none.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// The signal that we were to end by.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn interrupted(signal: libc::c_int) {
    SIGNAL.store(signal, Ordering::Relaxed);
    end_program();
}

/// Passes the signal on, if there was one.
fn end_program() {
    let (program, signal) = (PROGRAM.load(Ordering::Relaxed), SIGNAL.load(Ordering::Relaxed));
    if program > 0 && signal > 0 {
        // SAFETY: a child that has not been waited for.
        unsafe { libc::kill(program, signal) };
    }
}

/// Ends the program and not us, as long as there are folders to be removed. (What the program starts with is not changed
/// by that: a handler does not outlast exec.)
struct Signals([(libc::c_int, libc::sighandler_t); 2]);

impl Signals {
    fn catch() -> Self {
        let handler = interrupted as extern "C" fn(libc::c_int);
        Self([libc::SIGINT, libc::SIGTERM].map(|signal| {
            // SAFETY: the handler stores a word and calls kill.
            unsafe {
                let before = libc::signal(signal, handler as libc::sighandler_t);
                if before == libc::SIG_IGN {
                    libc::signal(signal, before);
                }
                (signal, before)
            }
        }))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in self.0 {
            // SAFETY: as it was before.
            unsafe { libc::signal(signal, before) };
        }
    }
}

/// Starts the program and waits for its end.
fn wait_for(command: &mut Command) -> std::io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    PROGRAM.store(child.id() as i32, Ordering::Relaxed);
    end_program();
    let status = child.wait();
    PROGRAM.store(0, Ordering::Relaxed);
    status
}

/// Runs the program with the shim; what it prints goes to `output`.
pub fn run(report: &mut DoctorReport, shim: &Path, program: &[OsString], output: Stdio) -> Result<()> {
    let Some((name, arguments)) = program.split_first() else { return Ok(()) };
    report.group = "the run";
    let _signals = Signals::catch();
    let files = TemporaryFolder::new(&std::env::temp_dir())?;
    let rings = std::env::var_os(RING_DIR.variable).map_or_else(|| "/dev/shm".into(), PathBuf::from);
    let rings = TemporaryFolder::new(&rings)?;
    let out = files.0.join("out");
    let mut command = Command::new(name);
    command
        .args(arguments)
        .env("LD_PRELOAD", loader::with_preload(shim))
        .env(DIR.variable, &out)
        .env(RING_DIR.variable, &rings.0)
        .env_remove(DRAIN.variable)
        .env_remove(MODE.variable)
        .env_remove(RECORD.variable)
        // The loader itself writes down, beside the program, what it loads.
        .env("LD_DEBUG", "libs")
        .env("LD_DEBUG_OUTPUT", files.0.join("loader"));
    command.stdout(output);
    let status = match wait_for(&mut command) {
        Ok(status) => status,
        Err(why) => {
            report.problem("run", format!("it does not start: {why}"), "see whether it starts without the shim");
            return Ok(());
        }
    };
    if SIGNAL.load(Ordering::Relaxed) > 0 {
        bail!("the run was interrupted");
    }
    let loaded = loaded(&files.0, shim);
    let mut set = TraceSet::new(ReadOptions { ring_folders: vec![rings.0.clone()], ..ReadOptions::default() });
    set.read(&[&out], &mut NoVisitor).map_err(|error| anyhow::Error::msg(error.cause.to_string()))?;
    set.finish(&mut NoVisitor);
    let processes: Vec<&Process> = set.processes().collect();
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for (function, sums) in processes.iter().flat_map(|process| process.functions()).filter(|(_, sums)| sums.calls > 0)
    {
        *calls.entry(function).or_default() += sums.calls;
    }
    if status.success() {
        report.ok("run", "it ended with exit status 0");
    } else {
        report.warning("run", format!("it ended with {status}"), "see whether it does so without the shim");
    }
    let total: u64 = calls.values().sum();
    if total > 0 {
        report.sight = Some(Sight::Yes);
        report.ok("calls", format!("{} seen", many(total as usize, "call")));
        for (function, count) in &calls {
            report.ok("calls", format!("{count:>9} x {function}"));
        }
    } else if loaded > 0 {
        report.sight = Some(Sight::Unknown);
        let remedy = "does it copy at all? What cannot be seen: docs/seeing.md";
        report.warning("calls", "the shim was loaded, and nothing was copied", remedy);
    } else {
        report.problem("calls", "the shim was not loaded", "see above for what is in the way; or try aclshim dropin");
    }
    for process in &processes {
        let origin = &process.origin;
        let or = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
        report.ok(
            "passed-on",
            format!(
                "process {} passed its calls on to {} (build id {}), product {}, CANN {}",
                origin.pid,
                or(&origin.library.to_string_lossy()),
                or(&origin.build_id),
                or(&origin.product),
                or(&origin.cann)
            ),
        );
    }
    let about = |process: &&Process| {
        let origin = &process.origin;
        json!({
            "pid": origin.pid,
            "executable": origin.executable.to_string_lossy(),
            "library": origin.library.to_string_lossy(),
            "build_id": origin.build_id,
            "product": origin.product,
            "cann": origin.cann,
        })
    };
    report.trial = Some(json!({
        "status": status.code(),
        "loaded": loaded,
        "calls": calls,
        "processes": processes.iter().map(about).collect::<Vec<_>>(),
    }));
    Ok(())
}

/// In how many processes the loader has loaded the shim.
fn loaded(folder: &Path, shim: &Path) -> usize {
    let line = format!("calling init: {}", shim.display());
    let files = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    files.filter(|file| fs::read(file).is_ok_and(|text| String::from_utf8_lossy(&text).contains(&line))).count()
}
