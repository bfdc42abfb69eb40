//! What the doctor says: lines in groups, each with its remedy, and first of all the verdict.

use crate::output::quantity::plural;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// Worth knowing.
    Warning,
    /// It keeps calls from being seen.
    Problem,
}

/// Whether a program's calls will be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sight {
    /// They will be seen, or have been.
    Yes,
    /// It cannot be known before the program runs.
    Unknown,
    /// No calls, or not all of them.
    No,
}

/// One thing that was looked at.
#[derive(Serialize)]
struct CheckLine {
    group: &'static str,
    /// For programs: what it is about.
    id: &'static str,
    level: Level,
    seen: String,
    remedy: Option<String>,
}

/// All that was looked at.
#[derive(Default)]
pub struct DoctorReport {
    lines: Vec<CheckLine>,
    /// What the lines that follow are about.
    pub group: &'static str,
    pub program: Option<String>,
    pub sight: Option<Sight>,
    /// What is known of the program's objects.
    pub objects: Vec<Value>,
    /// What a run of it has shown.
    pub trial: Option<Value>,
}

impl DoctorReport {
    /// Adds a check without a problem.
    pub fn ok(&mut self, id: &'static str, seen: impl Into<String>) {
        self.line(id, Level::Ok, seen.into(), None);
    }

    /// Adds something worth knowing, and what can be done about it.
    pub fn warning(&mut self, id: &'static str, seen: impl Into<String>, remedy: impl Into<String>) {
        self.line(id, Level::Warning, seen.into(), Some(remedy.into()));
    }

    /// Adds something that keeps calls from being seen, and what can be done about it.
    pub fn problem(&mut self, id: &'static str, seen: impl Into<String>, remedy: impl Into<String>) {
        self.line(id, Level::Problem, seen.into(), Some(remedy.into()));
    }

    fn line(&mut self, id: &'static str, level: Level, seen: String, remedy: Option<String>) {
        self.lines.push(CheckLine { group: self.group, id, level, seen, remedy });
    }

    fn count(&self, level: Level) -> usize {
        self.lines.iter().filter(|line| line.level == level).count()
    }

    /// How many things are in the way.
    pub fn problems(&self) -> usize {
        self.count(Level::Problem)
    }

    fn verdict(&self) -> String {
        let counts = format!("{}, {}", many(self.problems(), "problem"), many(self.count(Level::Warning), "warning"));
        match (&self.program, self.sight) {
            (Some(program), Some(Sight::Yes)) => format!("{program}: its calls are seen ({counts})"),
            (Some(program), Some(Sight::No)) => format!("{program}: its calls are not seen, or not all ({counts})"),
            (Some(program), _) => format!("{program}: what it copies shows only when it runs ({counts})"),
            (None, _) if self.problems() == 0 => format!("ready ({counts})"),
            (None, _) => format!("not ready ({counts})"),
        }
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.verdict());
        let mut group = "";
        for line in &self.lines {
            if line.group != group {
                group = line.group;
                let _ = write!(text, "\n{group}\n");
            }
            let level = match line.level {
                Level::Ok => "ok",
                Level::Warning => "warning",
                Level::Problem => "problem",
            };
            let _ = writeln!(text, "  {level:<8} {}", line.seen);
            if let Some(remedy) = &line.remedy {
                let _ = writeln!(text, "  {:<8} -> {remedy}", "");
            }
        }
        text
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        json!({
            "verdict": self.verdict(),
            "problems": self.problems(),
            "warnings": self.count(Level::Warning),
            "program": self.program,
            "seen": self.sight,
            "lines": self.lines,
            "objects": self.objects,
            "run": self.trial,
        })
    }
}

/// A number of things, with the plural of their name.
pub fn many(count: usize, what: &str) -> String {
    if count == 0 { format!("no {what}") } else { plural(count as u64, what) }
}

/// Some names, and how many more there are.
pub fn list(names: impl IntoIterator<Item = impl AsRef<str>>, most: usize) -> String {
    let names: Vec<_> = names.into_iter().collect();
    let shown: Vec<_> = names.iter().take(most).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(most);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_comes_first_and_each_remedy_stands_below_what_was_seen() {
        let mut report = DoctorReport { group: "one", ..DoctorReport::default() };
        report.ok("a", "fine");
        report.group = "two";
        report.problem("b", "bad", "mend it");
        assert_eq!(
            report.text(),
            "not ready (1 problem, no warning)\n\none\n  ok       fine\n\ntwo\n  problem  bad\n           -> mend it\n"
        );
        assert_eq!(report.json()["lines"][1]["level"], "problem");
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        assert_eq!((list(["a", "b"], 2), list(["a", "b", "c"], 2)), ("a, b".into(), "a, b and 1 more".into()));
    }
}
