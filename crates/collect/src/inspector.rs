//! What the log tells of calls that break a rule, fail, or go otherwise than the rulebook says.

use crate::judge::{Judge, MOST_SITES, Told, Total};
use crate::line::Address;
use crate::lines;
use crate::log::Log;
use crate::modules::Modules;
use crate::stderr::Stderr;
use aclshim_facts::Function;
use aclshim_facts::code::{ACL_ERROR_RT_FEATURE_NOT_SUPPORT, ACL_SUCCESS};
use aclshim_facts::message::code_message;
use aclshim_facts::policy::Action;
use aclshim_facts::rules::{UNSUPPORTED_PRODUCT, UNSUPPORTED_RELEASE, judge_each};
use aclshim_trace::origin::Origin;
use aclshim_trace::record::slot::{Head, Layout, Words};
use aclshim_trace::record::{Call, Entry, REFUSED};
use aclshim_trace::system::clock::{monotonic_ns, realtime_ns};
use std::collections::{BTreeMap, BTreeSet};

/// So many failures of a function with a code at a call site, and so much drift, are told one by one.
const MOST: u64 = 10;
/// How often the modules of a process are looked up again.
const LOOK_NS: u64 = 1_000_000_000;

/// Looks at the calls of one process.
pub(crate) struct Inspector {
    judge: Judge,
    stderr: Stderr,
    /// The process as `/proc` names it, as long as it can be looked at.
    process: Option<String>,
    looked: u64,
    has_new_modules: bool,
    /// Call sites that were looked up.
    sites: BTreeSet<u64>,
    /// How often each function failed with each code at each call site.
    failures: BTreeMap<(Function, i32, u64), u64>,
    drifts: BTreeMap<(Function, i32, i32), u64>,
    /// By ring: a call of a function that this product or release does not have, until it is known what the program does next.
    probes: BTreeMap<u32, (Function, u64, Call)>,
    /// Functions and call sites whose probes were told.
    probed: BTreeSet<(Function, u64)>,
    is_product_said: bool,
}

/// What is done with a call that has failed.
pub(crate) enum Failed {
    /// Its line is written, with this message.
    Tell(String),
    /// It is counted only, or told later.
    Keep,
}

/// Whether there are products or releases without the function. Every other function that answers so has it and means this
/// call: a copy inside the host, a kind, a driver. (A library that lacks one of those is told of by the stand-in itself.)
fn may_be_missing(function: Function) -> bool {
    UNSUPPORTED_PRODUCT.functions.contains(&function) || UNSUPPORTED_RELEASE.functions.contains(&function)
}

/// What is looked at.
#[derive(Clone, Copy)]
pub(crate) enum Looked<'a> {
    /// A note about an earlier call.
    Note(&'a Entry),
    /// A call.
    Call(Function, &'a Call),
    /// Nothing follows for now.
    End,
}

/// A call in the words of its line.
pub(crate) struct Said<'a> {
    pub time_ns: u64,
    pub thread: u64,
    pub function: Function,
    pub call: &'a Call,
}

impl Inspector {
    /// For the process that a header describes; `process` is how `/proc` names it.
    pub fn new(origin: &Origin, process: Option<String>) -> Self {
        Self {
            judge: Judge::new(origin),
            stderr: Stderr::Off,
            process,
            looked: 0,
            has_new_modules: false,
            sites: BTreeSet::new(),
            failures: BTreeMap::new(),
            drifts: BTreeMap::new(),
            probes: BTreeMap::new(),
            probed: BTreeSet::new(),
            is_product_said: false,
        }
    }

    /// What also goes to standard error.
    pub fn speak(&mut self, stderr: Stderr) {
        self.stderr = stderr;
    }

    /// Takes over what the process has found out of its product by now.
    pub fn learn(&mut self, origin: &Origin, log: &mut Log) {
        self.judge.learn(origin);
        for message in self.judge.take_nonsense() {
            let _ = log.line(realtime_ns(), &lines::Warning { topic: "setting", message: &message });
        }
        if let Some(name) = self.judge.unknown_product(origin).filter(|_| !self.is_product_said) {
            let message = format!(
                "{name} is a product that this version of aclshim does not know: rules that depend on the product are \
                 off. ACLSHIM_SOC can name one that it resembles."
            );
            let _ = log.line(realtime_ns(), &lines::Warning { topic: "product", message: &message });
            self.is_product_said = true;
        }
    }

    /// Looks up where calls come from that are about to be written; the modules of the process as a block's payload, if
    /// there are new ones.
    pub fn new_modules(&mut self, slots: &[Words]) -> Option<Vec<u8>> {
        let is_call = |slot: &&Words| matches!(Head(slot[0]).layout(), Layout::Linear | Layout::Fill | Layout::Long);
        let mut last = 0;
        for slot in slots.iter().filter(is_call) {
            if slot[3] != last && !self.sites.contains(&slot[3]) && self.is_known(slot[3]) {
                // To look one up again is better than to remember them all.
                if self.sites.len() >= MOST_SITES {
                    self.sites.clear();
                }
                self.sites.insert(slot[3]);
            }
            last = slot[3];
        }
        self.has_new_modules.then(|| self.judge.modules().to_bytes())
    }

    /// They are written.
    pub fn modules_written(&mut self) {
        self.has_new_modules = false;
    }

    /// Whether nothing can be said of a slot that holds a call which returned 0.
    #[inline]
    pub fn is_plain(&mut self, ring: u32, function: Function, slot: &Words) -> bool {
        (self.probes.is_empty() || !self.probes.contains_key(&ring)) && self.judge.is_plain(function, slot)
    }

    /// A note about an earlier call, or a call, or the end of what there is now; `said` knows when a call began, and its
    /// thread.
    pub fn look(&mut self, ring: u32, at: Looked<'_>, said: impl Fn(&Call) -> (u64, u64), log: &mut Log) {
        let mut told = Vec::new();
        let mut tell = |function: Function, call: &Call, finding: Told| told.push((function, call.clone(), finding));
        match at {
            Looked::Note(Entry::Finding { of, finding }) => self.judge.note(ring, *of, *finding, &mut tell),
            Looked::Note(Entry::Stack { of, frames }) => self.judge.stack(ring, *of, *frames),
            Looked::Note(_) => {}
            Looked::Call(function, call) => self.judge.take(ring, function, call, &mut tell),
            Looked::End => self.judge.settle(ring, &mut tell),
        }
        for (function, call, finding) in told {
            let (time_ns, thread) = said(&call);
            self.tell(&Said { time_ns, thread, function, call: &call }, &finding, log);
        }
        if let Looked::Call(function, call) = at {
            let (time_ns, thread) = said(call);
            let said = Said { time_ns, thread, function, call };
            self.end_probe(ring, &said, log);
            self.drift(&said, log);
        }
    }

    fn tell(&mut self, said: &Said<'_>, finding: &Told, log: &mut Log) {
        let Said { time_ns, thread, function, call } = *said;
        let stack = (!finding.stack.is_empty()).then(|| finding.stack.join(" "));
        let source = finding.rule.sources.first().map(ToString::to_string).unwrap_or_default();
        let line = lines::Finding {
            rule: finding.rule.id,
            severity: finding.severity.name(),
            action: finding.action.name(),
            function: function.row().name,
            argument: finding.argument,
            index: finding.index,
            code: finding.code.map(i64::from),
            returned: call.end.map(|end| end.code.into()),
            refused: call.flags & REFUSED != 0,
            on: finding.on.as_deref(),
            thread,
            number: call.number,
            site: Some(Address(call.site)),
            module: finding.site.as_ref().map(|site| site.module.as_str()),
            offset: finding.site.as_ref().map(|site| site.offset),
            stack: stack.as_deref(),
            source: &source,
            products: &finding.rule.scope.products(),
            versions: &finding.rule.scope.versions(),
            fix: finding.rule.fix,
            message: &finding.message,
        };
        let _ = log.line(time_ns, &line);
        let place = finding.site.as_ref().map_or_else(|| Address(call.site).to_string(), ToString::to_string);
        if finding.action >= Action::Warn {
            self.stderr.finding(&format!("{} (call from {place}, thread {thread})", finding.message));
        }
    }

    fn drift(&mut self, said: &Said<'_>, log: &mut Log) {
        let Said { time_ns, thread, function, call } = *said;
        let Some(drift) = self.judge.drift(function, call) else { return };
        let count = self.drifts.entry((function, drift.expected, drift.returned)).or_default();
        *count += 1;
        if *count > MOST {
            return;
        }
        let subject = self.judge.subject(function, call);
        let arguments: Vec<String> =
            call.arguments.iter().take(function.row().arguments.len()).map(|word| format!("{word:#x}")).collect();
        let message = format!(
            "{} was expected to return {} and returned {}: the rulebook or the vendor's release is another than thought",
            function.row().name,
            drift.expected,
            drift.returned
        );
        let cann = subject.world.cann.map(|cann| format!("{}.{}", cann.major, cann.minor)).unwrap_or_default();
        let line = lines::Drift {
            function: function.row().name,
            rule: drift.rule,
            expected: drift.expected.into(),
            returned: drift.returned.into(),
            thread,
            number: call.number,
            arguments: &arguments.join(" "),
            product: subject.world.product.map(|product| product.name),
            cann: &cann,
            message: &message,
        };
        let _ = log.line(time_ns, &line);
    }

    /// A call that did not return 0.
    pub fn failed(&mut self, ring: u32, said: &Said<'_>, code: i32) -> Failed {
        let Said { time_ns, function, call, .. } = *said;
        let is_absence = code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT && may_be_missing(function);
        if is_absence && call.is_of_vendor() && !self.is_explained(function, call) {
            if !self.probed.contains(&(function, call.site)) {
                self.probes.insert(ring, (function, time_ns, call.clone()));
            }
            return Failed::Keep;
        }
        self.tell_failure(function, call, code)
    }

    /// Whether a call that is not supported breaks a rule, and so is no question whether the function is there.
    fn is_explained(&self, function: Function, call: &Call) -> bool {
        let mut is_explained = false;
        judge_each(&self.judge.subject(function, call), &mut |rule, _| {
            let is_absence = std::ptr::eq(rule, &UNSUPPORTED_PRODUCT) || std::ptr::eq(rule, &UNSUPPORTED_RELEASE);
            let returns_it = rule.codes.iter().any(|(code, _)| *code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
            is_explained |= returns_it && !is_absence;
        });
        is_explained
    }

    fn tell_failure(&mut self, function: Function, call: &Call, code: i32) -> Failed {
        let whence = (function, code, call.site);
        if self.failures.len() >= MOST_SITES && !self.failures.contains_key(&whence) {
            return Failed::Keep;
        }
        let count = self.failures.entry(whence).or_default();
        *count += 1;
        let mut message = if call.is_injected() {
            format!("{} returned {code}, because an injection asked for it", function.row().name)
        } else {
            code_message(&self.judge.subject(function, call), code)
        };
        match *count {
            0..MOST => {}
            MOST => message.push_str("; not told again for this call site, only counted"),
            _ => return Failed::Keep,
        }
        self.stderr.failure(&message);
        Failed::Tell(message)
    }

    /// A call of something that is not there is a question if the program then does it in another way: then that is
    /// said once, and it is no failure.
    fn end_probe(&mut self, ring: u32, said: &Said<'_>, log: &mut Log) {
        let Some((function, time_ns, probe)) = self.probes.remove(&ring) else { return };
        let is_answered = said.function != function && said.call.end.is_some_and(|end| end.code == ACL_SUCCESS);
        if is_answered && self.probed.len() < MOST_SITES && self.probed.insert((function, probe.site)) {
            let message = format!(
                "{} is not there on this product or release ({ACL_ERROR_RT_FEATURE_NOT_SUPPORT}), and the program went on \
                 with {}; this is not told again",
                function.row().name,
                said.function.row().name
            );
            let _ = log.line(time_ns, &lines::Note { topic: "probe", message: &message });
        } else if !is_answered
            && let Failed::Tell(message) = self.tell_failure(function, &probe, ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
        {
            let _ = log.line(time_ns, &lines::Warning { topic: "unsupported", message: &message });
        }
    }

    /// How often each rule was broken.
    pub fn findings(&self) -> &BTreeMap<String, Total> {
        self.judge.totals()
    }

    /// How often each rule was broken, and what is still open.
    pub fn stopped(&mut self, log: &mut Log) {
        let rings: Vec<u32> = self.probes.keys().copied().collect();
        for ring in rings {
            let Some((function, time_ns, probe)) = self.probes.remove(&ring) else { continue };
            if let Failed::Tell(message) = self.tell_failure(function, &probe, ACL_ERROR_RT_FEATURE_NOT_SUPPORT) {
                let _ = log.line(time_ns, &lines::Warning { topic: "unsupported", message: &message });
            }
        }
        for (rule, total) in self.judge.totals() {
            let line = lines::Findings { rule, found: total.found, told: total.told, known: total.known };
            let _ = log.line(realtime_ns(), &line);
        }
    }

    /// Whether the module is known that a call site lies in, or nobody can know it; looks for it if it was not there yet.
    fn is_known(&mut self, site: u64) -> bool {
        let Some(process) = self.process.as_deref() else { return true };
        if self.judge.modules().site(site).is_some() {
            return true;
        }
        let now = monotonic_ns();
        if self.looked != 0 && now - self.looked < LOOK_NS {
            return false;
        }
        self.looked = now;
        self.has_new_modules |= self.judge.modules().learn(Modules::of(process));
        // If it is not there now it lies in no file: code that was made at run time.
        true
    }
}
