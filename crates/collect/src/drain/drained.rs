//! One process of a drain outside: its ring file, what writes its records, and when it is looked at again.

use crate::drain::{Drain, adoption};
use aclshim_trace::reader::{self, ReadMode, RingFile};
use aclshim_trace::ring::doorbell;
use aclshim_trace::ring::growth;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

/// The first and the longest time after which a failed write is tried again. The records stay in the ring meanwhile.
const FAILED_NAPS_NS: [u64; 2] = [20_000_000, 640_000_000];
/// What a process that is gone has left is tried again after this long: nothing is lost meanwhile.
const ENDED_NAP_NS: u64 = 1_000_000_000;

/// A process that is drained.
pub struct Drained {
    /// Its ring file.
    pub file: RingFile,
    /// What writes its records.
    pub drain: Drain,
    /// A number that no other process of this drain has had.
    pub id: u64,
    /// Whether it is gone, and what it has left could not be written yet.
    pub(super) has_ended: bool,
    /// Whether something indicates that it has ended.
    pub(super) is_suspected: bool,
    /// Whether a writer has woken the drain since the last pass.
    pub(super) has_rung: bool,
    /// Until then nothing is tried; 0 while all can be written.
    rests_until: u64,
    /// The time for which it rests after the next failure.
    failed_nap_ns: u64,
    /// What its writers had announced when the last pass began.
    progress: Option<Progress>,
    /// `Header::growth` after it was last renewed.
    growth: Option<u64>,
}

/// What the writers of a process announce to its drain.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Progress {
    rings: u32,
    /// Sum of the marks of all rings. Marks only grow, so it changes with each of them.
    marks: u64,
}

/// What a pass over one process did.
#[derive(Clone, Copy, Default)]
pub(super) struct ProcessPass {
    /// Slots written.
    pub slots: u64,
    /// Whether one of its rings was half full.
    pub is_behind: bool,
}

impl Drained {
    pub(super) fn new(file: RingFile, drain: Drain, id: u64) -> Self {
        Self {
            file,
            drain,
            id,
            has_ended: false,
            is_suspected: false,
            has_rung: false,
            rests_until: 0,
            failed_nap_ns: FAILED_NAPS_NS[0],
            progress: None,
            growth: None,
        }
    }

    /// Whether its writers ring the doorbell of its header. A file of version 1 is that of a process that is gone.
    pub fn has_doorbell(&self) -> bool {
        !self.file.is_copy()
    }

    fn progress(&self) -> Progress {
        let header = self.file.header();
        let rings = header.rings.load(Ordering::Acquire);
        let made = (0..rings.min(aclshim_trace::reader::MOST_RINGS) as usize).filter_map(|ring| self.file.ring(ring));
        let marks = made.map(|ring| ring.control.mark.load(Ordering::Relaxed)).fold(0, u64::wrapping_add);
        Progress { rings, marks }
    }

    /// Whether a writer has announced something since the last pass began. What cannot be written is tried again by time.
    pub(super) fn has_news(&self) -> bool {
        !self.has_ended && self.rests_until == 0 && (self.has_rung || self.progress != Some(self.progress()))
    }

    /// When to try again what could not be written.
    pub(super) fn retry_ns(&self) -> Option<u64> {
        (self.rests_until > 0).then_some(self.rests_until)
    }

    pub(super) fn is_resting(&self, now: u64) -> bool {
        now < self.rests_until
    }

    /// Writes what there is.
    pub(super) fn pass(&mut self, how: ReadMode, now: u64) -> ProcessPass {
        self.has_rung = false;
        self.file.look_for_rings();
        // Before the pass: what comes while it runs is news afterwards.
        self.progress = Some(self.progress());
        let has_doorbell = self.has_doorbell();
        let Self { file, drain, .. } = self;
        let rings = || (0..super::rings(file.header())).filter_map(|number| Some((number, file.ring(number)?)));
        let is_behind = rings().any(|(_, ring)| {
            let (mark, drained) = (&ring.control.mark, &ring.control.drained);
            let waiting = mark.load(Ordering::Relaxed).saturating_sub(drained.load(Ordering::Relaxed));
            waiting > ring.stored() as u64 / 2
        });
        if has_doorbell {
            reader::allocate_ahead(file.header(), file.file().as_raw_fd(), rings());
        }
        let slots = drain.pass(file.header(), |number| file.ring(number), how);
        self.renew_growth();
        if self.drain.is_well() {
            (self.rests_until, self.failed_nap_ns) = (0, FAILED_NAPS_NS[0]);
        } else {
            self.rests_until = now + self.failed_nap_ns;
            self.failed_nap_ns = (2 * self.failed_nap_ns).min(FAILED_NAPS_NS[1]);
        }
        ProcessPass { slots, is_behind: is_behind && self.rests_until == 0 && slots > 0 }
    }

    /// Renews how far the rings may grow, if that has changed.
    fn renew_growth(&mut self) {
        let header = self.file.header();
        if !self.has_doorbell() || self.growth == Some(header.growth.load(Ordering::Relaxed)) {
            return;
        }
        growth::renew(header, self.file.file().as_raw_fd());
        self.growth = Some(header.growth.load(Ordering::Relaxed));
    }

    /// Writes what a process that is gone has left, and returns whether all is written.
    pub(super) fn finish(&mut self, now: u64) -> bool {
        let is_done = adoption::finish_with(&mut self.file, &mut self.drain);
        if !is_done {
            self.rests_until = now + ENDED_NAP_NS;
        }
        is_done
    }

    pub(super) fn announce_sleep(&self) {
        if self.has_doorbell() && !self.has_ended {
            doorbell::announce_sleep(&self.file.header().doorbell);
        }
    }

    pub(super) fn stay_awake(&self) {
        if self.has_doorbell() && !self.has_ended {
            doorbell::stay_awake(&self.file.header().doorbell);
        }
    }
}
