//! Words that the drain thread and the threads of its host share.

use crate::guest::edge::Backoff;
use core::sync::atomic::{AtomicBool, AtomicU32};

/// What the drain and its host have to say to each other; zero in a fork child.
#[repr(C)]
pub struct DrainHandshake {
    /// One of the states of the drain's module.
    pub state: AtomicU32,
    /// How often the host has asked for everything to be written.
    pub asked: AtomicU32,
    /// Which of these the drain has answered.
    pub answered: AtomicU32,
    /// 1 once the drain's thread has done its work.
    pub has_ended: AtomicU32,
    /// Whether the first thread of the program has ended.
    pub is_first_thread_gone: AtomicBool,
    /// Whether it has its supervisor.
    pub is_supervised: AtomicBool,
    /// How long its start is put off.
    pub backoff: Backoff,
}
