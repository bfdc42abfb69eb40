//! The drain outside: one process that writes the records of all processes of a folder, living and dead.
//!
//! Nothing of it is in the processes themselves. It may be ended at any time, also by SIGKILL: what it has written is
//! marked in the rings, and the next one goes on there.

use crate::drain::Drain;
use crate::drain::adoption;
use crate::liveness::{Liveness, View};
use crate::storage::directory::is_unfinished;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, ReadMode, RingFile, RingFileError, RingReader};
use aclshim_trace::ring::layout::HEADER;
use aclshim_trace::system::clock::monotonic_ns;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What could not be written is tried again after so long.
const FAILED_NAP_NS: u64 = 20_000_000;
/// What a process that is gone has left is tried again after this long: nothing is lost meanwhile.
const ENDED_NAP_NS: u64 = 1_000_000_000;

/// Files of another format that are named: each is looked for again in every round.
const MOST_STRANGE: usize = 1000;

/// The processes that are drained.
pub struct Outside {
    folder: PathBuf,
    /// How many files are held at most.
    most: usize,
    waiting: usize,
    /// Number of waiting files that the present round has found so far.
    waiting_now: usize,
    counts_kinds: bool,
    /// Where the records of those go that are wanted; all are if there is none.
    only: Option<PathBuf>,
    /// Those that are not, and those that were let go.
    others: BTreeSet<PathBuf>,
    /// Those of another format, and what is said of them.
    strange: BTreeMap<PathBuf, String>,
    drains: BTreeMap<PathBuf, Drained>,
}

/// A process that is drained.
pub struct Drained {
    /// Its ring file.
    pub file: RingFile,
    /// What writes its records.
    pub drain: Drain,
    /// It is gone, but what it has left cannot be written.
    has_ended: bool,
    /// Until then nothing is tried.
    rests_until: u64,
}

/// What one pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Slots written.
    pub slots: u64,
    /// Processes that are drained now.
    pub processes: usize,
}

/// What became of a ring file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Considered {
    /// It is drained.
    Drained,
    /// It is not finished yet, another drain has it, or as many are held as may be.
    Unready,
    /// It is another user's, or not wanted.
    Foreign,
}

impl Outside {
    /// All processes of our own user whose ring files are in `folder`.
    pub fn new(folder: &Path) -> Self {
        crate::log::install();
        Self {
            folder: folder.to_owned(),
            most: usize::MAX,
            waiting: 0,
            waiting_now: 0,
            counts_kinds: false,
            only: None,
            others: BTreeSet::new(),
            strange: BTreeMap::new(),
            drains: BTreeMap::new(),
        }
    }

    /// Counts calls by the kind of copy, too.
    pub fn count_kinds(&mut self) {
        self.counts_kinds = true;
    }

    /// Holds at most `most` files; the others wait.
    pub fn hold_at_most(&mut self, most: usize) {
        self.most = most;
    }

    /// Takes only those whose records go to `dir`.
    pub fn only(&mut self, dir: &Path) {
        self.only = Some(dir.to_owned());
    }

    /// Whether a file's records are wanted. It is not taken to find that out: another drain may want it.
    fn is_wanted(&mut self, path: &Path) -> bool {
        if self.others.contains(path) {
            return false;
        }
        let Some(dir) = &self.only else { return true };
        // Another's file is none of ours, whatever it says.
        if own(path).is_none() {
            return false;
        }
        let Ok(file) = RingReader::open(path) else { return false };
        let is_wanted = Origin::new(file.header()).dir == *dir;
        if !is_wanted {
            self.others.insert(path.to_owned());
        }
        is_wanted
    }

    /// Looks for processes that came or ended.
    pub fn look(&mut self) {
        self.find();
        self.end(|_| ());
    }

    /// Looks for processes that came.
    pub fn find(&mut self) {
        for path in reader::files(&self.folder).unwrap_or_default() {
            self.consider(path);
        }
        self.end_round();
    }

    /// Looks at one ring file, and drains it from now on if it is one of ours.
    pub fn consider(&mut self, path: PathBuf) -> Considered {
        if self.drains.contains_key(&path) {
            return Considered::Drained;
        }
        if !self.is_wanted(&path) || own(&path).is_none() {
            return Considered::Foreign;
        }
        if self.drains.len() >= self.most {
            self.waiting_now += 1;
            return Considered::Unready;
        }
        match self.open(&path) {
            Some(found) => {
                self.drains.insert(path, found);
                Considered::Drained
            }
            None => Considered::Unready,
        }
    }

    /// All files have been looked at, one by one.
    pub fn end_round(&mut self) {
        let is_there = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok();
        self.others.retain(is_there);
        self.strange.retain(|path, _| is_there(path));
        self.waiting = std::mem::take(&mut self.waiting_now);
    }

    /// Files that have to wait until others are done with: more are not held at a time.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    fn open(&mut self, path: &Path) -> Option<Drained> {
        // Others' files are not even opened. Whose it is that was opened is asked again: names can change meanwhile, and
        // a header says which files are written as us.
        let about = own(path)?;
        let file = match RingFile::open_to_drain(path) {
            Ok(file) => file,
            Err(RingFileError::NotOurs) if is_unfinished(&about) && is_forsaken(path) => {
                let _ = std::fs::remove_file(path);
                return None;
            }
            Err(why @ RingFileError::Version(_)) if self.strange.len() < MOST_STRANGE => {
                self.strange.insert(path.to_owned(), why.to_string());
                return None;
            }
            // One that another drain has is that one's, and comes to us if it ends.
            Err(_) => return None,
        };
        // The other one may have ended because it had removed the file.
        let about = own(path)?;
        if file.owner().ok()? != about.uid() || file.inode().ok()? != about.ino() {
            return None;
        }
        if file.is_copy() && View::new().of_ring(file.file(), &Origin::new(file.header())) != Liveness::Gone {
            if self.strange.len() < MOST_STRANGE {
                let what = "format version 1, and its process may still run; it is read when the process has ended";
                self.strange.insert(path.to_owned(), what.to_owned());
            }
            return None;
        }
        self.strange.remove(path);
        let mut drain = Drain::outside(file.header());
        if self.counts_kinds {
            drain.count_kinds();
        }
        Some(Drained { file, drain, has_ended: false, rests_until: 0 })
    }

    /// Looks for processes that ended, writes what they have left, and hands those of which all is written to `done`.
    pub fn end(&mut self, mut done: impl FnMut(&mut Drained)) {
        let now = monotonic_ns();
        let view = View::new();
        self.drains.retain(|_, one| {
            one.has_ended = one.has_ended || view.of_ring(one.file.file(), one.drain.origin()) == Liveness::Gone;
            if now < one.rests_until {
                return true;
            }
            let is_done = one.has_ended && adoption::finish_with(&mut one.file, &mut one.drain);
            if is_done {
                done(one);
            } else if one.has_ended {
                one.rests_until = now + ENDED_NAP_NS;
            }
            !is_done
        });
    }

    /// Writes what there is.
    pub fn pass(&mut self) -> Passed {
        self.pass_as(ReadMode::Drain)
    }

    /// As [`pass`](Self::pass), for the last pass for now: not even calls under way are waited for, where others have ended since.
    pub fn flush(&mut self) -> Passed {
        self.pass_as(ReadMode::Flush)
    }

    fn pass_as(&mut self, how: ReadMode) -> Passed {
        let now = monotonic_ns();
        let mut passed = Passed::default();
        for Drained { file, drain, rests_until, .. } in self.drains.values_mut().filter(|one| !one.has_ended) {
            passed.processes += 1;
            if now < *rests_until {
                continue;
            }
            file.look_for_rings();
            passed.slots += drain.pass(file.header(), |number| file.ring(number), how);
            *rests_until = if drain.is_well() { 0 } else { now + FAILED_NAP_NS };
        }
        passed
    }

    /// The files of another format, which are passed over, and what is to be said of them.
    pub fn strange(&self) -> &BTreeMap<PathBuf, String> {
        &self.strange
    }

    /// Where as many files are held as may be, hands all to `each` and lets them go for good, so that others have their
    /// turn; whether it was so.
    pub fn let_go(&mut self, each: impl FnMut(&mut Drained)) -> bool {
        if self.drains.len() < self.most {
            return false;
        }
        self.drains.values_mut().for_each(each);
        self.others.extend(std::mem::take(&mut self.drains).into_keys());
        true
    }

    /// The processes that are drained, and those that are gone and could not be written yet.
    pub fn drained(&mut self) -> impl Iterator<Item = &mut Drained> {
        self.drains.values_mut()
    }
}

/// What is known of a plain file of our own user.
fn own(path: &Path) -> Option<std::fs::Metadata> {
    // SAFETY: asks for our own number.
    let me = unsafe { libc::geteuid() };
    std::fs::symlink_metadata(path).ok().filter(|about| about.is_file() && about.uid() == me)
}

/// Whether a file is as long as a header and says nothing yet, and nobody has it any more: its process was killed while it
/// made it. (One that is only stopped goes on in time.)
fn is_forsaken(path: &Path) -> bool {
    let mut begin = [1; 8];
    let open = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    open.is_ok_and(|file| {
        let is_short = file.metadata().is_ok_and(|about| about.len() <= HEADER as u64);
        let is_blank = is_short && file.read_at(&mut begin, 0).is_ok_and(|read| read == 0 || begin == [0; 8]);
        is_blank && reader::is_alone(&file) == Some(true)
    })
}
