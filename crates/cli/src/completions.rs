//! `aclshim completions`: for the shell, and man pages.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim completions` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
