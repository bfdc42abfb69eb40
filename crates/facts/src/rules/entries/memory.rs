//! Rules of the memory on both sides: that it is there, aligned, and reachable.

use crate::rules::entries::prelude::*;

/// ALIGN-64
pub static ALIGN_64: Rule = Rule {
    number: 10,
    id: "ALIGN-64",
    steps: &[Step::advice(60, LINEAR.asynchronous())],
    severity: Severity::Violation,
    grades: &[
        Grade::accepted(
            Severity::Violation,
            "CANN 8.x, every copy; later, copies with both sides in device memory, by the places where they are known, else by the kind",
        ),
        Grade::accepted(
            Severity::Portability,
            "every other copy of later releases, and of a release that is not known",
        ),
    ],
    is_reported_once: true,
    has_quick_check: true,
    statement: "source and destination must be aligned to 64 bytes",
    sources: &[
        Doc(
            "CANN 8.x, aclrtMemcpyAsync and aclrtMemcpyAsyncWithCondition, Restrictions, all models: both addresses must be 64-byte aligned",
        ),
        Header("acl_rt.h, aclrtMemcpyAsync: demanded only of copies inside a device"),
        Doc("the present page of aclrtMemcpyAsync does not name it"),
        Runtime("no check of it for these functions, so the call goes through"),
    ],
    fix: "allocate with aclrtMalloc or aclrtMallocHost, whose memory is aligned, and keep offsets at multiples of 64",
    check: align_64,
    cases: cases![
        Case::bad(
            aclrtMemcpyAsync,
            "16 bytes off, inside the device",
            &[DEVICE + 16, 64, DEVICE + 4096, 64, 3, STREAM],
        ),
        Case::bad(aclrtMemcpyAsync, "16 bytes off, from the host", &[DEVICE, 64, PINNED + 16, 64, 1, STREAM])
            .within(Scene { cann: Some(Version { major: 8, minor: 5 }), ..Scene::PLAIN }),
        Case::bad(
            aclrtMemcpyAsyncWithCondition,
            "the same in later releases: portability only",
            &[DEVICE, 64, PINNED + 16, 64, 1, STREAM],
        ),
        Case::good(aclrtMemcpyAsync, "64 bytes on", &[DEVICE + 64, 64, DEVICE + 4096, 64, 3, STREAM]),
        Case::good(aclrtMemcpy, "the synchronous copy has no such rule", &[DEVICE + 16, 64, DEVICE + 4096, 64, 3]),
    ],
    ..Rule::DEFAULT
};

fn align_64(s: &Subject) -> Verdict {
    let Form::Linear { dst, src, count, kind, .. } = s.call.form else { return Verdict::Holds };
    let (dst, src) = (dst as usize, src as usize);
    if (dst | src) % 64 == 0 || count == 0 || dst == 0 || src == 0 || dst == src {
        return Verdict::Holds;
    }
    let severity = match s.world.cann {
        Some(release) if release < Version::V9_0 => Severity::Violation,
        _ => {
            let places = (s.world.memory.region(dst).place, s.world.memory.region(src).place);
            let is_on_device = match places {
                (Place::Unknown, _) | (_, Place::Unknown) => kind.0 == DEVICE_TO_DEVICE,
                (Place::Device(_), Place::Device(_)) => true,
                _ => false,
            };
            if is_on_device { Severity::Violation } else { Severity::Portability }
        }
    };
    Verdict::Broken(s.finding(if dst % 64 == 0 { Role::Src } else { Role::Dst }, severity))
}

pub static UNALLOCATED: Rule = Rule {
    number: 14,
    id: "UNALLOCATED",
    steps: &[
        Step::vendor(380, SET_DESC.or(DESCRIBED)).part(desc_there),
        Step::vendor(390, SET_DESC.or(FILL_WORDS)).part(dst_there),
        Step::vendor(400, SET_DESC).part(src_there),
        Step::vendor(520, LINEAR.or(TO_SYMBOL).asynchronous().or(PITCHED)).part(src_looked_at),
        Step::vendor(530, LINEAR.or(FROM_SYMBOL).asynchronous().or(PITCHED)).part(dst_looked_at),
        Step::vendor(620, INDIRECT).part(src_there),
        Step::vendor(630, INDIRECT).part(dst_there),
        Step::vendor(670, LINEAR.or(PITCHED.asynchronous()).or(FROM_SYMBOL).or(FILL)).part(dst_there),
        Step::vendor(700, LINEAR.or(PITCHED.asynchronous()).or(TO_SYMBOL)).part(src_there),
        Step::item(BATCH),
    ],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "always; a batch names the item in failIndex")],
    statement: "a device address must be allocated, and not freed yet",
    sources: &[Driver(
        "devmm_svm.c:2601: an address of the device's window without memory is DRV_ERROR_NOT_EXIST, for which the runtime has no code of its own",
    )],
    fix: "look for an early aclrtFree of this address, or for an address of another process",
    check: unallocated,
    cases: cases![
        Case::bad(aclrtMemcpy, "to freed memory", &[FREED, 64, PINNED, 64, 1]),
        Case::bad(aclrtMemsetAsync, "set freed memory", &[FREED, 64, 0, 64, STREAM]),
        Case::bad(aclrtMemcpyAsyncWithDesc, "a freed descriptor", &[FREED, 6, STREAM]),
        Case::good(aclrtMemcpy, "to the memory of another device", &[OTHER, 64, PINNED, 64, 1]),
        Case::good(aclrtMemcpyToSymbol, "to a variable", &[SYMBOL, PINNED, 64, 0, 1]),
    ],
    ..Rule::DEFAULT
};

fn is_there(s: &Subject, side: Option<Side>) -> Verdict {
    match side {
        Some(side) if side.region.place == Place::Unallocated => {
            Verdict::Broken(s.refusal(side.role, ACL_ERROR_RT_DRV_INTERNAL_ERROR))
        }
        Some(side) if side.region.place == Place::Unknown => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}

fn unallocated(s: &Subject) -> Verdict {
    let sides = [s.desc(), s.dst(), s.src()];
    let mut verdicts = sides.into_iter().map(|side| is_there(s, side));
    verdicts.find(|verdict| *verdict != Verdict::Holds).unwrap_or(Verdict::Holds)
}

/// The driver's look at the destination.
fn dst_there(s: &Subject) -> Verdict {
    is_there(s, s.dst())
}

/// The driver's look at the source.
fn src_there(s: &Subject) -> Verdict {
    is_there(s, s.src())
}

/// The driver's look at a descriptor.
fn desc_there(s: &Subject) -> Verdict {
    is_there(s, s.desc())
}

/// As [`dst_there`], where the runtime asks for places before it comes to the copy.
fn dst_looked_at(s: &Subject) -> Verdict {
    if_looked_at(s, dst_there)
}

/// As [`dst_looked_at`].
fn src_looked_at(s: &Subject) -> Verdict {
    if_looked_at(s, src_there)
}

fn if_looked_at(s: &Subject, look: fn(&Subject) -> Verdict) -> Verdict {
    match s.looks_at_places() {
        Some(true) => look(s),
        Some(false) => Verdict::Holds,
        None => Verdict::Unknown,
    }
}

pub static DEVICE_CLOSED: Rule = Rule {
    number: 15,
    id: "DEVICE-CLOSED",
    steps: &[Step::vendor(370, SET_DESC.or(DESCRIBED).or(FILL_WORDS)), Step::item(BATCH.synchronous())],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_INVALID_HANDLE, "always; a batch names item 0 in failIndex")],
    statement: "a device must be open before these functions can look at a pointer",
    sources: &[Driver("devmm_svm.c:2601: drvMemGetAttribute before any device is open is DRV_ERROR_INVALID_HANDLE")],
    fix: "call aclrtSetDevice first",
    check: device_closed,
    cases: cases![
        Case::bad(aclrtMemsetD32, "before aclrtSetDevice", &[PINNED, 64, 0, 16]).within(Scene {
            is_open: Some(false),
            has_context: None,
            ..Scene::PLAIN
        }),
        Case::good(aclrtMemsetD32, "after it", &[PINNED, 64, 0, 16]),
    ],
    ..Rule::DEFAULT
};

/// Whether the driver refuses to look at any pointer.
pub fn device_closed(s: &Subject) -> Verdict {
    match (s.world.is_open, s.world.has_context) {
        (Some(true), _) | (_, Some(true)) => Verdict::Holds,
        (Some(false), _) => {
            let role = if s.desc().is_some() { Role::Desc } else { Role::Dst };
            Verdict::Broken(s.refusal(role, ACL_ERROR_RT_INVALID_HANDLE))
        }
        _ => Verdict::Unknown,
    }
}

pub static PEER_ACCESS: Rule = Rule {
    number: 63,
    id: "PEER-ACCESS",
    steps: &[Step::advice(120, LINEAR.synchronous())],
    scope: Scope {
        products: &["Ascend 950", "Atlas A2", "Atlas inference series", "Atlas training series"],
        ..Scope::ALL
    },
    severity: Severity::Violation,
    grades: &[Grade::accepted(Severity::Violation, "always")
        .comes_to(Outcome::Said("what the driver makes of it is not known"))
        .documented_as(ACL_ERROR_INVALID_PARAM)],
    statement: "a copy between two devices needs aclrtDeviceCanAccessPeer and aclrtDeviceEnablePeerAccess first",
    sources: &[
        Doc(
            "aclrtMemcpy: copies between two devices on Ascend 950, Atlas A2, Atlas inference and training series; A3 is not listed",
        ),
        Ours("the public runtime has no check of it, and what the driver does is not public"),
    ],
    fix: "ask aclrtDeviceCanAccessPeer, then call aclrtDeviceEnablePeerAccess, in both directions",
    check: peer_access,
    cases: cases![
        Case::bad(aclrtMemcpy, "to another device", &[OTHER, 64, DEVICE, 64, 3]).within(APART),
        Case::good(aclrtMemcpy, "to another device, with access to it", &[OTHER, 64, DEVICE, 64, 3]),
        Case::good(aclrtMemcpy, "inside one device", &[DEVICE + 64, 64, DEVICE, 64, 3]).within(APART),
        Case::good(aclrtMemcpy, "to another device of an Atlas A3", &[OTHER, 64, DEVICE, 64, 3])
            .within(Scene { soc: Some("Ascend910_9391"), ..APART }),
    ],
    ..Rule::DEFAULT
};

const APART: Scene = Scene { has_peer_access: Some(false), ..Scene::PLAIN };

fn peer_access(s: &Subject) -> Verdict {
    let (Some(dst), Some(src)) = (s.dst(), s.src()) else { return Verdict::Holds };
    match (dst.region.place, src.region.place, s.world.product, s.world.has_peer_access) {
        (Place::Device(to), Place::Device(from), ..) if to == from => Verdict::Holds,
        (Place::Device(_), Place::Device(_), Some(product), Some(false)) => {
            let is_bound = PEER_ACCESS.scope.products.contains(&product.name);
            Verdict::broken_if(is_bound, s.finding(Role::Src, Severity::Violation))
        }
        (Place::Device(_), Place::Device(_), Some(_), Some(true)) => Verdict::Holds,
        (Place::Device(_) | Place::Unknown, Place::Device(_) | Place::Unknown, ..) => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}
