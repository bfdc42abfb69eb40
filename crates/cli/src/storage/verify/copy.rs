//! Writing segments, one of which holds what is in a ring.

use crate::files;
use aclshim_collect::drain::blocks::blocks;
use aclshim_collect::findings::modules::Modules;
use aclshim_collect::liveness::Liveness;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{ReadMode, RingReader};
use aclshim_trace::ring::layout::Header;
use aclshim_trace::segment::format::{BlockHead, Preamble, SLOT, kind};
use aclshim_trace::system::clock::{realtime_ns, ticks};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// A segment that is being written. It has its name when it is whole.
pub struct SegmentCopy {
    path: PathBuf,
    unfinished: PathBuf,
    file: BufWriter<File>,
    /// Of blocks, with those in earlier files.
    bytes: u64,
}

impl SegmentCopy {
    /// Begins a file, which must not exist.
    pub fn begin(path: &Path, preamble: &Preamble, header: &[u8]) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            bail!("{}: exists already, and is not overwritten; name another --out", path.display());
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".unfinished");
        let unfinished = path.with_file_name(name);
        let file = files::create(&unfinished).with_context(|| format!("{}: cannot be made", unfinished.display()))?;
        let mut copy = Self { path: path.to_owned(), unfinished, file: BufWriter::new(file), bytes: preamble.before };
        copy.put(&preamble.to_bytes(header))?;
        Ok(copy)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).with_context(|| format!("{}: cannot be written", self.unfinished.display()))
    }

    /// Appends a block.
    pub fn block(&mut self, head: &BlockHead, payload: &[u8]) -> Result<()> {
        self.bytes += (SLOT + payload.len()) as u64;
        let head = head.to_bytes(payload);
        self.put(&head)?;
        self.put(payload)
    }

    /// Says that this is the end.
    pub fn end(&mut self, head: &BlockHead) -> Result<()> {
        self.block(
            &BlockHead { kind: kind::END, ring: 0, first: 0, thread: 0, flags: 0, ..*head },
            &self.bytes.to_le_bytes(),
        )
    }

    /// Renames the complete file to its final name.
    pub fn finish(mut self) -> Result<()> {
        let path = self.path.display();
        self.file.flush().with_context(|| format!("{path}: cannot be written"))?;
        std::fs::rename(&self.unfinished, &self.path).with_context(|| format!("{path}: cannot be named"))
    }
}

/// Writes what a ring file holds and no trace does; how many outermost calls. The ring stays as it is.
pub fn ring(file: &RingReader, to: &Path, liveness: Liveness) -> Result<u64> {
    let origin = Origin::new(file.header());
    let head = |kind| BlockHead {
        kind,
        ticks: if origin.is_of_this_boot == Some(true) { ticks(file.header().clock) } else { 0 },
        realtime_ns: realtime_ns(),
        ..BlockHead::default()
    };
    let preamble = Preamble { first_ns: realtime_ns(), ..Preamble::default() };
    let mut copy = SegmentCopy::begin(to, &preamble, bytes_of(file.header()))?;
    let mut calls = 0;
    let mut totals = [file.header().not_recorded.load(Ordering::Relaxed), 0, 0];
    // Elsewhere the pid may be another process's.
    if liveness == Liveness::Alive {
        copy.block(&head(kind::MODULES), &Modules::of(&origin.pid.to_string()).to_bytes())?;
    }
    for number in 0..file.rings() {
        let Some(copied) = file.ring(number)? else { continue };
        let (ring, mut from, end) = (copied.ring(), copied.drained, copied.end);
        while from < end {
            let run = ring.read_to(end, from, ReadMode::Peek, 1024);
            if run.next <= from {
                break;
            }
            totals[1] = totals[1].saturating_add(run.overwritten);
            for (head, payload) in blocks(&run, from, BlockHead { ring: number as u32, ..head(kind::SLOTS) }) {
                copy.block(&head, &payload)?;
                calls += u64::from(head.flags);
            }
            from = run.next;
        }
        totals[0] = totals[0].saturating_add(ring.control.not_recorded.load(Ordering::Relaxed));
        totals[1] = totals[1].saturating_add(ring.control.overwritten.load(Ordering::Relaxed));
        totals[2] = totals[2].saturating_add(ring.control.notes_lost.load(Ordering::Relaxed));
    }
    copy.block(&head(kind::TOTALS), totals.map(u64::to_le_bytes).as_flattened())?;
    if liveness == Liveness::Gone {
        copy.end(&head(kind::END))?;
    }
    copy.finish()?;
    Ok(calls)
}

fn bytes_of(header: &Header) -> &[u8] {
    // SAFETY: a plain structure, read as bytes.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(header).cast(), size_of::<Header>()) }
}
