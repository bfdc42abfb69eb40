//! What the kernel says of this process's memory.

/// Whether the page at `address` may be written to now, if the kernel says.
pub fn is_writable(address: usize) -> Option<bool> {
    // SAFETY: a descriptor of our own, closed before we leave, and a buffer of ours.
    unsafe {
        let fd = libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let mut lines = Lines { address, line: [0; 40], filled: 0, answer: None };
        let mut chunk = [0u8; 2048];
        while lines.answer.is_none() {
            let got = libc::read(fd, chunk.as_mut_ptr().cast(), chunk.len());
            let Some(read) = usize::try_from(got).ok().filter(|&read| read > 0) else { break };
            chunk[..read].iter().for_each(|&byte| lines.take(byte));
        }
        libc::close(fd);
        lines.answer
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
