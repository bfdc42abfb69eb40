//! What the rulebook says of recorded calls.
//!
//! Records hold all that the rules look at, so the reader of a record can judge it: with the product and the release
//! that the process found out, and as its settings ask. What only the host could see, the arrays of a batch, comes as
//! notes behind the record. The [interpreter](crate::interpreter) gathers these and decides when a call is judged.

use crate::findings::modules::{Modules, Site};
use crate::findings::mute::Mute;
use crate::findings::platform::{Platform, returned};
use crate::findings::quick_check::QuickCheck;
use crate::findings::rule_bits::{KNOWN, numbers, rule_id};
use aclshim_facts::Function;
use aclshim_facts::message::{message, noted_message};
use aclshim_facts::policy::{Action, Policy};
use aclshim_facts::product::{Product, Version};
use aclshim_facts::rule::{Finding, Rule, Severity, Subject};
use aclshim_facts::rules::{ALIGN_64, RULES, judge_each};
use aclshim_facts::settings::{AS, BASELINE, CANN, Choice, FormSetting, MUTE, Mode, RULES as ACTIONS, SOC, recorded};
use aclshim_facts::world::World;
use aclshim_trace::origin::Origin;
use aclshim_trace::record::{self, Call, FRAMES};
use std::collections::BTreeMap;

/// Number of findings of a rule and a call site that are reported one by one.
const MOST: u64 = 10;

/// The rulebook at work on one process.
pub struct Judge {
    platform: Platform,
    quick_check: QuickCheck,
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
    seen: BTreeMap<CallView, u64>,
    totals: BTreeMap<String, Total>,
}

/// How often a rule was broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// All in all.
    pub found: u64,
    /// Of these, reported one by one.
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

/// The call that is judged.
pub(crate) struct JudgedCall<'a> {
    /// The function.
    pub function: Function,
    /// The record.
    pub call: &'a Call,
    /// More of its stack; 0 where there are no more return addresses.
    pub frames: &'a [u64; FRAMES],
}

/// A finding that is to be reported.
#[derive(Clone)]
pub struct ReportedFinding {
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
    /// The stack as addresses.
    pub frames: Vec<u64>,
    /// In words.
    pub message: String,
}

fn first_of<'a>(one: &'a str, other: &'a str) -> &'a str {
    if one.is_empty() { other } else { one }
}

/// Number of call sites whose findings are reported: a program that makes its code at run time has ever new ones. Beyond these they are only
/// counted.
pub(crate) const MOST_SITES: usize = 4096;

/// What was reported: the rule, the other product by its number, and the call site.
type CallView = (u8, Option<usize>, u64);

impl Judge {
    /// For the process that a header describes.
    pub fn new(origin: &Origin) -> Self {
        let mut policy = Policy::new(Mode::recorded_in(&origin.settings) == Some(Mode::Enforce));
        let number = |id: &[u8]| RULES.iter().position(|rule| rule.id.as_bytes() == id);
        policy.read(recorded(&origin.settings, &ACTIONS).as_bytes(), number, |_| ());
        let mut nonsense = Vec::new();
        let mut others = Vec::new();
        for name in recorded(&origin.settings, &AS).split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match Product::of(name) {
                Some(product) => others.push((name.to_owned(), product)),
                None => {
                    nonsense.push(format!("ACLSHIM_AS: {name} is a product that this version of aclshim does not know"))
                }
            }
        }
        let [mute, baseline] = [&MUTE, &BASELINE].map(|of| recorded(&origin.settings, of));
        let mute = Mute::new(mute, baseline, &mut nonsense);
        let is_off = |rule: &&&Rule| policy.action(rule.number.into(), rule.severity) == Action::Off;
        let off = RULES.iter().filter(is_off).fold(0, |bits, rule| bits | 1u128 << rule.number);
        let functions = origin.functions.iter().map(|name| Function::by_name(name)).collect();
        let mut judge = Self {
            off,
            platform: Platform::default(),
            quick_check: QuickCheck::new(functions, others.is_empty()),
            policy,
            others,
            mute,
            nonsense,
            modules: Modules::of_lines(&origin.maps),
            seen: BTreeMap::new(),
            totals: BTreeMap::new(),
        };
        judge.learn(origin);
        judge
    }

    /// Takes over what the process has found out of its product by now.
    pub fn learn(&mut self, origin: &Origin) {
        self.platform = Platform {
            product: Product::of(first_of(recorded(&origin.settings, &SOC), &origin.product)),
            cann: Version::parse(first_of(recorded(&origin.settings, &CANN), &origin.cann)),
            form: FormSetting::recorded_in(&origin.settings).and_then(|set| set.run_mode().or(origin.form)),
        };
        self.quick_check.learn(self.platform.form);
    }

    /// A product that the rulebook does not know, if that is what the process runs on.
    pub fn unknown_product<'a>(&self, origin: &'a Origin) -> Option<&'a str> {
        let name = first_of(recorded(&origin.settings, &SOC), &origin.product);
        (!name.is_empty() && self.platform.product.is_none()).then_some(name)
    }

    /// What makes no sense in the settings, once.
    pub fn take_nonsense(&mut self) -> Vec<String> {
        std::mem::take(&mut self.nonsense)
    }

    /// The modules of the process, which call sites are named by.
    pub fn modules(&mut self) -> &mut Modules {
        &mut self.modules
    }

    /// The modules of the process, without the right to change them.
    pub fn known_modules(&self) -> &Modules {
        &self.modules
    }

    /// How often each rule was broken; by its id, with the product where that is another one.
    pub fn totals(&self) -> &BTreeMap<String, Total> {
        &self.totals
    }

    /// What the process runs on.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// The quick look at calls of one slot.
    pub(crate) fn quick_check(&self) -> &QuickCheck {
        &self.quick_check
    }

    /// Counts more calls whose addresses are not aligned, at call sites that ALIGN-64 was reported for.
    #[inline]
    pub(crate) fn count_misaligned(&mut self, count: u64) {
        if count > 0
            && let Some(total) = self.totals.get_mut(ALIGN_64.id)
        {
            total.found += count;
            total.by_severity[total.worst.unwrap_or(ALIGN_64.severity) as usize] += count;
        }
    }

    /// Rules that a call breaks, without those that are off.
    pub(crate) fn in_force(&self, rules: u128) -> u128 {
        rules & !self.off
    }

    /// Judges a call with what the host has noted about it. Returns the rules that it breaks, and the findings to report.
    pub(crate) fn judge(
        &mut self,
        of: &JudgedCall<'_>,
        noted: &[record::RecordedFinding],
    ) -> (u128, Vec<ReportedFinding>) {
        let JudgedCall { function, call, .. } = *of;
        let mut reported = Vec::new();
        let subject = self.platform.subject(function, call);
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
        numbers(unknown).for_each(|number| self.count_unknown(number, Severity::Violation));
        reported.extend(self.noted(of, noted));
        let returned = returned(call);
        for (rule, finding) in &found {
            reported.extend(self.found(rule, *finding, of, None, |finding| message(rule, &subject, finding, returned)));
        }
        for other in 0..self.others.len() {
            self.on_another(other, &subject, of, bits, &mut reported);
        }
        (bits, reported)
    }

    /// What the host has found. Returns the findings to report.
    pub(crate) fn noted(&mut self, of: &JudgedCall<'_>, noted: &[record::RecordedFinding]) -> Vec<ReportedFinding> {
        let mut reported = Vec::new();
        let subject = self.platform.subject(of.function, of.call);
        for finding in noted {
            let as_found = of_note(finding);
            let Some(rule) = RULES.get(usize::from(finding.rule)) else {
                self.count_unknown(finding.rule, as_found.severity);
                continue;
            };
            reported.extend(self.found(rule, as_found, of, None, |as_found| {
                noted_message(rule, &subject, as_found, finding.values, returned(of.call))
            }));
        }
        reported
    }

    /// Counts a finding of a rule that this release does not know: there are no words for it.
    fn count_unknown(&mut self, number: u8, severity: Severity) {
        self.totals.entry(rule_id(number).into_owned()).or_default().count(severity);
    }

    /// What would be refused on another product, or is not for it by the documents, and is nothing here.
    fn on_another(
        &mut self,
        other: usize,
        subject: &Subject<'_>,
        of: &JudgedCall<'_>,
        here: u128,
        reported: &mut Vec<ReportedFinding>,
    ) {
        let (name, product) = self.others[other].clone();
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
            reported.extend(self.found(rule, as_portability, of, Some(other), |_| {
                let what = if finding.severity == Severity::Error { "refused" } else { "unsupported" };
                format!("would be {what} on {name}: {}", message(rule, &there, &finding, None))
            }));
        }
    }

    /// Counts a finding, and returns it if it is one of the first of its rule and call site; `on` is which of the other
    /// products it is about.
    fn found(
        &mut self,
        rule: &'static Rule,
        finding: Finding,
        of: &JudgedCall<'_>,
        on: Option<usize>,
        message: impl FnOnce(&Finding) -> String,
    ) -> Option<ReportedFinding> {
        let JudgedCall { function, call, frames } = *of;
        let action = self.policy.action(rule.number.into(), finding.severity);
        if action == Action::Off {
            return None;
        }
        let on = on.and_then(|on| Some((on, self.others.get(on)?.0.clone())));
        let name = on.as_ref().map_or_else(|| rule.id.to_owned(), |(_, name)| format!("{} on {name}", rule.id));
        let total = self.totals.entry(name).or_default();
        total.count(finding.severity);
        let site = self.modules.site(call.site);
        if self.mute.is_known(rule.id, function, site.as_ref()) {
            total.known += 1;
            return None;
        }
        let whence = (rule.number, on.as_ref().map(|(on, _)| *on), call.site);
        if self.seen.len() >= MOST_SITES && !self.seen.contains_key(&whence) {
            return None;
        }
        let count = self.seen.entry(whence).or_default();
        *count += 1;
        let count = *count;
        if rule.has_quick_check && on.is_none() {
            self.quick_check.told(call.site);
        }
        let most = if is_said_once(rule, finding.severity) { 1 } else { MOST };
        if count > most {
            return None;
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
        Some(ReportedFinding {
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
        })
    }
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
    severity <= Severity::Perf || rule.is_reported_once
}
