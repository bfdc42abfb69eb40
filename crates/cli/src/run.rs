//! `aclshim run`: runs a program under the shim.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim run` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
