//! Verdicts about files, as text and as JSON.

use crate::files::FileKind;
use crate::output::escape;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// The condition of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileState {
    /// Nothing is wrong.
    Whole,
    /// Something is missing, or is not as it was written.
    Damaged,
    /// Nothing of it can be read.
    Unreadable,
}

/// A problem or a remark about a file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileNote {
    /// What it is.
    pub what: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Where in the file.
    pub offset: Option<u64>,
    /// The ring that it is about.
    pub ring: Option<u32>,
    /// The number of the first slot.
    pub number: Option<u64>,
}

impl FileNote {
    /// What, and what to do.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into(), ..Self::default() }
    }

    /// Where in the file.
    pub fn at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// Which slots.
    pub fn of(self, ring: u32, number: u64) -> Self {
        Self { ring: Some(ring), number: Some(number), ..self }
    }
}

/// The verdict about one file.
#[derive(Debug, Serialize)]
pub struct FileVerdict {
    /// The file.
    pub path: PathBuf,
    /// What it is.
    pub kind: &'static str,
    /// Its condition.
    pub state: FileState,
    /// What is wrong with it.
    pub problems: Vec<FileNote>,
    /// What is worth knowing, and no damage.
    pub remarks: Vec<FileNote>,
}

impl FileVerdict {
    /// Of a file that nothing is known against.
    pub fn new(path: PathBuf, kind: Option<FileKind>) -> Self {
        let kind = kind.map_or("unknown", FileKind::name);
        Self { path, kind, state: FileState::Whole, problems: Vec::new(), remarks: Vec::new() }
    }

    /// Adds a problem.
    pub fn problem(&mut self, note: FileNote) {
        self.state = self.state.max(FileState::Damaged);
        self.problems.push(note);
    }

    /// Nothing of it can be read.
    pub fn unreadable(&mut self, note: FileNote) {
        self.state = FileState::Unreadable;
        self.problems.push(note);
    }

    /// Adds a remark.
    pub fn remark(&mut self, note: FileNote) {
        self.remarks.push(note);
    }

    /// The verdict as text.
    pub fn text(&self) -> String {
        let state = match self.state {
            FileState::Whole => "ok",
            FileState::Damaged => "damaged",
            FileState::Unreadable => "cannot be read",
        };
        let mut text = format!("{}: {state}\n", escape::path(&self.path));
        for note in self.problems.iter().chain(&self.remarks) {
            let place = match (note.offset, note.ring, note.number) {
                (Some(offset), ..) => format!("byte {offset}: "),
                (_, Some(ring), Some(number)) => format!("ring {ring}, number {number}: "),
                _ => String::new(),
            };
            let _ = writeln!(text, "    {place}{}", escape::line(&note.what));
            if !note.remedy.is_empty() {
                let _ = writeln!(text, "      -> {}", escape::line(&note.remedy));
            }
        }
        text
    }
}
