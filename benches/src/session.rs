//! The LTTng session that listens to the tracepoint of `c/lttng.c`: a daemon of our own, ended with the benchmark.

use crate::compiler;
use crate::host;
use crate::preload::Ready;
use crate::scratch::Scratch;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const DAEMON: &str = "lttng-sessiond";
/// Time that the daemon may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Calls that are made to see that something is written, and the least that a call takes in the file.
const PROBE: u64 = 1000;
const LEAST: u64 = 60;

/// A session that runs.
pub struct Session {
    name: String,
    home: PathBuf,
    trace: PathBuf,
    daemon: Child,
}

impl Session {
    /// Starts the daemon and a session, and sees that calls under `variant` end up in its files.
    pub fn start(scratch: &Scratch, variant: &Ready) -> Result<Self> {
        for program in ["lttng", DAEMON] {
            ensure!(compiler::runs(program), "there is no {program}");
        }
        let home = scratch.lttng();
        fs::create_dir_all(&home)?;
        // Root's programs all talk to the one daemon of the machine.
        ensure!(lttng(&home, &["list"]).is_err(), "another {DAEMON} is running");

        let mut daemon = Command::new(DAEMON);
        daemon.arg("--no-kernel").env("LTTNG_HOME", &home);
        let daemon = daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let name = format!("aclshim-bench-{}", std::process::id());
        let mut session = Self { name, trace: home.join("trace"), home, daemon };
        session.listen()?;

        host::run(variant, scratch, &["calls", &PROBE.to_string()])?;
        session.lttng(&["stop", &session.name])?;
        let written = length(&session.trace)?;
        ensure!(written >= PROBE * LEAST, "{PROBE} calls left only {written} bytes");
        session.lttng(&["start", &session.name])?;
        Ok(session)
    }

    /// Records a trace of `work`, to be read by another program.
    pub fn record(&self, work: impl FnOnce() -> Result<()>) -> Result<PathBuf> {
        let (name, trace) = (format!("{}-reading", self.name), self.home.join("reading"));
        self.lttng(&["create", &name, &format!("--output={}", trace.display())])?;
        let session = format!("--session={name}");
        self.lttng(&["enable-channel", "--userspace", &session, "--blocking-timeout=inf", "calls"])?;
        self.lttng(&["enable-event", "--userspace", &session, "--channel=calls", "aclshim_bench:*"])?;
        self.lttng(&["start", &name])?;
        let outcome = work();
        self.lttng(&["destroy", &name])?;
        outcome.map(|()| trace)
    }

    /// Does `work` while the channel that `lttng enable-event` makes by default is the only one that records: it discards
    /// records when it is full. Returns how many.
    pub fn by_default<T>(&self, trace: &Path, work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
        let name = format!("{}-keeping", self.name);
        self.lttng(&["stop", &self.name])?;
        self.lttng(&["create", &name, &format!("--output={}", trace.join("lttng").display())])?;
        let session = format!("--session={name}");
        self.lttng(&["enable-event", "--userspace", &session, "aclshim_bench:*"])?;
        self.lttng(&["start", &name])?;
        let outcome = work();
        self.lttng(&["stop", &name])?;
        let discarded = self.discarded_by(&name);
        self.lttng(&["destroy", &name])?;
        self.lttng(&["start", &self.name])?;
        Ok((outcome?, discarded?))
    }

    /// The process of the daemon; those that write traces are its children.
    pub fn daemon(&self) -> u32 {
        self.daemon.id()
    }

    /// Makes the session. Its channel is the one that `lttng` makes by default, but for the size of its files, and
    /// it waits when it is full: a burst whose records were thrown away would look fast.
    fn listen(&mut self) -> Result<()> {
        let begin = Instant::now();
        let output = format!("--output={}", self.trace.display());
        while let Err(error) = self.lttng(&["create", &self.name, &output]) {
            let ended = self.daemon.try_wait()?.is_some();
            ensure!(!ended && begin.elapsed() < START_TIMEOUT, "{DAEMON} does not answer: {error:#}");
            sleep(Duration::from_millis(100));
        }
        let session = format!("--session={}", self.name);
        let settings = ["--tracefile-size=16M", "--tracefile-count=2", "--blocking-timeout=inf"];
        self.lttng(&[&["enable-channel", "--userspace", &session, "calls"], &settings[..]].concat())?;
        self.lttng(&["enable-event", "--userspace", &session, "--channel=calls", "aclshim_bench:*"])?;
        self.lttng(&["start", &self.name])?;
        Ok(())
    }

    /// Number of records that it has discarded so far.
    pub fn discarded(&self) -> Result<f64> {
        self.discarded_by(&self.name)
    }

    fn discarded_by(&self, name: &str) -> Result<f64> {
        let listed = self.lttng(&["list", name])?;
        let number = listed.lines().find_map(|line| line.trim().strip_prefix("Discarded events:"));
        let number: Option<u64> = number.and_then(|number| number.trim().parse().ok());
        // LTTng 2.13 has been seen to report the number with the highest bit set. The other bits are right:
        // with the events that babeltrace2 counts they make up all calls.
        Ok((number.context("lttng says nothing of discarded events")? & (u64::MAX >> 1)) as f64)
    }

    fn lttng(&self, arguments: &[&str]) -> Result<String> {
        lttng(&self.home, arguments)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Whatever cannot be ended any more is not there any more.
        let _ = self.lttng(&["destroy", &self.name]);
        // Asked to end, it ends its own children too.
        let _ = Command::new("sh").args(["-c", &format!("kill -TERM {}", self.daemon.id())]).status();
        let _ = self.daemon.wait();
    }
}

/// Runs the command; returns what it prints.
fn lttng(home: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("lttng");
    let output = command.arg("--no-sessiond").args(arguments).env("LTTNG_HOME", home).stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "lttng {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The bytes of all records under a folder; what describes them is not counted.
fn length(folder: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            total += length(&entry.path())?;
        } else if entry.file_name().to_string_lossy().starts_with("calls_") {
            total += entry.metadata()?.len();
        }
    }
    Ok(total)
}
