//! Reading a trace segment from beginning to end.

use crate::segment::{
    BLOCK_MAGIC, HEAD, Head, LONGEST_HEADER, LONGEST_PAYLOAD, MAGIC, Preamble, SLOT, VERSION, checksum, half, kind,
    word,
};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

/// What is wrong with a file.
#[derive(Debug)]
pub enum Wrong {
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

/// Where reading ended before the end of the file, and why.
#[derive(Debug)]
pub struct Stop {
    /// How many bytes were good: where the piece begins that is not.
    pub offset: u64,
    /// What is wrong with it.
    pub wrong: Wrong,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.offset;
        match &self.wrong {
            Wrong::NotOurs => write!(f, "not an aclshim trace"),
            Wrong::Version(found) => {
                write!(f, "format version {found}; this program reads version {VERSION}, use the aclshim that wrote it")
            }
            Wrong::Header => write!(f, "the file's header was damaged after it was written"),
            Wrong::Short { wanted, found } => {
                write!(f, "cut off at byte {at}: {found} bytes of {wanted}; the {at} bytes before are good")
            }
            Wrong::NoBlock => write!(f, "no block at byte {at}; the {at} bytes before are good"),
            Wrong::Block => {
                write!(f, "the block at byte {at} was damaged after it was written; the {at} bytes before are good")
            }
            Wrong::Io(error) => write!(f, "byte {at}: {error}"),
        }
    }
}

impl std::error::Error for Stop {}

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its head.
    pub head: Head,
    /// What follows the head.
    pub payload: Vec<u8>,
}

impl Block {
    /// The slots, as words.
    pub fn slots(&self) -> impl Iterator<Item = [u64; SLOT / 8]> {
        let (slots, _) = self.payload.as_chunks::<SLOT>();
        slots.iter().map(|slot| {
            let (words, _) = slot.as_chunks::<8>();
            std::array::from_fn(|at| u64::from_le_bytes(words[at]))
        })
    }
}

/// A file that is being read.
#[derive(Debug)]
pub struct SegmentReader<R> {
    from: R,
    /// The start of the file.
    pub preamble: Preamble,
    /// The process's ring header, filled up with zeros to a multiple of 64 bytes.
    pub header: Vec<u8>,
    good: u64,
    skipped: u64,
    over: bool,
}

impl<R: Read> SegmentReader<R> {
    /// Reads the start of a file.
    pub fn open(mut from: R) -> Result<Self, Stop> {
        let stop = |wrong| Stop { offset: 0, wrong };
        let mut bytes = Vec::new();
        let found = fill(&mut from, &mut bytes, HEAD).map_err(stop)?;
        if !bytes.starts_with(&MAGIC) {
            return Err(stop(Wrong::NotOurs));
        }
        // First the version: of a newer layout nothing else is known.
        match half(&bytes, 8) {
            VERSION => {}
            _ if found < 12 => return Err(stop(short(HEAD, found))),
            other => return Err(stop(Wrong::Version(other))),
        }
        if found < HEAD {
            return Err(stop(short(HEAD, found)));
        }
        let header_len = half(&bytes, 12) as usize;
        if header_len > LONGEST_HEADER || !header_len.is_multiple_of(HEAD) {
            return Err(stop(Wrong::Header));
        }
        let found = fill(&mut from, &mut bytes, header_len).map_err(stop)?;
        if found < header_len {
            return Err(stop(short(HEAD + header_len, HEAD + found)));
        }
        if take_sum(&mut bytes, 40) != checksum(&bytes, &[]) {
            return Err(stop(Wrong::Header));
        }
        let preamble = Preamble { segment: word(&bytes, 16), first_ns: word(&bytes, 24), evicted: word(&bytes, 32) };
        let good = bytes.len() as u64;
        Ok(Self { from, preamble, header: bytes.split_off(HEAD), good, skipped: 0, over: false })
    }

    /// The next block of a kind that is known; none at the end of the file. After a stop there is
    /// nothing more.
    pub fn next_block(&mut self) -> Result<Option<Block>, Stop> {
        while !self.over {
            match self.any_block() {
                Ok(Some(block)) if (kind::SLOTS..=kind::MODULES).contains(&block.head.kind) => return Ok(Some(block)),
                Ok(Some(_)) => self.skipped += 1,
                Ok(None) => self.over = true,
                Err(wrong) => {
                    self.over = true;
                    return Err(Stop { offset: self.good, wrong });
                }
            }
        }
        Ok(None)
    }

    /// How many bytes from the start of the file were good so far.
    pub fn good(&self) -> u64 {
        self.good
    }

    /// How many blocks were of a kind that is not known.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    fn any_block(&mut self) -> Result<Option<Block>, Wrong> {
        let mut head = Vec::new();
        let found = fill(&mut self.from, &mut head, HEAD)?;
        if found == 0 {
            return Ok(None);
        }
        let magic = head.get(..BLOCK_MAGIC.len()).unwrap_or(&head);
        if !BLOCK_MAGIC.starts_with(magic) {
            return Err(Wrong::NoBlock);
        }
        let Some(&bytes) = head.first_chunk::<HEAD>() else { return Err(short(HEAD, found)) };
        let about = Head::from_bytes(&bytes);
        let len = about.bytes as usize;
        if len > LONGEST_PAYLOAD || about.slots as usize != len / SLOT {
            return Err(Wrong::Block);
        }
        let mut payload = Vec::new();
        let found = fill(&mut self.from, &mut payload, len)?;
        if found < len {
            return Err(short(HEAD + len, HEAD + found));
        }
        if take_sum(&mut head, 48) != checksum(&head, &payload) {
            return Err(Wrong::Block);
        }
        self.good += (HEAD + len) as u64;
        Ok(Some(Block { head: about, payload }))
    }
}

impl<R: Read + Seek> SegmentReader<R> {
    /// Goes on with the block that begins at byte `offset`.
    pub fn go_to(&mut self, offset: u64) -> io::Result<()> {
        self.from.seek(SeekFrom::Start(offset))?;
        (self.good, self.over) = (offset, false);
        Ok(())
    }
}

impl<R: Read> Iterator for SegmentReader<R> {
    type Item = Result<Block, Stop>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_block().transpose()
    }
}

/// Appends up to `len` bytes. Memory grows with what is there, not with what a damaged length says.
fn fill(from: &mut impl Read, bytes: &mut Vec<u8>, len: usize) -> Result<usize, Wrong> {
    from.take(len as u64).read_to_end(bytes).map_err(Wrong::Io)
}

/// The checksum that stands at `at`, where a zero is left: so it was computed.
fn take_sum(bytes: &mut [u8], at: usize) -> u64 {
    let sum = word(bytes, at);
    if let Some(place) = bytes.get_mut(at..at + 8) {
        place.fill(0);
    }
    sum
}

fn short(wanted: usize, found: usize) -> Wrong {
    Wrong::Short { wanted: wanted as u64, found: found as u64 }
}

#[cfg(test)]
mod tests;
