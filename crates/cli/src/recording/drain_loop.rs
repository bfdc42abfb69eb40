//! The loop of a drain outside, of `aclshim collect` and of `aclshim run`: it sleeps while nothing happens.
//!
//! | woken by | then |
//! |---|---|
//! | a doorbell: a writer has filled a quarter of a ring | passes over the rings of that process |
//! | a file that comes into the folder | drains it |
//! | a ring file that is closed, or a process that ends | looks whether the process of that ring is gone |
//! | time: a second after records were written, else ten | passes over all rings, and looks at all processes |
//!
//! | | |
//! |---|---|
//! | [`wake_sources`], [`doorbell_waiter`] | doorbells and ends of processes, as one descriptor |
//! | [`search`] | finds ring files, however many there are |
//! | [`poll`] | system calls that wait |

mod doorbell_waiter;
pub mod poll;
pub mod search;
mod wake_sources;

use aclshim_collect::drain::outside::{Considered, Drained, Outside};
use aclshim_trace::system::clock::monotonic_ns;
use poll::{Wakeup, Watched};
use search::{Round, Search};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wake_sources::{Events, WakeSources};

/// The time between two passes over all rings: while records come, and otherwise. Records are safe in the rings, and all
/// commands read them there.
const LOOKS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// The pause where a doorbell cannot be waited for. A shorter sleep is not announced to writers.
const NAP: Duration = Duration::from_millis(4);
/// How long a new file, which may be incomplete, is looked at again after each [`FRESH_NAP`].
const FRESH: Duration = Duration::from_millis(50);
const FRESH_NAP: Duration = Duration::from_millis(1);
/// Files that are looked at again so soon. More are found by rounds.
const MOST_FRESH: usize = 256;
/// How long a process whose ring file was closed is looked at again after each [`NAP`]: the system says so shortly before.
const CLOSED: Duration = Duration::from_millis(12);
/// How long files are looked at between two passes: while there is a process, and else. Others may have put any number
/// of them there.
const SEARCH: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];

/// A drain outside, and what wakes it.
pub struct DrainLoop {
    // Dropped before the ring files, whose locks end with them.
    /// `None` where the system has no descriptors for them.
    sources: Option<WakeSources>,
    pub outside: Outside,
    search: Search,
    /// Files that came and were not ready, and when.
    fresh: Vec<(PathBuf, Instant)>,
    /// Processes whose ring files were closed, and when.
    closed: Vec<(u64, Instant)>,
    next_look: Instant,
    is_behind: bool,
    /// Whether there is a process.
    is_idle: bool,
    state: LoopState,
}

/// Counts whose change is worth a report.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct LoopState {
    drained: usize,
    troubled: usize,
    strange: usize,
    waiting: usize,
}

/// What one turn of the loop did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Slots written by passes. (What ended processes have left is not counted.)
    pub slots: u64,
    /// Processes that are drained now.
    pub processes: usize,
    /// Processes that ended.
    pub ended: usize,
    /// Whether records were written, or processes or problems came or ended.
    pub has_changed: bool,
    /// Whether all processes were looked at, by time.
    pub is_look: bool,
    /// Whether one of the [watched](DrainLoop::watch_ends) processes has ended.
    pub has_undrained_ended: bool,
}

impl DrainLoop {
    /// Of the processes of `outside`, whose ring files are in `folder`. `wakeup` also wakes it if another thread signals it.
    pub fn new(outside: Outside, folder: &Path, wakeup: Option<Arc<Wakeup>>) -> Self {
        Self {
            sources: wakeup.and_then(|wakeup| WakeSources::new(wakeup).ok()),
            outside,
            search: Search::new(folder, Watched::ArrivalsAndCloses),
            fresh: Vec::new(),
            closed: Vec::new(),
            next_look: Instant::now() + LOOKS[0],
            is_behind: false,
            is_idle: true,
            state: LoopState::default(),
        }
    }

    /// Does what there is to do, and hands processes that are not drained any more to `done`.
    pub fn turn(&mut self, mut done: impl FnMut(&mut Drained)) -> Turn {
        let is_look = Instant::now() >= self.next_look;
        let events = self.sources.as_mut().map(WakeSources::events).unwrap_or_default();
        self.find();
        let has_new = self.sources.as_mut().is_some_and(|sources| sources.add_new(&mut self.outside) > 0);
        self.suspect(&events);
        let (outside, sources) = (&mut self.outside, &mut self.sources);
        let mut ended = 0;
        let done = |one: &mut Drained| {
            ended += 1;
            if let Some(sources) = sources {
                sources.remove(one.id);
            }
            done(one);
        };
        if is_look {
            outside.end(done);
        } else {
            outside.end_suspected(done);
        }
        if ended > 0 && outside.waiting() > 0 {
            self.search.request(Duration::ZERO);
        }
        let passed = if is_look { outside.pass() } else { outside.pass_announced() };
        self.is_behind = passed.is_behind;
        self.is_idle = passed.processes == 0;
        self.schedule(is_look, passed.slots > 0 || has_new);
        let before = std::mem::replace(&mut self.state, LoopState::of(&mut self.outside));
        Turn {
            slots: passed.slots,
            processes: passed.processes,
            ended,
            has_changed: passed.slots > 0 || ended > 0 || before != self.state,
            is_look,
            has_undrained_ended: events.has_undrained_ended,
        }
    }

    /// Takes files that came.
    fn find(&mut self) {
        let (outside, now) = (&mut self.outside, Instant::now());
        let changes = self.search.changes();
        for path in changes.arrived {
            if outside.consider(path.clone()) == Considered::Unready && self.fresh.len() < MOST_FRESH {
                self.fresh.push((path, now));
            }
        }
        for path in changes.closed {
            match outside.id_of(&path) {
                Some(id) => self.closed.push((id, now)),
                None => _ = outside.consider(path),
            }
        }
        let before = self.fresh.len();
        let mut is_unready = false;
        self.fresh.retain(|(path, came)| {
            let is_fresh = came.elapsed() < FRESH;
            let is_retried = outside.consider(path.clone()) == Considered::Unready;
            is_unready |= is_retried && !is_fresh;
            is_retried && is_fresh
        });
        if is_unready || before == MOST_FRESH {
            self.search.request(LOOKS[0]);
        }
        let each = |path| is_unready |= outside.consider(path) == Considered::Unready;
        if self.search.advance(SEARCH[usize::from(self.is_idle)], each) == Round::Finished {
            outside.end_round();
            if is_unready {
                // With the next look, which has to come anyway.
                self.search.allow(LOOKS[1] / 2);
            }
        }
    }

    fn suspect(&mut self, events: &Events) {
        events.ended.iter().chain(self.closed.iter().map(|(id, _)| id)).for_each(|id| self.outside.suspect(*id));
        self.closed.retain(|(_, when)| when.elapsed() < CLOSED);
        events.rung.iter().for_each(|id| self.outside.ring(*id));
    }

    fn schedule(&mut self, is_look: bool, is_active: bool) {
        let now = Instant::now();
        if is_look {
            self.next_look = now + LOOKS[1];
        }
        if is_active {
            self.next_look = self.next_look.min(now + LOOKS[0]);
        }
    }

    /// Sleeps until something happens, at most `most`; returns which of `others` can be read.
    pub fn sleep(&mut self, others: &[BorrowedFd<'_>], most: Duration) -> Vec<bool> {
        let mut time = self.time_to_sleep().min(most);
        if time > NAP && !self.outside.announce_sleep() {
            time = Duration::ZERO;
        }
        let mut files = others.to_vec();
        if let Some(sources) = &self.sources {
            if time > NAP {
                sources.arm();
            }
            files.push(sources.as_fd());
        }
        files.extend(self.search.watch());
        let mut ready = poll::wait(&files, time);
        self.outside.stay_awake();
        ready.truncate(others.len());
        ready
    }

    fn time_to_sleep(&self) -> Duration {
        if self.is_behind || self.is_idle && self.search.is_in_round() {
            return Duration::ZERO;
        }
        if !self.fresh.is_empty() || self.search.is_in_round() {
            return FRESH_NAP;
        }
        let now = Instant::now();
        let until = |then: Instant| then.saturating_duration_since(now);
        let is_complete = self.sources.as_ref().is_some_and(WakeSources::are_complete);
        let nap = (!self.closed.is_empty() || !is_complete).then_some(NAP);
        let retry = self.outside.retry_ns().map(|at| Duration::from_nanos(at.saturating_sub(monotonic_ns())));
        let times = [Some(until(self.next_look)), self.search.due().map(until), nap, retry];
        times.into_iter().flatten().min().unwrap_or(LOOKS[1])
    }

    /// Also wakes the loop when one of these processes ends; of others it does not any more.
    pub fn watch_ends(&mut self, pids: &[u32]) {
        if let Some(sources) = &mut self.sources {
            sources.watch_ends(pids);
        }
    }

    /// Writes what there is, for the last time for now; returns how many processes go on.
    pub fn finish(&mut self) -> usize {
        self.outside.find();
        let sources = &mut self.sources;
        self.outside.end(|one| {
            if let Some(sources) = sources {
                sources.remove(one.id);
            }
        });
        self.outside.pass().processes
    }
}

impl LoopState {
    fn of(outside: &mut Outside) -> Self {
        let (strange, waiting) = (outside.strange().len(), outside.waiting());
        let mut state = Self { strange, waiting, ..Self::default() };
        for one in outside.drained() {
            state.drained += 1;
            state.troubled += usize::from(!one.drain.is_well());
        }
        state
    }
}
