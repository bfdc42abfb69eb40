//! The direction of a copy, as far as its arguments say.

use crate::vendor::abi::{
    DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_BUF_TO_DEVICE, HOST_TO_DEVICE, HOST_TO_HOST, INNER_DEVICE_TO_DEVICE,
    INTER_DEVICE_TO_DEVICE,
};

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the host to a device.
    HostToDevice,
    /// From a device to the host.
    DeviceToHost,
    /// Within a device or from one to another.
    DeviceToDevice,
    /// Within the host.
    HostToHost,
    /// The arguments do not say: a fill, the kind DEFAULT, a batch that goes both ways.
    Unknown,
}

impl Direction {
    /// All of them.
    pub const ALL: [Direction; 5] =
        [Self::HostToDevice, Self::DeviceToHost, Self::DeviceToDevice, Self::HostToHost, Self::Unknown];

    /// Its name for display.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostToDevice => "host to device",
            Self::DeviceToHost => "device to host",
            Self::DeviceToDevice => "device to device",
            Self::HostToHost => "host to host",
            Self::Unknown => "unknown",
        }
    }

    /// Its name in a selector.
    pub fn short(self) -> &'static str {
        match self {
            Self::HostToDevice => "h2d",
            Self::DeviceToHost => "d2h",
            Self::DeviceToDevice => "d2d",
            Self::HostToHost => "h2h",
            Self::Unknown => "unknown",
        }
    }

    /// By the number of a kind of copy.
    pub fn of_kind(kind: i32) -> Self {
        match kind {
            HOST_TO_HOST => Self::HostToHost,
            HOST_TO_DEVICE | HOST_TO_BUF_TO_DEVICE => Self::HostToDevice,
            DEVICE_TO_HOST => Self::DeviceToHost,
            DEVICE_TO_DEVICE | INNER_DEVICE_TO_DEVICE | INTER_DEVICE_TO_DEVICE => Self::DeviceToDevice,
            _ => Self::Unknown,
        }
    }

    /// By the types of the locations that a batch goes to and comes from (`aclrtMemLocationType`). Managed memory may be
    /// anywhere.
    pub fn of_places(dst: i32, src: i32) -> Self {
        let is_device = |location: i32| match location {
            0 | 2 | 4 => Some(false),
            1 => Some(true),
            _ => None,
        };
        match (is_device(dst), is_device(src)) {
            (Some(true), Some(true)) => Self::DeviceToDevice,
            (Some(true), Some(false)) => Self::HostToDevice,
            (Some(false), Some(true)) => Self::DeviceToHost,
            (Some(false), Some(false)) => Self::HostToHost,
            _ => Self::Unknown,
        }
    }
}
