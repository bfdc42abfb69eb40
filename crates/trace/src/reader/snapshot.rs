//! A ring file of any process, opened to look at it: everything is copied by `pread`.
//!
//! Nothing is mapped. The owner of a file may truncate it at any time, and a load from a mapping behind the end of its
//! file is SIGBUS; and on tmpfs a load from a mapped hole allocates the page, so that a sparse file of a few megabytes
//! would fill the file system. `pread` does neither.
//!
//! A copy is taken beside a thread that writes. The words of a slot belong together if two copies of it, one after the
//! other, are equal: a writer clears the head before it changes a word, no head comes back, and so a word that is newer
//! than its head in the first copy has another head in the second one.

use crate::reader::mapped::Mapping;
use crate::reader::opening::{MOST_RINGS, RingFileError, TRIES, open_checked, read_header, slots_of};
use crate::reader::view::{Ring, newest};
use crate::record::slot::Slot;
use crate::ring::layout::{CONTROL, Control, Header};
use crate::sync::{Ordering, fence};
use crate::version1;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Number of slots that are read at once.
const CHUNK: usize = 1024;
const SLOT: usize = size_of::<Slot>();

/// A ring file that is read without a mapping.
pub struct RingReader {
    /// Its path.
    pub path: PathBuf,
    file: File,
    /// A copy from the time of the open.
    header: Box<Header>,
    /// Slots of a ring.
    slots: usize,
    /// The version of the file.
    version: u32,
}

/// A copy of one ring.
pub struct RingSnapshot {
    /// The number behind the last slot that was drained before the slots were copied.
    pub drained: u64,
    /// The number behind the newest slot when the second copy began: all slots before it are in that copy, as far as
    /// they were ever written and not overwritten since.
    pub end: u64,
    control: Control,
    slots: Mapping,
    count: usize,
    /// Positions of slots that are not in a hole of the file.
    written: Vec<Range<usize>>,
}

impl RingReader {
    /// Opens a file, and copies its header.
    pub fn open(path: &Path) -> Result<Self, RingFileError> {
        let (file, version) = open_checked(path, OpenOptions::new().read(true))?;
        let header = read_header(&file, version)?;
        let slots = slots_of(&header)?;
        Ok(Self { path: path.to_owned(), file, header, slots, version })
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The owner of the opened file, whatever its path leads to now.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(self.file.metadata()?.uid())
    }

    /// Number of rings by the header; not all of them need be there.
    pub fn rings(&self) -> usize {
        self.header.rings.load(Ordering::Relaxed).min(MOST_RINGS) as usize
    }

    /// A copy of a ring; `None` if it is not made yet, or if the file ends before its end.
    pub fn ring(&self, number: usize) -> io::Result<Option<RingSnapshot>> {
        let begin = (number as u64).checked_mul(self.header.stride).and_then(|at| at.checked_add(self.header.first));
        let length = (CONTROL + self.slots * SLOT) as u64;
        let size = self.file.metadata()?.size();
        let Some(begin) = begin.filter(|begin| begin.checked_add(length).is_some_and(|end| end <= size)) else {
            return Ok(None);
        };
        let before = self.control(begin)?;
        if before.owner.load(Ordering::Relaxed) == 0 {
            return Ok(None);
        }
        let drained = before.drained.load(Ordering::Acquire);
        let slots = Mapping::anonymous(self.slots * SLOT)?;
        let mut copy = RingSnapshot {
            drained,
            end: drained,
            control: before,
            slots,
            count: self.slots,
            written: self.written(begin + CONTROL as u64),
        };
        let first = begin + CONTROL as u64;
        let mut read = |bytes: &mut [u8], at: u64| {
            read_at(&self.file, bytes, at)?;
            if self.version == version1::VERSION {
                version1::upgrade_slots(bytes);
            }
            Ok(())
        };
        copy_twice(&mut read, || self.written(first), first, &mut copy)?;
        // Slots that were given back by now are in a trace.
        copy.control = self.control(begin)?;
        Ok(Some(copy))
    }

    fn control(&self, begin: u64) -> io::Result<Control> {
        if self.version == version1::VERSION {
            let mut bytes = [0; version1::CONTROL];
            return self.file.read_exact_at(&mut bytes, begin).map(|()| version1::upgrade_control(&bytes));
        }
        let mut control = Control::default();
        let at = (&raw mut control).cast::<u8>();
        // SAFETY: the bytes of a value of ours, for which every bit pattern is valid.
        let bytes = unsafe { std::slice::from_raw_parts_mut(at, size_of::<Control>()) };
        self.file.read_exact_at(bytes, begin)?;
        Ok(control)
    }

    /// Positions of slots that are not in a hole of the file, the first slot being at byte `begin`.
    fn written(&self, begin: u64) -> Vec<Range<usize>> {
        let end = begin + (self.slots * SLOT) as u64;
        let seek = |from: u64, what: libc::c_int| {
            // SAFETY: an open descriptor of ours; nothing else goes by its offset.
            let at = unsafe { libc::lseek(self.file.as_raw_fd(), from as libc::off_t, what) };
            if at < 0 { Err(io::Error::last_os_error()) } else { Ok((at as u64).min(end)) }
        };
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut at = begin;
        while at < end {
            let start = match seek(at, libc::SEEK_DATA) {
                Ok(start) => start,
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break,
                // A file system that knows no holes.
                Err(_) => at,
            };
            let stop = seek(start, libc::SEEK_HOLE).unwrap_or(end);
            if stop <= start {
                break;
            }
            let first = (start - begin) as usize / SLOT;
            let last = ((stop - begin) as usize).div_ceil(SLOT);
            match found.last_mut() {
                Some(before) if before.end >= first => before.end = last,
                _ => found.push(first..last),
            }
            at = stop;
        }
        found
    }
}

/// Reads whole slots at an offset of a file, in the present version.
type Read<'a> = &'a mut dyn FnMut(&mut [u8], u64) -> io::Result<()>;

/// Copies the slots that begin at byte `begin` twice. The first copy shows how far the writer is, and which slots of the
/// second copy are consistent. `written` returns the slots that are in no hole by then.
fn copy_twice(
    read: Read<'_>,
    written: impl FnOnce() -> Vec<Range<usize>>,
    begin: u64,
    copy: &mut RingSnapshot,
) -> io::Result<()> {
    let at = copy.slots.at.cast::<u8>();
    for range in &copy.written {
        // SAFETY: a part of a mapping of ours that nothing else refers to; every bit pattern is valid.
        let bytes = unsafe { std::slice::from_raw_parts_mut(at.add(range.start * SLOT), range.len() * SLOT) };
        read(bytes, begin + (range.start * SLOT) as u64)?;
    }
    copy.end = copy.seen_end();
    fence(Ordering::Acquire);
    copy.written.extend(written());
    copy.written = merged(std::mem::take(&mut copy.written));
    let mut chunk = vec![0u8; CHUNK * SLOT];
    for range in &copy.written {
        for first in range.clone().step_by(CHUNK) {
            let count = CHUNK.min(range.end - first);
            let again = &mut chunk[..count * SLOT];
            read(again, begin + (first * SLOT) as u64)?;
            for (position, again) in (first..).zip(again.chunks_exact(SLOT)) {
                // SAFETY: one slot of a mapping of ours that nothing else refers to.
                let slot = unsafe { std::slice::from_raw_parts_mut(at.add(position * SLOT), SLOT) };
                if slot != again {
                    slot.copy_from_slice(&settled(read, begin + (position * SLOT) as u64, again)?);
                }
            }
        }
    }
    Ok(())
}

/// Reads a slot that changes until two copies are equal; empty if they never are.
fn settled(read: Read<'_>, at: u64, last: &[u8]) -> io::Result<[u8; SLOT]> {
    let mut before = [0; SLOT];
    before.copy_from_slice(last);
    for _ in 0..TRIES {
        fence(Ordering::Acquire);
        let mut slot = [0; SLOT];
        read(&mut slot, at)?;
        if slot == before {
            return Ok(slot);
        }
        before = slot;
    }
    Ok([0; SLOT])
}

impl RingSnapshot {
    /// The ring: its state after the slots were copied, and the copy of its slots.
    pub fn ring(&self) -> Ring<'_> {
        let at = self.slots.at.cast::<Slot>();
        // SAFETY: a mapping of that size that lives as long; every bit pattern is valid.
        Ring { control: &self.control, slots: unsafe { std::slice::from_raw_parts(at, self.count) } }
    }

    /// Slots that can hold something, with their positions.
    pub fn written(&self) -> impl Iterator<Item = (usize, &Slot)> {
        let slots = self.ring().slots;
        self.written.iter().flat_map(move |range| range.clone().zip(&slots[range.clone()]))
    }

    /// Number of slots that can hold something.
    pub fn written_count(&self) -> usize {
        self.written.iter().map(Range::len).sum()
    }

    /// The number behind the newest slot.
    fn seen_end(&self) -> u64 {
        let slots = self.ring().slots;
        let ends = self.written.iter().map(|range| newest(&slots[range.clone()], self.drained));
        ends.max().unwrap_or(self.drained)
    }
}

/// Ranges in order, without overlap.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut all: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(before) if before.end >= range.start => before.end = before.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}

/// Reads bytes of a file; behind its end there are zeros.
fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.read_at(bytes, at) {
            Ok(0) => {
                bytes.fill(0);
                return Ok(());
            }
            Ok(read) => {
                bytes = &mut bytes[read..];
                at += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(all(test, not(miri)))]
mod tests;
