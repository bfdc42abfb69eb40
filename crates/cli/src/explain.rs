//! `aclshim explain`: a rule or a return code, in words.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim explain` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
