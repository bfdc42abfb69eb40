//! The settings that hold for a program that is started here: environment, file, default.

use aclshim_facts::injection;
use aclshim_facts::policy::{Action, Policy};
use aclshim_facts::product::Product;
use aclshim_facts::rules::RULES;
use aclshim_facts::settings::file::{self, FileError, FileValues};
use aclshim_facts::settings::{
    self, AS, CONFIG, Choice, INJECT, PREFIX, Preset, RULES as ACTIONS, SETTINGS, SOC, Setting, Value,
};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An option of the command.
    Option,
    /// The variable or the settings file.
    Given(settings::Source),
    /// The table: the setting is not given.
    Default,
}

impl Source {
    /// The name of the source, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Source::Option => "option",
            Source::Given(settings::Source::Environment) => "environment",
            Source::Given(settings::Source::File(_)) => "file",
            Source::Default => "default",
        }
    }

    /// The line of the settings file.
    pub fn line(self) -> Option<u32> {
        match self {
            Source::Given(settings::Source::File(line)) => Some(line),
            _ => None,
        }
    }
}

/// A setting as it holds.
pub struct Row {
    pub setting: &'static Setting,
    /// Its value; none if the default holds.
    pub value: Option<OsString>,
    pub source: Source,
}

/// All settings as they hold.
pub struct InForce {
    /// In the order of the table.
    pub rows: Vec<Row>,
    /// What makes no sense, a sentence each.
    pub complaints: Vec<String>,
    /// The settings file, if one is named.
    pub file: Option<PathBuf>,
}

impl InForce {
    /// Reads the settings with this settings file, or with the one that the environment names.
    pub fn read(config: Option<&Path>) -> Self {
        let named = variable(&CONFIG).filter(|path| !path.is_empty()).map(PathBuf::from);
        let file = config.map(Path::to_owned).or(named);
        let mut complaints = Vec::new();
        let text = file.as_deref().and_then(|path| load(path, &mut complaints));
        let from_file = text.as_deref().zip(file.as_deref()).map(|(text, path)| {
            FileValues::read(text, &mut |line, wrong| {
                complaints.push(format!("{}:{line}: {wrong}{}", path.display(), hint(text, line, wrong)));
            })
        });
        let rows = SETTINGS
            .iter()
            .map(|&setting| {
                let variable = variable(setting);
                let given = match config {
                    Some(path) if std::ptr::eq(setting, &CONFIG) => Some((path.as_os_str().as_bytes(), Source::Option)),
                    _ => {
                        let given = setting.given(variable.as_deref().map(OsStr::as_bytes), from_file.as_ref());
                        given.map(|(value, source)| (value, Source::Given(source)))
                    }
                };
                let Some((value, source)) = given else { return Row { setting, value: None, source: Source::Default } };
                let is_table = std::ptr::eq(setting, &ACTIONS)
                    && source.line().is_some()
                    && from_file.as_ref().is_some_and(FileValues::has_rules_table);
                let value = value.strip_suffix(b",").filter(|_| is_table).unwrap_or(value);
                let value = OsStr::from_bytes(value).to_owned();
                let shown = match (source.line(), &file) {
                    (Some(line), Some(path)) => format!("{}:{line}: {}", path.display(), setting.key()),
                    _ => setting.variable.into(),
                };
                let wrongs = nonsense(setting, value.as_bytes());
                let is_in_force = wrongs.is_empty() || matches!(setting.value, Value::Text(_));
                for wrong in wrongs {
                    complaints.push(format!("{shown} = {}: {wrong}", value.display()));
                }
                if is_in_force {
                    Row { setting, value: Some(value), source }
                } else {
                    Row { setting, value: None, source: Source::Default }
                }
            })
            .collect();
        let mut in_force = Self { rows, complaints, file };
        if in_force.value(&INJECT).is_some() && in_force.choice::<Preset>() == Preset::Production {
            in_force.complaints.push("ACLSHIM_INJECT is refused, because ACLSHIM_PRESET=production".into());
        }
        in_force.complaints.extend(unknown_variables());
        in_force
    }

    /// The value in force of a setting that is a choice.
    pub fn choice<T: Choice>(&self) -> T {
        let given = self.value(T::SETTING).and_then(|word| T::from_word(word.as_bytes()));
        given.unwrap_or(T::ALL[0])
    }

    /// The value of a setting, if it was given.
    pub fn value(&self, setting: &Setting) -> Option<&OsStr> {
        self.rows.iter().find(|row| std::ptr::eq(row.setting, setting))?.value.as_deref()
    }
}

fn variable(setting: &Setting) -> Option<OsString> {
    std::env::var_os(setting.variable)
}

/// The text of the settings file; `None`, with a complaint, if it cannot be read.
fn load(path: &Path, complaints: &mut Vec<String>) -> Option<Vec<u8>> {
    let loaded = try_load(path).map_err(|(wrong, why)| {
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        complaints.push(format!("{}: {wrong}{why}; nothing of it is in force", path.display()));
    });
    loaded.ok()
}

fn try_load(path: &Path) -> Result<Vec<u8>, (FileError, Option<std::io::Error>)> {
    let unreadable = |error| (FileError::Unreadable, Some(error));
    let options = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = options.map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err((FileError::NotAFile, None));
    }
    let mut text = Vec::new();
    file.take(file::MOST as u64 + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() > file::MOST { Err((FileError::TooLong, None)) } else { Ok(text) }
}

/// What may have been meant by a key that is not known.
fn hint(text: &[u8], line: u32, wrong: FileError) -> String {
    let line = text.split(|&byte| byte == b'\n').nth(line as usize - 1).unwrap_or_default();
    let key = String::from_utf8_lossy(line.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii());
    let known: Vec<String> = match wrong {
        FileError::Key => SETTINGS.iter().map(|setting| setting.key().to_string()).collect(),
        FileError::Rule => RULES.iter().map(|rule| rule.id.to_owned()).collect(),
        _ => return String::new(),
    };
    suggestion(&key, known.iter().map(String::as_str))
}

/// What makes no sense about a value.
fn nonsense(setting: &Setting, given: &[u8]) -> Vec<String> {
    let shown = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
    match setting.value {
        Value::Choice(words) if !words.iter().any(|word| word.as_bytes() == given) => {
            vec![format!("must be one of {}; {} is in force", setting.values_text(), words[0])]
        }
        Value::Bytes(..) | Value::Count(..) if setting.number(given).is_none() => {
            vec![format!("must be from {}; {} is in force", setting.values_text(), setting.default_text())]
        }
        Value::Text(_) if std::ptr::eq(setting, &ACTIONS) => {
            let mut wrong = Vec::new();
            let number = |id: &[u8]| RULES.iter().position(|rule| rule.id.as_bytes() == id);
            Policy::new(false).read(given, number, |part| {
                let (rule, action) = (shown(part), part.splitn(2, |&byte| byte == b'=').nth(1));
                let id = rule.split('=').next().unwrap_or_default().trim().to_owned();
                wrong.push(match action.map(<[u8]>::trim_ascii).and_then(Action::of) {
                    None => format!("{rule:?} is not RULE=ACTION with off, log, warn, refuse or abort"),
                    Some(_) => format!("{id:?} is no rule{}", suggestion(&id, RULES.iter().map(|rule| rule.id))),
                });
            });
            wrong
        }
        Value::Text(_) if [&AS, &SOC].iter().any(|known| std::ptr::eq(setting, *known)) => {
            let names = given.split(|&byte| byte == b',').map(|part| shown(part.trim_ascii()));
            let unknown = names.filter(|name| !name.is_empty() && Product::of(name).is_none());
            unknown.map(|name| format!("{name:?} is no product that is known here")).collect()
        }
        Value::Text(_) if std::ptr::eq(setting, &INJECT) => {
            let nonsense = injection::each(given).find_map(Result::err);
            let complaint = nonsense.map(|nonsense| format!("{}; nothing of it is in force", nonsense.in_text(given)));
            complaint.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Variables that look like ours and are not.
fn unknown_variables() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let mut unknown: Vec<String> = names
        .filter(|name| name.starts_with(PREFIX) && !SETTINGS.iter().any(|setting| setting.variable == name))
        .collect();
    unknown.sort();
    let known = || SETTINGS.iter().map(|setting| setting.variable);
    unknown.iter().map(|name| format!("{name}: no setting has this name{}", suggestion(name, known()))).collect()
}

/// The nearest of these, as a question; nothing if none is near.
fn suggestion<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = known.map(|name| (distance(given, name), name)).min();
    match near {
        Some((far, name)) if far <= 3 && far * 2 <= name.len() => format!("; did you mean {name}?"),
        _ => String::new(),
    }
}

/// How many letters must be changed, added or removed to make one word from another; capitals count as small ones.
fn distance(a: &str, b: &str) -> usize {
    strsim::levenshtein(&a.to_ascii_lowercase(), &b.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_nothing_far() {
        assert_eq!(
            [("", "abc"), ("moed", "mode"), ("mode", "MODE"), ("abc", "")].map(|(a, b)| distance(a, b)),
            [3, 2, 0, 3]
        );
        assert_eq!(
            suggestion("ACLSHIM_MOED", ["ACLSHIM_MODE", "ACLSHIM_DIR"].into_iter()),
            "; did you mean ACLSHIM_MODE?"
        );
        assert_eq!(suggestion("zzz", ["dir", "as"].into_iter()), "");
    }
}
