//! What is known of the world that a call is made in. What is not known is `None` or `Unknown`, and a rule that needs
//! it says nothing.

use crate::vendor::product::{Product, Version};
use core::cell::Cell;

/// The world of one call.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The product whose runtime serves the call.
    pub product: Option<&'static Product>,
    /// Where the program runs.
    pub run_mode: Option<RunMode>,
    /// The CANN release.
    pub cann: Option<Version>,
    /// Whether the driver can tell pageable memory (`FEATURE_SVM_GET_USER_MALLOC_ATTR`).
    pub tells_pageable: Option<bool>,
    /// Whether any device has been opened in this process: before, the driver refuses to look at a pointer.
    pub is_open: Option<bool>,
    /// Whether the calling thread has a context.
    pub has_context: Option<bool>,
    /// Whether the devices of a copy between two of them have been given access to each other.
    pub has_peer_access: Option<bool>,
    /// Whether captures under way forbid the calling thread synchronous work in its context.
    pub is_capture_in_the_way: Option<bool>,
    /// The stream argument.
    pub stream: Stream,
    /// Where pointers point.
    pub memory: &'a dyn Memory,
}

/// Where the program runs: what the vendor calls the Ascend EP form and the Ascend RC form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// On a host with the device as its end point (Ascend EP).
    EndPoint = 1,
    /// On the device's own processor (Ascend RC, and products whose control CPU is open).
    RootComplex = 2,
}

impl RunMode {
    /// The run mode with this number in a ring header, which has 0 where it is not known.
    pub fn from_number(number: u32) -> Option<Self> {
        [RunMode::EndPoint, RunMode::RootComplex].into_iter().find(|mode| *mode as u32 == number)
    }
}

/// What a stream argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Not known.
    Unknown,
    /// NULL: the default stream of the thread's context.
    Default,
    /// A stream of the thread's context.
    Own {
        /// Its tasks are being captured into a model.
        is_captured: bool,
    },
    /// A stream of another context.
    Foreign {
        /// Its tasks are being captured into a model.
        is_captured: bool,
    },
    /// Not a stream, or not any more.
    Invalid,
}

/// Where a pointer points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Not known.
    Unknown,
    /// Memory of this device.
    Device(u32),
    /// Pinned or registered host memory.
    Pinned,
    /// Host memory that the runtime does not know of.
    Pageable,
    /// Managed memory.
    Managed,
    /// An address of the devices' window where nothing is allocated.
    Unallocated,
}

/// The memory that a pointer points to, and the number of bytes from there to the end of its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it points.
    pub place: Place,
    /// Bytes to the end, if that is known.
    pub room: Option<usize>,
}

/// A device variable named by a host symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// Not known.
    Unknown,
    /// No variable.
    None,
    /// Its bytes, and its address on the device of the thread.
    Variable {
        /// In bytes.
        size: usize,
        /// Its first byte.
        address: Option<usize>,
    },
}

/// Answers where pointers point.
pub trait Memory {
    /// Where an address points.
    fn region(&self, address: usize) -> Region;
    /// What a host symbol names.
    fn symbol(&self, address: usize) -> Symbol;
    /// Whether it may ever answer anything but `Unknown` for a region; a batch of many items is not asked about in
    /// vain.
    fn is_tracked(&self) -> bool {
        true
    }
}

/// Memory of which nothing is known: that of the shim, which does not track memory.
pub struct Untracked;

impl Memory for Untracked {
    fn region(&self, _: usize) -> Region {
        Region { place: Place::Unknown, room: None }
    }

    fn symbol(&self, _: usize) -> Symbol {
        Symbol::Unknown
    }

    fn is_tracked(&self) -> bool {
        false
    }
}

/// Caches the last two answers: the rules of one call ask for two pointers again and again.
pub struct Cached<'a> {
    memory: &'a dyn Memory,
    last: [Cell<Option<(usize, Region)>>; 2],
}

impl<'a> Cached<'a> {
    /// A cache in front of `memory`.
    pub fn new(memory: &'a dyn Memory) -> Self {
        Self { memory, last: [const { Cell::new(None) }; 2] }
    }
}

impl Memory for Cached<'_> {
    fn region(&self, address: usize) -> Region {
        let [first, second] = &self.last;
        match (first.get(), second.get()) {
            (Some((at, region)), _) | (_, Some((at, region))) if at == address => region,
            (newer, _) => {
                let region = self.memory.region(address);
                second.set(newer);
                first.set(Some((address, region)));
                region
            }
        }
    }

    fn symbol(&self, address: usize) -> Symbol {
        self.memory.symbol(address)
    }

    fn is_tracked(&self) -> bool {
        self.memory.is_tracked()
    }
}

impl World<'static> {
    /// A world of which nothing is known.
    pub const UNKNOWN: Self = Self {
        product: None,
        run_mode: None,
        cann: None,
        tells_pageable: None,
        is_open: None,
        has_context: None,
        has_peer_access: None,
        is_capture_in_the_way: None,
        stream: Stream::Unknown,
        memory: &Untracked,
    };
}
