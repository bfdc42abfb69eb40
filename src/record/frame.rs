//! Recording one call: a slot claimed and shown as in flight before it, completed after it.
//!
//! Once a thread has its cursor, a call costs a claim of one instruction, two looks at the clock and
//! the stores of one cache line: no lock, no heap, no system call. Everything else is cold.
//!
//! **Nesting** is read off the stack: the outermost frame leaves its address in the thread's cursor,
//! and a frame below that address is nested, if it was called from the vendor's side
//! ([`crate::loader::vendor`]). (A depth counter would stay wrong for ever once an exception or a longjmp had
//! passed through. The address alone would stay wrong until the host calls again from as high up; and
//! what such a frame left on the stack proves nothing, because nobody has to overwrite it.)

use crate::boot::{Standing, standing};
use crate::check::judgement::{self, Before, Judgement};
use crate::drain;
use crate::guest::{edge, thread};
use crate::harness::watch::{self, Ticket};
use crate::loader::{rebind, vendor};
use crate::record::batch;
use crate::ring::process::Process;
use crate::ring::{identity, process};
use crate::settings::settings;
use aclshim_facts::Function;
use aclshim_facts::call::{Call, Form};
use aclshim_trace::record::slot::{Head, Layout, Note, Slot, SlowPathReasons, end_word};
use aclshim_trace::record::{Extent, found_words};
use aclshim_trace::ring::cursor::{RingCursor, Slots};
use aclshim_trace::ring::layout::Mode;
use aclshim_trace::system::clock::{counter, monotonic_ns, ticks};
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

/// What became of a call.
#[derive(Clone, Copy)]
pub struct Answer {
    /// What the program gets.
    pub code: i32,
    /// What the vendor's function has returned, if it was called.
    pub of_vendor: Option<i32>,
}

impl Answer {
    /// Given in the vendor's place.
    pub fn ours(code: i32) -> Self {
        Self { code, of_vendor: None }
    }

    /// The vendor's own.
    pub fn vendors(code: i32) -> Self {
        Self { code, of_vendor: Some(code) }
    }
}

/// A call that may fit into one slot.
pub struct Short {
    layout: Layout,
    kind: u32,
    words: [u64; 4],
    /// Why it does not fit.
    reasons: SlowPathReasons,
}

impl Short {
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
    /// `None` if there is anything unusual about it: the long way knows what to do. (So nothing is called
    /// on the short one, and the arguments stay in their registers.)
    #[inline(always)]
    pub fn short(function: Function, caller: usize, short: Short, cursor: *const RingCursor) -> Option<Self> {
        // SAFETY: NULL, or a cursor that lives as long as its thread.
        let cursor = unsafe { cursor.as_ref() }?;
        let (here, outer) = (stack(), cursor.outermost.load(Ordering::Relaxed));
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
        let head = Head::in_flight(number, short.layout, function as u8, short.kind);
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
    pub fn long(function: Function, caller: usize, here: usize, words: &Words, call: &Call) -> Self {
        let slots = match &call.form {
            Form::Batch(of) => batch::slots(of),
            _ => 2,
        };
        Self::of_slots(function, caller, here, words, slots)
    }

    /// A record of several slots: what follows the first is there before it is shown.
    fn of_slots(function: Function, caller: usize, here: usize, words: &Words, slots: u64) -> Self {
        if !settings().records() {
            return Self::none();
        }
        let Some(claim) = claim(slots) else { return Self::none() };
        let Claim { cursor, number, .. } = claim;
        let (head, outer) = enter(cursor, caller, here, Head::in_flight(number, Layout::Long, function as u8, 0));
        let follow = |nth: u64, layout, words: &[u64]| {
            let number = number + nth;
            claim.slot(number).put(Head::done(number, layout, function as u8), words);
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
        slot.set(1, ticks(cursor.clock.load(Ordering::Relaxed)));
        slot.show(head);
        Self { cursor, slot, head, outer, generation: claim.slots.generation }
    }

    const fn none() -> Self {
        Self { cursor: ptr::null(), slot: ptr::null(), head: Head(0), outer: 0, generation: 0 }
    }

    /// A call that began as [`short`](Self::short) has returned `code`.
    #[inline(always)]
    pub fn end(self, code: i32) {
        // SAFETY: a short one has a cursor, the calling thread's own.
        let cursor = unsafe { &*self.cursor };
        // Claims behind this one, of a handler or of a nested call: the drain may be passing it by.
        self.end_at(cursor, code, || {
            (counter(), SlowPathReasons::claimed_behind(self.head, cursor.next.load(Ordering::Relaxed)))
        });
    }

    /// What was claimed for the record, while it is the one that was begun: the drain may have passed it by, and its place
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

    /// Adds to a word of the record's second slot, which a call has that began as [`long`](Self::long).
    fn add(&self, words: &[(usize, u64)]) {
        let Some(claim) = self.shown() else { return };
        let more = claim.slot(claim.number + 1);
        for &(word, value) in words {
            more.set(word, more.0[word].load(Ordering::Relaxed) | value);
        }
    }

    /// Tells what was found wrong with a call that began as [`long`](Self::long): in its record, and in notes behind it.
    #[cold]
    #[inline(never)]
    pub fn tell(&self, judgement: &Judgement) {
        // SAFETY: NULL, or the calling thread's own.
        let Some(cursor) = (unsafe { self.cursor.as_ref() }).filter(|cursor| cursor.is_open()) else { return };
        self.add(&found_words(judgement.bits, judgement.extent()));
        let number = self.head.number(cursor.next.load(Ordering::Relaxed));
        // SAFETY: the cursor is open, and ours. Without room for a note there are still the bits.
        judgement.tell(number, |note, words| _ = unsafe { cursor.write_note(note, words) });
    }

    /// Notes the scope that a call lies in which began as [`long`](Self::long).
    pub fn note_scope(&self, scope: u32) {
        self.add(&[(3, Extent::new(0, 0, scope).0)]);
    }

    /// The time, for the end of a call that began as [`long`](Self::long).
    pub fn now(&self) -> u64 {
        // SAFETY: NULL, or the calling thread's own.
        unsafe { self.cursor.as_ref() }.map_or(0, |cursor| ticks(cursor.clock.load(Ordering::Relaxed)))
    }

    /// A call that began as [`long`](Self::long) was answered at [`now`](Self::now).
    ///
    /// # Safety
    /// By the vendor's function, for the arguments of `call`, or in its place.
    #[inline(never)]
    pub unsafe fn end_long(
        self,
        now: u64,
        answer: Answer,
        function: Function,
        call: &Call,
        before: &Before,
        ticket: Ticket,
    ) {
        // What the vendor has not looked at may not be looked at.
        if let (Form::Batch(of), Some(code)) = (&call.form, answer.of_vendor) {
            let shown = self.shown();
            if let Some(Claim { slots, number, .. }) = shown {
                // SAFETY: the caller's promise; the call was recorded as a batch.
                unsafe { batch::complete(slots, number, of, code, before.look) };
            }
            let is_wanted = shown.is_some() || ticket.is_some();
            // SAFETY: the caller's promise.
            let judgement = is_wanted.then(|| unsafe { judgement::after(function, call, before, code) });
            if let Some(judgement) = judgement.flatten() {
                self.tell(&judgement);
                watch::found(ticket, &judgement);
            }
        }
        // SAFETY: NULL, or the calling thread's own.
        if let Some(cursor) = unsafe { self.cursor.as_ref() } {
            self.end_at(cursor, answer.code, || (now, SlowPathReasons::LONG_CALL));
        }
    }

    /// Whether the vendor makes the call, which came from `caller`, inside another one. Where it is not recorded nobody
    /// knows for certain: then whether the vendor makes it.
    pub fn is_nested(&self, caller: usize) -> bool {
        self.nesting().unwrap_or_else(|| vendor::calls_from(caller))
    }

    /// The same where it is recorded.
    pub fn nesting(&self) -> Option<bool> {
        (!self.cursor.is_null()).then(|| self.head.is_nested())
    }

    /// Shows a flag of the call, which began as [`long`](Self::long), in its record.
    #[cold]
    pub fn flag(&self, flag: u16) {
        self.add(&[(3, Extent::new(0, flag, 0).0)]);
    }

    #[inline(always)]
    fn end_at(&self, cursor: &RingCursor, code: i32, now: impl FnOnce() -> (u64, SlowPathReasons)) {
        // In the child of a fork too: the frames of its stack are the same.
        cursor.outermost.store(self.outer, Ordering::Relaxed);
        // SAFETY: slots stay mapped.
        let slot = unsafe { &*self.slot };
        let (now, reasons) = now();
        if !self.is_ours() {
            return;
        }
        if let Err(duration) = slot.end(self.head, now, code, reasons) {
            end_apart(cursor, slot, self.head, duration, code);
        }
    }
}

/// The end of a call about which there is anything unusual: its duration does not fit, or the drain may be going
/// past it. If so, the end comes in a record of its own. (Plain arguments: a frame that is passed on lives in
/// memory, not in registers.)
#[cold]
#[inline(never)]
fn end_apart(cursor: &RingCursor, slot: &Slot, head: Head, duration: u64, code: i32) {
    // Where a handler has just forked, this may be the child: it has no place, and the slot is its parent's.
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
    // Overwritten: nobody knows of the call any more. Or a handler has just forked, and this is the child.
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

/// Slots that were claimed for a call: where, and the first one's number.
#[derive(Clone, Copy)]
struct Claim {
    cursor: &'static RingCursor,
    /// As it was before the claim: a handler may fork behind it, and its child find the place wiped.
    slots: Slots,
    number: u64,
}

impl Claim {
    /// A claim of `slots` at a cursor; one without room is an error.
    fn at(cursor: &'static RingCursor, slots: u64) -> Result<Self, Self> {
        let before = cursor.slots();
        let of = |number| Self { cursor, slots: before, number };
        cursor.claim_in(before, slots).map(of).map_err(of)
    }

    /// A slot of it, or of its ring.
    fn slot(&self, number: u64) -> &'static Slot {
        // SAFETY: a claim that found room says that the cursor was open, and slots stay mapped.
        unsafe { &*self.slots.at(number) }
    }
}

/// Slots for a call of this thread.
fn claim(slots: u64) -> Option<Claim> {
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
        Some(Err(claim)) => seek(Some(claim), slots),
        None => seek(None, slots),
    }
}

/// Where the caller's stack ends.
#[inline(always)]
pub fn stack() -> usize {
    let here: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads a register.
    unsafe {
        asm!("mov {0}, rsp", out(reg) here, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        asm!("mov {0}, sp", out(reg) here, options(nomem, nostack, preserves_flags));
    }
    here
}

/// Makes the frame at `here` the outermost one, unless it is nested; what was there before goes back at the end.
fn enter(cursor: &RingCursor, caller: usize, here: usize, head: Head) -> (Head, usize) {
    let before = cursor.outermost.load(Ordering::Relaxed);
    if before > here && vendor::calls_from(caller) {
        return (head.nested(), before);
    }
    cursor.outermost.store(here, Ordering::Relaxed);
    (head, before)
}

/// Slots for a call that found no place, or no room: `claim` is what it got instead.
#[cold]
#[inline(never)]
fn seek(claim: Option<Claim>, slots: u64) -> Option<Claim> {
    if let Some(cursor) = thread::cursor() {
        // Not what was claimed elsewhere: a handler may have found this place only just now.
        let claim = claim.filter(|claim| ptr::eq(claim.cursor, cursor));
        return claim.map_or_else(|| Claim::at(cursor, slots), Err).or_else(|claim| seek_room(claim, slots)).ok();
    }
    let thread = thread::current();
    if thread.patience.get() > 0 {
        thread.patience.set(thread.patience.get() - 1);
        match process::process().or_else(|| edge::undisturbed(process::own).flatten()) {
            Some(process) => process.miss(),
            None => process::miss_early(),
        }
        return None;
    }
    let cursor = edge::undisturbed(attach).flatten()?;
    Claim::at(cursor, slots).or_else(|claim| seek_room(claim, slots)).ok()
}

/// Room for a claim that found none; if there is still none it is given back, and counted.
fn seek_room(claim: Claim, slots: u64) -> Result<Claim, ()> {
    let Claim { cursor, number: claimed, .. } = claim;
    let is_put_off = drain::is_still_put_off();
    // SAFETY: the cursor is open, and this thread's.
    if !is_put_off && unsafe { cursor.is_still_full(claimed, slots) } {
        return Err(());
    }
    let now = ticks(cursor.clock.load(Ordering::Relaxed));
    // SAFETY: the cursor is open, and this thread's.
    let look = |wait: &mut dyn FnMut() -> bool| unsafe { cursor.make_room(claimed, slots, now, wait) };
    let number = if cursor.mode.load(Ordering::Relaxed) == Mode::Lossless as u32 {
        // Signals held back: a handler that jumped out would leave the thread as it is in here.
        let end = monotonic_ns() + 100_000_000;
        edge::undisturbed(|| {
            look(&mut || {
                edge::pause(100_000);
                drain::may_run() && monotonic_ns() < end
            })
        })
        .flatten()
    } else {
        look(&mut || false)
    };
    come_back(cursor, is_put_off);
    number.map(|_| claim).ok_or(())
}

/// Has one of the thread's next calls come by the cold path again, if there is still something to do there: the drain's
/// start `is_put_off`, or the library is to be asked who it is.
pub fn come_back(cursor: &RingCursor, is_put_off: bool) {
    let drain = is_put_off.then(drain::calls).flatten();
    let Some(calls) = drain.into_iter().chain(identity::seek()).min() else { return };
    let soon = cursor.next.load(Ordering::Relaxed) + (calls - 1);
    if soon < cursor.limit.load(Ordering::Relaxed) {
        cursor.limit.store(soon, Ordering::Relaxed);
    }
}

/// Finds a cursor for this thread, with its first call in this process; a call without one is counted.
fn attach() -> Option<&'static RingCursor> {
    let nowhere = match take_cursor() {
        Ok(cursor) => return Some(cursor),
        Err(nowhere) => nowhere,
    };
    match nowhere {
        Nowhere::Off => {}
        Nowhere::Early => process::miss_early(),
        Nowhere::NoRing(process) => {
            process.miss();
            // Each attempt costs a few system calls: the next one comes after twice as many calls.
            let thread = thread::current();
            thread.waits.set((2 * thread.waits.get()).clamp(1, 1 << 16));
            thread.patience.set(thread.waits.get() - 1);
        }
    }
    None
}

/// Why a thread has no place.
pub enum Nowhere {
    /// Nothing is to be recorded.
    Off,
    /// Too early, or there is no memory at all.
    Early,
    /// There is no ring for it.
    NoRing(&'static Process),
}

/// Finds a cursor for this thread. Signals are held back.
pub fn take_cursor() -> Result<&'static RingCursor, Nowhere> {
    match standing() {
        Standing::Active => {}
        Standing::Unready => return Err(Nowhere::Early),
        Standing::Off | Standing::Passive => return Err(Nowhere::Off),
    }
    let thread = thread::current();
    if !thread.visited.replace(true) {
        rebind::refresh(rebind::Trigger::Copy);
    }
    let process = process::own().ok_or(Nowhere::Early)?;
    // A signal handler may have come before us.
    if let Some(cursor) = thread::cursor() {
        return Ok(cursor);
    }
    let cursor = process.make_file().and_then(|file| process.open(&thread.own, identity::thread_id(), &file));
    // A handler of a signal that cannot be held back may have forked: in the child this is nobody's, and the ring its parent's.
    if !process.is_own() {
        return thread::cursor().ok_or(Nowhere::Early);
    }
    let cursor = cursor.ok_or(Nowhere::NoRing(process))?;
    // Last: whoever is interrupted by this finds no place, or an open one.
    thread.cursor.set(cursor);
    drain::ensure(process);
    come_back(cursor, drain::is_still_put_off());
    Ok(cursor)
}
