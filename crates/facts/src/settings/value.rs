//! How each type of value is read from text and written as text.

use super::{Setting, Value, bytes_text, recorded};
use crate::text::Text;
use core::fmt;

/// Room for a path, with its NUL.
pub const PATH: usize = 4096;

/// Returns the working directory, written into the buffer; empty if there is none. Called for relative paths only.
pub type WorkingDirectory = fn(&mut [u8; PATH]) -> &[u8];

/// Where the values of settings come from.
pub trait Given {
    /// The value that is given for a setting, if there is one.
    fn value(&self, setting: &'static Setting) -> Option<&[u8]>;

    /// Takes note that the value of a setting makes no sense.
    fn refuse(&mut self, setting: &'static Setting);
}

/// A type that the value of a setting can have.
pub trait SettingValue: Sized {
    /// The value before it is read; all bytes are zero.
    const UNREAD: Self;

    /// Takes over the given value, or the default where there is none. Returns whether the value makes sense; if it does
    /// not, the default holds.
    fn read(&mut self, setting: &Setting, given: Option<&[u8]>, working_directory: WorkingDirectory) -> bool;

    /// Writes the value in one line, as it could have been given.
    fn write(&self, setting: &Setting, out: &mut dyn fmt::Write) -> fmt::Result;
}

/// The enum of a setting that is one of some words.
pub trait Choice: Copy + PartialEq + 'static {
    /// Its setting.
    const SETTING: &'static Setting;
    /// All values, in the order of the words; the first is the default.
    const ALL: &'static [Self];

    /// The value that `word` stands for.
    fn from_word(word: &[u8]) -> Option<Self> {
        let number = Self::SETTING.choices().iter().position(|known| known.as_bytes() == word)?;
        Self::ALL.get(number).copied()
    }

    /// The word for this value.
    fn word(self) -> &'static str {
        Self::SETTING.choices().get(self.number() as usize).copied().unwrap_or_default()
    }

    /// The value with this number in a ring header; the default if there is none.
    fn from_number(number: u32) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or(Self::ALL[0])
    }

    /// Its number in a ring header.
    fn number(self) -> u32 {
        Self::ALL.iter().position(|known| *known == self).unwrap_or(0) as u32
    }

    /// The value in the settings of a ring or trace header: the default where none is recorded, and `None` for a word that
    /// is not known here.
    fn recorded_in(settings: &str) -> Option<Self> {
        match recorded(settings, Self::SETTING) {
            "" => Self::ALL.first().copied(),
            word => Self::from_word(word.as_bytes()),
        }
    }
}

impl<T: Choice> SettingValue for T {
    const UNREAD: Self = Self::ALL[0];

    #[inline]
    #[unsafe(link_section = ".text.startup")]
    fn read(&mut self, _: &Setting, given: Option<&[u8]>, _: WorkingDirectory) -> bool {
        let chosen = given.map(Self::from_word);
        *self = chosen.flatten().unwrap_or(Self::ALL[0]);
        chosen != Some(None)
    }

    fn write(&self, _: &Setting, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl SettingValue for u64 {
    const UNREAD: Self = 0;

    #[inline]
    #[unsafe(link_section = ".text.startup")]
    fn read(&mut self, setting: &Setting, given: Option<&[u8]>, _: WorkingDirectory) -> bool {
        let number = given.map(|given| setting.number(given));
        *self = number.flatten().unwrap_or(setting.default_number());
        number != Some(None)
    }

    fn write(&self, setting: &Setting, out: &mut dyn fmt::Write) -> fmt::Result {
        let (number, unit) = match setting.value {
            Value::Bytes(..) => bytes_text(*self),
            _ => (*self, ""),
        };
        write!(out, "{number}{unit}")
    }
}

impl<const N: usize> SettingValue for Text<N> {
    const UNREAD: Self = Text::new();

    #[inline]
    #[unsafe(link_section = ".text.startup")]
    fn read(&mut self, setting: &Setting, given: Option<&[u8]>, working_directory: WorkingDirectory) -> bool {
        // What is not set is not touched: each page that is costs a program a microsecond or two at its start.
        let Some(given) = given.or(setting.default_bytes()) else { return true };
        match setting.value {
            // Half of a list would be another list.
            Value::Text(_) => return self.set(given),
            // Absolute: the program may change its directory before its first copy.
            Value::Path { .. } if !given.starts_with(b"/") => set_relative(self, given, working_directory),
            _ => _ = self.replace(&[given]),
        }
        true
    }

    fn write(&self, _: &Setting, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut valid = self.as_bytes().utf8_chunks().map(|chunk| chunk.valid());
        valid.try_for_each(|text| {
            text.split('\n').enumerate().try_for_each(|(nth, line)| {
                out.write_str(if nth == 0 { "" } else { " " })?;
                out.write_str(line)
            })
        })
    }
}

/// Sets `text` to a relative path in the working directory.
#[inline(never)] // its buffer is not to lie on the stack where no path is relative
fn set_relative<const N: usize>(text: &mut Text<N>, path: &[u8], working_directory: WorkingDirectory) {
    let mut buffer = [0; PATH];
    match working_directory(&mut buffer) {
        [] => text.replace(&[path]),
        directory => text.replace(&[directory, b"/", path]),
    };
}
