//! A program with the harness.
#![allow(dead_code)] // each test file uses its own part

use crate::support::Run;
use std::path::Path;

/// A program under the shim, without a thread of ours beside it.
pub fn seen(program: &Path, arguments: &[&str]) -> Run {
    let run = Run::new(program).sim().shim().env("ACLSHIM_DRAIN", "off");
    arguments.iter().fold(run, |run, argument| run.arg(argument))
}
