//! `aclshim verify`: whether traces are whole, and if not, where.

pub mod copy;
mod coverage;
mod process;
pub mod repair;
pub mod segment;
mod verdict;

use crate::files::{self, FileKind};
use crate::output::escape;
use crate::output::progress;
use crate::reading::traces::say_ignored;
use aclshim_collect::liveness::{self, Liveness};
use aclshim_collect::ownership::{Ignored, Owners};
use aclshim_collect::trace_set::{ProcessKey, process_key};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{RingFileError, RingReader};
use anyhow::Result;
use process::{Balance, ProcessFiles, RingContent};
use segment::CheckedSegment;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use verdict::{FileNote, FileState, FileVerdict};

/// Arguments of `aclshim verify`.
#[derive(clap::Args)]
#[command(after_help = "Exit status:\n  \
    0  all of it is whole\n  \
    1  something is damaged or missing\n  \
    2  something cannot be read at all\n\n\
    Examples:\n  \
    aclshim verify aclshim-out\n  \
    aclshim verify --json aclshim-out/aclshim-1234-*.acltrace | jq '.files[].problems'")]
pub struct Arguments {
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Judge each path as if the others were not there: copies of the same trace do not make up for each other
    #[arg(long)]
    apart: bool,
    /// An ACLSHIM_DIR (with the rings of processes that named it), a trace, a ring file or a log
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// The JSON object that is printed.
#[derive(Serialize)]
struct VerifyAnswer {
    state: FileState,
    files: Vec<FileVerdict>,
    processes: Vec<Balance>,
    /// Rings of other users that name what was asked about: they do not count.
    ignored_rings: Vec<PathBuf>,
}

/// Looks at everything, and says how it is.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let mut answer =
        VerifyAnswer { state: FileState::Whole, files: Vec::new(), processes: Vec::new(), ignored_rings: Vec::new() };
    let mut ignored = BTreeSet::new();
    let most = if arguments.apart { 1 } else { arguments.paths.len() };
    for paths in arguments.paths.chunks(most) {
        let mut check = Check::default();
        paths.iter().for_each(|path| check.path(path));
        ignored.append(&mut check.ignored);
        let one = check.finish();
        answer.state = answer.state.max(one.state);
        answer.files.extend(one.files);
        answer.processes.extend(one.processes);
    }
    say_ignored(&ignored);
    answer.ignored_rings = ignored.into_iter().map(|ring| ring.path).collect();
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&answer)?);
    } else {
        answer.files.iter().for_each(|file| print!("{}", escape::lines(&file.text())));
        answer.processes.iter().for_each(|process| outln!("{}", process.text()));
    }
    Ok(ExitCode::from(answer.state as u8))
}

impl Balance {
    fn text(&self) -> String {
        let mut text = format!("process {} on {}: {} calls", self.pid, escape::line(&self.host), self.calls);
        let others = [
            (self.in_ring, "only in its ring"),
            (self.not_recorded, "not recorded"),
            (self.evicted, "removed to stay within ACLSHIM_BUDGET"),
            (self.overwritten, "slots overwritten"),
            (self.missing, "slots missing"),
        ];
        for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
            text += &format!(", {count} {what}");
        }
        text
    }
}

/// The files that have been checked.
#[derive(Default)]
struct Check {
    verdicts: Vec<FileVerdict>,
    seen: BTreeSet<PathBuf>,
    left: BTreeMap<ProcessKey, ProcessFiles>,
    /// Verdicts about traces that are cut off within their beginning.
    headless: Vec<usize>,
    /// Rings of other users.
    ignored: BTreeSet<Ignored>,
}

impl Check {
    fn path(&mut self, path: &Path) {
        // One that was never made may be named by rings.
        if path.is_dir() || (!path.exists() && path.extension().is_none()) {
            return self.directory(path);
        }
        match FileKind::of(path) {
            Ok(Some(FileKind::Trace)) => {
                if let Some(key) = self.trace(path) {
                    self.beside(&key, path);
                }
            }
            Ok(Some(FileKind::Ring)) => self.ring(path),
            Ok(Some(FileKind::Log)) => self.log(path),
            Ok(None) => self.unreadable(path, "not a file of aclshim's"),
            Err(error) => self.unreadable(path, &error.to_string()),
        }
    }

    fn unreadable(&mut self, path: &Path, why: &str) {
        let mut verdict = FileVerdict::new(path.to_owned(), None);
        verdict.unreadable(FileNote::new(why, "name an ACLSHIM_DIR, a *.acltrace, a *.ring or a *.jsonl"));
        self.verdicts.push(verdict);
    }

    /// First the rings: what is drained meanwhile is then in the trace.
    fn directory(&mut self, dir: &Path) {
        let before = self.verdicts.len();
        for ring in files::rings_of(dir, &mut self.ignored) {
            self.ring(&ring.path);
        }
        let found = || {
            Ok::<_, std::io::Error>((
                files::with_extension(dir, "ring")?,
                files::with_extension(dir, "acltrace")?,
                files::with_extension(dir, "jsonl")?,
            ))
        };
        let (rings, traces, logs) = match found() {
            Ok(found) => found,
            Err(_) if self.verdicts.len() > before => return,
            Err(error) => return self.unreadable(dir, &error.to_string()),
        };
        // Rings in this directory, whichever directory they name, including those that cannot be opened.
        for path in &rings {
            match (Owners::of(dir), std::fs::symlink_metadata(path)) {
                (Ok(owners), Ok(about)) if !owners.has(about.uid()) => {
                    self.ignored.insert(Ignored { path: path.clone(), uid: about.uid() });
                }
                _ => self.ring(path),
            }
        }
        for path in &traces {
            self.trace(path);
        }
        logs.iter().for_each(|path| self.log(path));
        if self.verdicts.len() == before {
            self.unreadable(dir, "no trace, ring or log is here");
        }
    }

    /// Whether a file has not been looked at yet.
    fn is_new(&mut self, path: &Path) -> bool {
        self.seen.insert(path.canonicalize().unwrap_or_else(|_| path.into()))
    }

    fn trace(&mut self, path: &Path) -> Option<ProcessKey> {
        if !self.is_new(path) {
            return None;
        }
        let bar = progress::of_file(path);
        let mut verdict = FileVerdict::new(path.to_owned(), Some(FileKind::Trace));
        let segment = segment::read(path, &mut verdict, |done| bar.set_position(done));
        bar.finish_and_clear();
        let number = self.verdicts.len();
        self.verdicts.push(verdict);
        let Some(segment) = segment else {
            self.headless.push(number);
            return None;
        };
        Some(self.add(number, segment))
    }

    fn add(&mut self, verdict: usize, segment: CheckedSegment) -> ProcessKey {
        let key = process_key(&segment.origin);
        let left = self.left.entry(key.clone()).or_insert_with(|| ProcessFiles::new(segment.origin.clone()));
        left.segments.push((verdict, segment));
        key
    }

    /// What there is of a process besides the trace that was asked about: its ring, and newer segments.
    fn beside(&mut self, key: &ProcessKey, path: &Path) {
        let is_of_trace = |ring: &RingReader| process_key(&Origin::new(ring.header())) == *key;
        let rings = files::counting_rings(path, path.parent(), is_of_trace, &mut self.ignored);
        let ring = rings.into_iter().next();
        let Some(left) = self.left.get_mut(key) else { return };
        if left.ring.is_none()
            && let Some(ring) = ring
        {
            left.liveness = liveness::of_ring(ring.file(), &left.origin);
            left.ring = Some(RingContent::new(&ring, None));
        }
        if let Some((_, segment)) = left.segments.last() {
            let (has_older, newer) = process::beside(path, segment);
            left.is_part |= has_older;
            left.goes_on_in = newer;
        }
    }

    fn ring(&mut self, path: &Path) {
        if !self.is_new(path) {
            return;
        }
        let number = self.verdicts.len();
        let mut verdict = FileVerdict::new(path.to_owned(), Some(FileKind::Ring));
        match RingReader::open(path) {
            Ok(file) => {
                let origin = Origin::new(file.header());
                let liveness = liveness::of_ring(file.file(), &origin);
                let ring = RingContent::new(&file, Some((number, &mut verdict)));
                let left = self.left.entry(process_key(&origin)).or_insert_with(|| ProcessFiles::new(origin));
                left.liveness = liveness;
                if ring.calls > 0 {
                    let what = format!("holds {} calls that are in no trace", ring.calls);
                    let remedy =
                        if left.liveness == Liveness::Gone { "`aclshim recover` writes them to a file" } else { "" };
                    verdict.remark(FileNote::new(what, remedy));
                }
                left.ring = Some(ring);
            }
            Err(why @ RingFileError::Short(..)) => {
                verdict.problem(FileNote::new(format!("the file was cut off: {why}"), "").at(0));
            }
            Err(why) => verdict.unreadable(FileNote::new(why.to_string(), "").at(0)),
        }
        self.verdicts.push(verdict);
    }

    fn log(&mut self, path: &Path) {
        if self.is_new(path) {
            let mut verdict = FileVerdict::new(path.to_owned(), Some(FileKind::Log));
            segment::log(path, &mut verdict);
            self.verdicts.push(verdict);
        }
    }

    fn finish(mut self) -> VerifyAnswer {
        let stems: Vec<String> = self.left.values().map(|left| files::stem(&left.origin)).collect();
        for number in std::mem::take(&mut self.headless) {
            let verdict = &mut self.verdicts[number];
            let name = verdict.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Its process is known by others of its files, and these are judged: it has nothing that they lack.
            let is_known = stems.iter().any(|stem| !stem.is_empty() && name.starts_with(stem.as_str()));
            let is_cut = verdict.path.metadata().is_ok_and(|about| about.len() < 1 << 15);
            if is_known
                && is_cut
                && verdict.state == FileState::Damaged
                && verdict.problems.iter().all(|note| note.what.contains("cut off"))
            {
                verdict.state = FileState::Whole;
                let problems = std::mem::take(&mut verdict.problems);
                verdict.remarks.extend(problems.into_iter().map(|note| FileNote {
                    what: format!("{}: whoever made it was killed; there is no record in it", note.what),
                    remedy: "`aclshim clean` removes it".into(),
                    ..note
                }));
            }
        }
        let processes = std::mem::take(&mut self.left);
        let processes: Vec<Balance> = processes.into_values().map(|left| left.judge(&mut self.verdicts)).collect();
        let state = self.verdicts.iter().map(|verdict| verdict.state).max().unwrap_or(FileState::Unreadable);
        VerifyAnswer { state, files: self.verdicts, processes, ignored_rings: Vec::new() }
    }
}
