//! What every part needs to be a guest in another program's process: the thread's block, guards around our own work, a
//! heap and a log of our own.

mod allocator;
pub mod edge;
pub mod first_thread;
pub mod log;
pub mod state;
pub mod thread;
pub mod wiped;
