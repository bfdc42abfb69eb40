//! `aclshim verify`: whether traces are whole.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim verify` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
