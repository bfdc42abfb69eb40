//! `aclshim export`: traces for other tools.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim export` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
