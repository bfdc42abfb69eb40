//! What goes in.

use aclshim_facts::Function;

/// The calls of one process, in the order in which each thread made them.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The calls. Those of one thread are in their order; how threads mix does not matter.
    pub calls: Vec<Call>,
    /// Names that the program has given, in the order in which it gave them.
    pub names: Vec<Name>,
    /// Which thread is the main one, by [`Call::thread`].
    pub main: Option<u64>,
}

/// An outermost call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Who made it: any number that tells threads apart.
    pub thread: u64,
    /// When it began, on the clock of [`Name::at`].
    pub at: u64,
    /// The function.
    pub function: Function,
    /// Its arguments as words, in the order of the function's row.
    pub arguments: [u64; 10],
    /// How it ended.
    pub end: End,
    /// [`MARK_INJECTED`], [`MARK_REFUSED`].
    pub marks: u16,
    /// The attributes of a batch, as far as they are known.
    pub attributes: Vec<Attribute>,
    /// The items of a batch, as far as they are known.
    pub items: Vec<Item>,
}

/// The mark of a call that was made to fail, or delayed.
pub const MARK_INJECTED: u16 = 1;
/// The mark of a call that was refused by a rule.
pub const MARK_REFUSED: u16 = 2;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With this code.
    Returned(i32),
    /// It had not, when the run was looked at.
    UnderWay,
    /// An exception or a jump passed through it.
    Left,
}

impl Call {
    /// Whether the vendor took it: then its bytes are memory, and not only what somebody said.
    pub(crate) fn is_accepted(&self) -> bool {
        self.end == End::Returned(0)
    }
}

/// An attribute of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The first item that it applies to.
    pub first: u64,
    /// Where to: the vendor's type of place and its id.
    pub dst: (i32, u32),
    /// Where from.
    pub src: (i32, u32),
}

/// An item of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Where to.
    pub dst: u64,
    /// The room there.
    pub dst_max: u64,
    /// Where from.
    pub src: u64,
    /// How many bytes.
    pub size: u64,
}

/// A name that the program has given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// When, on the clock of [`Call::at`]: it holds for calls that began at this moment or later.
    pub at: u64,
    /// What has the name.
    pub named: Named,
    /// The name; an empty one takes an earlier one away.
    pub name: String,
}

/// What can have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Memory.
    Buffer {
        /// Where it begins.
        begin: u64,
        /// How many bytes it has.
        size: u64,
    },
    /// A stream, by its handle.
    Stream(u64),
}
