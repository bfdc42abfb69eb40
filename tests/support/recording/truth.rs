//! What a host says of itself in the file `truth`: `hosts/record_host.h`, read.

use crate::support::{Output, Stat};
use std::fs;
use std::path::Path;

/// How many lanes there are.
pub const LANES: usize = 2047;

/// What a host says of itself.
pub struct Truth(Vec<u8>);

/// How far a lane is.
#[derive(Clone, Copy)]
pub struct Lane {
    /// Calls that have begun.
    pub begun: u64,
    /// Calls that have ended.
    pub ended: u64,
    /// Who calls.
    pub thread: u64,
    /// In which process.
    pub process: u64,
}

impl Truth {
    /// As it stands in a folder, which may have none yet.
    pub fn of(folder: &Path) -> Self {
        Self(fs::read(folder.join("truth")).unwrap_or_default())
    }

    /// A word of the file.
    pub fn word(&self, at: usize) -> u64 {
        self.0.get(8 * at..8 * at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap()))
    }

    /// How many orders are done: `hosts/record_steps.c`.
    pub fn steps(&self) -> u64 {
        self.word(2)
    }

    /// One lane.
    pub fn lane(&self, lane: usize) -> Lane {
        let [begun, ended, thread, process] = [0, 1, 2, 3].map(|at| self.word(8 + 8 * lane + at));
        Lane { begun, ended, thread, process }
    }

    /// Those that have called.
    pub fn lanes(&self) -> impl Iterator<Item = Lane> {
        (0..LANES).map(|lane| self.lane(lane)).filter(|lane| lane.begun > 0)
    }

    /// How many calls have begun.
    pub fn begun(&self) -> u64 {
        self.lanes().map(|lane| lane.begun).sum()
    }

    /// How many have ended.
    pub fn ended(&self) -> u64 {
        self.lanes().map(|lane| lane.ended).sum()
    }
}

/// How many calls a host has made, which came to its end.
#[track_caller]
pub fn made(output: &Output) -> u64 {
    let truth = Truth::of(&output.scratch);
    assert!(truth.begun() > 0, "the host's own count");
    assert!(truth.lanes().all(|lane| lane.begun == lane.ended), "{} begun, {} ended", truth.begun(), truth.ended());
    truth.begun()
}

/// The balance as `aclshim stat` has it: each call that was made is recorded, or counted as not recorded, or went with a
/// file that was removed.
#[track_caller]
pub fn tally(output: &Output, stat: &Stat) -> [u64; 3] {
    let sums = ["calls", "not_recorded", "evicted"].map(|key| stat.total(key));
    assert_eq!(sums.iter().sum::<u64>(), made(output), "calls, not recorded, evicted: {sums:?}");
    assert_eq!((stat.total("nested"), stat.total("in_flight")), (0, 0));
    sums
}
