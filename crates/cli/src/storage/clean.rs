//! `aclshim clean`: removes what is no longer needed, and nothing that is not ours or that is in use.

use crate::files::{self, FileKind};
use crate::output::escape;
use crate::storage::recover::unread;
use aclshim_collect::drain::Drain;
use aclshim_collect::drain::adoption::write_all;
use aclshim_collect::liveness::{self, Liveness};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, RingFile, RingReader};
use aclshim_trace::segment::format::MAGIC;
use aclshim_trace::segment::reader::{SegmentErrorKind, SegmentReader};
use anyhow::{Result, anyhow};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `aclshim clean`.
#[derive(clap::Args)]
#[command(
    after_help = "Removed are ring files of ended processes that hold nothing unread, and traces that a kill has left without \
    a record. A file of a process that runs, or that somebody writes to, stays.\n\n\
    Examples:\n  \
    aclshim clean --dry-run --rings\n  \
    aclshim clean --older-than 7d aclshim-out"
)]
pub struct Arguments {
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Also remove rings of ended processes that hold calls which are in no trace (see `aclshim recover`)
    #[arg(long)]
    force: bool,
    /// Also remove traces and logs that nobody has written to for so long: 45s, 30m, 12h, 7d
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// Look into ACLSHIM_RING_DIR and /dev/shm too
    #[arg(long)]
    rings: bool,
    /// A directory with traces or rings, or a single file
    #[arg(value_name = "PATH", required_unless_present = "rings")]
    paths: Vec<PathBuf>,
}

/// An age as people write it.
fn age(text: &str) -> Result<Duration> {
    let bad = || anyhow!("a number and s, m, h or d: 7d");
    let (unit, seconds) = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)]
        .into_iter()
        .find(|(unit, _)| text.ends_with(*unit))
        .ok_or_else(bad)?;
    let number: u64 = text.trim_end_matches(unit).parse().map_err(|_| bad())?;
    Ok(Duration::from_secs(number.checked_mul(seconds).ok_or_else(bad)?))
}

/// Age below which a file without a beginning may be about to be written.
const YOUNG: Duration = Duration::from_secs(60);

/// Removes what is not needed.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    aclshim_collect::log::install();
    let mut cleaning = Cleaning { arguments, files: 0, bytes: 0, failed: false, seen: BTreeSet::new() };
    let folders = if cleaning.arguments.rings { files::ring_folders() } else { Vec::new() };
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        cleaning.all(folder, reader::files(folder));
    }
    for path in cleaning.arguments.paths.clone() {
        if path.is_dir() {
            for end in ["ring", "acltrace", "jsonl"] {
                if !cleaning.all(&path, files::with_extension(&path, end)) {
                    break;
                }
            }
        } else if matches!(FileKind::of(&path), Ok(None)) {
            cleaning.fail(&path, "not a file of aclshim's: kept");
        } else {
            cleaning.file(&path);
        }
    }
    let would = if cleaning.arguments.dry_run { "would be " } else { "" };
    println!("{} files {would}removed, {} bytes", cleaning.files, cleaning.bytes);
    Ok(if cleaning.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

struct Cleaning {
    arguments: Arguments,
    files: u64,
    bytes: u64,
    failed: bool,
    seen: BTreeSet<PathBuf>,
}

impl Cleaning {
    fn fail(&mut self, path: &Path, why: &str) {
        self.failed = true;
        errln!("aclshim: {}: {}", escape::path(path), escape::line(why));
    }

    /// The files of a folder, if it could be read.
    fn all(&mut self, folder: &Path, found: io::Result<Vec<PathBuf>>) -> bool {
        match &found {
            Ok(files) => files.iter().for_each(|path| self.file(path)),
            Err(error) => self.fail(folder, &format!("cannot be read: {error}")),
        }
        found.is_ok()
    }

    fn file(&mut self, path: &Path) {
        if !self.seen.insert(path.canonicalize().unwrap_or_else(|_| path.into())) {
            return;
        }
        let outcome = match FileKind::of(path) {
            // Another's file, or none of ours.
            Ok(None) => Ok(()),
            Ok(Some(FileKind::Ring)) => self.ring(path),
            Ok(Some(kind)) => self.segment(path, kind),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = outcome {
            self.fail(path, &format!("{error:#}"));
        }
    }

    fn ring(&mut self, path: &Path) -> Result<()> {
        let seen = RingReader::open(path)?;
        let origin = Origin::new(seen.header());
        let me = files::own_user();
        let is_ours = std::fs::symlink_metadata(path)?.uid() == me;
        if !is_ours || liveness::of_ring(seen.file(), &origin) != Liveness::Gone {
            return Ok(());
        }
        drop(seen);
        // Under our lock no drain uses it; a ring that is being drained is not removed.
        let Ok(mut held) = RingFile::open_to_drain(path) else { return Ok(()) };
        // The name may stand for another file by now, and a header says which files are written as us.
        if held.owner()? != me {
            return Ok(());
        }
        let (slots, calls) = unread(&RingReader::open(path)?)?;
        if slots > 0 && !self.arguments.force {
            outln!(
                "{}: holds {calls} calls that are in no trace: kept (`aclshim recover`, or --force)",
                escape::path(path)
            );
            return Ok(());
        }
        // Its end, and what it has lost, may stand nowhere else.
        let mut drain = Drain::outside(held.header());
        let is_for_somebody = slots == 0 && origin.dir.is_dir() && !self.arguments.dry_run;
        if is_for_somebody && !write_all(&mut held, &mut drain) && !self.arguments.force {
            outln!(
                "{}: its end cannot be written to {}: kept (--force removes it)",
                escape::path(path),
                escape::path(&origin.dir)
            );
            return Ok(());
        }
        let what = if slots > 0 { format!(", with {calls} calls that are in no trace") } else { String::new() };
        self.remove(path, &format!("ring of process {}, which has ended{what}", origin.pid))
    }

    fn segment(&mut self, path: &Path, kind: FileKind) -> Result<()> {
        let file = files::open(path)?;
        let about = file.metadata()?;
        let age = about.modified()?.elapsed().unwrap_or_default();
        // The writer of a file holds a lock on it.
        // SAFETY: a descriptor of ours.
        let is_free = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0;
        if !is_free {
            return Ok(());
        }
        let is_old = self.arguments.older_than.is_some_and(|oldest| age >= oldest);
        if kind == FileKind::Trace && is_of_the_living(path) {
            return Ok(());
        }
        let why = match kind {
            FileKind::Trace if age >= YOUNG && has_no_record(&file)? => "a trace without a record, as a kill leaves it",
            FileKind::Trace if is_old && is_trace(path)? => "an old trace",
            FileKind::Log if is_old && is_log(&file) => "an old log",
            _ => return Ok(()),
        };
        self.remove(path, why)
    }

    fn remove(&mut self, path: &Path, why: &str) -> Result<()> {
        let about = std::fs::symlink_metadata(path)?;
        if self.arguments.dry_run {
            outln!("{}: {why}: would be removed", escape::path(path));
        } else {
            std::fs::remove_file(path)?;
            outln!("{}: {why}: removed", escape::path(path));
        }
        self.files += 1;
        self.bytes += about.blocks() * 512;
        Ok(())
    }
}

/// Whether the process of a trace runs.
fn is_of_the_living(path: &Path) -> bool {
    let reader = files::open(path).ok().and_then(|file| SegmentReader::open(file).ok());
    let origin = reader.and_then(|reader| Origin::from_bytes(&reader.header));
    origin.is_some_and(|origin| liveness::liveness(&origin) == Liveness::Alive)
}

/// Whether it is not only named so.
fn is_trace(path: &Path) -> Result<bool> {
    Ok(files::first_bytes(path)?.starts_with(&MAGIC))
}

/// Whether a trace ends before its first whole block. One that is damaged in another way is not.
fn has_no_record(file: &File) -> Result<bool> {
    let mut beginning = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut beginning)?;
    if beginning.len() < MAGIC.len() {
        return Ok(MAGIC.starts_with(&beginning));
    }
    let mut reader = match SegmentReader::open((&beginning[..]).chain(BufReader::new(file))) {
        Ok(reader) => reader,
        Err(stop) => return Ok(matches!(stop.kind, SegmentErrorKind::Short { .. })),
    };
    Ok(match reader.next_block() {
        Ok(block) => block.is_none(),
        Err(stop) => matches!(stop.kind, SegmentErrorKind::Short { .. }) && reader.next().is_none(),
    })
}

/// Whether the first line is one of ours.
fn is_log(file: &File) -> bool {
    let mut line = String::new();
    let read = BufReader::new(file.take(1 << 16)).read_line(&mut line);
    let value = serde_json::from_str::<serde_json::Value>(&line);
    read.is_ok() && value.is_ok_and(|value| value["time_ns"].is_u64() && value["event"].is_string())
}

#[cfg(test)]
mod tests {
    use super::age;
    use std::time::Duration;

    #[test]
    fn ages_are_read_as_people_write_them() {
        let seconds = |text| age(text).map(|age| age.as_secs()).ok();
        assert_eq!(["45s", "30m", "12h", "7d"].map(seconds), [Some(45), Some(1800), Some(43_200), Some(604_800)]);
        assert_eq!(["", "7", "d", "-1d", "1.5h", "99999999999999999d"].map(seconds), [None; 6]);
        assert_eq!(age("0s").unwrap(), Duration::ZERO);
    }
}
