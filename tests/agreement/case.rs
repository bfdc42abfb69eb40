//! A generated call as a description: which function, where its pointers point, and in what situation it is made.
//!
//! It holds no address, so that a case means the same in every process, and a smaller one can be made from it.

mod change;

use aclshim_facts::Function;
pub use change::{Flat, Mutation, Sides};

/// Somewhere a pointer can point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    Null,
    /// Pageable memory of the program.
    Pageable,
    /// Pageable memory that ends where the unreachable begins.
    Edge,
    /// Pinned memory of the runtime.
    Pinned,
    /// Memory of the program that it registered.
    Registered,
    Managed,
    /// Memory of device 0.
    Device0,
    /// Memory of device 1.
    Device1,
    /// The registered memory as device 0 sees it.
    Mirror,
    /// Device memory that was given back.
    Freed,
    /// An address of the devices' window that was never given out.
    Window,
    /// A host address behind which there is nothing.
    Unreachable,
    /// Device memory that holds addresses of device memory, for the copies by offset.
    Cells,
    /// Device memory for descriptors.
    Sheet,
    /// A host symbol that names a device variable.
    Symbol,
    /// A host address that names none.
    NoSymbol,
    /// Where the library may write an answer.
    Answer,
}

/// The spots between which data is copied.
pub const DATA: [Spot; 8] = [
    Spot::Device0,
    Spot::Device1,
    Spot::Pageable,
    Spot::Pinned,
    Spot::Registered,
    Spot::Managed,
    Spot::Edge,
    Spot::Mirror,
];

/// Every spot that is no special one.
pub const ANYWHERE: [Spot; 12] = [
    Spot::Null,
    Spot::Pageable,
    Spot::Edge,
    Spot::Pinned,
    Spot::Registered,
    Spot::Managed,
    Spot::Device0,
    Spot::Device1,
    Spot::Mirror,
    Spot::Freed,
    Spot::Window,
    Spot::Unreachable,
];

/// A stream argument, seen from the context that the call is made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// NULL.
    Null,
    /// The handle of the context's default stream.
    Default,
    First,
    Second,
    /// A stream of the next context.
    Foreign,
    Destroyed,
    /// Readable memory that is no stream.
    Garbage,
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    /// A size that fits where the pointers of the call point, by its number.
    Fits(u16),
    /// What fits, plus or minus this.
    Room(i8),
    Pointer(Spot, u16),
    Stream(Stream),
    /// The array of the batch that belongs here.
    Array,
    /// As many as the batch has items.
    Items,
    /// As many as the batch has attributes.
    Attributes,
}

/// One item of a batch.
#[derive(Clone, Debug)]
pub struct Item {
    pub dst: Value,
    pub dst_max: Value,
    pub src: Value,
    pub size: Value,
}

/// What an attribute of a batch says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attribute {
    pub dst_type: i32,
    pub dst_id: u32,
    pub src_type: i32,
    pub src_id: u32,
    /// The reserved byte at a position has a value.
    pub reserved: Option<(u8, u8)>,
}

/// The lists of a batch: groups of items, each with its attribute.
#[derive(Clone, Debug)]
pub struct Lists {
    pub groups: Vec<(Attribute, Vec<Item>)>,
    /// The last item is repeated until there are this many.
    pub at_least: usize,
}

/// The context of the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    None,
    /// The default one of device 0.
    Zero,
    /// Another one of device 0.
    Another,
    /// The default one of device 1.
    One,
}

impl Context {
    /// Those that exist, in the order of [`Context::number`].
    pub const ALL: [Self; 3] = [Self::Zero, Self::Another, Self::One];

    /// Its position among those that exist. A thread without one looks at streams as from the first.
    pub fn number(self) -> usize {
        match self {
            Self::None | Self::Zero => 0,
            Self::Another => 1,
            Self::One => 2,
        }
    }

    /// The context whose streams are foreign ones here.
    pub fn next(self) -> Self {
        Self::ALL[(self.number() + 1) % Self::ALL.len()]
    }
}

/// A capture under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// `First` or `Foreign`.
    pub stream: Stream,
    /// 0 global, 1 thread local, 2 relaxed.
    pub mode: i32,
    pub by: Who,
}

/// Who began a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    ThisThread,
    AnotherThread,
}

/// In what situation a call is made.
#[derive(Clone, Debug)]
pub struct Situation {
    pub context: Context,
    pub captures: Vec<Capture>,
    /// The mode that the thread has exchanged to.
    pub exchanged: i32,
}

/// A good call and what is changed of it.
#[derive(Clone, Debug)]
pub struct Case {
    pub function: Function,
    pub arguments: Vec<Value>,
    pub lists: Option<Lists>,
    pub situation: Situation,
    pub mutations: Vec<Mutation>,
}
