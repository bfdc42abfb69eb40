//! The settings: environment variables and keys of the settings [`file`](mod@file).
//!
//! A setting is one row of the [`table`]. The typed field of [`Settings`], parser, default, printer and documentation are
//! made from it, for the shim and for the command.

#[macro_use]
mod define;
pub mod file;
pub mod policy;
pub mod table;
pub mod value;

pub use table::*;
pub use value::{Choice, PATH};

use crate::rules::world::RunMode;
use crate::written;
use core::fmt;
use file::FileValues;

/// Prefix of every variable.
pub const PREFIX: &str = "ACLSHIM_";

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// The environment variable.
    pub variable: &'static str,
    /// The values that it takes.
    pub value: Value,
    /// Its meaning, one sentence for users.
    pub sentence: &'static str,
}

/// The values that a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// One of these words; the first is the default.
    Choice(&'static [&'static str]),
    /// A path. A relative one is made absolute when it is read.
    Path {
        /// The default as it is documented.
        shown: &'static str,
        /// The default; empty if there is none.
        default: &'static str,
    },
    /// A library as the dynamic loader takes it: a path or a name. There is no default.
    Library {
        /// What is documented as the default.
        shown: &'static str,
    },
    /// Text that is refused if it is too long; the default.
    Text(&'static str),
    /// Text that is cut if it is too long; the default.
    Pattern(&'static str),
    /// A number of bytes (64K, 1M, 2G): default, least, most.
    Bytes(u64, u64, u64),
    /// A number: default, least, most.
    Count(u64, u64, u64),
}

/// Where a given value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The environment variable.
    Environment,
    /// This line of the settings file.
    File(u32),
}

/// Key of a setting in the settings file, for display: `ring_size` for `ACLSHIM_RING_SIZE`.
#[derive(Clone, Copy)]
pub struct Key(&'static str);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| fmt::Write::write_char(f, letter.to_ascii_lowercase()))
    }
}

impl Setting {
    /// Its key in the settings file.
    pub fn key(&self) -> Key {
        Key(self.variable.strip_prefix(PREFIX).unwrap_or(self.variable))
    }

    /// Whether `key` is its key: small letters.
    pub fn has_key(&self, key: &[u8]) -> bool {
        self.key().0.as_bytes().eq_ignore_ascii_case(key) && !key.iter().any(u8::is_ascii_uppercase)
    }

    /// Whether its value names a file or directory.
    pub const fn is_path(&self) -> bool {
        matches!(self.value, Value::Path { .. } | Value::Library { .. })
    }

    /// The words of a choice; empty for a setting of another kind.
    pub const fn choices(&self) -> &'static [&'static str] {
        match self.value {
            Value::Choice(words) => words,
            _ => &[],
        }
    }

    /// The number that `given` stands for, if this setting takes it.
    pub fn number(&self, given: &[u8]) -> Option<u64> {
        let (least, most, units): (u64, u64, &[u8]) = match self.value {
            Value::Bytes(_, least, most) => (least, most, b"KMG"),
            Value::Count(_, least, most) => (least, most, b""),
            _ => return None,
        };
        let unit = given.last().and_then(|last| units.iter().position(|unit| unit == last));
        let (digits, shift) = match unit {
            Some(unit) => (given.split_last()?.1, 10 * (unit as u32 + 1)),
            None => (given, 0),
        };
        written::number(digits)?.checked_mul(1 << shift).filter(|number| (least..=most).contains(number))
    }

    /// The default of a number.
    pub const fn default_number(&self) -> u64 {
        match self.value {
            Value::Bytes(default, ..) | Value::Count(default, ..) => default,
            _ => 0,
        }
    }

    /// The default of a text or path, if it has one.
    pub fn default_bytes(&self) -> Option<&'static [u8]> {
        match self.value {
            Value::Text(default) | Value::Pattern(default) | Value::Path { default, .. } => Some(default.as_bytes()),
            _ => None,
        }
        .filter(|default| !default.is_empty())
    }

    /// The default as it is documented.
    pub fn default_text(&self) -> String {
        match self.value {
            Value::Choice(words) => words[0].into(),
            Value::Path { shown, .. } | Value::Library { shown } => shown.into(),
            Value::Text(default) | Value::Pattern(default) => default.into(),
            Value::Bytes(default, ..) => bytes(default),
            Value::Count(default, ..) => default.to_string(),
        }
    }

    /// The values that it takes, as they are documented.
    pub fn values_text(&self) -> String {
        match self.value {
            Value::Choice(words) => words.join(", "),
            Value::Path { .. } | Value::Library { .. } => "a path".into(),
            Value::Text(_) | Value::Pattern(_) => "text".into(),
            Value::Bytes(_, least, most) => format!("{} to {}", bytes(least), bytes(most)),
            Value::Count(_, least, most) => format!("{least} to {most}"),
        }
    }

    /// The value that is given, and where: the variable comes before the file, and an empty value counts as not given.
    pub fn given<'a>(
        &self,
        variable: Option<&'a [u8]>,
        file: Option<&'a FileValues<'_>>,
    ) -> Option<(&'a [u8], Source)> {
        let in_file = || file?.value(self).map(|(value, line)| (value, Source::File(line)));
        let in_environment = variable.map(|value| (value, Source::Environment));
        in_environment.filter(|(value, _)| !value.is_empty()).or_else(in_file)
    }
}

impl FormSetting {
    /// The run mode that is set; `None` for `auto`.
    pub fn run_mode(self) -> Option<RunMode> {
        match self {
            FormSetting::Auto => None,
            FormSetting::Ep => Some(RunMode::EndPoint),
            FormSetting::Rc => Some(RunMode::RootComplex),
        }
    }
}

impl Settings {
    /// Whether calls are recorded.
    pub fn records(&self) -> bool {
        self.record != Record::Off
    }

    /// Slots of a ring.
    pub fn slots(&self) -> u32 {
        1 << (self.ring_size / 64).ilog2()
    }

    /// Number of slots up to which a ring grows; a power of two, at least [`slots`](Self::slots).
    pub fn most_slots(&self) -> u32 {
        let most = 1 << (self.ring_limit / 64).ilog2();
        if self.record == Record::Flight { self.slots() } else { self.slots().max(most) }
    }
}

/// The value of a setting among those that a ring or trace header records; empty if there is none.
pub fn recorded<'a>(settings: &'a str, setting: &Setting) -> &'a str {
    let value = |line: &'a str| line.strip_prefix(setting.variable)?.strip_prefix('=');
    settings.lines().find_map(value).unwrap_or_default()
}

/// A number of bytes with the largest unit that divides it.
pub fn bytes_text(bytes: u64) -> (u64, &'static str) {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    let unit = units.into_iter().find(|(unit, _)| bytes != 0 && bytes.is_multiple_of(*unit));
    unit.map_or((bytes, ""), |(unit, name)| (bytes / unit, name))
}

fn bytes(number: u64) -> String {
    let (number, unit) = bytes_text(number);
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use super::value::Given;
    use super::*;

    #[test]
    fn numbers_are_digits_with_a_unit_and_within_bounds() {
        let cases: [(&[u8], Option<u64>); 9] = [
            (b"64K", Some(64 << 10)),
            (b"4096", Some(4096)),
            (b"1M", Some(1 << 20)),
            (b"1", None),
            (b"99999999999999999999999", None),
            (b"-1", None),
            (b"K", None),
            (b"", None),
            (b"64k", None),
        ];
        for (given, number) in cases {
            assert_eq!(RING_SIZE.number(given), number, "{:?}", core::str::from_utf8(given));
        }
        assert_eq!((BATCH_ITEMS.number(b"0"), BATCH_ITEMS.number(b"1K")), (Some(0), None));
    }

    /// Reads settings from lines `NAME=value`; also the variables of those that were refused.
    fn read(lines: &'static str) -> (Settings, Vec<&'static str>) {
        struct Lines(&'static str, Vec<&'static str>);
        impl Given for Lines {
            fn value(&self, setting: &'static Setting) -> Option<&[u8]> {
                let value = recorded(self.0, setting);
                (!value.is_empty()).then_some(value.as_bytes())
            }

            fn refuse(&mut self, setting: &'static Setting) {
                self.1.push(setting.variable);
            }
        }
        let (mut settings, mut given) = (Settings::UNREAD, Lines(lines, Vec::new()));
        settings.read(|_| b"/here", &mut given);
        (settings, given.1)
    }

    fn written(settings: &Settings) -> String {
        let mut text = String::new();
        settings.write(&mut text).unwrap();
        text
    }

    #[test]
    fn every_setting_is_printed_with_its_default_and_paths_come_last() {
        let (settings, refused) = read("");
        let text = written(&settings);
        assert_eq!((text.lines().count(), refused.len()), (SETTINGS.len(), 0), "{text}");
        let is_path = |line: &str| {
            SETTINGS.iter().any(|setting| {
                setting.is_path() && line.strip_prefix(setting.variable).is_some_and(|rest| rest.starts_with('='))
            })
        };
        assert!(text.lines().is_sorted_by_key(is_path), "{text}");
        for setting in SETTINGS.iter().filter(|setting| !setting.is_path()) {
            assert_eq!(recorded(&text, setting), setting.default_text(), "{}", setting.variable);
        }
        assert!(text.contains("\nACLSHIM_DIR=/here/aclshim-out\nACLSHIM_REAL=\nACLSHIM_RING_DIR=/dev/shm\n"), "{text}");
    }

    #[test]
    fn what_is_printed_is_read_back_and_nonsense_leaves_the_default() {
        let given = "ACLSHIM_MODE=off\nACLSHIM_RING_SIZE=1M\nACLSHIM_REAL=libx.so\nACLSHIM_DIR=/out\nACLSHIM_SOC=A\n";
        let (settings, refused) = read(given);
        assert_eq!((settings.mode, settings.ring_size, refused.len()), (Mode::Off, 1 << 20, 0));
        let text = written(&settings);
        for line in given.lines() {
            assert!(text.lines().any(|written| written == line), "{line}\n{text}");
        }
        let (settings, refused) = read("ACLSHIM_MODE=loud\nACLSHIM_RING_SIZE=1\nACLSHIM_CALLS=json");
        assert_eq!((settings.mode, settings.ring_size, settings.calls), (Mode::Observe, 64 << 10, Calls::Json));
        assert_eq!(refused, ["ACLSHIM_MODE", "ACLSHIM_RING_SIZE"]);
    }

    #[test]
    fn a_list_that_is_too_long_is_refused_and_a_pattern_is_cut() {
        let long: &'static str = format!("ACLSHIM_RULES={0}\nACLSHIM_FILE={0}", "x".repeat(3000)).leak();
        let (settings, refused) = read(long);
        assert_eq!((settings.rules.as_bytes().len(), settings.file.as_bytes().len()), (0, 127));
        assert_eq!(refused, ["ACLSHIM_RULES"]);
    }

    #[test]
    fn choices_have_a_word_and_a_number_each_and_unknown_ones_are_not_guessed() {
        for (number, calls) in Calls::ALL.iter().enumerate() {
            assert_eq!((calls.number(), Calls::from_number(number as u32)), (number as u32, *calls));
            assert_eq!(Calls::from_word(calls.word().as_bytes()), Some(*calls));
        }
        assert_eq!(Calls::from_number(99), Calls::Trace);
        let recorded = ["", "ACLSHIM_CALLS=off", "ACLSHIM_CALLS=later"].map(Calls::recorded_in);
        assert_eq!(recorded, [Some(Calls::Trace), Some(Calls::Off), None]);
    }

    #[test]
    fn the_variable_comes_before_the_file_and_an_empty_value_is_none() {
        let file = FileValues::read(b"mode = \"off\"\ncalls = \"\"\n", &mut |_, why| panic!("{why}"));
        let given = |setting: &Setting, variable| setting.given(variable, Some(&file));
        assert_eq!(given(&MODE, Some(b"enforce")), Some((&b"enforce"[..], Source::Environment)));
        assert_eq!(given(&MODE, Some(b"")), Some((&b"off"[..], Source::File(1))));
        assert_eq!((given(&MODE, None), given(&CALLS, None)), (Some((&b"off"[..], Source::File(1))), None));
    }
}
