//! The check of a batch once the vendor has answered: the findings that could not be seen before.

use crate::check::judgement::{Judgement, judge};
use crate::check::pre_call::PreCall;
use crate::check::{policy, world};
use crate::guest::edge;
use aclshim_core::arrays;
use aclshim_facts::Function;
use aclshim_facts::abi::aclError;
use aclshim_facts::call::{Call, Form};
use aclshim_facts::code::{ACL_ERROR_RT_PARAM_INVALID, ACL_SUCCESS};
use aclshim_facts::rule::{Phase, Subject, Verdict};
use aclshim_facts::rules::{Check, checklist};

/// Judges a batch that the vendor has answered, by what the vendor has read of its arrays.
///
/// # Safety
/// The vendor has returned `code` for this call.
#[cold]
#[inline(never)]
pub unsafe fn check(function: Function, call: &Call, before: &PreCall, code: aclError) -> Option<Judgement> {
    let Form::Batch(batch) = &call.form else { return None };
    let world = world::of(call);
    let subject = |arrays| Subject { function, call: *call, arrays, world };
    match (code, before.has_error) {
        (ACL_SUCCESS, _) => {
            let arrays = match before.summary {
                // SAFETY: it has copied something, and so has read them.
                Some(_) => unsafe { arrays::after_success(batch) },
                // SAFETY: the vendor has accepted the call: these are read as far as it has read them itself.
                None => unsafe { arrays::copied(batch, code) }?.arrays(),
            };
            let subject = subject(arrays);
            let mut judgement = Judgement::NONE;
            for check in checklist(call).checks(Phase::Advice, function) {
                let Check::Rule(rule, step) = check else { continue };
                if !rule.needs_item_addresses || policy::is_off(rule, rule.severity) {
                    continue;
                }
                if let Verdict::Broken(finding) = step.check(rule, &subject) {
                    judgement.add(&subject, rule, &finding);
                }
            }
            Some(judgement).filter(|judgement| judgement.bits != 0)
        }
        (ACL_ERROR_RT_PARAM_INVALID, false) => {
            let judgement = edge::catching_panics(|| {
                // SAFETY: the caller's promise, and what it has read of the call before this.
                let (before, all) = unsafe { (arrays::before_call(call, &world), arrays::after_refusal(call, &world)) };
                // Findings that are no reason to refuse the call were reported before it was forwarded.
                let reported = judge(&subject(before), 0).map_or(0, |judgement| judgement.bits);
                judge(&subject(all), reported)
            });
            // It was forwarded: the vendor itself has refused it.
            let mut judgement = judgement.flatten()?;
            judgement.refusal = None;
            Some(judgement)
        }
        _ => None,
    }
}
