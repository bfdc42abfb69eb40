//! `/proc/self/maps`, read byte by byte: without the heap, and with no more of a line in memory than is needed.

use aclshim_facts::text::Text;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};

/// Finds out whether the page at an address may be written to.
pub struct Protection {
    address: usize,
    /// The beginning of a line: `start-end perms`.
    line: [u8; 40],
    filled: usize,
    is_writable: Option<bool>,
}

impl Protection {
    /// Of the page at `address`.
    pub fn of(address: usize) -> Self {
        Self { address, line: [0; 40], filled: 0, is_writable: None }
    }

    /// Takes a byte; whether more are wanted.
    pub fn take(&mut self, byte: u8) -> bool {
        if byte == b'\n' {
            self.is_writable = self.is_writable.or_else(|| writable(&self.line[..self.filled], self.address));
            self.filled = 0;
        } else if let Some(free) = self.line.get_mut(self.filled) {
            *free = byte;
            self.filled += 1;
        }
        self.is_writable.is_none()
    }

    /// Whether the page may be written to, if a line was about it.
    pub fn is_writable(&self) -> Option<bool> {
        self.is_writable
    }
}

/// What a line says of `address`, if it is about it.
fn writable(line: &[u8], address: usize) -> Option<bool> {
    let mut words = line.split(|&byte| byte == b' ');
    let (start, end) = bounds(words.next()?)?;
    let permissions = words.next()?;
    (start..end).contains(&address).then(|| permissions.get(1) == Some(&b'w'))
}

/// `start-end`.
fn bounds(text: &[u8]) -> Option<(usize, usize)> {
    let number = |digits| usize::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok();
    let mut bounds = text.split(|&byte| byte == b'-').map(number);
    Some((bounds.next()??, bounds.next()??))
}

/// Keeps the lines about files that hold code, and of each file the first one, as far as they fit into a room that other
/// processes may look at meanwhile: the first byte comes last, and so they see all of it or nothing.
pub struct CodeLines<'a> {
    room: &'a [AtomicU8],
    /// The first byte of all.
    head: u8,
    /// What stays; behind it may stand the first line of a file that may turn out to hold no code.
    sure: usize,
    len: usize,
    /// Length of the line that grows behind the others, where it will stand if it is kept.
    line: usize,
    /// Where the path stands that the last line was about.
    file: Range<usize>,
}

impl<'a> CodeLines<'a> {
    /// Nothing yet.
    pub fn new(room: &'a [AtomicU8]) -> Self {
        Self { room, head: 0, sure: 0, len: 0, line: 0, file: 0..0 }
    }

    fn get(&self, at: usize) -> u8 {
        if at == 0 { self.head } else { self.room[at].load(Ordering::Relaxed) }
    }

    fn set(&mut self, at: usize, byte: u8) {
        if at == 0 {
            self.head = byte;
        } else {
            self.room[at].store(byte, Ordering::Relaxed);
        }
    }

    /// Takes a byte; whether there is room for more.
    pub fn take(&mut self, byte: u8) -> bool {
        let end = self.len + self.line;
        // One byte is left over: a text ends with a zero.
        if end + 1 >= self.room.len() {
            return false;
        }
        self.set(end, byte);
        self.line += 1;
        if byte == b'\n' {
            let length = core::mem::take(&mut self.line);
            self.end_line(self.len..self.len + length);
        }
        true
    }

    fn end_line(&mut self, line: Range<usize>) {
        let Some(path) = line.clone().find(|&at| self.get(at) == b'/') else { return };
        let mode = line.clone().find(|&at| self.get(at) == b' ').map_or(line.end, |at| at + 1);
        if mode + 2 < path && self.get(mode + 2) == b'x' {
            (self.sure, self.len, self.file) = (line.end, line.end, path..line.end);
        } else if !(path..line.end).map(|at| self.get(at)).eq(self.file.clone().map(|at| self.get(at))) {
            for (to, from) in (self.sure..).zip(line.clone()) {
                let byte = self.get(from);
                self.set(to, byte);
            }
            self.len = self.sure + line.len();
            self.file = self.sure + (path - line.start)..self.len;
        }
    }

    /// Shows what was kept to other processes.
    pub fn publish(self) {
        self.room.iter().skip(self.sure.max(1)).for_each(|byte| byte.store(0, Ordering::Relaxed));
        if let Some(first) = self.room.first().filter(|_| self.sure > 0) {
            first.store(self.head, Ordering::Release);
        }
    }
}

/// Finds the module that an address lies in: lines one after another about one file, as the readers of records find it.
pub struct ModuleFinder {
    address: u64,
    /// The first word of this line.
    range: Text<40>,
    in_range: bool,
    /// A hash of this line's path, or [`NO_PATH`].
    path: u64,
    /// What follows the last `/` of its path.
    name: Text<256>,
    /// The hash of the path of the line before, and where the first line of it began.
    last: u64,
    first: u64,
    offset: Option<u64>,
}

const NO_PATH: u64 = 0;

impl ModuleFinder {
    /// For `address`.
    pub fn new(address: u64) -> Self {
        let (range, name) = (Text::new(), Text::new());
        Self { address, range, in_range: true, path: NO_PATH, name, last: NO_PATH, first: 0, offset: None }
    }

    /// Takes a byte; whether more are wanted.
    pub fn take(&mut self, byte: u8) -> bool {
        if byte == b'\n' {
            self.end_line();
            if self.offset.is_some() {
                return false;
            }
            (self.in_range, self.last) = (true, self.path);
            self.range.clear();
            self.path = NO_PATH;
            return true;
        }
        if self.in_range {
            self.in_range = byte != b' ';
            self.range.push(&[byte]);
        } else if byte == b'/' || self.path != NO_PATH {
            self.path = (self.path ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3) | 1;
            match byte {
                b'/' => self.name.clear(),
                _ => _ = self.name.push(&[byte]),
            }
        }
        true
    }

    fn end_line(&mut self) {
        let Some((start, end)) = bounds(self.range.as_bytes().trim_ascii_end()) else { return };
        if self.path == NO_PATH {
            return;
        }
        if self.path != self.last {
            self.first = start as u64;
        }
        if (start as u64..end as u64).contains(&self.address) {
            self.offset = Some(self.address - self.first);
        }
    }

    /// The file name of the module, and the offset of the address from where the module begins in memory. A program may be
    /// replaced while it runs; it has its name for all that.
    pub fn module(&self) -> Option<(&[u8], u64)> {
        let name = self.name.as_bytes();
        Some((name.strip_suffix(b" (deleted)").unwrap_or(name), self.offset?))
    }
}

#[cfg(test)]
mod tests;
