//! Calls that break a rule and calls that come near, each with the world that it is made in: as data, so that tests
//! run them and documents print them.

use crate::call::functions::Function;
use crate::rules::subject::{Arrays, Subject};
use crate::rules::world::{Memory, Place, Region, RunMode, Stream, Symbol, World};
use crate::vendor::abi::aclrtMemcpyBatchAttr;
use crate::vendor::product::{Product, Version};

/// The cases of a rule, in tests and documents. The shim leaves them out: every process has to load it.
macro_rules! cases {
    ($($case:tt)*) => {{
        const ALL: &[$crate::rules::case::Case] = &[$($case)*];
        if cfg!(feature = "cases") { ALL } else { &[] }
    }};
}
pub(crate) use cases;

/// A call in its world.
pub struct Case {
    /// Whether it breaks the rule that it belongs to.
    pub breaks: bool,
    /// What it shows.
    pub says: &'static str,
    /// The function called.
    pub function: Function,
    /// Its arguments as words, in order.
    pub words: &'static [u64],
    /// The world.
    pub scene: Scene,
}

/// The world of a case, over the memory of [`Map`].
#[derive(Clone, Copy)]
#[allow(missing_docs)] // as in `World` and `Arrays`
pub struct Scene {
    pub soc: Option<&'static str>,
    pub run_mode: Option<RunMode>,
    pub cann: Option<Version>,
    pub tells_pageable: Option<bool>,
    pub is_open: Option<bool>,
    pub has_context: Option<bool>,
    pub has_peer_access: Option<bool>,
    pub is_capture_in_the_way: Option<bool>,
    pub stream: Stream,
    pub dsts: &'static [u64],
    pub dst_maxs: &'static [usize],
    pub srcs: &'static [u64],
    pub sizes: &'static [usize],
    pub attrs: &'static [aclrtMemcpyBatchAttr],
    pub attr_indexes: &'static [usize],
}

impl Scene {
    /// An Atlas A2 at the host's side, CANN 9.1, and nothing wrong.
    pub const PLAIN: Self = Self {
        soc: Some("Ascend910B1"),
        run_mode: Some(RunMode::EndPoint),
        cann: Some(Version::V9_1),
        tells_pageable: Some(true),
        is_open: Some(true),
        has_context: Some(true),
        has_peer_access: Some(true),
        is_capture_in_the_way: Some(false),
        stream: Stream::Own { is_captured: false },
        dsts: &[],
        dst_maxs: &[],
        srcs: &[],
        sizes: &[],
        attrs: &[],
        attr_indexes: &[],
    };
}

impl Case {
    /// A call that breaks the rule.
    pub const fn bad(function: Function, says: &'static str, words: &'static [u64]) -> Self {
        Self { breaks: true, says, function, words, scene: Scene::PLAIN }
    }

    /// A near miss.
    pub const fn good(function: Function, says: &'static str, words: &'static [u64]) -> Self {
        Self { breaks: false, says, function, words, scene: Scene::PLAIN }
    }

    /// Moves the case to another world.
    pub const fn within(self, scene: Scene) -> Self {
        let Self { breaks, says, function, words, .. } = self;
        Self { breaks, says, function, words, scene }
    }

    /// Hands the call to `look`.
    pub fn look<R>(&self, look: impl FnOnce(&Subject) -> R) -> R {
        let scene = &self.scene;
        let pointers = |words: &[u64]| words.iter().map(|word| *word as *mut _).collect::<Vec<_>>();
        let (dsts, srcs) = (pointers(scene.dsts), pointers(scene.srcs));
        let call = self.function.call(self.words);
        let stream = match call.stream {
            Some(stream) if stream.is_null() => Stream::Default,
            _ => scene.stream,
        };
        let world = World {
            product: scene.soc.and_then(Product::of),
            run_mode: scene.run_mode,
            cann: scene.cann,
            tells_pageable: scene.tells_pageable,
            is_open: scene.is_open,
            has_context: scene.has_context,
            has_peer_access: scene.has_peer_access,
            is_capture_in_the_way: scene.is_capture_in_the_way,
            stream,
            memory: &Map,
        };
        let arrays = Arrays {
            dsts: (!dsts.is_empty()).then_some(&dsts[..]),
            dst_maxs: (!scene.dst_maxs.is_empty()).then_some(scene.dst_maxs),
            srcs: (!srcs.is_empty()).then_some(&srcs[..]),
            sizes: (!scene.sizes.is_empty()).then_some(scene.sizes),
            attrs: (!scene.attrs.is_empty()).then_some(scene.attrs),
            attr_indexes: (!scene.attr_indexes.is_empty()).then_some(scene.attr_indexes),
        };
        look(&Subject { function: self.function, call, arrays, world })
    }
}

/// Memory of device 0.
pub const DEVICE: u64 = 0x1000_0010_0000;
/// Memory of device 1.
pub const OTHER: u64 = 0x1000_0020_0000;
/// A large block of memory of device 0.
pub const LARGE: u64 = 0x1100_0000_0000;
/// A device address where nothing is allocated.
pub const FREED: u64 = 0x1000_0f00_0000;
/// Pinned host memory.
pub const PINNED: u64 = 0x5000_0000_0000;
/// Managed memory.
pub const MANAGED: u64 = 0x5100_0000_0000;
/// Host memory from `malloc`.
pub const PAGEABLE: u64 = 0x5500_0000_0000;
/// A host symbol of a device variable of 4,096 bytes.
pub const SYMBOL: u64 = 0x40_1000;
/// A stream handle.
pub const STREAM: u64 = 0x5600_0000_1000;
/// The address of the arrays of a batch; their entries are in the scene.
pub const ARRAY: u64 = 0x7ffe_0000_1000;

const BLOCK: u64 = 1 << 20;
const VARIABLE: u64 = 0x1000_0030_0000;
const VARIABLE_SIZE: usize = 4096;

/// The blocks of memory of the cases: name, start, size and place.
pub static BLOCKS: &[(&str, u64, u64, Place)] = &[
    ("device", DEVICE, BLOCK, Place::Device(0)),
    ("other_device", OTHER, BLOCK, Place::Device(1)),
    ("variable", VARIABLE, VARIABLE_SIZE as u64, Place::Device(0)),
    ("freed", FREED, BLOCK, Place::Unallocated),
    ("large", LARGE, 1 << 40, Place::Device(0)),
    ("pinned", PINNED, BLOCK, Place::Pinned),
    ("managed", MANAGED, BLOCK, Place::Managed),
    ("pageable", PAGEABLE, BLOCK, Place::Pageable),
];

/// The memory of the cases.
pub struct Map;

impl Memory for Map {
    fn region(&self, address: usize) -> Region {
        let address = address as u64;
        let block = BLOCKS.iter().find(|(_, start, size, _)| (*start..start + size).contains(&address));
        match block {
            Some((_, start, size, place @ (Place::Device(_) | Place::Pinned | Place::Managed))) => {
                Region { place: *place, room: Some((start + size - address) as usize) }
            }
            Some((_, _, _, place)) => Region { place: *place, room: None },
            None => Region { place: Place::Pageable, room: None },
        }
    }

    fn symbol(&self, address: usize) -> Symbol {
        match address as u64 {
            SYMBOL => Symbol::Variable { size: VARIABLE_SIZE, address: Some(VARIABLE as usize) },
            _ => Symbol::None,
        }
    }
}
