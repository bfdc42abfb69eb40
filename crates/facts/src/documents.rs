//! The pages under `docs/` that are made from the tables.

use crate::functions::FUNCTIONS;
use crate::settings::{CONFIG, SETTINGS, Value, bytes_text};
use std::fmt::Write;

/// Every generated page: file name under `docs/` and text.
pub fn pages() -> [(&'static str, String); 3] {
    [("functions.md", functions()), ("rules.md", rules()), ("settings.md", settings())]
}

const MADE: &str = "<!-- Made from crates/facts by `make docs`; edit the table, not this page. -->\n\n";

fn functions() -> String {
    let mut page = format!("# Functions that the shim stands in front of\n\n{MADE}");
    for row in FUNCTIONS {
        let _ = write!(page, "## {}\n\n{}\n\n```c\n{};\n```\n\n", row.name, row.summary, row.c_declaration());
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn rules() -> String {
    format!("# Rules\n\n{MADE}{}", crate::rulebook::body())
}

fn settings() -> String {
    let mut page = format!(
        "# Settings\n\n{MADE}Environment variables, and keys of a settings file that `ACLSHIM_CONFIG` names (how it is written: \
         [running.md](running.md)), read once when the library is loaded. A variable comes before the file. A value that makes \
         no sense gets one line in the log, and the default holds. `aclshim config` says what is in force.\n\n\
         | variable | key | default | values | meaning |\n|---|---|---|---|---|\n"
    );
    for setting in SETTINGS {
        let bytes = |number| {
            let (number, unit) = bytes_text(number);
            format!("{number}{unit}")
        };
        let (default, values) = match setting.value {
            Value::Choice(words) => (words[0].to_owned(), words.join(", ")),
            Value::Path(default) => (default.to_owned(), "a path".into()),
            Value::Text(default) => (format!("`{default}`"), "text".into()),
            Value::Bytes(default, least, most) => (bytes(default), format!("{} to {}", bytes(least), bytes(most))),
            Value::Count(default, least, most) => (default.to_string(), format!("{least} to {most}")),
        };
        let is_in_file = !std::ptr::eq(*setting, &CONFIG);
        let key = if is_in_file { format!("`{}`", setting.key()) } else { String::new() };
        let _ = writeln!(page, "| `{}` | {key} | {default} | {values} | {} |", setting.variable, setting.sentence);
    }
    page
}
