//! The functions that programs call in the vendor's place, and in libdl's.

use crate::boot;

pub mod entry;
mod libdl;
mod lookup;
pub mod observer;
mod slow_path;

#[ctor::ctor(unsafe)]
fn loaded() {
    boot::load(&entry::TABLE);
}
