//! Room for a claim that has reached the limit of its cursor.
//!
//! A ring has address space for its largest size from the beginning, and storage for a part of it: the slots with the
//! indexes below [`Bounds::stored`]. The slot with number `n` always lies at index `n mod slots`, so a writer at the end of
//! the storage does not go on with the next number but with the next multiple of `slots`, at index 0. It leaves a note
//! ([`Note::Skip`]) that says so: the *jump*. Numbers from one multiple of `slots` to the next are a *lap*.
//!
//! - A writer that reaches the end of its lap goes on with the next lap if the drain has kept up; else the ring grows.
//! - A writer that reaches slots of the former lap that are not drained yet makes the ring grow, and jumps to the new storage.
//! - A ring whose laps take long gives storage back.
//! - The limit of a cursor is also where the drain is to be woken: whenever a quarter of the ring is not drained.
//!
//! A ring whose slots all have storage is an ordinary ring without jumps.
//!
//! **Signal handlers** of the thread may claim, jump and grow between any two instructions here. Each decision takes effect
//! by one instruction that fails if a handler came first: on [`RingCursor::next`] for a jump, on the word of the bounds for
//! storage. A claim that has no room is returned before anything else is tried; a handler that comes before that cannot
//! write its jump where the interrupted claim lies, so it leaves the target in [`Control::pending_jump`], and the
//! interrupted frame writes the note. A ring shrinks with signals blocked: that is rare, and takes a system call anyway.

use super::cursor::{RingCursor, add_local, replace_local};
use crate::record::slot::{Head, Layout, Note, Slot};
use crate::ring::layout::{Control, Mode};
use crate::ring::storage::{Bounds, Need, Pace, Storage, next_size};
use crate::sync::Ordering;
use core::ops::Range;

/// Number of lost calls from one attempt to grow to the next.
const RETRY: u64 = 256;

impl RingCursor {
    fn bounds(&self) -> Bounds {
        Bounds::from_word(self.bounds.load(Ordering::Relaxed))
    }

    fn replace_bounds(&self, old: Bounds, new: Bounds) -> bool {
        replace_local(&self.bounds, old.word(), new.word())
    }

    /// Number of slots that there is address space for.
    fn capacity(&self) -> u64 {
        u64::from(self.mask.load(Ordering::Relaxed)) + 1
    }

    /// The first number of the lap that `number` lies in.
    fn lap(&self, number: u64) -> u64 {
        number & !u64::from(self.mask.load(Ordering::Relaxed))
    }

    /// Slots with these indexes.
    fn part(&self, indexes: Range<u32>) -> &[Slot] {
        let first = self.slots.load(Ordering::Relaxed).cast_const();
        // SAFETY: the cursor is open; slots up to its capacity are mapped, and stay so. Nothing is read.
        unsafe { core::slice::from_raw_parts(first.add(indexes.start as usize), indexes.len()) }
    }

    /// The number behind the last slot that a record at `at` may use. Where the lap has an end, one slot more is free, for
    /// the note of a jump.
    fn room(&self, control: &Control, at: u64) -> u64 {
        if self.is_mode(Mode::Flight) {
            return u64::MAX;
        }
        let (capacity, lap) = (self.capacity(), self.lap(at));
        let drained = control.drained.load(Ordering::Acquire);
        let fresh = control.fresh.load(Ordering::Relaxed);
        let is_fresh = self.lap(fresh) == lap && (1..=at).contains(&fresh);
        let lap_end = self.lap_end(control, lap);
        if lap_end == capacity {
            let free = drained.saturating_add(capacity);
            return if is_fresh { free.max(lap + capacity) } else { free };
        }
        let end = lap + lap_end - 1;
        if is_fresh { end } else { end.min(drained.saturating_add(capacity - 1)) }
    }

    /// Index behind the last slot that a lap uses.
    fn lap_end(&self, control: &Control, lap: u64) -> u64 {
        let Bounds { stored, lap_end } = self.bounds();
        // A lap that began before the ring was to shrink is not cut: an interrupted claim may lie there.
        u64::from(if lap < control.shrunk_since.load(Ordering::Relaxed) { stored } else { lap_end })
    }

    /// Number of slots before `end` that are not drained, as far as that can be told without reading them.
    fn fill(&self, control: &Control, end: u64) -> u64 {
        let (drained, lap) = (control.drained.load(Ordering::Relaxed), self.lap(end));
        let Bounds { lap_end, .. } = self.bounds();
        if drained >= lap || u64::from(lap_end) == self.capacity() {
            return end.saturating_sub(drained);
        }
        (end - lap) + u64::from(lap_end).saturating_sub(drained - self.lap(drained))
    }

    /// Whether a quarter of the ring is not drained: the drain has something to do.
    pub fn is_drain_due(&self, control: &Control) -> bool {
        self.fill(control, self.next.load(Ordering::Relaxed)) >= self.quarter()
    }

    fn quarter(&self) -> u64 {
        u64::from(self.bounds().stored / 4).max(1)
    }

    /// Sets the limit behind a claim that ends at `end`, with room up to `room`: there, or where the drain is to be woken.
    fn set_limit(&self, control: &Control, end: u64, room: u64) {
        control.mark.store(end, Ordering::Relaxed);
        let (fill, quarter) = (self.fill(control, end), self.quarter());
        let due = end.saturating_add(if fill < quarter { quarter - fill } else { quarter });
        self.limit.store(if self.is_mode(Mode::Flight) { room } else { room.min(due) }, Ordering::Relaxed);
    }

    /// Sets the limit of a cursor that is being opened.
    pub(super) fn set_first_limit(&self, control: &Control, next: u64) {
        control.pending_jump.store(0, Ordering::Relaxed);
        let room = self.room(control, next).saturating_sub(control.reserve.load(Ordering::Relaxed).into());
        self.set_limit(control, next, room);
    }

    /// Gives up a claim of one slot that has reached the limit. If a signal handler has claimed behind it, the slot must be
    /// filled, or the drain would wait for it: with the jump of the handler, or with the note that names the thread.
    ///
    /// # Safety
    /// The calling thread's cursor.
    #[cold]
    #[inline(never)]
    pub unsafe fn give_up(&self, claimed: u64) {
        let Some(control) = self.control() else { return };
        if self.give_back(claimed, 1) || self.complete_jump(control, claimed) || claimed >= self.room(control, claimed)
        {
            return;
        }
        let words = [0, u64::from(control.owner.load(Ordering::Relaxed))];
        // SAFETY: slots of a cursor that is open stay mapped, and this one is ours.
        let slot = unsafe { self.slot(claimed) };
        slot.put(Head::done(claimed, Layout::Note, Note::Thread as u16), &words);
    }

    /// Looks for room for a [`claim`](Self::claim) that has reached the limit; returns the number to use, which may be
    /// another one. If there is no room the claim is returned and the call counted as not recorded. `wait` may wait and
    /// returns whether to look once more.
    ///
    /// # Safety
    /// The cursor is open, and the calling thread's.
    pub unsafe fn make_room(
        &self,
        claimed: u64,
        slots: u64,
        now: u64,
        storage: &dyn Storage,
        wait: impl FnMut() -> bool,
    ) -> Option<u64> {
        // None in the child of a handler that has just forked.
        let control = self.control()?;
        let need = Need { slots, now, reserve: control.reserve.load(Ordering::Relaxed).into() };
        if let Some(number) = self.find_room(control, claimed, need, storage, wait) {
            // SAFETY: the caller's promise.
            unsafe { self.record_losses(control, now) };
            return Some(number);
        }
        if control.are_losses_recorded() {
            control.lost_since.store(now, Ordering::Relaxed);
        }
        add_local(&control.not_recorded, 1);
        None
    }

    /// Whether the ring is as full as at the call before, which was not recorded either. The claim is then returned and the
    /// call counted: a host that is faster than the drain is not slowed down further.
    ///
    /// # Safety
    /// The cursor is open, and the calling thread's.
    #[inline(always)]
    pub unsafe fn is_still_full(&self, claimed: u64, slots: u64) -> bool {
        // None in the child of a handler that has just forked.
        let Some(control) = self.control() else { return false };
        let lost = control.not_recorded.load(Ordering::Relaxed);
        let is_losing = lost != control.told.load(Ordering::Relaxed);
        let is_drained_on = control.drained.load(Ordering::Acquire) != control.full_at.load(Ordering::Relaxed);
        let is_retry = lost % RETRY == RETRY - 1;
        if !is_losing || is_drained_on || is_retry || self.is_mode(Mode::Lossless) || !self.give_back(claimed, slots) {
            return false;
        }
        add_local(&control.not_recorded, 1);
        true
    }

    /// Looks for room for a claim that has reached the limit, as long as `wait` says so, and returns the number to use; the
    /// claim is returned if there is none.
    pub(crate) fn find_room(
        &self,
        control: &Control,
        mut claimed: u64,
        need: Need,
        storage: &dyn Storage,
        mut wait: impl FnMut() -> bool,
    ) -> Option<u64> {
        loop {
            let drained = control.drained.load(Ordering::Relaxed);
            if self.complete_jump(control, claimed) {
                claimed = add_local(&self.next, need.slots);
                continue;
            }
            if let Some(number) = self.confirm(control, claimed, need) {
                return Some(number);
            }
            if !self.give_back(claimed, need.slots) {
                if control.pending_jump.load(Ordering::Relaxed) > claimed {
                    continue;
                }
                // A handler has claimed behind it. It has found room there, so that there is room for this claim too; or it
                // has left its claim by a longjmp, and these slots stay a gap.
                return self.confirm(control, claimed, Need { reserve: 0, ..need });
            }
            if !self.advance(control, claimed, need, storage) && !wait() {
                control.full_at.store(drained, Ordering::Relaxed);
                return None;
            }
            claimed = add_local(&self.next, need.slots);
        }
    }

    /// The claim itself, if there is room for it by now.
    fn confirm(&self, control: &Control, claimed: u64, need: Need) -> Option<u64> {
        let end = claimed + need.slots;
        let room = self.room(control, claimed);
        if end > room.saturating_sub(need.reserve) {
            return None;
        }
        let reserve = u64::from(control.reserve.load(Ordering::Relaxed));
        self.set_limit(control, end, room.saturating_sub(reserve));
        Some(claimed)
    }

    /// Makes room by more storage or by a jump from `at`, the next number; `false` if there is nothing to be done. `true`
    /// also if a handler came first: the caller looks again.
    fn advance(&self, control: &Control, at: u64, need: Need, storage: &dyn Storage) -> bool {
        let (capacity, lap) = (self.capacity(), self.lap(at));
        let lap_end = self.lap_end(control, lap);
        if lap_end == capacity {
            return false;
        }
        if at - lap + need.slots + need.reserve < lap_end {
            // Slots of the former lap are not drained yet. New storage lies behind all of them.
            let to = self.fresh_behind(control, at).or_else(|| self.add_storage(control, lap, storage));
            to.inspect(|to| self.jump(control, at, *to, need.now));
            return to.is_some();
        }
        let drained = control.drained.load(Ordering::Acquire).saturating_sub(lap).min(lap_end);
        let pace = storage.pace(need.now.wrapping_sub(control.lap_began.load(Ordering::Relaxed)));
        let wants_more = drained < lap_end / 2 || pace == Pace::Quick && lap_end < u64::from(storage.quick());
        if wants_more && self.grow(control, lap, storage) {
            return true;
        }
        if drained <= need.slots + need.reserve + 1 {
            return false;
        }
        let next_lap = lap + capacity;
        if pace == Pace::Slow && self.bounds().stored > storage.smallest() {
            storage.with_signals_blocked(&|| self.shrink(control, at, storage));
        }
        self.jump(control, at, next_lap, need.now);
        control.lap_began.store(need.now, Ordering::Relaxed);
        true
    }

    /// Lets the present lap use more slots: those with storage, or new ones.
    fn grow(&self, control: &Control, lap: u64, storage: &dyn Storage) -> bool {
        let bounds @ Bounds { stored, lap_end } = self.bounds();
        if lap_end < stored && control.drained.load(Ordering::Acquire) >= lap {
            self.replace_bounds(bounds, Bounds::of(stored));
            return true;
        }
        self.add_storage(control, lap, storage).is_some()
    }

    /// The first number of this lap that lies in new storage, if it is behind `at`.
    fn fresh_behind(&self, control: &Control, at: u64) -> Option<u64> {
        let (fresh, lap) = (control.fresh.load(Ordering::Relaxed), self.lap(at));
        let has_storage = self.lap(fresh) == lap && fresh - lap < u64::from(self.bounds().stored);
        (has_storage && fresh > at).then_some(fresh)
    }

    /// Gives storage to more slots; returns the first number of `lap` that lies there.
    fn add_storage(&self, control: &Control, lap: u64, storage: &dyn Storage) -> Option<u64> {
        let bounds @ Bounds { stored, .. } = self.bounds();
        let more = next_size(stored, self.mask.load(Ordering::Relaxed) + 1);
        if more == stored || !storage.extend(control, self.part(stored..more), more) {
            return None;
        }
        let fresh = lap + u64::from(stored);
        // The first new storage of a lap: what follows in the same lap lies behind it.
        if self.lap(control.fresh.load(Ordering::Relaxed)) != lap {
            control.fresh.store(fresh, Ordering::Relaxed);
        }
        // Before a record is shown there.
        control.reserved.fetch_max(more, Ordering::Relaxed);
        self.replace_bounds(bounds, Bounds::of(more));
        Some(fresh)
    }

    /// The lap that was filled up to `at` took long: the next one uses half of the slots. Storage that this lap has not used
    /// is given back, if the former lap is drained. Signals are blocked.
    fn shrink(&self, control: &Control, at: u64, storage: &dyn Storage) {
        let lap = self.lap(at);
        // A handler that came before has jumped already.
        if self.next.load(Ordering::Relaxed) != at || control.drained.load(Ordering::Acquire) < lap {
            return;
        }
        let bounds @ Bounds { stored, lap_end } = self.bounds();
        let less = (lap_end / 2).max(storage.smallest());
        let is_unused = lap_end < stored && lap >= control.shrunk_since.load(Ordering::Relaxed);
        let now_stored = if is_unused { lap_end } else { stored };
        control.shrunk_since.store(lap + self.capacity(), Ordering::Relaxed);
        if self.replace_bounds(bounds, Bounds { stored: now_stored, lap_end: less }) && is_unused {
            control.reserved.store(lap_end, Ordering::Relaxed);
            storage.release(self.part(lap_end..stored));
        }
    }

    /// Goes on with number `to` instead of `at`, the next number, unless a handler came first.
    fn jump(&self, control: &Control, at: u64, to: u64, now: u64) {
        let room = self.room(control, at);
        if !replace_local(&self.next, at, to) {
            return;
        }
        if at <= room {
            self.write_jump(at, to, now);
        } else {
            control.pending_room.store(room, Ordering::Relaxed);
            control.pending_jump.store(to, Ordering::Relaxed);
        }
    }

    fn write_jump(&self, at: u64, to: u64, now: u64) {
        // SAFETY: slots of a cursor that is open stay mapped, and this one is ours.
        unsafe { self.slot(at) }.put(Head::done(at, Layout::Note, Note::Skip as u16), &[now, to]);
    }

    /// Whether a handler has jumped from behind the claim. If the claim's first slot is free, the note of the jump is written
    /// there; else that is left to a claim that lies before it.
    fn complete_jump(&self, control: &Control, claimed: u64) -> bool {
        let to = control.pending_jump.load(Ordering::Relaxed);
        if to <= claimed {
            return false;
        }
        if claimed <= control.pending_room.load(Ordering::Relaxed) {
            control.pending_jump.store(0, Ordering::Relaxed);
            self.write_jump(claimed, to, self.now());
        }
        true
    }
}
