//! The layout of a process's count file, version 0: a header, then one block of counters a thread.
//!
//! The file lives in memory (tmpfs) and is mapped by its process; every store is at once in the
//! file, so nothing has to be flushed and SIGKILL loses nothing. A block belongs to one thread
//! at a time, which alone adds to it; block 0 serves all threads that found no free one.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// The first eight bytes of a finished file; written last.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ACLSHIM\0");
/// The version of this layout.
pub const VERSION: u32 = 0;
/// How many functions there is room for.
pub const FUNCTIONS: usize = 32;
/// The room for a function's name, with its NUL.
pub const NAME: usize = 40;
/// How many blocks: the shared one and one for each of so many living threads.
pub const BLOCKS: usize = 17;
/// The owner of the shared block.
pub const SHARED: u32 = u32::MAX;
/// How file names begin and end; the process id and the time of birth stand between.
pub const PREFIX: &str = "aclshim-";
/// See [`PREFIX`].
pub const SUFFIX: &str = ".ring";

/// The whole file.
#[repr(C)]
pub struct Page {
    /// Who this is.
    pub header: Header,
    /// What was counted.
    pub blocks: [Block; BLOCKS],
}

/// Who the process is.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: u32,
    /// The process.
    pub pid: u32,
    /// When the file was made, in nanoseconds since 1970.
    pub born_ns: u64,
    /// Calls that were forwarded and could not be counted in a block.
    pub not_recorded: AtomicU64,
    /// How many of `names` are used.
    pub functions: u32,
    /// Keeps what follows in place.
    pub reserved: u32,
    /// The functions' names in the order of the counters.
    pub names: [[u8; NAME]; FUNCTIONS],
    /// The directory that this process's output goes to (`ACLSHIM_DIR`), absolute.
    pub dir: [u8; 4096],
}

/// The counters of one thread, or of a row of threads that came after each other.
#[repr(C, align(64))]
pub struct Block {
    /// The thread's id; 0 for a block that never had one.
    pub owner: AtomicU32,
    /// 1 while an outermost call of the owner is under way.
    pub open: AtomicU32,
    /// Keeps each function's counters within one cache line.
    pub reserved: [u64; 3],
    /// One for each function.
    pub counters: [Counter; FUNCTIONS],
}

/// What is counted of one function.
#[repr(C, align(32))]
pub struct Counter {
    /// Outermost calls begun.
    pub calls: AtomicU64,
    /// Calls that the vendor made itself inside another.
    pub nested: AtomicU64,
    /// Outermost calls that returned something else than 0.
    pub errors: AtomicU64,
    /// Bytes of outermost calls that returned 0.
    pub bytes: AtomicU64,
}
