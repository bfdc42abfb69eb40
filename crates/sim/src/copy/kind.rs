//! The direction of a copy: what the caller says, and what the runtime makes of it when it knows the addresses.

use crate::edge::error::{INVALID_PARAM, Outcome, RT_PARAM_INVALID, fail};
use crate::state::registry::Location;

/// `aclrtMemcpyKind`
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// 0
    HostToHost,
    /// 1
    HostToDevice,
    /// 2
    DeviceToHost,
    /// 3
    DeviceToDevice,
    /// 4: by the addresses
    Default,
    /// 5: host to device through a buffer
    HostToBufToDevice,
    /// 6: inside one device
    InnerDevice,
    /// 7: between two devices
    InterDevice,
}

use Kind::{
    Default, DeviceToDevice, DeviceToHost, HostToBufToDevice, HostToDevice, HostToHost, InnerDevice, InterDevice,
};

impl Kind {
    /// The kind behind a C value; 100000 if there is none.
    pub fn parse(value: i32) -> Outcome<Self> {
        match value {
            0 => Ok(HostToHost),
            1 => Ok(HostToDevice),
            2 => Ok(DeviceToHost),
            3 => Ok(DeviceToDevice),
            4 => Ok(Default),
            5 => Ok(HostToBufToDevice),
            6 => Ok(InnerDevice),
            7 => Ok(InterDevice),
            _ => fail(INVALID_PARAM, format!("kind={value} is not a copy kind")),
        }
    }

    /// The kind behind a C value, if it is one of `allowed`; 100000 otherwise.
    pub fn one_of(value: i32, allowed: &[Self]) -> Outcome<Self> {
        let kind = Self::parse(value)?;
        if allowed.contains(&kind) {
            Ok(kind)
        } else {
            fail(INVALID_PARAM, format!("kind={value} ({kind:?}) must be one of {allowed:?}"))
        }
    }

    /// The kinds of a linear copy.
    pub fn linear(value: i32) -> Outcome<Self> {
        let allowed = [HostToHost, HostToDevice, DeviceToHost, DeviceToDevice, Default, HostToBufToDevice];
        Self::one_of(value, &allowed)
    }

    /// What the runtime makes of this kind, given where the memory is: it forces the kind where both sides are known,
    /// accepts some kinds where one is pageable, and refuses the rest with 107000.
    pub fn revise(self, src: Location, dst: Location) -> Outcome<Self> {
        use Location::{Device, Host, Managed, Unregistered};
        let (allowed, default): (&[Self], Self) = match (src, dst) {
            (Device(_), Device(_)) => return Ok(DeviceToDevice),
            (Device(_), Host) => return Ok(DeviceToHost),
            (Host, Device(_)) => return Ok(HostToDevice),
            (Host, Host) => return Ok(HostToHost),
            (Managed, _) | (_, Managed) => return Ok(self),
            (Device(_), Unregistered) => (&[DeviceToHost, DeviceToDevice], DeviceToHost),
            (Unregistered, Device(_)) => (&[HostToDevice, DeviceToDevice], HostToDevice),
            (Host, Unregistered) => (&[HostToHost, HostToDevice], HostToHost),
            (Unregistered, Host) => (&[HostToHost, DeviceToHost], HostToHost),
            (Unregistered, Unregistered) => (&[HostToHost, HostToDevice, DeviceToHost, DeviceToDevice], HostToHost),
        };
        if self == Default {
            Ok(default)
        } else if allowed.contains(&self) {
            Ok(self)
        } else {
            fail(RT_PARAM_INVALID, format!("kind={self:?} does not fit src in {src:?} and dst in {dst:?} memory"))
        }
    }

    /// Whether pageable memory takes part in a copy over the bus, which the runtime then does synchronously.
    pub fn is_pageable(self, src: Location, dst: Location) -> bool {
        let over_the_bus = self != HostToHost && self != DeviceToDevice;
        over_the_bus && (src == Location::Unregistered || dst == Location::Unregistered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Location::{Device, Host, Managed, Unregistered};

    fn revised(kind: Kind, src: Location, dst: Location) -> Option<Kind> {
        kind.revise(src, dst).ok()
    }

    #[test]
    fn a_kind_is_replaced_where_both_sides_are_known() {
        for kind in [HostToHost, HostToDevice, DeviceToHost, DeviceToDevice, Default] {
            assert_eq!(revised(kind, Device(0), Device(1)), Some(DeviceToDevice));
            assert_eq!(revised(kind, Device(0), Host), Some(DeviceToHost));
            assert_eq!(revised(kind, Host, Device(0)), Some(HostToDevice));
            assert_eq!(revised(kind, Host, Host), Some(HostToHost));
        }
    }

    #[test]
    fn a_kind_against_pageable_memory_is_checked() {
        assert_eq!(revised(HostToHost, Unregistered, Device(0)), None);
        assert_eq!(revised(Default, Unregistered, Device(0)), Some(HostToDevice));
        assert_eq!(revised(HostToDevice, Device(0), Unregistered), None);
        assert_eq!(revised(DeviceToHost, Host, Unregistered), None);
        assert_eq!(revised(HostToDevice, Unregistered, Host), None);
        assert_eq!(revised(Default, Unregistered, Unregistered), Some(HostToHost));
    }

    #[test]
    fn a_kind_with_managed_memory_stays() {
        assert_eq!(revised(Default, Managed, Device(0)), Some(Default));
        assert_eq!(revised(HostToHost, Device(0), Managed), Some(HostToHost));
    }
}
