//! What there is to read under a path: traces, and the rings whose processes write there.

use super::error::{Cause, FileError};
use crate::ownership::{Ignored, Owners};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, RingFileError, RingReader};
use aclshim_trace::segment::order::SegmentOrder;
use aclshim_trace::segment::reader::SegmentReader;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

/// What identifies a process: boot, process id and time of birth.
pub type ProcessKey = (String, u32, u64);

/// The identity of the process that a header describes.
pub fn process_key(origin: &Origin) -> ProcessKey {
    (origin.boot_id.clone(), origin.pid, origin.born_ns)
}

/// A ring file that was looked at.
pub enum FoundRing {
    /// It counts for the directory.
    Counts(RingReader),
    /// It belongs to a user whose rings do not count for the directory.
    Ignored(Ignored),
    /// It cannot be read.
    Unreadable(FileError),
}

/// Opens the rings in `folders` that `is_wanted` accepts, and decides whether they count for `path`, a directory or a trace.
/// Files of other programs, and files that are being created or removed, are passed over.
pub fn rings_in<'a>(
    folders: impl IntoIterator<Item = PathBuf>,
    path: &Path,
    is_wanted: impl Fn(&RingReader) -> bool + 'a,
) -> io::Result<impl Iterator<Item = FoundRing> + 'a> {
    let folders: BTreeSet<PathBuf> = folders.into_iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let owners = Owners::of(path)?;
    let files = folders.into_iter().filter_map(|folder| reader::files(&folder).ok()).flatten();
    Ok(files.filter_map(move |path| {
        let unreadable = |cause| Some(FoundRing::Unreadable(FileError { path: path.clone(), cause }));
        match RingReader::open(&path) {
            Ok(ring) if is_wanted(&ring) => match ring.owner() {
                Ok(uid) if owners.has(uid) => Some(FoundRing::Counts(ring)),
                Ok(uid) => Some(FoundRing::Ignored(Ignored { path, uid })),
                Err(error) => unreadable(Cause::Io(error)),
            },
            Ok(_) | Err(RingFileError::NotOurs) => None,
            Err(RingFileError::Io(why)) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
                None
            }
            Err(why) => unreadable(Cause::RingFile(why)),
        }
    }))
}

/// Whether the process of a ring writes to `directory`.
pub fn writes_to(ring: &RingReader, directory: &Path) -> bool {
    is_same_folder(&Origin::new(ring.header()).dir, directory)
}

/// Whether two paths name one folder, which need not exist: a process that has nothing to write does not create it.
pub fn is_same_folder(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.into());
    real(a) == real(b)
}

/// The traces in a directory; none if it does not exist.
pub(super) fn traces_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        // A process that has nothing to write does not create it.
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_trace(path))
        // An empty file is being created, or its writer was killed: its records are in the ring.
        // (Only regular files are opened: a FIFO would block.)
        .filter(|path| path.metadata().is_ok_and(|about| about.is_file() && about.len() > 0))
        .collect())
}

/// Whether a file is named as a trace.
pub(super) fn is_trace(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "acltrace")
}

/// Removes repeated files and sorts the rest by process and by the segment's place in its trace; not by name, where the tenth
/// segment comes before the second.
pub(super) fn in_segment_order(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut known = BTreeSet::new();
    paths.retain(|path| known.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    let mut traces = Vec::new();
    let mut begins = BTreeMap::new();
    for path in paths {
        let opened = File::open(&path).ok().and_then(|file| SegmentReader::open(BufReader::new(file)).ok());
        let found = opened.and_then(|mut opened| {
            let key = process_key(&Origin::from_bytes(&opened.header)?);
            let begin: &mut u64 = begins.entry(key.clone()).or_insert(u64::MAX);
            *begin = opened.preamble.first_ns.min(*begin);
            Some((key, SegmentOrder::of(&mut opened)))
        });
        traces.push((found, path));
    }
    traces.sort_by_cached_key(|(found, _)| {
        found.as_ref().map(|(key, turn)| (begins.get(key).copied(), key.clone(), *turn))
    });
    traces.into_iter().map(|(_, path)| path).collect()
}
