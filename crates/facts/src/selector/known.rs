//! What a selector is compared with: what is known of a call, and the names of streams, memory and modules.

use crate::call::direction::Direction;
use crate::call::functions::Function;
use crate::call::{Amount, Call, Ends};

/// What is known of a call that a selector is matched against. A word does not match a value that is not known.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The function.
    pub function: Function,
    /// The kind; a fill or a batch has none.
    pub kind: Option<i32>,
    /// Its direction.
    pub direction: Direction,
    /// Number of bytes that it moves.
    pub bytes: Option<u64>,
    /// The code that it returned; `None` before it returns.
    pub code: Option<i32>,
    /// The stream of an asynchronous call; 0 is the default one.
    pub stream: Option<u64>,
    /// Destination and source; for a batch those of each item, as far as they are known.
    pub ends: &'a [Ends],
    /// Its call site: the return address.
    pub site: u64,
}

impl Known<'_> {
    /// What the arguments say without following a pointer: for a batch neither direction nor bytes.
    pub fn new(function: Function, call: &Call, site: u64) -> Self {
        let kind = call.kind().map(|kind| kind.0);
        Self {
            function,
            kind,
            direction: kind.map_or(Direction::Unknown, Direction::of_kind),
            bytes: match call.amount() {
                Amount::Bytes(bytes) => Some(bytes),
                Amount::Sum { .. } => None,
            },
            code: None,
            stream: call.stream.map(|stream| stream as u64),
            ends: &[],
            site,
        }
    }
}

/// Lookup of names. Each function passes the names that it finds to `is`, and returns whether `is` accepted one.
pub trait Names {
    /// The name of a stream.
    fn stream(&self, stream: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool;
    /// The names of the memory that an address lies in.
    fn buffer(&self, address: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool;
    /// The file name of the module that an address lies in, and the offset in it.
    fn module(&self, address: u64, is: &mut dyn FnMut(&[u8], u64) -> bool) -> bool;
}

/// A lookup that finds no names.
pub struct Nameless;

impl Names for Nameless {
    fn stream(&self, _: u64, _: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }
    fn buffer(&self, _: u64, _: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }
    fn module(&self, _: u64, _: &mut dyn FnMut(&[u8], u64) -> bool) -> bool {
        false
    }
}
