//! `aclshim report`: one page for the browser.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// What `aclshim report` is told.
#[derive(clap::Args)]
pub struct Arguments {}

/// Does it.
pub fn main(_arguments: Arguments) -> Result<ExitCode> {
    bail!("not built yet")
}
