//! The writing side of a ring.
//!
//! What a call needs lies in one cache line, the thread's [`RingCursor`], in memory of the thread. A claim is one
//! instruction, because a signal handler of the thread may claim at any time. One compare then covers "no ring yet",
//! "check whether there is room" and "full". A second one detects a fork child, which has a copy of its parent's cursor
//! and no ring: see [`crate::system::generation`]. What happens when a claim reaches the limit is in [`super::room`].

use super::storage::{Bounds, FixedStorage, Need};
use crate::record::EffectClasses;
use crate::record::reasons::SlowPathReasons;
use crate::record::slot::{Head, Layout, Note, Slot};
use crate::ring::layout::{Control, Mode};
use crate::sync::{AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::system::clock::ticks;
use crate::system::generation;

/// Position of a thread in its ring. All zero: the thread has no ring.
#[derive(Default)]
#[repr(C)]
pub struct RingCursor {
    /// Number of the next slot.
    pub next: AtomicU64,
    /// Number of the first slot that must not be written before the room is checked again.
    pub limit: AtomicU64,
    /// The slots.
    pub slots: AtomicPtr<Slot>,
    /// Which of the slots are used: see [`Bounds`].
    pub(super) bounds: AtomicU64,
    /// The address of the outermost frame of a call under way, or 0.
    pub outermost: AtomicUsize,
    /// The [`generation`] of the process that owns the ring.
    pub(crate) generation: core::sync::atomic::AtomicU64,
    /// The ring's shared state.
    pub(crate) control: AtomicPtr<Control>,
    /// Number of slots minus 1; the number of slots is a power of two. Not all of them need have storage.
    pub(super) mask: AtomicU32,
    /// A [`crate::system::clock::Clock`].
    clock: AtomicU16,
    /// A [`Mode`].
    mode: AtomicU16,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<RingCursor>() == 64);

/// The slots of a cursor, and the process that owns them.
#[derive(Clone, Copy)]
pub struct Slots {
    first: *const Slot,
    mask: u32,
    /// Its [`generation`].
    pub generation: u64,
}

impl Slots {
    /// Whether they belong to this process and not to the one that forked it.
    #[inline(always)]
    pub fn are_ours(self) -> bool {
        generation::is_current(self.generation)
    }

    /// Address of the slot with this number; dangling if the cursor has no ring.
    #[inline(always)]
    pub fn at(self, number: u64) -> *const Slot {
        self.first.wrapping_add((number as u32 & self.mask) as usize)
    }
}

impl RingCursor {
    /// Claims `slots` consecutive slots. Returns the number of the first; as an error if there is no room for all.
    pub fn claim(&self, slots: u64) -> Result<u64, u64> {
        self.claim_in(self.slots(), slots)
    }

    /// As [`claim`](Self::claim), in slots that [`slots`](Self::slots) has returned before.
    #[inline(always)]
    pub fn claim_in(&self, of: Slots, slots: u64) -> Result<u64, u64> {
        let number = add_local(&self.next, slots);
        // The last slot's number against the limit: for one slot nothing is left to be added.
        let has_room = number + (slots - 1) < load_local(&self.limit);
        if has_room && of.are_ours() { Ok(number) } else { Err(number) }
    }

    /// The ring's shared state; `None` without a ring, and for the ring of the process that forked this one.
    pub fn control(&self) -> Option<&Control> {
        // SAFETY: NULL, or what the cursor was opened with, which outlives it.
        let control = unsafe { self.control.load(Ordering::Relaxed).as_ref() };
        control.filter(|_| self.slots().are_ours())
    }

    /// Returns a [`claim`](Self::claim) that nothing was written to; `false` if a signal handler has claimed since.
    pub(crate) fn give_back(&self, claimed: u64, slots: u64) -> bool {
        replace_local(&self.next, claimed + slots, claimed)
    }

    /// The slots. Load them before a claim: a signal handler may fork after it, and its child may find the cursor wiped.
    #[inline(always)]
    pub fn slots(&self) -> Slots {
        let generation = self.generation.load(Ordering::Relaxed);
        Slots { first: self.slots.load(Ordering::Relaxed), mask: self.mask.load(Ordering::Relaxed), generation }
    }

    /// The slot with this number.
    ///
    /// # Safety
    /// The cursor has slots.
    pub unsafe fn slot(&self, number: u64) -> &Slot {
        // SAFETY: the caller's promise.
        unsafe { &*self.slots().at(number) }
    }

    /// Opens the cursor on `slots`, from number `next` on; once in its life. `stored` of the slots have storage: all of
    /// them, or fewer than that. `false` if it is open or is being opened: the caller may be a signal handler that has
    /// interrupted that.
    pub fn open(&self, control: &Control, slots: &[Slot], stored: u32, mode: Mode, next: u64) -> bool {
        let (none, at) = (core::ptr::null_mut(), core::ptr::from_ref(control).cast_mut());
        if self.control.compare_exchange(none, at, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        self.slots.store(slots.as_ptr().cast_mut(), Ordering::Relaxed);
        self.mask.store(slots.len() as u32 - 1, Ordering::Relaxed);
        self.mode.store(mode as u16, Ordering::Relaxed);
        self.bounds.store(Bounds::of(stored).word(), Ordering::Relaxed);
        control.reserved.store(stored, Ordering::Relaxed);
        self.next.store(next, Ordering::Relaxed);
        self.generation.store(generation::current(), Ordering::Relaxed);
        self.set_first_limit(control, next);
        true
    }

    /// What a writer does when the ring is full.
    pub fn is_mode(&self, mode: Mode) -> bool {
        self.mode.load(Ordering::Relaxed) == mode as u16
    }

    /// The clock that times of the ring are read from; set once, when the cursor was opened.
    pub fn set_clock(&self, clock: u32) {
        self.clock.store(clock as u16, Ordering::Relaxed);
    }

    /// The present time in ticks of the ring's clock.
    pub fn now(&self) -> u64 {
        ticks(self.clock.load(Ordering::Relaxed).into())
    }

    /// Ends the call in `slot`: by plain stores if no slot was claimed behind it.
    pub fn end(&self, slot: &Slot, begun: Head, now: u64, code: i32) -> bool {
        let reasons = SlowPathReasons::claimed_behind(begun, self.next.load(Ordering::Relaxed));
        let ended = slot.end(begun, now, code, reasons);
        ended.map_or_else(|duration| slot.end_racing(begun, duration, code), |()| true)
    }

    /// Whether the cursor has a ring of this process: not before the first copy, and not after a fork.
    pub fn is_open(&self) -> bool {
        self.control().is_some()
    }

    /// Writes a note of what was lost since the last such note, if there is room for it.
    ///
    /// # Safety
    /// The cursor is open, and the calling thread's.
    pub unsafe fn record_losses(&self, control: &Control, now: u64) {
        let both = [(&control.not_recorded, &control.told), (&control.notes_lost, &control.notes_told)];
        // Marked as recorded before they are: a handler that comes in between must not record them again.
        let unrecorded = both.map(|(lost, recorded)| take_unrecorded(lost, recorded));
        if unrecorded == [0; 2] {
            return;
        }
        let [calls, notes] = unrecorded;
        let copies = if calls > 0 { EffectClasses::COPY } else { EffectClasses::default() };
        let classes = control.lost_classes.swap(0, Ordering::Relaxed) | copies.0;
        let words = [control.lost_since.load(Ordering::Relaxed), now, calls, notes, classes];
        // SAFETY: the caller's promise.
        if !unsafe { self.write_note(Note::Lost, &words) } {
            for ((_, recorded), unrecorded) in both.into_iter().zip(unrecorded) {
                recorded.fetch_sub(unrecorded, Ordering::Relaxed);
            }
            control.lost_classes.fetch_or(classes, Ordering::Relaxed);
        }
    }

    /// Writes a note of one slot; `false` if there is no room.
    ///
    /// # Safety
    /// The cursor is open, and the calling thread's.
    pub unsafe fn write_note(&self, note: Note, words: &[u64]) -> bool {
        let slots = self.slots();
        let number = match self.claim_in(slots, 1) {
            Ok(number) => number,
            Err(number) => {
                // None in the child of a handler that has just forked.
                let Some(control) = self.control() else { return false };
                let need = Need { slots: 1, now: self.now(), reserve: 0 };
                match self.find_room(control, number, need, &FixedStorage, || false) {
                    Some(number) => number,
                    None => return false,
                }
            }
        };
        // SAFETY: a claim that found room says that the cursor was open, and slots stay mapped.
        unsafe { &*slots.at(number) }.put(Head::done(number, Layout::Note, note as u16), words);
        true
    }
}

/// Number of losses that no record names yet. The caller records them; a signal handler that comes in between takes only
/// what is lost since.
fn take_unrecorded(lost: &AtomicU64, recorded: &AtomicU64) -> u64 {
    loop {
        let before = recorded.load(Ordering::Relaxed);
        let now = lost.load(Ordering::Relaxed);
        if recorded.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return now.saturating_sub(before);
        }
    }
}

/// Adds to a word that only this thread and its signal handlers change, and returns the value before. One instruction:
/// a handler cannot interrupt it, and it needs no lock against other threads.
#[inline(always)]
pub fn add_local(counter: &AtomicU64, amount: u64) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    {
        let mut number = amount;
        // SAFETY: `counter` is a live, aligned word.
        unsafe {
            core::arch::asm!("xadd qword ptr [{0}], {1}", in(reg) counter.as_ptr(), inout(reg) number, options(nostack));
        }
        number
    }
    #[cfg(all(target_arch = "aarch64", not(any(loom, miri))))]
    {
        let number: u64;
        // SAFETY: as above; a handler in between breaks the reservation, and the pair begins again.
        unsafe {
            core::arch::asm!("2: ldxr {old}, [{at}]", "add {new}, {old}, {amount}", "stxr {lost:w}, {new}, [{at}]",
                             "cbnz {lost:w}, 2b",
                             at = in(reg) counter.as_ptr(), amount = in(reg) amount, old = out(reg) number,
                             new = out(reg) _, lost = out(reg) _, options(nostack));
        }
        number
    }
    #[cfg(any(loom, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    counter.fetch_add(amount, Ordering::Relaxed)
}

/// Loads a word that only this thread and its signal handlers change.
#[inline(always)]
fn load_local(word: &AtomicU64) -> u64 {
    #[cfg(not(loom))]
    // SAFETY: a live, aligned word that no other thread changes. (Not as an atomic: such a load is never a part of the
    // instruction that needs it.)
    return unsafe { word.as_ptr().read() };
    #[cfg(loom)]
    word.load(Ordering::Relaxed)
}

/// Replaces `old` by `new` in a word that only this thread and its signal handlers change; as [`add_local`].
#[inline(always)]
pub(super) fn replace_local(word: &AtomicU64, old: u64, new: u64) -> bool {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    {
        let found: u64;
        // SAFETY: `word` is a live, aligned word.
        unsafe {
            core::arch::asm!("cmpxchg qword ptr [{0}], {1}", in(reg) word.as_ptr(), in(reg) new,
                             inout("rax") old => found, options(nostack));
        }
        found == old
    }
    #[cfg(any(loom, miri, not(target_arch = "x86_64")))]
    word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}
