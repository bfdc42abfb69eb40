//! The files that a child leaves. They are checked: a recorder that does not record would look fast.

use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;

/// The files that must exist after a run.
pub struct Leaves {
    /// In `ACLSHIM_RING_DIR`.
    pub ring: Left,
    /// In `ACLSHIM_DIR`.
    pub log: Left,
}

/// The files that must exist in one folder.
#[derive(Debug)]
pub enum Left {
    /// No file.
    Nothing,
    /// A file that is not empty and whose name has this end.
    File(&'static str),
    /// Any files or none.
    Anything,
}

/// The files that were found in the two folders.
pub struct Found {
    /// In `ACLSHIM_RING_DIR`.
    pub ring: Vec<File>,
    /// In `ACLSHIM_DIR`.
    pub log: Vec<File>,
}

/// A file that was found.
#[derive(Debug)]
pub struct File {
    name: String,
    length: u64,
}

impl Leaves {
    /// Nowhere.
    pub const NOTHING: Self = Self { ring: Left::Nothing, log: Left::Nothing };

    /// Fails if the files are not those that there must be.
    pub fn check(&self, found: &Found) -> Result<()> {
        self.ring.check("ACLSHIM_RING_DIR", &found.ring)?;
        self.log.check("ACLSHIM_DIR", &found.log)
    }
}

impl Left {
    fn check(&self, folder: &str, files: &[File]) -> Result<()> {
        let right = match self {
            Self::Nothing => files.is_empty(),
            Self::File(end) => files.iter().any(|file| file.length > 0 && file.name.ends_with(end)),
            Self::Anything => true,
        };
        ensure!(right, "should leave {self:?} in {folder}, but left {files:?}");
        Ok(())
    }
}

/// Empties a folder; the files that were in it, at any depth.
pub fn swept(folder: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files.extend(swept(&entry.path())?);
            fs::remove_dir(entry.path())?;
        } else {
            let name = entry.file_name().to_string_lossy().into_owned();
            files.push(File { name, length: entry.metadata()?.len() });
            fs::remove_file(entry.path())?;
        }
    }
    Ok(files)
}
