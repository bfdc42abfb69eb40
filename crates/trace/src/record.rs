//! Slots as calls: what a reader gets.

use crate::slot::{Head, Layout, Note, State, Words};
use crate::told::{self, Told};

/// The arguments of a call, as words in the order of the function's row.
pub const ARGUMENTS: usize = 10;

/// What one record tells.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // nearly all of them are calls
pub enum Entry {
    /// A call.
    Call(Call),
    /// From here on the ring is this thread's.
    Thread {
        /// When it came, in ticks.
        ticks: u64,
        /// Its id.
        id: u32,
        /// Its name.
        name: String,
    },
    /// Calls were forwarded and not recorded.
    Lost {
        /// When the first came, in ticks.
        from: u64,
        /// When there was room again.
        to: u64,
        /// How many.
        calls: u64,
        /// And how many marks, names and scopes.
        notes: u64,
    },
    /// The end of an earlier call of this ring.
    End {
        /// The call's number.
        of: u64,
        /// How it ended.
        end: End,
    },
    /// What was found wrong with a call of this ring whose record came before.
    Finding {
        /// The call's number.
        of: u64,
        /// What it is.
        finding: Finding,
    },
    /// More of the stack of a call of this ring whose record came before.
    Stack {
        /// The call's number.
        of: u64,
        /// Return addresses from the inside out, behind the call site; 0 where there are no more.
        frames: [u64; FRAMES],
    },
    /// What the program tells of itself.
    Told {
        /// When, in ticks.
        ticks: u64,
        /// What.
        what: Told,
    },
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The number of its slot.
    pub number: u64,
    /// The function, an index into the header's names.
    pub function: u8,
    /// The arguments as words; narrow ones leave the upper half undefined.
    pub arguments: [u64; ARGUMENTS],
    /// When it began, in ticks.
    pub begin: u64,
    /// How it ended, if it did.
    pub end: Option<End>,
    /// The address behind the call in the host's code.
    pub site: u64,
    /// Whether the vendor made it inside another.
    pub is_nested: bool,
    /// One bit a rule.
    pub findings: u128,
    /// [`INJECTED`] and others.
    pub flags: u16,
    /// The scope that was open, 0 if none.
    pub scope: u32,
    /// What the arrays of a batch held, if the vendor accepted it.
    pub batch: Option<Batch>,
}

impl Call {
    /// Whether its code and its duration are the vendor's own: it was neither refused nor struck by an injection.
    pub fn is_of_vendor(&self) -> bool {
        self.flags & (REFUSED | INJECTED) == 0
    }

    /// Whether an injection has struck it.
    pub fn is_injected(&self) -> bool {
        self.flags & INJECTED != 0
    }
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// In ticks.
    pub duration: u64,
    /// What it returned.
    pub code: i32,
}

/// The flag of a call that was made to fail, or delayed, by us.
pub const INJECTED: u16 = 1;
/// The flag of a call that was refused by a rule, and not forwarded.
pub const REFUSED: u16 = 2;

/// How many return addresses a [`Note::Stack`] holds.
pub const FRAMES: usize = 6;

/// What was found wrong with a call while it was made: where it is wrong, so that a reader who does not have the
/// caller's arrays can say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's number.
    pub rule: u8,
    /// Which argument, by its position.
    pub argument: u8,
    /// How bad it is, as a number of the rulebook's.
    pub severity: u8,
    /// Which item or entry of an array.
    pub index: Option<u64>,
    /// What stands there, and what it is measured against.
    pub values: [u64; 2],
    /// What the vendor returns for it, or 0.
    pub code: i32,
    /// What it writes to `failIndex` then, if anything.
    pub fail_index: Option<u64>,
}

const INDEXED: u64 = 1 << 24;
const FAIL_INDEXED: u64 = 1 << 25;

impl Finding {
    /// As the words of a note about the call with the number `of`: the number; rule, argument, severity (a byte each) and
    /// a bit each that says whether there is an index and a failing one; the index; two values; the code; the failing index.
    pub fn words(&self, of: u64) -> [u64; 7] {
        let bit = |is: bool, bit: u64| if is { bit } else { 0 };
        let what = u64::from(self.rule) | u64::from(self.argument) << 8 | u64::from(self.severity) << 16;
        let what = what | bit(self.index.is_some(), INDEXED) | bit(self.fail_index.is_some(), FAIL_INDEXED);
        let [one, other] = self.values;
        let (index, fail_index) = (self.index.unwrap_or(0), self.fail_index.unwrap_or(0));
        [of, what, index, one, other, self.code as u32 as u64, fail_index]
    }

    fn from_words(words: &Words) -> Self {
        let [_, _, what, index, one, other, code, fail_index] = *words;
        Self {
            rule: what as u8,
            argument: (what >> 8) as u8,
            severity: (what >> 16) as u8,
            index: (what & INDEXED != 0).then_some(index),
            values: [one, other],
            code: code as i32,
            fail_index: (what & FAIL_INDEXED != 0).then_some(fail_index),
        }
    }
}

/// What a batch holds.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Batch {
    /// The sum of all sizes.
    pub total: u64,
    /// The smallest size.
    pub smallest: u64,
    /// The largest.
    pub largest: u64,
    /// Items whose size is larger than the room at their destination.
    pub too_large: u64,
    /// The types of the places that all items go to and come from; `None` where attributes differ.
    pub direction: Option<(u8, u8)>,
    /// The first attributes.
    pub attributes: Vec<Attribute>,
    /// The first items.
    pub items: Vec<Item>,
}

/// An attribute of a batch, and the first item that it applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The first item.
    pub first: u64,
    /// The destination: id in the lower half, type in the upper.
    pub dst: u64,
    /// The source.
    pub src: u64,
}

/// An item of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Where to.
    pub dst: u64,
    /// Where from.
    pub src: u64,
    /// How many bytes.
    pub size: u64,
    /// How many bytes more there is room for; held within 32 bits.
    pub room: i32,
}

/// The fourth word of a [`Layout::More`] slot.
#[derive(Clone, Copy)]
pub struct Extent(pub u64);

impl Extent {
    /// So many slots, flags and a scope.
    #[inline(always)]
    pub const fn new(slots: u64, flags: u16, scope: u32) -> Self {
        Self(slots & 0xffff | (flags as u64) << 16 | (scope as u64) << 32)
    }

    const fn slots(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// The words that findings, one bit a rule, and what `extent` adds have in a [`Layout::More`] slot, each with its place:
/// the writer ors them in.
pub const fn found_words(findings: u128, extent: Extent) -> [(usize, u64); 3] {
    [(1, findings as u64), (2, (findings >> 64) as u64), (3, extent.0)]
}

/// The findings in a [`Layout::More`] slot.
fn findings(more: &Words) -> u128 {
    u128::from(more[1]) | u128::from(more[2]) << 64
}

/// The fifth word of a [`Layout::Batch`] slot: what was read of the arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Follows {
    /// How many items lie in the slots behind.
    pub items: u32,
    /// How many attributes.
    pub attributes: u8,
    /// See [`Batch::direction`].
    pub direction: Option<(u8, u8)>,
    /// Whether the arrays were read at all.
    pub is_read: bool,
}

const READ: u64 = 1 << 56;
const ONE_WAY: u64 = 1 << 57;

impl Follows {
    /// As a word.
    pub fn word(self) -> u64 {
        let (dst, src) = self.direction.unwrap_or_default();
        u64::from(self.items)
            | u64::from(self.attributes) << 32
            | u64::from(dst) << 40
            | u64::from(src) << 48
            | if self.is_read { READ } else { 0 }
            | if self.direction.is_some() { ONE_WAY } else { 0 }
    }

    /// From a word.
    pub fn from_word(word: u64) -> Self {
        Self {
            items: word as u32,
            attributes: (word >> 32) as u8,
            direction: (word & ONE_WAY != 0).then_some(((word >> 40) as u8, (word >> 48) as u8)),
            is_read: word & READ != 0,
        }
    }
}

/// The largest batch record: the summary's slots, attributes and items, two in a slot.
pub const fn batch_slots(attributes: u64, items: u64) -> u64 {
    3 + attributes.div_ceil(2) + items.div_ceil(2)
}

/// How many attributes of a batch are recorded at most.
pub const ATTRIBUTES: u64 = 8;

/// How many slots a record has, by its first one and the one behind it.
pub fn slots(first: &Words, second: Option<&Words>) -> usize {
    match (Head(first[0]).layout(), second) {
        (Layout::Long, Some(second)) if Head(second[0]).layout() == Layout::More => Extent(second[3]).slots().max(2),
        (Layout::Long, _) => 2,
        (Layout::Note, _) => told::slots(first),
        _ => 1,
    }
}

/// The record that begins with `slots[0]`, and how many slots it has; `None` if they end too early or
/// begin in the middle of one. `near` is a number not far away.
pub fn decode(slots_from: &[Words], near: u64) -> Option<(Entry, usize)> {
    let first = slots_from.first()?;
    let head = Head(first[0]);
    let mut count = slots(first, slots_from.get(1));
    if head.layout() == Layout::Note {
        // A drain that does not know these notes may have parted them: what is there of a text is better than nothing.
        let rest = slots_from[1..].iter().take(count - 1);
        count = 1 + rest.take_while(|slot| told::is_rest(Head(slot[0]))).count();
    }
    let slots = slots_from.get(..count)?;
    let number = head.number(near);
    let entry = match head.layout() {
        Layout::Linear | Layout::Fill | Layout::Long => Entry::Call(call(head, number, slots)),
        Layout::Note => note(head, slots)?,
        Layout::More | Layout::Batch | Layout::Attributes | Layout::Items => return None,
    };
    Some((entry, count))
}

/// The call in a slot of its own.
pub fn one_slot(slot: &Words, number: u64) -> Call {
    call(Head(slot[0]), number, std::slice::from_ref(slot))
}

fn call(head: Head, number: u64, slots: &[Words]) -> Call {
    let first = &slots[0];
    let end = End { duration: first[2] & 0xffff_ffff, code: (first[2] >> 32) as i32 };
    let mut call = Call {
        number,
        function: head.function(),
        arguments: [0; ARGUMENTS],
        begin: first[1],
        end: (head.state() == State::Done).then_some(end),
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
    let is = |note: Note| head.function() == note as u8;
    Some(if is(Note::Thread) {
        let name: Vec<u8> = words[3].to_le_bytes().into_iter().chain(words[4].to_le_bytes()).collect();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        Entry::Thread { ticks: words[1], id: words[2] as u32, name: String::from_utf8_lossy(name).into_owned() }
    } else if is(Note::Lost) {
        Entry::Lost { from: words[1], to: words[2], calls: words[3], notes: words[4] }
    } else if is(Note::End) {
        Entry::End { of: words[2], end: End { duration: words[3], code: words[4] as i32 } }
    } else if is(Note::Finding) {
        Entry::Finding { of: words[1], finding: Finding::from_words(words) }
    } else if is(Note::Stack) {
        let mut frames = [0; FRAMES];
        frames.copy_from_slice(&words[2..]);
        Entry::Stack { of: words[1], frames }
    } else {
        let (ticks, what) = told::decode(slots)?;
        Entry::Told { ticks, what }
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
