//! The rulebook: every rule, what is wrong with a call, and what the vendor will do with it.

pub mod case;
mod checklist;
mod direction;
mod entries;
pub mod quick;
pub mod role;
pub mod rule;
mod side;
pub mod subject;
mod table;
mod walk;
pub mod world;

use crate::rules::rule::{Finding, Phase, Prediction, Rule, Severity, Subject, Verdict};
use crate::rules::world::{Cached, World};
pub use checklist::{Acceptance, Check, Checklist, checklist};
pub use entries::memory::ALIGN_64;
pub use table::RULES;

/// Hands every broken rule to `found`, each once. Makes no text and takes no memory.
///
/// A finding of severity error means that the vendor refuses the call, if not for this rule then for another one.
pub fn judge_each(subject: &Subject, found: &mut dyn FnMut(&'static Rule, Finding)) {
    if !quick::breaks_no_rule(subject) {
        look_at(subject, found);
    }
}

fn look_at(subject: &Subject, found: &mut dyn FnMut(&'static Rule, Finding)) {
    let memory = Cached::new(subject.world.memory);
    let subject = &Subject { world: World { memory: &memory, ..subject.world }, ..*subject };
    let checklist = checklist(&subject.call);
    let mut seen = 0u128;
    let mut see = |rule: &'static Rule, verdict: Verdict| {
        if let Verdict::Broken(finding) = verdict
            && seen & 1 << rule.number == 0
        {
            seen |= 1 << rule.number;
            found(rule, finding);
        }
        true
    };
    let mut goes_through = true;
    for phase in [Phase::Vendor, Phase::Items, Phase::Advice, Phase::Always] {
        if !goes_through && phase != Phase::Always {
            continue;
        }
        if phase == Phase::Items {
            walk::batch(subject, &mut see);
        }
        for check in checklist.checks(phase, subject.function) {
            match check {
                // Not known: nothing is reported of the checks behind it, which depend on it.
                Check::Accept(point) if (point.accepts)(subject) != Some(false) => {
                    goes_through = false;
                    break;
                }
                Check::Accept(_) => {}
                Check::Rule(rule, step) => _ = see(rule, step.check(rule, subject)),
            }
        }
    }
}

/// What is wrong with a call: at most [`Findings::ROOM`] findings, and every broken rule's bit.
#[derive(Clone, Copy, Debug)]
pub struct Findings {
    /// Bit n: rule n is broken.
    pub set: u128,
    /// The worst of them.
    pub worst: Option<Severity>,
    findings: [(u8, Finding); Self::ROOM],
    count: u8,
}

impl Findings {
    /// Findings that are held, at most; the rest of a call that breaks more rules is only in the set.
    pub const ROOM: usize = 12;

    /// The findings by rule number.
    pub fn iter(&self) -> impl Iterator<Item = &(u8, Finding)> {
        self.findings.iter().take(self.count as usize)
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.set == 0
    }
}

/// What is wrong with a call.
pub fn judge(subject: &Subject) -> Findings {
    const NONE: Finding =
        Finding { argument: 0, index: None, severity: Severity::Portability, code: 0, fail_index: None };
    let mut all = Findings { set: 0, worst: None, findings: [(0, NONE); Findings::ROOM], count: 0 };
    judge_each(subject, &mut |rule, finding| {
        all.set |= 1 << rule.number;
        all.worst = all.worst.max(Some(finding.severity));
        if let Some(slot) = all.findings.get_mut(all.count as usize) {
            *slot = (rule.number, finding);
            all.count += 1;
        }
    });
    all
}

/// What the vendor will do with a call: its first check that fails, in its order.
///
/// What a task of a stream comes to later is not the call's. `Accepted` with a `failIndex` means that it is `SIZE_MAX`.
pub fn predict(subject: &Subject) -> Prediction {
    let memory = Cached::new(subject.world.memory);
    let subject = &Subject { world: World { memory: &memory, ..subject.world }, ..*subject };
    let mut prediction = Prediction::Accepted;
    // Says whether to go on.
    let mut see = |rule: &'static Rule, verdict: Verdict| match verdict {
        Verdict::Broken(Finding { severity: Severity::Error, code, fail_index, .. }) => {
            prediction = Prediction::Refused { rule: rule.number.into(), code, fail_index };
            false
        }
        Verdict::Unknown => {
            prediction = Prediction::Unknown;
            false
        }
        _ => true,
    };
    for check in checklist(&subject.call).checks(Phase::Vendor, subject.function) {
        let goes_on = match check {
            Check::Accept(point) => match (point.accepts)(subject) {
                Some(true) => return Prediction::Accepted,
                Some(false) => true,
                None => return Prediction::Unknown,
            },
            Check::Rule(rule, step) => see(rule, step.check(rule, subject)),
        };
        if !goes_on {
            return prediction;
        }
    }
    walk::items(subject, &mut see);
    prediction
}

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
