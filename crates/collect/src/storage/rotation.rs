//! A row of files that are appended to one after another: rotation, healing and limits.

use crate::storage::budget::{Room, Sizes, make_room};
use crate::storage::directory::{Directory, Identity, file_size_limit, hold, identity};
use crate::storage::failure::{Failure, Report, Step, Trouble, Why};
use crate::storage::file_names::{self, Kind};
use crate::storage::usage::Share;
use aclshim_trace::system::clock::realtime_ns;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many names are tried before the time stands in one.
const TURNS: u64 = 1000;

/// Where files go and how large they may become.
#[derive(Clone, Debug)]
pub struct OutputLocation {
    /// The directory, absolute.
    pub dir: PathBuf,
    /// What all names begin with: see [`file_names::stem`].
    pub stem: String,
    /// The sizes that files may have.
    pub sizes: Sizes,
}

/// What a new file begins with, given its number and path.
pub(crate) type Opening<'a> = &'a mut dyn FnMut(u64, &Path) -> Vec<u8>;

/// The files of one kind of one process. Nothing is made before there is something to write.
#[derive(Debug)]
pub(crate) struct RotatedFiles {
    place: OutputLocation,
    kind: Kind,
    next: u64,
    current: Option<Segment>,
    trouble: Option<Trouble>,
    report: Report,
}

/// The file that is written now.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    identity: Identity,
    /// How long what it begins with is.
    opening: u64,
    /// The end of the last whole block.
    good: u64,
    /// How long it may become.
    limit: u64,
    /// What of it is in the directory's total.
    share: Share,
    /// Holds the lock; `None` after a failure.
    file: Option<File>,
    /// The bytes that the disk still takes, where a test says so.
    #[cfg(test)]
    room: Option<usize>,
}

impl RotatedFiles {
    /// Files of `kind` at `place`.
    pub fn new(place: OutputLocation, kind: Kind) -> Self {
        Self { place, kind, next: 0, current: None, trouble: None, report: Report::default() }
    }

    /// Where its files go.
    pub fn dir(&self) -> &Path {
        &self.place.dir
    }

    /// Appends one block, all of it or nothing. `opening` is asked when a new file begins.
    pub fn append(&mut self, block: [&[u8]; 2], opening: Opening<'_>) -> Result<(), Failure> {
        let done = self.try_append(block, opening);
        match &done {
            Ok(()) => {
                if let Some(trouble) = self.trouble.take() {
                    self.report.mended = Some(trouble);
                }
            }
            Err(failure) => self.note(failure),
        }
        done
    }

    /// A failure that came before there was anything to append.
    pub fn fail(&mut self, step: Step, errno: i32) -> Failure {
        let path = self.path().unwrap_or(&self.place.dir);
        let failure = Failure::new(step, path, &io::Error::from_raw_os_error(errno));
        self.note(&failure);
        failure
    }

    fn note(&mut self, failure: &Failure) {
        let trouble = self.trouble.get_or_insert_with(|| Trouble { first: failure.clone(), count: 0 });
        trouble.count += 1;
    }

    /// What happened besides the writing since this was last asked.
    pub fn take_report(&mut self) -> Report {
        std::mem::take(&mut self.report)
    }

    /// What goes wrong now, if anything.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// The file that is written now.
    pub fn path(&self) -> Option<&Path> {
        self.current.as_ref().map(|segment| segment.path.as_path())
    }

    /// Closes the descriptors, as a failure may: the next write finds the file again.
    #[cfg(test)]
    pub fn park(&mut self) {
        if let Some(segment) = &mut self.current {
            segment.file = None;
        }
    }

    /// Has the disk take only this number of bytes from now on.
    #[cfg(test)]
    pub fn fill_disk(&mut self, room: usize) {
        if let Some(segment) = &mut self.current {
            segment.room = Some(room);
        }
    }

    fn try_append(&mut self, block: [&[u8]; 2], opening: Opening<'_>) -> Result<(), Failure> {
        let len = block.iter().map(|part| part.len() as u64).sum::<u64>();
        let allowed = file_size_limit();
        if len > allowed {
            return Err(too_long(&self.place.dir));
        }
        let full = |segment: &Segment| {
            segment.good > segment.opening && segment.good.saturating_add(len) > segment.limit.min(allowed)
        };
        if let Some(segment) = &mut self.current {
            let kept = segment.wake(&self.place.dir)?;
            if let Some(why) = kept {
                self.report.note_replaced(segment.path.clone(), why);
            }
            if kept.is_some() || full(segment) {
                self.current = None;
            }
        }
        let segment = match &mut self.current {
            Some(segment) => segment,
            none => none.insert(begin(&self.place, self.kind, &mut self.next, &mut self.report, len, opening)?),
        };
        if segment.good.saturating_add(len) > allowed {
            return Err(too_long(&segment.path));
        }
        let Err(error) = segment.write(block, len) else {
            segment.share.grow(|| Directory::open(&self.place.dir).ok(), segment.good);
            return Ok(());
        };
        let failure = Failure::new(Step::Write, &segment.path, &error);
        // What stands half-written is taken back now, so that the next try follows a whole block.
        if !segment.heal() {
            self.report.note_replaced(segment.path.clone(), Why::Torn);
            self.current = None;
        }
        Err(failure)
    }
}

/// What a short program's file takes: a trace begins with the header of its ring.
fn expected(kind: Kind) -> u64 {
    match kind {
        Kind::Trace => 32 << 10,
        Kind::Log => 4 << 10,
    }
}

/// Makes the next file and writes what it begins with; `len` more bytes must fit.
fn begin(
    place: &OutputLocation,
    kind: Kind,
    next: &mut u64,
    report: &mut Report,
    len: u64,
    opening: Opening<'_>,
) -> Result<Segment, Failure> {
    let directory = Directory::open(&place.dir)?;
    let Room { limit, share } = make_room(&directory, place.sizes, expected(kind), report)?;
    let mut turn = 1;
    let (name, file) = loop {
        let name = file_names::file(&place.stem, *next, turn, kind);
        match directory.create(&name) {
            Ok(file) => break (name, file),
            Err(failure) if failure.errno == libc::EEXIST && turn < TURNS => turn += 1,
            // A process may be drained by any number of drains, one after another.
            Err(failure) if failure.errno == libc::EEXIST && turn == TURNS => turn = realtime_ns(),
            Err(failure) => return Err(failure),
        }
    };
    let path = place.dir.join(&name);
    let start = || {
        let bytes = opening(*next, &path);
        if (bytes.len() as u64).saturating_add(len) > file_size_limit() {
            return Err(too_long(&path));
        }
        let about = file.metadata().map_err(|error| Failure::new(Step::Inspect, &path, &error))?;
        let mut segment = Segment {
            path: path.clone(),
            identity: identity(&about),
            opening: bytes.len() as u64,
            good: 0,
            limit,
            share,
            file: Some(file),
            #[cfg(test)]
            room: None,
        };
        segment.write([&bytes, &[]], bytes.len() as u64).map_err(|error| Failure::new(Step::Write, &path, &error))?;
        Ok(segment)
    };
    let started = start();
    match started {
        Ok(_) => *next += 1,
        // Nothing is in it; tried again and again, such files would pile up.
        Err(_) => drop(directory.remove(OsStr::new(&name))),
    }
    started
}

impl Segment {
    /// Makes sure that the file is open and as we left it; if not, why it must be given up.
    fn wake(&mut self, dir: &Path) -> Result<Option<Why>, Failure> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let directory = Directory::open(dir)?;
                let name = self.path.file_name().unwrap_or_default();
                let file = match directory.open_at(name, libc::O_WRONLY | libc::O_APPEND) {
                    Ok(file) => file,
                    Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ELOOP)) => {
                        return Ok(Some(Why::Gone));
                    }
                    Err(error) => return Err(Failure::new(Step::Inspect, &self.path, &error)),
                };
                // Before the lock: it may be anything by now.
                if !file.metadata().is_ok_and(|about| about.is_file() && identity(&about) == self.identity) {
                    return Ok(Some(Why::Gone));
                }
                hold(&file);
                #[cfg(test)]
                (self.room = None);
                none.insert(file)
            }
        };
        let about = file.metadata().map_err(|error| Failure::new(Step::Inspect, &self.path, &error))?;
        Ok(match () {
            () if about.nlink() == 0 => Some(Why::Gone),
            () if about.len() != self.good => Some(Why::Changed),
            () => None,
        })
    }

    /// Writes all parts, by one system call where the system takes them at once.
    fn write(&mut self, parts: [&[u8]; 2], len: u64) -> io::Result<()> {
        let Some(mut file) = self.file.as_ref() else { return Err(io::Error::from_raw_os_error(libc::EBADF)) };
        let mut slices = parts.map(IoSlice::new);
        let mut slices = &mut slices[..];
        let mut left = len as usize;
        while left > 0 {
            #[cfg(test)]
            let written = match &mut self.room {
                Some(0) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
                Some(room) => file.write(&slices[0][..slices[0].len().min(*room)]).inspect(|written| *room -= written),
                None => file.write_vectored(slices),
            };
            #[cfg(not(test))]
            let written = file.write_vectored(slices);
            match written {
                Ok(0) => return Err(io::Error::from_raw_os_error(libc::EIO)),
                Ok(written) => {
                    let written = written.min(left);
                    left -= written;
                    IoSlice::advance_slices(&mut slices, written);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // Another process that appends, too, would end up between our lines.
        if file.metadata()?.len() != self.good + len {
            self.file = None;
            return Err(io::Error::from_raw_os_error(libc::ESTALE));
        }
        self.good += len;
        Ok(())
    }

    /// Takes back what stands after the last whole block.
    fn heal(&mut self) -> bool {
        let Some(file) = &self.file else { return false };
        // Only ever shorter: making it longer could meet the size limit, and would invent zeros.
        file.metadata()
            .is_ok_and(|about| about.len() == self.good || (about.len() > self.good && file.set_len(self.good).is_ok()))
    }
}

fn too_long(path: &Path) -> Failure {
    Failure::new(Step::Write, path, &io::Error::from_raw_os_error(libc::EFBIG))
}

#[cfg(test)]
mod tests;
