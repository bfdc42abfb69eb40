//! Questions about memory: where a pointer points, how much is left.

use crate::config::settings::settings;
use crate::edge::argument::{entry, exports, pointer, put, required};
use crate::edge::error::{Outcome, RT_PARAM_INVALID, check, fail};
use crate::state::context;
use crate::state::registry::{self, BlockKind, Location, locate};
use std::ffi::c_void;

/// `aclrtPtrAttributes`
#[repr(C)]
pub struct Attributes {
    id: u32,
    kind: i32,
    page_size: u32,
    reserved: [u32; 4],
}

/// What the driver says of every pointer.
const PAGE_SIZE: u32 = 4096;

/// Number of values of `aclrtMemAttr`.
const MEMORY_KINDS: i32 = 18;

/// The memory types `aclrtCheckMemType` may be asked for: device, reserved, media.
const TYPES: u32 = TYPE_DEVICE | 0x20 | 0x8;
const TYPE_DEVICE: u32 = 0x2;

exports! {
    /// Where a pointer points: host 0, device 1, unregistered 2, managed 3.
    fn aclrtPointerGetAttributes(ptr: *const c_void, attributes: *mut Attributes) => {
        let address = required(ptr, "ptr")?;
        required(attributes, "attributes")?;
        let (id, kind) = match locate(address)? {
            Location::Host => (0, 0),
            Location::Device(id) => (id, 1),
            Location::Unregistered => (0, 2),
            Location::Managed => (0, 3),
        };
        put(attributes, "attributes", Attributes { id, kind, page_size: PAGE_SIZE, reserved: [0; 4] })
    };
    /// What the thread's device has left and in all. All kinds of memory are one here.
    fn aclrtGetMemInfo(attr: i32, free: *mut usize, total: *mut usize) => {
        required(free, "free")?;
        required(total, "total")?;
        check((0..MEMORY_KINDS).contains(&attr), RT_PARAM_INVALID, || {
            format!("attr={attr} is not in [0, {MEMORY_KINDS})")
        })?;
        let device = context::current()?.device;
        put(free, "free", registry::free(device) as usize)?;
        put(total, "total", settings().memory as usize)
    };
    /// Where the block of device memory around a pointer begins, and its size.
    fn aclrtMemGetAddressRange(
        ptr: *mut c_void, pbase: *mut *mut c_void, psize: *mut usize,
    ) => range(ptr, pbase, psize);
    /// Whether all addresses are memory of a type: 1 if so.
    fn aclrtCheckMemType(
        addrList: *const *mut c_void, size: u32, memType: u32, checkResult: *mut u32, reserve: u32,
    ) => {
        required(addrList, "addrList")?;
        put(checkResult, "checkResult", 0)?;
        check(reserve == 0, RT_PARAM_INVALID, || format!("reserve={reserve} must be 0"))?;
        check(size > 0, RT_PARAM_INVALID, || "size=0 must be greater than 0".into())?;
        check(memType & !TYPES == 0, RT_PARAM_INVALID, || {
            format!("memType={memType:#x} is not a combination of {TYPES:#x}")
        })?;
        context::current()?;
        let of_device = |at| matches!(locate(entry(addrList, at as usize).addr()), Ok(Location::Device(_)));
        let all = memType & TYPE_DEVICE != 0 && (0..size).all(of_device);
        put(checkResult, "checkResult", u32::from(all))
    };
}

fn range(address: *mut c_void, base: *mut *mut c_void, size: *mut usize) -> Outcome {
    let at = required(address, "ptr")?;
    context::current()?;
    let registry = registry::read();
    let found = registry.find(at);
    let Some((start, block)) = found.filter(|(_, block)| {
        matches!(block.kind, BlockKind::Device(..) | BlockKind::Mapped(..) | BlockKind::Pinned(_))
    }) else {
        return fail(RT_PARAM_INVALID, format!("ptr={address:?} is in no block"));
    };
    if !base.is_null() {
        put(base, "pbase", pointer(start))?;
    }
    if !size.is_null() {
        put(size, "psize", block.size)?;
    }
    Ok(())
}
