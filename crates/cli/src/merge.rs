//! `aclshim merge`: several traces as one.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim merge` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
