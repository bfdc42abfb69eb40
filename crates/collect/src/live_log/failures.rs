//! Calls that fail, or return something else than the rulebook says: which of them are reported, and in which words.

use crate::findings::judge::MOST_SITES;
use crate::findings::platform::Drift;
use crate::interpreter::visitor::CallView;
use crate::log::lines;
use aclshim_facts::Function;
use aclshim_facts::code::{ACL_ERROR_RT_FEATURE_NOT_SUPPORT, ACL_SUCCESS};
use aclshim_facts::message::code_message;
use aclshim_facts::rules::{RULES, judge_each};
use std::collections::{BTreeMap, BTreeSet};

/// Number of failures of a function with a code at a call site, and of unexpected codes of a function, that are reported
/// one by one.
const MOST: u64 = 10;

/// Whether there are products or releases without the function. Every other function that answers so has it and means this
/// call: a copy inside the host, a kind, a driver. (A library that lacks one of those is reported by the stand-in itself.)
fn may_be_missing(function: Function) -> bool {
    RULES.iter().any(|rule| rule.is_absence && rule.applies_to(function))
}

/// What was reported of the failures of one process.
#[derive(Default)]
pub(crate) struct Failures {
    /// How often each function failed with each code at each call site.
    counts: BTreeMap<(Function, i32, u64), u64>,
    drifts: BTreeMap<(Function, i32, i32), u64>,
    /// By ring: a call of a function that this product or release may lack, until it is known what the program does next.
    probes: BTreeMap<u32, Probe>,
    /// Functions and call sites whose probes were reported.
    probed: BTreeSet<(Function, u64)>,
}

/// A call of a function that this product or release may lack.
struct Probe {
    function: Function,
    site: u64,
    time_ns: u64,
    /// The text, if it turns out to be a failure.
    message: String,
}

/// What became of a probe.
pub(crate) enum ProbeEnd {
    /// The program went on in another way: a note, and when the probe was made.
    Answered(u64, String),
    /// It was a failure: a warning, and when the probe was made.
    Failed(u64, String),
}

impl Failures {
    /// The message about a call that returned `code`, unless it is only counted, or may be a probe.
    pub fn failed(&mut self, call: &CallView<'_>, code: i32, time_ns: u64) -> Option<String> {
        let CallView { whose, function, call: record, .. } = *call;
        let is_absence = code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT && may_be_missing(function);
        if is_absence && record.is_of_vendor() && !is_explained(call) {
            let site = record.site;
            if !self.probed.contains(&(function, site)) {
                let message = message(call, code);
                self.probes.insert(whose.ring, Probe { function, site, time_ns, message });
            }
            return None;
        }
        self.count(function, code, record.site, || message(call, code))
    }

    /// Counts a failure; the message, if it is one of the first.
    fn count(&mut self, function: Function, code: i32, site: u64, message: impl FnOnce() -> String) -> Option<String> {
        let whence = (function, code, site);
        if self.counts.len() >= MOST_SITES && !self.counts.contains_key(&whence) {
            return None;
        }
        let count = self.counts.entry(whence).or_default();
        *count += 1;
        match *count {
            0..MOST => Some(message()),
            MOST => Some(message() + "; not told again for this call site, only counted"),
            _ => None,
        }
    }

    /// Whether a call of a ring ends a probe.
    #[inline]
    pub fn is_probed(&self, ring: u32) -> bool {
        !self.probes.is_empty() && self.probes.contains_key(&ring)
    }

    /// A call of something that is not there is a question if the program then does it in another way: then that is
    /// reported once, and it is no failure.
    pub fn end_probe(&mut self, next: &CallView<'_>) -> Option<ProbeEnd> {
        let probe = self.probes.remove(&next.whose.ring)?;
        let Probe { function, site, time_ns, .. } = probe;
        if next.function == function || next.code() != Some(ACL_SUCCESS) {
            return self.fail_probe(probe);
        }
        (self.probed.len() < MOST_SITES && self.probed.insert((function, site))).then(|| {
            let message = format!(
                "{} is not there on this product or release ({ACL_ERROR_RT_FEATURE_NOT_SUPPORT}), and the program went on \
                 with {}; this is not told again",
                function.row().name,
                next.function.row().name
            );
            ProbeEnd::Answered(time_ns, message)
        })
    }

    /// The program ends: a probe that nothing followed was a failure.
    pub fn end_probes(&mut self) -> Vec<ProbeEnd> {
        let probes = std::mem::take(&mut self.probes);
        probes.into_values().filter_map(|probe| self.fail_probe(probe)).collect()
    }

    fn fail_probe(&mut self, probe: Probe) -> Option<ProbeEnd> {
        let Probe { function, site, time_ns, message } = probe;
        let message = self.count(function, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, site, || message)?;
        Some(ProbeEnd::Failed(time_ns, message))
    }

    /// That the vendor returned something else for a call than the rulebook says, if that is one of the first times.
    pub fn drift(&mut self, call: &CallView<'_>) -> Option<Drift> {
        let drift = call.whose.platform.drift(call.function, call.call)?;
        let count = self.drifts.entry((call.function, drift.expected, drift.returned)).or_default();
        *count += 1;
        (*count <= MOST).then_some(drift)
    }
}

/// Whether a call that is not supported breaks a rule, and so is no question whether the function is there.
fn is_explained(call: &CallView<'_>) -> bool {
    let mut is_explained = false;
    judge_each(&call.whose.platform.subject(call.function, call.call), &mut |rule, _| {
        let returns_it = rule.codes.iter().any(|(code, _)| *code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
        is_explained |= returns_it && !rule.is_absence;
    });
    is_explained
}

fn message(call: &CallView<'_>, code: i32) -> String {
    if call.call.is_injected() {
        format!("{} returned {code}, because an injection asked for it", call.function.row().name)
    } else {
        code_message(&call.whose.platform.subject(call.function, call.call), code)
    }
}

/// The line of a call that did not return 0.
pub(super) fn failed<'a>(call: lines::Call<'a>, code: i32, message: &'a str) -> lines::FailedCall<'a> {
    let lines::Call { function, thread, number, duration_ns, direction, bytes, .. } = call;
    let lines::Call { dst_max, dst, src, stream, site, nested, injected, scope, stream_name, .. } = call;
    lines::FailedCall {
        function,
        code: code.into(),
        code_name: aclshim_facts::code::name(code),
        thread,
        number,
        duration_ns,
        direction,
        bytes,
        dst_max,
        dst,
        src,
        stream,
        site,
        nested,
        injected,
        scope,
        stream_name,
        message,
    }
}
