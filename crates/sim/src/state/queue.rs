//! What changes of a stream: its queue of tasks.

use super::stream::Stream;
use super::task::Task;
use crate::edge::error::Fail;
use std::collections::VecDeque;

/// What changes of a stream.
#[derive(Default)]
pub struct Queue {
    /// Tasks that wait for the worker.
    pub tasks: VecDeque<Task>,
    /// Whether the worker runs a task.
    pub running: bool,
    /// Number of tasks that it was ever given.
    pub given: u64,
    /// Number of these tasks that are over.
    pub over: u64,
    /// Whether its worker thread was started.
    pub has_worker: bool,
    /// The first failure since the last synchronization.
    pub failure: Option<Fail>,
    /// Whose queue it is.
    pub stream: Option<&'static Stream>,
    /// The task under way has to give up.
    pub aborting: bool,
    /// The model that captures this stream.
    pub capture: Option<u64>,
}

impl Queue {
    /// Whether all tasks are over.
    pub fn is_idle(&self) -> bool {
        self.over >= self.given
    }

    /// Drops the tasks that wait.
    pub fn drop_tasks(&mut self) {
        self.over += self.tasks.len() as u64;
        self.tasks.clear();
    }

    /// In the child of a fork: the worker stayed with the parent, and so did its tasks.
    pub fn forget_worker(&mut self) {
        self.tasks.clear();
        self.over = self.given;
        self.running = false;
        self.has_worker = false;
        self.aborting = false;
    }
}
