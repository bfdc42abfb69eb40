//! A recorded call as the page needs it, whatever its function.

use aclshim_collect::interpreter::visitor::CallView;
use aclshim_facts::Function;
use aclshim_facts::call::Form;
use aclshim_facts::direction;

/// Where the bytes of a call go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TransferKind {
    HostToDevice,
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

impl TransferKind {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::HostToDevice, Self::DeviceToHost, Self::DeviceToDevice, Self::HostToHost, Self::Set, Self::Other];

    /// The name on the page.
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

    fn of(seen: &CallView) -> Self {
        match seen.direction() {
            direction::Direction::HostToDevice => Self::HostToDevice,
            direction::Direction::DeviceToHost => Self::DeviceToHost,
            direction::Direction::DeviceToDevice => Self::DeviceToDevice,
            direction::Direction::HostToHost => Self::HostToHost,
            direction::Direction::Unknown => match seen.decoded().form {
                Form::Fill { .. } | Form::FillWords { .. } => Self::Set,
                _ => Self::Other,
            },
        }
    }
}

/// A recorded call.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEvent {
    /// The process, by its position in what was read.
    pub process: usize,
    pub thread: u32,
    pub function: Function,
    /// Where its bytes go.
    pub direction: TransferKind,
    /// The stream of an asynchronous call; 0 is the default stream.
    pub stream: Option<u64>,
    /// The bytes that it asks for.
    pub bytes: u64,
    /// When it began, in nanoseconds since 1970, if it is known.
    pub time_ns: Option<u64>,
    /// How long it took, if it has returned and that is known.
    pub duration_ns: Option<u64>,
    /// What it returned, if it has.
    pub code: Option<i32>,
    /// The rules that it breaks, a bit each.
    pub rules: u128,
    pub site: u64,
    /// Its number on its thread.
    pub number: u64,
    /// The scope that was open, 0 if none.
    pub scope: u32,
    /// Whether the vendor made it inside another.
    pub is_nested: bool,
    /// Whether it was refused by a rule, and not forwarded.
    pub is_refused: bool,
    /// Whether its result was asked for by a setting or a test.
    pub is_injected: bool,
}

impl TimelineEvent {
    /// The event of a recorded call.
    pub fn new(seen: &CallView) -> Self {
        let call = seen.call;
        Self {
            process: seen.whose.process,
            thread: seen.whose.thread,
            function: seen.function,
            direction: TransferKind::of(seen),
            stream: seen.stream(),
            bytes: seen.bytes(),
            time_ns: seen.time_ns(),
            duration_ns: seen.duration_ns(),
            code: seen.code(),
            rules: seen.rules,
            site: call.site,
            number: call.number,
            scope: call.scope,
            is_nested: call.is_nested,
            is_refused: seen.is_refused(),
            is_injected: call.is_injected(),
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
pub(super) mod tests {
    use super::*;

    /// A copy of 64 bytes to the device that returned 0 after 10 ns.
    pub fn copy(time_ns: u64) -> TimelineEvent {
        TimelineEvent {
            process: 0,
            thread: 7,
            function: Function::aclrtMemcpy,
            direction: TransferKind::HostToDevice,
            stream: None,
            bytes: 64,
            time_ns: Some(time_ns),
            duration_ns: Some(10),
            code: Some(0),
            rules: 0,
            site: 0x1000,
            number: 1,
            scope: 0,
            is_nested: false,
            is_refused: false,
            is_injected: false,
        }
    }
}
