//! The page that documents the log.

use aclshim_collect::json::{LONGEST, LONGEST_STRING};
use aclshim_collect::log::lines::LINES;
use std::fmt::Write;

/// The text of `docs/log-schema.md`.
pub fn log_schema_page() -> String {
    let mut page = format!(
        "# The JSON log\n\n<!-- Made from crates/collect by `make docs`; edit the table, not this page. -->\n\n\
         `*.jsonl` holds one JSON object a line, of at most {LONGEST} bytes. Keys are always there and always in this \
         order; where there is nothing to say the value is null. A string of more than {LONGEST_STRING} bytes, or \
         one that a line has no more room for, is cut and ends in `...`; bytes that are not UTF-8 are replaced by \
         U+FFFD. Keys and kinds of lines may be added, never renamed or removed.\n\n\
         Every line begins with these:\n\n| key | type | meaning |\n|---|---|---|\n\
         | `time_ns` | number | when it happened, in nanoseconds since 1970 (UTC) |\n\
         | `pid` | number | the process that it is about |\n\
         | `level` | string | `info`, `warn` or `error` |\n\
         | `event` | string | the kind of line, which says what keys follow |\n"
    );
    for line in LINES {
        let _ = write!(page, "\n## {} ({})\n\n{}\n", line.name, line.level, text(line.sentence));
        page.push_str("\n| key | type | meaning |\n|---|---|---|\n");
        for key in line.fields {
            let _ = writeln!(page, "| `{}` | {} | {} |", key.name, key.json, text(key.sentence));
        }
    }
    page
}

/// A doc comment's lines as one.
fn text(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_line_and_key() {
        let page = log_schema_page();
        for line in LINES {
            assert!(page.contains(&format!("\n## {} ({})\n", line.name, line.level)));
            assert!(line.fields.iter().all(|key| page.contains(&format!("\n| `{}` | {} | ", key.name, key.json))));
        }
        assert!(page.contains("or a file could not be made. Records wait in memory meanwhile; `lost`"), "{page}");
    }
}
