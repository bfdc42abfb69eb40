//! A rule of the rulebook, and what it says of a call.
//!
//! A rule is a pure function of a call and of what is known of its world. It holds no text of a particular call: a
//! finding is a few numbers, made without a heap, and the reader of a record makes the sentence from the rule and the call.

use crate::abi::aclError;
use crate::case::Case;
use crate::code::ACL_ERROR_INVALID_PARAM;
use crate::product::Version;
use crate::world::Form;

pub use crate::subject::{Arrays, Subject};

/// A rule.
///
/// Its number is its position in [`crate::rules::RULES`] and stands in records: numbers and ids are never changed and
/// never given to another rule.
pub struct Rule {
    /// Its position in the list of all rules.
    pub number: u8,
    /// Its name for people: capital words with hyphens.
    pub id: &'static str,
    /// The products, forms and releases that it holds for.
    pub scope: Scope,
    /// The worst that breaking it can be.
    pub severity: Severity,
    /// When it is which severity, and what comes of it; empty where it is always the same: an error is refused then, and
    /// all else accepted.
    pub grades: &'static [Grade],
    /// What the vendor returns where it refuses the call for this, and when; empty if it never does.
    pub codes: &'static [(aclError, &'static str)],
    /// Whether it is reported once for a call site even where it is a violation or an error: what it finds holds for the
    /// call site, not for one call. (Of what is only slow or not portable that is always so.)
    pub is_reported_once: bool,
    /// Whether the [quick check](crate::rules::quick) of a call counts what it finds, once it was reported.
    pub has_quick_check: bool,
    /// What is demanded, in one sentence.
    pub statement: &'static str,
    /// Who says so.
    pub sources: &'static [Source],
    /// What to do about it.
    pub fix: &'static str,
    /// Looks at a call. It does not know what the vendor accepts before it comes to this rule: ask
    /// [`crate::rules::judge`] for what is wrong with a call.
    pub check: fn(&Subject) -> Verdict,
    /// Calls that break it, and calls that come near and do not.
    pub cases: &'static [Case],
    /// Rules of severity violation or error that a call breaking this one breaks too, and why that cannot be helped.
    pub implies: &'static [(&'static str, &'static str)],
}

/// When a rule is of one severity, and what comes of it.
#[derive(Clone, Copy, Debug)]
pub struct Grade {
    /// How bad it is.
    pub severity: Severity,
    /// The condition for this severity.
    pub when: &'static str,
    /// What the vendor does with such a call, if nothing else is wrong with it.
    pub outcome: Outcome,
    /// What the vendor's documents have it return, although it does not; a call that a setting refuses for this returns it.
    pub documented: Option<aclError>,
}

/// What the vendor does with a call that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returns the code of the finding.
    Refused,
    /// It returns 0.
    Accepted,
    /// It returns this code, or 0: which of them hangs on what is not known here.
    Perhaps(aclError),
    /// Neither says enough: this sentence does.
    Said(&'static str),
}

impl Grade {
    /// The vendor refuses the call.
    pub const fn error(when: &'static str) -> Self {
        Self { severity: Severity::Error, when, outcome: Outcome::Refused, documented: None }
    }

    /// The vendor accepts the call.
    pub const fn accepted(severity: Severity, when: &'static str) -> Self {
        Self { severity, when, outcome: Outcome::Accepted, documented: None }
    }

    /// Something else comes of it.
    pub const fn comes_to(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    /// By the documents it would return this.
    pub const fn documented_as(self, code: aclError) -> Self {
        Self { documented: Some(code), ..self }
    }
}

impl Rule {
    /// What most rules have in common; an entry names what is its own.
    pub const DEFAULT: Self = Self {
        number: u8::MAX,
        id: "",
        scope: Scope::ALL,
        severity: Severity::Error,
        grades: &[],
        codes: &[],
        is_reported_once: false,
        has_quick_check: false,
        statement: "",
        sources: &[],
        fix: "",
        check: |_| Verdict::Holds,
        cases: &[],
        implies: &[],
    };

    /// The grade of a severity, where the rule has grades.
    pub fn grade(&self, severity: Severity) -> Option<&'static Grade> {
        self.grades.iter().find(|grade| grade.severity == severity)
    }

    /// What the vendor does with a call of which this rule says so.
    pub fn outcome(&self, severity: Severity) -> Outcome {
        match self.grade(severity) {
            Some(grade) => grade.outcome,
            None if severity == Severity::Error => Outcome::Refused,
            None => Outcome::Accepted,
        }
    }

    /// What a call returns that is refused for a finding of this rule: the vendor's code, or the documented one.
    pub fn refusal(&self, finding: &Finding) -> aclError {
        match self.grade(finding.severity) {
            _ if finding.severity == Severity::Error => finding.code,
            Some(Grade { documented: Some(code), .. }) => *code,
            _ => ACL_ERROR_INVALID_PARAM,
        }
    }
}

/// The products, forms and releases that a rule holds for.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// By [`crate::product::Product::name`]; empty for all products.
    pub products: &'static [&'static str],
    /// Where the program runs; empty for both.
    pub forms: &'static [Form],
    /// From this release on.
    pub since: Option<Version>,
    /// Only before this release.
    pub before: Option<Version>,
}

impl Scope {
    /// Everywhere.
    pub const ALL: Self = Self { products: &[], forms: &[], since: None, before: None };
}

/// What a rule says of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is wrong here.
    Holds,
    /// Too little is known.
    Unknown,
    /// It is broken.
    Broken(Finding),
}

impl Verdict {
    /// Broken with this finding where `is_broken`.
    #[inline(always)]
    pub fn broken_if(is_broken: bool, finding: Finding) -> Self {
        if is_broken { Self::Broken(finding) } else { Self::Holds }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Would be refused on another product or release.
    Portability,
    /// Correct, but slow.
    Perf,
    /// Documented, or plainly wrong by itself, but not enforced by this runtime.
    Violation,
    /// The vendor refuses the call.
    Error,
}

/// Where a rule stands written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A page of the vendor's documents.
    Doc(&'static str),
    /// The vendor's header.
    Header(&'static str),
    /// The runtime's public source.
    Runtime(&'static str),
    /// The user-space driver's public source.
    Driver(&'static str),
    /// Seen when the runtime was run.
    Observed(&'static str),
    /// Written nowhere by the vendor: why we say it.
    Ours(&'static str),
}

/// What a rule found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which argument of the function, by its position.
    pub argument: u8,
    /// Which item of a batch, or entry of an array.
    pub index: Option<usize>,
    /// How bad it is here.
    pub severity: Severity,
    /// What the vendor returns, if it refuses the call for this.
    pub code: aclError,
    /// What the vendor writes to `failIndex` then, if anything.
    pub fail_index: Option<usize>,
}

/// What the vendor is expected to do with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// It returns 0.
    Accepted,
    /// It refuses the call.
    Refused {
        /// The rule that it refuses it for, by its position in [`crate::rules::RULES`].
        rule: usize,
        /// What it returns.
        code: aclError,
        /// What it writes to `failIndex`, if it writes there.
        fail_index: Option<usize>,
    },
    /// Too little is known.
    Unknown,
}
