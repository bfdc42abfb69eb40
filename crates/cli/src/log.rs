//! `aclshim log`: the calls, one a line.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim log` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
