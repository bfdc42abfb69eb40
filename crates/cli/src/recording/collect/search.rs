//! Search for ring files in a folder that every user may write to, a bounded part at a time.
//!
//! New files come with their names, from inotify. All files are also looked at in rounds: some were there before, and
//! where too many come at once the system drops names. A round goes on where it stopped, so the caller can do its work
//! in between however many files there are, and rounds take a tenth of the time at most.

use super::system::{arrivals, read_names};
use aclshim_trace::reader::is_ring;
use std::fs::{self, File, ReadDir};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The shortest time from the end of a round to the beginning of the next.
const PAUSE: Duration = Duration::from_secs(1);
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

/// A search that goes on.
pub struct Search {
    folder: PathBuf,
    watch: Option<File>,
    entries: Option<ReadDir>,
    /// What the present round has taken.
    spent: Duration,
    due: Instant,
}

impl Search {
    /// Begins to watch the folder. Without inotify new files are found by rounds only.
    pub fn new(folder: &Path) -> Self {
        let watch = arrivals(folder);
        Self { folder: folder.to_owned(), watch, entries: None, spent: Duration::ZERO, due: Instant::now() }
    }

    /// What can be read when files have come.
    pub fn watch(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// Ring files that came, a few hundred at most.
    pub fn arrived(&mut self) -> Vec<PathBuf> {
        let Some(watch) = &self.watch else { return Vec::new() };
        let (names, is_overflown) = read_names(watch);
        if is_overflown {
            self.due = Instant::now();
        }
        names.into_iter().filter(|name| is_ring(name)).map(|name| self.folder.join(name)).collect()
    }

    /// Whether a round has begun and is not finished.
    pub fn is_in_round(&self) -> bool {
        self.entries.is_some()
    }

    /// Hands files of the present round to `each` until `time` has passed.
    pub fn advance(&mut self, time: Duration, mut each: impl FnMut(PathBuf)) -> Round {
        let begin = Instant::now();
        if self.entries.is_none() {
            if begin < self.due {
                return Round::Resting;
            }
            self.spent = Duration::ZERO;
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
        self.due = Instant::now() + PAUSE.max(self.spent * REST);
        Round::Finished
    }
}
