//! The children of a run: hosts, busy loops, and `aclshim` beside them.

use super::place::Place;
use crate::host::{self, Printed};
use crate::preload::Ready;
use crate::scratch::Scratch;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Larger than any trace of a run: what was recorded stays until it is counted.
const BUDGET: &str = "16G";

/// A host under a variant with the folders of `place`.
pub fn host(variant: &Ready, scratch: &Scratch, place: &Place, arguments: &[&str]) -> Command {
    let mut command = prepared(&scratch.host, variant, scratch, place);
    command.args(arguments);
    command
}

/// As [`host`], under `aclshim run`.
pub fn host_under_run(variant: &Ready, scratch: &Scratch, place: &Place, arguments: &[&str]) -> Command {
    let mut command = prepared(scratch.built.join("aclshim"), variant, scratch, place);
    command.env_remove("LD_PRELOAD").args(["run", "--quiet", "--"]).arg(&scratch.host).args(arguments);
    command
}

fn prepared(program: impl AsRef<OsStr>, variant: &Ready, scratch: &Scratch, place: &Place) -> Command {
    let mut command = host::command(program, variant, scratch);
    command.env("ACLSHIM_RING_DIR", &place.rings).env("ACLSHIM_DIR", &place.out).env("ACLSHIM_BUDGET", BUDGET);
    // However busy the machine is: calls before the registration would be neither recorded nor counted.
    command.env("LTTNG_UST_REGISTER_TIMEOUT", "-1");
    command.current_dir(&place.out).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A host that has ended.
pub struct Ended {
    /// The numbers that it printed.
    pub printed: Printed,
    /// The most shared memory that the rings took, in KiB.
    pub ring_kib: f64,
    /// Time from its start to its end.
    pub seconds: f64,
}

/// Runs a host to its end; `tick` is called now and then until then.
pub fn run(mut command: Command, place: &Place, mut tick: impl FnMut(&Child)) -> Result<Ended> {
    let begin = Instant::now();
    let mut child = Running(command.spawn().context("the host cannot be run")?);
    let mut ring_kib = 0f64;
    while child.0.try_wait()?.is_none() {
        tick(&child.0);
        ring_kib = ring_kib.max(place.ring_kib());
        sleep(Duration::from_millis(1));
    }
    let seconds = begin.elapsed().as_secs_f64();
    let printed = child.printed()?;
    let ring_kib = printed.one("ring_kib").map_or(ring_kib, |said| said.max(ring_kib));
    Ok(Ended { printed, ring_kib, seconds })
}

/// A child that is killed and waited for, should it still run when it is not needed any more.
pub struct Running(pub Child);

impl Running {
    /// Waits for its end; the numbers that it printed.
    pub fn printed(&mut self) -> Result<Printed> {
        let (stdout, errors) = (read(self.0.stdout.take())?, read(self.0.stderr.take())?);
        let status = self.0.wait()?;
        let errors = String::from_utf8_lossy(&errors);
        ensure!(status.success() && errors.is_empty(), "{status}: {errors}");
        Printed::parse(&stdout)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn read(from: Option<impl std::io::Read>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        from.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Busy loops, twice as many as processors; ended when dropped.
pub struct BusyLoops(#[expect(dead_code, reason = "only dropped")] Vec<Running>);

impl BusyLoops {
    /// Starts them.
    pub fn start(scratch: &Scratch) -> Result<Self> {
        let count = 2 * std::thread::available_parallelism()?.get();
        let spin = |_| Ok(Running(Command::new(&scratch.host).arg("spin").stdin(Stdio::null()).spawn()?));
        Ok(Self((0..count).map(spin).collect::<Result<_>>()?))
    }
}

/// What `aclshim stat --json` says of `place`.
pub struct Stat(Value);

impl Stat {
    /// Of the traces and the rings.
    pub fn of(scratch: &Scratch, place: &Place) -> Result<Self> {
        Self::asked(scratch, place, &place.rings)
    }

    /// Of the traces alone.
    pub fn of_traces(scratch: &Scratch, place: &Place) -> Result<Self> {
        Self::asked(scratch, place, &place.empty)
    }

    fn asked(scratch: &Scratch, place: &Place, rings: &std::path::Path) -> Result<Self> {
        let mut command = Command::new(scratch.built.join("aclshim"));
        command.args(["stat", "--json"]).arg(&place.out).env("ACLSHIM_RING_DIR", rings);
        let output = command.output().context("aclshim cannot be run")?;
        ensure!(output.status.success(), "aclshim stat: {}", String::from_utf8_lossy(&output.stderr));
        Ok(Self(serde_json::from_slice(&output.stdout)?))
    }

    /// A total.
    pub fn total(&self, key: &str) -> Result<f64> {
        self.0[key].as_f64().with_context(|| format!("aclshim stat says no {key}"))
    }
}
