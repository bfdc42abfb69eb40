//! The rulebook: every rule, what is wrong with a call, and what the vendor will do with it.

mod argument;
pub mod batch;
mod capture;
mod checklist;
mod descriptor;
mod direction;
mod group;
mod item;
mod kind;
mod layout;
mod memory;
mod offset;
mod peer;
mod pitch;
mod range;
pub mod role;
mod side;
mod stream;
mod support;
mod symbol;
mod walk;
mod words;

use crate::call::{Call, Form};
use crate::functions::Function;
use crate::rule::{Finding, Prediction, Rule, Severity, Subject, Verdict};
use crate::world::{self, Remembering, Stream, World};
pub use checklist::{Checklist, Step, checklist};
pub use memory::ALIGN_64;
use std::ops::Range;
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
}

/// Whether there is nothing to say of a linear call or a fill, at a glance: the call that almost every call is, where nothing is
/// known of memory. `false` says nothing.
#[inline(always)]
pub fn is_plain(subject: &Subject) -> bool {
    is_sound(subject) && is_in_line(&subject.call)
}

/// The same but for ALIGN-64.
#[inline(always)]
pub fn is_sound(subject: &Subject) -> bool {
    let world = &subject.world;
    let is_at_home = world.has_context != Some(false) && !world.memory.tells();
    let is_free = match subject.function {
        Function::aclrtMemcpy | Function::aclrtMemset => world.is_capture_in_the_way != Some(true),
        _ => !matches!(world.stream, Stream::Foreign { .. } | Stream::Invalid),
    };
    let is_sound = match subject.call.form {
        Form::Linear { dst, dst_max, src, count, kind } => {
            is_sound_linear(subject.function, [dst as usize, dst_max, src as usize, count], kind.0, world.form)
        }
        Form::Fill { dst, dst_max, count, .. } => is_sound_fill(subject.function, [dst as usize, dst_max, count]),
        _ => false,
    };
    is_at_home && is_free && is_sound
}

/// The same by the arguments alone (dst, destMax, src and count), where nothing is known but the form.
#[inline(always)]
pub fn is_sound_linear(
    function: Function,
    [dst, dst_max, src, count]: [usize; 4],
    kind: i32,
    form: Option<world::Form>,
) -> bool {
    has_sound_ranges([dst, dst_max, src, count]) && sound_kinds(function, form).contains(&kind)
}

/// Whether there is nothing to say of where a linear call reads and writes (dst, destMax, src and count).
#[inline(always)]
pub fn has_sound_ranges([dst, dst_max, src, count]: [usize; 4]) -> bool {
    let is_fitting = count.wrapping_sub(1) < dst_max && count <= dst_max && dst != 0 && src != 0;
    let is_apart = dst.abs_diff(src) >= count;
    let ends = dst.checked_add(count).is_some() && src.checked_add(count).is_some();
    is_fitting && is_apart && ends
}

/// The kinds of a linear call that there is nothing to say of, where nothing is known but the form.
#[inline(always)]
pub fn sound_kinds(function: Function, form: Option<world::Form>) -> Range<i32> {
    match function {
        Function::aclrtMemcpy => 0..6,
        // Host to host is forbidden at the host's side, and the host's kinds on the board.
        Function::aclrtMemcpyAsync if form == Some(world::Form::RootComplex) => 3..6,
        Function::aclrtMemcpyAsync => 1..6,
        _ => 0..0,
    }
}

/// The same of a fill (dst, maxCount and count).
#[inline(always)]
pub fn is_sound_fill(function: Function, [dst, dst_max, count]: [usize; 3]) -> bool {
    let is_fitting = (1..=dst_max).contains(&count) && dst != 0 && dst.checked_add(count).is_some();
    is_fitting && matches!(function, Function::aclrtMemset | Function::aclrtMemsetAsync)
}

/// Whether ALIGN-64 has nothing to say of a linear call.
#[inline(always)]
fn is_in_line(call: &Call) -> bool {
    let Form::Linear { dst, src, .. } = call.form else { return true };
    call.stream.is_none() || (dst as usize | src as usize).is_multiple_of(64)
}

/// Hands every broken rule to `found`, each once. Makes no text and takes no memory.
///
/// A finding of severity error means that the vendor refuses the call, if not for this rule then for another one.
pub fn judge_each(subject: &Subject, found: &mut dyn FnMut(&'static Rule, Finding)) {
    if !is_plain(subject) {
        look_at(subject, found);
    }
}

fn look_at(subject: &Subject, found: &mut dyn FnMut(&'static Rule, Finding)) {
    let memory = Remembering::new(subject.world.memory);
    let subject = &Subject { world: World { memory: &memory, ..subject.world }, ..*subject };
    let checklist = checklist(subject.function);
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
            // What cannot be told is not spoken of: all that follows hangs on it.
            Step::Accept(accepts) if accepts(subject) != Some(false) => {
                goes_through = false;
                break;
            }
            Step::Accept(_) => {}
            Step::Check(rule) => _ = see(rule, (rule.check)(subject)),
            Step::Part(rule, check) => _ = see(rule, check(subject)),
            Step::Items => {
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
    for rule in advice.iter().chain(checklist.always) {
        see(rule, (rule.check)(subject));
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
    /// So many are kept; a call that breaks more rules at once has been seen enough of.
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
    for step in checklist(subject.function).steps {
        let goes_on = match step {
            Step::Accept(accepts) => match accepts(subject) {
                Some(true) => return Prediction::Accepted,
                Some(false) => true,
                None => return Prediction::Unknown,
            },
            Step::Check(rule) => see(rule, (rule.check)(subject)),
            Step::Part(rule, check) => see(rule, check(subject)),
            Step::Items => {
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
