//! The first word of a slot: state, meaning of the other words, function, kind and number.

/// State of a record: the two lowest bits of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Never written, or being written.
    Free,
    /// The call has not returned.
    InFlight,
    /// The call has returned.
    Done,
    /// The drain went past the record while its call was in flight. The end of the call is a record of its own.
    Passed,
}

/// Meaning of the words behind the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Layout {
    /// A copy with `destMax == count`: begin, end, call site, dst, src, count, stream. The kind is in the head.
    Linear = 0,
    /// A fill with `maxCount == count`: begin, end, call site, dst, value, count, stream.
    Fill = 1,
    /// The first slot of a longer record: begin, end, call site, arguments 0 to 3.
    Long = 2,
    /// Its second slot: findings (two words), how many slots and flags, arguments 4 to 7.
    More = 3,
    /// The third slot of a batch: total, smallest and largest size, what follows, argument 8 and 9.
    Batch = 4,
    /// Attributes of a batch, two in a slot: first item, destination and source, each a word.
    Attributes = 5,
    /// Items of a batch, two in a slot: dst, src, size, each a word; the last word is the room left at each.
    Items = 6,
    /// No call: the function field is a [`Note`].
    Note = 7,
    /// A tracked call: begin, end, call site, four values. The function's row gives them their meaning: the first
    /// arguments and, once the call has returned, values that the vendor returned through pointers.
    Tracked = 8,
    /// One slot of a layout that this version does not know.
    Unknown = 15,
}

/// Kind of a slot that is not a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Note {
    /// From here on the ring is a thread's: ticks, id, and 16 bytes of its name.
    Thread = 0,
    /// Calls were not recorded: ticks of the first, ticks now, how many, how many annotations, and the
    /// [`EffectClasses`](crate::record::EffectClasses) of the calls.
    Lost = 1,
    /// The end of a call whose record was passed by, or whose duration did not fit: ticks of its
    /// begin, its number, its duration, its code.
    End = 2,
    /// A finding about a call whose record came before: see [`crate::record::RecordedFinding::words`].
    Finding = 3,
    /// More of the stack of a call whose record came before: its number, and six return addresses at most.
    Stack = 4,
    /// A scope begins. This note and those below are annotations: see [`crate::record::annotation`].
    Scope = 5,
    /// A scope ends.
    ScopeEnd = 6,
    /// A mark.
    Mark = 7,
    /// A name for a stream or a buffer.
    Name = 8,
    /// More of the text of the note before: 56 bytes.
    Text = 9,
    /// The writer continues at another number: ticks, and that number. The slots between are not written.
    Skip = 10,
}

/// The head of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head(pub u64);

const STATE: u64 = 0b11;
const LAYOUT: u32 = 2;
const LAYOUTS: u64 = 15;
const NESTED: u64 = 1 << 6;
const KIND: u32 = 8;
const FUNCTION: u32 = 12;
/// The largest index of a function that a head has room for.
pub const FUNCTION_MAX: u16 = 1023;
/// Position of the number. Bits 7, 22 and 23 are 0.
pub(super) const NUMBER: u32 = 24;
/// The largest kind that a head has room for.
pub const KIND_MAX: u32 = 15;
/// Values of the state bits. A head in flight becomes done by an addition of 1.
const IN_FLIGHT: u64 = 1;
const DONE: u64 = 2;
const PASSED: u64 = 3;

impl Head {
    /// The head of a call that begins; `function` is at most [`FUNCTION_MAX`], `kind` at most [`KIND_MAX`].
    #[inline(always)]
    pub const fn in_flight(number: u64, layout: Layout, function: u16, kind: u32) -> Self {
        // Added, not or-ed: what is known when this is compiled is then one number, added with the rest.
        let known = (function as u64) << FUNCTION | (layout as u64) << LAYOUT | IN_FLIGHT;
        Self((number << NUMBER) + ((kind as u64) << KIND) + known)
    }

    /// This head, marked as a call that the vendor makes inside another.
    pub const fn nested(self) -> Self {
        Self(self.0 | NESTED)
    }

    /// The head of a slot that is complete at once.
    #[inline(always)]
    pub const fn done(number: u64, layout: Layout, function: u16) -> Self {
        Self::in_flight(number, layout, function, 0).ended()
    }

    /// This head with the state "done"; requires the state "in flight".
    #[inline(always)]
    pub const fn ended(self) -> Self {
        Self(self.0 + (DONE - IN_FLIGHT))
    }

    /// This head with the state "passed by".
    pub const fn passed(self) -> Self {
        Self(self.0 & !STATE | PASSED)
    }

    /// State of the record.
    pub const fn state(self) -> State {
        match self.0 & STATE {
            0 => State::Free,
            IN_FLIGHT => State::InFlight,
            DONE => State::Done,
            _ => State::Passed,
        }
    }

    /// Meaning of the other words.
    pub const fn layout(self) -> Layout {
        match self.0 >> LAYOUT & LAYOUTS {
            0 => Layout::Linear,
            1 => Layout::Fill,
            2 => Layout::Long,
            3 => Layout::More,
            4 => Layout::Batch,
            5 => Layout::Attributes,
            6 => Layout::Items,
            7 => Layout::Note,
            8 => Layout::Tracked,
            _ => Layout::Unknown,
        }
    }

    /// Index of the function, or number of the [`Note`].
    pub const fn function(self) -> u16 {
        (self.0 >> FUNCTION) as u16 & FUNCTION_MAX
    }

    /// The kind of copy of a [`Layout::Linear`] record.
    pub const fn kind(self) -> u8 {
        (self.0 >> KIND) as u8 & KIND_MAX as u8
    }

    /// Whether the slot alone is the exact record of an outermost call: one slot, done, not nested, nothing to follow.
    /// One test of its bits.
    #[inline(always)]
    pub const fn is_exact(self) -> bool {
        const { assert!(Layout::Linear as u64 == 0 && Layout::Fill as u64 == 1) };
        self.0 & (STATE | (LAYOUTS - 1) << LAYOUT | NESTED) == DONE
    }

    /// Whether the vendor made the call inside another.
    pub const fn is_nested(self) -> bool {
        self.0 & NESTED != 0
    }

    /// Whether a copy or fill begins with this slot that the program itself has made, not the vendor inside another one.
    pub fn is_outermost_call(self) -> bool {
        matches!(self.layout(), Layout::Linear | Layout::Fill | Layout::Long) && !self.is_nested()
    }

    /// The number, completed from its 40 bits to the one nearest to `near`.
    pub const fn number(self, near: u64) -> u64 {
        let difference = (self.0 >> NUMBER).wrapping_sub(near) << NUMBER;
        near.wrapping_add((difference as i64 >> NUMBER) as u64)
    }
}
