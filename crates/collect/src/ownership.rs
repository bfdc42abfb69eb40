//! Whose rings count for a directory.
//!
//! Any user can make a ring file that names any directory. What stands in it is shown and added up as calls of the programs
//! that write there, so it counts only if it belongs to the owner of the directory or to a user whom the reader trusts
//! anyway: root, and the reader.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The users whose rings count for a directory or a trace: its owner, root, and the user that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owners {
    owner: u32,
    reader: u32,
}

/// A ring that names a directory and does not count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ignored {
    /// Where it is.
    pub path: PathBuf,
    /// Whose it is.
    pub uid: u32,
}

impl Owners {
    /// Of a directory or a file. A process makes its directory when it has something to write: of one that is not there,
    /// the owner is that of the nearest folder above it.
    pub fn of(path: &Path) -> io::Result<Self> {
        // SAFETY: asks for our own number.
        let reader = unsafe { libc::geteuid() };
        match path.metadata() {
            Ok(about) => Ok(Self { owner: about.uid(), reader }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = std::path::absolute(path)?;
                let above = path.ancestors().skip(1).find_map(|above| above.metadata().ok());
                Ok(Self { owner: above.map_or(reader, |about| about.uid()), reader })
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the rings of a user count.
    pub fn has(&self, uid: u32) -> bool {
        [0, self.owner, self.reader].contains(&uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_owner_the_reader_and_root_count_and_nobody_else() {
        let scratch = Scratch::new("owners");
        let owner = std::fs::metadata(scratch.path()).unwrap().uid();
        // SAFETY: asks for our own number.
        let me = unsafe { libc::geteuid() };
        // One that is there, and one that is not made yet.
        for path in [scratch.path().to_owned(), scratch.path().join("a/b")] {
            let owners = Owners::of(&path).unwrap();
            assert!([0, owner, me].iter().all(|uid| owners.has(*uid)) && !owners.has(me + owner + 1));
        }
        assert!(Owners { owner: 5, reader: 6 }.has(5) && !Owners { owner: 5, reader: 6 }.has(7));
    }
}
