//! `aclshim config`: the settings and where they come from.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim config` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
