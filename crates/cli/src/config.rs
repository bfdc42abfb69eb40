//! `aclshim config`: the settings and where they come from.

mod in_force;
mod template;

pub use in_force::{InForce, Source};

use aclshim_facts::settings::CONFIG;
use anyhow::Result;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `aclshim config`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit status 1: something makes no sense, and is told on standard error.\n\nExamples:\n  aclshim config\n  \
                  ACLSHIM_MODE=enforce aclshim config --config aclshim.toml\n  aclshim config --template > aclshim.toml"
)]
pub struct Arguments {
    /// The settings file; by default the one that ACLSHIM_CONFIG names
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Print a settings file with every setting, its default and its meaning, all commented out
    #[arg(long, conflicts_with_all = ["json", "config"])]
    template: bool,
}

/// The JSON object that is printed.
#[derive(Serialize)]
struct Answer<'a> {
    config: Option<String>,
    settings: Vec<Line<'a>>,
    complaints: &'a [String],
}

#[derive(Serialize)]
struct Line<'a> {
    variable: &'a str,
    /// None for what cannot stand in the file.
    key: Option<String>,
    /// None for a path that is not set.
    value: Option<String>,
    source: &'static str,
    /// The line of the settings file.
    line: Option<u32>,
    default: String,
    values: String,
    meaning: &'a str,
}

/// Prints the settings.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    if arguments.template {
        print!("{}", template::text());
        return Ok(ExitCode::SUCCESS);
    }
    let in_force = InForce::read(arguments.config.as_deref());
    if arguments.json {
        let answer = Answer {
            config: in_force.file.as_ref().map(|path| path.display().to_string()),
            settings: in_force.rows.iter().map(line).collect(),
            complaints: &in_force.complaints,
        };
        println!("{}", serde_json::to_string_pretty(&answer)?);
    } else {
        for row in &in_force.rows {
            let value =
                row.value.as_ref().map_or_else(|| row.setting.default_text(), |value| value.display().to_string());
            outln!("{} = {value}  ({})", row.setting.variable, origin(&row.source, &in_force));
            println!("{}", wrapped(row.setting.sentence, "    "));
        }
    }
    for complaint in &in_force.complaints {
        errln!("aclshim: {complaint}");
    }
    Ok(if in_force.complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line(row: &in_force::Row) -> Line<'_> {
    let setting = row.setting;
    let default = setting.default_text();
    let real = (!setting.is_path() || default.starts_with('/')).then(|| default.clone());
    Line {
        variable: setting.variable,
        key: (!std::ptr::eq(setting, &CONFIG)).then(|| setting.key().to_string()),
        value: row.value.as_ref().map(|value| value.to_string_lossy().into_owned()).or(real),
        source: row.source.name(),
        line: row.source.line(),
        default,
        values: setting.values_text(),
        meaning: setting.sentence,
    }
}

/// Where a value comes from, for people.
fn origin(source: &Source, in_force: &InForce) -> String {
    match (source.line(), &in_force.file) {
        (Some(line), Some(file)) => format!("{}:{line}", file.display()),
        _ => source.name().into(),
    }
}

/// A sentence in lines of some hundred letters, each behind `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![indent.to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.len() + word.len() > 100 && line.len() > indent.len() {
            lines.push(format!("{indent}{word}"));
        } else {
            let space = if line.len() > indent.len() { " " } else { "" };
            line.push_str(space);
            line.push_str(word);
        }
    }
    lines.join("\n")
}
