//! `aclrtMemcpyBatch` and its relatives: many ranges in one call.
//!
//! The arrays are read no further and in no other order than the vendor reads them.

use super::linear;
use super::transfer;
use crate::config::settings::settings;
use crate::edge::argument::{entry, positive, required};
use crate::edge::error::{INVALID_PARAM, Outcome, RT_FEATURE_NOT_SUPPORT, RT_PARAM_INVALID, check, fail};
use crate::gate::gated;
use crate::state::context;
use crate::state::registry::{self, Location, locate};
use crate::state::stream::Stream;
use crate::state::task::Clock;
use crate::stream;
use std::ffi::c_void;

/// `aclrtMemcpyBatchAttr`: where the caller says the memory is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attribute {
    dst: BlockKind,
    src: BlockKind,
    reserved: [u8; 16],
}

/// `aclrtMemLocation`
#[repr(C)]
#[derive(Clone, Copy)]
struct BlockKind {
    id: u32,
    kind: i32,
}

/// `ACL_MEM_LOCATION_TYPE_HOST`
const HOST: i32 = 0;
/// `ACL_MEM_LOCATION_TYPE_DEVICE`
const DEVICE: i32 = 1;
/// `ACL_MEM_LOCATION_TYPE_HOST_NUMA`
const HOST_NUMA: i32 = 4;
/// `ACL_MEM_LOCATION_TYPE_MANAGED`
const MANAGED: i32 = 3;

/// The most items the driver takes in one synchronous batch.
const DRIVER_LIMIT: usize = 4096;

gated! {
    /// Copies a batch, now. `failIndex` names the item that is wrong, or `SIZE_MAX`.
    fn aclrtMemcpyBatch(
        dsts: *const *mut c_void, destMaxs: *const usize, srcs: *const *mut c_void, sizes: *const usize,
        numBatches: usize, attrs: *const Attribute, attrsIndexes: *const usize, numAttrs: usize, failIndex: *mut usize,
    ) => {
        let batch = Batch {
            dsts, maxs: destMaxs, srcs, sizes, count: numBatches, attrs, indexes: attrsIndexes, attr_count: numAttrs,
            fail_index: FailIndex::Required(failIndex),
        };
        batch.now()
    };
    /// As `aclrtMemcpyBatch`, without `failIndex`.
    #[cfg(not(feature = "cann-8-5"))]
    fn aclrtMemcpyBatchV2(
        dsts: *const *mut c_void, destMaxs: *const usize, srcs: *const *mut c_void, sizes: *const usize,
        numBatches: usize, attrs: *const Attribute, attrsIndexes: *const usize, numAttrs: usize,
    ) => {
        let batch = Batch {
            dsts, maxs: destMaxs, srcs, sizes, count: numBatches, attrs, indexes: attrsIndexes, attr_count: numAttrs,
            fail_index: FailIndex::None,
        };
        batch.now()
    };
    /// Copies a batch on a stream; an item of pageable memory is done when the call returns.
    fn aclrtMemcpyBatchAsync(
        dsts: *const *mut c_void, destMaxs: *const usize, srcs: *const *mut c_void, sizes: *const usize,
        numBatches: usize, attrs: *const Attribute, attrsIndexes: *const usize, numAttrs: usize, failIndex: *mut usize,
        stream: *mut c_void,
    ) => {
        let batch = Batch {
            dsts, maxs: destMaxs, srcs, sizes, count: numBatches, attrs, indexes: attrsIndexes, attr_count: numAttrs,
            fail_index: FailIndex::Required(failIndex),
        };
        batch.on_stream(stream)
    };
    /// As `aclrtMemcpyBatchAsync`, without `failIndex`.
    #[cfg(not(feature = "cann-8-5"))]
    fn aclrtMemcpyBatchAsyncV2(
        dsts: *const *mut c_void, destMaxs: *const usize, srcs: *const *mut c_void, sizes: *const usize,
        numBatches: usize, attrs: *const Attribute, attrsIndexes: *const usize, numAttrs: usize, stream: *mut c_void,
    ) => {
        let batch = Batch {
            dsts, maxs: destMaxs, srcs, sizes, count: numBatches, attrs, indexes: attrsIndexes, attr_count: numAttrs,
            fail_index: FailIndex::None,
        };
        batch.on_stream(stream)
    };
}

/// Where the number of the wrong item goes.
#[derive(Clone, Copy)]
enum FailIndex {
    /// To the caller, who must have room for it.
    Required(*mut usize),
    /// Nowhere: the form without it.
    None,
}

impl FailIndex {
    fn check(self) -> Outcome {
        match self {
            Self::Required(target) => required(target, "failIndex").map(drop),
            Self::None => Ok(()),
        }
    }

    fn set(self, index: usize) {
        match self {
            // SAFETY: `check` has refused NULL; the rest is the caller's promise.
            Self::Required(target) => unsafe { target.write_unaligned(index) },
            Self::None => {}
        }
    }
}

/// The arguments of a batch.
#[derive(Clone, Copy)]
struct Batch {
    dsts: *const *mut c_void,
    maxs: *const usize,
    srcs: *const *mut c_void,
    sizes: *const usize,
    count: usize,
    attrs: *const Attribute,
    indexes: *const usize,
    attr_count: usize,
    fail_index: FailIndex,
}

/// One item, and where its two sides really are.
struct Item {
    dst: usize,
    src: usize,
    size: usize,
    pageable: bool,
}

/// What the outer layer says.
enum Verdict {
    Nothing,
    GoOn,
}

impl Batch {
    fn now(self) -> Outcome {
        if let Verdict::Nothing = self.outer()? {
            return Ok(());
        }
        self.fail_index.set(usize::MAX);
        self.check_attributes(Some(DRIVER_LIMIT))?;
        self.all_now()
    }

    /// A synchronous batch: every item is looked at before the first is copied.
    fn all_now(self) -> Outcome {
        let mut items = Vec::new();
        self.each(|batch, at, attribute| {
            items.push(batch.item(at, attribute)?);
            Ok(())
        })?;
        check(items.len() <= DRIVER_LIMIT, RT_FEATURE_NOT_SUPPORT, || {
            format!("numBatches={} is more than the driver takes", items.len())
        })?;
        let empty = items.iter().position(|item| item.size == 0);
        check(empty.is_none(), RT_PARAM_INVALID, || format!("sizes[{}]=0 among others", empty.unwrap_or(0)))?;
        for item in &items {
            registry::covers(item.dst, item.size, "dsts")?;
            registry::covers(item.src, item.size, "srcs")?;
        }
        Clock::Caller.spend(items.iter().map(|item| item.size).sum())?;
        for item in items {
            transfer::copy(item.dst, item.src, item.size)?;
        }
        Ok(())
    }

    fn on_stream(self, stream: *mut c_void) -> Outcome {
        if let Verdict::Nothing = self.outer()? {
            return Ok(());
        }
        let stream = stream::named(stream)?;
        self.fail_index.set(usize::MAX);
        self.check_attributes(None)?;
        context::current()?;
        if settings().product.batch_checked_whole { self.whole(stream) } else { self.each_by_itself(stream) }
    }

    /// The older chips: an item is looked at when those before it are already on their way.
    fn each_by_itself(self, stream: Option<&'static Stream>) -> Outcome {
        for (at, attribute) in self.attributed() {
            let item = self.item_on_stream(at, attribute);
            let item = item.inspect_err(|_| self.fail_index.set(at))?;
            if item.pageable {
                stream::synchronize_any(stream)?;
                linear::now(item.dst, item.src, item.size)?;
            } else {
                linear::enqueue(item.dst, item.src, item.size, stream)?;
            }
        }
        Ok(())
    }

    /// The newer chips: all items are looked at first, and one of pageable memory makes the whole batch synchronous.
    fn whole(self, stream: Option<&'static Stream>) -> Outcome {
        let on = stream::in_current_context(stream)?;
        let mut items = Vec::new();
        self.each(|batch, at, attribute| {
            items.push(batch.item_on_stream(at, attribute)?);
            Ok(())
        })?;
        if items.iter().any(|item| item.pageable) {
            check(!stream::is_captured(on), RT_PARAM_INVALID, || {
                "a copy of pageable memory cannot be captured".into()
            })?;
            stream::synchronize_any(stream)?;
            return self.all_now();
        }
        for item in items {
            linear::enqueue(item.dst, item.src, item.size, stream)?;
        }
        Ok(())
    }

    /// The checks that leave `failIndex` as it is.
    fn outer(self) -> Outcome<Verdict> {
        if settings().cann.accepts_nothing() {
            self.fail_index.check()?;
            required(self.sizes, "sizes")?;
            positive(self.count, "numBatches")?;
            if (0..self.count).all(|at| entry(self.sizes, at) == 0) {
                self.fail_index.set(usize::MAX);
                return Ok(Verdict::Nothing);
            }
            self.check_arrays()?;
        } else {
            self.check_arrays()?;
            self.fail_index.check()?;
            positive(self.count, "numBatches")?;
        }
        for at in 0..self.count {
            let (max, size) = (entry(self.maxs, at), entry(self.sizes, at));
            check(size <= max, INVALID_PARAM, || format!("sizes[{at}]={size} must not exceed destMaxs[{at}]={max}"))?;
        }
        for at in 0..self.attr_count {
            let reserved = entry(self.attrs, at).reserved;
            check(reserved == [0; 16], INVALID_PARAM, || format!("attrs[{at}].rsv must be 0"))?;
        }
        check(settings().product.batch, RT_FEATURE_NOT_SUPPORT, || "this product has no batch copy".into())?;
        Ok(Verdict::GoOn)
    }

    fn check_arrays(self) -> Outcome {
        required(self.dsts, "dsts")?;
        required(self.maxs, "destMaxs")?;
        required(self.srcs, "srcs")?;
        required(self.sizes, "sizes")?;
        required(self.attrs, "attrs")?;
        required(self.indexes, "attrsIndexes")?;
        Ok(())
    }

    fn check_attributes(self, limit: Option<usize>) -> Outcome {
        let (count, attr_count) = (self.count, self.attr_count);
        check(attr_count != 0, RT_PARAM_INVALID, || "numAttrs=0 must be greater than 0".into())?;
        check(attr_count <= count, RT_PARAM_INVALID, || {
            format!("numAttrs={attr_count} must not exceed numBatches={count}")
        })?;
        let limit = limit.unwrap_or(usize::MAX);
        check(count <= limit, RT_PARAM_INVALID, || format!("numBatches={count} must not exceed {limit}"))?;
        let mut before = entry(self.indexes, 0);
        check(before == 0, RT_PARAM_INVALID, || format!("attrsIndexes[0]={before} must be 0"))?;
        for at in 1..attr_count {
            let index = entry(self.indexes, at);
            check(index > before, RT_PARAM_INVALID, || {
                format!("attrsIndexes[{at}]={index} must be greater than the one before, {before}")
            })?;
            check(index < count, RT_PARAM_INVALID, || {
                format!("attrsIndexes[{at}]={index} must be less than numBatches={count}")
            })?;
            before = index;
        }
        Ok(())
    }

    /// Every item with the attribute that applies to it.
    fn attributed(self) -> impl Iterator<Item = (usize, Attribute)> {
        let mut attribute = entry(self.attrs, 0);
        let mut index = 0;
        (0..self.count).map(move |at| {
            if index + 1 < self.attr_count && at >= entry(self.indexes, index + 1) {
                index += 1;
                attribute = entry(self.attrs, index);
            }
            (at, attribute)
        })
    }

    /// Looks at every item; the first that fails is named in `failIndex`.
    fn each(self, mut look: impl FnMut(Self, usize, Attribute) -> Outcome) -> Outcome {
        for (at, attribute) in self.attributed() {
            look(self, at, attribute).inspect_err(|_| self.fail_index.set(at))?;
        }
        Ok(())
    }

    fn item_on_stream(self, at: usize, attribute: Attribute) -> Outcome<Item> {
        let (size, max) = (entry(self.sizes, at), entry(self.maxs, at));
        check(size != 0 && size <= max, RT_PARAM_INVALID, || {
            format!("sizes[{at}]={size} must be in (0, destMaxs[{at}]={max}]")
        })?;
        check(!entry(self.srcs, at).is_null(), RT_PARAM_INVALID, || format!("srcs[{at}] must not be NULL"))?;
        check(!entry(self.dsts, at).is_null(), RT_PARAM_INVALID, || format!("dsts[{at}] must not be NULL"))?;
        self.item(at, attribute)
    }

    /// An item whose sides are where its attribute says, one on the host and one on a device.
    fn item(self, at: usize, attribute: Attribute) -> Outcome<Item> {
        let (dst, src) = (entry(self.dsts, at).addr(), entry(self.srcs, at).addr());
        let to = locate(dst)?;
        attribute.dst.matches(to, "dsts", at)?;
        let from = locate(src)?;
        attribute.src.matches(from, "srcs", at)?;
        check(kind_of(to) != kind_of(from), RT_PARAM_INVALID, || {
            format!("item {at} goes from {from:?} to {to:?}; one must be the host, one a device")
        })?;
        Ok(Item {
            dst,
            src,
            size: entry(self.sizes, at),
            pageable: to == Location::Unregistered || from == Location::Unregistered,
        })
    }
}

impl BlockKind {
    /// 107000 unless the memory is where the attribute says. Pageable memory counts as the host's.
    fn matches(self, real: Location, array: &str, at: usize) -> Outcome {
        let said = if self.kind == HOST_NUMA { HOST } else { self.kind };
        let same_device = !matches!(real, Location::Device(id) if id != self.id);
        if said == kind_of(real) && same_device {
            return Ok(());
        }
        let (kind, id) = (self.kind, self.id);
        fail(RT_PARAM_INVALID, format!("{array}[{at}] is {real:?} memory; its attribute says type {kind}, id {id}"))
    }
}

fn kind_of(location: Location) -> i32 {
    match location {
        Location::Device(_) => DEVICE,
        Location::Host | Location::Unregistered => HOST,
        Location::Managed => MANAGED,
    }
}
