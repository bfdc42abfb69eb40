//! Classes of effects that a call has: what a reader of a loss must assume.

/// A set of effect classes, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct EffectClasses(pub u64);

impl EffectClasses {
    /// A copy or a fill.
    pub const COPY: Self = Self(1);
    /// Allocates, frees, registers or maps memory.
    pub const MEMORY: Self = Self(2);
    /// Changes a device or a context.
    pub const CONTEXT: Self = Self(4);
    /// Creates, destroys or changes a stream.
    pub const STREAM: Self = Self(8);
    /// Orders work: synchronises, records an event, waits for one.
    pub const ORDER: Self = Self(16);
    /// Concerns the capture of a stream.
    pub const CAPTURE: Self = Self(32);

    /// The classes of both sets.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all classes of `other` are in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether there is no class.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The classes of the calls that a [`Note::Lost`](crate::record::slot::Note::Lost) counts. Notes of version 1 have 0
    /// there: copies and fills were all that was recorded.
    pub(super) const fn of_note(word: u64, calls: u64) -> Self {
        if word == 0 && calls > 0 { Self::COPY } else { Self(word) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_what_it_was_made_of() {
        let both = EffectClasses::COPY.union(EffectClasses::STREAM);
        assert!(both.contains(EffectClasses::COPY) && both.contains(EffectClasses::STREAM) && both.contains(both));
        assert!(!both.contains(EffectClasses::MEMORY) && !EffectClasses::COPY.contains(both));
        assert!(EffectClasses::default().is_empty() && !both.is_empty());
    }

    #[test]
    fn a_note_without_classes_has_lost_copies_if_it_has_lost_calls() {
        assert_eq!(EffectClasses::of_note(0, 3), EffectClasses::COPY);
        assert_eq!(EffectClasses::of_note(0, 0), EffectClasses::default());
        assert_eq!(EffectClasses::of_note(2, 3), EffectClasses::MEMORY);
    }
}
