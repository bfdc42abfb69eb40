//! Reading a trace segment from beginning to end, and past what is damaged.

use crate::record::slot::Words;
use crate::segment::format::{
    BLOCK_MAGIC, BlockHead, Checksum, HEAD, LONGEST_HEADER, LONGEST_PAYLOAD, MAGIC, Preamble, SLOT, VERSION, half,
    kind, word,
};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read, Seek};

/// What is wrong with a file.
#[derive(Debug)]
pub enum SegmentErrorKind {
    /// It does not begin as a trace does.
    NotOurs,
    /// It is of a version that this program does not know.
    Version(u32),
    /// The preamble or the header is not as it was written.
    Header,
    /// The file ends within something of this length.
    Short {
        /// How long the piece is.
        wanted: u64,
        /// How much of it is there.
        found: u64,
    },
    /// A block does not begin as blocks do.
    NoBlock,
    /// A block is not as it was written.
    Block,
    /// The system said no.
    Io(io::Error),
}

/// Where a file is damaged, and how.
#[derive(Debug)]
pub struct SegmentError {
    /// Where the piece begins that is not good.
    pub offset: u64,
    /// What is wrong with it.
    pub kind: SegmentErrorKind,
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.offset;
        match &self.kind {
            SegmentErrorKind::NotOurs => write!(f, "not an aclshim trace"),
            SegmentErrorKind::Version(found) => {
                write!(f, "format version {found}; this program reads version {VERSION}, use the aclshim that wrote it")
            }
            SegmentErrorKind::Header => write!(f, "the file's header was damaged after it was written"),
            SegmentErrorKind::Short { wanted, found } => {
                write!(f, "cut off at byte {at}: {found} bytes of {wanted}")
            }
            SegmentErrorKind::NoBlock => write!(f, "no block at byte {at}"),
            SegmentErrorKind::Block => {
                write!(f, "the block at byte {at} was damaged after it was written")
            }
            SegmentErrorKind::Io(error) => write!(f, "byte {at}: {error}"),
        }
    }
}

impl std::error::Error for SegmentError {}

/// A piece of a file that was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins.
    pub offset: u64,
    /// Where reading went on.
    pub end: u64,
    /// Whether the file ends within a block, as it does if whoever wrote it was killed.
    pub is_cut: bool,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_cut, self.end - self.offset) {
            (true, _) => write!(f, "{}; what stands before was read", self.what),
            (_, bytes) => write!(f, "{}; {bytes} bytes were passed over, and the rest was read", self.what),
        }
    }
}

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its head.
    pub head: BlockHead,
    /// What follows the head.
    pub payload: Vec<u8>,
}

impl Block {
    /// The slots where they are, if words can be read there.
    pub fn as_slots(&self) -> Cow<'_, [Words]> {
        as_slots(&self.payload)
    }

    /// The slots, as words.
    pub fn slots(&self) -> impl Iterator<Item = Words> {
        slots(&self.payload)
    }
}

/// The slots of a payload where they are, if words can be read there.
pub fn as_slots(payload: &[u8]) -> Cow<'_, [Words]> {
    // SAFETY: any bytes are words.
    let (before, words, _) = unsafe { payload.align_to::<Words>() };
    if before.is_empty() && cfg!(target_endian = "little") {
        Cow::Borrowed(words)
    } else {
        Cow::Owned(slots(payload).collect())
    }
}

fn slots(payload: &[u8]) -> impl Iterator<Item = Words> {
    let (slots, _) = payload.as_chunks::<SLOT>();
    slots.iter().map(|slot| {
        let (words, _) = slot.as_chunks::<8>();
        std::array::from_fn(|at| u64::from_le_bytes(words[at]))
    })
}

/// A file that is being read.
#[derive(Debug)]
pub struct SegmentReader<R> {
    from: R,
    /// The start of the file.
    pub preamble: Preamble,
    /// The process's ring header, filled up with zeros to a multiple of 64 bytes.
    pub header: Vec<u8>,
    /// What was read and is not taken yet: of a piece that is damaged, and what stands behind it.
    ahead: Vec<u8>,
    /// How much of that is taken.
    taken: usize,
    /// Whether nothing follows what was read ahead.
    is_at_end: bool,
    /// Where the next piece begins.
    offset: u64,
    /// Where the last block began.
    began: u64,
    /// For how many bytes sums may still be made in vain: see [`CREDIT`].
    credit: u64,
    skipped: u64,
    lost: u64,
    damages: Vec<Damage>,
    state: State,
    /// Room for the next payload.
    spare: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A block is expected.
    Reading,
    /// What was expected is damaged: the next good block is looked for.
    Searching,
    /// There is nothing more.
    Over,
}

/// A sum is made over what a head says that its block is long, and a damaged file may be full of heads that lie. So much
/// may be summed up in vain, and [`EARNED`] for each byte that reading goes forward: reading takes a time that grows with the
/// length of the file and no faster.
const CREDIT: u64 = 2 * LONGEST_PAYLOAD as u64;
/// See [`CREDIT`].
const EARNED: u64 = 4;
/// So many damages are told one by one; the last one stands for all that follow.
const MOST_DAMAGES: usize = 100;
/// The length of the headers that we write.
const USUAL_HEADER: usize = size_of::<crate::ring::layout::Header>().next_multiple_of(HEAD);
/// So much room is made at once for what a head says that follows.
const MOST_AT_ONCE: usize = 256 * 1024;
/// So much is read at once while a block is looked for.
const STEP: usize = 64 * 1024;

impl<R: Read> SegmentReader<R> {
    /// Reads the start of a file.
    pub fn open(from: R) -> Result<Self, SegmentError> {
        match Self::open_anyway(from)? {
            (reader, None) => Ok(reader),
            (_, Some(stop)) => Err(stop),
        }
    }

    /// The same of a file whose start may be damaged: what is said there is not to be trusted then, but the blocks behind
    /// can be read.
    pub fn open_anyway(mut from: R) -> Result<(Self, Option<SegmentError>), SegmentError> {
        let stop = |kind| SegmentError { offset: 0, kind };
        let mut bytes = Vec::new();
        let found = fill(&mut from, &mut bytes, HEAD).map_err(stop)?;
        if !bytes.starts_with(&MAGIC) {
            return Err(stop(SegmentErrorKind::NotOurs));
        }
        // First the version: of a newer layout nothing else is known.
        match half(&bytes, 8) {
            VERSION => {}
            _ if found < 12 => return Err(stop(short(HEAD, found))),
            other => return Err(stop(SegmentErrorKind::Version(other))),
        }
        if found < HEAD {
            return Err(stop(short(HEAD, found)));
        }
        let said = half(&bytes, 12) as usize;
        let is_said = said <= LONGEST_HEADER && said.is_multiple_of(HEAD);
        let header_len = if is_said { said } else { USUAL_HEADER };
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
            header: bytes.split_off(HEAD),
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

    /// The next block of a kind that is known; none at the end of the file. A stop is told once. Asked again, the
    /// reader goes on with the next good block behind the damage, if there is one.
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
                Ok(Some(block)) => {
                    let len = (HEAD + block.payload.len()) as u64;
                    self.state = State::Reading;
                    self.began = self.offset;
                    self.offset += len;
                    self.credit = (self.credit + EARNED * len).min(CREDIT);
                    if block.head.is_known() {
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

    /// Takes back the room of a block that was read.
    pub fn reuse(&mut self, block: Block) {
        self.spare = block.payload;
    }

    /// What it reads from.
    pub fn get_ref(&self) -> &R {
        &self.from
    }

    /// Where in the file the block begins that was read last.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// Where in the file reading goes on: behind the last good block, or behind what was passed over.
    pub fn good(&self) -> u64 {
        self.offset
    }

    /// How many blocks were of a kind that is not known.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many bytes were passed over because no good block was there.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// What was passed over, piece by piece.
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

    /// The block that what was read ahead begins with; more is read if it is longer.
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

    /// The next good block behind the damage at the beginning of what was read ahead.
    fn search(&mut self) -> Result<Option<Block>, SegmentErrorKind> {
        self.pass_over(1);
        loop {
            let ahead = self.ahead(usize::MAX);
            match ahead.windows(BLOCK_MAGIC.len()).position(|bytes| bytes == BLOCK_MAGIC) {
                Some(at) => {
                    self.pass_over(at);
                    match self.block_ahead() {
                        Err(wrong @ SegmentErrorKind::Io(_)) => return Err(wrong),
                        Ok(Some(block)) => return Ok(Some(block)),
                        Ok(None) | Err(_) => self.pass_over(1),
                    }
                }
                None => {
                    let before = ahead.len();
                    // The beginning of one may stand at the end.
                    let rest = before.min(BLOCK_MAGIC.len() - 1);
                    self.pass_over(before - rest);
                    if self.look_ahead(rest + STEP)? == rest {
                        self.pass_over(rest);
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// What was read ahead, so much of it at most.
    fn ahead(&self, most: usize) -> &[u8] {
        let ahead = self.ahead.get(self.taken..).unwrap_or_default();
        ahead.get(..most).unwrap_or(ahead)
    }

    /// Reads so far ahead; how many of these bytes are there.
    fn look_ahead(&mut self, len: usize) -> Result<usize, SegmentErrorKind> {
        let there = self.ahead(usize::MAX).len();
        if there < len {
            // Moved when that pays: each byte is moved once or twice.
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

    fn pass_over(&mut self, len: usize) {
        self.taken += len;
        self.offset += len as u64;
        self.lost += len as u64;
        self.credit = (self.credit + EARNED * len as u64).min(CREDIT);
    }
}

impl<R: Read + Seek> SegmentReader<R> {
    /// Goes on with the block that begins at byte `offset`.
    pub fn go_to(&mut self, offset: u64) -> io::Result<()> {
        // By how far it is: within what is buffered nothing is read again.
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
    /// The next block that holds no slots; those that do are passed over unread.
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

/// What a head says, and how long its payload is.
pub fn expected(head: &[u8]) -> Result<(BlockHead, usize), SegmentErrorKind> {
    let magic = head.get(..BLOCK_MAGIC.len()).unwrap_or(head);
    if !BLOCK_MAGIC.starts_with(magic) {
        return Err(SegmentErrorKind::NoBlock);
    }
    let about = BlockHead::from_bytes(head.first_chunk().ok_or_else(|| short(HEAD, head.len()))?);
    let len = about.bytes as usize;
    if len > LONGEST_PAYLOAD || about.slots as usize != len / SLOT {
        return Err(SegmentErrorKind::Block);
    }
    Ok((about, len))
}

/// Appends up to `len` bytes.
fn fill(from: &mut impl Read, bytes: &mut Vec<u8>, len: usize) -> Result<usize, SegmentErrorKind> {
    let begin = bytes.len();
    fill_from(from, bytes, begin, len)
}

/// Reads up to `len` bytes to `begin`; they are the last then. Memory grows with what is there, not with what a damaged
/// length says, and what is there already is not cleared first.
fn fill_from(from: &mut impl Read, bytes: &mut Vec<u8>, begin: usize, len: usize) -> Result<usize, SegmentErrorKind> {
    let (mut at, end) = (begin, begin + len);
    let read = loop {
        if at == end {
            break Ok(());
        }
        let room = end.min(bytes.len().max(at + MOST_AT_ONCE));
        bytes.resize(room, 0);
        match from.read(&mut bytes[at..]) {
            Ok(0) => break Ok(()),
            Ok(count) => at += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(SegmentErrorKind::Io(error)),
        }
    };
    bytes.truncate(at);
    read.map(|()| at - begin)
}

/// Whether a block is as it was written: for whoever looks at its slots anyway.
pub struct BlockChecksum {
    sum: Checksum,
    said: u64,
}

impl BlockChecksum {
    /// Of the block with that head, and a payload of so many bytes.
    pub fn of_block(head: &[u8; HEAD], len: usize) -> Self {
        Self::new(head, 48, len)
    }

    /// The checksum stands at `at`. It was made with a zero there.
    fn new(head: &[u8; HEAD], at: usize, len: usize) -> Self {
        let (mut copy, mut sum) = (*head, Checksum::new(HEAD + len));
        copy[at..at + 8].fill(0);
        sum.add(&copy);
        Self { sum, said: word(head, at) }
    }

    /// The next slot of its payload.
    #[inline(always)]
    pub fn add_slot(&mut self, slot: &Words) {
        self.sum.add_slot(slot);
    }

    /// Whether it is, with the rest of the payload.
    pub fn holds(mut self, rest: &[u8]) -> bool {
        self.sum.add(rest);
        self.sum.end() == self.said
    }
}

/// Whether the checksum that stands at `at` is right.
fn is_well_formed(head: &[u8], at: usize, rest: &[u8]) -> bool {
    head.first_chunk().is_some_and(|head| BlockChecksum::new(head, at, rest.len()).holds(rest))
}

fn short(wanted: usize, found: usize) -> SegmentErrorKind {
    SegmentErrorKind::Short { wanted: wanted as u64, found: found as u64 }
}

#[cfg(test)]
mod tests;
