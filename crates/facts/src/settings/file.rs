//! The settings file (`aclshim.toml`): comments, `key = value`, and a `[rules]` table of `RULE = "action"`.
//!
//! A small part of TOML, and every line of it means there what it means here. Nothing is allocated: values are parts of
//! the text. What makes no sense is handed over with its line, and the rest holds.

use super::{CONFIG, RULES as ACTIONS, RULES_ROOM, SETTINGS, Setting};
use crate::rules::RULES;
use crate::rules::rule::Rule;
use crate::settings::policy::Action;
use crate::text::Text;
use core::fmt::{self, Write};

/// The most bytes that such a file may have.
pub const MOST: usize = 64 << 10;

/// What a line says.
#[derive(Clone, Copy)]
pub enum FileEntry<'a> {
    /// A setting's value.
    Value(&'static Setting, &'a [u8]),
    /// What is done about a rule, as one part of `ACLSHIM_RULES`.
    Rule(&'static Rule, Action),
    /// Nothing that makes sense.
    Error(FileError),
}

/// Why a file or a line of it does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// The file cannot be opened or read.
    Unreadable,
    /// It is a folder, a pipe or a device.
    NotAFile,
    /// It has more than [`MOST`] bytes.
    TooLong,
    /// The line is neither a comment, nor a table, nor a key with a value.
    Line,
    /// A table other than `[rules]`.
    Table,
    /// No setting has this key.
    Key,
    /// The key is that of the file's own name.
    Config,
    /// There is no such rule.
    Rule,
    /// Not something that can be done about a rule.
    Action,
    /// The key occurs a second time.
    Twice,
    /// Neither text in quotes, nor a number, nor `false`.
    Value,
    /// A backslash between double quotes.
    Escape,
    /// More rules than there is room for.
    TooMany,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileError::Unreadable => "the file cannot be read",
            FileError::NotAFile => "not a plain file",
            FileError::TooLong => "the file has more than 64 KiB",
            FileError::Line => "expected `key = value`, `[rules]` or a comment",
            FileError::Table => "the only table is [rules]; what stands in this one is not in force",
            FileError::Key => "no setting has this key (`aclshim config` lists them)",
            FileError::Config => "the file cannot name another one",
            FileError::Rule => "there is no such rule (`aclshim rules` lists them)",
            FileError::Action => "a rule is \"off\", \"log\", \"warn\", \"refuse\" or \"abort\"",
            FileError::Twice => "this was said before; the first one is in force",
            FileError::Value => {
                "a value is text in quotes, a number, or false for \"off\"; lists are one text with commas"
            }
            FileError::Escape => "a backslash between double quotes; single quotes take everything as it stands",
            FileError::TooMany => "there is no room for so many rules",
        })
    }
}

/// The values that a settings file gives.
pub struct FileValues<'a> {
    /// The value of each setting of [`SETTINGS`] and its line; line 0 where the file has none.
    values: [(&'a [u8], u32); SETTINGS.len()],
    /// The table `[rules]` as `ACLSHIM_RULES` would have it, with a comma behind each rule.
    rules: Text<RULES_ROOM>,
}

impl<'a> FileValues<'a> {
    /// Reads the text of a file; what makes no sense goes to `wrong` with its line.
    #[inline(never)] // its stack is given back before the caller goes on: that of the host may be small
    pub fn read(text: &'a [u8], wrong: &mut dyn FnMut(u32, FileError)) -> Self {
        let mut found = Self { values: [(&[], 0); SETTINGS.len()], rules: Text::new() };
        read(text, &mut |line, said| match said {
            FileEntry::Value(setting, value) => {
                if let Some(at) = number(setting) {
                    found.values[at] = (value, line);
                }
            }
            // Half of a list would be another list: a rule that does not fit is left out.
            FileEntry::Rule(rule, action) => {
                let before = found.rules;
                let _ = write!(found.rules, "{}={},", rule.id, action.name());
                if found.rules.is_full() {
                    found.rules = before;
                    wrong(line, FileError::TooMany);
                } else if let Some((_, first @ 0)) = number(&ACTIONS).map(|at| &mut found.values[at]) {
                    *first = line;
                }
            }
            FileEntry::Error(why) => wrong(line, why),
        });
        found
    }

    /// The value of a setting and its line; `None` if it is missing or empty.
    pub fn value(&self, setting: &Setting) -> Option<(&[u8], u32)> {
        let (value, line) = self.values[number(setting)?];
        let is_table = core::ptr::eq(setting, &ACTIONS) && self.has_rules_table();
        let value = if is_table { self.rules.as_bytes() } else { value };
        (!value.is_empty()).then_some((value, line))
    }

    /// Whether rules are given in the table `[rules]`.
    pub fn has_rules_table(&self) -> bool {
        !self.rules.as_bytes().is_empty()
    }
}

/// The position of a setting in [`SETTINGS`].
fn number(setting: &Setting) -> Option<usize> {
    SETTINGS.iter().position(|known| core::ptr::eq(*known, setting))
}

enum Table {
    Settings,
    Rules,
    Unknown,
}

/// Hands over what each line says, with its number.
pub fn read<'a>(text: &'a [u8], each: &mut dyn FnMut(u32, FileEntry<'a>)) {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut table = Table::Settings;
    let (mut settings, mut rules) = (0u64, 0u128);
    const { assert!(crate::settings::policy::MOST <= 128) };
    for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let said = match (line.strip_prefix(b"["), &table) {
            (Some(header), _) => {
                let (name, wrong) = open(header, &mut settings);
                table = name;
                wrong.map(FileEntry::Error)
            }
            (None, Table::Unknown) => None,
            (None, Table::Settings) => Some(setting(line, &mut settings)),
            (None, Table::Rules) => Some(rule(line, &mut rules)),
        };
        if let Some(said) = said {
            each(number, said);
        }
    }
}

/// Which table begins here. (`[rules]` and `rules = ...` are one key.)
fn open(header: &[u8], settings: &mut u64) -> (Table, Option<FileError>) {
    let name = header.iter().position(|&byte| byte == b']').and_then(|end| {
        let (name, rest) = header.split_at(end);
        is_end(&rest[1..]).then(|| name.trim_ascii())
    });
    match name {
        Some(b"rules") if number(&ACTIONS).is_some_and(|number| is_first(settings, number)) => (Table::Rules, None),
        Some(b"rules") => (Table::Unknown, Some(FileError::Twice)),
        Some(_) => (Table::Unknown, Some(FileError::Table)),
        None => (Table::Unknown, Some(FileError::Line)),
    }
}

fn setting<'a>(line: &'a [u8], seen: &mut u64) -> FileEntry<'a> {
    const { assert!(SETTINGS.len() <= 64) };
    let (key, value) = match pair(line) {
        Ok(pair) => pair,
        Err(wrong) => return FileEntry::Error(wrong),
    };
    let Some(number) = SETTINGS.iter().position(|known| known.has_key(key)) else {
        return FileEntry::Error(FileError::Key);
    };
    if core::ptr::eq(SETTINGS[number], &CONFIG) {
        return FileEntry::Error(FileError::Config);
    }
    if is_first(seen, number) { FileEntry::Value(SETTINGS[number], value) } else { FileEntry::Error(FileError::Twice) }
}

fn rule<'a>(line: &'a [u8], seen: &mut u128) -> FileEntry<'a> {
    let (key, value) = match pair(line) {
        Ok(pair) => pair,
        Err(wrong) => return FileEntry::Error(wrong),
    };
    let Some(number) = RULES.iter().position(|rule| rule.id.as_bytes() == key) else {
        return FileEntry::Error(FileError::Rule);
    };
    let Some(action) = Action::of(value) else { return FileEntry::Error(FileError::Action) };
    let is_new = *seen >> number & 1 == 0;
    *seen |= 1 << number;
    if is_new { FileEntry::Rule(RULES[number], action) } else { FileEntry::Error(FileError::Twice) }
}

fn is_first(seen: &mut u64, number: usize) -> bool {
    let is_new = *seen >> number & 1 == 0;
    *seen |= 1 << number;
    is_new
}

/// A key, and its value without quotes.
fn pair(line: &[u8]) -> Result<(&[u8], &[u8]), FileError> {
    let at = line.iter().position(|&byte| byte == b'=').ok_or(FileError::Line)?;
    let (key, value) = (line[..at].trim_ascii(), line[at + 1..].trim_ascii());
    let is_bare = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if key.is_empty() || !key.iter().all(is_bare) {
        return Err(FileError::Line);
    }
    Ok((key, self::value(value)?))
}

fn value(given: &[u8]) -> Result<&[u8], FileError> {
    if let Some((&quote @ (b'"' | b'\''), rest)) = given.split_first() {
        let end = rest.iter().position(|&byte| byte == quote).ok_or(FileError::Value)?;
        let (text, behind) = (&rest[..end], &rest[end + 1..]);
        if quote == b'"' && text.contains(&b'\\') {
            return Err(FileError::Escape);
        }
        let is_plain = !text.iter().any(|&byte| byte < b' ' && byte != b'\t' || byte == 0x7f);
        return if is_plain && is_end(behind) { Ok(text) } else { Err(FileError::Value) };
    }
    let bare = given.split(|&byte| byte == b'#').next().unwrap_or_default().trim_ascii();
    match bare {
        b"false" => Ok(b"off"),
        digits if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => Ok(digits),
        _ => Err(FileError::Value),
    }
}

/// Whether nothing or a comment is left of a line.
fn is_end(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii();
    rest.is_empty() || rest.starts_with(b"#")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text says, line by line.
    type Lines<T> = Vec<(u32, T)>;

    fn read_all(text: &str) -> (Lines<String>, Lines<FileError>) {
        let (mut held, mut wrong) = (Vec::new(), Vec::new());
        read(text.as_bytes(), &mut |line, said| match said {
            FileEntry::Value(setting, value) => {
                held.push((line, format!("{}={}", setting.variable, String::from_utf8_lossy(value))));
            }
            FileEntry::Rule(rule, action) => held.push((line, format!("{}={}", rule.id, action.name()))),
            FileEntry::Error(why) => wrong.push((line, why)),
        });
        (held, wrong)
    }

    fn held(text: &str) -> Vec<String> {
        let (held, wrong) = read_all(text);
        assert_eq!(wrong, [], "{text}");
        held.into_iter().map(|(_, said)| said).collect()
    }

    fn wrong(text: &str) -> Vec<FileError> {
        let (held, wrong) = read_all(text);
        assert!(held.is_empty(), "{text}: {held:?}");
        wrong.into_iter().map(|(_, why)| why).collect()
    }

    #[test]
    fn texts_numbers_false_and_comments_are_read() {
        let text = "\u{feff}# first\r\n\r\nmode = \"enforce\"   # why\r\n  ring_size=65536\nstack = false\n\
                    dir = 'C:\\a # b'\nfile = \"it's %p\"#x\nbatch_items = 0 # none\n";
        let expected = [
            "ACLSHIM_MODE=enforce",
            "ACLSHIM_RING_SIZE=65536",
            "ACLSHIM_STACK=off",
            "ACLSHIM_DIR=C:\\a # b",
            "ACLSHIM_FILE=it's %p",
            "ACLSHIM_BATCH_ITEMS=0",
        ];
        assert_eq!(held(text), expected);
    }

    #[test]
    fn a_table_of_rules_is_read_by_rule() {
        assert_eq!(
            held("[ rules ] # some\nALIGN-64 = \"off\"\nDEST-MAX='refuse'\n"),
            ["ALIGN-64=off", "DEST-MAX=refuse"]
        );
        assert_eq!(held("rules = \"ALIGN-64=off\""), ["ACLSHIM_RULES=ALIGN-64=off"]);
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line_and_the_rest_holds() {
        let (held, wrong) = read_all("nonsense\nmode = \"off\"\nmoed = \"off\"\n");
        assert_eq!(held, [(2, "ACLSHIM_MODE=off".to_owned())]);
        assert_eq!(wrong, [(1, FileError::Line), (3, FileError::Key)]);
    }

    #[test]
    fn every_kind_of_nonsense_has_its_name() {
        let cases = [
            ("mode", FileError::Line),
            ("= 1", FileError::Line),
            ("\"mode\" = \"off\"", FileError::Line),
            ("[rules", FileError::Line),
            ("[rules] x", FileError::Line),
            ("[[rules]]", FileError::Line),
            ("[aclshim]\nmode = \"off\"", FileError::Table),
            ("Mode = \"off\"", FileError::Key),
            ("aclshim_mode = \"off\"", FileError::Key),
            ("config = \"x\"", FileError::Config),
            ("[rules]\nNO-SUCH-RULE = \"off\"", FileError::Rule),
            ("[rules]\nALIGN-64 = \"loud\"", FileError::Action),
            ("mode = off", FileError::Value),
            ("mode = true", FileError::Value),
            ("mode =", FileError::Value),
            ("mode = # off", FileError::Value),
            ("mode = \"off", FileError::Value),
            ("mode = \"off\" x", FileError::Value),
            ("mode = '''off'''", FileError::Value),
            ("mute = [\"A\", \"B\"]", FileError::Value),
            ("batch_items = -1", FileError::Value),
            ("batch_items = 1.5", FileError::Value),
            ("mode = \"a\u{0}b\"", FileError::Value),
            ("dir = \"a\\tb\"", FileError::Escape),
        ];
        for (text, why) in cases {
            assert_eq!(wrong(text), [why], "{text}");
        }
    }

    #[test]
    fn what_is_said_twice_holds_as_it_was_said_first() {
        let (held, wrong) = read_all("mode = \"off\"\nmode = \"enforce\"\n");
        assert_eq!((held.len(), wrong), (1, vec![(2, FileError::Twice)]));
        let (held, wrong) = read_all("rules = \"\"\n[rules]\nALIGN-64 = \"off\"\n");
        assert_eq!((held.len(), wrong), (1, vec![(2, FileError::Twice)]));
        let (held, wrong) = read_all("[rules]\nALIGN-64 = \"off\"\nALIGN-64 = \"log\"\n");
        assert_eq!((held.len(), wrong), (1, vec![(3, FileError::Twice)]));
    }
}
