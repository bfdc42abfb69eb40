//! Streams: tasks in order, each stream with a worker thread of its own that starts with its first task; events, and
//! captures.

mod api;
pub mod capture;
mod event;
mod queue;
mod recording;
mod tickets;
mod worker;

pub use queue::{
    create, destroy_all_of, in_current_context, is_captured, limit, named, submit, synchronize, synchronize_any,
    synchronize_device,
};
