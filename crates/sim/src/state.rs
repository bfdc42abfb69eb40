//! Everything that changes: the registry of memory, and the world of all other objects, each under its lock.

pub mod context;
pub mod event;
pub mod model;
pub mod object;
pub mod queue;
pub mod registry;
pub mod stream;
pub mod task;
pub mod world;
