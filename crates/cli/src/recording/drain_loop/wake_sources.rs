//! What wakes a drain loop besides time: the doorbells of the processes that it drains, and their ends.

use super::doorbell_waiter::DoorbellWaiter;
use super::poll::{PollSet, Wakeup, process_end};
use aclshim_collect::drain::outside::{Drained, Outside};
use aclshim_collect::liveness::{Liveness, liveness};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Doorbells that are waited for at most, each by a thread: threads of a service are limited, and other workers need
/// some too. More processes are looked at by time.
const MOST_WAITERS: usize = 512;
/// The number of the wake-up in the set; ids begin with 1.
const WAKEUP: u64 = 0;
/// Added to the numbers of processes that are watched and not drained.
const UNDRAINED: u64 = 1 << 63;

/// What wakes a drain loop.
pub struct WakeSources {
    set: PollSet,
    wakeup: Arc<Wakeup>,
    processes: BTreeMap<u64, Source>,
    /// Processes that are watched and not drained, by pid.
    undrained: BTreeMap<u32, File>,
    waiters: usize,
}

/// What wakes the loop for one process.
struct Source {
    has_doorbell: bool,
    waiter: Option<DoorbellWaiter>,
    /// Readable when the process has ended; `None` where that is not known, or known already.
    end: Option<File>,
}

/// What has happened since this was last asked.
#[derive(Default)]
pub struct Events {
    /// Ids of processes that have ended.
    pub ended: Vec<u64>,
    /// Ids of processes whose doorbells have rung.
    pub rung: Vec<u64>,
    /// Whether a process that is watched and not drained has ended.
    pub has_undrained_ended: bool,
}

impl WakeSources {
    /// Of no process yet. `wakeup` also wakes the loop if another thread signals it.
    pub fn new(wakeup: Arc<Wakeup>) -> io::Result<Self> {
        let set = PollSet::new()?;
        set.add(wakeup.as_fd(), WAKEUP)?;
        Ok(Self { set, wakeup, processes: BTreeMap::new(), undrained: BTreeMap::new(), waiters: 0 })
    }

    /// Adds the processes that are drained now and were not before. Each of them is suspected: it may have ended before its
    /// end was watched. Returns how many there were.
    pub fn add_new(&mut self, outside: &mut Outside) -> usize {
        let mut new = Vec::new();
        for one in outside.drained() {
            if self.processes.contains_key(&one.id) {
                continue;
            }
            let source = self.source(one);
            self.processes.insert(one.id, source);
            new.push(one.id);
        }
        new.iter().for_each(|id| outside.suspect(*id));
        new.len()
    }

    fn source(&mut self, one: &Drained) -> Source {
        let header = one.file.shared_header().filter(|_| self.waiters < MOST_WAITERS);
        let waiter = header.and_then(|header| DoorbellWaiter::start(header, Arc::clone(&self.wakeup)).ok());
        self.waiters += usize::from(waiter.is_some());
        // The descriptor first: if the process lives afterwards, the descriptor is of that process.
        let end = process_end(one.drain.origin().pid).ok();
        let end = end.filter(|_| liveness(one.drain.origin()) == Liveness::Alive);
        let end = end.filter(|end| self.set.add(end.as_fd(), one.id).is_ok());
        Source { has_doorbell: one.has_doorbell(), waiter, end }
    }

    /// A process is not drained any more.
    pub fn remove(&mut self, id: u64) {
        let source = self.processes.remove(&id);
        self.waiters -= usize::from(source.is_some_and(|source| source.waiter.is_some()));
    }

    /// Watches the ends of processes that are not drained, and of no others.
    pub fn watch_ends(&mut self, pids: &[u32]) {
        self.undrained.retain(|pid, _| pids.contains(pid));
        for pid in pids {
            if !self.undrained.contains_key(pid)
                && let Ok(end) = process_end(*pid)
                && self.set.add(end.as_fd(), UNDRAINED | u64::from(*pid)).is_ok()
            {
                self.undrained.insert(*pid, end);
            }
        }
    }

    /// Whether all doorbells are waited for. Otherwise the loop has to look by time.
    pub fn are_complete(&self) -> bool {
        let is_complete =
            |source: &Source| !source.has_doorbell || source.waiter.as_ref().is_some_and(|waiter| !waiter.has_failed());
        self.processes.values().all(is_complete)
    }

    /// Waits for doorbells again; they all say that the loop sleeps.
    pub fn arm(&self) {
        self.processes.values().filter_map(|source| source.waiter.as_ref()).for_each(DoorbellWaiter::arm);
    }

    /// What has happened since this was last asked.
    pub fn events(&mut self) -> Events {
        let mut events = Events::default();
        for number in self.set.readable() {
            if number == WAKEUP {
                self.wakeup.clear();
            } else if number & UNDRAINED != 0 {
                self.undrained.remove(&((number & !UNDRAINED) as u32));
                events.has_undrained_ended = true;
            } else if let Some(source) = self.processes.get_mut(&number) {
                // It would stay readable.
                source.end = None;
                events.ended.push(number);
            }
        }
        let has_rung = |source: &Source| source.waiter.as_ref().is_some_and(DoorbellWaiter::has_rung);
        events.rung.extend(self.processes.iter().filter(|(_, source)| has_rung(source)).map(|(id, _)| *id));
        events
    }
}

impl AsFd for WakeSources {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
