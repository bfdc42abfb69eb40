//! One JSON object a line, with its keys in a fixed order and nothing in it that could forge a
//! line: `time_ns`, `pid`, `level`, `event`, the other fields as they come, `message` last.

use std::fmt::{self, Write};

/// The longest line, with its newline.
pub const LONGEST: usize = 64 << 10;
/// The longest string in it, as written.
pub const LONGEST_STRING: usize = 16 << 10;
/// Kept free for keys, numbers and cut strings: at most 32 fields of some 100 bytes.
const RESERVE: usize = 8 << 10;
/// What stands where a string was cut.
const CUT: &str = "...";

/// The text of one line while it is put together.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// `{"time_ns":...,"event":"..."`
    start: String,
    /// The other fields, each with a comma before it.
    middle: String,
    /// The message with its comma.
    end: String,
    whole: bool,
}

/// What a field may hold.
pub(crate) enum Value<'a> {
    Number(fmt::Arguments<'a>),
    Float(f64),
    Bool(bool),
    Text(fmt::Arguments<'a>),
    Bytes(&'a [u8]),
    Null,
}

impl Line {
    /// Begins a new line.
    pub fn begin(&mut self, time_ns: u64, pid: u32) {
        self.start.clear();
        self.middle.clear();
        self.end.clear();
        self.whole = false;
        let _ = write!(self.start, "{{\"time_ns\":{time_ns},\"pid\":{pid}");
    }

    /// Adds the level.
    pub fn level(&mut self, level: &str) {
        let _ = write!(self.start, ",\"level\":\"{level}\"");
    }

    /// Adds a field where it belongs. Keys are names in our own source and need no escape.
    pub fn field(&mut self, key: &str, value: Value<'_>) {
        let used = self.start.len() + self.middle.len() + self.end.len();
        let room = LONGEST.saturating_sub(RESERVE + used).min(LONGEST_STRING);
        let out = match key {
            "event" => &mut self.start,
            "message" => &mut self.end,
            _ => &mut self.middle,
        };
        let _ = write!(out, ",\"{key}\":");
        let _ = match value {
            Value::Number(number) => out.write_fmt(number),
            // `{:?}` has an exponent where `{}` would have 300 digits.
            Value::Float(float) if float.is_finite() => write!(out, "{float:?}"),
            Value::Float(_) | Value::Null => out.write_str("null"),
            Value::Bool(bool) => write!(out, "{bool}"),
            Value::Text(text) => Quoted::write(out, room, |quoted| quoted.write_fmt(text)),
            Value::Bytes(bytes) => Quoted::write(out, room, |quoted| {
                bytes.utf8_chunks().try_for_each(|chunk| {
                    quoted.write_str(chunk.valid())?;
                    if chunk.invalid().is_empty() { Ok(()) } else { quoted.write_char('\u{fffd}') }
                })
            }),
        };
    }

    /// The line is complete.
    pub fn finish(&mut self) {
        let Self { start, middle, end, whole } = self;
        start.push_str(middle);
        start.push_str(end);
        start.push_str("}\n");
        *whole = true;
    }

    /// The line, if it is complete.
    pub fn text(&self) -> Option<&str> {
        self.whole.then_some(&self.start)
    }
}

/// The inside of a string: escapes, and ends where the room does.
struct Quoted<'a> {
    out: &'a mut String,
    room: usize,
}

impl Quoted<'_> {
    fn write(out: &mut String, room: usize, write: impl FnOnce(&mut Quoted<'_>) -> fmt::Result) -> fmt::Result {
        out.push('"');
        let mut quoted = Quoted { out, room };
        // An error is our own "no more room", or that of a value which cannot be shown.
        if write(&mut quoted).is_err() {
            quoted.out.push_str(CUT);
        }
        out.push('"');
        Ok(())
    }
}

impl fmt::Write for Quoted<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            let before = self.out.len();
            match char {
                '"' | '\\' => self.out.extend(['\\', char]),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                // The two separators end a line for JavaScript; all control characters are below U+10000.
                char if char.is_control() || matches!(char, '\u{2028}' | '\u{2029}') => {
                    write!(self.out, "\\u{:04x}", char as u32)?;
                }
                char => self.out.push(char),
            }
            let added = self.out.len() - before;
            let Some(left) = self.room.checked_sub(added) else {
                self.out.truncate(before);
                self.room = 0;
                return Err(fmt::Error);
            };
            self.room = left;
        }
        Ok(())
    }
}

/// Whether a file that starts so can only be a log of ours.
pub(crate) fn begins_a_line(start: &[u8]) -> bool {
    let number = |rest: &'_ [u8]| rest.iter().position(|byte| !byte.is_ascii_digit()).filter(|digits| *digits > 0);
    let after = |rest: &mut &[u8], key: &[u8]| -> Option<()> {
        let value = rest.strip_prefix(key)?;
        *rest = value.get(number(value)?..)?;
        Some(())
    };
    let mut rest = start;
    after(&mut rest, b"{\"time_ns\":").is_some()
        && after(&mut rest, b",\"pid\":").is_some()
        && rest.starts_with(b",\"level\":\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fields: &[(&str, Value<'_>)]) -> String {
        let mut line = Line::default();
        line.begin(u64::MAX, u32::MAX);
        line.level("info");
        for (key, value) in fields {
            // A value is used once; the tests keep theirs.
            let value = match value {
                Value::Number(it) => Value::Number(*it),
                Value::Float(it) => Value::Float(*it),
                Value::Bool(it) => Value::Bool(*it),
                Value::Text(it) => Value::Text(*it),
                Value::Bytes(it) => Value::Bytes(it),
                Value::Null => Value::Null,
            };
            line.field(key, value);
        }
        line.finish();
        line.text().unwrap().to_string()
    }

    fn parse(text: &str) -> serde_json::Value {
        assert_eq!(text.matches('\n').count(), 1, "one line: {text:?}");
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    #[test]
    fn any_text_comes_back_as_it_was_and_cannot_forge_a_line() {
        let all: String = (0..0x3000).filter_map(char::from_u32).chain("\u{1f600}\u{10ffff}".chars()).collect();
        // In pieces, because a string has a longest length.
        for piece in all.chars().collect::<Vec<_>>().chunks(1000) {
            let piece: String = piece.iter().collect();
            let text = line(&[("a", Value::Text(format_args!("{piece}")))]);
            assert_eq!(parse(&text)["a"], piece.as_str());
            let raw = text.trim_end_matches('\n');
            assert!(!raw.contains(|c: char| c.is_control() || c == '\u{2028}' || c == '\u{2029}'));
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let text = line(&[("a", Value::Bytes(b"x\xff\xc3\"y\xe2\x82"))]);
        assert_eq!(parse(&text)["a"], "x\u{fffd}\u{fffd}\"y\u{fffd}");
    }

    #[test]
    fn event_comes_first_and_message_last_wherever_they_were_given() {
        let (m, e) = (format_args!("m"), format_args!("e"));
        let text = line(&[("message", Value::Text(m)), ("a", Value::Null), ("event", Value::Text(e))]);
        let start = format!("{{\"time_ns\":{},\"pid\":{},\"level\":\"info\"", u64::MAX, u32::MAX);
        assert_eq!(text, start + ",\"event\":\"e\",\"a\":null,\"message\":\"m\"}\n");
    }

    #[test]
    fn numbers_are_json_and_what_is_none_is_null() {
        let text = line(&[
            ("a", Value::Number(format_args!("{}", u128::MAX))),
            ("b", Value::Float(f64::MAX)),
            ("c", Value::Float(-0.0)),
            ("d", Value::Float(f64::NAN)),
            ("e", Value::Float(f64::INFINITY)),
            ("f", Value::Bool(true)),
        ]);
        let value = parse(&text);
        assert!(text.contains(&format!("\"a\":{},", u128::MAX)));
        assert_eq!((value["b"].as_f64(), value["c"].as_f64()), (Some(f64::MAX), Some(-0.0)));
        assert!(value["d"].is_null() && value["e"].is_null() && value["f"] == true);
    }

    #[test]
    fn long_strings_are_cut_between_characters_and_the_line_stays_short() {
        for unit in ["x", "\"", "\u{1}", "\u{e9}", "\u{1f600}"] {
            let long = unit.repeat(100_000);
            let fields: Vec<String> = (0..32).map(|n| format!("a_rather_long_name_of_a_field_{n}")).collect();
            let mut line = Line::default();
            line.begin(1, 1);
            line.level("error");
            fields.iter().for_each(|key| line.field(key, Value::Text(format_args!("{long}"))));
            line.finish();
            let text = line.text().unwrap();
            assert!(text.len() <= LONGEST, "{}", text.len());
            let first = parse(text)["a_rather_long_name_of_a_field_0"].as_str().unwrap().to_string();
            let quoted = first.len() + first.matches(['"']).count() + 5 * first.matches('\u{1}').count();
            assert!(quoted <= LONGEST_STRING + CUT.len());
            assert!(first.ends_with(CUT) && first.trim_end_matches('.').chars().all(|c| unit.contains(c)));
        }
        let fits = "x".repeat(LONGEST_STRING);
        assert_eq!(parse(&line(&[("a", Value::Text(format_args!("{fits}")))]))["a"], fits.as_str());
    }

    #[test]
    fn our_lines_are_known_by_their_start() {
        assert!(begins_a_line(line(&[]).as_bytes()));
        for other in ["", "{}", "{\"time_ns\":1}", "{\"time_ns\":,\"pid\":1,\"level\":\"", "{\"text\":\"\"}"] {
            assert!(!begins_a_line(other.as_bytes()), "{other}");
        }
    }
}
