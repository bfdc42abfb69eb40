//! What a call meets on the long way while a scope is open: a ticket when it begins, findings as they are told, and its
//! end. A call that never ends keeps its ticket: nothing here needs a clean-up.

use super::desk;
use super::entry::{Entry, Fate};
use super::state::Reach;
use crate::check::{Before, Judgement};
use crate::record::{Frame, Words};
use crate::target::{self, Reason};
use crate::{arrays, identity, thread};
use aclshim_facts::Function;
use aclshim_facts::call::{Call, Form};
use aclshim_trace::clock::monotonic_ns;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many scopes are open; in a fork child, at first, how many were.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// The number of the next call. A fork child goes on from its parent's: what began there has no number here.
static NUMBERS: AtomicU64 = AtomicU64::new(1);
/// The number of the next thread.
static THREADS: AtomicU64 = AtomicU64::new(1);

/// A call under way, if a scope sees it.
#[derive(Clone, Copy)]
pub struct Ticket {
    number: u64,
    begun: u64,
    ended: u64,
}

impl Ticket {
    const NONE: Self = Self { number: 0, begun: 0, ended: 0 };

    /// Whether a scope sees the call.
    pub fn is_some(self) -> bool {
        self.number != 0
    }

    /// The vendor is about to be called.
    #[inline(always)]
    pub fn go(&mut self) {
        if self.is_some() {
            self.begun = monotonic_ns();
        }
    }

    /// The vendor has returned.
    #[inline(always)]
    pub fn returned(&mut self) {
        if self.is_some() {
            self.ended = monotonic_ns();
        }
    }
}

/// The calling thread's number.
pub fn thread_number() -> u64 {
    let number = &thread::current().number;
    if number.get() == 0 {
        number.set(THREADS.fetch_add(1, Ordering::Relaxed));
    }
    number.get()
}

/// From now on so many scopes are open. Only at the desk.
pub fn set_open(scopes: usize) {
    if scopes > 0 {
        OPEN.store(scopes, Ordering::Release);
        target::detour_all(Reason::Scope);
    } else {
        target::release(Reason::Scope);
        OPEN.store(0, Ordering::Release);
    }
}

/// A call begins; `here` is the stack of the frame that makes it.
#[inline(always)]
pub fn begin(function: Function, caller: usize, here: usize, words: &Words, frame: &Frame) -> Ticket {
    // Relaxed: whoever opened a scope before this call, on this thread or with this one ordered after it, is seen.
    if OPEN.load(Ordering::Relaxed) == 0 {
        return Ticket::NONE;
    }
    begin_seen(function, caller, here, words, frame)
}

#[cold]
#[inline(never)]
fn begin_seen(function: Function, caller: usize, here: usize, words: &Words, frame: &Frame) -> Ticket {
    let begun = desk::note(|state| {
        if state.scopes.is_empty() {
            // A fork child, whose parent has some.
            set_open(0);
            return None;
        }
        let thread = thread_number();
        let scope = state.scopes.iter().rev().find(|scope| scope.reaches(thread))?;
        let id = scope.id;
        if frame.is_nested() || state.is_inside(thread, here, caller) {
            return None;
        }
        state.leave(thread, |other| other <= here);
        if !desk::has_room(size_of::<Entry>()) {
            desk::miss();
            return None;
        }
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let system = identity::thread_id().into();
        state.push(Entry::new(number, function, words, caller, here, [thread, system]));
        Some((number, id))
    });
    let Some((number, scope)) = begun else { return Ticket::NONE };
    frame.note_scope(scope as u32);
    Ticket { number, ..Ticket::NONE }
}

/// Something was found wrong with a batch.
pub fn found(ticket: Ticket, judgement: &Judgement) {
    if ticket.is_some() {
        desk::note(|state| {
            let told: Vec<_> = judgement.all().collect();
            state.entry(ticket.number)?.find(&told);
            Some(())
        });
    }
}

/// A call has returned `code`.
///
/// # Safety
/// By the vendor's function, for the arguments of `call`, or in its place.
#[inline(always)]
pub unsafe fn end(ticket: Ticket, code: i32, call: &Call, before: &Before) {
    if ticket.is_some() {
        // SAFETY: the caller's promise.
        unsafe { end_seen(ticket, code, call, before) };
    }
}

#[cold]
#[inline(never)]
unsafe fn end_seen(ticket: Ticket, code: i32, call: &Call, before: &Before) {
    let copied = match &call.form {
        // SAFETY: the caller's promise.
        Form::Batch(batch) if !before.is_refusal() => unsafe { arrays::copied(batch, code) },
        _ => None,
    };
    // Not at the desk for the first time: nobody is to wait for a fault.
    copied.iter().for_each(arrays::Copied::touch);
    desk::note(|state| {
        // A fork child ends what its parent began, and knows nothing of it.
        let entry = state.entry(ticket.number)?;
        entry.fate = Fate::Done;
        entry.code = code;
        entry.duration_ns = ticket.ended.saturating_sub(ticket.begun);
        if before.is_refusal() {
            entry.set_refused();
        }
        match &copied {
            Some(copied) if desk::has_room(64 * copied.dsts.len()) => entry.keep(copied),
            Some(_) => desk::miss(),
            None => {}
        }
        let (thread, here) = (entry.thread, entry.here);
        state.leave(thread, |other| other < here);
        state.close(ticket.number);
        Some(())
    });
}

/// Whether a reach and a thread are a scope's.
pub fn reaches(reach: Reach, owner: u64, thread: u64) -> bool {
    reach == Reach::Process || owner == thread
}
