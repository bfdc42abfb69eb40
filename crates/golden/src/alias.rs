//! Stable aliases for the addresses of one thread: `b1+0x40` for a buffer, `s1` for a stream, `symbol1` for a symbol, or the
//! name that the program gave.

use crate::call::{Name, NamedObject};

/// The lowest address of memory: a smaller number is a constant of the program, and is written as it is.
const LOWEST: u64 = 1 << 16;
/// The first address that is never memory of a process.
const HIGHEST: u64 = 1 << 63;
/// Alignment of every allocator and stack frame. Offsets count from a multiple of it, so that the first offset of a buffer
/// shows whether the buffer is aligned.
const ALIGNED: u64 = 16;

/// The aliases of the buffers, streams and symbols of a thread.
pub struct Aliases<'a> {
    names: &'a [Name],
    /// Memory that was used, as ranges that do not overlap, in order; with its number after its first use.
    buffers: Vec<(u64, u64, Option<usize>)>,
    /// Number of buffers that have a number.
    numbered: usize,
    streams: Vec<u64>,
    symbols: Vec<u64>,
}

impl<'a> Aliases<'a> {
    /// From all ranges (begin and number of bytes) that the calls of a thread used. Ranges that overlap are one buffer;
    /// those that only touch are not, because two allocations may lie side by side by chance.
    pub fn new(ranges: impl Iterator<Item = (u64, u64)>, names: &'a [Name]) -> Self {
        let mut ranges: Vec<(u64, u64)> =
            ranges.map(|(begin, bytes)| (begin, begin.saturating_add(bytes.max(1)))).collect();
        ranges.sort_unstable();
        let mut buffers: Vec<(u64, u64, Option<usize>)> = Vec::new();
        for (begin, end) in ranges {
            match buffers.last_mut() {
                Some(last) if begin < last.1 => last.1 = last.1.max(end),
                _ => buffers.push((begin, end, None)),
            }
        }
        Self { names, buffers, numbered: 0, streams: Vec::new(), symbols: Vec::new() }
    }

    /// An address as a buffer and an offset.
    pub fn address(&mut self, address: u64, at: u64) -> String {
        if !is_memory(address) {
            return literal(address);
        }
        if let Some((name, offset)) = buffer_name(self.names, address, at) {
            return format!("{}+{offset:#x}", shown(name));
        }
        let found = self.buffers.partition_point(|(begin, ..)| *begin <= address).checked_sub(1);
        match found.and_then(|found| self.buffers.get_mut(found)) {
            Some((begin, _, number)) => {
                let number = *number.get_or_insert_with(|| {
                    self.numbered += 1;
                    self.numbered
                });
                format!("b{number}+{:#x}", address - (*begin & !(ALIGNED - 1)))
            }
            // All addresses were among the ranges.
            None => "b?".into(),
        }
    }

    /// A stream by its name or number.
    pub fn stream(&mut self, stream: u64, at: u64) -> String {
        let is_it = |name: &&Name| name.at <= at && name.named == NamedObject::Stream(stream);
        match self.names.iter().rev().find(is_it).filter(|name| !name.name.is_empty()) {
            Some(name) => shown(&name.name),
            None if stream == 0 => "default".into(),
            None => format!("s{}", numbered(&mut self.streams, stream)),
        }
    }

    /// A device variable by its name or number.
    pub fn symbol(&mut self, symbol: u64, at: u64) -> String {
        match buffer_name(self.names, symbol, at) {
            _ if !is_memory(symbol) => literal(symbol),
            Some((name, offset)) => format!("{}+{offset:#x}", shown(name)),
            None => format!("symbol{}", numbered(&mut self.symbols, symbol)),
        }
    }
}

/// Whether an address may be memory.
pub fn is_memory(address: u64) -> bool {
    (LOWEST..HIGHEST).contains(&address)
}

fn literal(address: u64) -> String {
    if address == 0 { "NULL".into() } else { format!("{address:#x}") }
}

/// The name of the memory at an address, and the offset in it.
pub fn buffer_name(names: &[Name], address: u64, at: u64) -> Option<(&str, u64)> {
    let holds = |name: &&Name| matches!(name.named, NamedObject::Buffer { begin, size } if address.checked_sub(begin).is_some_and(|offset| offset < size));
    let name = names.iter().rev().filter(|name| name.at <= at).find(holds)?;
    let NamedObject::Buffer { begin, .. } = name.named else { return None };
    (!name.name.is_empty()).then(|| (name.name.as_str(), address - begin))
}

fn numbered(known: &mut Vec<u64>, handle: u64) -> usize {
    let at = known.iter().position(|other| *other == handle);
    1 + at.unwrap_or_else(|| {
        known.push(handle);
        known.len() - 1
    })
}

/// A name as it is written: in quotes where it could be mistaken for an alias.
fn shown(name: &str) -> String {
    let is_unquoted = |letter: char| letter.is_ascii_alphanumeric() || "_-.:/[]".contains(letter);
    let behind = |prefix: &str| name.strip_prefix(prefix);
    let is_ours = ["b", "s", "symbol"].into_iter().filter_map(behind).any(|rest| rest.parse::<u64>().is_ok())
        || matches!(name, "default" | "NULL");
    if name.chars().all(is_unquoted) && !is_ours { name.into() } else { format!("{name:?}") }
}
