//! What the rulebook says of recorded calls.
//!
//! Records hold all that the rules look at, so a call is judged by whoever reads it: with the product and the release
//! that the process found out, and as its settings ask. What only the host could see, the arrays of a batch, comes as
//! notes behind its record; so a call is held until something else follows it.

use crate::glance::Glance;
use crate::modules::{Modules, Site};
use crate::mute::Mute;
use aclshim_facts::Function;
use aclshim_facts::message::{message, noted_message};
use aclshim_facts::policy::{Action, Policy};
use aclshim_facts::product::{Product, Version};
use aclshim_facts::rule::{Arrays, Finding, Prediction, Rule, Severity, Subject};
use aclshim_facts::rules::{ALIGN_64, RULES, judge_each, predict};
use aclshim_facts::settings::{AS, BASELINE, CANN, FORM, MODE, MUTE, RULES as ACTIONS, SOC, Setting};
use aclshim_facts::world::{Form, Stream, World};
use aclshim_trace::origin::Origin;
use aclshim_trace::record::slot::Words;
use aclshim_trace::record::{self, Call, FRAMES};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

/// So many findings of a rule and a call site are told one by one.
const MOST: u64 = 10;

/// The rulebook at work on one process.
pub struct Judge {
    product: Option<&'static Product>,
    form: Option<Form>,
    glance: Glance,
    cann: Option<Version>,
    policy: Policy,
    /// The rules that are off, a bit each.
    off: u128,
    /// Other products that the run is judged for, by the names that were given.
    others: Vec<(String, &'static Product)>,
    mute: Mute,
    /// Settings that make no sense, in words, until they are said.
    nonsense: Vec<String>,
    modules: Modules,
    /// How often each rule was broken at each call site, here or on which of the other products.
    seen: BTreeMap<Seen, u64>,
    /// By ring: the last calls, the newest first; one that is held has not been judged yet.
    held: BTreeMap<u32, VecDeque<Held>>,
    totals: BTreeMap<String, Total>,
}

/// So many calls of a ring are remembered: a note may come behind those of a handler.
pub(crate) const HELD: usize = 4;

/// So many notes about one call are kept: more than the host ever makes.
const MOST_NOTES: usize = 1024;

/// A call, and what the host has noted about it.
struct Held {
    function: Function,
    call: Call,
    findings: Vec<record::RecordedFinding>,
    frames: [u64; FRAMES],
    /// The rules that it was found to break, once it has been judged.
    judged: Option<u128>,
}

/// How often a rule was broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// All in all.
    pub found: u64,
    /// Of these, told one by one.
    pub told: u64,
    /// Of these, known or muted.
    pub known: u64,
    /// The worst that it was.
    pub worst: Option<Severity>,
    /// How often it was how bad, by [`Severity`].
    pub by_severity: [u64; 4],
}

impl Total {
    fn count(&mut self, severity: Severity) {
        self.found += 1;
        self.worst = self.worst.max(Some(severity));
        self.by_severity[severity as usize] += 1;
    }
}

/// The call that a finding is about.
struct At<'a> {
    function: Function,
    call: &'a Call,
    frames: &'a [u64; FRAMES],
    /// Which of the other products it is about.
    on: Option<usize>,
}

/// A finding that is to be told.
#[derive(Clone)]
pub struct Told {
    /// The rule.
    pub rule: &'static Rule,
    /// How bad it is here.
    pub severity: Severity,
    /// What is done about it.
    pub action: Action,
    /// The argument's name.
    pub argument: Option<&'static str>,
    /// The item or entry.
    pub index: Option<u64>,
    /// What the vendor returns for it; `None` if it accepts the call.
    pub code: Option<i32>,
    /// Another product that it is about.
    pub on: Option<String>,
    /// Where the call came from.
    pub site: Option<Site>,
    /// Where that came from, as far as it was recorded.
    pub stack: Vec<String>,
    /// The same as addresses.
    pub frames: Vec<u64>,
    /// In words.
    pub message: String,
}

/// The rulebook and the vendor do not agree about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The rule that the vendor was expected to refuse it for, if it was.
    pub rule: Option<&'static str>,
    /// What was expected.
    pub expected: i32,
    /// What came.
    pub returned: i32,
}

/// The bits of the rules that this release knows.
const KNOWN: u128 = u128::MAX >> (u128::BITS as usize - RULES.len());

/// The numbers of the bits that are set.
fn numbers(mut bits: u128) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let number = (bits != 0).then(|| bits.trailing_zeros() as u8);
        bits &= bits.wrapping_sub(1);
        number
    })
}

/// The ids of rules, by their bits. A rule of a later release, which the host may be of, has none here: its number stands
/// for it, so that what it found is not lost.
pub fn rule_ids(bits: u128) -> impl Iterator<Item = Cow<'static, str>> {
    numbers(bits).map(rule_id)
}

fn rule_id(number: u8) -> Cow<'static, str> {
    match RULES.get(usize::from(number)) {
        Some(rule) => rule.id.into(),
        None => format!("UNKNOWN-RULE-{number}").into(),
    }
}

/// The value of a setting among those that were in force.
pub(crate) fn setting<'a>(in_force: &'a str, setting: &Setting) -> &'a str {
    let value = |line: &'a str| line.strip_prefix(setting.variable)?.strip_prefix('=');
    in_force.lines().find_map(value).unwrap_or_default()
}

fn first_of<'a>(one: &'a str, other: &'a str) -> &'a str {
    if one.is_empty() { other } else { one }
}

/// So many call sites are told of: a program that makes its code at run time has ever new ones. Beyond these they are only
/// counted.
pub(crate) const MOST_SITES: usize = 4096;

/// What was told: the rule, the other product by its number, and the call site.
type Seen = (u8, Option<usize>, u64);

impl Judge {
    /// For the process that a header describes.
    pub fn new(origin: &Origin) -> Self {
        let mut policy = Policy::new(setting(&origin.settings, &MODE) == "enforce");
        let number = |id: &[u8]| RULES.iter().position(|rule| rule.id.as_bytes() == id);
        policy.read(setting(&origin.settings, &ACTIONS).as_bytes(), number, |_| ());
        let mut nonsense = Vec::new();
        let mut others = Vec::new();
        for name in setting(&origin.settings, &AS).split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match Product::of(name) {
                Some(product) => others.push((name.to_owned(), product)),
                None => {
                    nonsense.push(format!("ACLSHIM_AS: {name} is a product that this version of aclshim does not know"))
                }
            }
        }
        let [mute, baseline] = [&MUTE, &BASELINE].map(|of| setting(&origin.settings, of));
        let mute = Mute::new(mute, baseline, &mut nonsense);
        let is_off = |rule: &&&Rule| policy.action(rule.number.into(), rule.severity) == Action::Off;
        let off = RULES.iter().filter(is_off).fold(0, |bits, rule| bits | 1u128 << rule.number);
        let mut judge = Self {
            off,
            product: None,
            form: None,
            glance: Glance::new(others.is_empty()),
            cann: None,
            policy,
            others,
            mute,
            nonsense,
            modules: Modules::of_lines(&origin.maps),
            seen: BTreeMap::new(),
            held: BTreeMap::new(),
            totals: BTreeMap::new(),
        };
        judge.learn(origin);
        judge
    }

    /// Takes over what the process has found out of its product by now.
    pub fn learn(&mut self, origin: &Origin) {
        self.product = Product::of(first_of(setting(&origin.settings, &SOC), &origin.product));
        self.cann = Version::parse(first_of(setting(&origin.settings, &CANN), &origin.cann));
        self.form = match (setting(&origin.settings, &FORM), origin.form) {
            ("ep", _) | ("auto" | "", 1) => Some(Form::EndPoint),
            ("rc", _) | ("auto" | "", 2) => Some(Form::RootComplex),
            _ => None,
        };
        self.glance.learn(self.form);
    }

    /// A product that the rulebook does not know, if that is what the process runs on.
    pub fn unknown_product<'a>(&self, origin: &'a Origin) -> Option<&'a str> {
        let name = first_of(setting(&origin.settings, &SOC), &origin.product);
        (!name.is_empty() && self.product.is_none()).then_some(name)
    }

    /// What makes no sense in the settings, once.
    pub fn take_nonsense(&mut self) -> Vec<String> {
        std::mem::take(&mut self.nonsense)
    }

    /// The modules of the process, which call sites are named by.
    pub fn modules(&mut self) -> &mut Modules {
        &mut self.modules
    }

    /// The same, to look at.
    pub fn known_modules(&self) -> &Modules {
        &self.modules
    }

    /// How often each rule was broken; by its id, with the product where that is another one.
    pub fn totals(&self) -> &BTreeMap<String, Total> {
        &self.totals
    }

    fn remembered(&mut self, ring: u32, number: u64) -> Option<&mut Held> {
        self.held.get_mut(&ring)?.iter_mut().find(|held| held.call.number == number)
    }

    /// A note of the host's about an earlier call. If that has been judged already, what is to be told is handed to `tell`.
    pub fn note(
        &mut self,
        ring: u32,
        of: u64,
        finding: record::RecordedFinding,
        tell: &mut dyn FnMut(Function, &Call, Told),
    ) {
        // A number beyond the bits of a record is nonsense.
        let Some(held) = self.remembered(ring, of).filter(|_| u32::from(finding.rule) < u128::BITS) else { return };
        match &mut held.judged {
            None if held.findings.len() < MOST_NOTES => held.findings.push(finding),
            None => {}
            Some(judged) if *judged & 1 << finding.rule == 0 => {
                *judged |= 1 << finding.rule;
                let (function, call, frames) = (held.function, held.call.clone(), held.frames);
                self.noted(function, &call, &frames, &[finding], tell);
            }
            Some(_) => {}
        }
    }

    /// More of the stack of an earlier call.
    pub fn stack(&mut self, ring: u32, of: u64, frames: [u64; FRAMES]) {
        if let Some(held) = self.remembered(ring, of) {
            held.frames = frames;
        }
    }

    /// The call as the rules look at it.
    pub fn subject(&self, function: Function, call: &Call) -> Subject<'static> {
        let subject = self.of(function, function.call(&call.arguments));
        // Of the arrays of a batch only so much is known: it is not a batch of nothing if it moved something, nor if it
        // failed.
        let has_moved = call.batch.as_ref().is_some_and(|batch| batch.total > 0);
        let is_something = has_moved || call.end.is_some_and(|end| end.code != 0);
        Subject { arrays: Arrays { sizes: is_something.then_some(&[1]), ..Arrays::default() }, ..subject }
    }

    #[inline]
    fn of(&self, function: Function, call: aclshim_facts::call::Call) -> Subject<'static> {
        let is_default = call.stream.is_some_and(|stream| stream.is_null());
        Subject {
            function,
            call,
            arrays: Arrays::default(),
            world: World {
                product: self.product,
                form: self.form,
                cann: self.cann,
                stream: if is_default { Stream::Default } else { Stream::Unknown },
                ..World::UNKNOWN
            },
        }
    }

    /// Whether there is nothing to tell of the call of one slot: the quick look that nearly every call gets.
    pub fn is_plain(&mut self, function: Function, slot: &Words) -> bool {
        let rules = self.glance.rules(function, slot);
        self.count_askew(u64::from(rules.is_some_and(|rules| rules != 0)));
        rules.is_some()
    }

    /// The quick look at calls of one slot.
    pub(crate) fn glance(&self) -> &Glance {
        &self.glance
    }

    /// So many more calls whose addresses are not aligned, at call sites that this was told of.
    #[inline]
    pub(crate) fn count_askew(&mut self, count: u64) {
        if count > 0
            && let Some(total) = self.totals.get_mut(ALIGN_64.id)
        {
            total.found += count;
            total.by_severity[total.worst.unwrap_or(ALIGN_64.severity) as usize] += count;
        }
    }

    /// The rules that one of the last calls of a ring was found to break, but for those that are off.
    pub fn judged(&self, ring: u32, number: u64) -> u128 {
        let held = self.held.get(&ring).and_then(|held| held.iter().find(|held| held.call.number == number));
        held.and_then(|held| held.judged).unwrap_or(0) & !self.off
    }

    /// Takes a call; the one before it on its ring is judged.
    pub fn take(&mut self, ring: u32, function: Function, call: &Call, tell: &mut dyn FnMut(Function, &Call, Told)) {
        self.settle(ring, tell);
        let call = call.clone();
        self.hold(ring, Held { function, call, findings: Vec::new(), frames: [0; FRAMES], judged: None });
    }

    /// Takes a call of which there is nothing to tell, for the host may note something of it later.
    pub(crate) fn remember(&mut self, ring: u32, function: Function, call: Call) {
        self.hold(ring, Held { function, call, findings: Vec::new(), frames: [0; FRAMES], judged: Some(0) });
    }

    fn hold(&mut self, ring: u32, call: Held) {
        let held = self.held.entry(ring).or_default();
        held.truncate(HELD - 1);
        held.push_front(call);
    }

    /// Judges the last call of a ring, unless that has been done, and hands what is to be told of it to `tell`.
    pub fn settle(&mut self, ring: u32, tell: &mut dyn FnMut(Function, &Call, Told)) {
        let Some(held) = self.held.get_mut(&ring).and_then(|held| held.front_mut()).filter(|it| it.judged.is_none())
        else {
            return;
        };
        held.judged = Some(0);
        let (function, call, frames) = (held.function, held.call.clone(), held.frames);
        let noted = std::mem::take(&mut held.findings);
        let subject = self.subject(function, &call);
        let mut found: Vec<(&'static Rule, Finding)> = Vec::new();
        judge_each(&subject, &mut |rule, finding| found.push((rule, finding)));
        found.retain(|(rule, _)| !noted.iter().any(|noted| noted.rule == rule.number));
        // What the host has found and had no room to note: that it was found, and no more.
        let is_told = |rule: &Rule| {
            noted.iter().any(|noted| noted.rule == rule.number)
                || found.iter().any(|(told, _)| told.number == rule.number)
        };
        if call.findings != 0 {
            let bare = RULES.iter().filter(|rule| call.findings >> rule.number & 1 == 1 && !is_told(rule));
            found.extend(bare.map(|rule| (*rule, bare_finding(rule))).collect::<Vec<_>>());
        }
        let noted_bits = noted.iter().fold(0, |bits, noted| bits | 1u128 << noted.rule);
        let unknown = call.findings & !KNOWN & !noted_bits;
        let bits = found.iter().fold(noted_bits | unknown, |bits, (rule, _)| bits | 1u128 << rule.number);
        if let Some(held) = self.held.get_mut(&ring).and_then(|held| held.front_mut()) {
            held.judged = Some(bits);
        }
        numbers(unknown).for_each(|number| self.count_unknown(number, Severity::Violation));
        self.noted(function, &call, &frames, &noted, tell);
        let returned = returned(&call);
        for (rule, finding) in &found {
            let at = At { function, call: &call, frames: &frames, on: None };
            self.found(rule, *finding, &at, tell, |finding| message(rule, &subject, finding, returned));
        }
        for at in 0..self.others.len() {
            self.on_another(at, &subject, &call, &frames, bits, tell);
        }
    }

    /// What the host has found.
    fn noted(
        &mut self,
        function: Function,
        call: &Call,
        frames: &[u64; FRAMES],
        noted: &[record::RecordedFinding],
        tell: &mut dyn FnMut(Function, &Call, Told),
    ) {
        let subject = self.subject(function, call);
        for finding in noted {
            let as_found = of_note(finding);
            let Some(rule) = RULES.get(usize::from(finding.rule)) else {
                self.count_unknown(finding.rule, as_found.severity);
                continue;
            };
            let at = At { function, call, frames, on: None };
            self.found(rule, as_found, &at, tell, |as_found| {
                noted_message(rule, &subject, as_found, finding.values, returned(call))
            });
        }
    }

    /// Counts a finding of a rule that this release does not know: there are no words for it.
    fn count_unknown(&mut self, number: u8, severity: Severity) {
        self.totals.entry(rule_id(number).into_owned()).or_default().count(severity);
    }

    /// What would be refused on another product, or is not for it by the documents, and is nothing here.
    fn on_another(
        &mut self,
        at: usize,
        subject: &Subject<'_>,
        call: &Call,
        frames: &[u64; FRAMES],
        here: u128,
        tell: &mut dyn FnMut(Function, &Call, Told),
    ) {
        let (name, product) = self.others[at].clone();
        let there = Subject { world: World { product: Some(product), ..subject.world }, ..*subject };
        let mut refusals = Vec::new();
        judge_each(&there, &mut |rule, finding| {
            let is_products = !rule.scope.products.is_empty() && finding.severity == Severity::Violation;
            if (finding.severity == Severity::Error || is_products) && here >> rule.number & 1 == 0 {
                refusals.push((rule, finding));
            }
        });
        for (rule, finding) in refusals {
            let as_portability = Finding { severity: Severity::Portability, ..finding };
            let at = At { function: subject.function, call, frames, on: Some(at) };
            self.found(rule, as_portability, &at, tell, |_| {
                let what = if finding.severity == Severity::Error { "refused" } else { "unsupported" };
                format!("would be {what} on {name}: {}", message(rule, &there, &finding, None))
            });
        }
    }

    /// Counts a finding, and tells it if it is one of the first of its rule and call site.
    fn found(
        &mut self,
        rule: &'static Rule,
        finding: Finding,
        at: &At<'_>,
        tell: &mut dyn FnMut(Function, &Call, Told),
        message: impl FnOnce(&Finding) -> String,
    ) {
        let At { function, call, frames, on } = *at;
        let action = self.policy.action(rule.number.into(), finding.severity);
        if action == Action::Off {
            return;
        }
        let on = on.and_then(|on| Some((on, self.others.get(on)?.0.clone())));
        let name = on.as_ref().map_or_else(|| rule.id.to_owned(), |(_, name)| format!("{} on {name}", rule.id));
        let total = self.totals.entry(name).or_default();
        total.count(finding.severity);
        let site = self.modules.site(call.site);
        if self.mute.is_known(rule.id, function, site.as_ref()) {
            total.known += 1;
            return;
        }
        let whence = (rule.number, on.as_ref().map(|(on, _)| *on), call.site);
        if self.seen.len() >= MOST_SITES && !self.seen.contains_key(&whence) {
            return;
        }
        let count = self.seen.entry(whence).or_default();
        *count += 1;
        let count = *count;
        if std::ptr::eq(rule, &ALIGN_64) && on.is_none() {
            self.glance.told(call.site);
        }
        let most = if is_said_once(rule, finding.severity) { 1 } else { MOST };
        if count > most {
            return;
        }
        total.told += 1;
        let mut text = message(&finding);
        if count == most {
            text.push_str(if most == 1 {
                " (Told once for this call site.)"
            } else {
                " (The last that is told of this rule and call site; the others are counted.)"
            });
        }
        let arguments = function.row().arguments;
        let name =
            |frame: &u64| self.modules.site(*frame).map_or_else(|| format!("{frame:#x}"), |site| site.to_string());
        let told = Told {
            rule,
            severity: finding.severity,
            action,
            argument: arguments.get(usize::from(finding.argument)).map(|argument| argument.name),
            index: finding.index.map(|index| index as u64),
            code: (finding.code != 0).then_some(finding.code),
            on: on.map(|(_, name)| name),
            site,
            stack: frames.iter().filter(|frame| **frame != 0).map(name).collect(),
            frames: frames.iter().copied().filter(|frame| *frame != 0).collect(),
            message: text,
        };
        tell(function, call, told);
    }

    /// Whether the vendor did something else with a call than the rulebook says.
    pub fn drift(&self, function: Function, call: &Call) -> Option<Drift> {
        let returned = returned(call)?;
        match predict(&self.subject(function, call)) {
            Prediction::Refused { rule, code, .. } if code != returned => {
                Some(Drift { rule: RULES.get(rule).map(|rule| rule.id), expected: code, returned })
            }
            Prediction::Accepted if returned != 0 => Some(Drift { rule: None, expected: 0, returned }),
            _ => None,
        }
    }
}

/// What the vendor itself has returned for a call.
fn returned(call: &Call) -> Option<i32> {
    call.end.filter(|_| call.is_of_vendor()).map(|end| end.code)
}

/// A finding as the host has noted it.
fn of_note(noted: &record::RecordedFinding) -> Finding {
    let severities = [Severity::Portability, Severity::Perf, Severity::Violation, Severity::Error];
    Finding {
        argument: noted.argument,
        index: noted.index.map(|index| index as usize),
        severity: severities.get(usize::from(noted.severity)).copied().unwrap_or(Severity::Violation),
        code: noted.code,
        fail_index: noted.fail_index.map(|index| index as usize),
    }
}

/// A finding of which only the rule is known.
fn bare_finding(rule: &Rule) -> Finding {
    let code = rule.codes.first().map_or(0, |(code, _)| *code);
    Finding { argument: u8::MAX, index: None, severity: rule.severity, code, fail_index: None }
}

/// What holds for a call site, not for a call: said more often it would drown the rest.
fn is_said_once(rule: &Rule, severity: Severity) -> bool {
    severity <= Severity::Perf || std::ptr::eq(rule, &ALIGN_64)
}
