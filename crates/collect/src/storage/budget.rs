//! The byte budget of a directory: the oldest files make room for new ones.
//!
//! Only files that we made are counted and removed: the name ends in `.acltrace` or `.jsonl`, the
//! file is a regular one of our own user, and **it begins as ours do**. The last is what keeps a
//! user's own `dataset.jsonl` safe when `ACLSHIM_DIR` is a directory that holds other things. What
//! somebody holds (its lock) is counted and stays. A trace that ends before its beginning does is what
//! a kill has left.

use crate::json;
use crate::storage::directory::{Directory, Identity, hold, identity, is_unfinished};
use crate::storage::failure::{Failure, Report, Step};
use crate::storage::file_names::Kind;
use crate::storage::usage::{Record, Share, Unusable, Usage};
use aclshim_trace::segment::format::MAGIC;
use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};

/// How many candidates one look at the directory keeps in memory.
const KEPT: usize = 4096;
/// The smallest segment that is made where room is short.
const SMALLEST: u64 = 64 << 10;

/// How large files and their sum may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// A file that would become longer is followed by a new one (`ACLSHIM_SEGMENT`).
    pub segment: u64,
    /// All our files of a directory together (`ACLSHIM_BUDGET`).
    pub budget: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { segment: 64 << 20, budget: 1 << 30 }
    }
}

impl Sizes {
    /// How long a file may become: four of them must fit, or a process alone would break the
    /// budget with the two files that it holds.
    pub fn longest(self) -> u64 {
        self.segment.min((self.budget / 4).max(SMALLEST)).max(1)
    }
}

/// A file that may be removed; the order is by age.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    written: (i64, i64),
    name: OsString,
    bytes: u64,
    identity: Identity,
}

/// What a new file may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// How long it may become.
    pub limit: u64,
    /// What of that is in the directory's total.
    pub share: Share,
}

/// Makes sure that one more segment fits, and says how long that segment may become: where room could not be made, a
/// short one, so that it can soon be removed. `first` is what the file is expected to take.
///
/// The directory is looked through only when its [total](crate::storage::usage) says that there is no room.
pub(crate) fn make_room(directory: &Directory, sizes: Sizes, first: u64, report: &mut Report) -> Result<Room, Failure> {
    let longest = sizes.longest();
    let usage = match Usage::open(directory) {
        Ok(usage) => Some(usage),
        Err(Unusable::Foreign) => None,
        // Its holder makes room. This file is counted when it grows, or by the next look.
        Err(Unusable::Busy) => return Ok(Room { limit: longest, share: Share { until: first, counted: 0 } }),
    };
    let share = Share { until: first, counted: first };
    if let Some(usage) = &usage
        && let Some(record) = usage.read()
        && let Some(limit) = limit_by_total(record, sizes, report)
    {
        usage.add(first);
        return Ok(Room { limit, share });
    }
    let Looked { sum, files, limit } = look_through(directory, sizes, report)?;
    if let Some(usage) = usage {
        let is_over = sum.saturating_add(longest) > sizes.budget;
        let retry_above = if is_over { sum.saturating_add(first).saturating_add(margin(files, sizes)) } else { 0 };
        usage.write(Record { total: sum.saturating_add(first), retry_above });
    }
    Ok(Room { limit, share })
}

/// The limit of a new file, if it can be known without a look at the directory.
fn limit_by_total(record: Record, sizes: Sizes, report: &mut Report) -> Option<u64> {
    let longest = sizes.longest();
    if record.total.saturating_add(longest) <= sizes.budget {
        return Some(longest);
    }
    // A record that says more than any look writes is not believed.
    let is_too_soon = record.total < record.retry_above && record.retry_above - record.total <= sizes.budget / 16;
    is_too_soon.then(|| {
        report.over_budget = record.total.saturating_sub(sizes.budget);
        short(longest)
    })
}

/// The limit of a file where room is short.
fn short(longest: u64) -> u64 {
    (longest / 16).max(SMALLEST).min(longest)
}

/// What a look through the directory gave.
struct Looked {
    /// The bytes of all files, at least.
    sum: u64,
    /// How many there are.
    files: u64,
    /// The limit of a new one.
    limit: u64,
}

/// Room that is made beyond what one segment needs: where there are many files, each look costs much, and should be
/// followed by many new files before the next one, also if it found nothing to remove. Few files are removed as late as
/// possible.
fn margin(files: u64, sizes: Sizes) -> u64 {
    const FEW: u64 = 64;
    (files.saturating_sub(FEW) << 10).min(sizes.budget / 16)
}

/// Removes the oldest files that no process holds until one more segment fits.
fn look_through(directory: &Directory, sizes: Sizes, report: &mut Report) -> Result<Looked, Failure> {
    let longest = sizes.longest();
    // Most of the time there is room for all that goes by such a name, and no file need be opened to find out whether
    // it is ours: a short program is not to wait for that at its end.
    let (files, sum) = sum_of_names(directory)?;
    let wanted = longest.saturating_add(margin(files, sizes));
    if sum.saturating_add(wanted) <= sizes.budget {
        return Ok(Looked { sum, files, limit: longest });
    }
    loop {
        let (mut sum, files, oldest) = look(directory)?;
        let wanted = longest.saturating_add(margin(files, sizes));
        let before = report.removed_files;
        for candidate in oldest {
            if sum.saturating_add(wanted) <= sizes.budget {
                break;
            }
            if remove(directory, &candidate) {
                sum = sum.saturating_sub(candidate.bytes);
                report.note_removed(directory.path().join(&candidate.name), candidate.bytes);
            }
        }
        if sum.saturating_add(wanted) <= sizes.budget {
            return Ok(Looked { sum, files, limit: longest });
        }
        if report.removed_files == before {
            // The margin is a wish. Without it there may be room.
            let limit = if sum.saturating_add(longest) <= sizes.budget { longest } else { short(longest) };
            report.over_budget = sum.saturating_sub(sizes.budget);
            return Ok(Looked { sum, files, limit });
        }
    }
}

/// How many files have names like ours, and their sum.
fn sum_of_names(directory: &Directory) -> Result<(u64, u64), Failure> {
    let entries = std::fs::read_dir(directory.path());
    let entries = entries.map_err(|error| Failure::new(Step::List, directory.path(), &error))?;
    let named = entries.flatten().filter(|entry| kind(&entry.file_name()).is_some());
    let sizes = named.filter_map(|entry| Some(entry.metadata().ok()?.len()));
    Ok(sizes.fold((0, 0), |(files, sum), size| (files + 1, size.saturating_add(sum))))
}

/// The sum of all our files, how many they are, and the oldest ones.
fn look(directory: &Directory) -> Result<(u64, u64, Vec<Candidate>), Failure> {
    let failed = |error: &std::io::Error| Failure::new(Step::List, directory.path(), error);
    let (mut sum, mut files) = (0u64, 0u64);
    let mut oldest = BinaryHeap::new();
    for entry in std::fs::read_dir(directory.path()).map_err(|error| failed(&error))? {
        let Ok(entry) = entry else { continue };
        let name = entry.file_name();
        // Most files of a foreign directory are passed over by their name alone.
        let Some(kind) = kind(&name) else { continue };
        // Of the entry itself, not of what it may point to.
        let Ok(about) = entry.metadata() else { continue };
        let ours = own(&about)
            && directory.open_at(&name, libc::O_RDONLY).is_ok_and(|file| begins_as_ours(&file, kind, &about));
        if !ours {
            continue;
        }
        sum = sum.saturating_add(about.len());
        files += 1;
        let written = (about.mtime(), about.mtime_nsec());
        oldest.push(Candidate { written, name, bytes: about.len(), identity: identity(&about) });
        if oldest.len() > KEPT {
            oldest.pop();
        }
    }
    Ok((sum, files, oldest.into_sorted_vec()))
}

fn kind(name: &OsStr) -> Option<Kind> {
    let ends = |kind: Kind| {
        let start = name.as_bytes().strip_suffix(kind.extension().as_bytes());
        start.and_then(|start| start.strip_suffix(b".")).is_some()
    };
    [Kind::Trace, Kind::Log].into_iter().find(|kind| ends(*kind))
}

fn own(about: &Metadata) -> bool {
    // SAFETY: asks for a number; it cannot fail.
    about.is_file() && about.uid() == unsafe { libc::geteuid() }
}

fn begins_as_ours(file: &File, kind: Kind, about: &Metadata) -> bool {
    let mut begin = [0; 64];
    let read = file.read_at(&mut begin, 0).unwrap_or(0);
    let begin = begin.get(..read).unwrap_or_default();
    match kind {
        // One that is just being made is not held yet, and must not be taken away from the process that makes it.
        Kind::Trace => begin.starts_with(&MAGIC) || MAGIC.starts_with(begin) && is_unfinished(about),
        Kind::Log => json::begins_a_line(begin),
    }
}

/// Removes a file if it is still the one we looked at and no process holds it.
fn remove(directory: &Directory, candidate: &Candidate) -> bool {
    // Over NFS an exclusive lock needs a descriptor that may write.
    let Ok(file) = directory.open_at(&candidate.name, libc::O_RDWR) else { return false };
    let same = |about: Metadata| own(&about) && identity(&about) == candidate.identity;
    hold(&file) && file.metadata().is_ok_and(same) && directory.remove(&candidate.name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs;
    use std::time::{Duration, SystemTime};

    const LINE: &str = "{\"time_ns\":1,\"pid\":1,\"level\":\"info\",\"event\":\"note\"}\n";

    /// A file of `bytes` bytes, written `age` seconds ago.
    fn put(scratch: &Scratch, name: &str, begin: &[u8], bytes: usize, age: u64) -> File {
        let mut content = begin.to_vec();
        content.resize(bytes, b' ');
        fs::write(scratch.path().join(name), content).unwrap();
        let file = File::options().append(true).open(scratch.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        file
    }

    fn room(scratch: &Scratch, sizes: Sizes) -> (u64, Report) {
        let mut report = Report::default();
        let room = make_room(&Directory::open(scratch.path()).unwrap(), sizes, 1000, &mut report).unwrap();
        (room.limit, report)
    }

    const SIZES: Sizes = Sizes { segment: 100_000, budget: 400_000 };

    #[test]
    fn the_oldest_that_nobody_holds_makes_room() {
        let scratch = Scratch::new("oldest");
        let held = put(&scratch, "a.acltrace", &MAGIC, 150_000, 50);
        assert!(hold(&held));
        put(&scratch, "b.acltrace", &MAGIC, 100_000, 40);
        put(&scratch, "c.jsonl", LINE.as_bytes(), 100_000, 30);
        put(&scratch, "d.jsonl", LINE.as_bytes(), 40_000, 20);
        let (limit, report) = room(&scratch, SIZES);
        assert_eq!(scratch.names(), ["a.acltrace", "c.jsonl", "d.jsonl"]);
        assert_eq!((limit, report.removed_files, report.removed_bytes), (100_000, 1, 100_000));
        assert_eq!(report.removed[0].path, scratch.path().join("b.acltrace"));
    }

    #[test]
    fn nothing_is_removed_while_there_is_room() {
        let scratch = Scratch::new("room");
        put(&scratch, "a.jsonl", LINE.as_bytes(), 300_000, 9);
        assert_eq!(room(&scratch, SIZES), (100_000, Report::default()));
    }

    #[test]
    fn what_is_not_ours_is_neither_counted_nor_removed() {
        let scratch = Scratch::new("foreign");
        put(&scratch, "dataset.jsonl", b"{\"text\": \"a user's own\"}\n", 1_000_000, 90);
        put(&scratch, "empty.jsonl", b"", 0, 90);
        put(&scratch, "other.acltrace", b"something", 1_000_000, 90);
        put(&scratch, "model.bin", &MAGIC, 1_000_000, 90);
        put(&scratch, "target", LINE.as_bytes(), 1_000_000, 90);
        std::os::unix::fs::symlink(scratch.path().join("target"), scratch.path().join("link.jsonl")).unwrap();
        fs::create_dir(scratch.path().join("directory.jsonl")).unwrap();
        // Only root can give a file away; for others such a file is hard to come by.
        put(&scratch, "other-user.jsonl", LINE.as_bytes(), 1000, 90);
        if std::os::unix::fs::chown(scratch.path().join("other-user.jsonl"), Some(65534), None).is_ok() {
            fs::write(scratch.path().join("other-user.jsonl"), LINE.repeat(20_000)).unwrap();
        }
        let before = scratch.names();
        assert_eq!(room(&scratch, SIZES), (100_000, Report::default()));
        assert_eq!(scratch.names(), before);
    }

    #[test]
    fn where_all_is_in_use_the_next_segment_is_short() {
        let scratch = Scratch::new("all-held");
        let held = put(&scratch, "a.jsonl", LINE.as_bytes(), 500_000, 50);
        assert!(hold(&held));
        let (limit, report) = room(&scratch, SIZES);
        assert_eq!((limit, report.over_budget, report.removed_files), (SMALLEST, 100_000, 0));
    }

    #[test]
    fn four_segments_fit_into_a_budget() {
        assert_eq!(Sizes::default().longest(), 64 << 20);
        assert_eq!(Sizes { segment: 64 << 20, budget: 1 << 20 }.longest(), 256 << 10);
        assert_eq!(Sizes { segment: 0, budget: 0 }.longest(), 1);
    }
}
