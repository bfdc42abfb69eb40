//! The table of injections, with the counters of each.
//!
//! Injections of the settings are permanent; those of scopes are set and removed. Counters and slots lie on pages that the
//! kernel wipes in a fork child, which begins at zero and without its parent's scopes. There is no lock: a reader of a slot
//! is counted in the slot, and a slot with readers is not reused.

use super::Refused;
use crate::guest::thread;
use crate::guest::wiped::Wiped;
use crate::inject::naming::ProcessNames;
use aclshim_facts::injection::Injection;
use aclshim_facts::selector::Names;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Number of injections that the settings can set, and of those that scopes can.
pub const MOST: usize = 64;

/// The threads whose calls an injection applies to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The calling thread's.
    ThisThread,
    /// Those of all threads.
    WholeProcess,
}

/// Counters of an injection. Each word also has the injection's generation: the slot may be reused between the time at which
/// a thread reads it and the time at which it counts.
struct Counters {
    /// Number of calls that its selector matches.
    seen: AtomicU64,
    /// Number of calls that it has changed.
    injected: AtomicU64,
    /// Cache of call sites: twice the address, plus one if the selector matches the site.
    sites: [AtomicU64; 8],
}

/// How many bits count; the generation is above them.
const COUNT_BITS: u32 = 48;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// How many bits of a place in the code hold the address; the generation above them is counted modulo 256.
const SITE_BITS: u32 = 56;

impl Counters {
    fn generation(&self) -> u64 {
        self.seen.load(Ordering::Relaxed) >> COUNT_BITS
    }

    /// Begins to count for another injection.
    fn begin(&self) {
        let none = self.generation().wrapping_add(1) << COUNT_BITS;
        [&self.seen, &self.injected].into_iter().for_each(|word| word.store(none, Ordering::Relaxed));
    }
}

/// The counters of an injection at the time of a call.
pub struct CountersOf<'a> {
    counters: &'a Counters,
    generation: u64,
}

impl<'a> CountersOf<'a> {
    /// Of the present injection.
    fn now(counters: &'a Counters) -> Self {
        Self { counters, generation: counters.generation() }
    }

    /// Adds one to a counter while it is this injection's and less than `most`; returns the new value.
    fn add(&self, word: &AtomicU64, most: u64) -> Option<u64> {
        let more = |had: u64| (had >> COUNT_BITS == self.generation && had & COUNT < most).then_some(had + 1);
        let had = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some((had & COUNT) + 1)
    }

    /// Counts a call that the selector matches; returns whether the injection changes it.
    pub fn count_call(&self, injection: &Injection) -> bool {
        if !self.add(&self.counters.seen, COUNT).is_some_and(|number| injection.strikes(number)) {
            return false;
        }
        let most = injection.times.filter(|_| !injection.is_numbered()).unwrap_or(COUNT).min(COUNT);
        self.add(&self.counters.injected, most).is_some()
    }
}

impl Names for CountersOf<'_> {
    fn stream(&self, stream: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        ProcessNames.stream(stream, is)
    }

    fn buffer(&self, address: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        ProcessNames.buffer(address, is)
    }

    /// Cached by call site: a lookup takes system calls, and programs copy from few sites.
    fn module(&self, address: u64, is: &mut dyn FnMut(&[u8], u64) -> bool) -> bool {
        let place = &self.counters.sites[address as usize / 4 % self.counters.sites.len()];
        // All zero is no place; an address that leaves no room for the rest is asked for each time.
        let wanted = self.generation << SITE_BITS | address << 1;
        let fits = address != 0 && address >> (SITE_BITS - 1) == 0;
        let known = place.load(Ordering::Relaxed);
        if fits && known & !1 == wanted {
            return known & 1 == 1;
        }
        let is_it = ProcessNames.module(address, is);
        if fits {
            place.store(wanted | u64::from(is_it), Ordering::Relaxed);
        }
        is_it
    }
}

/// A slot for an injection of a scope.
struct Slot {
    /// One of those below.
    state: AtomicU32,
    /// Number of threads that are reading it.
    readers: AtomicU32,
    scope: AtomicU64,
    /// The thread that it is for, by its number, or 0. (Where a thread's block lies, the next one's may lie.)
    thread: AtomicU64,
    injection: UnsafeCell<MaybeUninit<Injection>>,
}

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const SET: u32 = 2;

/// The wiped pages; all zero at first.
struct Pages {
    permanent: [Counters; MOST],
    of_scopes: [Counters; MOST],
    slots: [Slot; MOST],
}

/// The injections of the settings.
struct Permanent {
    count: AtomicUsize,
    injections: UnsafeCell<MaybeUninit<[Injection; MOST]>>,
}

// SAFETY: written by the one thread that boots, before `boot` says that it is done; read after that.
unsafe impl Sync for Permanent {}

static PERMANENT: Permanent =
    Permanent { count: AtomicUsize::new(0), injections: UnsafeCell::new(MaybeUninit::uninit()) };
// SAFETY: all zero are free slots and counters of nothing; threads share them as the module describes.
static PAGES: Wiped<Pages> = unsafe { Wiped::new(wipe_in_child) };

unsafe extern "C" fn wipe_in_child() {
    PAGES.wipe();
}

/// Stores the injections of the settings.
///
/// # Safety
/// Called once, by the thread that boots.
pub unsafe fn set_permanent(injections: impl Iterator<Item = Injection>) {
    if PAGES.get_or_map().is_none() {
        return;
    }
    let place = PERMANENT.injections.get().cast::<Injection>();
    let mut count = 0;
    for injection in injections.take(MOST) {
        // SAFETY: within the array, which is not read yet.
        unsafe { place.add(count).write(injection) };
        count += 1;
    }
    PERMANENT.count.store(count, Ordering::Release);
}

fn permanent() -> &'static [Injection] {
    let count = PERMANENT.count.load(Ordering::Acquire);
    // SAFETY: that many were written.
    unsafe { core::slice::from_raw_parts(PERMANENT.injections.get().cast(), count) }
}

/// Whether anything is set.
pub fn has_any() -> bool {
    let is_set = |slot: &Slot| slot.state.load(Ordering::SeqCst) == SET;
    PERMANENT.count.load(Ordering::Relaxed) > 0 || PAGES.get().is_some_and(|pages| pages.slots.iter().any(is_set))
}

/// Visits the injections that may apply to a call of the calling thread. A signal handler may jump out of it, but hardly
/// while a slot is read: the injection is copied first.
pub fn visit(mut each: impl FnMut(&Injection, &CountersOf<'_>)) {
    let Some(pages) = PAGES.get() else { return };
    for (injection, counters) in permanent().iter().zip(&pages.permanent) {
        each(injection, &CountersOf::now(counters));
    }
    // 0 if it has none: then none of these is its own.
    let me = thread::current().number.get();
    for (slot, counters) in pages.slots.iter().zip(&pages.of_scopes) {
        if slot.state.load(Ordering::Acquire) != SET {
            continue;
        }
        slot.readers.fetch_add(1, Ordering::SeqCst);
        let is_set = slot.state.load(Ordering::SeqCst) == SET;
        let is_meant = is_set && [0, me].contains(&slot.thread.load(Ordering::Relaxed));
        // SAFETY: it is set, and while we are among its readers it is not written to. (Who takes it looks for readers
        // after having said that it is taken, and we look for that after having said that we read.)
        let applied =
            is_meant.then(|| (unsafe { *(*slot.injection.get()).assume_init_ref() }, CountersOf::now(counters)));
        // A handler that forked meanwhile has left its child, if this is it, without any.
        let _ = slot.readers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |readers| readers.checked_sub(1));
        if let Some((injection, counters)) = &applied {
            each(injection, counters);
        }
    }
}

/// Sets injections for a scope: all of them, or none if there is no room. Signals are blocked.
pub fn add(scope: u64, reach: Reach, injections: impl Iterator<Item = Injection>) -> Result<(), Refused> {
    let pages = PAGES.get_or_map().ok_or(Refused::Memory)?;
    let thread = match reach {
        Reach::ThisThread => thread::number(),
        Reach::WholeProcess => 0,
    };
    let mut taken = 0u64;
    let set_states = |mask: u64, state: u32| {
        let slots = pages.slots.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1);
        slots.for_each(|(_, slot)| slot.state.store(state, Ordering::SeqCst));
    };
    for injection in injections {
        let Some(at) = pages.slots.iter().position(take) else {
            set_states(taken, FREE);
            return Err(Refused::Room);
        };
        taken |= 1 << at;
        let slot = &pages.slots[at];
        // SAFETY: we have taken it, and it has no readers.
        unsafe { (*slot.injection.get()).write(injection) };
        slot.scope.store(scope, Ordering::Relaxed);
        slot.thread.store(thread, Ordering::Relaxed);
        pages.of_scopes[at].begin();
    }
    set_states(taken, SET);
    Ok(())
}

/// Takes a slot that is free and has no readers.
fn take(slot: &Slot) -> bool {
    if slot.state.compare_exchange(FREE, TAKEN, Ordering::SeqCst, Ordering::Relaxed).is_err() {
        return false;
    }
    let is_read = slot.readers.load(Ordering::SeqCst) > 0;
    if is_read {
        slot.state.store(FREE, Ordering::SeqCst);
    }
    !is_read
}

/// The slots of a scope, with their counters.
fn slots_of(scope: u64) -> impl Iterator<Item = (&'static Slot, &'static Counters)> {
    let all = PAGES.get().into_iter().flat_map(|pages| pages.slots.iter().zip(&pages.of_scopes));
    all.filter(move |(slot, _)| slot.state.load(Ordering::SeqCst) == SET && slot.scope.load(Ordering::Relaxed) == scope)
}

/// Removes the injections of a scope.
pub fn remove(scope: u64) {
    slots_of(scope).for_each(|(slot, _)| slot.state.store(FREE, Ordering::SeqCst));
}

/// Number of calls that the injections of a scope have changed.
pub fn injected(scope: u64) -> u64 {
    slots_of(scope).map(|(_, counters)| counters.injected.load(Ordering::Relaxed) & COUNT).sum()
}
