//! Text in a fixed buffer: the host's heap is not ours to use.

use core::ffi::CStr;
use core::fmt;

/// Up to `N - 1` bytes of text, always ended by a NUL. What does not fit is cut off.
#[derive(Clone, Copy)]
#[repr(C)] // the length beside the first bytes: behind the last ones it would be on another page
pub struct Text<const N: usize> {
    len: usize,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    /// Empty text.
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    /// Removes the text. Only the bytes in use are written: a buffer that was never used takes no memory.
    pub fn clear(&mut self) {
        self.bytes[..self.len].fill(0);
        self.len = 0;
    }

    /// Replaces the text by `bytes` if all of them fit, and returns whether they do; else the text is empty.
    pub fn set(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() < N;
        self.replace(&[if fits { bytes } else { &[] }]);
        fits
    }

    /// Replaces the text by all `parts`, one after the other; a NUL ends a part. The new text is written before the old
    /// length is read: memory that is read before it is written for the first time costs two page faults.
    pub fn replace(&mut self, parts: &[&[u8]]) -> &mut Self {
        let bytes = parts.iter().flat_map(|part| part.iter().take_while(|&&byte| byte != 0));
        let mut len = 0;
        for (place, &byte) in self.bytes.iter_mut().take(N.saturating_sub(1)).zip(bytes) {
            *place = byte;
            len += 1;
        }
        if let Some(rest) = self.bytes.get_mut(len..self.len) {
            rest.fill(0);
        }
        self.len = len;
        self
    }

    /// Appends bytes; a NUL ends what is taken.
    pub fn push(&mut self, bytes: &[u8]) -> &mut Self {
        for &byte in bytes {
            if byte == 0 || self.is_full() {
                break;
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
        self
    }

    /// Appends the inside of a JSON string.
    pub fn push_json(&mut self, bytes: &[u8]) -> &mut Self {
        use fmt::Write;
        for &byte in bytes {
            let _ = match byte {
                b'"' | b'\\' => self.write_fmt(format_args!("\\{}", byte as char)),
                b' '..=b'~' => self.write_char(byte as char),
                _ => self.write_fmt(format_args!("\\u{byte:04x}")),
            };
        }
        self
    }

    /// Whether nothing more fits: the text may have been cut.
    pub fn is_full(&self) -> bool {
        self.len + 1 >= N
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The text for C.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// The whole buffer, padded with NULs.
    pub fn as_array(&self) -> &[u8; N] {
        &self.bytes
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_leave_room_for_the_nul() {
        let mut text = Text::<4>::new();
        text.push(b"abcdef");
        assert_eq!((text.as_bytes(), text.as_c_str(), text.is_full()), (&b"abc"[..], c"abc", true));
    }

    #[test]
    fn text_that_must_be_whole_is_all_there_or_not_at_all() {
        let mut text = Text::<4>::new();
        assert!(text.set(b"abc"));
        assert_eq!(text.as_bytes(), b"abc");
        assert!(!text.set(b"abcd"));
        assert_eq!(text.as_bytes(), b"");
    }

    #[test]
    fn text_that_replaces_a_longer_one_leaves_nothing_of_it() {
        let mut text = Text::<8>::new();
        text.push(b"abcdefg");
        text.replace(&[b"x\0-", b"/", b"y"]);
        assert_eq!((text.as_bytes(), text.as_array()), (&b"x/y"[..], b"x/y\0\0\0\0\0"));
        text.replace(&[b"0123", b"456789"]);
        assert_eq!((text.as_bytes(), text.is_full()), (&b"0123456"[..], true));
    }

    #[test]
    fn json_text_cannot_forge_a_line() {
        let mut text = Text::<64>::new();
        text.push_json(b"a\"b\\c\nd\x1b\xff");
        assert_eq!(text.as_bytes(), br#"a\"b\\c\u000ad\u001b\u00ff"#);
    }
}
