//! The memory, contexts and streams that the cases are played on, and what is known of them because it was made here.

mod mapping;
mod play;

use crate::case::{Context, Situation, Spot, Stream, Who};
use crate::vendor::Vendor;
use crate::worker::Worker;
use aclshim_facts::Function;
use aclshim_facts::world::{self, Memory, Place, Region, Symbol};
pub use mapping::Mapping;

/// Bytes of each spot.
pub const SIZE: usize = 2048;

/// Bytes of the memory for descriptors: sixteen, and one place more that is aligned and too short.
pub const SHEET: usize = 16 * 64 + 20;

/// Bytes of the device variable.
pub const VARIABLE: usize = 256;

/// The bytes after each host spot that are ours, or unreachable.
pub const SLACK: usize = 16 * 1024;

/// Where device addresses lie.
pub const WINDOW: std::ops::Range<usize> = 0x1000_0000_0000..0x1800_0000_0000;

/// An address that no device was ever given.
const NEVER: usize = 0x17ff_0000_0000;

/// Stands for the device variable in the world: its true address is not ours to know, and no pointer meets it.
const VARIABLE_AT: usize = 0x17fe_0000_0000;

/// A spot that is memory.
#[derive(Clone, Copy)]
struct Block {
    spot: Spot,
    address: usize,
    place: Place,
    /// Bytes that may be touched there: all or none.
    size: usize,
}

/// Everything that was made.
pub struct Scene {
    pub vendor: &'static Vendor,
    blocks: Vec<Block>,
    /// By the number of the context.
    contexts: Vec<usize>,
    /// By the number of the context: the default one and two more.
    streams: Vec<[usize; 3]>,
    destroyed: usize,
    garbage: usize,
    symbol: usize,
    answer: usize,
    /// Never has a context.
    bare: Worker,
    /// Captures what this thread did not begin.
    other: Worker,
    /// Calls made for our own ends.
    pub own_calls: std::cell::Cell<u64>,
}

#[track_caller]
fn ok(code: i32) {
    assert_eq!(code, 0, "the scene could not be made");
}

#[track_caller]
fn made(make: impl FnOnce(&mut usize) -> i32) -> usize {
    let mut value = 0;
    ok(make(&mut value));
    value
}

impl Scene {
    /// The program's own memory, before any device is opened.
    pub fn closed(vendor: &'static Vendor) -> Self {
        let host = |spot, address, size| Block { spot, address, place: Place::Pageable, size };
        let pageable = Mapping::new(SIZE + SLACK);
        let edge = Mapping::new(SIZE);
        let answer = Mapping::new(4096).start;
        let blocks = vec![
            host(Spot::Pageable, pageable.start, SIZE),
            host(Spot::Edge, edge.end - SIZE, SIZE),
            host(Spot::Unreachable, edge.end + 4096, 0),
        ];
        let zeros: &'static [u64; 8] = Box::leak(Box::new([0; 8]));
        let symbols: &'static [u8; 64] = Box::leak(Box::new([0; 64]));
        Self {
            vendor,
            blocks,
            contexts: Vec::new(),
            streams: Vec::new(),
            destroyed: 0,
            garbage: zeros.as_ptr() as usize,
            symbol: symbols.as_ptr() as usize,
            answer,
            bare: Worker::start(),
            other: Worker::start(),
            own_calls: std::cell::Cell::new(0),
        }
    }

    /// Opens the devices and makes the rest.
    pub fn open(&mut self) {
        let manage = &self.vendor.manage;
        // SAFETY: the vendor's functions, with places of ours for their answers.
        unsafe {
            ok((manage.aclrtSetDevice)(1));
            let one = made(|context| (manage.aclrtGetCurrentContext)(context));
            let another = made(|context| (manage.aclrtCreateContext)(context, 0));
            ok((manage.aclrtSetDevice)(0));
            let zero = made(|context| (manage.aclrtGetCurrentContext)(context));
            self.contexts = vec![zero, another, one];
        }
        for context in Context::ALL {
            self.enter(context);
            // SAFETY: as above.
            let streams = unsafe {
                [
                    made(|stream| (manage.aclrtCtxGetCurrentDefaultStream)(stream)),
                    made(|stream| (manage.aclrtCreateStream)(stream)),
                    made(|stream| (manage.aclrtCreateStream)(stream)),
                ]
            };
            self.streams.push(streams);
        }
        let device = |context, size| {
            self.enter(context);
            // SAFETY: as above; NULL is the default configuration.
            made(|address| unsafe { (manage.aclrtMallocWithCfg)(address, size, 0, std::ptr::null()) })
        };
        let of_device = |spot, address, id| Block { spot, address, place: Place::Device(id), size: SIZE };
        let one = device(Context::One, SIZE);
        let zero = device(Context::Zero, SIZE);
        let (cells, sheet) = (device(Context::Zero, SIZE), device(Context::Zero, SHEET));
        let registered = Mapping::new(SIZE + SLACK).start;
        // SAFETY: as above; the registered memory stays.
        let (destroyed, pinned, managed, mirror) = unsafe {
            let destroyed = made(|stream| (manage.aclrtCreateStream)(stream));
            ok((manage.aclrtDestroyStream)(destroyed));
            let pinned = made(|address| (manage.aclrtMallocHost)(address, SIZE));
            let managed = made(|address| (manage.aclrtMemAllocManaged)(address, SIZE as u64, 1));
            let mirror = made(|address| (manage.aclrtHostRegister)(registered, SIZE as u64, 0, address));
            ok((manage.ascendclSimRegisterSymbol)(self.symbol, VARIABLE));
            (destroyed, pinned, managed, mirror)
        };
        self.destroyed = destroyed;
        let host = |spot, address, place| Block { spot, address, place, size: SIZE };
        self.blocks.extend([
            of_device(Spot::Device0, zero, 0),
            of_device(Spot::Device1, one, 1),
            of_device(Spot::Cells, cells, 0),
            Block { size: SHEET, ..of_device(Spot::Sheet, sheet, 0) },
            of_device(Spot::Mirror, mirror, 0),
            host(Spot::Pinned, pinned, Place::Pinned),
            host(Spot::Registered, registered, Place::Pinned),
            host(Spot::Managed, managed, Place::Managed),
        ]);
        self.furnish();
        // The last one, because the next allocation would get its address.
        // SAFETY: as above.
        let freed = unsafe {
            let freed = made(|address| (manage.aclrtMallocWithCfg)(address, SIZE, 0, std::ptr::null()));
            ok((manage.aclrtFree)(freed));
            freed
        };
        self.blocks.push(Block { spot: Spot::Freed, address: freed, place: Place::Unallocated, size: 0 });
    }

    /// Every byte of data has its upper bit set, so that no eight of them are an address; the cells hold good ones.
    fn furnish(&self) {
        let pattern: Vec<u8> = (0..SIZE).map(|at| 0x80 | (at * 7 + at / 256) as u8).collect();
        for spot in crate::case::DATA {
            self.put(self.address(spot), &pattern);
        }
        let cells: Vec<u8> = (0..16)
            .flat_map(|cell| {
                let spot = if cell % 4 == 3 { Spot::Device1 } else { Spot::Device0 };
                (self.address(spot) + cell * 64).to_ne_bytes()
            })
            .collect();
        self.put(self.address(Spot::Cells), &cells);
        if self.vendor.functions().contains(&Function::aclrtMemcpyToSymbol) {
            for context in [Context::One, Context::Zero] {
                self.enter(context);
                let words = [self.symbol as u64, pattern.as_ptr() as u64, VARIABLE as u64, 0, 1];
                self.own_call(Function::aclrtMemcpyToSymbol, &words);
            }
        }
        self.enter(Context::Zero);
    }

    fn put(&self, address: usize, bytes: &[u8]) {
        let size = bytes.len() as u64;
        self.own_call(Function::aclrtMemcpy, &[address as u64, size, bytes.as_ptr() as u64, size, 4]);
    }

    fn own_call(&self, function: Function, words: &[u64]) {
        self.own_calls.set(self.own_calls.get() + 1);
        // SAFETY: a copy between memory of the scene and memory of the caller.
        ok(unsafe { self.vendor.call(function, words) });
    }

    pub fn is_open(&self) -> bool {
        !self.contexts.is_empty()
    }

    fn enter(&self, context: Context) {
        // SAFETY: a context that was made.
        ok(unsafe { (self.vendor.manage.aclrtSetCurrentContext)(self.contexts[context.number()]) });
    }

    fn block(&self, spot: Spot) -> Option<&Block> {
        self.blocks.iter().find(|block| block.spot == spot)
    }

    /// Where a spot begins. What is not there yet is an unused address of its sort.
    pub fn address(&self, spot: Spot) -> usize {
        if let Some(block) = self.block(spot) {
            return block.address;
        }
        match spot {
            Spot::Null => 0,
            Spot::Symbol => self.symbol,
            Spot::NoSymbol => self.symbol + 8,
            Spot::Answer => self.answer,
            Spot::Pinned | Spot::Registered | Spot::Managed => self.address(Spot::Pageable),
            _ => NEVER,
        }
    }

    /// How many bytes may be touched from an address on.
    pub fn reach(&self, address: usize) -> usize {
        let block = self.blocks.iter().find(|block| (block.address..block.address + block.size).contains(&address));
        block.map_or(0, |block| block.address + block.size - address)
    }

    /// The handle of a stream, seen from a context.
    pub fn stream(&self, stream: Stream, from: Context) -> usize {
        let of = |context: Context, at: usize| self.streams.get(context.number()).map_or(0, |streams| streams[at]);
        match stream {
            Stream::Null => 0,
            Stream::Default => of(from, 0),
            Stream::First => of(from, 1),
            Stream::Second => of(from, 2),
            Stream::Foreign => of(from.next(), 1),
            Stream::Destroyed if self.is_open() => self.destroyed,
            Stream::Destroyed | Stream::Garbage => self.garbage,
        }
    }

    /// What a stream argument is in a situation.
    pub fn stream_is(&self, handle: usize, situation: &Situation) -> world::Stream {
        let context = situation.context;
        if handle == 0 {
            return world::Stream::Default;
        }
        let owner = self.streams.iter().position(|streams| streams.contains(&handle));
        let is_captured = situation.captures.iter().any(|capture| self.stream(capture.stream, context) == handle);
        match owner {
            None => world::Stream::Invalid,
            Some(owner) if context != Context::None && owner == context.number() => world::Stream::Own { is_captured },
            Some(_) => world::Stream::Foreign { is_captured },
        }
    }

    /// Whether captures forbid the thread synchronous work: `CHECK_CAPTURE_MODE` of the vendor's runtime.
    pub fn is_capture_in_the_way(&self, situation: &Situation) -> bool {
        if situation.context == Context::None {
            return false;
        }
        let here = situation.captures.iter().filter(|capture| capture.stream != Stream::Foreign);
        let Some(widest) = here.map(|capture| capture.mode).min() else { return false };
        let own = situation.captures.iter().filter(|capture| capture.by == Who::ThisThread);
        let own = own.map(|capture| capture.mode).min();
        match situation.exchanged {
            0 => widest == 0 || own == Some(1),
            1 => matches!(own, Some(0 | 1)),
            _ => false,
        }
    }
}

impl Memory for Scene {
    fn region(&self, address: usize) -> Region {
        let holds = |block: &&Block| (block.address..=block.address + block.size.saturating_sub(1)).contains(&address);
        if let Some(block) = self.blocks.iter().find(holds) {
            return Region { place: block.place, room: Some((block.address + block.size).saturating_sub(address)) };
        }
        let variable = VARIABLE_AT..VARIABLE_AT + VARIABLE;
        if variable.contains(&address) {
            return Region { place: Place::Device(0), room: Some(variable.end - address) };
        }
        if WINDOW.contains(&address) {
            return Region { place: Place::Unallocated, room: Some(0) };
        }
        Region { place: Place::Pageable, room: Some(0) }
    }

    fn symbol(&self, address: usize) -> Symbol {
        match address == self.symbol && self.is_open() {
            true => Symbol::Variable { size: VARIABLE, address: Some(VARIABLE_AT) },
            false => Symbol::None,
        }
    }
}
