//! What every address is: the blocks of device memory, of pinned and of registered host memory.
//!
//! A device address lies in the window of the vendor's driver. There it is only reserved, so that the host faults on
//! it; the bytes are in a backing elsewhere, which a copy under way keeps alive.

use crate::config::settings::{MAX_DEVICES, settings};
use crate::edge::error::{
    Outcome, RT_DRV_INTERNAL_ERROR, RT_INVALID_HANDLE, RT_MEMORY_ALLOCATION, RT_PARAM_INVALID, check, fail,
};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The range of device addresses.
pub const WINDOW: Range<usize> = 0x1000_0000_0000..0x1800_0000_0000;

/// The grain of addresses in the window, and of backings: a multiple of every page size Linux has.
pub const PAGE: usize = 64 * 1024;

/// Distance to the next attempt where a part of the window is in use.
const STRIDE: usize = 1 << 36;

/// Where a pointer points, in the vendor's terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Location {
    /// Memory of this device.
    Device(u32),
    /// Pinned or registered host memory.
    Host,
    /// Host memory the runtime does not know: pageable.
    Unregistered,
    /// Managed memory, the host's and the device's.
    Managed,
}

/// Bytes in this process that stand for a block.
pub struct Backing {
    start: usize,
    size: usize,
}

impl Backing {
    /// Fresh zeroed bytes of at least `size`.
    pub fn new(size: usize) -> Outcome<Arc<Self>> {
        let size = size.next_multiple_of(PAGE);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        match map(ptr::null_mut(), size, protection, 0) {
            Some(start) => Ok(Arc::new(Self { start, size })),
            None => fail(RT_MEMORY_ALLOCATION, format!("no memory for {size} bytes on this machine")),
        }
    }

    /// Where the bytes begin.
    pub fn start(&self) -> usize {
        self.start
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        unmap(self.start, self.size);
    }
}

/// Kind of a block of memory.
pub enum BlockKind {
    /// Memory of a device.
    Device(u32, Arc<Backing>),
    /// Physical memory of a device, mapped from this offset of its backing on.
    Mapped(u32, Arc<Backing>, usize),
    /// A device's view of registered host memory that begins here.
    Mirror(u32, usize),
    /// Pinned host memory; the block is the backing itself.
    Pinned(#[expect(dead_code, reason = "owns the bytes")] Arc<Backing>),
    /// Managed memory; the block is the backing itself.
    Managed(#[expect(dead_code, reason = "owns the bytes")] Arc<Backing>),
    /// The program's own memory, registered; its mirror, if it was asked for.
    Registered(Option<usize>),
}

/// A range of addresses and what it is. The address is the key in the registry.
pub struct Block {
    /// In bytes.
    pub size: usize,
    /// Its kind.
    pub kind: BlockKind,
}

impl Block {
    fn location(&self) -> Location {
        match &self.kind {
            BlockKind::Device(device, _) | BlockKind::Mapped(device, ..) | BlockKind::Mirror(device, _) => {
                Location::Device(*device)
            }
            BlockKind::Pinned(_) | BlockKind::Registered(_) => Location::Host,
            BlockKind::Managed(_) => Location::Managed,
        }
    }
}

/// Every block, and the reserved ranges of the window.
pub struct Registry {
    /// By first address.
    pub blocks: BTreeMap<usize, Block>,
    /// Ranges that are taken in the window: first address to size.
    pub taken: BTreeMap<usize, usize>,
    /// No free page lies below.
    hint: usize,
}

static REGISTRY: RwLock<Registry> =
    RwLock::new(Registry { blocks: BTreeMap::new(), taken: BTreeMap::new(), hint: WINDOW.start });

static USED: [AtomicU64; MAX_DEVICES as usize] = [const { AtomicU64::new(0) }; MAX_DEVICES as usize];

/// Number of contexts that live: before the first the driver is not open, and rejects every pointer.
pub static OPEN: AtomicU64 = AtomicU64::new(0);

/// Locks the registry for reading.
pub fn read() -> RwLockReadGuard<'static, Registry> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the registry for writing.
pub fn write() -> RwLockWriteGuard<'static, Registry> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// The block that holds `address`, and where it begins.
    pub fn find(&self, address: usize) -> Option<(usize, &Block)> {
        let (start, block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.size).then_some((*start, block))
    }

    /// Takes a range of the window: the first free one, with a page after it that stays free.
    pub fn take(&mut self, size: usize, alignment: usize) -> Outcome<usize> {
        let size = size.next_multiple_of(PAGE);
        let alignment = alignment.max(PAGE);
        let mut start = self.hint.next_multiple_of(alignment);
        for (taken, length) in self.taken.range(self.hint..) {
            if taken.saturating_sub(start) > size {
                break;
            }
            start = (taken + length + PAGE).next_multiple_of(alignment);
        }
        let fits = start.checked_add(size).is_some_and(|end| end <= WINDOW.end);
        check(fits, RT_MEMORY_ALLOCATION, || format!("no room for {size} bytes in the device's address range"))?;
        let flags = libc::MAP_FIXED_NOREPLACE;
        let wish = ptr::with_exposed_provenance_mut(start);
        let mapped = map(wish, size, libc::PROT_NONE, flags);
        if mapped != Some(start) {
            if let Some(elsewhere) = mapped {
                unmap(elsewhere, size);
            }
            // In use (a sanitizer has its shadow memory at the front of the window): continue further on.
            self.hint = (start + 1).next_multiple_of(STRIDE);
            return self.take(size, alignment);
        }
        self.taken.insert(start, size);
        if start == self.hint {
            self.hint = start + size + PAGE;
        }
        Ok(start)
    }

    /// Gives a range of the window back.
    pub fn give_back(&mut self, start: usize) {
        if let Some(size) = self.taken.remove(&start) {
            unmap(start, size);
            self.hint = self.hint.min(start);
        }
    }
}

/// Whether the address lies in the range of device addresses.
pub fn in_window(address: usize) -> bool {
    WINDOW.contains(&address)
}

/// What the driver says of a pointer.
pub fn locate(address: usize) -> Outcome<Location> {
    check(address != 0, RT_PARAM_INVALID, || "the driver has no attributes for NULL".into())?;
    check(OPEN.load(Ordering::Acquire) > 0, RT_INVALID_HANDLE, || {
        "no device was opened, so the driver knows no address".into()
    })?;
    match read().find(address) {
        Some((_, block)) => Ok(block.location()),
        None if in_window(address) => unallocated(address),
        None => Ok(Location::Unregistered),
    }
}

fn unallocated<T>(address: usize) -> Outcome<T> {
    fail(RT_DRV_INTERNAL_ERROR, format!("{address:#x} is a device address that is not allocated"))
}

/// A stretch of bytes the simulator can move.
pub enum Piece {
    /// Bytes of a backing, which is kept alive.
    Backed(usize, Arc<Backing>),
    /// Host memory that may not be there.
    Host(usize),
}

/// The bytes behind `address` and how many of them lie in one stretch.
pub fn piece(address: usize) -> Outcome<(Piece, usize)> {
    if !in_window(address) {
        return Ok((Piece::Host(address), (usize::MAX - address).max(1)));
    }
    let registry = read();
    let Some((start, block)) = registry.find(address) else {
        return unallocated(address);
    };
    let (inside, left) = (address - start, block.size - (address - start));
    match &block.kind {
        BlockKind::Device(_, backing) => {
            let bytes = backing.start() + inside;
            Ok((Piece::Backed(bytes, Arc::clone(backing)), left))
        }
        BlockKind::Mapped(_, backing, offset) => {
            let bytes = backing.start() + offset + inside;
            Ok((Piece::Backed(bytes, Arc::clone(backing)), left))
        }
        BlockKind::Mirror(_, host) => Ok((Piece::Host(host + inside), left)),
        _ => unallocated(address),
    }
}

/// Refuses a range that runs out of its device memory with 107000; says nothing about host memory.
pub fn covers(address: usize, size: usize, name: &str) -> Outcome {
    if !in_window(address) {
        return Ok(());
    }
    let registry = read();
    let mut at = address;
    let end = address.saturating_add(size);
    while at < end {
        match registry.find(at) {
            Some((start, block)) => at = start + block.size,
            None if at == address => return unallocated(address),
            None => {
                return fail(
                    RT_PARAM_INVALID,
                    format!("{name}={address:#x} has only {} of {size} bytes", at - address),
                );
            }
        }
    }
    Ok(())
}

/// Charges `device` with `size` bytes, or answers 207001 if it has no more.
pub fn charge(device: u32, size: usize) -> Outcome {
    let total = settings().memory;
    let charged = USED[device as usize].fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
        used.checked_add(size as u64).filter(|sum| *sum <= total)
    });
    check(charged.is_ok(), RT_MEMORY_ALLOCATION, || {
        let free = free(device);
        format!("size={size}: device {device} has {free} of {total} bytes left")
    })
}

/// Takes a charge back.
pub fn discharge(device: u32, size: usize) {
    USED[device as usize].fetch_sub(size as u64, Ordering::AcqRel);
}

/// Number of bytes that `device` has left.
pub fn free(device: u32) -> u64 {
    let used = USED[device as usize].load(Ordering::Acquire);
    settings().memory.saturating_sub(used)
}

/// Frees all memory of `device`: its last context is gone.
pub fn release_device(device: u32) {
    let mut registry = write();
    let of_device: Vec<usize> = registry
        .blocks
        .iter()
        .filter(|(_, block)| matches!(block.kind, BlockKind::Device(id, ..) if id == device))
        .map(|(start, _)| *start)
        .collect();
    for start in of_device {
        registry.give_back(start);
        if let Some(block) = registry.blocks.remove(&start) {
            discharge(device, block.size);
        }
    }
}

fn map(wish: *mut c_void, size: usize, protection: i32, flags: i32) -> Option<usize> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping; a fixed one replaces nothing that is there.
    let start = unsafe { libc::mmap(wish, size, protection, flags, -1, 0) };
    (start != libc::MAP_FAILED).then(|| start.expose_provenance())
}

fn unmap(start: usize, size: usize) {
    // SAFETY: the range is a mapping of `map`, and its owner gives it up.
    unsafe { libc::munmap(ptr::with_exposed_provenance_mut(start), size) };
}
