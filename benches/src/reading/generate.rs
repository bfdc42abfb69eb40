//! A trace as a busy program leaves it, made without running one: four threads, mostly aligned linear copies.

use aclshim_facts::{FUNCTIONS, Function};
use aclshim_trace::record::slot::{self, Layout, Words, end_word};
use aclshim_trace::ring::layout::{Clock, Header, write_names};
use aclshim_trace::segment::format::{BlockHead, Preamble, kind};
use anyhow::Result;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

const RINGS: usize = 4;
/// Slots of a block, as the drain writes them when there is much to do.
const SLOTS: usize = 1024;
/// Ticks of the made-up clock are nanoseconds.
const START_NS: u64 = 1_790_000_000_000_000_000;

fn header() -> Box<Header> {
    // SAFETY: a plain structure; zero is a valid header.
    let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
    (header.pid, header.functions) = (4711, FUNCTIONS.len() as u32);
    write_names(FUNCTIONS.iter().map(|row| row.name), &mut header.names);
    header.boot_id[..9].copy_from_slice(b"generated");
    header.host[..4].copy_from_slice(b"host");
    header.executable[..8].copy_from_slice(b"/bin/gen");
    (header.clock, header.ticks_hz) = (Clock::Monotonic as u32, 1_000_000_000);
    header.born.ticks.store(1, Ordering::Relaxed);
    header.born.realtime_ns.store(START_NS, Ordering::Relaxed);
    header.born.monotonic_ns.store(1, Ordering::Relaxed);
    header
}

/// A pseudo-random generator with a fixed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

/// A call that begins at `begin`: 70 of 100 asynchronous copies, 25 synchronous ones, 4 fills, and 1 that fails. One of
/// sixteen is not aligned.
fn call(number: u64, begin: u64, dice: &mut Dice) -> Words {
    let (what, size) = (dice.roll() % 100, 64 << (dice.roll() % 15));
    let site = 0x40_1000 + dice.roll() % 24 * 16;
    let [dst, src] = [0x1000_0000_0000u64, 0x7f00_0000_0000].map(|base| base + dice.roll() % 4096 * 65_536);
    let src = if dice.roll().is_multiple_of(16) { src + 8 } else { src };
    let kind = 1 + (dice.roll() % 2) as u32;
    let duration = (500 + dice.roll() % 2000 + size / 16) as u32;
    let stream = 0x5500_0000_0000 + dice.roll() % 8 * 64;
    let head = |layout, function, kind| slot::Head::in_flight(number, layout, function as u16, kind).ended().0;
    match what {
        0..70 => {
            let head = head(Layout::Linear, Function::aclrtMemcpyAsync, kind);
            [head, begin, end_word(duration, 0), site, dst, src, size, stream]
        }
        70..95 => {
            let head = head(Layout::Linear, Function::aclrtMemcpy, kind);
            [head, begin, end_word(duration, 0), site, dst, src, size, 0]
        }
        95..99 => {
            let head = head(Layout::Fill, Function::aclrtMemsetAsync, 0);
            [head, begin, end_word(duration, 0), site, dst, 0, size, stream]
        }
        _ => {
            let head = head(Layout::Linear, Function::aclrtMemcpy, kind);
            [head, begin, end_word(duration, 107_000), site, dst, src, size, 0]
        }
    }
}

/// Writes a trace of `calls` calls.
pub fn generate(path: &Path, calls: u64) -> Result<()> {
    let header = header();
    // SAFETY: a plain structure, read as bytes.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const *header).cast::<u8>(), size_of::<Header>()) };
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(&Preamble { first_ns: START_NS, ..Preamble::default() }.to_bytes(bytes))?;
    let (mut dice, mut begin, mut written) = (Dice(7), 1000, 0);
    let mut numbers = [0; RINGS];
    let mut payload = Vec::with_capacity(SLOTS * size_of::<Words>());
    while written < calls {
        for (ring, next) in numbers.iter_mut().enumerate() {
            let slots = (calls - written).min(SLOTS as u64);
            if slots == 0 {
                break;
            }
            let first = *next;
            payload.clear();
            for _ in 0..slots {
                begin += 20 + dice.roll() % 50;
                let words = call(*next, begin, &mut dice);
                payload.extend(words.map(u64::to_le_bytes).as_flattened());
                *next += 1;
            }
            written += slots;
            let head = BlockHead {
                kind: kind::SLOTS,
                ring: ring as u32,
                first,
                thread: 5000 + ring as u32,
                flags: slots as u32,
                ticks: begin,
                realtime_ns: START_NS + begin,
                ..BlockHead::default()
            };
            out.write_all(&head.to_bytes(&payload))?;
            out.write_all(&payload)?;
        }
    }
    out.flush()?;
    Ok(())
}
