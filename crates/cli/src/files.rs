//! The files that aclshim writes: recognising, opening and listing them, and finding the rings of a directory.

use aclshim_collect::ownership::Ignored;
use aclshim_collect::storage::file_names::{self, FileNameValues};
use aclshim_collect::trace_set::{FoundRing, rings_in, writes_to};
use aclshim_facts::settings::RING_DIR;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::RingReader;
use aclshim_trace::ring::layout;
use aclshim_trace::segment::format::MAGIC;
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What a file of aclshim's is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// A segment of a trace.
    Trace,
    Ring,
    Log,
}

impl FileKind {
    /// The kind of a file; `None` if it is not aclshim's. A trace and a ring are recognised by their first bytes. A file whose
    /// writer was killed may have none: then its name decides, as it does for a log.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let bytes = first_bytes(path)?;
        let has = |end: &str| path.extension().is_some_and(|extension| extension == end);
        Ok(match () {
            () if bytes.starts_with(&MAGIC) => Some(Self::Trace),
            () if bytes.starts_with(&layout::MAGIC.to_le_bytes()) => Some(Self::Ring),
            () if has("acltrace") && MAGIC.starts_with(&bytes) => Some(Self::Trace),
            () if has("jsonl") => Some(Self::Log),
            () => None,
        })
    }

    /// The word for it in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Ring => "ring",
            Self::Log => "log",
        }
    }
}

/// Opens a regular file for reading; never anything that would block, such as a FIFO.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot be opened: {error}")))?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

/// Creates a file for writing, in place of one that an interrupted command has left; never through a link.
pub fn create(path: &Path) -> io::Result<File> {
    let _ = fs::remove_file(path);
    create_new(path, 0o600)
}

/// Creates a file for writing where there is none; never through a link.
fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
    OpenOptions::new().write(true).create_new(true).mode(mode).custom_flags(flags).open(path)
}

/// Writes a new file that other users may read as far as the umask allows; never through a link.
pub fn write_new(path: &Path, contents: &[u8]) -> io::Result<()> {
    io::Write::write_all(&mut create_new(path, 0o666)?, contents)
}

/// Replaces a file by one that `make` makes at the path that it is given: a reader sees the old file or the new one.
pub fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let unfinished = unfinished(path);
    // An interrupted command may have left it.
    let _ = fs::remove_file(&unfinished);
    let outcome = make(&unfinished).and_then(|()| fs::rename(&unfinished, path));
    if outcome.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    outcome
}

/// The name of an unfinished file: beside the final one, and hidden from programs that list a folder of exports.
pub fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

/// The ids of all processes.
pub fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The user that this process has the rights of.
pub fn own_user() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() }
}

/// A path as a C string; `None` if it holds a NUL byte.
pub fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

/// Whether this process has rights (`R_OK` and others) to a file.
pub fn may(path: &Path, rights: libc::c_int) -> bool {
    // SAFETY: a C string; only asks.
    c_path(path).is_some_and(|path| unsafe { libc::access(path.as_ptr(), rights) } == 0)
}

/// Whether a file has capabilities of its own, which the system gives to its process.
pub fn has_capabilities(path: &Path) -> bool {
    let name = c"security.capability".as_ptr();
    // SAFETY: C strings; no room is given, only the size is asked for.
    c_path(path).is_some_and(|path| unsafe { libc::getxattr(path.as_ptr(), name, std::ptr::null_mut(), 0) } > 0)
}

/// The first bytes of a file, enough to recognise it.
pub fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(12).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Refuses to write over a trace or a ring.
pub fn refuse_to_overwrite(path: &Path) -> anyhow::Result<()> {
    match FileKind::of(path) {
        Ok(Some(kind @ (FileKind::Trace | FileKind::Ring))) => anyhow::bail!(
            "{}: this is a {} of aclshim's, and is not overwritten; name another file with -o",
            path.display(),
            kind.name()
        ),
        _ => Ok(()),
    }
}

/// The regular files in a directory with that extension, sorted. Links, which may lead anywhere, are left out.
pub fn with_extension(dir: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let is_file = fs::symlink_metadata(&path).is_ok_and(|about| about.is_file());
        if is_file && path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The directories in which rings are looked for.
pub fn ring_folders() -> Vec<PathBuf> {
    std::env::var_os(RING_DIR.variable).map(PathBuf::from).into_iter().chain(["/dev/shm".into()]).collect()
}

/// The rings in the ring folders and in `dir` whose processes write to `dir` and that count for it. Those that do not count
/// are added to `ignored`.
pub fn rings_of(dir: &Path, ignored: &mut BTreeSet<Ignored>) -> Vec<RingReader> {
    counting_rings(dir, Some(dir), |ring| writes_to(ring, dir), ignored)
}

/// The rings in the ring folders and in `folder` that `is_wanted` accepts and that count for `path`, a directory or a trace.
/// Those that do not count are added to `ignored`; those that cannot be read are passed over.
pub fn counting_rings(
    path: &Path,
    folder: Option<&Path>,
    is_wanted: impl Fn(&RingReader) -> bool,
    ignored: &mut BTreeSet<Ignored>,
) -> Vec<RingReader> {
    let folders = ring_folders().into_iter().chain(folder.map(Path::to_owned));
    let found = rings_in(folders, path, is_wanted).into_iter().flatten();
    let mut rings = Vec::new();
    for ring in found {
        match ring {
            FoundRing::Counts(ring) => rings.push(ring),
            FoundRing::Ignored(ring) => _ = ignored.insert(ring),
            FoundRing::Unreadable(_) => {}
        }
    }
    rings
}

/// What the names of a process's files begin with.
pub fn stem(origin: &Origin) -> String {
    let who = FileNameValues {
        pid: origin.pid,
        born_ns: origin.born_ns,
        host: origin.host.clone().into_bytes(),
        executable: origin.executable.file_name().unwrap_or_default().as_bytes().to_vec(),
        rank: origin.rank.clone().into_bytes(),
    };
    file_names::stem(origin.pattern.as_bytes(), &who)
}
