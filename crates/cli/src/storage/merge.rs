//! `aclshim merge`: the traces and logs of several directories, processes and ranks in one directory.
//!
//! Segments stand for themselves, so this is a copy: each once, under a name that no other has. What is only in a ring
//! is written as one more segment.

use crate::files::{self, FileKind};
use crate::output::escape;
use crate::output::progress;
use crate::reading::traces::say_ignored;
use crate::storage::verify::copy;
use aclshim_collect::liveness;
use aclshim_collect::trace_set::{ProcessKey, is_same_folder, process_key};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::RingReader;
use aclshim_trace::segment::reader::SegmentReader;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `aclshim merge`.
#[derive(clap::Args)]
#[command(after_help = "What is in two places is taken once. The originals stay as they are.\n\n\
    Exit status:\n  \
    0  all is copied\n  \
    1  something is damaged (copied as it is; see `aclshim verify`) or cannot be read\n\n\
    Example:\n  \
    aclshim merge rank0/aclshim-out rank1/aclshim-out -o all\n  \
    aclshim stat all")]
pub struct Arguments {
    /// The directory to write to; it is made if it is not there
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// ACLSHIM_DIRs (with the rings of processes that named them), traces or ring files
    #[arg(required = true, value_name = "TRACE")]
    paths: Vec<PathBuf>,
}

/// Copies all traces, logs and rings that are named.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let out = &arguments.out;
    fs::create_dir_all(out).with_context(|| format!("{}: cannot be made", out.display()))?;
    let mut merge = Merge { out: out.clone(), segments: BTreeMap::new(), failed: false, copied: [0; 3], doubles: 0 };
    // What is there from an earlier time.
    for path in files::with_extension(out, "acltrace")? {
        if let Some(found) = look(&path) {
            merge.segments.insert(found.identity(), (path, found.good));
        }
    }
    let (mut rings, mut traces, mut logs) = (Vec::new(), Vec::new(), Vec::new());
    let mut ignored = BTreeSet::new();
    for path in &arguments.paths {
        // One that was never made may be named by rings.
        if path.is_dir() || (!path.exists() && path.extension().is_none()) {
            if is_same_folder(path, out) {
                bail!("{}: cannot be merged into itself", path.display());
            }
            let before = rings.len();
            rings.extend(files::rings_of(path, &mut ignored));
            if !path.exists() && rings.len() > before {
                continue;
            }
            let named = |end| files::with_extension(path, end).with_context(|| path.display().to_string());
            traces.extend(named("acltrace")?);
            logs.extend(named("jsonl")?);
            continue;
        }
        match FileKind::of(path).with_context(|| path.display().to_string())? {
            Some(FileKind::Ring) => rings.push(RingReader::open(path).with_context(|| path.display().to_string())?),
            Some(FileKind::Trace) => traces.push(path.clone()),
            Some(FileKind::Log) => logs.push(path.clone()),
            None => bail!("{}: not a file of aclshim's", path.display()),
        }
    }
    say_ignored(&ignored);
    // The rings are looked at before the traces: what is drained meanwhile is then in both, and not in neither.
    rings.iter().for_each(|ring| merge.ring(ring));
    traces.iter().for_each(|path| merge.trace(path));
    logs.iter().for_each(|path| merge.log(path));
    let [traces, logs, calls] = merge.copied;
    outln!(
        "{}: {traces} traces and {logs} logs copied, {} left out because they are there already; {calls} calls came from rings",
        out.display(),
        merge.doubles
    );
    Ok(if merge.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The identity of a segment: its process, time and number.
type SegmentIdentity = (ProcessKey, u64, u64);

struct Merge {
    out: PathBuf,
    /// Where each segment is, and how much of it is good.
    segments: BTreeMap<SegmentIdentity, (PathBuf, u64)>,
    failed: bool,
    /// Traces, logs, and calls that were only in rings.
    copied: [u64; 3],
    doubles: u64,
}

/// A segment that can be copied.
struct FoundSegment {
    key: ProcessKey,
    first_ns: u64,
    segment: u64,
    /// Number of intact bytes.
    good: u64,
    damage: Option<String>,
}

impl FoundSegment {
    fn identity(&self) -> SegmentIdentity {
        (self.key.clone(), self.first_ns, self.segment)
    }
}

/// Reads a segment to its end.
fn look(path: &Path) -> Option<FoundSegment> {
    let mut reader =
        SegmentReader::open(BufReader::with_capacity(1 << 20, progress::reading(path, files::open(path).ok()?)))
            .ok()?;
    let origin = Origin::from_bytes(&reader.header)?;
    reader.by_ref().for_each(drop);
    Some(FoundSegment {
        key: process_key(&origin),
        first_ns: reader.preamble.first_ns,
        segment: reader.preamble.segment,
        good: reader.good() - reader.lost(),
        damage: reader.damages().first().map(ToString::to_string),
    })
}

impl Merge {
    fn fail(&mut self, path: &Path, why: &str) {
        self.failed = true;
        errln!("aclshim: {}: {}", escape::path(path), escape::line(why));
    }

    /// A name that is free in the directory; a number tells files of two machines with one name apart.
    fn free(&self, name: &str, extension: &str) -> PathBuf {
        let names = (1..)
            .map(|turn| if turn == 1 { format!("{name}.{extension}") } else { format!("{name}+{turn}.{extension}") });
        let mut paths = names.map(|name| self.out.join(name));
        paths.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| self.out.join(name))
    }

    fn trace(&mut self, path: &Path) {
        // An empty file.
        if path.metadata().is_ok_and(|about| about.len() == 0) {
            return;
        }
        let Some(found) = look(path) else {
            return self.fail(path, "its beginning cannot be read: left out (see `aclshim verify`)");
        };
        let known = self.segments.get(&found.identity()).cloned();
        self.doubles += u64::from(known.is_some());
        if known.as_ref().is_some_and(|(_, good)| *good >= found.good) {
            return;
        }
        if let Some(damage) = &found.damage {
            self.fail(path, &format!("{damage}; copied as it is"));
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // One that is there was copied earlier, or is damaged: this one takes its place.
        let to = known.map_or_else(|| self.free(&name, "acltrace"), |(known, _)| known);
        match copy_file(path, &to) {
            Ok(()) => {
                self.copied[0] += 1;
                self.segments.insert(found.identity(), (to, found.good));
            }
            Err(error) => self.fail(&to, &error.to_string()),
        }
    }

    fn log(&mut self, path: &Path) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_same = |other: &PathBuf| {
            let length = |path: &Path| path.metadata().map(|about| about.len()).ok();
            length(path) == length(other) && fs::read(path).ok() == fs::read(other).ok()
        };
        let there = files::with_extension(&self.out, "jsonl").unwrap_or_default();
        if there.iter().any(is_same) {
            self.doubles += 1;
            return;
        }
        let to = self.free(&name, "jsonl");
        match copy_file(path, &to) {
            Ok(()) => self.copied[1] += 1,
            Err(error) => self.fail(&to, &error.to_string()),
        }
    }

    /// What a ring holds becomes a segment of its own. If its process runs, that is what it holds now.
    fn ring(&mut self, ring: &RingReader) {
        let origin = Origin::new(ring.header());
        match crate::storage::recover::unread(ring) {
            Ok((0, _)) => return,
            Ok(_) => {}
            Err(error) => return self.fail(&ring.path, &format!("{error:#}")),
        }
        let to = self.free(&format!("{}-ring", files::stem(&origin)), "acltrace");
        let liveness = liveness::of_ring(ring.file(), &origin);
        match copy::ring(ring, &to, liveness) {
            Ok(calls) => self.copied[2] += calls,
            Err(error) => self.fail(&ring.path, &format!("{error:#}")),
        }
    }
}

/// Copies a file; nothing half-made has its name.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let unfinished = to.with_file_name(name);
    let mut target = files::create(&unfinished)?;
    io::copy(&mut files::open(from)?, &mut target)?;
    fs::rename(unfinished, to)
}
