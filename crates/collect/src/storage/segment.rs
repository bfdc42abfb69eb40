//! Writing the trace: blocks are appended to segments, and what the budget took is counted.

use crate::storage::failure::{Failure, Report, Step, Trouble};
use crate::storage::file_names::{self, Kind};
use crate::storage::rotation::{OutputLocation, RotatedFiles};
use aclshim_trace::ring::layout::Header;
use aclshim_trace::segment::format::{BLOCK_MAGIC, BlockHead, HEAD, LONGEST_PAYLOAD, Preamble, kind};
use aclshim_trace::segment::reader::SegmentReader;
use std::fs::OpenOptions;
use std::io;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The trace files of one process.
#[derive(Debug)]
pub struct TraceWriter {
    files: RotatedFiles,
    header: Vec<u8>,
    past: Past,
    /// Bytes of all blocks.
    written: u64,
}

/// The segments of this process and how many outermost calls each holds.
#[derive(Debug, Default)]
struct Past {
    /// What the names of its files begin with; taken when earlier drains' are looked for.
    stem: Option<String>,
    /// The bytes of records that earlier drains have written, if that is known.
    earlier: Option<u64>,
    /// The last one is written now.
    segments: Vec<(PathBuf, u64)>,
    evicted: u64,
    /// Of these, what earlier drains tell of.
    told: u64,
}

impl TraceWriter {
    /// A writer; it makes no file before there is a block. `header` is the process's ring header
    /// and stands at the start of each file.
    pub fn new(place: OutputLocation, header: &[u8]) -> Self {
        let past = Past { stem: Some(place.stem.clone()), ..Past::default() };
        Self { files: RotatedFiles::new(place, Kind::Trace), header: header.to_vec(), past, written: 0 }
    }

    /// Sets how many bytes of records earlier drains of this process have written. Called before the first block:
    /// it saves a look at the whole directory.
    pub fn set_earlier(&mut self, bytes: u64) {
        self.past.earlier = Some(bytes);
    }

    /// What the next file begins with.
    pub fn set_header(&mut self, header: &[u8]) {
        self.header = header.to_vec();
    }

    /// Appends one block, all of it or nothing: after a failure the block may be tried again.
    /// `head.slots` and `head.bytes` are taken from the payload, which has at most
    /// [`LONGEST_PAYLOAD`] bytes.
    pub fn append(&mut self, head: &BlockHead, payload: &[u8]) -> Result<(), Failure> {
        let Self { files, header, past, written } = self;
        if payload.len() > LONGEST_PAYLOAD {
            return Err(files.fail(Step::Write, libc::EMSGSIZE));
        }
        past.recall(files.dir(), header);
        let bytes = head.to_bytes(payload);
        files.append([&bytes, payload], &mut |segment, path| {
            let evicted = past.begin(path);
            Preamble { segment, first_ns: head.realtime_ns, evicted, before: *written }.to_bytes(header)
        })?;
        *written += (bytes.len() + payload.len()) as u64;
        if head.kind == kind::SLOTS {
            past.add(head.flags.into());
        }
        Ok(())
    }

    /// Says that this is the end: who reads it knows that nothing is missing behind.
    pub fn end(&mut self, head: &BlockHead) -> Result<(), Failure> {
        self.append(head, &self.written.to_le_bytes())
    }

    /// How many outermost calls went with older segments since this drain began, as far as was known when the last one
    /// did.
    pub fn evicted(&self) -> u64 {
        self.past.evicted - self.past.told
    }

    /// The file that is written now.
    pub fn path(&self) -> Option<&Path> {
        self.files.path()
    }

    /// What happened besides the writing since this was last asked.
    pub fn take_report(&mut self) -> Report {
        self.files.take_report()
    }

    /// What goes wrong now, if anything.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.files.trouble()
    }
}

/// The process that a header is of.
fn whose(header: &[u8]) -> Option<[&[u8]; 3]> {
    let field = |at: usize, len: usize| header.get(at..at + len);
    Some([
        field(offset_of!(Header, pid), size_of::<u32>())?,
        field(offset_of!(Header, born_ns), size_of::<u64>())?,
        field(offset_of!(Header, boot_id), 40)?,
    ])
}

/// What a segment of that process says about older ones, and how many outermost calls it holds itself, by the heads of its
/// blocks.
fn look(path: &Path, header: &[u8]) -> Option<(u64, u64)> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let reader = SegmentReader::open(&file).ok()?;
    if whose(&reader.header)? != whose(header)? {
        return None;
    }
    let (mut calls, mut at, mut bytes) = (0, reader.good(), [0; HEAD]);
    while file.read_exact_at(&mut bytes, at).is_ok() && bytes.starts_with(&BLOCK_MAGIC) {
        let head = BlockHead::from_bytes(&bytes);
        calls += if head.kind == kind::SLOTS { u64::from(head.flags) } else { 0 };
        at += HEAD as u64 + u64::from(head.bytes);
    }
    Some((reader.preamble.evicted, calls))
}

impl Past {
    /// Looks, the first time, what earlier drains of this process have written: it may be removed, too.
    fn recall(&mut self, dir: &Path, header: &[u8]) {
        /// With fewer bytes of records a drain begins no second file, unless another program changes the first one.
        const FEW: u64 = 32 << 10;
        let Some(stem) = self.stem.take() else { return };
        match self.earlier {
            Some(0) => {}
            Some(..FEW) => self.recall_by_name(&stem, dir, header),
            _ => self.recall_by_listing(&stem, dir, header),
        }
        self.evicted = self.told;
    }

    /// Tries the names that files of an earlier drain can have. The cost does not depend on how many other files there are.
    fn recall_by_name(&mut self, stem: &str, dir: &Path, header: &[u8]) {
        const SEGMENTS: u64 = 4;
        /// Number of names that are tried even if the first ones are missing: those files may have been removed.
        const TURNS: u64 = 4;
        for segment in 0..SEGMENTS {
            for turn in 1.. {
                let path = dir.join(file_names::file(stem, segment, turn, Kind::Trace));
                let is_missing = std::fs::symlink_metadata(&path).is_err();
                if is_missing && turn >= TURNS {
                    break;
                }
                if !is_missing {
                    self.recall_one(path, header);
                }
            }
        }
    }

    fn recall_by_listing(&mut self, stem: &str, dir: &Path, header: &[u8]) {
        let is_like_ours = |name: &[u8]| {
            let end = [b".", Kind::Trace.extension().as_bytes()].concat();
            name.starts_with(stem.as_bytes()) && name.ends_with(&end)
        };
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if is_like_ours(entry.file_name().as_bytes()) {
                self.recall_one(entry.path(), header);
            }
        }
    }

    fn recall_one(&mut self, path: PathBuf, header: &[u8]) {
        if let Some((evicted, calls)) = look(&path, header) {
            self.told = self.told.max(evicted);
            self.segments.push((path, calls));
        }
    }

    /// A new segment begins: how many slots are gone. Another process may have removed the files,
    /// so we look instead of remembering what we removed.
    fn begin(&mut self, path: &Path) -> u64 {
        let mut gone = 0;
        self.segments.retain(|(old, slots)| {
            let about = std::fs::symlink_metadata(old);
            // The new one may have the name of one that is gone.
            let missing = old == path || about.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            gone += if missing { *slots } else { 0 };
            !missing
        });
        self.segments.push((path.to_path_buf(), 0));
        self.evicted += gone;
        self.evicted
    }

    fn add(&mut self, more: u64) {
        if let Some((_, slots)) = self.segments.last_mut() {
            *slots += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::storage::budget::Sizes;
    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt;

    fn writer(scratch: &Scratch, sizes: Sizes) -> TraceWriter {
        TraceWriter::new(OutputLocation { dir: scratch.path().to_path_buf(), stem: "t".into(), sizes }, b"ring header")
    }

    fn block(first: u64) -> BlockHead {
        BlockHead { kind: kind::SLOTS, ring: 1, thread: 2, first, realtime_ns: 1000 + first, ..BlockHead::default() }
    }

    #[test]
    fn what_is_written_over_several_files_is_read_back_in_order() {
        let scratch = Scratch::new("trace-files");
        let mut writer = writer(&scratch, Sizes { segment: 1000, budget: 1 << 30 });
        let payload: Vec<u8> = (0..=255).collect();
        for n in 0..10 {
            writer.append(&block(n * 4), &payload).unwrap();
        }
        let (mut firsts, mut before) = (Vec::new(), 0);
        for (number, name) in
            ["t.acltrace", "t.1.acltrace", "t.2.acltrace", "t.3.acltrace", "t.4.acltrace"].iter().enumerate()
        {
            let file = File::open(scratch.path().join(name)).unwrap();
            let about = file.metadata().unwrap();
            assert!(about.mode() & 0o7777 == 0o600 && about.len() <= 1000);
            let mut reader = SegmentReader::open(file).unwrap();
            assert_eq!((reader.preamble.segment, reader.preamble.evicted), (number as u64, 0));
            assert_eq!(reader.preamble.before, before);
            assert!(reader.header.starts_with(b"ring header\0"));
            let first_ns = reader.preamble.first_ns;
            while let Some(block) = reader.next_block().unwrap() {
                assert_eq!((&block.payload, block.head.slots), (&payload, 4));
                assert!(block.head.realtime_ns >= first_ns);
                firsts.push(block.head.first);
                before += 64 + block.payload.len() as u64;
            }
        }
        assert_eq!(firsts, (0..10).map(|n| n * 4).collect::<Vec<_>>());
        assert_eq!(scratch.names().len(), 5);
    }

    #[test]
    fn calls_that_went_with_removed_files_are_counted_whoever_removed_them() {
        let scratch = Scratch::new("trace-evicted");
        let mut writer = writer(&scratch, Sizes { segment: 1 << 20, budget: 256 << 10 });
        let payload = vec![7; 40 << 10];
        for n in 0..6 {
            writer.append(&BlockHead { flags: 640, ..block(n) }, &payload).unwrap();
        }
        // Files of 64 KiB with one block each: with one more to come, four would be too much.
        let report = writer.take_report();
        assert_eq!((report.removed_files, writer.evicted()), (1, 640));
        assert_eq!(report.removed[0].path, scratch.path().join("t.acltrace"));
        fs::remove_file(scratch.path().join("t.1.acltrace")).unwrap();
        writer.append(&BlockHead { flags: 640, ..block(6) }, &payload).unwrap();
        assert_eq!(writer.evicted(), 1280);
        let last = SegmentReader::open(File::open(writer.path().unwrap()).unwrap()).unwrap();
        assert_eq!((last.preamble.segment, last.preamble.evicted), (6, 1280));
    }

    #[test]
    fn calls_of_an_earlier_drain_are_counted_when_they_go_and_those_of_others_are_not() {
        let scratch = Scratch::new("trace-earlier");
        let writer = |pid: u8| {
            let mut header = vec![0; size_of::<Header>()];
            header[offset_of!(Header, pid)] = pid;
            let sizes = Sizes { segment: 1000, budget: 1 << 30 };
            TraceWriter::new(OutputLocation { dir: scratch.path().to_path_buf(), stem: "t".into(), sizes }, &header)
        };
        let append = |writer: &mut TraceWriter| {
            writer.append(&BlockHead { flags: 10, ..block(0) }, &[0; 640]).unwrap();
            writer.path().unwrap().to_path_buf()
        };
        let told = |path: &Path| SegmentReader::open(File::open(path).unwrap()).unwrap().preamble.evicted;
        let mut first = writer(1);
        let files: Vec<PathBuf> = (0..3).map(|_| append(&mut first)).collect();
        fs::remove_file(&files[0]).unwrap();
        let last = append(&mut first);
        assert_eq!((told(&last), first.evicted()), (10, 10));
        let other = append(&mut writer(2));
        drop(first);
        let mut second = writer(1);
        assert_eq!((told(&append(&mut second)), second.evicted()), (10, 0), "it is told once more, and counted once");
        fs::remove_file(&files[1]).unwrap();
        fs::remove_file(&files[2]).unwrap();
        fs::remove_file(other).unwrap();
        assert_eq!((told(&append(&mut second)), second.evicted()), (30, 20));
    }

    #[test]
    fn a_payload_that_no_reader_would_take_is_not_written() {
        let scratch = Scratch::new("trace-payload");
        let mut writer = writer(&scratch, Sizes::default());
        let failure = writer.append(&block(0), &vec![0; LONGEST_PAYLOAD + 1]).unwrap_err();
        assert_eq!((failure.errno, scratch.names().len()), (libc::EMSGSIZE, 0));
    }
}
