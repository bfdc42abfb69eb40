//! Copies whose addresses the device reads when their turn comes: from cells (`WithOffset`) or from a descriptor.

use super::kind::Kind;
use super::linear;
use super::transfer;
use crate::config::settings::settings;
use crate::edge::argument::{put, required};
use crate::edge::error::{INVALID_PARAM, Outcome, RT_FEATURE_NOT_SUPPORT, RT_PARAM_INVALID, check, fail};
use crate::gate::gated;
use crate::state::context;
use crate::state::registry::{Location, locate};
use crate::state::task::Task;
use crate::stream;
use std::ffi::c_void;

/// The most bytes the copy engine moves in one such task.
const MAX_COUNT: usize = 1 << 32;

/// Offsets have 48 bits.
const MAX_OFFSET: usize = (1 << 48) - 1;

const DESCRIPTOR_ALIGNMENT: usize = 64;

/// A descriptor as the device reads it.
#[repr(C)]
struct Descriptor {
    reserved: [u32; 3],
    length: u32,
    src: u64,
    dst: u64,
    /// Only the larger descriptor has these.
    more: [u64; 4],
}

gated! {
    /// Copies between the addresses that stand in the cells `dst` and `src`, each moved by its offset.
    fn aclrtMemcpyAsyncWithOffset(
        dst: *mut *mut c_void, destMax: usize, dstDataOffset: usize, src: *mut *const c_void, count: usize,
        srcDataOffset: usize, kind: i32, stream: *mut c_void,
    ) => {
        if count == 0 && settings().cann.accepts_nothing() {
            return Ok(());
        }
        check(kind == 6, RT_PARAM_INVALID, || format!("kind={kind} must be 6, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE"))?;
        check(settings().product.offset, RT_FEATURE_NOT_SUPPORT, || "this product has no copy by offset".into())?;
        let stream = stream::named(stream)?;
        let cells = Cells {
            dst: dst.addr(), max: destMax, dst_offset: dstDataOffset,
            src: src.addr(), count, src_offset: srcDataOffset,
        };
        cells.check()?;
        context::current()?;
        locate(cells.src)?;
        locate(cells.dst)?;
        let stream = stream::in_current_context(stream)?;
        stream::submit(Some(stream), Task::moving(move |clock| {
            clock.spend(count)?;
            cells.copy()
        }))
    };
    /// The size of a descriptor for copies of this kind.
    fn aclrtGetMemcpyDescSize(kind: i32, descSize: *mut usize) => {
        required(descSize, "descSize")?;
        let kind = Kind::parse(kind)?;
        let size = descriptor_size()?;
        check_inner(kind)?;
        put(descSize, "descSize", size)
    };
    /// Writes a descriptor into device memory. Note that the source comes first.
    fn aclrtSetMemcpyDesc(
        desc: *mut c_void, kind: i32, srcAddr: *mut c_void, dstAddr: *mut c_void, count: usize, config: *mut c_void,
    ) => {
        let desc = required(desc, "desc")?;
        let kind = Kind::parse(kind)?;
        let src = required(srcAddr, "srcAddr")?;
        let dst = required(dstAddr, "dstAddr")?;
        check(count != 0, INVALID_PARAM, || "count=0 must be greater than 0".into())?;
        check(config.is_null(), INVALID_PARAM, || "config must be NULL".into())?;
        let size = descriptor_size()?;
        check_inner(kind)?;
        write_descriptor(desc, size, src, dst, count)
    };
    /// Copies what a descriptor says when the stream comes to it. A NULL stream is refused.
    fn aclrtMemcpyAsyncWithDesc(desc: *mut c_void, kind: i32, stream: *mut c_void) => {
        let desc = required(desc, "desc")?;
        let kind = Kind::parse(kind)?;
        required(stream, "stream")?;
        descriptor_size()?;
        let stream = stream::named(stream)?;
        check_inner(kind)?;
        check_on_device(desc)?;
        check_aligned(desc)?;
        stream::submit(stream, Task::moving(move |clock| {
            let length = (transfer::word(desc + 8)? >> 32) & 0xffff_ffff;
            let (src, dst) = (transfer::word(desc + 16)?, transfer::word(desc + 24)?);
            clock.spend(length)?;
            transfer::copy_by_engine(dst, src, length)
        }))
    };
}

#[derive(Clone, Copy)]
struct Cells {
    dst: usize,
    max: usize,
    dst_offset: usize,
    src: usize,
    count: usize,
    src_offset: usize,
}

impl Cells {
    fn check(self) -> Outcome {
        let Self { dst, max, dst_offset, src, count, src_offset } = self;
        check(dst != 0 && src != 0, RT_PARAM_INVALID, || format!("dst={dst:#x} and src={src:#x} must not be NULL"))?;
        check(count != 0 && count <= max, RT_PARAM_INVALID, || format!("count={count} must be in (0, destMax={max}]"))?;
        check(count <= MAX_COUNT, RT_PARAM_INVALID, || format!("count={count} must not exceed {MAX_COUNT}"))?;
        for (name, offset) in [("srcDataOffset", src_offset), ("dstDataOffset", dst_offset)] {
            check(offset <= MAX_OFFSET, RT_PARAM_INVALID, || {
                format!("{name}={offset:#x} must not exceed {MAX_OFFSET:#x}")
            })?;
        }
        check(dst_offset < max, RT_PARAM_INVALID, || {
            format!("dstDataOffset={dst_offset} must be less than destMax={max}")
        })?;
        check(count <= max - dst_offset, RT_PARAM_INVALID, || {
            format!("count={count} must not exceed destMax={max} - dstDataOffset={dst_offset}")
        })
    }

    fn copy(self) -> Outcome {
        let dst = transfer::word(self.dst)?.wrapping_add(self.dst_offset);
        let src = transfer::word(self.src)?.wrapping_add(self.src_offset);
        transfer::copy_by_engine(dst, src, self.count)
    }
}

fn descriptor_size() -> Outcome<usize> {
    match settings().product.descriptor {
        Some(size) => Ok(size),
        None => fail(RT_FEATURE_NOT_SUPPORT, "this product has no copy by descriptor"),
    }
}

fn check_inner(kind: Kind) -> Outcome {
    check(kind == Kind::InnerDevice, RT_FEATURE_NOT_SUPPORT, || format!("kind={kind:?} must be InnerDevice, 6"))
}

fn check_aligned(desc: usize) -> Outcome {
    check(desc.is_multiple_of(DESCRIPTOR_ALIGNMENT), RT_PARAM_INVALID, || {
        format!("desc={desc:#x} is not aligned to {DESCRIPTOR_ALIGNMENT} bytes")
    })
}

fn check_on_device(desc: usize) -> Outcome {
    let place = locate(desc)?;
    check(matches!(place, Location::Device(_)), RT_PARAM_INVALID, || {
        format!("desc={desc:#x} is {place:?} memory, not the device's")
    })
}

fn write_descriptor(desc: usize, size: usize, src: usize, dst: usize, count: usize) -> Outcome {
    check(count <= MAX_COUNT, RT_PARAM_INVALID, || format!("count={count} must not exceed {MAX_COUNT}"))?;
    check_aligned(desc)?;
    locate(desc)?;
    let (to, from) = (locate(dst)?, locate(src)?);
    check_on_device(desc)?;
    check(to == from && matches!(to, Location::Device(_)), RT_PARAM_INVALID, || {
        format!("srcAddr is {from:?} and dstAddr {to:?} memory; both must be one device's")
    })?;
    let descriptor = Descriptor {
        reserved: [0; 3],
        // Exactly 4 GiB becomes 0, as with the vendor.
        length: count as u32,
        src: src as u64,
        dst: dst as u64,
        more: [0; 4],
    };
    let bytes = std::ptr::from_ref(&descriptor).expose_provenance();
    // By the driver itself: a capture is nothing to it.
    linear::by_driver(desc, bytes, size)
}
