//! The input: the calls of a process and the names it gave.

use aclshim_facts::Function;

/// The calls of one process, in the order in which each thread made them.
#[derive(Clone, Debug, Default)]
pub struct GoldenRun {
    /// The calls. Those of one thread are in order; the order between threads does not matter.
    pub calls: Vec<Call>,
    /// Names that the program has given, in the order in which it gave them.
    pub names: Vec<Name>,
    /// Which thread is the main one, by [`Call::thread`].
    pub main: Option<u64>,
}

/// An outermost call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The thread that made it: any number that identifies a thread.
    pub thread: u64,
    /// Time of its begin, on the clock of [`Name::at`].
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
    /// The call had not returned when the run was read.
    UnderWay,
    /// An exception or a jump passed through it.
    Left,
}

impl Call {
    /// Whether the vendor accepted it: then its ranges are memory, and not only arguments.
    pub(crate) fn is_accepted(&self) -> bool {
        self.end == End::Returned(0)
    }
}

/// An attribute of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The first item that it applies to.
    pub first: u64,
    /// Destination: the vendor's type of location and its id.
    pub dst: (i32, u32),
    /// Source: the vendor's type of location and its id.
    pub src: (i32, u32),
}

/// An item of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Destination address.
    pub dst: u64,
    /// Room at the destination, in bytes.
    pub dst_max: u64,
    /// Source address.
    pub src: u64,
    /// Number of bytes.
    pub size: u64,
}

/// A name that the program has given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Time on the clock of [`Call::at`]: the name applies to calls that began then or later.
    pub at: u64,
    /// The object that has the name.
    pub named: NamedObject,
    /// The name; an empty one removes an earlier one.
    pub name: String,
}

/// An object that can have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedObject {
    /// A range of memory.
    Buffer {
        /// Its first address.
        begin: u64,
        /// Its length in bytes.
        size: u64,
    },
    /// A stream, by its handle.
    Stream(u64),
}
