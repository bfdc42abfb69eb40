//! Addresses and physical memory apart: reserve a range, allocate memory, map one onto the other.

use crate::config::settings::valid_device;
use crate::edge::argument::{exports, pointer, positive, put, required};
use crate::edge::error::{INVALID_PARAM, Outcome, RT_INVALID_HANDLE, RT_PARAM_INVALID, check, fail};
use crate::state::context;
use crate::state::object::{Head, handle, object};
use crate::state::registry::{self, Backing, Block, BlockKind};
use crate::state::world::{self, Physical};
use std::ffi::c_void;
use std::sync::Arc;

const MAGIC: u64 = 0x0073_7968_7053_4353;

/// `aclrtPhysicalMemProp`
#[repr(C)]
pub struct Property {
    handle_kind: i32,
    allocation_kind: i32,
    _memory_kind: i32,
    location_id: u32,
    location_kind: i32,
    _reserved: u64,
}

/// Physical memory as C code holds it.
#[repr(C)]
struct Handle {
    head: Head,
}

exports! {
    /// Reserves a range of device addresses with nothing behind them.
    fn aclrtReserveMemAddress(
        virPtr: *mut *mut c_void, size: usize, alignment: usize, expectPtr: *mut c_void, flags: u64,
    ) => {
        let _ = expectPtr;
        required(virPtr, "virPtr")?;
        positive(size, "size")?;
        check(flags <= 1, INVALID_PARAM, || format!("flags={flags} must be 0 or 1"))?;
        check(alignment == 0 || alignment.is_power_of_two(), RT_PARAM_INVALID, || {
            format!("alignment={alignment} must be 0 or a power of two")
        })?;
        context::current()?;
        let start = registry::write().take(size, alignment)?;
        put(virPtr, "virPtr", pointer(start))
    };
    /// Gives a reserved range back; nothing may be mapped into it any more.
    fn aclrtReleaseMemAddress(virPtr: *mut c_void) => {
        let start = required(virPtr, "virPtr")?;
        context::current()?;
        let mut registry = registry::write();
        let size = registry.taken.get(&start).copied().unwrap_or(0);
        let free = size > 0 && registry.blocks.range(start..start + size).next().is_none();
        check(free, RT_PARAM_INVALID, || format!("virPtr={virPtr:?} is no reserved range, or is mapped"))?;
        registry.give_back(start);
        Ok(())
    };
    /// Allocates memory without an address.
    fn aclrtMallocPhysical(handle: *mut *mut c_void, size: usize, prop: *const Property, flags: u64) => {
        required(handle, "handle")?;
        required(prop, "prop")?;
        positive(size, "size")?;
        check(flags == 0, INVALID_PARAM, || format!("flags={flags} must be 0"))?;
        allocate(handle, size, prop)
    };
    /// Gives such memory back; what is mapped of it stays until it is unmapped.
    fn aclrtFreePhysical(handle: *mut c_void) => {
        required(handle, "handle")?;
        let physical: &'static Handle = object(handle, MAGIC, "handle")?;
        physical.head.end();
        let removed = world::lock().physicals.remove(&physical.head.id);
        drop(removed);
        Ok(())
    };
    /// Puts physical memory behind reserved addresses.
    fn aclrtMapMem(virPtr: *mut c_void, size: usize, offset: usize, handle: *mut c_void, flags: u64) => {
        let start = required(virPtr, "virPtr")?;
        required(handle, "handle")?;
        positive(size, "size")?;
        check(flags == 0, INVALID_PARAM, || format!("flags={flags} must be 0"))?;
        map(start, size, offset, handle)
    };
    /// Takes the memory behind addresses away.
    fn aclrtUnmapMem(virPtr: *mut c_void) => {
        let start = required(virPtr, "virPtr")?;
        context::current()?;
        let mut registry = registry::write();
        let mapped = registry.blocks.get(&start).is_some_and(|block| matches!(block.kind, BlockKind::Mapped(..)));
        check(mapped, RT_PARAM_INVALID, || format!("virPtr={virPtr:?} is not the start of a mapping"))?;
        registry.blocks.remove(&start);
        Ok(())
    };
}

fn allocate(target: *mut *mut c_void, size: usize, property: *const Property) -> Outcome {
    // SAFETY: the caller's promise: a property that is not NULL may be read.
    let property = unsafe { property.read_unaligned() };
    check(property.handle_kind == 0 && property.allocation_kind == 0, INVALID_PARAM, || {
        "prop->handleType and prop->allocationType must be 0".into()
    })?;
    check(!matches!(property.location_kind, 2 | 3), INVALID_PARAM, || {
        format!("prop->location.type={} is not supported", property.location_kind)
    })?;
    context::current()?;
    let device = valid_device(property.location_id as i32)?;
    registry::charge(device, size)?;
    let backing = match Backing::new(size) {
        Ok(backing) => backing,
        Err(failure) => {
            registry::discharge(device, size);
            return Err(failure);
        }
    };
    let made: &'static Handle = Box::leak(Box::new(Handle { head: Head::new(MAGIC) }));
    let physical = Physical { device, size, backing };
    world::lock().physicals.insert(made.head.id, physical);
    put(target, "handle", handle(made))
}

fn map(start: usize, size: usize, offset: usize, physical: *mut c_void) -> Outcome {
    let physical: &'static Handle = object(physical, MAGIC, "handle")?;
    context::current()?;
    let world = world::lock();
    let Some(physical) = world.physicals.get(&physical.head.id) else {
        return fail(RT_INVALID_HANDLE, "handle was freed");
    };
    let fits = offset.checked_add(size).is_some_and(|end| end <= physical.size);
    check(fits, RT_PARAM_INVALID, || format!("offset={offset} + size={size} exceeds the memory's {}", physical.size))?;
    let mut registry = registry::write();
    let reserved = registry.taken.range(..=start).next_back();
    let inside =
        reserved.is_some_and(|(from, length)| (start - from).checked_add(size).is_some_and(|end| end <= *length));
    let free =
        registry.find(start).is_none() && registry.blocks.range(start..start.saturating_add(size)).next().is_none();
    check(inside && free, RT_PARAM_INVALID, || {
        format!("virPtr={start:#x} is not reserved for {size} bytes, or is mapped")
    })?;
    let kind = BlockKind::Mapped(physical.device, Arc::clone(&physical.backing), offset);
    registry.blocks.insert(start, Block { size, kind });
    Ok(())
}
