//! What the kernel says of this process's memory.

use crate::guest::edge;
use aclshim_facts::text::Text;
use aclshim_trace::system::descriptor::Descriptor;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};

/// Whether the page at `address` may be written to now, if the kernel says.
pub fn is_writable(address: usize) -> Option<bool> {
    let mut lines = Lines { address, line: [0; 40], filled: 0, answer: None };
    read(|byte| {
        lines.take(byte);
        lines.answer.is_none()
    });
    lines.answer
}

/// Hands the file name of the module that `address` lies in to `is`, with the way from where the module begins in memory;
/// what `is` says, or no.
pub fn is_module(address: u64, is: &mut dyn FnMut(&[u8], u64) -> bool) -> bool {
    let mut modules = Modules::new(address);
    // A handler that jumped out would leave the descriptor behind.
    edge::undisturbed(|| read(|byte| modules.take(byte)));
    // A program may be replaced while it runs; it has the same name for all that.
    let name = modules.name.as_bytes();
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    modules.answer.is_some_and(|offset| is(name, offset))
}

/// Reads all, byte by byte, while `take` wants more.
fn read(mut take: impl FnMut(u8) -> bool) {
    let Ok(maps) = Descriptor::open(c"/proc/self/maps", libc::O_RDONLY, 0) else { return };
    let mut chunk = [0u8; 512];
    let mut wants_more = true;
    while wants_more {
        // SAFETY: a descriptor and a buffer of ours.
        let got = unsafe { libc::read(maps.number(), chunk.as_mut_ptr().cast(), chunk.len()) };
        let Some(read) = usize::try_from(got).ok().filter(|&read| read > 0) else { break };
        wants_more = chunk.iter().take(read).all(|&byte| take(byte));
    }
}

/// So much is read at a process's first copy: a host may have any number of mappings, and the program itself comes early.
const MOST: usize = 128 * 1024;

/// Writes the lines about files that hold code to `room`, and of each file the first one, as far as they fit. Others may
/// look there meanwhile: the first byte comes last, and so they see all of it or nothing.
#[inline(never)] // what it has on the stack is not to lie under the rest
pub fn of_code(room: &[AtomicU8]) {
    let mut kept = Kept { room, head: 0, sure: 0, len: 0, line: 0, file: 0..0 };
    let mut left = MOST;
    read(|byte| {
        left -= 1;
        kept.take(byte) && left > 0
    });
    let Kept { head, sure, .. } = kept;
    room.iter().skip(sure.max(1)).for_each(|place| place.store(0, Ordering::Relaxed));
    if let Some(first) = room.first().filter(|_| sure > 0) {
        first.store(head, Ordering::Release);
    }
}

/// Lines that are kept one behind the other; the next one grows where it will stand if it is kept, too.
struct Kept<'a> {
    room: &'a [AtomicU8],
    /// The first byte of all.
    head: u8,
    /// What stays; behind it may stand the first line of a file that may turn out to hold no code.
    sure: usize,
    len: usize,
    /// How much of the next one is there.
    line: usize,
    /// Where the file stands that the last line was about.
    file: Range<usize>,
}

impl Kept<'_> {
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
    fn take(&mut self, byte: u8) -> bool {
        let end = self.len + self.line;
        // One byte is left over: a text ends with a zero.
        if end + 1 >= self.room.len() {
            return false;
        }
        self.set(end, byte);
        self.line += 1;
        if byte == b'\n' {
            let length = core::mem::take(&mut self.line);
            self.end(self.len..self.len + length);
        }
        true
    }

    /// A line is whole.
    fn end(&mut self, line: Range<usize>) {
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
}

/// The lines as they come: `start-end perms ...`, of which only the beginning is kept.
struct Lines {
    address: usize,
    line: [u8; 40],
    filled: usize,
    answer: Option<bool>,
}

impl Lines {
    fn take(&mut self, byte: u8) {
        if byte == b'\n' {
            self.answer = self.answer.or_else(|| writable(&self.line[..self.filled], self.address));
            self.filled = 0;
        } else if let Some(free) = self.line.get_mut(self.filled) {
            *free = byte;
            self.filled += 1;
        }
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

/// The lines as they come, for the one that an address lies in. A module is what lines one after another say of the same
/// file, as whoever reads the records finds it.
struct Modules {
    address: u64,
    /// Of this line: its first word, and a number for its path.
    range: Text<40>,
    in_range: bool,
    path: u64,
    /// What follows the last `/` of its path.
    name: Text<256>,
    /// The path of the line before, and where the first line of it began.
    last: u64,
    first: u64,
    answer: Option<u64>,
}

/// No path.
const NONE: u64 = 0;

impl Modules {
    fn new(address: u64) -> Self {
        let (range, name) = (Text::new(), Text::new());
        Self { address, range, in_range: true, path: NONE, name, last: NONE, first: 0, answer: None }
    }

    /// Takes a byte; whether more are wanted.
    fn take(&mut self, byte: u8) -> bool {
        if byte == b'\n' {
            self.end_line();
            if self.answer.is_some() {
                return false;
            }
            (self.in_range, self.last) = (true, self.path);
            self.range.clear();
            self.path = NONE;
            return true;
        }
        if self.in_range {
            self.in_range = byte != b' ';
            self.range.push(&[byte]);
        } else if byte == b'/' || self.path != NONE {
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
        if self.path == NONE {
            return;
        }
        if self.path != self.last {
            self.first = start as u64;
        }
        if (start as u64..end as u64).contains(&self.address) {
            self.answer = Some(self.address - self.first);
        }
    }
}
