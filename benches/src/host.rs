//! One child: a program under one variant, and what it printed.

use crate::sample::Samples;
use crate::scratch::Scratch;
use crate::variant::{Leaves, Ready};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// A program with the variant in front of it, and nothing else in its environment.
pub fn command(program: impl AsRef<OsStr>, variant: &Ready, scratch: &Scratch) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null()).current_dir(&scratch.log);
    command.env("ACLSHIM_RING_DIR", &scratch.ring).env("ACLSHIM_DIR", &scratch.log);
    command.envs(variant.row.settings.iter().copied());
    if let Some(library) = &variant.library {
        command.env("LD_PRELOAD", library);
    }
    command
}

/// Runs the host; the numbers it printed, by key.
pub fn run(variant: &Ready, scratch: &Scratch, arguments: &[&str]) -> Result<BTreeMap<String, Samples>> {
    let name = variant.row.name;
    let output = command(&scratch.host, variant, scratch).args(arguments).output().context("the host cannot be run")?;
    // The loader only warns of a library that it cannot preload, and the call would be a direct one.
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && errors.is_empty(), "{name}: {}: {errors}", output.status);
    let left = match scratch.sweep()? {
        [true, _] => Leaves::Ring,
        [false, true] => Leaves::Log,
        [false, false] => Leaves::Nothing,
    };
    ensure!(left == variant.row.leaves, "{name} should leave {:?}, but it left {left:?}", variant.row.leaves);

    let mut printed = BTreeMap::<String, Samples>::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let number = line.split_once(' ').and_then(|(key, number)| Some((key, number.parse().ok()?)));
        let (key, number) = number.with_context(|| format!("{name}: the host printed {line:?}"))?;
        printed.entry(key.into()).or_default().push(number);
    }
    Ok(printed)
}
