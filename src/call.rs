//! The functions that programs call in the vendor's place.

pub mod entry;
