//! `aclshim collect`: drains the rings of all processes of this user from outside.

use aclshim_collect::outside::Outside;
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What `aclshim collect` is told.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  aclshim collect &\n  LD_PRELOAD=/path/to/libaclshim.so ACLSHIM_DRAIN=outside ACLSHIM_DIR=out program"
)]
pub struct Arguments {
    /// Stop when everything that is there now has been written
    #[arg(long)]
    once: bool,
    /// The programs' ACLSHIM_RING_DIR
    #[arg(default_value = "/dev/shm", value_name = "RING_DIR")]
    folder: PathBuf,
}

/// Drains what is in the folder.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let folder = &arguments.folder;
    if !folder.is_dir() {
        bail!("{}: no such folder; it must be the ACLSHIM_RING_DIR of the programs", folder.display());
    }
    let mut outside = Outside::new(folder);
    let (mut looked, mut nap) = (None::<Instant>, Duration::from_millis(1));
    loop {
        if looked.is_none_or(|looked| looked.elapsed() > Duration::from_millis(100)) {
            outside.look();
            looked = Some(Instant::now());
        }
        let passed = outside.pass();
        if passed.slots == 0 && arguments.once {
            return Ok(ExitCode::SUCCESS);
        }
        nap = if passed.slots == 0 { (nap * 5 / 4).min(Duration::from_millis(4)) } else { Duration::from_micros(500) };
        std::thread::sleep(nap);
    }
}
