//! A rule of the rulebook, and what it says of a call.
//!
//! A rule is a pure function of a call and of what is known of its world. It holds no text of a particular call: a
//! finding is a few numbers, made without a heap, and the reader of a record makes the sentence from the rule and the call.

use crate::call::functions::{Function, Support};
use crate::call::shape::Shapes;
use crate::rules::case::Case;
use crate::rules::world::RunMode;
use crate::vendor::abi::aclError;
use crate::vendor::code::ACL_ERROR_INVALID_PARAM;
use crate::vendor::product::Version;

pub use crate::rules::subject::{Arrays, Subject};

/// A rule.
///
/// Its number is its position in [`crate::rules::RULES`] and stands in records: numbers and ids are never changed and
/// never given to another rule.
pub struct Rule {
    /// Its position in the list of all rules.
    pub number: u8,
    /// Its name for people: capital words with hyphens.
    pub id: &'static str,
    /// When it is checked, and of which shapes of calls.
    pub steps: &'static [Step],
    /// The products, run modes and releases that it holds for.
    pub scope: Scope,
    /// The worst that breaking it can be.
    pub severity: Severity,
    /// The condition and the outcome of each severity; empty where it is always one severity: an error is refused then, and
    /// all else accepted.
    pub grades: &'static [Grade],
    /// What the vendor returns where it refuses the call for this, and when; empty if it never does.
    pub codes: &'static [(aclError, &'static str)],
    /// Whether it is reported once for a call site even where it is a violation or an error: what it finds holds for the
    /// call site, not for one call. (Of what is only slow or not portable that is always so.)
    pub is_reported_once: bool,
    /// Whether the [quick check](crate::rules::quick) of a call counts what it finds, once it was reported.
    pub has_quick_check: bool,
    /// Whether it says that the product or the release does not have the function.
    pub is_absence: bool,
    /// Whether it reads the addresses of a batch's items, which must not be read before the vendor has accepted the batch.
    pub needs_item_addresses: bool,
    /// What is demanded, in one sentence.
    pub statement: &'static str,
    /// Where the vendor demands it.
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
    /// The severity.
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
    /// It returns this code or 0, depending on facts that are not known here.
    Perhaps(aclError),
    /// Something that only this sentence describes.
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
        steps: &[],
        scope: Scope::ALL,
        severity: Severity::Error,
        grades: &[],
        codes: &[],
        is_reported_once: false,
        has_quick_check: false,
        is_absence: false,
        needs_item_addresses: false,
        statement: "",
        sources: &[],
        fix: "",
        check: |_| Verdict::Holds,
        cases: &[],
        implies: &[],
    };

    /// Whether it is checked of this function.
    pub fn applies_to(&self, function: Function) -> bool {
        let shape = function.call(&[]).shape();
        self.steps.iter().any(|step| step.shapes.has(shape) && step.concerns(function))
    }

    /// The functions that it is checked of, in the order of the table.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        Function::ALL.iter().copied().filter(|function| self.applies_to(*function))
    }

    /// The grade of a severity, where the rule has grades.
    pub fn grade(&self, severity: Severity) -> Option<&'static Grade> {
        self.grades.iter().find(|grade| grade.severity == severity)
    }

    /// What the vendor does with a call that has a finding of this rule and severity.
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

/// When a rule is checked, and of which calls.
#[derive(Clone, Copy)]
pub struct Step {
    /// The phase in which it is checked.
    pub phase: Phase,
    /// Its position in the phase: one order for all shapes, in steps of ten.
    pub position: u16,
    /// The shapes of calls that it is checked of.
    pub shapes: Shapes,
    /// The support that a function must have for it; `None` for every function of these shapes.
    pub support: Option<Support>,
    /// What is checked, where that is a part of the rule.
    pub part: Option<fn(&Subject) -> Verdict>,
}

/// A phase of the check of a call. The phases follow each other in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The vendor's own checks, in the vendor's order. The first that fails decides what the call returns.
    Vendor,
    /// The vendor's checks of the items of a batch, one item after the other (`crate::rules::walk`).
    Items,
    /// What the vendor does not check, of a call that it carries out.
    Advice,
    /// What is checked of every call, also of one that the vendor accepts or refuses early.
    Always,
}

impl Phase {
    /// Number of phases.
    pub const COUNT: usize = Phase::Always as usize + 1;
}

impl Step {
    /// The vendor checks it at this position of its order.
    pub const fn vendor(position: u16, shapes: Shapes) -> Self {
        Self { phase: Phase::Vendor, position, shapes, support: None, part: None }
    }

    /// The vendor checks it for each item of a batch.
    pub const fn item(shapes: Shapes) -> Self {
        Self { phase: Phase::Items, ..Self::vendor(0, shapes) }
    }

    /// Advice about a call that the vendor carries out.
    pub const fn advice(position: u16, shapes: Shapes) -> Self {
        Self { phase: Phase::Advice, ..Self::vendor(position, shapes) }
    }

    /// It is checked of every call.
    pub const fn always(position: u16, shapes: Shapes) -> Self {
        Self { phase: Phase::Always, ..Self::vendor(position, shapes) }
    }

    /// Checks only this part of the rule.
    pub const fn part(self, part: fn(&Subject) -> Verdict) -> Self {
        Self { part: Some(part), ..self }
    }

    /// Checks only functions of this support.
    pub const fn only(self, support: Support) -> Self {
        Self { support: Some(support), ..self }
    }

    /// Looks at a call, as far as this step of the rule goes.
    pub fn check(&self, rule: &Rule, subject: &Subject) -> Verdict {
        self.part.unwrap_or(rule.check)(subject)
    }

    /// Whether functions of its support are checked.
    pub fn concerns(&self, function: Function) -> bool {
        self.support.is_none_or(|support| support == function.row().support)
    }
}

/// The products, run modes and releases that a rule holds for.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// By [`crate::vendor::product::Product::name`]; empty for all products.
    pub products: &'static [&'static str],
    /// Where the program runs; empty for both.
    pub run_modes: &'static [RunMode],
    /// From this release on.
    pub since: Option<Version>,
    /// Only before this release.
    pub before: Option<Version>,
}

impl Scope {
    /// Everywhere.
    pub const ALL: Self = Self { products: &[], run_modes: &[], since: None, before: None };
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

/// The severity of a finding.
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

/// A source of a rule.
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
    /// Observed in a run of the runtime.
    Observed(&'static str),
    /// Not stated by the vendor: the reason for the rule.
    Ours(&'static str),
}

/// What a rule found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which argument of the function, by its position.
    pub argument: u8,
    /// Which item of a batch, or entry of an array.
    pub index: Option<usize>,
    /// Its severity for this call.
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
