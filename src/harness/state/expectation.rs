//! Expectations of a scope.

use crate::harness::aclshim_error;
use aclshim_facts::rule::{Rule, Severity};
use aclshim_facts::selector::Selector;
use std::ffi::CString;

/// An expectation.
pub enum Expectation {
    /// The number of calls lies within bounds.
    Calls(Bounds),
    /// The number of bytes lies within bounds.
    Bytes(Bounds),
    /// The calls on a stream are exactly these.
    Order { stream: u64, each: Vec<NamedSelector> },
    /// A rule is broken exactly `count` times.
    Finding { rule: &'static Rule, count: u64 },
    /// No finding of at least this severity but those that are expected.
    Clean { severity: Severity },
    /// The calls are those of a file: judged by [`crate::harness::outcome::golden`], without the lock.
    Golden { path: CString },
    /// An argument of this function was refused: always fails.
    Refused { function: &'static str, error: aclshim_error },
}

/// A selector of calls, and its text.
pub struct NamedSelector {
    pub which: Selector,
    pub text: String,
}

/// A selector of calls, and the bounds of what is counted.
pub struct Bounds {
    pub selected: NamedSelector,
    pub least: u64,
    pub most: u64,
}

/// An expectation that has failed.
pub struct Failure {
    /// Its kind, for the results file.
    pub kind: &'static str,
    /// The message.
    pub text: String,
}

impl NamedSelector {
    /// The text for a message, behind what was counted.
    pub fn shown(&self, of: &str) -> String {
        if self.text.trim().is_empty() { String::new() } else { format!(" {of} \"{}\"", self.text) }
    }
}

impl Bounds {
    /// Whether `count` lies within them.
    pub fn holds(&self, count: u64) -> bool {
        (self.least..=self.most).contains(&count)
    }
}
