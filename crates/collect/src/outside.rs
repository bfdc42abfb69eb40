//! The drain outside: one process that writes the records of all processes of a folder, living and dead.
//!
//! Nothing of it is in the processes themselves. It may be ended at any time, also by SIGKILL: what it has written is
//! marked in the rings, and the next one goes on there.

use crate::adoption::{self, is_gone};
use crate::drain::Drain;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, Reading, RingFile};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The processes that are drained.
pub struct Outside {
    folder: PathBuf,
    pid_ns: u64,
    /// Where the records of those go that are wanted; all are if there is none.
    only: Option<PathBuf>,
    /// Those that are not.
    others: BTreeSet<PathBuf>,
    drains: BTreeMap<PathBuf, Drained>,
}

struct Drained {
    file: RingFile,
    drain: Drain,
}

/// What one pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Slots written.
    pub slots: u64,
    /// Processes that are drained now.
    pub processes: usize,
}

impl Outside {
    /// All processes of our own user whose ring files are in `folder`.
    pub fn new(folder: &Path) -> Self {
        crate::install();
        let pid_ns = std::fs::metadata("/proc/self/ns/pid").map_or(0, |about| about.ino());
        Self { folder: folder.to_owned(), pid_ns, only: None, others: BTreeSet::new(), drains: BTreeMap::new() }
    }

    /// Takes only those whose records go to `dir`.
    pub fn only(&mut self, dir: &Path) {
        self.only = Some(dir.to_owned());
    }

    /// Whether a file's records are wanted. It is not taken to find that out: another drain may want it.
    fn is_wanted(&mut self, path: &Path) -> bool {
        let Some(dir) = &self.only else { return true };
        if self.others.contains(path) {
            return false;
        }
        let Ok(file) = RingFile::open(path) else { return false };
        let is_wanted = Origin::new(file.header()).dir == *dir;
        if !is_wanted {
            self.others.insert(path.to_owned());
        }
        is_wanted
    }

    /// Looks for processes that came or ended.
    pub fn look(&mut self) {
        // SAFETY: asks for our own number.
        let me = unsafe { libc::geteuid() };
        for path in reader::files(&self.folder).unwrap_or_default() {
            let is_ours = || std::fs::symlink_metadata(&path).is_ok_and(|about| about.uid() == me);
            if self.drains.contains_key(&path) || !is_ours() || !self.is_wanted(&path) {
                continue;
            }
            // One that another drain has is that one's, and comes to us if it ends.
            if let Ok(file) = RingFile::open_to_drain(&path) {
                let drain = Drain::new(file.header(), "outside");
                self.drains.insert(path, Drained { file, drain });
            }
        }
        let gone: Vec<PathBuf> =
            self.drains.iter().filter(|(_, one)| self.has_ended(one)).map(|(path, _)| path.clone()).collect();
        for path in gone {
            if let Some(Drained { file, drain }) = self.drains.remove(&path) {
                adoption::finish_with(file, drain);
            }
        }
    }

    /// Of a process in another pid namespace nobody here can tell.
    fn has_ended(&self, one: &Drained) -> bool {
        let origin = Origin::new(one.file.header());
        origin.pid_ns == self.pid_ns && is_gone(&origin)
    }

    /// Writes what there is.
    pub fn pass(&mut self) -> Passed {
        let mut passed = Passed { slots: 0, processes: self.drains.len() };
        for Drained { file, drain } in self.drains.values_mut() {
            file.look_for_rings();
            passed.slots += drain.pass(file.header(), |number| file.ring(number), Reading::Drain);
        }
        passed
    }
}
