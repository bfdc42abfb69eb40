//! The rulebook: every rule, what is wrong with a call, and what the vendor will do with it.

mod argument;
pub mod batch;
mod capture;
mod checklist;
mod descriptor;
mod direction;
mod item;
mod kind;
mod layout;
mod memory;
mod offset;
mod peer;
mod pitch;
pub mod quick;
mod range;
pub mod role;
mod side;
mod stream;
mod support;
mod symbol;
mod walk;
mod words;

use crate::abi::aclError;
use crate::rule::{Finding, Prediction, Rule, Severity, Subject, Verdict};
use crate::world::{Remembering, World};
pub use checklist::{Checklist, Step, checklist};
pub use memory::ALIGN_64;
pub use support::{UNSUPPORTED_PRODUCT, UNSUPPORTED_RELEASE};

/// Every rule. A rule's position is its number, which stands in records: rules are only added, at the end, never
/// moved, renamed or reused, and there are at most 128 of them.
pub static RULES: &[&Rule] = &[
    &argument::NULL_POINTER,
    &argument::ZERO_SIZE,
    &argument::DEST_MAX,
    &argument::SAME_ADDRESS,
    &kind::KIND_RANGE,
    &kind::KIND_FUNCTION,
    &kind::KIND_PLACE,
    &kind::BUFFER_PLACE,
    &kind::ASYNC_HOST_TO_HOST,
    &kind::KIND_ROOT_COMPLEX,
    &memory::ALIGN_64,
    &range::OVERLAP,
    &range::RANGE_OVERFLOW,
    &range::MEMORY_ROOM,
    &memory::UNALLOCATED,
    &memory::DEVICE_CLOSED,
    &stream::CONTEXT_MISSING,
    &stream::STREAM_INVALID,
    &stream::STREAM_FOREIGN,
    &capture::CAPTURE_SYNC,
    &capture::CAPTURE_PAGEABLE,
    &capture::CAPTURE_BLOCKS,
    &capture::ASYNC_PAGEABLE,
    &stream::CONDITION_DRIVER,
    &pitch::PITCH_WIDTH,
    &pitch::PITCH_LIMIT,
    &pitch::PITCH_KIND,
    &pitch::PITCH_PLACE,
    &pitch::PITCH_PRODUCT,
    &pitch::PITCH_ROOT_COMPLEX,
    &batch::BATCH_EMPTY,
    &batch::BATCH_DEST_MAX,
    &batch::BATCH_RESERVED,
    &layout::BATCH_ATTRS,
    &batch::BATCH_LIMIT,
    &layout::BATCH_INDEX_FIRST,
    &layout::BATCH_INDEX_ORDER,
    &layout::BATCH_INDEX_RANGE,
    &item::BATCH_ZERO_SIZE,
    &item::BATCH_NULL_ITEM,
    &item::BATCH_PLACE,
    &item::BATCH_UNREGISTERED,
    &item::BATCH_DIRECTION,
    &item::BATCH_UNORDERED,
    &offset::SIZE_LIMIT,
    &offset::OFFSET_LIMIT,
    &offset::OFFSET_ROOM,
    &descriptor::DESC_ALIGN,
    &descriptor::DESC_STREAM_NULL,
    &descriptor::DESC_PLACE,
    &descriptor::DESC_SIDES,
    &descriptor::DESC_CONFIG,
    &descriptor::SIZE_TRUNCATED,
    &words::WORDS_ALIGN,
    &words::WORDS_PLACE,
    &words::WORDS_IGNORED,
    &symbol::SYMBOL_UNKNOWN,
    &symbol::SYMBOL_OVERFLOW,
    &symbol::SYMBOL_RANGE,
    &support::DEPRECATED,
    &support::EXPERIMENTAL,
    &support::UNSUPPORTED_PRODUCT,
    &support::UNSUPPORTED_RELEASE,
    &peer::PEER_ACCESS,
];

/// What can be said of the items of a batch only when the vendor has accepted it: before, their addresses are not read.
pub static ITEMS_APART: &[&Rule] = &[&item::BATCH_UNORDERED];

impl Rule {
    /// The rule of that id.
    pub fn by_id(id: &str) -> Option<&'static Rule> {
        RULES.iter().copied().find(|rule| rule.id == id)
    }

    /// The rules that a call of some function may be refused for with this code.
    pub fn by_code(code: aclError) -> impl Iterator<Item = &'static Rule> {
        RULES.iter().copied().filter(move |rule| rule.codes.iter().any(|(other, _)| *other == code))
    }
}

/// Hands every broken rule to `found`, each once. Makes no text and takes no memory.
///
/// A finding of severity error means that the vendor refuses the call, if not for this rule then for another one.
pub fn judge_each(subject: &Subject, found: &mut dyn FnMut(&'static Rule, Finding)) {
    if !quick::breaks_no_rule(subject) {
        look_at(subject, found);
    }
}

fn look_at(subject: &Subject, found: &mut dyn FnMut(&'static Rule, Finding)) {
    let memory = Remembering::new(subject.world.memory);
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
    for step in checklist.steps {
        match step {
            // Not known: nothing is reported of the steps behind it, which depend on it.
            Step::Accept(accepts) if accepts(subject) != Some(false) => {
                goes_through = false;
                break;
            }
            Step::Accept(_) => {}
            Step::Part(rule, check) => _ = see(rule, check(subject)),
            Step::Check(_) | Step::Only(..) => _ = step.check(subject, &mut see),
            Step::Items(_) => {
                walk::attributes(subject, &mut see);
                if subject.world.memory.tells() {
                    walk::items(subject, &mut see);
                } else {
                    walk::items_unseen(subject, &mut see);
                }
            }
        }
    }
    let advice = if goes_through { checklist.advice } else { &[] };
    for rule in advice {
        see(rule, (rule.check)(subject));
    }
    for step in checklist.always {
        step.check(subject, &mut see);
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
    let memory = Remembering::new(subject.world.memory);
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
    for step in checklist(&subject.call).steps {
        let goes_on = match step {
            Step::Accept(accepts) => match accepts(subject) {
                Some(true) => return Prediction::Accepted,
                Some(false) => true,
                None => return Prediction::Unknown,
            },
            Step::Part(rule, check) => see(rule, check(subject)),
            Step::Check(_) | Step::Only(..) => step.check(subject, &mut see),
            Step::Items(_) => {
                walk::items(subject, &mut see);
                // The last step of every list that has it.
                true
            }
        };
        if !goes_on {
            break;
        }
    }
    prediction
}

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
