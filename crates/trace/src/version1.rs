//! Version 1 of the format: what files of earlier releases hold is converted to the present version when it is read.
//!
//! Three things differ: the bits of a head, the table of function names in a header, and where the drain's words lie in the
//! state of a ring. All other words of slots, blocks and headers are equal.

#[cfg(not(loom))]
use crate::ring::layout::Control;
use crate::ring::layout::{Header, VERSION as PRESENT};
#[cfg(not(loom))]
use crate::sync::Ordering;
use std::borrow::Cow;
use std::mem::offset_of;

/// The number of this version.
pub const VERSION: u32 = 1;
/// Size of a header.
pub(crate) const HEADER: usize = 19_648;
/// Size of the state of a ring.
#[cfg(not(loom))]
pub(crate) const CONTROL: usize = 88;
/// Offset of the first word in the state of a ring that the drain writes: drained, overwritten, ended.
#[cfg(not(loom))]
pub(crate) const DRAINED: usize = 64;

/// Offset of the table of names; headers of both versions are equal up to here.
const NAMES: usize = 192;
/// Room for a name.
const NAME: usize = 40;
/// Number of names in the table.
const FUNCTIONS: usize = 64;
/// Offset of the fields behind the names, which are those of the present version from `host` on.
const BEHIND_NAMES: usize = NAMES + NAME * FUNCTIONS;
/// Shortest header: the first release had no `maps`.
const SHORTEST: usize = 13_440;

#[cfg(not(loom))]
const _: () = {
    assert!(offset_of!(Header, doorbell) == NAMES && offset_of!(Header, form) + 4 == NAMES);
    assert!(offset_of!(Header, maps) - offset_of!(Header, host) == SHORTEST - BEHIND_NAMES);
    assert!(size_of::<Header>() - offset_of!(Header, host) >= HEADER - BEHIND_NAMES);
};

/// The head of a slot, converted. The number loses its 8 upper bits; readers complete it from one that is near.
pub const fn upgrade_head(head: u64) -> u64 {
    let (state, layout, nested) = (head & 3, head >> 2 & 7, head >> 5 & 1);
    let (kind, function, number) = (head >> 6 & 15, head >> 10 & 63, head >> 16);
    state | layout << 2 | nested << 6 | kind << 8 | function << 12 | number << 24
}

/// Converts whole slots in place.
pub(crate) fn upgrade_slots(slots: &mut [u8]) {
    for slot in slots.as_chunks_mut::<64>().0 {
        if let Some(head) = slot.first_chunk_mut() {
            *head = upgrade_head(u64::from_le_bytes(*head)).to_le_bytes();
        }
    }
}

/// A header, converted; empty if it is too short to be one.
pub(crate) fn upgrade_header(old: &[u8]) -> Vec<u8> {
    let Some(names) = old.get(NAMES..BEHIND_NAMES).filter(|_| old.len() >= SHORTEST) else { return Vec::new() };
    let mut header = vec![0; size_of::<Header>()];
    let mut put = |at: usize, bytes: &[u8]| {
        let room = header.get_mut(at..).unwrap_or_default();
        let length = bytes.len().min(room.len());
        room[..length].copy_from_slice(&bytes[..length]);
    };
    put(0, &old[..NAMES]);
    put(offset_of!(Header, version), &PRESENT.to_le_bytes());
    put(offset_of!(Header, size), &(size_of::<Header>() as u32).to_le_bytes());
    let mut at = offset_of!(Header, names);
    for name in names.chunks_exact(NAME) {
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        if name.is_empty() {
            break;
        }
        put(at, name);
        at += name.len() + 1;
    }
    put(offset_of!(Header, host), old.get(BEHIND_NAMES..HEADER).unwrap_or(&old[BEHIND_NAMES..]));
    header
}

/// A copy of a header in the present version: converted if it says that it is of this one.
pub fn present_header(copy: &[u8]) -> Cow<'_, [u8]> {
    let version = copy.get(8..).and_then(|rest| rest.first_chunk()).map(|bytes| u32::from_le_bytes(*bytes));
    if version == Some(VERSION) { Cow::Owned(upgrade_header(copy)) } else { Cow::Borrowed(copy) }
}

/// The state of a ring, converted.
#[cfg(not(loom))]
pub(crate) fn upgrade_control(old: &[u8; CONTROL]) -> Control {
    let control = Control::default();
    let (words, _) = old.as_chunks();
    let word = |at: usize| u64::from_le_bytes(words[at / 8]);
    control.owner.store(word(0) as u32, Ordering::Relaxed);
    let fields = [
        (8, &control.since),
        (16, &control.not_recorded),
        (24, &control.told),
        (32, &control.lost_since),
        (40, &control.notes_lost),
        (48, &control.notes_told),
        (DRAINED, &control.drained),
        (DRAINED + 8, &control.overwritten),
        (DRAINED + 16, &control.ended),
    ];
    fields.iter().for_each(|(at, field)| field.store(word(*at), Ordering::Relaxed));
    control
}

#[cfg(all(test, not(loom)))]
mod tests;
