//! A trace of all that a reader may meet, made by dice: calm blocks of common calls, and wild ones of everything else.

use aclshim_facts::{FUNCTIONS, Function};
use aclshim_trace::record::slot::{self, Layout, Note, Words, end_word};
use aclshim_trace::record::{Extent, RecordedFinding};
use aclshim_trace::ring::layout::{Clock, Header, write_names};
use aclshim_trace::segment::format::{BlockHead, Preamble, kind};
use std::sync::atomic::Ordering;

const RINGS: u64 = 3;

/// A generator of numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// A header as a process would have it whose clock goes at this pace.
fn header(ticks_hz: u64) -> Vec<u8> {
    // SAFETY: a plain structure; zero is a valid header.
    let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
    (header.pid, header.functions) = (4711, FUNCTIONS.len() as u32);
    write_names(FUNCTIONS.iter().map(|row| row.name), &mut header.names);
    header.boot_id[..5].copy_from_slice(b"mixed");
    (header.clock, header.ticks_hz) = (Clock::Monotonic as u32, ticks_hz);
    header.born.ticks.store(1, Ordering::Relaxed);
    header.born.realtime_ns.store(1_790_000_000_000_000_000, Ordering::Relaxed);
    header.born.monotonic_ns.store(1, Ordering::Relaxed);
    // SAFETY: a plain structure, read as bytes.
    unsafe { std::slice::from_raw_parts((&raw const *header).cast::<u8>(), size_of::<Header>()) }.to_vec()
}

/// What is being made.
struct Mixed {
    dice: Dice,
    now: u64,
    bytes: Vec<u8>,
    /// Where each block begins.
    blocks: Vec<usize>,
    /// The next number of each ring.
    next: [u64; RINGS as usize],
}

/// A trace of about so many slots, and where its blocks begin.
pub fn trace(seed: u64, slots: u64) -> (Vec<u8>, Vec<usize>) {
    let bytes = Preamble { first_ns: 1, ..Preamble::default() }.to_bytes(&header(1_000_000_000));
    let mut mixed = Mixed { dice: Dice(seed), now: 1000, bytes, blocks: Vec::new(), next: [0; RINGS as usize] };
    while mixed.next.iter().sum::<u64>() < slots {
        match mixed.dice.below(120) {
            0 => mixed.put(kind::TOTALS, BlockHead::default(), &[3, 0, 0, 0, 0, 0, 0, 0].repeat(3)),
            1 => mixed.put(kind::CALIBRATION, BlockHead::default(), &[0; 8]),
            // Behind this one no word stands where it should.
            2 => mixed.put(kind::MODULES, BlockHead::default(), &[1; 29]),
            3 => mixed.put(kind::LOSS, BlockHead { ring: 1, first: 77, ..BlockHead::default() }, &9u64.to_le_bytes()),
            4 if mixed.dice.one_in(4) => {
                let hz = 1_000_000_000 + 300_000_000 * mixed.dice.below(3);
                mixed.put(kind::HEADER, BlockHead::default(), &header(hz));
            }
            _ => mixed.slots(),
        }
    }
    (mixed.bytes, mixed.blocks)
}

impl Mixed {
    fn put(&mut self, kind: u32, head: BlockHead, payload: &[u8]) {
        self.blocks.push(self.bytes.len());
        self.bytes.extend(BlockHead { kind, ..head }.to_bytes(payload));
        self.bytes.extend(payload);
    }

    /// A block of slots; now and then once more, or a part of it, as if a drain had ended before it gave them back.
    fn slots(&mut self) {
        let ring = self.dice.below(5).min(RINGS - 1);
        let (count, is_wild) = (1 + self.dice.below(400), self.dice.one_in(4));
        let first = self.next[ring as usize];
        let mut slots: Vec<Words> = Vec::new();
        while (slots.len() as u64) < count {
            let number = first + slots.len() as u64;
            self.now += 1 + self.dice.below(50);
            match is_wild && self.dice.one_in(8) {
                true => self.wild(number, &mut slots),
                false => slots.push(self.common(number)),
            }
        }
        self.next[ring as usize] += slots.len() as u64;
        let thread = if self.dice.one_in(50) { 0 } else { 100 + ring as u32 + 10 * (first / 20_000) as u32 };
        let head = BlockHead { ring: ring as u32, first, thread, ..BlockHead::default() };
        let bytes: Vec<u8> = slots.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        self.put(kind::SLOTS, head, &bytes);
        if self.dice.one_in(40) {
            let from = self.dice.below(slots.len() as u64);
            self.put(kind::SLOTS, BlockHead { first: first + from, ..head }, &bytes[from as usize * 64..]);
        }
    }

    /// How long a call takes: few values, so that many are equal, also of the slowest.
    fn duration(&mut self) -> u32 {
        if self.dice.one_in(3000) {
            return 5000;
        }
        [0, 5, 17, 800, 4000, 4000, 4001][self.dice.below(7) as usize]
    }

    /// A call in one slot, one of 50 has failed; one of 4000 is nonsense.
    fn common(&mut self, number: u64) -> Words {
        let function = match self.dice.below(100) {
            0..60 => Function::aclrtMemcpyAsync,
            60..90 => Function::aclrtMemcpy,
            90..95 => Function::aclrtMemset,
            _ => Function::aclrtMemsetAsync,
        };
        let is_fill = matches!(function, Function::aclrtMemset | Function::aclrtMemsetAsync);
        let (layout, kind) = if is_fill { (Layout::Fill, 0) } else { (Layout::Linear, 1 + self.dice.below(3) as u32) };
        let code = if self.dice.one_in(50) { 107_000 } else { 0 };
        let end = end_word(self.duration(), code);
        // Ever new call sites now and then; some are of more than one function.
        let site = 0x40_1000 + 16 * if self.dice.one_in(2000) { self.dice.below(100_000) } else { self.dice.below(9) };
        let dst = 0x1000_0000_0000 + 64 * self.dice.below(1 << 20);
        let misaligned = if self.dice.one_in(8) { 8 } else { 0 };
        let src = 0x7f00_0000_0000 + 64 * self.dice.below(1 << 20) + misaligned;
        let src = if self.dice.one_in(4000) { dst + 1 } else { src };
        let size = 1 << self.dice.below(20);
        let head = slot::Head::in_flight(number, layout, function as u16, kind).ended().0;
        [head, self.now, end, site, dst, src, size, 0x55]
    }

    /// Something else: a long record, a call within another or without an end, a note.
    fn wild(&mut self, number: u64, slots: &mut Vec<Words>) {
        let function = Function::aclrtMemcpyAsync as u16;
        // One of the last calls, if it is one.
        let of = number.saturating_sub(1 + self.dice.below(7));
        let note = |note: Note, words: [u64; 7]| {
            let [a, b, c, d, e, f, g] = words;
            [slot::Head::done(number, Layout::Note, note as u16).0, a, b, c, d, e, f, g]
        };
        let common = self.common(number);
        let begun = slot::Head::in_flight(number, Layout::Linear, function, 1);
        match self.dice.below(13) {
            0 => slots.push([begun.nested().ended().0, common[1], common[2], 9, 0x1000, 0x2000, 64, 0]),
            1 => slots.push([begun.passed().0, self.now, 0, 9, 0x1000, 0x2000, 64, 0]),
            2 => slots.push([common[0], self.now, end_word(u32::MAX, 0), 9, 0x1000, 0x2000, 64, 0]),
            3 | 4 => slots.push(note(Note::End, [self.now, of, 4001, 0, 0, 0, 0])),
            5 => {
                let [values, code] = [[1, 2], [0, 107_000]];
                let finding = RecordedFinding {
                    rule: self.dice.below(20) as u8,
                    argument: 1,
                    severity: 2,
                    index: None,
                    values,
                    code: code[1] as i32,
                    fail_index: None,
                };
                slots.push(note(Note::Finding, finding.words(of)));
            }
            6 => slots.push(note(Note::Stack, [of, 0x1234, 0x5678, 0, 0, 0, 0])),
            7 => slots.push(note(Note::Thread, [self.now, 100 + self.dice.below(5), 0, 0, 0, 0, 0])),
            8 => slots.push(note(Note::Lost, [self.now, self.now + 9, 3, 1, 0, 0, 0])),
            9 => slots.push(note(Note::Scope, [self.now, 1 + self.dice.below(50), 0, 2, 0x4142, 0, 0])),
            10 => slots.push(note(Note::Mark, [self.now, 0, 0, 3, 0x43_4241, 0, 0])),
            11 => slots.push([0; 8]),
            _ => {
                let scope = self.dice.below(60) as u32;
                let head = slot::Head::in_flight(number, Layout::Long, function, 0).ended().0;
                let more = slot::Head::done(number + 1, Layout::More, function).0;
                slots.push([head, self.now, common[2], common[3], common[4], common[6], common[5], common[6]]);
                slots.push([more, 0, 0, Extent::new(2, 0, scope).0, 1, 0x55, 0, 0]);
            }
        }
    }
}
