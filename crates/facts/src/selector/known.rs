//! What a selector is compared with: what is known of a call, and the names of streams, memory and modules.

use crate::call::direction::Direction;
use crate::call::functions::Function;
use crate::call::{Amount, Call, Ends};

/// What is known of a call when it is asked whether it is meant. What is not known is never meant by a word that speaks
/// of it.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The function.
    pub function: Function,
    /// The kind; a fill or a batch has none.
    pub kind: Option<i32>,
    /// Which way its bytes go.
    pub direction: Direction,
    /// How many bytes it moves.
    pub bytes: Option<u64>,
    /// What it returned, if it has.
    pub code: Option<i32>,
    /// The stream of an asynchronous call; 0 is the default one.
    pub stream: Option<u64>,
    /// Where it goes to and comes from: of a batch each item, as far as they are known.
    pub ends: &'a [Ends],
    /// The address that it returns to.
    pub site: u64,
}

impl Known<'_> {
    /// What the arguments tell without following a pointer: of a batch neither the direction nor the bytes.
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

/// Who knows the names of things. Each hands what it knows to `is`, and answers whether that has said yes.
pub trait Names {
    /// The name of a stream.
    fn stream(&self, stream: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool;
    /// The names of the memory that an address lies in.
    fn buffer(&self, address: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool;
    /// The file name of the module that an address lies in, and the way from its begin.
    fn module(&self, address: u64, is: &mut dyn FnMut(&[u8], u64) -> bool) -> bool;
}

/// Nothing has a name.
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
