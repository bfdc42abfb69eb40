//! Giving and taking memory: of the device, pinned on the host, and managed.

use crate::config::settings::valid_device;
use crate::edge::argument::{entry, exports, pointer, positive, put, required};
use crate::edge::error::{INVALID_PARAM, Outcome, RT_PARAM_INVALID, check, fail};
use crate::state::context;
use crate::state::registry::{self, Backing, Block, BlockKind};
use crate::stream;
use std::ffi::c_void;

/// `aclrtMallocAttribute`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attribute {
    kind: u32,
    value: [u32; 2],
}

/// `aclrtMallocConfig`
#[repr(C)]
pub struct Config {
    attributes: *const Attribute,
    count: usize,
}

/// `ACL_RT_MEM_ATTR_DEVICE_ID`
const ATTRIBUTE_DEVICE_ID: u32 = 2;

/// Sizes of device memory are multiples of this.
const GRAIN: usize = 32;

/// `ACL_MEM_MALLOC_HUGE1G_ONLY` and its peer-to-peer twin get no padding.
const HUGE_1G: [i32; 2] = [6, 7];

exports! {
    /// Device memory of `size` bytes, rounded up to 32 and padded with 32 more.
    fn aclrtMalloc(devPtr: *mut *mut c_void, size: usize, policy: i32) => rounded(devPtr, size, padding(policy));
    /// Device memory of `size` bytes, rounded up to 32.
    fn aclrtMallocAlign32(devPtr: *mut *mut c_void, size: usize, policy: i32) => {
        let _ = policy;
        rounded(devPtr, size, 0)
    };
    /// As `aclrtMalloc`, cached by the device.
    fn aclrtMallocCached(devPtr: *mut *mut c_void, size: usize, policy: i32) => rounded(devPtr, size, padding(policy));
    /// Device memory of exactly `size` bytes, on the device that `cfg` may name.
    fn aclrtMallocWithCfg(devPtr: *mut *mut c_void, size: usize, policy: i32, cfg: *const Config) => {
        let _ = policy;
        configured(devPtr, size, cfg)
    };
    /// As `aclrtMallocWithCfg`, for the task scheduler.
    fn aclrtMallocForTaskScheduler(devPtr: *mut *mut c_void, size: usize, policy: i32, cfg: *const Config) => {
        let _ = policy;
        configured(devPtr, size, cfg)
    };
    /// Gives device or managed memory back at once; copies under way are not waited for.
    fn aclrtFree(devPtr: *mut c_void) => free_device(devPtr);
    /// Gives device memory back when every stream of the device is idle.
    fn aclrtFreeWithDevSync(devPtr: *mut c_void) => {
        required(devPtr, "devPtr")?;
        stream::synchronize_device(context::current()?.device, None)?;
        free_device(devPtr)
    };
    /// Pinned host memory.
    fn aclrtMallocHost(hostPtr: *mut *mut c_void, size: usize) => pinned(hostPtr, size, "hostPtr");
    /// Pinned host memory; `cfg` may name the device it is for.
    fn aclrtMallocHostWithCfg(ptr: *mut *mut c_void, size: u64, cfg: *const Config) => {
        let _ = cfg;
        pinned(ptr, size as usize, "ptr")
    };
    /// Gives pinned host memory back.
    fn aclrtFreeHost(hostPtr: *mut c_void) => free_host(hostPtr);
    /// Gives pinned host memory back when every stream of the device is idle.
    fn aclrtFreeHostWithDevSync(hostPtr: *mut c_void) => {
        required(hostPtr, "hostPtr")?;
        stream::synchronize_device(context::current()?.device, None)?;
        free_host(hostPtr)
    };
    /// Memory that both the host and the device reach. `flag` is 1, `ACL_RT_MEM_ATTACH_GLOBAL`.
    fn aclrtMemAllocManaged(ptr: *mut *mut c_void, size: u64, flag: u32) => {
        required(ptr, "ptr")?;
        check(flag == 1, INVALID_PARAM, || format!("flag={flag} must be 1"))?;
        check(size > 0, RT_PARAM_INVALID, || "size=0 must be greater than 0".into())?;
        context::current()?;
        let backing = Backing::new(size as usize)?;
        let start = backing.start();
        insert(start, size as usize, BlockKind::Managed(backing));
        put(ptr, "ptr", pointer(start))
    };
}

fn padding(policy: i32) -> usize {
    if HUGE_1G.contains(&policy) { 0 } else { GRAIN }
}

fn rounded(target: *mut *mut c_void, size: usize, padding: usize) -> Outcome {
    required(target, "devPtr")?;
    positive(size, "size")?;
    let room = size.checked_add(GRAIN + padding).map(|sum| (sum - 1) / GRAIN * GRAIN);
    let Some(room) = room else {
        return fail(INVALID_PARAM, format!("size={size} is too large"));
    };
    let device = context::current()?.device;
    put(target, "devPtr", pointer(allocate(device, room)?))
}

fn configured(target: *mut *mut c_void, size: usize, config: *const Config) -> Outcome {
    required(target, "devPtr")?;
    // SAFETY: the caller's promise: NULL or a configuration.
    let config = unsafe { config.as_ref() };
    let (attributes, count) = config.map_or((std::ptr::null(), 0), |c| (c.attributes, c.count));
    check(count == 0 || !attributes.is_null(), INVALID_PARAM, || {
        format!("cfg->numAttrs={count} but cfg->attrs is NULL")
    })?;
    positive(size, "size")?;
    let mut device = context::current()?.device;
    for at in 0..count {
        let attribute = entry(attributes, at);
        if attribute.kind == ATTRIBUTE_DEVICE_ID {
            device = valid_device(attribute.value[0] as i32)?;
        }
    }
    put(target, "devPtr", pointer(allocate(device, size)?))
}

/// Device memory of exactly `size` bytes.
pub fn allocate(device: u32, size: usize) -> Outcome<usize> {
    registry::charge(device, size)?;
    let place = Backing::new(size).and_then(|backing| {
        let mut registry = registry::write();
        let start = registry.take(size, 512)?;
        let kind = BlockKind::Device(device, backing);
        registry.blocks.insert(start, Block { size, kind });
        Ok(start)
    });
    if place.is_err() {
        registry::discharge(device, size);
    }
    place
}

fn pinned(target: *mut *mut c_void, size: usize, name: &str) -> Outcome {
    required(target, name)?;
    positive(size, "size")?;
    context::current()?;
    let backing = Backing::new(size)?;
    let start = backing.start();
    insert(start, size, BlockKind::Pinned(backing));
    put(target, name, pointer(start))
}

fn insert(start: usize, size: usize, kind: BlockKind) {
    let block = Block { size, kind };
    registry::write().blocks.insert(start, block);
}

fn free_device(address: *mut c_void) -> Outcome {
    let start = required(address, "devPtr")?;
    context::current()?;
    let mut registry = registry::write();
    match registry.blocks.get(&start).map(|block| &block.kind) {
        Some(BlockKind::Device(..)) => registry.give_back(start),
        Some(BlockKind::Managed(_)) => {}
        _ => {
            return fail(RT_PARAM_INVALID, format!("devPtr={address:?} is not the start of device memory"));
        }
    }
    let block = registry.blocks.remove(&start);
    drop(registry);
    if let Some(Block { size, kind: BlockKind::Device(device, ..) }) = block {
        registry::discharge(device, size);
    }
    Ok(())
}

fn free_host(address: *mut c_void) -> Outcome {
    let start = required(address, "hostPtr")?;
    let mut registry = registry::write();
    let pinned = registry.blocks.get(&start).is_some_and(|block| matches!(block.kind, BlockKind::Pinned(_)));
    check(pinned, RT_PARAM_INVALID, || format!("hostPtr={address:?} is not the start of pinned memory"))?;
    registry.blocks.remove(&start);
    Ok(())
}
