//! The storage of a ring: how much of it there is, and how its writer changes that.

use crate::record::slot::Slot;
use crate::ring::layout::Control;

/// Which slots of a ring are used, in one word: a signal handler sees both values as they belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Number of slots that have storage.
    pub stored: u32,
    /// Index behind the last slot that a lap uses; at most `stored`.
    pub lap_end: u32,
}

impl Bounds {
    /// All of `stored` slots are used.
    pub const fn of(stored: u32) -> Self {
        Self { stored, lap_end: stored }
    }

    /// As a word.
    pub const fn word(self) -> u64 {
        (self.lap_end as u64) << 32 | self.stored as u64
    }

    /// From a word.
    pub const fn from_word(word: u64) -> Self {
        Self { stored: word as u32, lap_end: (word >> 32) as u32 }
    }
}

/// How quickly a lap was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A larger ring would wake the drain less often.
    Quick,
    /// As the ring was made for.
    Steady,
    /// A smaller ring would do.
    Slow,
}

/// The storage of a ring, as far as its writer can change it.
pub trait Storage {
    /// Gives storage to `slots`, up to index `to`, which lie behind those with storage; `false` if there is none. May be
    /// called twice for the same slots.
    fn extend(&self, control: &Control, slots: &[Slot], to: u32) -> bool;
    /// Takes the storage of slots that are not used any more.
    fn release(&self, slots: &[Slot]);
    /// Does some work with the thread's signals blocked.
    fn with_signals_blocked(&self, work: &dyn Fn());
    /// What a lap that took this many ticks means.
    fn pace(&self, ticks: u64) -> Pace;
    /// The number of slots below which a ring does not shrink.
    fn smallest(&self) -> u32;
    /// The number of slots up to which a ring grows only because its laps are quick.
    fn quick(&self) -> u32;
}

/// Storage that does not change.
pub struct FixedStorage;

impl Storage for FixedStorage {
    fn extend(&self, _: &Control, _: &[Slot], _: u32) -> bool {
        false
    }

    fn release(&self, _: &[Slot]) {}

    fn with_signals_blocked(&self, _: &dyn Fn()) {}

    fn pace(&self, _: u64) -> Pace {
        Pace::Steady
    }

    fn smallest(&self) -> u32 {
        u32::MAX
    }

    fn quick(&self) -> u32 {
        0
    }
}

/// What a claim needs.
#[derive(Clone, Copy)]
pub struct Need {
    /// Number of slots.
    pub slots: u64,
    /// The present time, in ticks.
    pub now: u64,
    /// Number of slots that it leaves free for calls that are tracked.
    pub reserve: u64,
}

/// Rings that are larger than this grow by as much, smaller ones to twice their size.
const STEP: u32 = 4096;

/// The size to which a ring of `stored` slots grows, if it may have `most`.
pub const fn next_size(stored: u32, most: u32) -> u32 {
    let more = if stored < STEP { stored.saturating_mul(2) } else { stored.saturating_add(STEP) };
    if more < most { more } else { most }
}
