//! A record: one or several [slots](slot), and what they say once they are decoded.

pub mod annotation;
mod call;
mod decode;
mod effects;
mod head;
pub mod reasons;
pub mod slot;

pub use call::{
    ARGUMENTS, ATTRIBUTES, Attribute, Batch, Call, End, Entry, Extent, FRAMES, Follows, INJECTED, Item, REFUSED,
    RecordedFinding, TrackedCall, VALUES, batch_slots, found_words,
};
pub use decode::{decode, one_slot, slots};
pub use effects::EffectClasses;
