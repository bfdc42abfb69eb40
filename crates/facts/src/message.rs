//! The messages about a finding and about a code that a call returned.
//!
//! Only readers of records call this: it allocates, which the host's threads must not do.

mod names;
mod values;

use crate::rules::role::Role;
use crate::rules::rule::{Finding, Outcome, Prediction, Rule, Severity, Subject, Verdict};
use crate::rules::{RULES, judge_each, predict};
use crate::vendor::abi::{aclError, aclrtMemLocation};
use crate::vendor::code;
use std::fmt::Write;
use values::values;
pub use values::{location, value};

fn code_name(code: aclError) -> &'static str {
    code::name(code).unwrap_or("a code without a name")
}

/// What the vendor does for a finding, and what it has done with this call, where that is known.
fn outcome(rule: &Rule, finding: &Finding, returned: Option<aclError>) -> String {
    let here = |returned: aclError| match returned {
        code::ACL_SUCCESS => "the vendor accepted this call".to_owned(),
        code => format!("the vendor returned {code} ({}) for this call", code_name(code)),
    };
    match rule.outcome(finding.severity) {
        Outcome::Refused => {
            let name = code_name(finding.code);
            let index = match finding.fail_index {
                Some(usize::MAX) => ", failIndex SIZE_MAX".into(),
                Some(index) => format!(", failIndex {index}"),
                None => String::new(),
            };
            let other = returned.filter(|returned| *returned != finding.code);
            let other = other.map_or(String::new(), |returned| format!("; {}", here(returned)));
            format!("the vendor returns {} ({name}){index}{other}", finding.code)
        }
        Outcome::Said(what) => {
            let here = returned.map_or(String::new(), |returned| format!("; {}", here(returned)));
            format!("{what}{here}")
        }
        // What it has done with this call says more than what it does in general.
        Outcome::Accepted | Outcome::Perhaps(_) if returned.is_some() => returned.map(here).unwrap_or_default(),
        Outcome::Accepted => "by itself the vendor accepts this".into(),
        Outcome::Perhaps(code) => format!("the vendor may return {code} ({})", code_name(code)),
    }
}

/// A finding in words: the values, what is demanded, who says so and where it holds, what the vendor does, or what it has
/// `returned` where that is known, and the fix.
pub fn message(rule: &Rule, subject: &Subject, finding: &Finding, returned: Option<aclError>) -> String {
    said(rule, &values(subject, finding), finding, returned)
}

/// A finding in words, in an array that cannot be read any more; `noted` is the entry and the value that it is compared with.
pub fn noted_message(
    rule: &Rule,
    subject: &Subject,
    finding: &Finding,
    noted: [u64; 2],
    returned: Option<aclError>,
) -> String {
    let name = subject.function.row().arguments.get(finding.argument as usize).map_or("", |argument| argument.name);
    let entry = match (subject.role_in_batch(finding.argument), finding.index) {
        (Some(Role::Count | Role::DstMax), Some(index)) => {
            format!(": sizes[{index}] = {}, destMaxs[{index}] = {}", noted[0], noted[1])
        }
        (Some(Role::AttrIndexes), Some(index)) if index > 0 => {
            format!(": attrsIndexes[{index}] = {}, attrsIndexes[{}] = {}", noted[0], index - 1, noted[1])
        }
        (Some(Role::AttrIndexes), Some(index)) => format!(": attrsIndexes[{index}] = {}", noted[0]),
        (Some(Role::Attrs), Some(index)) => {
            let location_text = |word: u64| location(aclrtMemLocation { id: 0, type_: word as i32 });
            format!(": attrs[{index}] = {{dst {}, src {}}}", location_text(noted[0]), location_text(noted[1]))
        }
        // An entry that is 0 was not noted, but where that is what is wrong.
        (Some(Role::Dst | Role::Src), Some(index)) if noted[0] != 0 || rule.id == "BATCH-NULL-ITEM" => {
            format!(": {name}[{index}] = {}", value("void *", noted[0]))
        }
        _ => return message(rule, subject, finding, returned),
    };
    let call = values(subject, &Finding { argument: u8::MAX, index: None, ..*finding });
    said(rule, &format!("{call}{entry}"), finding, returned)
}

/// Who states a rule, and where it holds: what stands in brackets behind the statement.
pub fn reference(rule: &Rule) -> String {
    let source = rule.sources.first().map_or(String::new(), |source| format!("{source}; "));
    format!(" [{source}{}]", rule.scope)
}

fn said(rule: &Rule, values: &str, finding: &Finding, returned: Option<aclError>) -> String {
    format!(
        "{} {}: {}. {}{}. {}. Fix: {}.",
        finding.severity,
        rule.id,
        values,
        sentence(rule.statement),
        reference(rule),
        sentence(&outcome(rule, finding, returned)),
        rule.fix
    )
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    // An argument of the vendor's keeps its spelling.
    let word = text.split([' ', ',', '[']).next().unwrap_or_default();
    let is_word = word.chars().all(|letter| letter.is_ascii_lowercase()) && !ARGUMENTS.contains(&word);
    match first {
        Some(first) if is_word => first.to_uppercase().chain(letters).collect(),
        _ => text.into(),
    }
}

/// Arguments that are spelled like words.
const ARGUMENTS: &[&str] = &["kind", "width", "height", "count", "ptr", "offset", "symbol", "config"];

/// Why the vendor may have refused a call.
#[derive(Default)]
pub struct Reasons {
    /// Rules that the call breaks, the most likely first, in the order of the vendor's checks.
    pub likely: Vec<&'static Rule>,
    /// Rules that it may break: too little is known to tell.
    pub possible: Vec<&'static Rule>,
}

/// The rules that the vendor may have refused this call for with this code.
pub fn explain(subject: &Subject, code: aclError) -> Reasons {
    let Reasons { mut likely, mut possible } = Reasons::default();
    let returns = |rule: &Rule| rule.codes.iter().any(|(other, _)| *other == code) && rule.applies_to(subject.function);
    let add = |to: &mut Vec<&'static Rule>, rule: &'static Rule| {
        if returns(rule) && !to.iter().any(|other| std::ptr::eq(*other, rule)) {
            to.push(rule);
        }
    };
    if let Prediction::Refused { rule, code: predicted, .. } = predict(subject)
        && predicted == code
        && let Some(rule) = RULES.get(rule)
    {
        add(&mut likely, rule);
    }
    judge_each(subject, &mut |rule, finding| {
        if finding.code == code {
            add(&mut likely, rule);
        } else if finding.severity == Severity::Violation {
            // Not refused for it as far as is known, and yet the rule has this code.
            add(&mut possible, rule);
        }
    });
    for rule in RULES {
        if (rule.check)(subject) == Verdict::Unknown {
            add(&mut possible, rule);
        }
    }
    possible.retain(|rule| !likely.iter().any(|other| std::ptr::eq(*other, *rule)));
    Reasons { likely, possible }
}

/// A code that a call returned, in words, with the ids of the likely rules.
pub fn code_message(subject: &Subject, code: aclError) -> String {
    let mut text = format!("{} returned {code} ({})", subject.function.row().name, code_name(code));
    if let Some(meaning) = code::meaning(code) {
        let _ = write!(text, ": {meaning}");
    }
    let Reasons { likely, possible } = explain(subject, code);
    for (word, rules) in [("likely", likely), ("possible", possible)] {
        if !rules.is_empty() {
            let ids: Vec<_> = rules.iter().map(|rule| rule.id).collect();
            let _ = write!(text, "; {word} {}", ids.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests;
