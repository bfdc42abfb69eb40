//! The open scopes as an observer of calls: what the slow path reports of a call goes to the entry of that call. A call
//! that never ends keeps its entry, so nothing here needs a clean-up.

use crate::call::observer::{self, Answer, BegunCall, CallObserver, Observed};
use crate::check::judgement::Judgement;
use crate::check::pre_call::PreCall;
use crate::guest::thread;
use crate::harness::state::entry::{CallState, Entry};
use crate::harness::state::names::NamesAt;
use crate::harness::state::{access, lock};
use crate::inject::naming::{self, Harness};
use crate::loader::vendor;
use aclshim_core::arrays;
use aclshim_facts::call::{Call, Form};
use aclshim_facts::selector::Names;
use core::sync::atomic::{AtomicU64, Ordering};

/// The number of the next call. A fork child goes on from its parent's: what began there has no number here.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// The open scopes, as the slow path of calls knows them.
struct Scopes;

static OBSERVER: &dyn CallObserver = &Scopes;
static HARNESS: &dyn Harness = &Scopes;

/// Makes the harness known to calls and injections.
pub fn install() {
    observer::install(&OBSERVER);
    naming::install(&HARNESS);
}

impl CallObserver for Scopes {
    fn begin(&self, call: &BegunCall<'_>) -> Option<Observed> {
        let &BegunCall { function, caller, here, words, nesting } = call;
        access::with_or_count_miss(|state| {
            if state.scopes.is_empty() {
                // A fork child, whose parent has some.
                observer::set_active(false);
                return None;
            }
            let thread = thread::number();
            let scope = state.scopes.iter().rev().find(|scope| scope.reaches(thread))?.id as u32;
            // A call that found no room in its ring knows nothing of those around it, but the scope sees them.
            let is_inside = || state.open_calls().any(|entry| entry.thread == thread && entry.here > here);
            if nesting.unwrap_or_else(|| vendor::contains(caller) && is_inside()) {
                return None;
            }
            state.abandon(thread, |other| thread::is_frame_gone(other, here));
            if !lock::has_room(size_of::<Entry>()) {
                lock::miss();
                return None;
            }
            let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
            state.push(Entry::new(number, function, words, caller, here, [thread, thread::id().into()]));
            Some(Observed { number, scope })
        })
    }

    fn found(&self, number: u64, judgement: &Judgement) {
        access::with_or_count_miss(|state| {
            state.entry(number)?.add_findings(judgement);
            Some(())
        });
    }

    fn injected(&self, number: u64) {
        access::with_or_count_miss(|state| {
            state.entry(number)?.set_flags(false, true);
            Some(())
        });
    }

    #[cold]
    #[inline(never)]
    unsafe fn end(&self, number: u64, answer: Answer, ns: u64, call: &Call, before: &PreCall) {
        let copied = match (&call.form, answer.of_vendor) {
            // SAFETY: the caller's promise.
            (Form::Batch(batch), Some(code)) => unsafe { arrays::copied(batch, code) },
            _ => None,
        };
        // Before the lock is taken: no thread is to wait for a fault.
        copied.iter().for_each(arrays::Copied::touch);
        access::with_or_count_miss(|state| {
            // A fork child ends what its parent began, and knows nothing of it.
            let entry = state.entry(number)?;
            entry.fate = CallState::Done;
            entry.code = answer.code;
            entry.duration_ns = ns;
            entry.set_flags(before.is_refusal(), entry.is_injected());
            match &copied {
                Some(copied) if lock::has_room(64 * copied.dsts.len()) => entry.copy_arrays(copied),
                Some(_) => lock::miss(),
                None => {}
            }
            let thread = entry.thread;
            state.close(number);
            // What this thread has begun since is over, one way or the other.
            state.abandon_since(thread, number);
            Some(())
        });
    }
}

/// Calls `asked` with the names that the program has given; `false` where the lock is not available.
fn with_names(asked: impl FnOnce(&NamesAt<'_>) -> bool) -> bool {
    lock::existing().is_some() && access::with(|state| asked(&state.names.at(u64::MAX))).unwrap_or(false)
}

impl Names for Scopes {
    fn stream(&self, stream: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        with_names(|names| names.stream(stream, is))
    }

    fn buffer(&self, address: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        with_names(|names| names.buffer(address, is))
    }

    fn module(&self, _: u64, _: &mut dyn FnMut(&[u8], u64) -> bool) -> bool {
        false
    }
}

impl Harness for Scopes {
    fn locked(&self, work: fn()) {
        let _ = access::with(|_| work());
    }
}
