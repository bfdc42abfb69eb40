//! The words for severities, sources and scopes of rules.

use crate::rules::rule::{Scope, Severity, Source};
use crate::rules::world::RunMode;
use crate::vendor::product::Version;
use std::fmt::{self, Display};

impl Severity {
    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Portability => "portability",
            Severity::Perf => "perf",
            Severity::Violation => "violation",
            Severity::Error => "error",
        }
    }
}

impl Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (who, what) = match self {
            Source::Doc(what) => ("documents", what),
            Source::Header(what) => ("header", what),
            Source::Runtime(what) => ("runtime source", what),
            Source::Driver(what) => ("driver source", what),
            Source::Observed(what) => ("observed", what),
            Source::Ours(what) => ("ours", what),
        };
        write!(f, "{who}: {what}")
    }
}

impl Scope {
    /// The products, and the run modes where these matter, in words.
    pub fn products(&self) -> String {
        let products = match self.products {
            [] => "all products".to_owned(),
            products => products.join(", "),
        };
        match self.run_modes {
            [] => products,
            modes => {
                let names: Vec<_> = modes.iter().map(|mode| form_name(*mode)).collect();
                format!("{products} ({})", names.join(", "))
            }
        }
    }

    /// The releases of CANN, in words.
    pub fn versions(&self) -> String {
        let number = |release: Version| format!("{}.{}", release.major, release.minor);
        match (self.since.map(number), self.before.map(number)) {
            (None, None) => "all versions".into(),
            (Some(since), None) => format!("CANN {since} and later"),
            (None, Some(before)) => format!("before CANN {before}"),
            (Some(since), Some(before)) => format!("CANN {since} and later, before {before}"),
        }
    }
}

impl Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}; {}", self.products(), self.versions())
    }
}

fn form_name(run_mode: RunMode) -> &'static str {
    match run_mode {
        RunMode::EndPoint => "Ascend EP",
        RunMode::RootComplex => "Ascend RC",
    }
}
