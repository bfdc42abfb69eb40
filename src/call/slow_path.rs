//! The policy of a call that takes more than one slot, or has anything else unusual about it: record, check, refuse,
//! inject, forward, check again, record.

use crate::call::observer::{Answer, Ticket};
use crate::check::judgement::Judgement;
use crate::check::post_call;
use crate::check::pre_call::{self, PreCall};
use crate::guest::thread;
use crate::inject::{self, InjectedFault};
use crate::record::frame::{Frame, Words};
use crate::ring::{identity, process};
use aclshim_facts::Function;
use aclshim_facts::abi::aclError;
use aclshim_facts::call::{Call, Form};
use aclshim_facts::code::ACL_SUCCESS;
use aclshim_trace::record::INJECTED;

/// Makes a call from `caller`: `forward` calls the vendor's function, at most once. Nothing here needs a clean-up while it
/// runs: an exception, a longjmp or the end of the thread may pass through. In the caller's frame, whose address tells
/// which calls are nested in it.
///
/// # Safety
/// The arguments of `call`, which are those in `words`, are the caller's.
#[inline(always)]
pub unsafe fn run(
    function: Function,
    caller: usize,
    words: &Words,
    call: &Call,
    forward: impl FnOnce() -> aclError,
) -> aclError {
    let here = thread::stack();
    // Before anything of the caller's is read: a fault from here on has a name.
    let frame = Frame::begin_slow(function, caller, here, words, call);
    let mut ticket = Ticket::begin(function, caller, here, words, &frame);
    // SAFETY: the arguments of a call that is about to be forwarded.
    let before = unsafe { pre_call::check(function, call, |judgement| found(&frame, ticket, judgement)) };
    ticket.go();
    // SAFETY: the caller's promise.
    let answer = match unsafe { before.refuse(function, call) } {
        Some(code) => Answer { code, of_vendor: None },
        None => {
            let fault = if inject::is_set() {
                // SAFETY: the caller's promise.
                unsafe { select_fault(function, call, caller, &frame, &before, ticket) }
            } else {
                None
            };
            let of_vendor = match inject::instead(&fault) {
                Some(_) => None,
                None => Some(forward()),
            };
            // SAFETY: it has just returned, or was not forwarded.
            let code = unsafe { inject::after(&fault, call, of_vendor) };
            Answer { code, of_vendor }
        }
    };
    let now = frame.now();
    let ns = ticket.elapsed();
    if answer.of_vendor == Some(ACL_SUCCESS) && identity::is_wanted() {
        identity::accepted(call, caller, process::header);
    }
    // SAFETY: it has just returned, or was answered in the vendor's place.
    unsafe {
        end(&frame, now, answer, function, call, &before, ticket);
        ticket.end(answer, ns, call, &before);
    }
    answer.code
}

fn found(frame: &Frame, ticket: Ticket, judgement: &Judgement) {
    frame.record_findings(judgement);
    ticket.found(judgement);
}

/// Whether a call that is about to be forwarded is struck by an injection; it has waited then, if it had to.
#[cold]
#[inline(never)]
unsafe fn select_fault(
    function: Function,
    call: &Call,
    caller: usize,
    frame: &Frame,
    before: &PreCall,
    ticket: Ticket,
) -> Option<InjectedFault> {
    // What a scope sees is no call inside another one.
    if !inject::has_any() || !ticket.is_some() && frame.is_nested(caller) {
        return None;
    }
    // SAFETY: the caller's promise.
    let fault = unsafe { inject::select(function, call, caller, before.summary.map(|summary| summary.total)) }?;
    // Before it waits: it may never come back.
    frame.flag(INJECTED);
    ticket.injected();
    fault.delay();
    Some(fault)
}

/// A call was answered at `now`: completes its record.
///
/// # Safety
/// By the vendor's function, for the arguments of `call`, or in its place.
#[inline(never)]
unsafe fn end(
    frame: &Frame,
    now: u64,
    answer: Answer,
    function: Function,
    call: &Call,
    before: &PreCall,
    ticket: Ticket,
) {
    // What the vendor has not looked at may not be looked at.
    if let (Form::Batch(of), Some(code)) = (&call.form, answer.of_vendor) {
        // SAFETY: the caller's promise; the call was recorded as a batch.
        let is_recorded = unsafe { frame.complete_batch(of, code, before.summary) };
        let is_wanted = is_recorded || ticket.is_some();
        // SAFETY: the caller's promise.
        let judgement = is_wanted.then(|| unsafe { post_call::check(function, call, before, code) });
        judgement.flatten().inspect(|judgement| found(frame, ticket, judgement));
    }
    frame.end_slow(now, answer.code);
}
