//! The typed form of records: calls and the entries beside them.

use crate::record::annotation::Annotation;
use crate::record::effects::EffectClasses;
use crate::record::slot::Words;

/// Number of arguments of a call at most, as words in the order of the function's row.
pub const ARGUMENTS: usize = 10;

/// One decoded record.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // nearly all of them are calls
pub enum Entry {
    /// A copy or a fill.
    Call(Call),
    /// Another call of the vendor's that is tracked.
    Tracked(TrackedCall),
    /// The ring belongs to this thread from here on.
    Thread {
        /// Time of its first record, in ticks.
        ticks: u64,
        /// Its id.
        id: u32,
        /// Its name.
        name: String,
    },
    /// Calls were forwarded and not recorded.
    Lost {
        /// Time of the first one, in ticks.
        from: u64,
        /// Time when there was room again, in ticks.
        to: u64,
        /// Number of calls.
        calls: u64,
        /// Number of marks, names and scopes.
        notes: u64,
        /// Effects that the calls had.
        classes: EffectClasses,
    },
    /// The end of an earlier call of this ring.
    End {
        /// The call's number.
        of: u64,
        /// How it ended.
        end: End,
    },
    /// A finding about a call of this ring whose record came before.
    Finding {
        /// The call's number.
        of: u64,
        /// The finding.
        finding: RecordedFinding,
    },
    /// More of the stack of a call of this ring whose record came before.
    Stack {
        /// The call's number.
        of: u64,
        /// Return addresses from the inside out, behind the call site; 0 where there are no more.
        frames: [u64; FRAMES],
    },
    /// An annotation of the program.
    Annotation {
        /// When it was made, in ticks.
        ticks: u64,
        /// What it says.
        annotation: Annotation,
    },
    /// The writer left out the slots up to a number.
    Skip {
        /// When it did, in ticks.
        ticks: u64,
        /// Number of the slot with which it continues.
        to: u64,
    },
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The number of its slot.
    pub number: u64,
    /// The function, an index into the header's names.
    pub function: u16,
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
    /// Whether code and duration are the vendor's own: the call was neither refused nor changed by an injection.
    pub fn is_of_vendor(&self) -> bool {
        self.flags & (REFUSED | INJECTED) == 0
    }

    /// Whether an injection has changed it.
    pub fn is_injected(&self) -> bool {
        self.flags & INJECTED != 0
    }
}

/// Number of values of a tracked call.
pub const VALUES: usize = 4;

/// A tracked call: one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackedCall {
    /// The number of its slot.
    pub number: u64,
    /// The function, an index into the header's names.
    pub function: u16,
    /// When it began, in ticks.
    pub begin: u64,
    /// How it ended, if it did.
    pub end: Option<End>,
    /// The address behind the call in the host's code.
    pub site: u64,
    /// Whether the vendor made it inside another.
    pub is_nested: bool,
    /// What the function's row says: the first arguments and, once it has ended, values that the vendor returned through
    /// pointers.
    pub values: [u64; VALUES],
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

/// Number of return addresses in a stack note.
pub const FRAMES: usize = 6;

/// A finding of the shim about a call, with the values that a reader without the caller's arrays needs to report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedFinding {
    /// The rule's number.
    pub rule: u8,
    /// Position of the argument.
    pub argument: u8,
    /// Severity, as the number that the rulebook has for it.
    pub severity: u8,
    /// Index of the item or array entry.
    pub index: Option<u64>,
    /// The value found, and the value it is compared with.
    pub values: [u64; 2],
    /// The code that the vendor returns for it, or 0.
    pub code: i32,
    /// The value that the vendor writes to `failIndex`, if it does.
    pub fail_index: Option<u64>,
}

const INDEXED: u64 = 1 << 24;
const FAIL_INDEXED: u64 = 1 << 25;

impl RecordedFinding {
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

    pub(super) fn from_words(words: &Words) -> Self {
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

/// What was read of the arrays of a batch.
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
    /// Destination address.
    pub dst: u64,
    /// Source address.
    pub src: u64,
    /// Number of bytes.
    pub size: u64,
    /// Bytes that the destination has beyond the size; saturated to 32 bits.
    pub room: i32,
}

/// The fourth word of a [`Layout::More`](crate::record::slot::Layout::More) slot.
#[derive(Clone, Copy)]
pub struct Extent(pub u64);

impl Extent {
    /// Number of slots, flags and scope in one word.
    #[inline(always)]
    pub const fn new(slots: u64, flags: u16, scope: u32) -> Self {
        Self(slots & 0xffff | (flags as u64) << 16 | (scope as u64) << 32)
    }

    pub(super) const fn slots(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// Findings (one bit a rule) and `extent` as words of a [`Layout::More`](crate::record::slot::Layout::More) slot, each with its index: the writer ors them in.
pub const fn found_words(findings: u128, extent: Extent) -> [(usize, u64); 3] {
    [(1, findings as u64), (2, (findings >> 64) as u64), (3, extent.0)]
}

/// The fifth word of a [`Layout::Batch`](crate::record::slot::Layout::Batch) slot: what was read of the arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Follows {
    /// Number of items in the slots behind.
    pub items: u32,
    /// Number of attributes in the slots behind.
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

/// Number of slots of a batch record: three for the call and the summary, attributes and items two in a slot.
pub const fn batch_slots(attributes: u64, items: u64) -> u64 {
    3 + attributes.div_ceil(2) + items.div_ceil(2)
}

/// Number of attributes of a batch that are recorded at most.
pub const ATTRIBUTES: u64 = 8;
