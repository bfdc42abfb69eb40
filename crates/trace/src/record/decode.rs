//! Decoding of slots to entries.

use crate::record::annotation;
use crate::record::call::{
    ARGUMENTS, Attribute, Batch, Call, End, Entry, Extent, FRAMES, Follows, Item, RecordedFinding, TrackedCall,
};
use crate::record::effects::EffectClasses;
use crate::record::slot::{Head, Layout, Note, State, Words};

/// Number of slots of a record, from its first slot and the one behind it.
pub fn slots(first: &Words, second: Option<&Words>) -> usize {
    match (Head(first[0]).layout(), second) {
        (Layout::Long, Some(second)) if Head(second[0]).layout() == Layout::More => Extent(second[3]).slots().max(2),
        (Layout::Long, _) => 2,
        (Layout::Note, _) => annotation::slots(first),
        _ => 1,
    }
}

/// Decodes the record that begins with `slots_from[0]`; returns it with its number of slots. `None` if the slots end too
/// early or begin in the middle of a record, and for a layout or note that is not known. `near` is a slot number not far away, from which the number is completed.
pub fn decode(slots_from: &[Words], near: u64) -> Option<(Entry, usize)> {
    let first = slots_from.first()?;
    let head = Head(first[0]);
    let mut count = slots(first, slots_from.get(1));
    if head.layout() == Layout::Note {
        // A drain that does not know annotations may have separated their slots: a part of a text is better than none.
        let rest = slots_from[1..].iter().take(count - 1);
        count = 1 + rest.take_while(|slot| annotation::is_rest(Head(slot[0]))).count();
    }
    let slots = slots_from.get(..count)?;
    let number = head.number(near);
    let entry = match head.layout() {
        Layout::Linear | Layout::Fill | Layout::Long => Entry::Call(call(head, number, slots)),
        Layout::Tracked => Entry::Tracked(tracked(head, number, first)),
        Layout::Note => note(head, slots)?,
        Layout::More | Layout::Batch | Layout::Attributes | Layout::Items | Layout::Unknown => return None,
    };
    Some((entry, count))
}

/// Decodes a call that takes one slot.
pub fn one_slot(slot: &Words, number: u64) -> Call {
    call(Head(slot[0]), number, std::slice::from_ref(slot))
}

/// The findings in a [`Layout::More`] slot.
fn findings(more: &Words) -> u128 {
    u128::from(more[1]) | u128::from(more[2]) << 64
}

/// The end of the call with this first slot, if the slot has it.
fn end(head: Head, first: &Words) -> Option<End> {
    let end = End { duration: first[2] & 0xffff_ffff, code: (first[2] >> 32) as i32 };
    (head.state() == State::Done).then_some(end)
}

fn tracked(head: Head, number: u64, slot: &Words) -> TrackedCall {
    let [_, begin, _, site, values @ ..] = *slot;
    let (function, is_nested) = (head.function(), head.is_nested());
    TrackedCall { number, function, begin, end: end(head, slot), site, is_nested, values }
}

fn call(head: Head, number: u64, slots: &[Words]) -> Call {
    let first = &slots[0];
    let mut call = Call {
        number,
        function: head.function(),
        arguments: [0; ARGUMENTS],
        begin: first[1],
        end: end(head, first),
        site: first[3],
        is_nested: head.is_nested(),
        findings: 0,
        flags: 0,
        scope: 0,
        batch: None,
    };
    let arguments = &mut call.arguments;
    match head.layout() {
        Layout::Linear => {
            let kind = u64::from(head.kind());
            arguments[..6].copy_from_slice(&[first[4], first[6], first[5], first[6], kind, first[7]]);
        }
        Layout::Fill => arguments[..5].copy_from_slice(&[first[4], first[6], first[5], first[6], first[7]]),
        _ => {
            arguments[..4].copy_from_slice(&first[4..]);
            if let Some(more) = slots.get(1) {
                arguments[4..8].copy_from_slice(&more[4..]);
                call.findings = findings(more);
                (call.flags, call.scope) = ((more[3] >> 16) as u16, (more[3] >> 32) as u32);
            }
            if let Some(third) = slots.get(2).filter(|third| Head(third[0]).layout() == Layout::Batch) {
                arguments[8..].copy_from_slice(&third[6..]);
                call.batch = call.end.is_some().then(|| batch(third, &slots[3..])).flatten();
            }
        }
    }
    call
}

fn batch(summary: &Words, rest: &[Words]) -> Option<Batch> {
    let follows = Follows::from_word(summary[4]);
    let of = |layout: Layout| rest.iter().filter(move |slot| Head(slot[0]).layout() == layout);
    let threes = |layout| of(layout).flat_map(|slot| [(slot, 0), (slot, 1)]);
    let attributes = threes(Layout::Attributes).take(follows.attributes.into());
    let items = threes(Layout::Items).take(follows.items as usize);
    follows.is_read.then(|| Batch {
        total: summary[1],
        smallest: summary[2],
        largest: summary[3],
        too_large: summary[5],
        direction: follows.direction,
        attributes: attributes
            .map(|(slot, half)| Attribute {
                first: slot[1 + 3 * half],
                dst: slot[2 + 3 * half],
                src: slot[3 + 3 * half],
            })
            .collect(),
        items: items
            .map(|(slot, half)| Item {
                dst: slot[1 + 3 * half],
                src: slot[2 + 3 * half],
                size: slot[3 + 3 * half],
                room: (slot[7] >> (32 * half)) as i32,
            })
            .collect(),
    })
}

fn note(head: Head, slots: &[Words]) -> Option<Entry> {
    let words = &slots[0];
    let is = |note: Note| head.function() == note as u16;
    Some(if is(Note::Thread) {
        let name: Vec<u8> = words[3].to_le_bytes().into_iter().chain(words[4].to_le_bytes()).collect();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        Entry::Thread { ticks: words[1], id: words[2] as u32, name: String::from_utf8_lossy(name).into_owned() }
    } else if is(Note::Lost) {
        let [_, from, to, calls, notes, classes, ..] = *words;
        Entry::Lost { from, to, calls, notes, classes: EffectClasses::of_note(classes, calls) }
    } else if is(Note::End) {
        Entry::End { of: words[2], end: End { duration: words[3], code: words[4] as i32 } }
    } else if is(Note::Finding) {
        Entry::Finding { of: words[1], finding: RecordedFinding::from_words(words) }
    } else if is(Note::Stack) {
        let mut frames = [0; FRAMES];
        frames.copy_from_slice(&words[2..]);
        Entry::Stack { of: words[1], frames }
    } else if is(Note::Skip) {
        Entry::Skip { ticks: words[1], to: words[2] }
    } else {
        let (ticks, annotation) = annotation::decode(slots)?;
        Entry::Annotation { ticks, annotation }
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
