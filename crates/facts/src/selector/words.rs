//! The words of a selector or an injection, and how one that makes no sense is reported.

use crate::written;
use core::fmt;

/// A word: `value`, or `key=value`.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// Where it stands in the text.
    at: usize,
    /// The whole word.
    text: &'a [u8],
    /// The key before `=`.
    pub key: Option<&'a [u8]>,
    /// The value after `=`, or the whole word.
    pub value: &'a [u8],
}

/// The words of a text.
pub fn split(text: &[u8]) -> impl Iterator<Item = Word<'_>> {
    split_from(text, 0)
}

/// The words of a part of a text that begins at `base` in it.
pub fn split_from(text: &[u8], base: usize) -> impl Iterator<Item = Word<'_>> {
    let mut at = 0;
    text.split(u8::is_ascii_whitespace).filter_map(move |word| {
        let begin = at;
        at += word.len() + 1;
        let (key, value) = match word.iter().position(|letter| *letter == b'=') {
            Some(sign) => (word.get(..sign), word.get(sign + 1..)?),
            None => (None, word),
        };
        (!word.is_empty()).then_some(Word { at: base + begin, text: word, key, value })
    })
}

impl<'a> Word<'a> {
    /// An error about this word.
    pub fn nonsense(&self, why: &'static str) -> Nonsense {
        Nonsense { at: self.at, length: self.text.len(), why }
    }

    /// The error that the word occurs twice.
    pub fn twice(&self) -> Nonsense {
        self.nonsense("stands there twice; several values stand in one word, with commas between")
    }

    /// The values between commas, each with a word that names it in an error.
    pub fn parts(&self) -> impl Iterator<Item = (Word<'a>, &'a [u8])> {
        let mut at = self.at + self.text.len() - self.value.len();
        let word = *self;
        self.value.split(|letter| *letter == b',').map(move |value| {
            // An empty one is named by all of it.
            let part = if value.is_empty() { word } else { Word { at, text: value, key: None, value } };
            at += value.len() + 1;
            (part, value)
        })
    }

    /// Its value as a name.
    pub fn name(&self) -> Result<Name, Nonsense> {
        self.name_of(self.value)
    }

    /// A part of it as a name.
    pub fn name_of(&self, text: &[u8]) -> Result<Name, Nonsense> {
        if text.is_empty() {
            return Err(self.nonsense("names nothing"));
        }
        Name::new(text).ok_or_else(|| self.nonsense("is longer than a name may be: 127 bytes"))
    }
}

/// A word that makes no sense: where it stands, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense {
    at: usize,
    length: usize,
    why: &'static str,
}

impl Nonsense {
    /// An error about a whole part of a text.
    pub fn of_part(at: usize, length: usize, why: &'static str) -> Self {
        Self { at, length, why }
    }

    /// For display: the word, its position in `text`, and what is wrong with it.
    pub fn in_text<'a>(&self, text: &'a [u8]) -> Told<'a> {
        Told { word: text.get(self.at..self.at + self.length).unwrap_or_default(), nonsense: *self }
    }
}

/// [`Nonsense`] with its word.
pub struct Told<'a> {
    word: &'a [u8],
    nonsense: Nonsense,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Cut, so that the rest of the message finds room.
        let shown = self.word.get(..64).unwrap_or(self.word);
        f.write_str("\"")?;
        write_lossy(f, shown)?;
        if shown.len() < self.word.len() {
            f.write_str("...")?;
        }
        write!(f, "\" at {} {}", self.nonsense.at + 1, self.nonsense.why)
    }
}

/// Capacity of a [`Name`], in bytes.
const ROOM: usize = 127;

/// A name in a buffer of its own, in which `*` stands for anything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    length: u8,
    bytes: [u8; ROOM],
}

impl Name {
    /// The name, if it is not too long.
    pub fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; ROOM];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self { length: text.len() as u8, bytes })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }

    /// Whether another name matches this one.
    pub fn is_like(&self, name: &[u8]) -> bool {
        written::is_like(self.as_bytes(), name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_lossy(f, self.as_bytes())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

fn write_lossy(f: &mut fmt::Formatter<'_>, text: &[u8]) -> fmt::Result {
    text.utf8_chunks().try_for_each(|chunk| {
        f.write_str(chunk.valid())?;
        if chunk.invalid().is_empty() { Ok(()) } else { f.write_str("\u{fffd}") }
    })
}
