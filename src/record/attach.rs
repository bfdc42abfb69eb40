//! Where a thread's records go: its cursor in a ring, found with its first call, and room for a record.

use crate::check::policy;
use crate::guest::state::{self, ShimState};
use crate::guest::{edge, log, thread};
use crate::loader::rebind;
use crate::ring::process::Process;
use crate::ring::storage::RingStorage;
use crate::ring::{identity, process};
use crate::settings::complaints;
use crate::{drain, inject};
use aclshim_trace::record::slot::Slot;
use aclshim_trace::ring::cursor::{RingCursor, Slots};
use aclshim_trace::ring::layout::Mode;
use aclshim_trace::system::clock::monotonic_ns;
use core::ptr;
use core::sync::atomic::Ordering;

/// Slots that were claimed for a call: where, and the first one's number.
#[derive(Clone, Copy)]
pub struct Claim {
    /// The cursor.
    pub cursor: &'static RingCursor,
    /// As it was before the claim: a handler may fork behind it, and its child find the cursor wiped.
    pub slots: Slots,
    /// The number of the first slot.
    pub number: u64,
}

impl Claim {
    /// A claim of `slots` at a cursor; one without room is an error.
    fn at(cursor: &'static RingCursor, slots: u64) -> Result<Self, Self> {
        let before = cursor.slots();
        let of = |number| Self { cursor, slots: before, number };
        cursor.claim_in(before, slots).map(of).map_err(of)
    }

    /// A slot of it, or of its ring.
    pub fn slot(&self, number: u64) -> &'static Slot {
        // SAFETY: a claim that found room says that the cursor was open, and slots stay mapped.
        unsafe { &*self.slots.at(number) }
    }
}

/// Slots for a call of this thread.
pub fn claim(slots: u64) -> Option<Claim> {
    // SAFETY: NULL, or a cursor that lives as long as its thread.
    match unsafe { thread::current().cursor.get().as_ref() }.map(|cursor| Claim::at(cursor, slots)) {
        Some(Ok(claim)) => Some(claim),
        // Where one call after another finds the ring full, each is counted and no more.
        Some(Err(Claim { cursor, number, .. }))
            // SAFETY: the calling thread's cursor; one that is not open says no.
            if !drain::is_still_put_off() && unsafe { cursor.is_still_full(number, slots) } =>
        {
            None
        }
        Some(Err(claim)) => claim_slowly(Some(claim), slots),
        None => claim_slowly(None, slots),
    }
}

/// Slots for a call that found no cursor, or no room: `claim` is what it got instead.
#[cold]
#[inline(never)]
fn claim_slowly(claim: Option<Claim>, slots: u64) -> Option<Claim> {
    if let Some(cursor) = thread::cursor() {
        // Not what was claimed elsewhere: a handler may have found this cursor only just now.
        let claim = claim.filter(|claim| ptr::eq(claim.cursor, cursor));
        return claim.map_or_else(|| Claim::at(cursor, slots), Err).or_else(|claim| make_room(claim, slots)).ok();
    }
    let thread = thread::current();
    if thread.backoff.get() > 0 {
        thread.backoff.set(thread.backoff.get() - 1);
        match process::process().or_else(|| edge::with_signals_blocked(process::own).flatten()) {
            Some(process) => process.count_missed(),
            None => process::count_early_miss(),
        }
        return None;
    }
    let cursor = edge::with_signals_blocked(attach).flatten()?;
    Claim::at(cursor, slots).or_else(|claim| make_room(claim, slots)).ok()
}

/// Room for a claim that found none; if there is still none it is given back, and counted.
fn make_room(claim: Claim, slots: u64) -> Result<Claim, ()> {
    let Claim { cursor, number: claimed, .. } = claim;
    let is_put_off = drain::is_still_put_off();
    // SAFETY: the cursor is open, and this thread's.
    if !is_put_off && unsafe { cursor.is_still_full(claimed, slots) } {
        return Err(());
    }
    let now = cursor.now();
    // SAFETY: the cursor is open, and this thread's.
    let make_room =
        |wait: &mut dyn FnMut() -> bool| unsafe { cursor.make_room(claimed, slots, now, &RingStorage, wait) };
    let number = if cursor.is_mode(Mode::Lossless) {
        // Signals blocked: a handler that jumped out would leave the thread as it is in here.
        let end = monotonic_ns() + edge::LONG_WAIT_NS;
        edge::with_signals_blocked(|| {
            make_room(&mut || {
                drain::wake();
                edge::pause(edge::WAIT_PAUSE_NS);
                drain::may_run() && monotonic_ns() < end
            })
        })
        .flatten()
    } else {
        make_room(&mut || false)
    };
    drain::wake_if_due(cursor);
    schedule_slow_path(cursor, is_put_off);
    number.map(|number| Claim { number, ..claim }).ok_or(())
}

/// Has one of the thread's next calls come by the cold path again, if there is still something to do there: the drain's
/// start `is_put_off`, or the library is to be asked who it is.
pub fn schedule_slow_path(cursor: &RingCursor, is_put_off: bool) {
    let drain = is_put_off.then(drain::calls).flatten();
    let Some(calls) = drain.into_iter().chain(identity::calls_to_next_attempt()).min() else { return };
    let soon = cursor.next.load(Ordering::Relaxed) + (calls - 1);
    if soon < cursor.limit.load(Ordering::Relaxed) {
        cursor.limit.store(soon, Ordering::Relaxed);
    }
}

/// Finds a cursor for this thread, with its first call in this process; a call without one is counted.
fn attach() -> Option<&'static RingCursor> {
    match take_cursor() {
        Ok(cursor) => return Some(cursor),
        Err(NoCursor::Off) => {}
        Err(NoCursor::Early) => process::count_early_miss(),
        Err(NoCursor::NoRing(process)) => {
            process.count_missed();
            // Each attempt costs a few system calls: the next one comes after twice as many calls.
            let thread = thread::current();
            thread.next_backoff.set((2 * thread.next_backoff.get()).clamp(1, 1 << 16));
            thread.backoff.set(thread.next_backoff.get() - 1);
        }
    }
    None
}

/// Why a thread has no cursor.
pub enum NoCursor {
    /// Nothing is to be recorded.
    Off,
    /// Too early, or there is no memory at all.
    Early,
    /// There is no ring for it.
    NoRing(&'static Process),
}

/// Finds a cursor for this thread. Signals are blocked.
pub fn take_cursor() -> Result<&'static RingCursor, NoCursor> {
    match state::current() {
        ShimState::Active => {}
        ShimState::Unready => return Err(NoCursor::Early),
        ShimState::Off | ShimState::Passive => return Err(NoCursor::Off),
    }
    let thread = thread::current();
    if !thread.visited.replace(true) {
        rebind::refresh(rebind::Trigger::Copy);
    }
    let process = process::own().ok_or(NoCursor::Early)?;
    // A signal handler may have come before us.
    if let Some(cursor) = thread::cursor() {
        return Ok(cursor);
    }
    let cursor =
        process.make_file(log_invalid_settings).and_then(|file| process.open(&thread.own, thread::id(), &file));
    // A handler of a signal that cannot be blocked may have forked: in the child the cursor is not open, and the ring its parent's.
    if !process.is_own() {
        return thread::cursor().ok_or(NoCursor::Early);
    }
    let cursor = cursor.ok_or(NoCursor::NoRing(process))?;
    // Last: a handler that interrupts this finds no cursor, or an open one.
    thread.cursor.set(cursor);
    drain::ensure(process);
    schedule_slow_path(cursor, drain::is_still_put_off());
    Ok(cursor)
}

/// Logs which settings make no sense.
#[inline(never)] // what it has on the stack is not to lie under the rest
fn log_invalid_settings() {
    for (line, why) in complaints().lines() {
        log::invalid_line(line, why);
    }
    for (setting, line) in complaints().values() {
        log::invalid_setting(setting, line);
    }
    policy::from_settings(log::invalid_rule);
    inject::log_refusal();
}
