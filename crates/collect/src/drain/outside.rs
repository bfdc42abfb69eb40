//! The drain outside: one process that writes the records of all processes of a folder, living and dead.
//!
//! Nothing of it is in the processes themselves. It may be ended at any time, also by SIGKILL: what it has written is
//! marked in the rings, and the next one goes on there.

use crate::drain::Drain;
pub use crate::drain::drained::Drained;
use crate::liveness::{Liveness, View, of_ring};
use crate::storage::directory::is_unfinished;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, ReadMode, RingFile, RingFileError, RingReader};
use aclshim_trace::ring::layout::HEADER;
use aclshim_trace::system::clock::monotonic_ns;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

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
    /// Number of processes that were ever drained.
    opened: u64,
}

/// What one pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Slots written.
    pub slots: u64,
    /// Processes that are drained now.
    pub processes: usize,
    /// Whether a ring was half full: the next pass should follow at once.
    pub is_behind: bool,
}

/// Which processes are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Selection {
    /// All of them.
    All,
    /// Those of which something indicates that there is something to do.
    Indicated,
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
            opened: 0,
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

    /// What becomes of a file before it is opened to be drained; `None` if its records are wanted. It is not locked to find
    /// that out: another drain may want it.
    fn rejection(&mut self, path: &Path) -> Option<Considered> {
        // Another's file is none of ours, whatever it says.
        if self.others.contains(path) || own(path).is_none() {
            return Some(Considered::Foreign);
        }
        let dir = self.only.as_ref()?;
        let file = match RingReader::open(path) {
            Ok(file) => file,
            Err(RingFileError::NotOurs) => return Some(Considered::Unready),
            Err(_) => return Some(Considered::Foreign),
        };
        if Origin::new(file.header()).dir == *dir {
            return None;
        }
        self.others.insert(path.to_owned());
        Some(Considered::Foreign)
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
        if let Some(rejection) = self.rejection(&path) {
            return rejection;
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
        // For reading at first: a drain that watches the folder is woken when a file that was open for writing is closed, so that
        // two drains, or one and a file that it does not accept, would wake each other for ever.
        match RingFile::open(path).and_then(|file| reader::lock(file.file()).map(|()| file)) {
            Ok(file) if file.is_copy() && of_ring(file.file(), &Origin::new(file.header())) != Liveness::Gone => {
                if self.strange.len() < MOST_STRANGE {
                    let what = "format version 1, and its process may still run; it is read when the process has ended";
                    self.strange.insert(path.to_owned(), what.to_owned());
                }
                return None;
            }
            Ok(_) => {}
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
        }
        let file = RingFile::open_to_drain(path).ok()?;
        // The other one may have ended because it had removed the file.
        let about = own(path)?;
        if file.owner().ok()? != about.uid() || file.inode().ok()? != about.ino() {
            return None;
        }
        self.strange.remove(path);
        let mut drain = Drain::outside(file.header());
        if self.counts_kinds {
            drain.count_kinds();
        }
        self.opened += 1;
        Some(Drained::new(file, drain, self.opened))
    }

    /// Looks for processes that ended, writes what they have left, and hands those of which all is written to `done`.
    pub fn end(&mut self, done: impl FnMut(&mut Drained)) {
        self.end_of(Selection::All, done);
    }

    /// As [`end`](Self::end), and looks only at processes that are [suspected](Self::suspect).
    pub fn end_suspected(&mut self, done: impl FnMut(&mut Drained)) {
        let now = monotonic_ns();
        if self.drains.values().any(|one| one.is_suspected || one.has_ended && !one.is_resting(now)) {
            self.end_of(Selection::Indicated, done);
        }
    }

    fn end_of(&mut self, which: Selection, mut done: impl FnMut(&mut Drained)) {
        let now = monotonic_ns();
        let view = View::new();
        self.drains.retain(|_, one| {
            let is_asked = std::mem::take(&mut one.is_suspected) || which == Selection::All;
            let has_ended = || view.of_ring(one.file.file(), one.drain.origin()) == Liveness::Gone;
            one.has_ended = one.has_ended || is_asked && has_ended();
            let is_done = one.has_ended && !one.is_resting(now) && one.finish(now);
            if is_done {
                done(one);
            }
            !is_done
        });
    }

    /// A process may have ended; see [`end_suspected`](Self::end_suspected).
    pub fn suspect(&mut self, id: u64) {
        if let Some(one) = self.drains.values_mut().find(|one| one.id == id) {
            one.is_suspected = true;
        }
    }

    /// The id of the process with this ring file, if it is drained.
    pub fn id_of(&self, path: &Path) -> Option<u64> {
        self.drains.get(path).map(|one| one.id)
    }

    /// A writer of the process has woken its drain; see [`pass_announced`](Self::pass_announced).
    pub fn ring(&mut self, id: u64) {
        if let Some(one) = self.drains.values_mut().find(|one| one.id == id) {
            one.has_rung = true;
        }
    }

    /// Writes what there is.
    pub fn pass(&mut self) -> Passed {
        self.pass_as(ReadMode::Drain, Selection::All)
    }

    /// As [`pass`](Self::pass), for those processes whose writers have announced something since their last pass.
    pub fn pass_announced(&mut self) -> Passed {
        self.pass_as(ReadMode::Drain, Selection::Indicated)
    }

    /// As [`pass`](Self::pass), for the last pass for now: not even calls under way are waited for, where others have ended since.
    pub fn flush(&mut self) -> Passed {
        self.pass_as(ReadMode::Flush, Selection::All)
    }

    fn pass_as(&mut self, how: ReadMode, which: Selection) -> Passed {
        let now = monotonic_ns();
        let mut passed = Passed::default();
        for one in self.drains.values_mut().filter(|one| !one.has_ended) {
            passed.processes += 1;
            let is_retry = one.retry_ns().is_some();
            if one.is_resting(now) || which == Selection::Indicated && !is_retry && !one.has_news() {
                continue;
            }
            let of_process = one.pass(how, now);
            passed.slots += of_process.slots;
            passed.is_behind |= of_process.is_behind;
        }
        passed
    }

    /// Asks the writers of all processes to ring their doorbells. Returns whether the drain may sleep: no writer has announced
    /// anything since the last pass. Otherwise, and after the sleep, the caller calls [`stay_awake`](Self::stay_awake).
    pub fn announce_sleep(&self) -> bool {
        self.drains.values().for_each(Drained::announce_sleep);
        !self.drains.values().any(|one| one.has_news())
    }

    /// The drain does not sleep any more.
    pub fn stay_awake(&self) {
        self.drains.values().for_each(Drained::stay_awake);
    }

    /// When to try again what could not be written, by the monotonic clock.
    pub fn retry_ns(&self) -> Option<u64> {
        self.drains.values().filter_map(Drained::retry_ns).min()
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
