//! Reading bytes of a segment whose lengths may be wrong.

use crate::segment::error::SegmentErrorKind;
use std::io::{self, Read};

/// Bytes that are allocated at once for a payload whose length may be wrong.
const MOST_AT_ONCE: usize = 256 * 1024;

/// Appends up to `len` bytes.
pub(super) fn fill(from: &mut impl Read, bytes: &mut Vec<u8>, len: usize) -> Result<usize, SegmentErrorKind> {
    let begin = bytes.len();
    fill_from(from, bytes, begin, len)
}

/// Reads up to `len` bytes to offset `begin`; `bytes` ends with them. Memory grows with the bytes that are there and not with
/// a damaged length, and bytes that are already allocated are not cleared first.
pub(super) fn fill_from(
    from: &mut impl Read,
    bytes: &mut Vec<u8>,
    begin: usize,
    len: usize,
) -> Result<usize, SegmentErrorKind> {
    let (mut at, end) = (begin, begin + len);
    let read = loop {
        if at == end {
            break Ok(());
        }
        let room = end.min(bytes.len().max(at + MOST_AT_ONCE));
        bytes.resize(room, 0);
        match from.read(&mut bytes[at..]) {
            Ok(0) => break Ok(()),
            Ok(count) => at += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(SegmentErrorKind::Io(error)),
        }
    };
    bytes.truncate(at);
    read.map(|()| at - begin)
}
