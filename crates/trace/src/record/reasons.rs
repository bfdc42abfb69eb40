//! Reasons for the slow path, as the bits of one word.

use crate::record::head::{Head, KIND_MAX, NUMBER};

/// Reasons why a call cannot be recorded by plain stores into one slot. Any bit that is set is a reason; they share a
/// word so that one test covers all of them.
#[derive(Clone, Copy)]
pub struct SlowPathReasons(u64);

impl SlowPathReasons {
    /// The call took the slow path from its begin.
    pub const LONG_CALL: Self = Self(1);

    /// Slots were claimed behind the record, up to number `next`: the drain may be about to pass it by.
    #[inline(always)]
    pub const fn claimed_behind(record: Head, next: u64) -> Self {
        // What stands below the number is less than one of it, and not 0.
        Self((next << NUMBER).wrapping_sub(record.0) >> NUMBER)
    }

    /// The slot shows another head: the drain has passed the record by, or another record stands there.
    #[inline(always)]
    pub(super) const fn head_changed(shown: Head, begun: Head) -> Self {
        Self(shown.0 ^ begun.0)
    }

    /// The duration may not fit into 32 bits; the largest value stands for one that does not.
    #[inline(always)]
    pub(super) const fn long_duration(duration: u64) -> Self {
        Self(duration >> 31)
    }

    /// The room at the destination is not the size: one slot holds only one of them.
    #[inline(always)]
    pub const fn room_differs(dst_max: usize, count: usize) -> Self {
        Self((dst_max ^ count) as u64)
    }

    /// The kind of copy does not fit into a head.
    #[inline(always)]
    pub const fn large_kind(kind: u32) -> Self {
        Self((kind & !KIND_MAX) as u64)
    }

    /// The bits of a gate that is closed.
    #[inline(always)]
    pub const fn gate(bits: usize) -> Self {
        Self(bits as u64)
    }

    /// The reasons of both sets.
    #[inline(always)]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is no reason.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
