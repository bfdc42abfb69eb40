//! A recorded call as the page needs it, whatever its function.

use aclshim_facts::Function;
use aclshim_facts::call::{Call, Form};
use aclshim_trace::record::{self, INJECTED, REFUSED};

/// Where the bytes of a call go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Direction {
    /// From the host to a device.
    HostToDevice,
    /// From a device to the host.
    DeviceToHost,
    /// Between devices, or on one.
    DeviceToDevice,
    /// On the host.
    HostToHost,
    /// Memory is set, not copied.
    Set,
    /// The call says neither.
    Other,
}

impl Direction {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::HostToDevice, Self::DeviceToHost, Self::DeviceToDevice, Self::HostToHost, Self::Set, Self::Other];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostToDevice => "host to device",
            Self::DeviceToHost => "device to host",
            Self::DeviceToDevice => "device to device",
            Self::HostToHost => "host to host",
            Self::Set => "set",
            Self::Other => "not said",
        }
    }

    fn of_places(dst: u8, src: u8) -> Self {
        // The vendor's types of places: 0 and 4 are the host's, 1 is a device.
        let is_host = |place: u8| matches!(place, 0 | 4);
        match (dst, src) {
            (1, 1) => Self::DeviceToDevice,
            (1, src) if is_host(src) => Self::HostToDevice,
            (dst, 1) if is_host(dst) => Self::DeviceToHost,
            (dst, src) if is_host(dst) && is_host(src) => Self::HostToHost,
            _ => Self::Other,
        }
    }

    fn of(decoded: &Call, call: &record::Call) -> Self {
        let kind = match decoded.form {
            Form::Fill { .. } | Form::FillWords { .. } => return Self::Set,
            Form::Batch(_) => {
                let places = call.batch.as_ref().and_then(|batch| batch.direction);
                return places.map_or(Self::Other, |(dst, src)| Self::of_places(dst, src));
            }
            Form::Linear { kind, .. }
            | Form::Pitched { kind, .. }
            | Form::Indirect { kind, .. }
            | Form::Described { kind, .. }
            | Form::FromSymbol { kind, .. }
            | Form::ToSymbol { kind, .. }
            | Form::DescSize { kind, .. }
            | Form::SetDesc { kind, .. } => kind,
        };
        match kind.name() {
            Some("HOST_TO_HOST") => Self::HostToHost,
            Some("HOST_TO_DEVICE" | "HOST_TO_BUF_TO_DEVICE") => Self::HostToDevice,
            Some("DEVICE_TO_HOST") => Self::DeviceToHost,
            Some("DEVICE_TO_DEVICE" | "INNER_DEVICE_TO_DEVICE" | "INTER_DEVICE_TO_DEVICE") => Self::DeviceToDevice,
            _ => Self::Other,
        }
    }
}

/// A recorded call.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    /// The process, by its position in what was read.
    pub process: usize,
    /// The thread's id.
    pub thread: u32,
    /// The function.
    pub function: Function,
    /// Where its bytes go.
    pub direction: Direction,
    /// The stream of an asynchronous call; 0 is the default stream.
    pub stream: Option<u64>,
    /// The bytes that it asks for.
    pub bytes: u64,
    /// When it began, in nanoseconds since 1970, if that can be told.
    pub time_ns: Option<u64>,
    /// How long it took, if it has returned and that can be told.
    pub duration_ns: Option<u64>,
    /// What it returned, if it has.
    pub code: Option<i32>,
    /// The rules that it breaks, a bit each.
    pub rules: u128,
    /// Where it came from.
    pub site: u64,
    /// Its number on its thread.
    pub number: u64,
    /// Whether the vendor made it inside another.
    pub is_nested: bool,
    /// Whether it was refused by a rule, and not forwarded.
    pub is_refused: bool,
    /// Whether its result was asked for by a setting or a test.
    pub is_injected: bool,
}

impl Happening {
    /// Of what was recorded of a call; times, code, bytes and rules are what the reader makes of them.
    pub fn new(process: usize, thread: u32, function: Function, call: &record::Call) -> Self {
        let decoded = function.call(&call.arguments);
        Self {
            process,
            thread,
            function,
            direction: Direction::of(&decoded, call),
            stream: decoded.stream.map(|stream| stream as u64),
            bytes: 0,
            time_ns: None,
            duration_ns: None,
            code: call.end.map(|end| end.code),
            rules: call.findings,
            site: call.site,
            number: call.number,
            is_nested: call.is_nested,
            is_refused: call.flags & REFUSED != 0,
            is_injected: call.flags & INJECTED != 0,
        }
    }

    /// Whether it returned something else than 0.
    pub fn has_failed(&self) -> bool {
        self.code.is_some_and(|code| code != 0)
    }

    /// The bytes that it moved: those that it asks for, if it returned 0.
    pub fn moved(&self) -> u64 {
        if self.code == Some(0) { self.bytes } else { 0 }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A copy of 64 bytes to the device that returned 0 after 10 ns.
    pub fn copy(time_ns: u64) -> Happening {
        Happening {
            process: 0,
            thread: 7,
            function: Function::aclrtMemcpy,
            direction: Direction::HostToDevice,
            stream: None,
            bytes: 64,
            time_ns: Some(time_ns),
            duration_ns: Some(10),
            code: Some(0),
            rules: 0,
            site: 0x1000,
            number: 1,
            is_nested: false,
            is_refused: false,
            is_injected: false,
        }
    }

    fn direction(function: Function, arguments: &[u64], batch: Option<(u8, u8)>) -> Direction {
        let mut words = [0; record::ARGUMENTS];
        words[..arguments.len()].copy_from_slice(arguments);
        let call = record::Call {
            number: 0,
            function: function as u8,
            arguments: words,
            begin: 0,
            end: None,
            site: 0,
            is_nested: false,
            findings: 0,
            flags: 0,
            scope: 0,
            batch: batch.map(|direction| record::Batch { direction: Some(direction), ..Default::default() }),
        };
        Happening::new(0, 1, function, &call).direction
    }

    #[test]
    fn the_direction_is_what_the_call_says() {
        for (kind, said) in [
            (0, Direction::HostToHost),
            (1, Direction::HostToDevice),
            (2, Direction::DeviceToHost),
            (3, Direction::DeviceToDevice),
            (4, Direction::Other),
            (5, Direction::HostToDevice),
            (6, Direction::DeviceToDevice),
            (77, Direction::Other),
        ] {
            assert_eq!(direction(Function::aclrtMemcpy, &[1, 2, 3, 4, kind], None), said, "{kind}");
        }
        assert_eq!(direction(Function::aclrtMemset, &[1, 2, 3, 4], None), Direction::Set);
        let batch = |places| direction(Function::aclrtMemcpyBatch, &[], places);
        assert_eq!(batch(None), Direction::Other);
        assert_eq!(batch(Some((1, 0))), Direction::HostToDevice);
        assert_eq!(batch(Some((0, 1))), Direction::DeviceToHost);
        assert_eq!(batch(Some((1, 1))), Direction::DeviceToDevice);
        assert_eq!(batch(Some((4, 0))), Direction::HostToHost);
        assert_eq!(batch(Some((1, 2))), Direction::Other);
    }
}
