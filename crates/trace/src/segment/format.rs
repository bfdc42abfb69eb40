//! The layout of a trace segment (`*.acltrace`), version 2. All numbers are little-endian.
//!
//! ```text
//! preamble   64 bytes
//! header     header_len bytes, a multiple of 64: the process's ring header, filled up with zeros
//! block      64 bytes of head, then `bytes` bytes of payload
//! block      ...
//! ```
//!
//! | preamble | at | |
//! |---|---|---|
//! | magic | 0 | `ACLTRACE` |
//! | version | 8 | u32, 2 |
//! | header_len | 12 | u32 |
//! | segment | 16 | u64, 0 for the first file of a process |
//! | first_ns | 24 | u64, time of the first block, nanoseconds since 1970 |
//! | evicted | 32 | u64, outermost calls that went with older segments of this process |
//! | checksum | 40 | u64, over preamble (this word 0) and header |
//! | before | 48 | u64, bytes of the blocks in the earlier files of this drain |
//! | reserved | 56 | 8 bytes, 0 |
//!
//! | head | at | |
//! |---|---|---|
//! | magic | 0 | `BLK1` |
//! | kind | 4 | u32, see [`kind`] |
//! | ring | 8 | u32 |
//! | slots | 12 | u32, whole slots of 64 bytes in the payload |
//! | first | 16 | u64, number of the first slot |
//! | thread | 24 | u32 |
//! | flags | 28 | u32, of a block of slots: how many outermost calls it holds |
//! | ticks | 32 | u64 |
//! | realtime_ns | 40 | u64 |
//! | checksum | 48 | u64, over head (this word 0) and payload |
//! | bytes | 56 | u32, at most [`LONGEST_PAYLOAD`] |
//! | reserved | 60 | u32, 0 |
//!
//! A file is only ever appended to, by whole blocks. It may end anywhere, if its writer was killed there; everything up to
//! the last whole block is valid.

use crate::record::slot::Words;

/// The first eight bytes of a file.
pub const MAGIC: [u8; 8] = *b"ACLTRACE";
/// The version of this layout.
pub const VERSION: u32 = 2;
/// The first four bytes of a block.
pub const BLOCK_MAGIC: [u8; 4] = *b"BLK1";
/// The length of the preamble and of a block's head.
pub const HEAD: usize = 64;
/// The length of a slot.
pub const SLOT: usize = 64;
/// The longest header.
pub const LONGEST_HEADER: usize = 1 << 20;
/// The longest payload of a block.
pub const LONGEST_PAYLOAD: usize = 16 << 20;

/// Kinds of blocks. A reader skips kinds that it does not know.
pub mod kind {
    /// Slots as they stood in the ring.
    pub const SLOTS: u32 = 1;
    /// `ticks`, `realtime_ns` and the payload, CLOCK_MONOTONIC in nanoseconds (a u64), name one moment.
    pub const CALIBRATION: u32 = 2;
    /// Slots from number `first` on that were overwritten before they could be copied: how many, a u64.
    pub const LOSS: u32 = 3;
    /// Losses so far: calls not recorded, slots overwritten, a u64 each.
    pub const TOTALS: u32 = 4;
    /// The process's ring header once more, with fields that were not known at the beginning.
    pub const HEADER: u32 = 5;
    /// The files that are mapped into the process, each: first address, end and length of the path (a u64 each), the path.
    pub const MODULES: u32 = 6;
    /// The drain ends here in order: bytes of the blocks that it has written before, in all of its files, a u64.
    /// Something may follow, if the process went on.
    pub const END: u32 = 7;
    /// Slots from number `first` on were claimed and never written: how many, a u64.
    pub const NEVER: u32 = 8;
}

/// The start of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preamble {
    /// The number of this file among those of its process.
    pub segment: u64,
    /// The time of the first block, in nanoseconds since 1970.
    pub first_ns: u64,
    /// Number of outermost calls that were evicted with older files of this process.
    pub evicted: u64,
    /// Bytes of the blocks in the earlier files of this drain.
    pub before: u64,
}

impl Preamble {
    /// Preamble and header as they stand in the file. What of the header is beyond
    /// [`LONGEST_HEADER`] is left out.
    pub fn to_bytes(&self, header: &[u8]) -> Vec<u8> {
        let header = header.get(..LONGEST_HEADER).unwrap_or(header);
        let header_len = header.len().next_multiple_of(HEAD);
        let mut bytes = Vec::with_capacity(HEAD + header_len);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((header_len as u32).to_le_bytes());
        bytes.extend(self.segment.to_le_bytes());
        bytes.extend(self.first_ns.to_le_bytes());
        bytes.extend(self.evicted.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(self.before.to_le_bytes());
        bytes.resize(HEAD, 0);
        bytes.extend(header);
        bytes.resize(HEAD + header_len, 0);
        let sum = checksum(&bytes, &[]);
        if let Some(place) = bytes.get_mut(40..48) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
        bytes
    }
}

/// The head of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHead {
    /// One of [`kind`].
    pub kind: u32,
    /// The ring that the slots stood in.
    pub ring: u32,
    /// Number of whole slots in the payload.
    pub slots: u32,
    /// The number of the first slot.
    pub first: u64,
    /// The thread.
    pub thread: u32,
    /// Of a block of slots: number of outermost calls in it.
    pub flags: u32,
    /// The process's tick counter when the block was made.
    pub ticks: u64,
    /// The time when the block was made, in nanoseconds since 1970.
    pub realtime_ns: u64,
    /// The length of the payload.
    pub bytes: u32,
}

impl BlockHead {
    /// The head as it stands in the file before `payload`; `slots` and `bytes` are the payload's.
    pub fn to_bytes(&self, payload: &[u8]) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        let fields: [(usize, &[u8]); 11] = [
            (0, &BLOCK_MAGIC),
            (4, &self.kind.to_le_bytes()),
            (8, &self.ring.to_le_bytes()),
            (12, &((payload.len() / SLOT) as u32).to_le_bytes()),
            (16, &self.first.to_le_bytes()),
            (24, &self.thread.to_le_bytes()),
            (28, &self.flags.to_le_bytes()),
            (32, &self.ticks.to_le_bytes()),
            (40, &self.realtime_ns.to_le_bytes()),
            (56, &(payload.len() as u32).to_le_bytes()),
            (60, &[0; 4]),
        ];
        for (at, field) in fields {
            put(&mut bytes, at, field);
        }
        let sum = checksum(&bytes, payload);
        put(&mut bytes, 48, &sum.to_le_bytes());
        bytes
    }

    /// Whether its kind is known.
    pub fn is_known(&self) -> bool {
        (kind::SLOTS..=kind::NEVER).contains(&self.kind)
    }

    /// Decodes a head; the reader checks whether it is valid.
    pub fn from_bytes(bytes: &[u8; HEAD]) -> Self {
        Self {
            kind: half(bytes, 4),
            ring: half(bytes, 8),
            slots: half(bytes, 12),
            first: word(bytes, 16),
            thread: half(bytes, 24),
            flags: half(bytes, 28),
            ticks: word(bytes, 32),
            realtime_ns: word(bytes, 40),
            bytes: half(bytes, 56),
        }
    }
}

/// The checksum of two pieces that follow each other; the first is a multiple of 32 bytes.
pub fn checksum(head: &[u8], payload: &[u8]) -> u64 {
    let mut sum = Checksum::new(head.len() + payload.len());
    sum.add(head);
    sum.add(payload);
    sum.end()
}

/// A checksum under calculation.
///
/// Words go to four lanes in turn, so that a multiplication waits only for the one before it in its own lane.
pub struct Checksum([u64; LANES]);

impl Checksum {
    /// The checksum of `len` bytes.
    pub fn new(len: usize) -> Self {
        Self(std::array::from_fn(|lane| (len + lane) as u64))
    }

    #[inline(always)]
    fn step(sum: u64, word: u64) -> u64 {
        (sum ^ word).rotate_left(29).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// A word for each lane.
    #[inline(always)]
    fn quad(&mut self, quad: [u64; LANES]) {
        for (lane, word) in self.0.iter_mut().zip(quad) {
            *lane = Self::step(*lane, word);
        }
    }

    /// Adds a piece; only the last one may have a length that is no multiple of 32 bytes.
    pub fn add(&mut self, piece: &[u8]) {
        let (quads, rest) = piece.as_chunks();
        let words = |quad: &[u8; 8 * LANES]| std::array::from_fn(|lane| u64::from_le_bytes(quad.as_chunks().0[lane]));
        quads.iter().for_each(|quad| self.quad(words(quad)));
        if !rest.is_empty() {
            let mut quad = [0; 8 * LANES];
            put(&mut quad, 0, rest);
            self.quad(words(&quad));
        }
    }

    /// Adds a slot.
    #[inline(always)]
    pub fn add_slot(&mut self, slot: &Words) {
        let (quads, _) = slot.as_chunks();
        quads.iter().for_each(|quad| self.quad(*quad));
    }

    /// The checksum of all pieces.
    pub fn end(self) -> u64 {
        self.0.into_iter().reduce(Self::step).unwrap_or_default()
    }
}

const LANES: usize = 4;

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}

/// The number of 8 bytes at `at`; 0 where there are none.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|b| u64::from_le_bytes(*b)).unwrap_or_default()
}

/// The number of 4 bytes at `at`; 0 where there are none.
pub(crate) fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|b| u32::from_le_bytes(*b)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_back_as_it_was_written() {
        let head = BlockHead {
            kind: kind::SLOTS,
            ring: 2,
            slots: 2,
            first: 4,
            thread: 5,
            flags: 6,
            ticks: 7,
            realtime_ns: 8,
            bytes: 130,
        };
        assert_eq!(BlockHead::from_bytes(&head.to_bytes(&[9; 130])), head);
    }

    #[test]
    fn the_checksum_is_the_documented_one() {
        // By hand, of one word: four lanes from 8 on, that word and three zeros, and the lanes put together.
        let step = |sum: u64, word: u64| (sum ^ word).rotate_left(29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let sum = step(step(step(step(8, 1), step(9, 0)), step(10, 0)), step(11, 0));
        assert_eq!(checksum(&[], &1u64.to_le_bytes()), sum);
        assert_ne!(checksum(&[], &[1]), checksum(&[], &[1, 0]), "the length counts");
        assert_eq!(checksum(&[7; 64], &[8; 45]), checksum(&[], &[[7; 64].as_slice(), &[8; 45]].concat()));
    }

    #[test]
    fn a_header_is_filled_up_and_a_monstrous_one_cut() {
        let bytes = Preamble { segment: 1, first_ns: 2, evicted: 3, before: 4 }.to_bytes(&[7; 65]);
        assert_eq!((bytes.len(), half(&bytes, 12), bytes[HEAD + 64], bytes[HEAD + 65]), (HEAD + 128, 128, 7, 0));
        assert_eq!(Preamble::default().to_bytes(&vec![0; LONGEST_HEADER + 1]).len(), HEAD + LONGEST_HEADER);
    }
}
