//! The check of a call before it is forwarded.
//!
//! While nothing may be refused, only batches are judged here: their arrays are the caller's, and may be gone when the
//! call has returned. All other calls are judged by the reader of their records, which hold everything that the rules
//! look at: a call that breaks no rule pays nothing for them.

use crate::check::judgement::{Judgement, Refusal, judge};
use crate::check::{policy, world};
use crate::guest::{edge, log};
use aclshim_core::arrays;
use aclshim_core::summary::{self, BatchSummary};
use aclshim_facts::Function;
use aclshim_facts::abi::aclError;
use aclshim_facts::call::{Call, Form};
use aclshim_facts::policy::Action;
use aclshim_facts::rule::{Arrays, Subject};
use aclshim_facts::rules::quick::{breaks_no_rule, breaks_no_rule_but_alignment};

/// What is known of a call before it is forwarded. It lies on the caller's stack while the vendor works.
#[derive(Clone, Copy, Default)]
pub struct PreCall {
    /// The sizes of a batch in which nothing is wrong.
    pub summary: Option<BatchSummary>,
    /// Whether a finding is an error: the vendor refuses the call.
    pub has_error: bool,
    refusal: Option<Refusal>,
}

/// Judges a call that is about to be forwarded; `found` gets the findings.
///
/// # Safety
/// The arguments are the caller's: what the vendor would read of its arrays may be read.
#[inline(always)]
pub unsafe fn check(function: Function, call: &Call, found: impl Fn(&Judgement)) -> PreCall {
    let is_batch = matches!(call.form, Form::Batch(_));
    if !is_batch && !policy::is_strict() {
        return PreCall::default();
    }
    // SAFETY: the caller's promise.
    unsafe { check_rules(function, call, found) }
}

/// Out of line: the caller's frame lies on the stack while the vendor works. Compiled once a function: that saves 19 instructions
/// of a call that is judged.
#[inline(never)]
unsafe fn check_rules(function: Function, call: &Call, found: impl Fn(&Judgement)) -> PreCall {
    let world = world::of(call);
    let is_on_stream = call.stream.is_some_and(|stream| !stream.is_null());
    let summary = match &call.form {
        // SAFETY: the caller's promise.
        Form::Batch(batch) => unsafe { summary::summarize(batch, is_on_stream, &world) },
        _ => None,
    };
    let subject = Subject { function, call: *call, arrays: Arrays::default(), world };
    let is_clean =
        policy::is_alignment_deferred() && breaks_no_rule_but_alignment(&subject) || breaks_no_rule(&subject);
    if summary.is_some() || is_clean {
        return PreCall { summary, ..PreCall::default() };
    }
    let judgement = edge::catching_panics(|| {
        // SAFETY: the caller's promise.
        let arrays = unsafe { arrays::before_call(call, &world) };
        judge(&Subject { arrays, ..subject }, 0)
    });
    let Some(judgement) = judgement.flatten() else { return PreCall::default() };
    found(&judgement);
    PreCall { summary: None, has_error: judgement.has_error, refusal: judgement.refusal }
}

impl PreCall {
    /// Whether the call is refused.
    pub fn is_refusal(&self) -> bool {
        self.refusal.is_some()
    }

    /// The code to return in the vendor's place, if the call is refused. Writes what the vendor would have written to
    /// `failIndex`. If the rule's action is to end the program, it does.
    ///
    /// # Safety
    /// It is of this call, whose arguments are the caller's.
    pub unsafe fn refuse(&self, function: Function, call: &Call) -> Option<aclError> {
        let Refusal { rule, action, code, fail_index } = self.refusal?;
        if action == Action::Abort {
            log::log_abort(function.row().name, rule.id, rule.statement, rule.fix);
            // SAFETY: ends the program, as the setting asks for.
            unsafe { libc::abort() };
        }
        // SAFETY: the caller's promise.
        unsafe { arrays::write_fail_index(call, fail_index) };
        Some(code)
    }
}
