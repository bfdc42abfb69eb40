//! Which of our files there are under a path: by what they begin with, and for a log by its name.

pub use aclshim_collect::life::{Life, life, of_ring};
pub use aclshim_collect::ownership::{Ignored, Owners};
use aclshim_facts::settings::RING_DIR;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, RingFileError, RingReader};
use aclshim_trace::ring::layout;
use aclshim_trace::segment::format::MAGIC;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// One of our files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A segment of a trace.
    Trace,
    /// A ring file.
    Ring,
    /// A JSON log.
    Log,
}

impl Kind {
    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Trace => "trace",
            Kind::Ring => "ring",
            Kind::Log => "log",
        }
    }
}

/// Opens a file to read it, and nothing that would stop us, such as a FIFO.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot be opened: {error}")))?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

/// Makes a file to write to it, in the place of one that somebody was killed over: never what a link leads to.
pub fn create(path: &Path) -> io::Result<File> {
    let _ = std::fs::remove_file(path);
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
}

/// The first bytes of a file.
pub fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(12).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a file is; `None` if it is not ours. One that whoever made it was killed over may have no beginning: then its name
/// tells.
pub fn kind(path: &Path) -> io::Result<Option<Kind>> {
    let bytes = beginning(path)?;
    let has = |end: &str| path.extension().is_some_and(|extension| extension == end);
    Ok(match () {
        () if bytes.starts_with(&MAGIC) => Some(Kind::Trace),
        () if bytes.starts_with(&layout::MAGIC.to_le_bytes()) => Some(Kind::Ring),
        () if has("acltrace") && MAGIC.starts_with(&bytes) => Some(Kind::Trace),
        () if has("jsonl") => Some(Kind::Log),
        () => None,
    })
}

/// Refuses to write over a trace or a ring.
pub fn keep(path: &Path) -> anyhow::Result<()> {
    match kind(path) {
        Ok(Some(kind @ (Kind::Trace | Kind::Ring))) => anyhow::bail!(
            "{}: this is a {} of aclshim's, and is not overwritten; name another file with -o",
            path.display(),
            kind.name()
        ),
        _ => Ok(()),
    }
}

/// The files in a directory whose names end so.
pub fn files(dir: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        // Not of a link, which may lead anywhere.
        let is_file = std::fs::symlink_metadata(&path).is_ok_and(|about| about.is_file());
        if is_file && path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Where rings may be.
pub fn ring_folders() -> Vec<PathBuf> {
    std::env::var_os(RING_DIR.variable).map(PathBuf::from).into_iter().chain(["/dev/shm".into()]).collect()
}

/// The rings in the ring folders and in `dir` that name `dir` and count for it; those that do not count are added to `ignored`.
pub fn rings_of(dir: &Path, ignored: &mut BTreeSet<Ignored>) -> Vec<RingReader> {
    let folders = ring_folders().into_iter().chain([dir.to_owned()]);
    counting(dir, folders, |ring| is_same_folder(&Origin::new(ring.header()).dir, dir), ignored)
}

/// The rings in these folders that are asked for and count for a directory or a trace.
pub fn counting(
    of: &Path,
    folders: impl IntoIterator<Item = PathBuf>,
    is_asked_for: impl Fn(&RingReader) -> bool,
    ignored: &mut BTreeSet<Ignored>,
) -> Vec<RingReader> {
    let folders: BTreeSet<PathBuf> = folders.into_iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let Ok(owners) = Owners::of(of) else { return Vec::new() };
    let mut rings = Vec::new();
    for path in folders.iter().filter_map(|folder| reader::files(folder).ok()).flatten() {
        let Ok(ring) = RingReader::open(&path) else { continue };
        let Ok(uid) = ring.owner() else { continue };
        if !is_asked_for(&ring) {
            continue;
        }
        if owners.has(uid) {
            rings.push(ring);
        } else {
            ignored.insert(Ignored { path, uid });
        }
    }
    rings
}

/// Whether two paths name one folder.
pub fn is_same_folder(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.into());
    real(a) == real(b)
}

/// One process: its boot, number and birth.
pub type Key = (String, u32, u64);

/// The process that a header describes.
pub fn key(origin: &Origin) -> Key {
    (origin.boot_id.clone(), origin.pid, origin.born_ns)
}

/// Why a ring file cannot be read, and whether it is of a version that another program reads.
pub fn unreadable(why: &RingFileError) -> String {
    match why {
        RingFileError::Short(_) => format!("the file was cut off: {why}"),
        _ => why.to_string(),
    }
}
