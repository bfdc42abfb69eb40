//! Device variables: how a test makes one, since there is no device program here that could bring it.

use crate::argument::{exports, positive, required};
use crate::world;
use std::collections::BTreeMap;
use std::ffi::c_void;

/// A variable that exists once on each device, from the first time it is used there.
pub struct Variable {
    /// In bytes.
    pub size: usize,
    /// By device: its address.
    pub at: BTreeMap<u32, usize>,
}

exports! {
    /// Makes the host address `symbol` stand for a device variable of `size` bytes, zero at first.
    fn ascendclSimRegisterSymbol(symbol: *const c_void, size: usize) => {
        let key = required(symbol, "symbol")?;
        positive(size, "size")?;
        let variable = Variable { size, at: BTreeMap::new() };
        world::lock().variables.insert(key, variable);
        Ok(())
    };
}

/// The memory of `device` is gone, and its variables with it.
pub fn forget(device: u32) {
    for variable in world::lock().variables.values_mut() {
        variable.at.remove(&device);
    }
}
