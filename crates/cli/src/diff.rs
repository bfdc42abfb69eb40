//! `aclshim diff`: what is different between two runs.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim diff` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
