//! What a call meets on the long way while a scope is open: a ticket when it begins, findings as they are told, and its
//! end. A call that never ends keeps its ticket: nothing here needs a clean-up.

use super::desk;
use super::entry::{Entry, Fate};
use super::names::NamesAt;
use super::state::Reach;
use crate::check::arrays;
use crate::check::judgement::{Before, Judgement};
use crate::guest::thread;
use crate::loader::target::{self, Reason};
use crate::loader::vendor;
use crate::record::frame::{Answer, Frame, Words};
use crate::ring::identity;
use aclshim_facts::Function;
use aclshim_facts::call::{Call, Form};
use aclshim_trace::system::clock::monotonic_ns;
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
        // A call that found no room in its ring knows nothing of those around it, but the scope sees them.
        let is_inside = || state.open_calls().any(|entry| entry.thread == thread && entry.here > here);
        if frame.nesting().unwrap_or_else(|| vendor::calls_from(caller) && is_inside()) {
            return None;
        }
        state.leave(thread, |other| is_gone(other, here));
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

/// Whether a frame that lay at `other` is gone when its thread is at `here`: beside it or above. Frames of different
/// functions are not equally large; one inside another has at least all of its own between.
pub fn is_gone(other: usize, here: usize) -> bool {
    const DIFFERENCE: usize = 256;
    other <= here.saturating_add(DIFFERENCE) && !is_on_another_stack()
}

/// Whether this thread handles a signal on a stack of its own: addresses say nothing there.
fn is_on_another_stack() -> bool {
    // SAFETY: asks, into a value of ours; all zero is a valid one.
    unsafe {
        let mut stack = core::mem::zeroed::<libc::stack_t>();
        libc::sigaltstack(core::ptr::null(), &mut stack) == 0 && stack.ss_flags & libc::SS_ONSTACK != 0
    }
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

/// An injection strikes the call.
pub fn strike(ticket: Ticket) {
    if ticket.is_some() {
        desk::note(|state| {
            state.entry(ticket.number)?.set_flags(false, true);
            Some(())
        });
    }
}

/// A call has got its answer.
///
/// # Safety
/// By the vendor's function, for the arguments of `call`, or in its place.
#[inline(always)]
pub unsafe fn end(ticket: Ticket, answer: Answer, call: &Call, before: &Before) {
    if ticket.is_some() {
        // SAFETY: the caller's promise.
        unsafe { end_seen(ticket, answer, call, before) };
    }
}

#[cold]
#[inline(never)]
unsafe fn end_seen(ticket: Ticket, answer: Answer, call: &Call, before: &Before) {
    let copied = match (&call.form, answer.of_vendor) {
        // SAFETY: the caller's promise.
        (Form::Batch(batch), Some(code)) => unsafe { arrays::copied(batch, code) },
        _ => None,
    };
    // Not at the desk for the first time: nobody is to wait for a fault.
    copied.iter().for_each(arrays::Copied::touch);
    desk::note(|state| {
        // A fork child ends what its parent began, and knows nothing of it.
        let entry = state.entry(ticket.number)?;
        entry.fate = Fate::Done;
        entry.code = answer.code;
        entry.duration_ns = ticket.ended.saturating_sub(ticket.begun);
        entry.set_flags(before.is_refusal(), entry.is_struck());
        match &copied {
            Some(copied) if desk::has_room(64 * copied.dsts.len()) => entry.keep(copied),
            Some(_) => desk::miss(),
            None => {}
        }
        let thread = entry.thread;
        state.close(ticket.number);
        // What this thread has begun since is over, one way or the other.
        state.leave_since(thread, ticket.number);
        Some(())
    });
}

/// Asks for the names that the program has given, as they are now; `false` where they cannot be had.
pub fn with_names(asked: impl FnOnce(&NamesAt<'_>) -> bool) -> bool {
    desk::desk().is_some() && desk::with(|state| asked(&state.names.at(u64::MAX))).unwrap_or(false)
}

/// Whether a reach and a thread are a scope's.
pub fn reaches(reach: Reach, owner: u64, thread: u64) -> bool {
    reach == Reach::Process || owner == thread
}
