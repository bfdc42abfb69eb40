//! Annotations: what a program says about itself, that is its scopes, marks in time, and names for streams and buffers.
//!
//! An annotation has a text and as many slots as that takes. The first slot is published last, so that no reader sees a
//! part of one. To a reader that does not know annotations each slot is a note of its own.

use crate::record::slot::{Head, Layout, Note, Words};

/// Longest text, in bytes; what is longer is cut.
pub const LONGEST: usize = 256;
/// Bytes of the text in the first slot.
pub(crate) const IN_FIRST: usize = 24;
/// Bytes of the text in each slot behind the first.
pub(crate) const IN_OTHERS: usize = 56;

/// Kind of an object that a program gives a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NamedKind {
    /// A stream, by its handle.
    Stream = 0,
    /// A range of memory.
    Buffer = 1,
}

/// An annotation, as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Annotation {
    /// A scope begins.
    Scope {
        /// Its number in this process, not 0.
        id: u32,
        /// The scope that it lies in, or 0.
        parent: u32,
        /// Its name.
        name: String,
    },
    /// A scope ends.
    ScopeEnd {
        /// Its number.
        id: u32,
        /// Number of expectations that failed in it.
        failures: u64,
    },
    /// A mark in time.
    Mark {
        /// Its text.
        text: String,
    },
    /// An object has this name from here on; an empty name removes it.
    Name {
        /// Kind of the object.
        kind: NamedKind,
        /// The stream's handle, or the first address.
        begin: u64,
        /// Length of a buffer in bytes; 0 for a stream.
        size: u64,
        /// Its name.
        name: String,
    },
}

/// An annotation to be written, borrowed from the caller: it needs no heap.
#[derive(Clone, Copy)]
pub struct AnnotationRef<'a> {
    pub(crate) note: Note,
    pub(crate) words: [u64; 2],
    pub(crate) kind: u8,
    pub(crate) text: &'a [u8],
}

impl<'a> AnnotationRef<'a> {
    /// The begin of a scope.
    pub fn scope(id: u32, parent: u32, name: &'a [u8]) -> Self {
        Self { note: Note::Scope, words: [id.into(), parent.into()], kind: 0, text: cut(name) }
    }

    /// The end of a scope.
    pub fn scope_end(id: u32, failures: u64) -> Self {
        Self { note: Note::ScopeEnd, words: [id.into(), failures], kind: 0, text: &[] }
    }

    /// A mark.
    pub fn mark(text: &'a [u8]) -> Self {
        Self { note: Note::Mark, words: [0; 2], kind: 0, text: cut(text) }
    }

    /// A name for an object.
    pub fn name(kind: NamedKind, begin: u64, size: u64, name: &'a [u8]) -> Self {
        Self { note: Note::Name, words: [begin, size], kind: kind as u8, text: cut(name) }
    }

    /// Number of slots it takes.
    pub fn slots(&self) -> u64 {
        slots_for(self.text.len()) as u64
    }
}

/// The text up to [`LONGEST`] bytes, cut between two characters.
pub(crate) fn cut(text: &[u8]) -> &[u8] {
    let Some(behind) = text.get(LONGEST) else { return text };
    let is_inside = |byte: u8| byte & 0xc0 == 0x80;
    let mut end = LONGEST;
    // A character has four bytes at most; a longer sequence is not UTF-8.
    if is_inside(*behind) {
        end = (LONGEST - 4..LONGEST).rev().find(|at| !is_inside(text[*at])).unwrap_or(LONGEST);
    }
    &text[..end]
}

pub(crate) const fn slots_for(length: usize) -> usize {
    1 + length.saturating_sub(IN_FIRST).div_ceil(IN_OTHERS)
}

/// The eight bytes of a text from `at` on as a word, filled up with zeros.
pub(crate) fn word(text: &[u8], at: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    let mut bytes = [0; 8];
    let length = rest.len().min(8);
    bytes[..length].copy_from_slice(&rest[..length]);
    u64::from_le_bytes(bytes)
}

/// Whether a slot is the rest of a text.
pub(crate) fn is_rest(head: Head) -> bool {
    head.layout() == Layout::Note && head.function() == Note::Text as u16
}

/// Whether a slot begins a note with a text.
fn has_text(head: Head) -> bool {
    let is = |note: Note| head.function() == note as u16;
    head.layout() == Layout::Note && (is(Note::Scope) || is(Note::Mark) || is(Note::Name))
}

/// Number of slots of the note that begins with `first`.
pub(crate) fn slots(first: &Words) -> usize {
    if has_text(Head(first[0])) { slots_for(length(first)) } else { 1 }
}

fn length(first: &Words) -> usize {
    usize::from(first[4] as u16).min(LONGEST)
}

/// The annotation that begins with `slots[0]`, with its time in ticks; `None` for another kind of note. A text whose last
/// slots are missing is cut.
pub(crate) fn decode(slots: &[Words]) -> Option<(u64, Annotation)> {
    let first = slots.first()?;
    let head = Head(first[0]);
    let [_, ticks, one, other, what, ..] = *first;
    let is = |note: Note| head.function() == note as u16;
    let text = || {
        let rest = slots[1..].iter().take_while(|slot| is_rest(Head(slot[0]))).flat_map(|slot| &slot[1..]);
        let bytes: Vec<u8> = first[5..].iter().chain(rest).flat_map(|word| word.to_le_bytes()).collect();
        let bytes = &bytes[..length(first).min(bytes.len())];
        String::from_utf8_lossy(bytes).into_owned()
    };
    let annotation = if is(Note::Scope) {
        Annotation::Scope { id: one as u32, parent: other as u32, name: text() }
    } else if is(Note::ScopeEnd) {
        Annotation::ScopeEnd { id: one as u32, failures: other }
    } else if is(Note::Mark) {
        Annotation::Mark { text: text() }
    } else if is(Note::Name) {
        let kind = match (what >> 16) as u8 {
            0 => NamedKind::Stream,
            1 => NamedKind::Buffer,
            _ => return None,
        };
        Annotation::Name { kind, begin: one, size: other, name: text() }
    } else {
        return None;
    };
    Some((ticks, annotation))
}
