//! The findings of the rules about one call, and the refusal that follows from them.

use crate::check::{policy, stack};
use crate::settings::settings;
use aclshim_facts::abi::aclError;
use aclshim_facts::policy::Action;
use aclshim_facts::rule::{Finding, Prediction, Rule, Severity, Subject};
use aclshim_facts::rules::role::Role;
use aclshim_facts::rules::{RULES, judge_each, predict};
use aclshim_facts::settings::Stack;
use aclshim_facts::world::{Stream, World};
use aclshim_trace::record::slot::Note;
use aclshim_trace::record::{Extent, FRAMES, REFUSED, RecordedFinding};

/// Number of findings of one call that are recorded one by one; the bits of all are in its record.
const MOST: usize = 4;

/// The findings about a call.
#[derive(Clone, Copy)]
pub struct Judgement {
    findings: [Option<JudgedFinding>; MOST],
    /// One bit a rule.
    pub bits: u128,
    /// Whether the vendor refuses the call for one of them.
    pub has_error: bool,
    /// What is returned in the vendor's place, if the call is refused.
    pub refusal: Option<Refusal>,
    frames: Option<[u64; FRAMES]>,
}

/// A finding with its rule, and the values in the arrays of a batch that it is about: they may be gone later.
#[derive(Clone, Copy)]
pub struct JudgedFinding {
    /// The rule.
    pub rule: &'static Rule,
    /// The finding.
    pub finding: Finding,
    /// The entry of the array, and the value that it is compared with.
    pub values: [u64; 2],
}

/// The answer to a call that is not forwarded.
#[derive(Clone, Copy)]
pub struct Refusal {
    /// The rule that refuses the call.
    pub rule: &'static Rule,
    /// Refuse, or end the program.
    pub action: Action,
    /// The code to return.
    pub code: aclError,
    /// The value for `failIndex`, if the vendor writes one.
    pub fail_index: Option<usize>,
}

/// Judges a call by all rules but those in `reported`, a bit each.
pub fn judge(subject: &Subject<'_>, reported: u128) -> Option<Judgement> {
    let mut judgement = Judgement::NONE;
    let mut is_refused_for_an_error = false;
    judge_each(subject, &mut |rule, finding| {
        if reported >> rule.number & 1 == 1 {
            return;
        }
        let action = judgement.add(subject, rule, &finding);
        let Some(action) = action.filter(|action| matches!(action, Action::Refuse | Action::Abort)) else { return };
        if !policy::in_force().is_said(rule.number.into()) {
            is_refused_for_an_error = true;
        } else if judgement.refusal.is_none_or(|other| other.action == Action::Refuse && action == Action::Abort) {
            let fail_index = if finding.severity == Severity::Error {
                finding.fail_index
            } else {
                documented_index(subject, &finding)
            };
            judgement.refusal = Some(Refusal { rule, action, code: rule.refusal(&finding), fail_index });
        }
    });
    if judgement.bits == 0 {
        return None;
    }
    if is_refused_for_an_error && judgement.refusal.is_none() {
        judgement.refusal = vendors_refusal(subject);
    }
    if settings().stack == Stack::Findings {
        judgement.frames = stack::frames();
    }
    Some(judgement)
}

/// The documented value of `failIndex` for a refused batch that the vendor would accept: the first item of the attribute,
/// or `SIZE_MAX` for a finding about no item, or about one that must not be read here.
fn documented_index(subject: &Subject<'_>, finding: &Finding) -> Option<usize> {
    subject.batch()?;
    let entry = finding.index.filter(|_| subject.role_in_batch(finding.argument) == Some(Role::Attrs));
    let first = entry.and_then(|entry| subject.arrays.attr_indexes?.get(entry).copied());
    Some(first.unwrap_or(usize::MAX))
}

/// The vendor's own refusal, if it can be predicted for a program whose handles are valid. Where it depends on the kind of
/// memory it cannot: the call is forwarded, and the vendor refuses it itself.
fn vendors_refusal(subject: &Subject<'_>) -> Option<Refusal> {
    let stream = match subject.world.stream {
        Stream::Unknown => Stream::Own { is_captured: false },
        known => known,
    };
    let world = World {
        stream,
        is_open: Some(true),
        has_context: Some(true),
        is_capture_in_the_way: Some(false),
        tells_pageable: Some(true),
        ..subject.world
    };
    match predict(&Subject { world, ..*subject }) {
        Prediction::Refused { rule, code, fail_index } => {
            Some(Refusal { rule: RULES.get(rule)?, action: Action::Refuse, code, fail_index })
        }
        Prediction::Accepted | Prediction::Unknown => None,
    }
}

/// The entry of the array of a batch that is the argument at this position, and the value that it is compared with.
fn entry(subject: &Subject<'_>, argument: u8, index: usize) -> Option<[u64; 2]> {
    let arrays = &subject.arrays;
    let at = |array: Option<&[usize]>, index: usize| Some(*array?.get(index)? as u64);
    let address = |array: Option<&[*mut core::ffi::c_void]>| Some(array?.get(index)?.addr() as u64);
    match subject.role_in_batch(argument)? {
        Role::Dst => Some([address(arrays.dsts)?, 0]),
        Role::Src => Some([address(arrays.srcs)?, 0]),
        Role::DstMax | Role::Count => Some([at(arrays.sizes, index)?, at(arrays.dst_maxs, index)?]),
        Role::Attrs => {
            let attribute = arrays.attrs?.get(index)?;
            Some([attribute.dstLoc.type_ as u64, attribute.srcLoc.type_ as u64])
        }
        Role::AttrIndexes => Some([
            at(arrays.attr_indexes, index)?,
            index.checked_sub(1).and_then(|before| at(arrays.attr_indexes, before)).unwrap_or(0),
        ]),
        _ => None,
    }
}

impl JudgedFinding {
    /// As it is recorded.
    fn recorded(&self) -> RecordedFinding {
        let Finding { argument, severity, index, code, fail_index } = self.finding;
        RecordedFinding {
            rule: self.rule.number,
            argument,
            severity: severity as u8,
            index: index.map(|index| index as u64),
            values: self.values,
            code,
            fail_index: fail_index.map(|index| index as u64),
        }
    }
}

impl Judgement {
    /// No finding.
    pub const NONE: Self = Self { findings: [None; MOST], bits: 0, has_error: false, refusal: None, frames: None };

    /// Adds a finding, unless its rule is off; returns the action of the policy.
    pub fn add(&mut self, subject: &Subject<'_>, rule: &'static Rule, finding: &Finding) -> Option<Action> {
        let action = policy::in_force().action(rule.number.into(), finding.severity);
        if action == Action::Off {
            return None;
        }
        self.bits |= 1 << rule.number;
        self.has_error |= finding.severity == Severity::Error;
        if let Some(free) = self.findings.iter_mut().find(|place| place.is_none()) {
            let values = finding.index.and_then(|index| entry(subject, finding.argument, index)).unwrap_or_default();
            *free = Some(JudgedFinding { rule, finding: *finding, values });
        }
        Some(action)
    }

    /// All findings, for an observer; of those beyond the first few only the rule is known.
    pub fn findings(&self) -> impl Iterator<Item = JudgedFinding> {
        let known = self.findings.iter().flatten();
        let is_known = |rule: &Rule| self.findings.iter().flatten().any(|known| known.rule.number == rule.number);
        let rest = RULES.iter().filter(move |rule| self.bits >> rule.number & 1 == 1 && !is_known(rule));
        known.copied().chain(rest.map(|rule| {
            let severity = rule.severity;
            let finding = Finding { argument: u8::MAX, index: None, severity, code: 0, fail_index: None };
            JudgedFinding { rule, finding, values: [0; 2] }
        }))
    }

    /// Hands the notes about the call with the number `of` to `write`: its findings, and its stack.
    pub fn write_notes(&self, of: u64, mut write: impl FnMut(Note, &[u64])) {
        for finding in self.findings.iter().flatten() {
            write(Note::Finding, &finding.recorded().words(of));
        }
        if let Some(frames) = self.frames {
            let mut words = [of; 1 + FRAMES];
            words[1..].copy_from_slice(&frames);
            write(Note::Stack, &words);
        }
    }

    /// What it adds to the extent of the call's record.
    pub fn extent(&self) -> Extent {
        Extent::new(0, if self.refusal.is_some() { REFUSED } else { 0 }, 0)
    }
}
