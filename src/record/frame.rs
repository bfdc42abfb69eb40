//! Recording one call: a slot claimed and shown as in flight before it, completed after it.
//!
//! Once a thread has its cursor, a call costs a claim of one instruction, two looks at the clock and
//! the stores of one cache line: no lock, no heap, no system call. Everything else is cold.
//!
//! **Nesting** is read off the stack: the outermost frame leaves its address in the thread's cursor,
//! and a frame below that address is nested, if it was called from the vendor's side
//! ([`crate::loader::vendor`]). (A depth counter would stay wrong for ever once an exception or a longjmp had
//! passed through. The address alone would stay wrong until the host calls again from as high up; and
//! what such a frame left on the stack proves nothing, because it need not be overwritten.)

use crate::check::judgement::Judgement;
use crate::guest::thread;
use crate::loader::vendor;
use crate::record::attach::{Claim, claim};
use crate::record::batch;
use crate::settings::settings;
use aclshim_core::summary::BatchSummary;
use aclshim_facts::Function;
use aclshim_facts::call::{Batch, Call, Form};
use aclshim_trace::record::reasons::SlowPathReasons;
use aclshim_trace::record::slot::{Head, Layout, Note, Slot, end_word};
use aclshim_trace::record::{Extent, found_words};
use aclshim_trace::ring::cursor::RingCursor;
use aclshim_trace::system::clock::counter;
use aclshim_trace::system::generation;
use core::arch::asm;
use core::ptr;
use core::sync::atomic::Ordering;

/// The arguments of a call as words.
pub type Words = [u64; aclshim_trace::record::ARGUMENTS];

/// A call under way, in the registers of its entry; when it began stands in its slot.
pub struct Frame {
    cursor: *const RingCursor,
    slot: *const Slot,
    head: Head,
    outer: usize,
    /// Of the process that it began in: this one, unless it has forked and this is the child.
    generation: u64,
}

/// A call that may fit into one slot.
pub struct OneSlotCall {
    layout: Layout,
    kind: u32,
    words: [u64; 4],
    /// Why it does not fit.
    reasons: SlowPathReasons,
}

impl OneSlotCall {
    /// The call in one slot, if its form has a chance.
    #[inline(always)]
    pub fn of(call: &Call) -> Option<Self> {
        let stream = call.stream.unwrap_or(ptr::null_mut()) as u64;
        let (layout, kind, words, dst_max, count) = match call.form {
            Form::Linear { dst, dst_max, src, count, kind } => {
                let words = [dst as u64, src as u64, count as u64, stream];
                (Layout::Linear, kind.0 as u32, words, dst_max, count)
            }
            Form::Fill { dst, dst_max, value, count } => {
                let words = [dst as u64, value as i64 as u64, count as u64, stream];
                (Layout::Fill, 0, words, dst_max, count)
            }
            _ => return None,
        };
        let reasons = SlowPathReasons::room_differs(dst_max, count).union(SlowPathReasons::large_kind(kind));
        Some(Self { layout, kind, words, reasons })
    }

    /// Whether it fits: the room at its destination is what it copies, its kind is a usual one, and there is
    /// no other reason against it. One test for all.
    #[inline(always)]
    pub fn fits(&self, gate: usize) -> bool {
        self.reasons.union(SlowPathReasons::gate(gate)).is_empty()
    }
}

impl Frame {
    /// A call of one slot begins; `caller` is where it came from. The clock is the processor's counter.
    /// `None` if there is anything unusual about it: the slow path knows what to do. (So nothing is called
    /// on the short one, and the arguments stay in their registers.)
    #[inline(always)]
    pub fn begin_fast(
        function: Function,
        caller: usize,
        short: OneSlotCall,
        cursor: *const RingCursor,
    ) -> Option<Self> {
        // SAFETY: NULL, or a cursor that lives as long as its thread.
        let cursor = unsafe { cursor.as_ref() }?;
        let (here, outer) = (thread::stack(), cursor.outermost.load(Ordering::Relaxed));
        if outer > here {
            return None;
        }
        let slots = cursor.slots();
        let number = match cursor.claim_in(slots, 1) {
            Ok(number) => number,
            Err(claimed) => {
                // SAFETY: this thread's cursor.
                unsafe { cursor.give_up(claimed) };
                return None;
            }
        };
        cursor.outermost.store(here, Ordering::Relaxed);
        let head = Head::in_flight(number, short.layout, function as u16, short.kind);
        let mut slot = slots.at(number);
        let mut head = head;
        // Nothing: but the compiler then keeps these two values, and not the four that they are made of.
        // SAFETY: changes nothing, and follows no pointer.
        #[allow(clippy::pointers_in_nomem_asm_block)]
        unsafe {
            asm!("/* {0} {1} */", inout(reg) slot, inout(reg) head.0, options(nomem, nostack, preserves_flags));
        }
        // SAFETY: the claim says that the cursor was open, and slots stay mapped.
        let slot = unsafe { &*slot };
        slot.clear();
        store(slot, caller, short.words);
        slot.set(1, counter());
        slot.show(head);
        Some(Self { cursor, slot, head, outer, generation: slots.generation })
    }

    /// Any other call begins. `here` is the [`stack`] of the frame that makes it: ours may lie below the frames of a
    /// call that is nested in it.
    #[inline(never)]
    pub fn begin_slow(function: Function, caller: usize, here: usize, words: &Words, call: &Call) -> Self {
        if !settings().records() {
            return Self::none();
        }
        let slots = match &call.form {
            Form::Batch(of) => batch::slots(of),
            _ => 2,
        };
        let Some(claim) = claim(slots) else { return Self::none() };
        let Claim { cursor, number, .. } = claim;
        let (head, outer) = enter(cursor, caller, here, Head::in_flight(number, Layout::Long, function as u16, 0));
        let follow = |nth: u64, layout, words: &[u64]| {
            let number = number + nth;
            claim.slot(number).put(Head::done(number, layout, function as u16), words);
        };
        let slot = claim.slot(number);
        // The first slot must not show what stood there before while its followers are new.
        slot.clear();
        let extent = Extent::new(slots, 0, 0).0;
        follow(1, Layout::More, &[0, 0, extent, words[4], words[5], words[6], words[7]]);
        if slots > 2 {
            follow(2, Layout::Batch, &[0, 0, 0, 0, 0, words[8], words[9]]);
        }
        for nth in 3..slots {
            follow(nth, Layout::Items, &[]);
        }
        store(slot, caller, [words[0], words[1], words[2], words[3]]);
        slot.set(1, cursor.now());
        slot.show(head);
        Self { cursor, slot, head, outer, generation: claim.slots.generation }
    }

    const fn none() -> Self {
        Self { cursor: ptr::null(), slot: ptr::null(), head: Head(0), outer: 0, generation: 0 }
    }

    /// A call that began as [`begin_fast`](Self::begin_fast) has returned `code`.
    #[inline(always)]
    pub fn end_fast(self, code: i32) {
        // SAFETY: a short one has a cursor, the calling thread's own.
        let cursor = unsafe { &*self.cursor };
        // Claims behind this one, of a handler or of a nested call: the drain may be passing it by.
        self.end_at(cursor, code, || {
            (counter(), SlowPathReasons::claimed_behind(self.head, cursor.next.load(Ordering::Relaxed)))
        });
    }

    /// What was claimed for the record, while it is the one that was begun: the drain may have passed it by, and its cursor
    /// may be another's.
    fn shown(&self) -> Option<Claim> {
        // SAFETY: NULL, or the calling thread's own.
        let cursor = unsafe { self.cursor.as_ref() }?;
        let claim =
            Claim { cursor, slots: cursor.slots(), number: self.head.number(cursor.next.load(Ordering::Relaxed)) };
        // SAFETY: slots stay mapped.
        let is_shown = unsafe { (*self.slot).head() == self.head };
        (is_shown && self.is_ours()).then_some(claim)
    }

    /// Whether it is this process's. Not in the child of a fork since it began: what is recorded there is its parent's.
    #[inline(always)]
    fn is_ours(&self) -> bool {
        generation::is_current(self.generation)
    }

    /// Adds to a word of the record's second slot, which a call has that began as [`begin_slow`](Self::begin_slow).
    fn add(&self, words: &[(usize, u64)]) {
        let Some(claim) = self.shown() else { return };
        let more = claim.slot(claim.number + 1);
        for &(word, value) in words {
            more.set(word, more.0[word].load(Ordering::Relaxed) | value);
        }
    }

    /// Records what was found wrong with a call that began as [`begin_slow`](Self::begin_slow): in its record, and in notes behind it.
    #[cold]
    #[inline(never)]
    pub fn record_findings(&self, judgement: &Judgement) {
        // SAFETY: NULL, or the calling thread's own.
        let Some(cursor) = (unsafe { self.cursor.as_ref() }).filter(|cursor| cursor.is_open()) else { return };
        self.add(&found_words(judgement.bits, judgement.extent()));
        let number = self.head.number(cursor.next.load(Ordering::Relaxed));
        // SAFETY: the cursor is open, and ours. Without room for a note there are still the bits.
        judgement.write_notes(number, |note, words| _ = unsafe { cursor.write_note(note, words) });
    }

    /// Notes the scope that a call lies in which began as [`begin_slow`](Self::begin_slow).
    pub fn note_scope(&self, scope: u32) {
        self.add(&[(3, Extent::new(0, 0, scope).0)]);
    }

    /// The time, for the end of a call that began as [`begin_slow`](Self::begin_slow).
    pub fn now(&self) -> u64 {
        // SAFETY: NULL, or the calling thread's own.
        unsafe { self.cursor.as_ref() }.map_or(0, RingCursor::now)
    }

    /// Completes the record of a batch that began as [`begin_slow`](Self::begin_slow); `false` if there is none.
    ///
    /// # Safety
    /// The vendor has returned `code` for the arguments of `batch`.
    pub unsafe fn complete_batch(&self, batch: &Batch, code: i32, known: Option<BatchSummary>) -> bool {
        let Some(Claim { slots, number, .. }) = self.shown() else { return false };
        // SAFETY: the caller's promise; the call was recorded as a batch.
        unsafe { batch::complete(slots, number, batch, code, known) };
        true
    }

    /// A call that began as [`begin_slow`](Self::begin_slow) was answered at [`now`](Self::now).
    pub fn end_slow(&self, now: u64, code: i32) {
        // SAFETY: NULL, or the calling thread's own.
        if let Some(cursor) = unsafe { self.cursor.as_ref() } {
            self.end_at(cursor, code, || (now, SlowPathReasons::LONG_CALL));
        }
    }

    /// Whether the vendor makes the call, which came from `caller`, inside another one. Where it is not recorded
    /// that is not certain: then whether the vendor makes it.
    pub fn is_nested(&self, caller: usize) -> bool {
        self.nesting().unwrap_or_else(|| vendor::contains(caller))
    }

    /// Whether the vendor makes the call inside another one, where it is recorded.
    pub fn nesting(&self) -> Option<bool> {
        (!self.cursor.is_null()).then(|| self.head.is_nested())
    }

    /// Shows a flag of the call, which began as [`begin_slow`](Self::begin_slow), in its record.
    #[cold]
    pub fn flag(&self, flag: u16) {
        self.add(&[(3, Extent::new(0, flag, 0).0)]);
    }

    #[inline(always)]
    fn end_at(&self, cursor: &RingCursor, code: i32, now: impl FnOnce() -> (u64, SlowPathReasons)) {
        // In the child of a fork too: it has the frames of its parent's stack.
        cursor.outermost.store(self.outer, Ordering::Relaxed);
        // SAFETY: slots stay mapped.
        let slot = unsafe { &*self.slot };
        let (now, reasons) = now();
        if !self.is_ours() {
            return;
        }
        if let Err(duration) = slot.end(self.head, now, code, reasons) {
            end_in_own_record(cursor, slot, self.head, duration, code);
        }
    }
}

/// The end of a call about which there is anything unusual: its duration does not fit, or the drain may be going
/// past it. If so, the end comes in a record of its own. (Plain arguments: a frame that is passed on lives in
/// memory, not in registers.)
#[cold]
#[inline(never)]
fn end_in_own_record(cursor: &RingCursor, slot: &Slot, head: Head, duration: u64, code: i32) {
    // Where a handler has just forked, this may be the child: it has no cursor, and the slot is its parent's.
    if !cursor.is_open() || slot.end_racing(head, duration, code) {
        return;
    }
    let begin = slot.0[1].load(Ordering::Relaxed);
    // A clock that ran backwards: no time has passed.
    let duration = duration.cast_signed().max(0).cast_unsigned();
    // Too long for its slot: shown as ended there, with the rest in a record of its own.
    if slot.head() == head {
        slot.end_with(head, end_word(u32::MAX, code));
    }
    let shown = slot.head();
    // Overwritten: the record is gone. Or a handler has just forked, and this is the child.
    if (shown != head.ended() && shown != head.passed()) || !cursor.is_open() {
        return;
    }
    let number = head.number(cursor.next.load(Ordering::Relaxed));
    // SAFETY: the cursor is open, and ours. Without room the record stays as it is.
    unsafe { cursor.write_note(Note::End, &[begin, number, duration, code as u64]) };
}

#[inline(always)]
fn store(slot: &Slot, caller: usize, words: [u64; 4]) {
    slot.set(3, caller as u64);
    for (at, word) in words.into_iter().enumerate() {
        slot.set(4 + at, word);
    }
}

/// Makes the frame at `here` the outermost one, unless it is nested; what was there before goes back at the end.
fn enter(cursor: &RingCursor, caller: usize, here: usize, head: Head) -> (Head, usize) {
    let before = cursor.outermost.load(Ordering::Relaxed);
    if before > here && vendor::contains(caller) {
        return (head.nested(), before);
    }
    cursor.outermost.store(here, Ordering::Relaxed);
    (head, before)
}
