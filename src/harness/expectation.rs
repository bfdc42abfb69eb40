//! What may be expected of a scope.

use super::aclshim_error;
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
    Order { stream: u64, each: Vec<Meant> },
    /// A rule is broken exactly `count` times.
    Finding { rule: &'static Rule, count: u64 },
    /// No finding of at least this severity but those that are expected.
    Clean { severity: Severity },
    /// The calls are those of a file: judged by [`super::golden`], where there is time for files.
    Golden { path: CString },
    /// What was said to this function was refused, and is never met.
    Refused { function: &'static str, error: aclshim_error },
}

/// Which calls, and as it was written.
pub struct Meant {
    pub which: Selector,
    pub text: String,
}

/// Which calls, and how much of them.
pub struct Bounds {
    pub meant: Meant,
    pub least: u64,
    pub most: u64,
}

/// An expectation that was not met.
pub struct Failure {
    /// Its kind, for machines.
    pub kind: &'static str,
    /// All that is said of it.
    pub text: String,
}

impl Meant {
    /// To be shown behind what was counted.
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
