//! Traces as another machine, or another day, would have left them; and long ones.

use aclshim_trace::record::slot::{self, Layout, end_word};
use aclshim_trace::ring::layout::Header;
use aclshim_trace::segment::format::{BlockHead, kind};
use aclshim_trace::segment::reader::SegmentReader;
use std::fs;
use std::io::Write;
use std::mem::offset_of;
use std::path::Path;

/// Where a header has what is changed.
const BORN_NS: usize = offset_of!(Header, born_ns);
const BORN: usize = offset_of!(Header, born);
const LATER: usize = offset_of!(Header, later);
const HOST: usize = offset_of!(Header, host);
const BOOT_ID: usize = offset_of!(Header, boot_id);
const DAY: u64 = 86_400_000_000_000;

fn word(header: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(header[at..at + 8].try_into().unwrap())
}

fn put(header: &mut [u8], at: usize, value: u64) {
    header[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Another machine.
pub struct Machine<'a> {
    /// Its name.
    pub host: &'a str,
    /// Its boot, which is not ours.
    pub boot: &'a str,
    /// How many days ago, at least one: its clocks do not agree with ours, so that the time of a call comes from the file
    /// alone, and is the same whenever it is read.
    pub days: u64,
}

impl Machine<'_> {
    fn header(&self, header: &mut [u8], last: [u64; 2]) {
        let [born, realtime, monotonic] = [0, 8, 16].map(|at| word(header, BORN + at));
        put(header, LATER, last[0].max(born + 1));
        put(header, LATER + 16, monotonic + last[1].saturating_sub(realtime).max(1));
        put(header, BORN + 8, realtime - self.days * DAY);
        put(header, BORN_NS, word(header, BORN_NS) - self.days * DAY);
        for (at, room, text) in [(HOST, 72, self.host), (BOOT_ID, 40, self.boot)] {
            header[at..at + room].fill(0);
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
    }

    /// The trace `from`, as that machine would have written it, at `to`.
    pub fn write(&self, from: &Path, to: &Path) {
        let mut reader = SegmentReader::open(fs::File::open(from).unwrap()).unwrap();
        let mut blocks = Vec::new();
        while let Some(block) = reader.next_block().unwrap() {
            blocks.push(block);
        }
        let last = blocks.last().map(|block| [block.head.ticks, block.head.realtime_ns]).unwrap();
        let mut header = reader.header.clone();
        self.header(&mut header, last);
        let mut bytes = reader.preamble.to_bytes(&header);
        for mut block in blocks {
            match block.head.kind {
                kind::HEADER => self.header(&mut block.payload, last),
                kind::CALIBRATION => continue,
                _ => {}
            }
            bytes.extend(block.head.to_bytes(&block.payload));
            bytes.extend(&block.payload);
        }
        fs::write(to, bytes).unwrap();
    }
}

/// A trace of this many calls at `to`, with the header of `from`.
pub fn long(from: &Path, to: &Path, calls: u64) {
    let reader = SegmentReader::open(fs::File::open(from).unwrap()).unwrap();
    let mut file = std::io::BufWriter::new(fs::File::create(to).unwrap());
    file.write_all(&reader.preamble.to_bytes(&reader.header)).unwrap();
    let born = word(&reader.header, BORN);
    for first in (0..calls).step_by(1024) {
        let numbers = first..calls.min(first + 1024);
        let slots = numbers.clone().map(|number| {
            let head = slot::Head::in_flight(number, Layout::Linear, (number % 2) as u16, 1).ended();
            let (begin, count) = (born + number * 1000, 64 + number % 4096 * 64);
            [head.0, begin, end_word(500, 0), 0x40_1000, 0x1000_0000_0000 + count, 0x5000_0000_0000, count, number % 7]
        });
        let payload: Vec<u8> = slots.flatten().flat_map(u64::to_le_bytes).collect();
        let flags = (numbers.end - numbers.start) as u32;
        let head = BlockHead { kind: kind::SLOTS, first, thread: 7, flags, ticks: born, ..BlockHead::default() };
        file.write_all(&head.to_bytes(&payload)).unwrap();
        file.write_all(&payload).unwrap();
    }
}
