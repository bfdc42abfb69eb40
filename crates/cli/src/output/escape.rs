//! Escaping texts that come from programs before a terminal shows them: a name must not move the cursor or change the
//! direction of writing.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// One line, with every character escaped that a terminal acts on.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        let _ = match letter {
            '\n' => shown.write_str("\\n"),
            '\t' => shown.write_str("\\t"),
            letter if is_active(letter) => write!(shown, "\\u{{{:x}}}", u32::from(letter)),
            letter => shown.write_char(letter),
        };
    }
    shown.into()
}

/// A text of several lines, escaped except for the ends of its lines.
pub fn lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|letter| letter != '\n' && is_active(letter)) {
        return text.into();
    }
    text.split('\n').map(line).collect::<Vec<_>>().join("\n").into()
}

/// A path, escaped.
pub fn path(path: &Path) -> String {
    line(&path.to_string_lossy()).into_owned()
}

/// Prints an escaped text and the end of a line to standard output.
macro_rules! outln {
    ($($text:tt)*) => { println!("{}", $crate::output::escape::lines(&format!($($text)*))) };
}

/// Prints an escaped text and the end of a line to standard error.
macro_rules! errln {
    ($($text:tt)*) => { eprintln!("{}", $crate::output::escape::lines(&format!($($text)*))) };
}

/// Whether a terminal acts on a character: control characters, line and paragraph separators, and directional marks.
fn is_active(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{line, lines, path};
    use std::path::Path;

    #[test]
    fn what_a_terminal_would_act_on_is_written_out() {
        assert_eq!(line("prefill 7 \u{e9}\u{1f600}"), "prefill 7 \u{e9}\u{1f600}");
        assert_eq!(line("a\u{1b}[2Jb\r\n\tc\0"), "a\\u{1b}[2Jb\\u{d}\\n\\tc\\u{0}");
        assert_eq!(line("x\u{202e}y\u{2028}\u{9b}z"), "x\\u{202e}y\\u{2028}\\u{9b}z");
    }
    #[test]
    fn a_text_keeps_the_ends_of_its_lines_and_a_path_does_not() {
        assert_eq!(lines("a\nb\n"), "a\nb\n");
        assert_eq!(lines("a\u{1b}[2J\nb\u{202e}\n"), "a\\u{1b}[2J\nb\\u{202e}\n");
        assert_eq!(path(Path::new("/a\n\u{9b}b")), "/a\\n\\u{9b}b");
    }
}
