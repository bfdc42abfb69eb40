//! `aclshim collect`: drains the rings of all processes of this user from outside.

use aclshim_collect::outside::Outside;
use anyhow::{Result, bail};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long it goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until everything that is there now has been written.
    Once,
    /// Until somebody ends it.
    Ended,
}

/// Drains what is in `folder`.
pub fn collect(folder: &Path, until: Until) -> Result<()> {
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
        if passed.slots == 0 && until == Until::Once {
            return Ok(());
        }
        nap = if passed.slots == 0 { (nap * 5 / 4).min(Duration::from_millis(4)) } else { Duration::from_micros(500) };
        std::thread::sleep(nap);
    }
}
