//! Where a test leaves its records: a folder of its own, so that tests may run side by side, gone if all went well.

use crate::config::InForce;
use aclshim_facts::settings::DIR;
use aclshim_trace::system::clock::realtime_ns;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder for records.
pub struct RecordFolder {
    pub path: PathBuf,
    /// The folder that it was made in, unless it was named.
    within: Option<PathBuf>,
}

impl RecordFolder {
    /// The one that was asked for, or a new one below `ACLSHIM_DIR` or `aclshim-out`.
    pub fn new(asked: Option<&Path>, config: Option<&Path>, program: &OsStr) -> Result<Self> {
        let of = |path: &Path| format!("the folder {}", path.display());
        if let Some(path) = asked {
            fs::create_dir_all(path).with_context(|| of(path))?;
            return Ok(Self { path: path.into(), within: None });
        }
        let in_force = InForce::read(config);
        let within = in_force.value(&DIR).map_or(PathBuf::from("aclshim-out"), PathBuf::from);
        let program = Path::new(program).file_name().unwrap_or(program).to_string_lossy();
        let plain = |letter: char| if letter.is_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
        let name: String = program.chars().take(60).map(plain).collect();
        let path = within.join(format!("test-{name}-{}-{}", std::process::id(), realtime_ns()));
        fs::create_dir_all(&within).with_context(|| of(&within))?;
        fs::create_dir(&path).with_context(|| of(&path))?;
        Ok(Self { path, within: Some(within) })
    }

    /// Whether it is removed at the end: the user has not named it.
    pub fn is_own(&self) -> bool {
        self.within.is_some()
    }

    /// Removes it, and the one that it was made in if nothing else is there.
    pub fn remove(&self) {
        if let Some(within) = &self.within {
            let _ = fs::remove_dir_all(&self.path);
            let _ = fs::remove_dir(within);
        }
    }
}
