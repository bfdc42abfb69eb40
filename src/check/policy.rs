//! The policy in force: what is done about a finding of each rule, and which calls are judged for it.

use crate::settings::settings;
use aclshim_facts::policy::{Action, Policy};
use aclshim_facts::rule::{Rule, Severity};
use aclshim_facts::rules::RULES;
use aclshim_facts::settings::{Mode, Stack};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

struct Shared(UnsafeCell<Policy>);
// SAFETY: written by the one thread that boots, before `boot` says that it is done; read after that.
unsafe impl Sync for Shared {}

static POLICY: Shared = Shared(UnsafeCell::new(Policy::new(false)));
/// Whether every call is judged before it is forwarded.
#[unsafe(link_section = ".bss.startup")]
static IS_STRICT: AtomicBool = AtomicBool::new(false);
/// Whether findings of ALIGN-64 are left to the reader of the record.
static IS_ALIGNMENT_DEFERRED: AtomicBool = AtomicBool::new(true);

/// The policy that the settings describe; `refused` gets the parts that make no sense.
pub fn from_settings(refused: impl FnMut(&'static [u8])) -> Policy {
    let mut policy = Policy::new(settings().mode == Mode::Enforce);
    let number = |id: &[u8]| RULES.iter().position(|rule| rule.id.as_bytes() == id);
    policy.read(settings().rules.as_bytes(), number, refused);
    policy
}

/// Puts the policy of the settings in force.
///
/// # Safety
/// Called once, by the thread that boots.
pub unsafe fn read() {
    let (has_stack, policy) = (settings().stack == Stack::Findings, from_settings(|_| ()));
    IS_STRICT.store(policy.may_refuse() || has_stack, Ordering::Relaxed);
    let is_named = RULES.iter().any(|rule| rule.has_quick_check && policy.is_said(rule.number.into()));
    IS_ALIGNMENT_DEFERRED.store(!is_named && !has_stack, Ordering::Relaxed);
    // SAFETY: the caller's promise.
    unsafe { *POLICY.0.get() = policy };
}

/// The policy in force.
pub fn in_force() -> &'static Policy {
    // SAFETY: see `Shared`.
    unsafe { &*POLICY.0.get() }
}

/// Whether findings of a rule are neither recorded nor reported.
pub fn is_off(rule: &Rule, severity: Severity) -> bool {
    in_force().action(rule.number.into(), severity) == Action::Off
}

/// Whether every call must be judged before it is forwarded, and so none may take the fast path.
pub fn is_strict() -> bool {
    IS_STRICT.load(Ordering::Relaxed)
}

/// Whether findings of ALIGN-64 are left to the reader of the record.
pub fn is_alignment_deferred() -> bool {
    IS_ALIGNMENT_DEFERRED.load(Ordering::Relaxed)
}
