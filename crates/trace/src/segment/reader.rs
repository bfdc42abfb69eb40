//! Reading a trace segment from beginning to end, and past damaged parts.

use crate::segment::block::is_well_formed;
use crate::segment::error::short;
use crate::segment::format::{
    BLOCK_MAGIC, HEAD, LONGEST_HEADER, LONGEST_PAYLOAD, MAGIC, Preamble, VERSION, half, kind, word,
};
use crate::segment::input::{fill, fill_from};
use crate::version1;
use std::io::{self, Read, Seek};

pub use crate::segment::block::{Block, BlockChecksum, as_slots, expected};
pub use crate::segment::error::{Damage, SegmentError, SegmentErrorKind};

/// A segment under reading.
#[derive(Debug)]
pub struct SegmentReader<R> {
    from: R,
    /// The start of the file.
    pub preamble: Preamble,
    /// The process's ring header, filled up with zeros to a multiple of 64 bytes; in the present version, whatever the
    /// file's is.
    pub header: Vec<u8>,
    /// The version of the file.
    version: u32,
    /// Bytes that were read and not used yet: a damaged part and what follows it.
    ahead: Vec<u8>,
    /// Number of these bytes that are used.
    taken: usize,
    /// Whether the file ends with these bytes.
    is_at_end: bool,
    /// Offset of the next block.
    offset: u64,
    /// Offset of the last block.
    began: u64,
    /// Number of bytes for which checksums may still be calculated in vain: see [`CREDIT`].
    credit: u64,
    skipped: u64,
    lost: u64,
    damages: Vec<Damage>,
    state: State,
    /// Buffer for the next payload.
    spare: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A block is expected.
    Reading,
    /// A damaged part was found: the next valid block is searched.
    Searching,
    /// There is nothing more.
    Over,
}

/// Number of bytes over which checksums may be calculated in vain, plus [`EARNED`] for each byte that reading advances. A
/// damaged file may be full of heads with wrong lengths; this limit keeps the time to read it proportional to its length.
const CREDIT: u64 = 2 * LONGEST_PAYLOAD as u64;
/// See [`CREDIT`].
const EARNED: u64 = 4;
/// Number of damages that are listed one by one; the last one stands for all that follow.
const MOST_DAMAGES: usize = 100;
/// Length of the headers of this version.
const USUAL_HEADER: usize = size_of::<crate::ring::layout::Header>().next_multiple_of(HEAD);
/// Bytes that are read at once while a block is searched.
const STEP: usize = 64 * 1024;

impl<R: Read> SegmentReader<R> {
    /// Reads the start of a file.
    pub fn open(from: R) -> Result<Self, SegmentError> {
        match Self::open_anyway(from)? {
            (reader, None) => Ok(reader),
            (_, Some(stop)) => Err(stop),
        }
    }

    /// As [`open`](Self::open), for a file whose start may be damaged: preamble and header are then not reliable, but the
    /// blocks behind can be read.
    pub fn open_anyway(mut from: R) -> Result<(Self, Option<SegmentError>), SegmentError> {
        let stop = |kind| SegmentError { offset: 0, kind };
        let mut bytes = Vec::new();
        let found = fill(&mut from, &mut bytes, HEAD).map_err(stop)?;
        if !bytes.starts_with(&MAGIC) {
            return Err(stop(SegmentErrorKind::NotOurs));
        }
        // First the version: of a newer layout nothing else is known.
        let version = half(&bytes, 8);
        match version {
            VERSION | version1::VERSION => {}
            _ if found < 12 => return Err(stop(short(HEAD, found))),
            other => return Err(stop(SegmentErrorKind::Version(other))),
        }
        if found < HEAD {
            return Err(stop(short(HEAD, found)));
        }
        let said = half(&bytes, 12) as usize;
        let is_said = said <= LONGEST_HEADER && said.is_multiple_of(HEAD);
        let usual = if version == VERSION { USUAL_HEADER } else { version1::HEADER };
        let header_len = if is_said { said } else { usual };
        let found = fill(&mut from, &mut bytes, header_len).map_err(stop)?;
        if found < header_len {
            return Err(stop(short(HEAD + header_len, HEAD + found)));
        }
        let (preamble, header) = bytes.split_at(HEAD);
        let is_good = is_said && is_well_formed(preamble, 40, header);
        let reader = Self {
            from,
            preamble: Preamble {
                segment: word(preamble, 16),
                first_ns: word(preamble, 24),
                evicted: word(preamble, 32),
                before: word(preamble, 48),
            },
            offset: bytes.len() as u64,
            header: if version == VERSION { header.to_vec() } else { version1::upgrade_header(header) },
            version,
            ahead: Vec::new(),
            taken: 0,
            is_at_end: false,
            began: 0,
            credit: CREDIT,
            skipped: 0,
            lost: 0,
            damages: Vec::new(),
            state: State::Reading,
            spare: Vec::new(),
        };
        Ok((reader, (!is_good).then(|| stop(SegmentErrorKind::Header))))
    }

    /// The next block of a known kind, with slots in the present version; `None` at the end of the file. An error is returned once for each damage; the next
    /// call continues with the next valid block behind it, if there is one.
    pub fn next_block(&mut self) -> Result<Option<Block>, SegmentError> {
        loop {
            let read = match self.state {
                State::Over => return Ok(None),
                State::Reading => self.any_block(),
                State::Searching => {
                    let found = self.search();
                    if let Some(damage) = self.damages.last_mut() {
                        damage.end = self.offset;
                        damage.is_cut &= matches!(found, Ok(None));
                    }
                    found
                }
            };
            match read {
                Ok(Some(mut block)) => {
                    let len = (HEAD + block.payload.len()) as u64;
                    self.state = State::Reading;
                    self.began = self.offset;
                    self.offset += len;
                    self.credit = (self.credit + EARNED * len).min(CREDIT);
                    if block.head.is_known() {
                        if block.head.kind == kind::SLOTS && self.version == version1::VERSION {
                            version1::upgrade_slots(&mut block.payload);
                        }
                        return Ok(Some(block));
                    }
                    self.skipped += 1;
                }
                Ok(None) => self.state = State::Over,
                Err(wrong) => {
                    self.state = if matches!(wrong, SegmentErrorKind::Io(_)) { State::Over } else { State::Searching };
                    let stop = SegmentError { offset: self.offset, kind: wrong };
                    if self.damages.len() < MOST_DAMAGES {
                        let (offset, is_cut) = (stop.offset, matches!(stop.kind, SegmentErrorKind::Short { .. }));
                        self.damages.push(Damage { offset, end: offset, is_cut, what: stop.to_string() });
                    }
                    return Err(stop);
                }
            }
        }
    }

    /// Takes back the buffer of a block.
    pub fn reuse(&mut self, block: Block) {
        self.spare = block.payload;
    }

    /// Whether the file is of the present version: only then blocks that are read beside this reader need no conversion.
    pub fn is_present_version(&self) -> bool {
        self.version == VERSION
    }

    /// The underlying reader.
    pub fn get_ref(&self) -> &R {
        &self.from
    }

    /// Offset of the block that was read last.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// Offset at which reading continues: behind the last valid block, or behind the skipped range.
    pub fn good(&self) -> u64 {
        self.offset
    }

    /// Number of blocks of an unknown kind.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Number of bytes that were skipped because no valid block was there.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The ranges that were skipped.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    fn any_block(&mut self) -> Result<Option<Block>, SegmentErrorKind> {
        if self.taken < self.ahead.len() {
            return self.block_ahead();
        }
        let mut head = Vec::new();
        let found = fill(&mut self.from, &mut head, HEAD)?;
        let mut payload = Vec::new();
        let read = match expected(&head) {
            _ if found == 0 => return Ok(None),
            Ok((_, len)) if self.credit < (HEAD + len) as u64 => Err(SegmentErrorKind::Block),
            Ok((about, len)) => {
                payload = std::mem::take(&mut self.spare);
                let found = fill_from(&mut self.from, &mut payload, 0, len)?;
                self.credit -= (HEAD + found) as u64;
                match () {
                    () if found < len => Err(short(HEAD + len, HEAD + found)),
                    () if is_well_formed(&head, 48, &payload) => Ok(about),
                    () => Err(SegmentErrorKind::Block),
                }
            }
            Err(wrong) => Err(wrong),
        };
        match read {
            Ok(about) => {
                self.credit += (HEAD + payload.len()) as u64;
                Ok(Some(Block { head: about, payload }))
            }
            Err(wrong) => {
                head.extend(&payload);
                (self.ahead, self.taken) = (head, 0);
                Err(wrong)
            }
        }
    }

    /// The block at the begin of the bytes read ahead; reads more if it is longer.
    fn block_ahead(&mut self) -> Result<Option<Block>, SegmentErrorKind> {
        let found = self.look_ahead(HEAD)?;
        if found == 0 {
            return Ok(None);
        }
        let (about, len) = expected(self.ahead(HEAD))?;
        let cost = (HEAD + len) as u64;
        if self.credit < cost {
            return Err(SegmentErrorKind::Block);
        }
        let found = self.look_ahead(HEAD + len)?;
        if found < HEAD + len {
            return Err(short(HEAD + len, found));
        }
        let (head, payload) = self.ahead(HEAD + len).split_at(HEAD);
        if !is_well_formed(head, 48, payload) {
            self.credit -= cost;
            return Err(SegmentErrorKind::Block);
        }
        let block = Block { head: about, payload: payload.to_vec() };
        self.taken += HEAD + len;
        Ok(Some(block))
    }

    /// The next valid block behind the damage at the begin of the bytes read ahead.
    fn search(&mut self) -> Result<Option<Block>, SegmentErrorKind> {
        self.skip_bytes(1);
        loop {
            let ahead = self.ahead(usize::MAX);
            match ahead.windows(BLOCK_MAGIC.len()).position(|bytes| bytes == BLOCK_MAGIC) {
                Some(at) => {
                    self.skip_bytes(at);
                    match self.block_ahead() {
                        Err(wrong @ SegmentErrorKind::Io(_)) => return Err(wrong),
                        Ok(Some(block)) => return Ok(Some(block)),
                        Ok(None) | Err(_) => self.skip_bytes(1),
                    }
                }
                None => {
                    let before = ahead.len();
                    // The first bytes of a magic may stand at the end.
                    let rest = before.min(BLOCK_MAGIC.len() - 1);
                    self.skip_bytes(before - rest);
                    if self.look_ahead(rest + STEP)? == rest {
                        self.skip_bytes(rest);
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// The bytes read ahead, at most `most` of them.
    fn ahead(&self, most: usize) -> &[u8] {
        let ahead = self.ahead.get(self.taken..).unwrap_or_default();
        ahead.get(..most).unwrap_or(ahead)
    }

    /// Reads `len` bytes ahead; returns the number of them that are there.
    fn look_ahead(&mut self, len: usize) -> Result<usize, SegmentErrorKind> {
        let there = self.ahead(usize::MAX).len();
        if there < len {
            // Moved only when the used part is the larger one: each byte is moved once or twice.
            if self.taken >= there {
                self.ahead.drain(..self.taken);
                self.taken = 0;
            }
            if !self.is_at_end {
                self.is_at_end = fill(&mut self.from, &mut self.ahead, len - there)? < len - there;
            }
        }
        Ok(self.ahead(len).len())
    }

    fn skip_bytes(&mut self, len: usize) {
        self.taken += len;
        self.offset += len as u64;
        self.lost += len as u64;
        self.credit = (self.credit + EARNED * len as u64).min(CREDIT);
    }
}

impl<R: Read + Seek> SegmentReader<R> {
    /// Continues with the block that begins at byte `offset`.
    pub fn go_to(&mut self, offset: u64) -> io::Result<()> {
        // A relative seek: within its buffer a reader reads nothing again.
        let here = self.offset + (self.ahead.len() - self.taken) as u64;
        self.from.seek_relative(offset.wrapping_sub(here) as i64)?;
        self.ahead.clear();
        self.credit = CREDIT;
        self.is_at_end = false;
        (self.taken, self.offset, self.state) = (0, offset, State::Reading);
        Ok(())
    }
}

impl<R: Read + Seek> SegmentReader<R> {
    /// The next block that holds no slots; blocks of slots are skipped unread.
    pub fn next_without_slots(&mut self) -> Result<Option<Block>, SegmentError> {
        while self.state == State::Reading && self.taken >= self.ahead.len() {
            let mut head = Vec::with_capacity(HEAD);
            let io = |error| SegmentError { offset: self.offset, kind: SegmentErrorKind::Io(error) };
            fill(&mut self.from, &mut head, HEAD).map_err(|kind| SegmentError { offset: self.offset, kind })?;
            match expected(&head) {
                Ok((about, len)) if about.kind == kind::SLOTS => {
                    self.from.seek_relative(len as i64).map_err(io)?;
                    self.offset += (HEAD + len) as u64;
                }
                _ => {
                    (self.ahead, self.taken) = (head, 0);
                    break;
                }
            }
        }
        loop {
            match self.next_block()? {
                Some(block) if block.head.kind == kind::SLOTS => {}
                other => return Ok(other),
            }
        }
    }
}

impl<R: Read> Iterator for SegmentReader<R> {
    type Item = Result<Block, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_block().transpose()
    }
}

#[cfg(test)]
mod tests;
