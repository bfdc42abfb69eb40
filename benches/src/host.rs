//! One child process: a program under one variant, and the numbers it printed.

use crate::preload::Ready;
use crate::sample::Samples;
use crate::scratch::Scratch;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The numbers that the host printed, by key.
pub struct Printed(BTreeMap<String, Samples>);

impl Printed {
    /// The lines of a host, each a key and a number.
    pub fn parse(stdout: &[u8]) -> Result<Self> {
        let mut printed = BTreeMap::<String, Samples>::new();
        for line in String::from_utf8_lossy(stdout).lines() {
            let number = line.split_once(' ').and_then(|(key, number)| Some((key, number.parse().ok()?)));
            let (key, number) = number.with_context(|| format!("the host printed {line:?}"))?;
            printed.entry(key.into()).or_default().push(number);
        }
        Ok(Self(printed))
    }

    /// The numbers under a key.
    pub fn all(&self, key: &str) -> Result<&Samples> {
        self.0.get(key).with_context(|| format!("the host printed no {key}"))
    }

    /// The number under a key that was printed once.
    pub fn one(&self, key: &str) -> Result<f64> {
        self.all(key)?.max().context("a key has a number")
    }
}

/// A program with the variant in front of it, and nothing else in its environment.
pub fn command(program: impl AsRef<OsStr>, variant: &Ready, scratch: &Scratch) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null()).current_dir(&scratch.log);
    command.env("ACLSHIM_RING_DIR", &scratch.ring).env("ACLSHIM_DIR", &scratch.log);
    command.env("LTTNG_HOME", scratch.lttng());
    command.envs(variant.row.settings.iter().copied());
    if let Some(library) = &variant.library {
        command.env("LD_PRELOAD", library);
    }
    command
}

/// Runs the host; returns what it printed.
pub fn run(variant: &Ready, scratch: &Scratch, arguments: &[impl AsRef<str>]) -> Result<Printed> {
    let (printed, ()) = run_and(variant, scratch, arguments, || Ok(()))?;
    Ok(printed)
}

/// Runs another form of the host; returns what it printed.
pub fn run_as(program: &Path, variant: &Ready, scratch: &Scratch, arguments: &[impl AsRef<str>]) -> Result<Printed> {
    let (printed, ()) = run_program(program, variant, scratch, arguments, || Ok(()))?;
    Ok(printed)
}

/// As [`run_as`], and reads what the host left before it is removed.
pub fn run_and<T>(
    variant: &Ready,
    scratch: &Scratch,
    arguments: &[impl AsRef<str>],
    look: impl FnOnce() -> Result<T>,
) -> Result<(Printed, T)> {
    run_program(&scratch.host, variant, scratch, arguments, look)
}

fn run_program<T>(
    program: &Path,
    variant: &Ready,
    scratch: &Scratch,
    arguments: &[impl AsRef<str>],
    look: impl FnOnce() -> Result<T>,
) -> Result<(Printed, T)> {
    let name = &variant.name;
    let output = command(program, variant, scratch)
        .args(arguments.iter().map(AsRef::as_ref))
        .output()
        .context("the host cannot be run")?;
    // The loader only warns of a library that it cannot preload, and the call would be a direct one.
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && errors.is_empty(), "{name}: {}: {errors}", output.status);
    let seen = look().with_context(|| name.to_owned())?;
    variant.row.leaves.check(&scratch.sweep()?).with_context(|| name.to_owned())?;
    Ok((Printed::parse(&output.stdout).with_context(|| name.to_owned())?, seen))
}
