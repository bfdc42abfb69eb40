//! The storage of this process's rings, as their writers extend it and give it back.
//!
//! A ring is mapped with its largest size when it is made, and most of it has no storage. A store there would allocate a
//! page, or raise SIGBUS in the host if the file system is full; so storage is asked for first, by one `madvise`, which
//! fails instead. Before Linux 5.14 there is none that does: then the drain reserves storage ahead of need.

use crate::guest::edge;
use crate::ring::process;
use crate::settings::settings;
use aclshim_trace::record::slot::Slot;
use aclshim_trace::ring::file::populate;
use aclshim_trace::ring::growth;
use aclshim_trace::ring::layout::{Control, Header};
use aclshim_trace::ring::storage::{Pace, Storage};
use core::sync::atomic::Ordering;

/// The ticks of a second where the processor does not say how many there are.
const USUAL_HZ: u64 = 2_500_000_000;
/// A ring that is filled within this part of a second is to be larger: the drain is woken four times as often.
const QUICK: u64 = 10;
/// A ring that is not filled within this many seconds may be smaller.
const SLOW: u64 = 2;
/// The number of slots up to which rings grow for being filled quickly: half a megabyte.
const QUICK_SLOTS: u32 = 8192;

/// Storage of this process's ring file.
pub struct RingStorage;

impl RingStorage {
    fn change(slots: &[Slot], work: impl FnOnce(&'static Header, u64) -> bool) -> bool {
        let Some(header) = process::header() else { return false };
        edge::preserving_errno(|| work(header, size_of_val(slots) as u64)).unwrap_or(false)
    }
}

impl Storage for RingStorage {
    fn extend(&self, control: &Control, slots: &[Slot], to: u32) -> bool {
        if control.allocated.load(Ordering::Acquire) >= to {
            return true;
        }
        Self::change(slots, |header, bytes| {
            if header.drain_allocates.load(Ordering::Relaxed) != 0 || !growth::take(header, bytes) {
                return false;
            }
            // SAFETY: whole pages of a ring, which stays mapped.
            let populated = unsafe { populate(slots.as_ptr().cast_mut().cast(), bytes as usize) };
            if populated.is_err() {
                growth::give_back(header, bytes);
            }
            if populated == Err(libc::EINVAL) {
                header.drain_allocates.store(1, Ordering::Relaxed);
            }
            populated.is_ok()
        })
    }

    fn release(&self, slots: &[Slot]) {
        Self::change(slots, |header, bytes| {
            // SAFETY: whole pages of a ring that hold nothing which is not drained.
            let is_released =
                unsafe { libc::madvise(slots.as_ptr().cast_mut().cast(), bytes as usize, libc::MADV_REMOVE) == 0 };
            if is_released {
                growth::give_back(header, bytes);
            }
            is_released
        });
    }

    fn with_signals_blocked(&self, work: &dyn Fn()) {
        edge::with_signals_blocked(work);
    }

    fn pace(&self, ticks: u64) -> Pace {
        let hz = process::header().map_or(0, |header| header.ticks_hz);
        let hz = if hz == 0 { USUAL_HZ } else { hz };
        match ticks {
            quick if quick < hz / QUICK => Pace::Quick,
            slow if slow > hz.saturating_mul(SLOW) => Pace::Slow,
            _ => Pace::Steady,
        }
    }

    fn smallest(&self) -> u32 {
        settings().slots()
    }

    fn quick(&self) -> u32 {
        QUICK_SLOTS.min(settings().most_slots())
    }
}
