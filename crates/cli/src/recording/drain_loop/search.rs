//! Search for ring files in a folder that every user may write to, a bounded part at a time.
//!
//! New files come with their names, from inotify. All files are also looked at in rounds: some were there before, and
//! where too many come at once the system drops names. A round goes on where it stopped, so the caller can do its work
//! in between however many files there are, and rounds take a tenth of the time at most.

use super::poll::{Change, Watched, read_changes, watch};
use aclshim_trace::reader::is_ring;
use std::fs::{self, File, ReadDir};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The shortest time from the end of a round to the beginning of the next: where the folder is watched, and else.
const PAUSES: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(1)];
/// The pause after a round, as a multiple of the time that was spent on it.
const REST: u32 = 9;
/// Entries of the folder between two looks at the clock.
const STRIDE: usize = 16;

/// How far a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// No round is due.
    Resting,
    /// The round is not over: there are more files.
    Unfinished,
    /// All files have been looked at.
    Finished,
}

/// Ring files that changed.
#[derive(Default)]
pub struct Changes {
    /// Those that came.
    pub arrived: Vec<PathBuf>,
    /// Those that were open for writing and have been closed.
    pub closed: Vec<PathBuf>,
}

/// A search that goes on.
pub struct Search {
    folder: PathBuf,
    watch: Option<File>,
    entries: Option<ReadDir>,
    /// What the present round has taken.
    spent: Duration,
    /// The next round does not begin before this.
    rests_until: Instant,
    due: Instant,
    /// Whether the caller has asked for the next round.
    is_requested: bool,
}

impl Search {
    /// Begins to watch the folder. Without inotify new files are found by rounds only.
    pub fn new(folder: &Path, watched: Watched) -> Self {
        let (watch, now) = (watch(folder, watched), Instant::now());
        Self {
            folder: folder.to_owned(),
            watch,
            entries: None,
            spent: Duration::ZERO,
            rests_until: now,
            due: now,
            is_requested: true,
        }
    }

    /// What can be read when the folder has changed.
    pub fn watch(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// Ring files that changed, a few hundred at most.
    pub fn changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        for change in self.watch.as_ref().map(read_changes).unwrap_or_default() {
            match change {
                Change::Arrived(name) if is_ring(&name) => changes.arrived.push(self.folder.join(name)),
                Change::Closed(name) if is_ring(&name) => changes.closed.push(self.folder.join(name)),
                Change::Overflow => self.request(Duration::ZERO),
                _ => {}
            }
        }
        changes.closed.dedup();
        changes
    }

    /// Whether a round has begun and is not finished.
    pub fn is_in_round(&self) -> bool {
        self.entries.is_some()
    }

    /// Has the next round begin after `time` at the latest, or as soon as the last one has been rested from.
    pub fn request(&mut self, time: Duration) {
        self.allow(time);
        self.is_requested = true;
    }

    /// Has the next round begin when the caller is next awake after `time`.
    pub fn allow(&mut self, time: Duration) {
        self.due = self.due.min(Instant::now() + time).max(self.rests_until);
    }

    /// When the caller has to [go on](Self::advance); `None` if a later round will do, whenever the caller is awake.
    pub fn due(&self) -> Option<Instant> {
        (self.is_requested || self.watch.is_none()).then_some(self.due)
    }

    /// Hands files of the present round to `each` until `time` has passed.
    pub fn advance(&mut self, time: Duration, mut each: impl FnMut(PathBuf)) -> Round {
        let begin = Instant::now();
        if self.entries.is_none() {
            if begin < self.due {
                return Round::Resting;
            }
            self.spent = Duration::ZERO;
            // A request from here on is for the next round: files may have changed where this one has been.
            self.is_requested = false;
            self.due = begin + PAUSES[0];
            self.entries = fs::read_dir(&self.folder).ok();
        }
        let mut is_over = self.entries.is_none();
        while let Some(entries) = &mut self.entries {
            let mut count = 0;
            for entry in entries.by_ref().take(STRIDE) {
                count += 1;
                if let Ok(entry) = entry
                    && is_ring(&entry.file_name())
                {
                    each(entry.path());
                }
            }
            is_over = count < STRIDE;
            if is_over || begin.elapsed() >= time {
                break;
            }
        }
        self.spent += begin.elapsed();
        if !is_over {
            return Round::Unfinished;
        }
        self.entries = None;
        let now = Instant::now();
        self.rests_until = now + self.spent * REST;
        let pause = PAUSES[usize::from(self.watch.is_none())];
        self.due = if self.is_requested { self.due } else { now + pause }.max(self.rests_until);
        Round::Finished
    }
}
