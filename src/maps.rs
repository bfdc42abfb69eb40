//! What the kernel says of this process's memory.

use core::ops::{ControlFlow, Range};

/// Whether the page at `address` may be written to now, if the kernel says.
pub fn is_writable(address: usize) -> Option<bool> {
    let mut lines = Lines { address, line: [0; 40], filled: 0, answer: None };
    each_byte(|byte| {
        lines.take(byte);
        if lines.answer.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    lines.answer
}

/// Hands over what the kernel says of all of it, byte by byte.
fn each_byte(mut take: impl FnMut(u8) -> ControlFlow<()>) {
    // SAFETY: a descriptor of our own, closed before we leave, and a buffer of ours.
    unsafe {
        let fd = libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return;
        }
        let mut chunk = [0u8; 2048];
        loop {
            let got = libc::read(fd, chunk.as_mut_ptr().cast(), chunk.len());
            let Some(read) = usize::try_from(got).ok().filter(|&read| read > 0) else { break };
            if chunk[..read].iter().try_for_each(|&byte| take(byte)).is_break() {
                break;
            }
        }
        libc::close(fd);
    }
}

/// Writes the lines about files that hold code into `room`, and of each file the first one, as far as they fit.
pub fn of_code(room: &mut [u8]) {
    let mut kept = Kept { room, sure: 0, len: 0, line: 0, file: 0..0 };
    each_byte(|byte| kept.take(byte));
    kept.room[kept.sure..].fill(0);
}

/// Lines that are kept one behind the other; the next one grows where it will stand if it is kept, too.
struct Kept<'a> {
    room: &'a mut [u8],
    /// What stays; behind it may stand the first line of a file that may turn out to hold no code.
    sure: usize,
    len: usize,
    /// How much of the next one is there.
    line: usize,
    /// Where the file stands that the last line was about.
    file: Range<usize>,
}

impl Kept<'_> {
    fn take(&mut self, byte: u8) -> ControlFlow<()> {
        let end = self.len + self.line;
        // One byte is left over: a text ends with a zero.
        if end + 1 >= self.room.len() {
            return ControlFlow::Break(());
        }
        self.room[end] = byte;
        self.line += 1;
        if byte == b'\n' {
            let length = core::mem::take(&mut self.line);
            self.end(length);
        }
        ControlFlow::Continue(())
    }

    /// A line of that length is whole.
    fn end(&mut self, length: usize) {
        let line = self.len..self.len + length;
        let text = &self.room[line.clone()];
        let Some(path) = text.iter().position(|&byte| byte == b'/') else { return };
        let path = line.start + path..line.end;
        let is_code = text.split(|&byte| byte == b' ').nth(1).is_some_and(|mode| mode.get(2) == Some(&b'x'));
        if is_code {
            (self.sure, self.len, self.file) = (line.end, line.end, path);
        } else if self.room[path.clone()] != self.room[self.file.clone()] {
            self.room.copy_within(line.clone(), self.sure);
            self.len = self.sure + length;
            self.file = self.sure + (path.start - line.start)..self.len;
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
    let mut bounds = words
        .next()?
        .split(|&byte| byte == b'-')
        .map(|digits| core::str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok()));
    let (start, end) = (bounds.next()??, bounds.next()??);
    let permissions = words.next()?;
    (start..end).contains(&address).then(|| permissions.get(1) == Some(&b'w'))
}
