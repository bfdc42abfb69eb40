//! A settings file to begin with: every setting with its meaning and its default, commented out.

use super::wrapped;
use aclshim_facts::settings::{CONFIG, RULES, SETTINGS, Value};
use std::fmt::Write;

/// The text of the file.
pub fn text() -> String {
    let mut text = String::from(
        "# Settings of aclshim: a small part of TOML. In force where ACLSHIM_CONFIG or `aclshim run --config` names this\n\
         # file; a variable ACLSHIM_... that is set comes first. Lines like `#mode = ...` show the defaults.\n",
    );
    let in_table = |setting: &&&_| !std::ptr::eq(**setting, &CONFIG) && !std::ptr::eq(**setting, &RULES);
    for setting in SETTINGS.iter().filter(in_table) {
        let default = setting.default_text();
        // A path that is found otherwise is not one that could be written here.
        let (value, note) = match setting.value {
            _ if setting.is_path() && !default.starts_with('/') => (String::new(), format!("; default: {default}")),
            _ => (default, String::new()),
        };
        let quoted = if matches!(setting.value, Value::Count(..)) { value } else { format!("\"{value}\"") };
        let sentence = wrapped(setting.sentence, "# ");
        let _ = write!(text, "\n{sentence}\n# ({}{note})\n#{} = {quoted}\n", setting.values_text(), setting.key());
    }
    let sentence = wrapped("What is done about a rule: off, log, warn, refuse or abort (see ACLSHIM_RULES).", "# ");
    let _ = write!(text, "\n{sentence}\n#[rules]\n#ALIGN-64 = \"off\"\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use aclshim_facts::settings::file::{self, FileEntry};

    #[test]
    fn the_template_says_nothing_and_with_its_comments_opened_every_default() {
        let text = text();
        file::read(text.as_bytes(), &mut |line, _| panic!("line {line} says something"));
        let opened: String = text
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
                _ => "\n".into(),
            })
            .collect();
        let mut said = Vec::new();
        file::read(opened.as_bytes(), &mut |line, what| match what {
            FileEntry::Value(setting, value) => {
                let value = String::from_utf8_lossy(value).into_owned();
                assert!(value == setting.default_text() || value.is_empty(), "line {line}: {value}");
                said.push(setting.variable);
            }
            FileEntry::Rule(..) => said.push(RULES.variable),
            FileEntry::Error(wrong) => panic!("line {line}: {wrong}"),
        });
        assert_eq!(said.len(), SETTINGS.len() - 1, "{said:?}");
    }
}
