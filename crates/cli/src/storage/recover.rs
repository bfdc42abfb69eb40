//! `aclshim recover`: writes to files what ended processes have left in rings, and what is good of damaged traces.

mod ring_owner;

use crate::files::{self, FileKind, own_user};
use crate::output::escape;
use crate::reading::traces::say_ignored;
use crate::storage::verify::repair;
use aclshim_collect::drain::Drain;
use aclshim_collect::drain::adoption;
use aclshim_collect::drain::blocks::outermost_calls;
use aclshim_collect::liveness::{self, Liveness};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, ReadMode, RingFile, RingFileError, RingReader};
use anyhow::{Context, Result, bail};
use ring_owner::OwningUser;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Arguments of `aclshim recover`.
#[derive(clap::Args)]
#[command(
    after_help = "A ring of a process that runs is left alone. Root recovers another user's ring with the rights of that \
    user, to where that user may write.\n\n\
    Exit status:\n  \
    0  all that could be recovered is written\n  \
    1  something could not be written or read\n\n\
    Examples:\n  \
    aclshim recover\n  \
    aclshim recover --out recovered /dev/shm/aclshim-1234-17f0c0de.ring\n  \
    aclshim recover --out recovered aclshim-out/broken.acltrace"
)]
pub struct Arguments {
    /// Write to this directory instead of the one that each process wrote to; needed for traces
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Root has become the owner of the ring for this
    #[arg(long, hide = true)]
    as_owner: bool,
    /// A folder with rings, an ACLSHIM_DIR, a ring file, or a damaged trace [default: ACLSHIM_RING_DIR, /dev/shm]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Recovers the rings and traces that are named, or all rings.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    if arguments.as_owner {
        ring_owner::close_to_the_user();
    }
    aclshim_collect::log::install();
    let out = arguments.out.as_deref().map(std::path::absolute).transpose().context("--out")?;
    if let Some(out) = &out {
        std::fs::create_dir_all(out).with_context(|| format!("{}: cannot be made", out.display()))?;
    }
    let mut recovery = Recovery { out, failed: false, seen: 0 };
    if arguments.paths.is_empty() {
        files::ring_folders().iter().filter(|folder| folder.is_dir()).for_each(|folder| recovery.folder(folder));
    }
    for path in &arguments.paths {
        match (path.is_dir(), FileKind::of(path)) {
            (true, _) => recovery.folder(path),
            (_, Ok(Some(FileKind::Ring))) => recovery.ring(path),
            (_, Ok(Some(FileKind::Trace))) => recovery.trace(path),
            (_, Ok(_)) => recovery.fail(path, "neither a ring nor a trace of aclshim's"),
            (_, Err(error)) => recovery.fail(path, &error.to_string()),
        }
    }
    if recovery.seen == 0 {
        println!("Nothing is left to be recovered.");
    }
    Ok(if recovery.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

struct Recovery {
    out: Option<PathBuf>,
    failed: bool,
    /// Number of files that were reported.
    seen: u64,
}

impl Recovery {
    fn fail(&mut self, path: &Path, why: &str) {
        self.seen += 1;
        self.failed = true;
        errln!("aclshim: {}: {}", escape::path(path), escape::line(why));
    }

    fn say(&mut self, path: &Path, what: &str) {
        self.seen += 1;
        outln!("{}: {}", escape::path(path), escape::line(what));
    }

    /// The rings of a folder; of a directory with traces, the rings that name it.
    fn folder(&mut self, folder: &Path) {
        let mut rings = match reader::files(folder) {
            Ok(rings) => rings,
            Err(error) => return self.fail(folder, &format!("cannot be read: {error}")),
        };
        if rings.is_empty() {
            let mut ignored = BTreeSet::new();
            rings = files::rings_of(folder, &mut ignored).into_iter().map(|ring| ring.path).collect();
            say_ignored(&ignored);
        }
        for path in rings {
            // Rings of other users and unfinished files are left alone.
            let is_ours = std::fs::symlink_metadata(&path).is_ok_and(|about| about.uid() == own_user());
            if is_ours && matches!(FileKind::of(&path), Ok(Some(FileKind::Ring))) {
                self.ring(&path);
            }
        }
    }

    fn ring(&mut self, path: &Path) {
        let outcome = match ring_owner::other_owner(path) {
            Ok(None) => self.try_ring(path),
            Ok(Some(user)) => self.as_owner(path, user),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = outcome {
            self.fail(path, &format!("{error:#}"));
        }
    }

    /// The ring of another user: its header names files to be written and removed. So that is done with the rights of that
    /// user, or not at all.
    fn as_owner(&mut self, path: &Path, user: OwningUser) -> Result<()> {
        let recovered = ring_owner::recover_as(path, user, self.out.as_deref())?;
        recovered.stdout.lines().for_each(|line| outln!("{line}"));
        recovered.stderr.lines().for_each(|line| errln!("{line}"));
        self.seen += 1;
        if !recovered.is_done {
            let out = self.out.as_deref().unwrap_or(Path::new("DIR"));
            bail!(
                "it belongs to user {}, and could not be recovered with the rights of that user; `aclshim merge -o {} {}` \
                 copies what it holds, and leaves the ring as it is",
                user.id,
                out.display(),
                path.display()
            );
        }
        Ok(())
    }

    fn try_ring(&mut self, path: &Path) -> Result<()> {
        let seen = RingReader::open(path)?;
        let origin = Origin::new(seen.header());
        let name = origin.executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let who = format!("process {} ({name}) on {}", origin.pid, origin.host);
        match liveness::of_ring(seen.file(), &origin) {
            Liveness::Alive => {
                self.say(path, &format!("{who} runs: left alone"));
                return Ok(());
            }
            Liveness::Elsewhere => {
                let what = format!("{who} may run where we cannot look (another pid or time namespace?): left alone");
                self.say(path, &what);
                return Ok(());
            }
            Liveness::Gone => {}
        }
        drop(seen);
        let mut file = match RingFile::open_to_drain(path) {
            Err(RingFileError::Locked) => {
                self.say(path, &format!("{who}: somebody else writes it down already"));
                return Ok(());
            }
            opened => opened?,
        };
        // The name may stand for another file by now.
        if file.owner()? != own_user() {
            bail!("it belongs to another user: left alone");
        }
        let dir = self.out.clone().unwrap_or_else(|| origin.dir.clone());
        let calls = unread(&RingReader::open(path)?)?.1;
        let mut drain = Drain::outside_to(file.header(), dir.clone());
        let failures = file.header().write_failures.load(Ordering::Relaxed);
        if !adoption::finish_with(&mut file, &mut drain) {
            let failed = RingReader::open(path)
                .is_ok_and(|file| file.header().write_failures.load(Ordering::Relaxed) > failures);
            let why = if failed { "is there room, and may it be written to?" } else { "it is kept" };
            bail!("{who}: not all of it could be written to {}; {why}", dir.display());
        }
        match calls {
            0 => self.say(path, &format!("{who}: all had been written; the ring is removed")),
            _ => self.say(path, &format!("{who}: {calls} calls written to {}", dir.display())),
        }
        Ok(())
    }

    fn trace(&mut self, path: &Path) {
        let Some(out) = &self.out else {
            return self.fail(path, "a trace: name a directory for its good part by --out");
        };
        let name = path.file_name().unwrap_or_default();
        let to = out.join(name);
        match repair::clean(path, &to) {
            Ok(copied) => {
                let what = format!(
                    "process {}: {} good blocks with {} calls written to {}; {} bytes were no good, {} slots are missing",
                    copied.pid,
                    copied.blocks,
                    copied.calls,
                    to.display(),
                    copied.lost,
                    copied.missing
                );
                self.say(path, &what);
                copied.remarks.iter().for_each(|remark| outln!("    {}", escape::line(remark)));
            }
            Err(error) => self.fail(path, &format!("{error:#}")),
        }
    }
}

/// Slots that have not been drained, and how many outermost calls they hold.
pub fn unread(file: &RingReader) -> Result<(u64, u64)> {
    const PIECE: usize = 1 << 14;
    let (mut slots, mut calls) = (0, 0);
    for number in 0..file.rings() {
        let copy = file.ring(number).with_context(|| format!("ring {number} cannot be read"))?;
        let Some(copy) = copy else { continue };
        let mut from = copy.drained;
        slots += copy.end - from;
        while from < copy.end {
            let run = copy.ring().read_to(copy.end, from, ReadMode::Peek, PIECE);
            if run.next <= from {
                break;
            }
            calls += outermost_calls(&run.slots);
            from = run.next;
        }
    }
    Ok((slots, calls))
}
