//! Arbitrary changes of real traces and rings, put together again with right checksums.

use aclshim_trace::segment::format::Preamble;
use aclshim_trace::segment::reader::{Block, SegmentReader};

/// Numbers that follow from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    /// A number at which something may go wrong.
    pub fn word(&mut self) -> u64 {
        match self.below(6) {
            0 => self.next(),
            1 => 1 << self.below(64),
            2 => (1u64 << self.below(64)).wrapping_sub(1),
            3 => u64::MAX - self.next() % 70,
            4 => self.next() % 300,
            _ => u64::from(self.next() as u32) << self.below(33),
        }
    }

    /// Makes notes of a program's own out of some slots, with whatever text stands there.
    pub fn tell(&mut self, slots: &mut [u8]) {
        let count = slots.len() / 64;
        for _ in 0..if count > 0 { 1 + self.below(40) } else { 0 } {
            let at = self.below(count) * 64;
            // Done, a note, from 5 to 9; its number stays.
            let head = 2 | 7 << 2 | (5 + self.below(5) as u16) << 10;
            slots[at..at + 2].copy_from_slice(&head.to_le_bytes());
            if self.one_in(2) {
                let what = self.below(300) as u64 | (self.below(3) as u64) << 16;
                slots[at + 32..at + 40].copy_from_slice(&what.to_le_bytes());
            }
        }
    }

    /// Changes some bytes.
    pub fn spoil(&mut self, bytes: &mut [u8]) {
        if bytes.is_empty() {
            return;
        }
        let at = self.below(bytes.len());
        let word = self.word().to_le_bytes();
        match self.below(5) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = word[0],
            wide => {
                let width = [2, 4, 8][wide - 2];
                let at = at / width * width;
                let end = (at + width).min(bytes.len());
                bytes[at..end].copy_from_slice(&word[..end - at]);
            }
        }
    }
}

/// A trace, taken apart.
#[derive(Clone)]
pub struct Trace {
    pub preamble: Preamble,
    pub header: Vec<u8>,
    pub blocks: Vec<Block>,
}

impl Trace {
    pub fn new(bytes: &[u8]) -> Self {
        let mut reader = SegmentReader::open(bytes).unwrap();
        let blocks = reader.by_ref().map(Result::unwrap).collect();
        Self { preamble: reader.preamble, header: reader.header, blocks }
    }

    /// Another one that may be nonsense, but is written as a drain writes.
    pub fn changed(&self, random: &mut Random) -> Vec<u8> {
        let mut trace = self.clone();
        for _ in 0..=random.below(6) {
            let count = trace.blocks.len();
            match random.below(14) {
                12 | 13 if count > 0 => {
                    let at = random.below(count);
                    random.tell(&mut trace.blocks[at].payload);
                }
                0 => random.spoil(&mut trace.header),
                1 => trace.preamble = Preamble { segment: random.word(), first_ns: random.word(), ..trace.preamble },
                2 if count > 0 => drop(trace.blocks.remove(random.below(count))),
                3 if count > 0 => {
                    let copy = trace.blocks[random.below(count)].clone();
                    trace.blocks.insert(random.below(count), copy);
                }
                4 if count > 1 => trace.blocks.swap(random.below(count), random.below(count)),
                5 if count > 0 => {
                    let payload = &mut trace.blocks[random.below(count)].payload;
                    payload.truncate(random.below(payload.len() + 1));
                }
                6 if count > 0 => {
                    let head = &mut trace.blocks[random.below(count)].head;
                    match random.below(6) {
                        0 => head.kind = random.below(10) as u32,
                        1 => head.ring = random.word() as u32,
                        2 => head.first = random.word(),
                        3 => head.thread = random.word() as u32,
                        4 => head.flags = random.word() as u32,
                        _ => (head.ticks, head.realtime_ns) = (random.word(), random.word()),
                    }
                }
                _ if count > 0 => {
                    let payload = &mut trace.blocks[random.below(count)].payload;
                    for _ in 0..=random.below(20) {
                        random.spoil(payload);
                    }
                }
                _ => {}
            }
        }
        let mut bytes = trace.preamble.to_bytes(&trace.header);
        for Block { head, payload } in &trace.blocks {
            bytes.extend(head.to_bytes(payload));
            bytes.extend(payload);
        }
        // Now and then also as no drain writes.
        if random.one_in(3) {
            for _ in 0..=random.below(4) {
                match random.below(4) {
                    0 => bytes.truncate(random.below(bytes.len() + 1)),
                    1 => {
                        let at = random.below(bytes.len() + 1);
                        let garbage: Vec<u8> = (0..random.below(200)).map(|_| random.next() as u8).collect();
                        bytes.splice(at..at, garbage);
                    }
                    _ => random.spoil(&mut bytes),
                }
            }
        }
        bytes
    }
}

/// A ring file that may be nonsense.
pub fn changed_ring(ring: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = ring.to_vec();
    for _ in 0..=random.below(30) {
        let end = bytes.len();
        // The header's numbers, all of the header, the control page of a ring and its first slots, or anything.
        let (from, to) = match random.below(5) {
            0 => (8, 192),
            1 => (8, 20_000),
            2 => (65_536, 65_536 + 128),
            3 => (65_536 + 4096, 65_536 + 4096 + 64 * 64),
            _ => (8, end),
        };
        let (from, to) = (from.min(end), to.min(end));
        random.spoil(&mut bytes[from..to]);
    }
    if random.one_in(3) {
        let end = bytes.len();
        random.tell(&mut bytes[(65_536 + 4096).min(end)..(65_536 + 4096 + 64 * 64).min(end)]);
    }
    if random.one_in(8) {
        bytes.truncate(random.below(bytes.len() + 1));
    }
    bytes
}
