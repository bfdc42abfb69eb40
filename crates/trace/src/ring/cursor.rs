//! A ring as its writing thread sees it.
//!
//! What a call needs lies in one cache line, the thread's [`RingCursor`], in memory that is the thread's own. A
//! claim is one instruction (a signal handler of the thread may claim in between), and one compare
//! tells "no ring yet", "look whether there is room" and "full" from the rest. A second one tells a fork child, which
//! has a copy of its parent's place, that it has none: see [`crate::system::generation`].

use crate::record::slot::{Head, Layout, Note, Slot};
use crate::ring::layout::{Control, Mode};
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::system::generation;

/// Where a thread writes. All zero: nowhere.
#[derive(Default)]
#[repr(C)]
pub struct RingCursor {
    /// The number of the next slot.
    pub next: AtomicU64,
    /// The number of the first slot that must not be written without another look.
    pub limit: AtomicU64,
    /// The slots.
    pub slots: AtomicPtr<Slot>,
    /// One less than how many there are.
    pub mask: AtomicU64,
    /// The address of the outermost frame of a call under way, or 0.
    pub outermost: AtomicUsize,
    /// The [`generation`] of the process that the ring is of.
    pub(crate) generation: core::sync::atomic::AtomicU64,
    /// The ring's shared state.
    pub(crate) control: AtomicPtr<Control>,
    /// A [`crate::system::clock::Clock`].
    pub clock: AtomicU32,
    /// A [`Mode`].
    pub mode: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<RingCursor>() == 64);

/// The slots of a cursor, and of which process they are.
#[derive(Clone, Copy)]
pub struct Slots {
    first: *const Slot,
    mask: u64,
    /// Its [`generation`].
    pub generation: u64,
}

impl Slots {
    /// Whether they are this process's, and not those of the one that forked it.
    #[inline(always)]
    pub fn are_ours(self) -> bool {
        generation::is_current(self.generation)
    }

    /// The slot of a number, if there are any.
    #[inline(always)]
    pub fn at(self, number: u64) -> *const Slot {
        self.first.wrapping_add((number & self.mask) as usize)
    }
}

impl RingCursor {
    /// Claims `slots` consecutive slots; the first one's number, if there is room for all.
    pub fn claim(&self, slots: u64) -> Result<u64, u64> {
        self.claim_in(self.slots(), slots)
    }

    /// The same of what [`slots`](Self::slots) has told before.
    #[inline(always)]
    pub fn claim_in(&self, of: Slots, slots: u64) -> Result<u64, u64> {
        let number = add_local(&self.next, slots);
        // The last slot's number against the limit: for one slot nothing is left to be added.
        let has_room = number + (slots - 1) < load_local(&self.limit);
        if has_room && of.are_ours() { Ok(number) } else { Err(number) }
    }

    /// The ring's shared state, if there is a ring, and it is not the one of the process that forked this one.
    pub fn control(&self) -> Option<&Control> {
        // SAFETY: NULL, or what the cursor was opened with, which outlives it.
        let control = unsafe { self.control.load(Ordering::Relaxed).as_ref() };
        control.filter(|_| self.slots().are_ours())
    }

    /// Gives up a claim of one slot that found no room. If a signal handler has claimed behind it, and so has found some,
    /// the slot is filled all the same, or the drain would wait for it: it says once more whose the ring is.
    ///
    /// # Safety
    /// The calling thread's cursor.
    #[cold]
    #[inline(never)]
    pub unsafe fn give_up(&self, claimed: u64) {
        let slots = self.slots();
        let Some(control) = self.control() else { return };
        if !self.give_back(claimed, 1) && claimed < self.room(control) {
            let words = [0, u64::from(control.owner.load(Ordering::Relaxed))];
            // SAFETY: slots of a cursor that is open stay mapped, and this one is ours.
            let slot = unsafe { &*slots.at(claimed) };
            slot.put(Head::done(claimed, Layout::Note, Note::Thread as u8), &words);
        }
    }

    /// Gives a [`claim`](Self::claim) back that nothing was written to; `false` if a signal handler has claimed since.
    pub(crate) fn give_back(&self, claimed: u64, slots: u64) -> bool {
        replace_local(&self.next, claimed + slots, claimed)
    }

    /// Where the slots are. Asked before a claim, because a signal handler may fork behind it: its child may find the
    /// place wiped, and must not go on with what it finds there then.
    #[inline(always)]
    pub fn slots(&self) -> Slots {
        let generation = self.generation.load(Ordering::Relaxed);
        Slots { first: self.slots.load(Ordering::Relaxed), mask: self.mask.load(Ordering::Relaxed), generation }
    }

    /// The slot of a number.
    ///
    /// # Safety
    /// The cursor has slots.
    pub unsafe fn slot(&self, number: u64) -> &Slot {
        // SAFETY: the caller's promise.
        unsafe { &*self.slots().at(number) }
    }

    /// Makes this a cursor that writes into `slots`, from number `next` on: once, in whatever process. `false` if it is one
    /// already, or is just becoming one: the caller may be a handler that has interrupted that.
    pub fn open(&self, control: &Control, slots: &[Slot], mode: Mode, next: u64) -> bool {
        let (none, at) = (core::ptr::null_mut(), core::ptr::from_ref(control).cast_mut());
        if self.control.compare_exchange(none, at, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        self.slots.store(slots.as_ptr().cast_mut(), Ordering::Relaxed);
        self.mask.store(slots.len() as u64 - 1, Ordering::Relaxed);
        self.mode.store(mode as u32, Ordering::Relaxed);
        self.next.store(next, Ordering::Relaxed);
        self.generation.store(generation::current(), Ordering::Relaxed);
        self.limit.store(self.room(control), Ordering::Relaxed);
        true
    }

    /// Ends the call that stands in `slot`: in the short way if no slot was claimed behind it.
    pub fn end(&self, slot: &Slot, begun: Head, now: u64, code: i32) -> bool {
        let doubt = begun.claimed_behind(self.next.load(Ordering::Relaxed));
        let ended = slot.end(begun, now, code, doubt);
        ended.map_or_else(|duration| slot.end_racing(begun, duration, code), |()| true)
    }

    /// Whether there are slots to write to: not before the first copy, and not after a fork.
    pub fn is_open(&self) -> bool {
        self.control().is_some()
    }

    /// The first number that would overwrite what must not be.
    fn room(&self, control: &Control) -> u64 {
        if self.mode.load(Ordering::Relaxed) == Mode::Flight as u32 {
            return u64::MAX;
        }
        control.drained.load(Ordering::Acquire) + self.mask.load(Ordering::Relaxed) + 1
    }

    /// After a [`claim`](Self::claim) without room: looks again, and gives the claim back if there is
    /// still none; the call is then counted as not recorded. `now` is in ticks; `wait` may wait a
    /// little and says whether to look once more.
    ///
    /// # Safety
    /// The cursor is open, and the calling thread's.
    pub unsafe fn make_room(&self, claimed: u64, slots: u64, now: u64, wait: impl FnMut() -> bool) -> Option<u64> {
        // None in the child of a handler that has just forked.
        let control = self.control()?;
        if self.wait_for_room(control, claimed, slots, wait) {
            // SAFETY: the caller's promise.
            unsafe { self.record_losses(control, now) };
            return Some(claimed);
        }
        if control.are_losses_recorded() {
            control.lost_since.store(now, Ordering::Relaxed);
        }
        add_local(&control.not_recorded, 1);
        None
    }

    /// The short way out for a call that finds the ring as full as the one before it did, so that a host that is
    /// faster than the drain is not slowed where nothing is recorded anyway. The claim is then given back, and counted.
    ///
    /// # Safety
    /// The cursor is open, and the calling thread's.
    #[inline(always)]
    pub unsafe fn is_still_full(&self, claimed: u64, slots: u64) -> bool {
        // None in the child of a handler that has just forked.
        let Some(control) = self.control() else { return false };
        let is_losing = control.not_recorded.load(Ordering::Relaxed) != control.told.load(Ordering::Relaxed);
        let is_waiting = self.mode.load(Ordering::Relaxed) == Mode::Lossless as u32;
        if !is_losing || is_waiting || claimed + slots <= self.room(control) || !self.give_back(claimed, slots) {
            return false;
        }
        add_local(&control.not_recorded, 1);
        true
    }

    /// Whether there is room for a claim after all; if not, it is given back.
    pub(crate) fn wait_for_room(
        &self,
        control: &Control,
        claimed: u64,
        slots: u64,
        mut wait: impl FnMut() -> bool,
    ) -> bool {
        let end = claimed + slots;
        let look = || {
            let limit = self.room(control);
            self.limit.store(limit, Ordering::Relaxed);
            end <= limit
        };
        while !look() {
            if !wait() {
                // A handler that came in between has given its own claim back, or found room, and then
                // there is room for us too; or it has jumped away, and our slots stay a gap.
                return !self.give_back(claimed, slots) && look();
            }
        }
        true
    }

    /// Leaves a record of what was lost, once there is room for one.
    ///
    /// # Safety
    /// The cursor is open, and the calling thread's.
    pub unsafe fn record_losses(&self, control: &Control, now: u64) {
        let both = [(&control.not_recorded, &control.told), (&control.notes_lost, &control.notes_told)];
        // Said to be told before it is: a handler that comes in between must not tell the same.
        let untold = both.map(|(lost, told)| take_unrecorded(lost, told));
        if untold == [0; 2] {
            return;
        }
        let words = [control.lost_since.load(Ordering::Relaxed), now, untold[0], untold[1]];
        // SAFETY: the caller's promise.
        if !unsafe { self.write_note(Note::Lost, &words) } {
            for ((_, told), untold) in both.into_iter().zip(untold) {
                told.fetch_sub(untold, Ordering::Relaxed);
            }
        }
    }

    /// Leaves a note of one slot, if there is room; what it tells is not a call.
    ///
    /// # Safety
    /// The cursor is open, and the calling thread's.
    pub unsafe fn write_note(&self, note: Note, words: &[u64]) -> bool {
        let slots = self.slots();
        let number = match self.claim_in(slots, 1) {
            Ok(number) => number,
            Err(number) => {
                // None in the child of a handler that has just forked.
                if !self.control().is_some_and(|control| self.wait_for_room(control, number, 1, || false)) {
                    return false;
                }
                number
            }
        };
        // SAFETY: a claim that found room says that the cursor was open, and slots stay mapped.
        unsafe { &*slots.at(number) }.put(Head::done(number, Layout::Note, note as u8), words);
        true
    }
}

/// How many of what was lost nobody has told yet; they are the caller's to tell. A handler that tells some meanwhile has
/// its own share.
fn take_unrecorded(lost: &AtomicU64, told: &AtomicU64) -> u64 {
    loop {
        let before = told.load(Ordering::Relaxed);
        let now = lost.load(Ordering::Relaxed);
        if told.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return now.saturating_sub(before);
        }
    }
}

/// Adds where only this thread and its signal handlers add, and returns what was there: one
/// instruction cannot be torn by a handler, and needs no lock against other threads.
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

/// Loads where only this thread and its signal handlers store.
#[inline(always)]
fn load_local(word: &AtomicU64) -> u64 {
    #[cfg(not(loom))]
    // SAFETY: a live, aligned word that no other thread changes. (Not as an atomic: such a load is never a part of the
    // instruction that needs it.)
    return unsafe { word.as_ptr().read() };
    #[cfg(loom)]
    word.load(Ordering::Relaxed)
}

/// Replaces `old` by `new` where only this thread and its signal handlers write; as [`add_local`].
#[inline(always)]
fn replace_local(word: &AtomicU64, old: u64, new: u64) -> bool {
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
