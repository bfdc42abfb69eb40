//! Device variables: how a test makes one, since there is no device program here that could bring it.

use crate::edge::argument::{exports, positive, required};
use crate::state::world::{self, Variable};
use std::collections::BTreeMap;
use std::ffi::c_void;

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
