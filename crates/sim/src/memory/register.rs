//! Host memory of the program that is made known to the device.

use crate::edge::argument::{exports, pointer, put, required};
use crate::edge::error::{
    HOST_MEMORY_ALREADY_REGISTERED, HOST_MEMORY_NOT_REGISTERED, INVALID_PARAM, Outcome, RT_FEATURE_NOT_SUPPORT,
    RT_PARAM_INVALID, check, fail,
};
use crate::state::context;
use crate::state::registry::{self, Block, BlockKind};
use std::ffi::c_void;

/// `aclrtHostRegisterType`: IO memory and read-only, or 0 for mapped.
const TYPES: i32 = 0x4 | 0x8;

/// `ACL_HOST_REG_MAPPED`
const MAPPED: u32 = 0x2;

/// `ACL_HOST_REG_*`: mapped, IO memory, read-only, pinned.
const FLAGS: u32 = MAPPED | 0x4 | 0x8 | 0x1000_0000;

exports! {
    /// Registers host memory and gives the address under which the device sees it.
    fn aclrtHostRegister(ptr: *mut c_void, size: u64, r#type: i32, devPtr: *mut *mut c_void) => {
        let start = required(ptr, "ptr")?;
        required(devPtr, "devPtr")?;
        check(size > 0, INVALID_PARAM, || "size=0 must be greater than 0".into())?;
        check(r#type & !TYPES == 0, RT_FEATURE_NOT_SUPPORT, || format!("type={} is not supported", r#type))?;
        let mirror = register(start, size as usize, Some(context::current()?.device))?;
        put(devPtr, "devPtr", pointer(mirror.unwrap_or(start)))
    };
    /// Registers host memory; with the flag 2 the device sees it too.
    fn aclrtHostRegisterV2(ptr: *mut c_void, size: u64, flag: u32) => {
        let start = required(ptr, "ptr")?;
        check(size > 0, INVALID_PARAM, || "size=0 must be greater than 0".into())?;
        check(flag != 0 && flag & !FLAGS == 0, RT_PARAM_INVALID, || {
            format!("flag={flag:#x} is not a combination of {FLAGS:#x}")
        })?;
        let device = context::current()?.device;
        register(start, size as usize, (flag & MAPPED != 0).then_some(device)).map(drop)
    };
    /// Takes a registration back.
    fn aclrtHostUnregister(ptr: *mut c_void) => {
        let start = required(ptr, "ptr")?;
        context::current()?;
        let mut registry = registry::write();
        let Some(BlockKind::Registered(mirror)) = registry.blocks.get(&start).map(|block| &block.kind) else {
            return fail(HOST_MEMORY_NOT_REGISTERED, format!("ptr={ptr:?} is not registered"));
        };
        if let Some(mirror) = *mirror {
            registry.blocks.remove(&mirror);
            registry.give_back(mirror);
        }
        registry.blocks.remove(&start);
        Ok(())
    };
    /// The address under which the device sees registered host memory. `flag` is 0.
    fn aclrtHostGetDevicePointer(pHost: *mut c_void, pDevice: *mut *mut c_void, flag: u32) => {
        let address = required(pHost, "pHost")?;
        required(pDevice, "pDevice")?;
        check(flag == 0, INVALID_PARAM, || format!("flag={flag} must be 0"))?;
        context::current()?;
        match registry::read().find(address) {
            Some((start, Block { kind: BlockKind::Registered(Some(mirror)), .. })) => {
                put(pDevice, "pDevice", pointer(mirror + (address - start)))
            }
            _ => fail(RT_PARAM_INVALID, format!("pHost={pHost:?} is not mapped to the device")),
        }
    };
}

/// Registers a range; with a device, also gives it an address there.
fn register(start: usize, size: usize, device: Option<u32>) -> Outcome<Option<usize>> {
    let Some(end) = start.checked_add(size) else {
        return fail(RT_PARAM_INVALID, format!("size={size} runs over the end of memory"));
    };
    let mut registry = registry::write();
    let before = registry.find(start).is_some();
    let inside = registry.blocks.range(start..end).next().is_some();
    check(!before && !inside, HOST_MEMORY_ALREADY_REGISTERED, || {
        format!("ptr={start:#x}: the range or a part of it is registered or pinned already")
    })?;
    let mirror = match device {
        Some(device) => Some(mirror(&mut registry, start, size, device)?),
        None => None,
    };
    let kind = BlockKind::Registered(mirror);
    registry.blocks.insert(start, Block { size, kind });
    Ok(mirror)
}

fn mirror(registry: &mut registry::Registry, host: usize, size: usize, device: u32) -> Outcome<usize> {
    let start = registry.take(size, registry::PAGE)?;
    let kind = BlockKind::Mirror(device, host);
    registry.blocks.insert(start, Block { size, kind });
    Ok(start)
}
