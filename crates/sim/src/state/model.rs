//! A captured model: tasks that run at each execution.

use super::object::Head;
use super::stream::Stream;
use super::task::Task;
use crate::edge::error::{Outcome, RT_PARAM_INVALID, fail};
use std::collections::BTreeSet;
use std::thread::ThreadId;

/// The magic number of a model.
pub const MAGIC: u64 = 0x006c_6564_6f6d_4353;

/// A model as C code holds it.
#[repr(C)]
pub struct ModelHandle {
    /// Its identity and whether it lives.
    pub head: Head,
}

/// How far a capture reaches, from the widest to the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum CaptureMode {
    /// Forbids synchronous work to every thread of the context.
    Global = 0,
    /// Forbids it to the thread that captures.
    ThreadLocal = 1,
    /// Forbids nothing.
    Relaxed = 2,
}

impl CaptureMode {
    /// The mode of that number; 107000 for any other.
    pub fn parse(value: i32) -> Outcome<Self> {
        match value {
            0 => Ok(Self::Global),
            1 => Ok(Self::ThreadLocal),
            2 => Ok(Self::Relaxed),
            _ => fail(RT_PARAM_INVALID, format!("mode={value} is not in [0, 3)")),
        }
    }
}

/// What was captured, and while it is, by whom.
pub struct Model {
    /// As C code holds it.
    pub handle: &'static ModelHandle,
    /// What is run at each execution.
    pub tasks: Vec<Task>,
    /// The stream on which the capture began.
    pub origin: &'static Stream,
    /// The thread that began it.
    pub thread: ThreadId,
    /// How far it reaches.
    pub mode: CaptureMode,
    /// Whether the capture is still under way.
    pub open: bool,
    /// Streams that joined through an event and have not been waited for since.
    pub unjoined: BTreeSet<u64>,
}

impl Model {
    /// The stream has new work that its origin has not waited for.
    pub fn outdate(&mut self, stream: &'static Stream) {
        if !std::ptr::eq(stream, self.origin) {
            self.unjoined.insert(stream.head.id);
        }
    }
}
