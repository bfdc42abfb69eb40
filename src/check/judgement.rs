//! What the rules say of a call before it is forwarded, and what is done about it.
//!
//! While nothing may be refused, only batches are judged here: their arrays are the caller's, and may be gone when the
//! call has returned. All other calls are judged by the reader of their records, which hold everything that the rules
//! look at: a call that breaks no rule pays nothing for them.

use crate::check::{stack, world};
use crate::guest::{edge, log};
use crate::settings::settings;
use aclshim_core::arrays;
use aclshim_core::look::{self, Look};
use aclshim_facts::Function;
use aclshim_facts::abi::aclError;
use aclshim_facts::call::{Call, Form};
use aclshim_facts::code::{ACL_ERROR_RT_PARAM_INVALID, ACL_SUCCESS};
use aclshim_facts::policy::{Action, Policy};
use aclshim_facts::rule::{self, Arrays, Phase, Prediction, Rule, Severity, Subject, Verdict};
use aclshim_facts::rules::quick::{breaks_no_rule, breaks_no_rule_but_alignment};
use aclshim_facts::rules::role::Role;
use aclshim_facts::rules::{Check, RULES, checklist, judge_each, predict};
use aclshim_facts::settings::{Mode, Stack};
use aclshim_facts::world::{Stream, World};
use aclshim_trace::record::slot::Note;
use aclshim_trace::record::{Extent, FRAMES, REFUSED, RecordedFinding};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// Number of findings of one call that are recorded one by one; the bits of all are in its record.
const MOST: usize = 4;

/// What the rules say of a call.
#[derive(Clone, Copy)]
pub struct Judgement {
    findings: [Option<RecordedFinding>; MOST],
    /// One bit a rule.
    pub bits: u128,
    /// Whether the vendor refuses the call for one of them.
    has_error: bool,
    refusal: Option<Refusal>,
    frames: Option<[u64; FRAMES]>,
}

/// A finding, for an observer of the program's calls.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // as in a finding
pub struct ReportedFinding {
    pub rule: u8,
    pub severity: Severity,
    pub argument: u8,
    pub index: Option<u64>,
    pub values: [u64; 2],
    pub code: aclError,
    pub fail_index: Option<u64>,
}

/// By their numbers.
const ALL_SEVERITIES: [Severity; 4] = [Severity::Portability, Severity::Perf, Severity::Violation, Severity::Error];

/// What is returned in the vendor's place.
#[derive(Clone, Copy)]
struct Refusal {
    rule: &'static Rule,
    action: Action,
    code: aclError,
    fail_index: Option<usize>,
}

struct Shared(UnsafeCell<Policy>);
// SAFETY: written by the one thread that boots, before `boot` says that it is done; read after that.
unsafe impl Sync for Shared {}

static POLICY: Shared = Shared(UnsafeCell::new(Policy::new(false)));
/// Whether every call is judged before it is forwarded.
static IS_STRICT: AtomicBool = AtomicBool::new(false);

/// What the settings say; `refused` gets what makes no sense.
pub fn policy(refused: impl FnMut(&'static [u8])) -> Policy {
    let mut policy = Policy::new(settings().mode == Mode::Enforce);
    let number = |id: &[u8]| RULES.iter().position(|rule| rule.id.as_bytes() == id);
    policy.read(settings().rules.as_bytes(), number, refused);
    policy
}

/// Whether what ALIGN-64 finds can be left to the reader of the record.
static IS_ALIGNMENT_QUIET: AtomicBool = AtomicBool::new(true);

/// Takes over what the settings say.
///
/// # Safety
/// Called once, by the thread that boots.
pub unsafe fn read() {
    let (settings, policy) = (settings(), policy(|_| ()));
    IS_STRICT.store(policy.may_refuse() || settings.stack == Stack::Findings, Ordering::Relaxed);
    let is_said = RULES.iter().any(|rule| rule.has_quick_check && policy.is_said(rule.number.into()));
    let is_quiet = !is_said && settings.stack != Stack::Findings;
    IS_ALIGNMENT_QUIET.store(is_quiet, Ordering::Relaxed);
    // SAFETY: the caller's promise.
    unsafe { *POLICY.0.get() = policy };
}

/// Whether nothing is to be said of a rule.
pub fn is_off(rule: &Rule, severity: Severity) -> bool {
    // SAFETY: written before anybody can be here.
    unsafe { &*POLICY.0.get() }.action(rule.number.into(), severity) == Action::Off
}

/// Whether every call must be judged before it is forwarded, and so none may take the fast path.
pub fn is_strict() -> bool {
    IS_STRICT.load(Ordering::Relaxed)
}

/// What is known of a call before it is forwarded. It lies on the caller's stack while the vendor works.
#[derive(Clone, Copy, Default)]
pub struct Before {
    /// What the sizes of a batch add up to, if nothing is wrong with it.
    pub look: Option<Look>,
    /// Whether something was found that the vendor refuses the call for.
    is_wrong: bool,
    refusal: Option<Refusal>,
}

/// Judges a call that is about to be forwarded; `found` gets what is wrong with it.
///
/// # Safety
/// The arguments are the caller's: what the vendor would read of its arrays may be read.
#[inline(always)]
pub unsafe fn before(function: Function, call: &Call, found: impl FnOnce(&Judgement)) -> Before {
    let is_batch = matches!(call.form, Form::Batch(_));
    if !is_batch && !is_strict() {
        return Before::default();
    }
    // SAFETY: the caller's promise.
    unsafe { look_closer(function, call, found) }
}

/// Not for the caller's frame, which lies on the stack while the vendor works.
#[inline(never)]
unsafe fn look_closer(function: Function, call: &Call, found: impl FnOnce(&Judgement)) -> Before {
    let world = world::of(call);
    let is_on_stream = call.stream.is_some_and(|stream| !stream.is_null());
    let look = match &call.form {
        // SAFETY: the caller's promise.
        Form::Batch(batch) => unsafe { look::look(batch, is_on_stream, &world) },
        _ => None,
    };
    // Nothing is wrong, or nothing that a call is refused for.
    let subject = Subject { function, call: *call, arrays: Arrays::default(), world };
    let is_quiet = IS_ALIGNMENT_QUIET.load(Ordering::Relaxed) && breaks_no_rule_but_alignment(&subject)
        || breaks_no_rule(&subject);
    if look.is_some() || is_quiet {
        return Before { look, ..Before::default() };
    }
    let judgement = edge::caught(|| {
        // SAFETY: the caller's promise.
        let arrays = unsafe { arrays::before(call, &world) };
        judge(&Subject { arrays, ..subject }, 0)
    });
    let judgement = judgement.flatten();
    judgement.inspect(|judgement| found(judgement));
    let is_wrong = judgement.is_some_and(|judgement| judgement.has_error);
    Before { look, is_wrong, refusal: judgement.and_then(|judgement| judgement.refusal) }
}

/// What there is to say of a batch once the vendor has answered, and could not be said before.
///
/// # Safety
/// The vendor has returned `code` for this call.
#[cold]
#[inline(never)]
pub unsafe fn after(function: Function, call: &Call, before: &Before, code: aclError) -> Option<Judgement> {
    let Form::Batch(batch) = &call.form else { return None };
    let world = world::of(call);
    let subject = |arrays| Subject { function, call: *call, arrays, world };
    match (code, before.is_wrong) {
        (ACL_SUCCESS, _) => {
            let arrays = match before.look {
                // SAFETY: it has copied something, and so has read them.
                Some(_) => unsafe { arrays::accepted(batch) },
                // SAFETY: the vendor has accepted the call: these are read as far as it has read them itself.
                None => unsafe { arrays::copied(batch, code) }?.arrays(),
            };
            let subject = subject(arrays);
            let mut judgement = Judgement::NONE;
            // SAFETY: written before anybody can be here.
            let policy = unsafe { &*POLICY.0.get() };
            for check in checklist(call).checks(Phase::Advice, function) {
                let Check::Rule(rule, step) = check else { continue };
                if !rule.needs_item_addresses || policy.action(rule.number.into(), rule.severity) == Action::Off {
                    continue;
                }
                if let Verdict::Broken(finding) = step.check(rule, &subject) {
                    judgement.add(&subject, rule, &finding);
                }
            }
            Some(judgement).filter(|judgement| judgement.bits != 0)
        }
        (ACL_ERROR_RT_PARAM_INVALID, false) => {
            let judgement = edge::caught(|| {
                // SAFETY: the caller's promise, and what it has read of the call before this.
                let (known, all) = unsafe { (arrays::before(call, &world), arrays::refused(call, &world)) };
                // What is no reason to refuse a call was reported before it was forwarded.
                let told = judge(&subject(known), 0).map_or(0, |judgement| judgement.bits);
                judge(&subject(all), told)
            });
            let judgement = judgement.flatten();
            // It was forwarded: the vendor itself has refused it.
            judgement.map(|judgement| Judgement { refusal: None, ..judgement })
        }
        _ => None,
    }
}

/// What the rules say of a call, but for those that were `told` already, a bit each.
fn judge(subject: &Subject<'_>, told: u128) -> Option<Judgement> {
    // SAFETY: written before anybody can be here.
    let policy = unsafe { &*POLICY.0.get() };
    let mut judgement = Judgement::NONE;
    let mut is_refused_for_an_error = false;
    judge_each(subject, &mut |rule, finding| {
        if told >> rule.number & 1 == 1 {
            return;
        }
        let action = judgement.add(subject, rule, &finding);
        let Some(action) = action.filter(|action| matches!(action, Action::Refuse | Action::Abort)) else { return };
        if !policy.is_said(rule.number.into()) {
            is_refused_for_an_error = true;
        } else if judgement.refusal.is_none_or(|other| other.action == Action::Refuse && action == Action::Abort) {
            let fail_index = if finding.severity == Severity::Error {
                finding.fail_index
            } else {
                documented_index(subject, &finding)
            };
            judgement.refusal = Some(Refusal { rule, action, code: rule.refusal(&finding), fail_index });
        }
    });
    if judgement.bits == 0 {
        return None;
    }
    if is_refused_for_an_error && judgement.refusal.is_none() {
        judgement.refusal = vendors_refusal(subject);
    }
    if settings().stack == Stack::Findings {
        judgement.frames = stack::frames();
    }
    Some(judgement)
}

/// What `failIndex` holds, by the documents, when a batch is refused that the vendor would take: the first item that the
/// attribute is of, and `SIZE_MAX` where it is about no item, or about one that must not be read here.
fn documented_index(subject: &Subject<'_>, finding: &rule::Finding) -> Option<usize> {
    subject.batch()?;
    let entry = finding.index.filter(|_| subject.role_in_batch(finding.argument) == Some(Role::Attrs));
    let first = entry.and_then(|entry| subject.arrays.attr_indexes?.get(entry).copied());
    Some(first.unwrap_or(usize::MAX))
}

/// What the vendor would return, if that can be told for a program whose handles are good. Where it cannot, because it
/// hangs on where memory is, the call is forwarded, and the vendor refuses it itself.
fn vendors_refusal(subject: &Subject<'_>) -> Option<Refusal> {
    let stream = match subject.world.stream {
        Stream::Unknown => Stream::Own { is_captured: false },
        known => known,
    };
    let world = World {
        stream,
        is_open: Some(true),
        has_context: Some(true),
        is_capture_in_the_way: Some(false),
        tells_pageable: Some(true),
        ..subject.world
    };
    match predict(&Subject { world, ..*subject }) {
        Prediction::Refused { rule, code, fail_index } => {
            Some(Refusal { rule: RULES.get(rule)?, action: Action::Refuse, code, fail_index })
        }
        Prediction::Accepted | Prediction::Unknown => None,
    }
}

/// A finding as it is recorded, with what stands in the arrays: they may be gone later.
fn record(subject: &Subject, rule: &Rule, finding: &rule::Finding) -> RecordedFinding {
    let values = finding.index.and_then(|index| entry(subject, finding.argument, index)).unwrap_or_default();
    RecordedFinding {
        rule: rule.number,
        argument: finding.argument,
        severity: finding.severity as u8,
        index: finding.index.map(|index| index as u64),
        values,
        code: finding.code,
        fail_index: finding.fail_index.map(|index| index as u64),
    }
}

/// The entry of the array of a batch that is the argument at this position, and the value that it is compared with.
fn entry(subject: &Subject, argument: u8, index: usize) -> Option<[u64; 2]> {
    let arrays = &subject.arrays;
    let at = |array: Option<&[usize]>, index: usize| Some(*array?.get(index)? as u64);
    let address = |array: Option<&[*mut core::ffi::c_void]>| Some(array?.get(index)?.addr() as u64);
    match subject.role_in_batch(argument)? {
        Role::Dst => Some([address(arrays.dsts)?, 0]),
        Role::Src => Some([address(arrays.srcs)?, 0]),
        Role::DstMax | Role::Count => Some([at(arrays.sizes, index)?, at(arrays.dst_maxs, index)?]),
        Role::Attrs => {
            let attribute = arrays.attrs?.get(index)?;
            Some([attribute.dstLoc.type_ as u64, attribute.srcLoc.type_ as u64])
        }
        Role::AttrIndexes => Some([
            at(arrays.attr_indexes, index)?,
            index.checked_sub(1).and_then(|before| at(arrays.attr_indexes, before)).unwrap_or(0),
        ]),
        _ => None,
    }
}

impl Judgement {
    const NONE: Self = Self { findings: [None; MOST], bits: 0, has_error: false, refusal: None, frames: None };

    /// Adds a finding, unless its rule is off; what is done about it.
    fn add(&mut self, subject: &Subject<'_>, rule: &Rule, finding: &rule::Finding) -> Option<Action> {
        // SAFETY: written before anybody can be here.
        let action = unsafe { &*POLICY.0.get() }.action(rule.number.into(), finding.severity);
        if action == Action::Off {
            return None;
        }
        self.bits |= 1 << rule.number;
        self.has_error |= finding.severity == Severity::Error;
        if let Some(place) = self.findings.iter_mut().find(|place| place.is_none()) {
            *place = Some(record(subject, rule, finding));
        }
        Some(action)
    }

    fn told(&self) -> impl Iterator<Item = &RecordedFinding> {
        self.findings.iter().flatten()
    }

    /// All of it, for an observer; of findings that found no room here the rule.
    pub fn all(&self) -> impl Iterator<Item = ReportedFinding> {
        let is_told = |rule: &&&Rule| self.told().any(|finding| finding.rule == rule.number);
        let rest = RULES.iter().filter(|rule| self.bits >> rule.number & 1 == 1).filter(move |rule| !is_told(rule));
        let full = self.told().filter_map(|finding| {
            let RecordedFinding { rule, argument, index, values, code, fail_index, .. } = *finding;
            let severity = ALL_SEVERITIES.get(usize::from(finding.severity))?;
            Some(ReportedFinding { rule, severity: *severity, argument, index, values, code, fail_index })
        });
        full.chain(rest.map(|rule| ReportedFinding {
            rule: rule.number,
            severity: rule.severity,
            argument: u8::MAX,
            index: None,
            values: [0; 2],
            code: 0,
            fail_index: None,
        }))
    }

    /// Tells it about the call with the number `of`: hands each note to `note`.
    pub fn tell(&self, of: u64, mut note: impl FnMut(Note, &[u64])) {
        for finding in self.told() {
            note(Note::Finding, &finding.words(of));
        }
        if let Some(frames) = self.frames {
            let mut words = [of; 1 + FRAMES];
            words[1..].copy_from_slice(&frames);
            note(Note::Stack, &words);
        }
    }

    /// What it adds to the extent of the call's record.
    pub fn extent(&self) -> Extent {
        Extent::new(0, if self.refusal.is_some() { REFUSED } else { 0 }, 0)
    }
}

impl Before {
    /// Whether the call is refused.
    pub fn is_refusal(&self) -> bool {
        self.refusal.is_some()
    }

    /// What to return in the vendor's place, if the call is refused; what the vendor would have written to `failIndex`
    /// stands there then. A rule that is to end the program does so here.
    ///
    /// # Safety
    /// It is of this call, whose arguments are the caller's.
    pub unsafe fn refuse(&self, function: Function, call: &Call) -> Option<aclError> {
        let Refusal { rule, action, code, fail_index } = self.refusal?;
        if action == Action::Abort {
            log::last_words(function.row().name, rule.id, rule.statement, rule.fix);
            // SAFETY: ends the program, as was asked for.
            unsafe { libc::abort() };
        }
        if let (Form::Batch(batch), Some(index)) = (&call.form, fail_index)
            && let Some(place) = batch.fail_index.filter(|place| !place.is_null())
        {
            // SAFETY: the caller's promise, as the vendor takes it.
            unsafe { place.write_unaligned(index) };
        }
        Some(code)
    }
}
