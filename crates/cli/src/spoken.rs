//! Texts of programs as a terminal may be shown them: a name must not move the cursor, nor turn a line around.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// The text with what does more than be seen written out.
pub fn spoken(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unseen) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        let _ = match letter {
            '\n' => shown.write_str("\\n"),
            '\t' => shown.write_str("\\t"),
            letter if is_unseen(letter) => write!(shown, "\\u{{{:x}}}", u32::from(letter)),
            letter => shown.write_char(letter),
        };
    }
    shown.into()
}

/// The same of a text of several lines, whose ends stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|letter| letter != '\n' && is_unseen(letter)) {
        return text.into();
    }
    text.split('\n').map(spoken).collect::<Vec<_>>().join("\n").into()
}

/// A path as a terminal may be shown it.
pub fn path(path: &Path) -> String {
    spoken(&path.to_string_lossy()).into_owned()
}

/// Prints a line for people: nothing in it acts on the terminal.
macro_rules! outln {
    ($($text:tt)*) => { println!("{}", $crate::spoken::lines(&format!($($text)*))) };
}

/// Prints a line for people to standard error: nothing in it acts on the terminal.
macro_rules! errln {
    ($($text:tt)*) => { eprintln!("{}", $crate::spoken::lines(&format!($($text)*))) };
}

/// Control characters, what ends a line elsewhere, and what changes the direction of writing.
fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{lines, path, spoken};
    use std::path::Path;

    #[test]
    fn what_a_terminal_would_act_on_is_written_out() {
        assert_eq!(spoken("prefill 7 \u{e9}\u{1f600}"), "prefill 7 \u{e9}\u{1f600}");
        assert_eq!(spoken("a\u{1b}[2Jb\r\n\tc\0"), "a\\u{1b}[2Jb\\u{d}\\n\\tc\\u{0}");
        assert_eq!(spoken("x\u{202e}y\u{2028}\u{9b}z"), "x\\u{202e}y\\u{2028}\\u{9b}z");
    }
    #[test]
    fn a_text_keeps_the_ends_of_its_lines_and_a_path_does_not() {
        assert_eq!(lines("a\nb\n"), "a\nb\n");
        assert_eq!(lines("a\u{1b}[2J\nb\u{202e}\n"), "a\\u{1b}[2J\nb\\u{202e}\n");
        assert_eq!(path(Path::new("/a\n\u{9b}b")), "/a\\n\\u{9b}b");
    }
}
