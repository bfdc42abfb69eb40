//! Programs under `aclshim run`.

use crate::support::{Run, target};
use std::path::Path;

/// `aclshim run OPTIONS -- program`, on the simulated device.
pub fn under(options: &[&str], program: impl AsRef<Path>) -> Run {
    let run = Run::new(target("release/aclshim")).sim().arg("run");
    options.iter().fold(run, |run, option| run.arg(option)).arg("--").arg(program.as_ref())
}
