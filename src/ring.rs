//! The ring file of this process, and a ring for each thread that copies.

pub mod fork;
pub mod handshake;
pub mod identity;
pub mod inherited;
pub mod process;
pub mod rings;
pub mod storage;
