//! The pages under `docs/` that are made from the tables.

use crate::rulebook;
use aclshim_facts::FUNCTIONS;
use aclshim_facts::settings::{CONFIG, SETTINGS, Value};
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
    format!("# Rules\n\n{MADE}{}", rulebook::body())
}

fn settings() -> String {
    let mut page = format!(
        "# Settings\n\n{MADE}Environment variables, and keys of a settings file that `ACLSHIM_CONFIG` names (how it is written: \
         [running.md](running.md)), read once when the library is loaded. A variable comes before the file. A value that makes \
         no sense gets one line in the log, and the default holds. `aclshim config` says what is in force.\n\n\
         | variable | key | default | values | meaning |\n|---|---|---|---|---|\n"
    );
    for setting in SETTINGS {
        let default = match setting.value {
            Value::Text(default) | Value::Pattern(default) => format!("`{default}`"),
            _ => setting.default_text(),
        };
        let values = setting.values_text();
        let is_in_file = !std::ptr::eq(*setting, &CONFIG);
        let key = if is_in_file { format!("`{}`", setting.key()) } else { String::new() };
        let _ = writeln!(page, "| `{}` | {key} | {default} | {values} | {} |", setting.variable, setting.sentence);
    }
    page
}
