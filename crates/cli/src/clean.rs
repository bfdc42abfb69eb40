//! `aclshim clean`: removes what is no longer needed.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim clean` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
