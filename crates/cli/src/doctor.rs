//! `aclshim doctor`: what would be seen of a program, and what is in the way.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim doctor` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
