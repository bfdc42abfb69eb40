//! `aclshim recover`: what a dead process has left in its ring.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim recover` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
