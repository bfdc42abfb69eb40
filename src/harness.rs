//! The one symbol that test programs may look for.

use crate::boot::{Standing, standing};
use core::ffi::c_int;

/// What the shim offers to the program that it is loaded into, found through the weak symbol
/// `aclshim_harness`. Members are only ever added at the end; `size` tells how many there are.
#[repr(C)]
pub struct aclshim_harness {
    /// Size of this structure in bytes, as the loaded shim knows it.
    pub size: u32,
    /// Version of the interface: 1.
    pub version: u32,
    /// Returns 1 if this process's copy calls are seen and counted, 0 if the shim was told to
    /// stay out of the way (`ACLSHIM_MODE=off`). May be called from any thread at any time.
    pub active: Option<extern "C" fn() -> c_int>,
}

/// The table.
#[unsafe(export_name = "aclshim_harness")]
pub static HARNESS: aclshim_harness =
    aclshim_harness { size: size_of::<aclshim_harness>() as u32, version: 1, active: Some(active) };

extern "C" fn active() -> c_int {
    crate::edge::kept(|| c_int::from(standing() == Standing::Active)).unwrap_or(0)
}
