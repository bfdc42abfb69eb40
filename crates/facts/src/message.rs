//! What is said to people: of a finding, with all values, and of a code that came back.
//!
//! Only readers call this; it takes memory, and the shim's host never does.

use crate::abi::{KINDS, aclError};
use crate::call::{Batch, Call, Form};
use crate::code;
use crate::product::Version;
use crate::rule::{Finding, Outcome, Rule, Scope, Severity, Source, Subject, Verdict};
use crate::rules::role::Role;
use crate::rules::{RULES, predict};
use crate::world;
use std::fmt::{self, Display, Write};

impl Severity {
    /// Its word.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Portability => "portability",
            Severity::Perf => "perf",
            Severity::Violation => "violation",
            Severity::Error => "error",
        }
    }
}

impl Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (who, what) = match self {
            Source::Doc(what) => ("documents", what),
            Source::Header(what) => ("header", what),
            Source::Runtime(what) => ("runtime source", what),
            Source::Driver(what) => ("driver source", what),
            Source::Observed(what) => ("observed", what),
            Source::Ours(what) => ("ours", what),
        };
        write!(f, "{who}: {what}")
    }
}

impl Scope {
    /// The products, and the forms where these matter, in words.
    pub fn products(&self) -> String {
        let products = match self.products {
            [] => "all products".to_owned(),
            products => products.join(", "),
        };
        match self.forms {
            [] => products,
            forms => {
                let names: Vec<_> = forms.iter().map(|form| form_name(*form)).collect();
                format!("{products} ({})", names.join(", "))
            }
        }
    }

    /// The releases of CANN, in words.
    pub fn versions(&self) -> String {
        let number = |release: Version| format!("{}.{}", release.major, release.minor);
        match (self.since.map(number), self.before.map(number)) {
            (None, None) => "all versions".into(),
            (Some(since), None) => format!("CANN {since} and later"),
            (None, Some(before)) => format!("before CANN {before}"),
            (Some(since), Some(before)) => format!("CANN {since} and later, before {before}"),
        }
    }
}

impl Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}; {}", self.products(), self.versions())
    }
}

fn form_name(form: world::Form) -> &'static str {
    match form {
        world::Form::EndPoint => "Ascend EP",
        world::Form::RootComplex => "Ascend RC",
    }
}

/// A word as C code would write it, by the type of its argument.
pub fn value(c_type: &str, word: u64) -> String {
    match c_type {
        "aclrtMemcpyKind" => match KINDS.get(word as usize) {
            Some(name) => format!("ACL_MEMCPY_{name}"),
            None => (word as i32).to_string(),
        },
        "int32_t" => (word as i32).to_string(),
        "uint32_t" => (word as u32).to_string(),
        "size_t" if word == u64::MAX => "SIZE_MAX".into(),
        "size_t" => word.to_string(),
        _ if word == 0 => "NULL".into(),
        _ => format!("{word:#x}"),
    }
}

/// The words that a call was made of, in the order of its row.
fn words(call: &Call) -> Vec<u64> {
    let mut words = match call.form {
        Form::Linear { dst, dst_max, src, count, kind } => {
            vec![dst as u64, dst_max as u64, src as u64, count as u64, kind.0 as u64]
        }
        Form::Pitched { dst, dst_pitch, src, src_pitch, width, height, kind } => {
            let kind = kind.0 as u64;
            vec![dst as u64, dst_pitch as u64, src as u64, src_pitch as u64, width as u64, height as u64, kind]
        }
        Form::Batch(Batch { dsts, dst_maxs, srcs, sizes, items, attrs, attr_indexes, attr_count, fail_index }) => {
            let mut words = vec![dsts as u64, dst_maxs as u64, srcs as u64, sizes as u64, items as u64];
            words.extend([attrs as u64, attr_indexes as u64, attr_count as u64]);
            words.extend(fail_index.map(|index| index as u64));
            words
        }
        Form::Indirect { dst, dst_max, dst_offset, src, count, src_offset, kind } => {
            let (count, src_offset) = (count as u64, src_offset as u64);
            vec![dst as u64, dst_max as u64, dst_offset as u64, src as u64, count, src_offset, kind.0 as u64]
        }
        Form::Described { desc, kind } => vec![desc as u64, kind.0 as u64],
        Form::FromSymbol { dst, dst_max, symbol, count, offset, kind } => {
            vec![dst as u64, dst_max as u64, symbol as u64, count as u64, offset as u64, kind.0 as u64]
        }
        Form::ToSymbol { symbol, src, count, offset, kind } => {
            vec![symbol as u64, src as u64, count as u64, offset as u64, kind.0 as u64]
        }
        Form::DescSize { kind, size } => vec![kind.0 as u64, size as u64],
        Form::SetDesc { desc, kind, src, dst, count, config } => {
            vec![desc as u64, kind.0 as u64, src as u64, dst as u64, count as u64, config as u64]
        }
        Form::Fill { dst, dst_max, value, count } => vec![dst as u64, dst_max as u64, value as u64, count as u64],
        Form::FillWords { dst, dst_max, value, words } => {
            vec![dst as u64, dst_max as u64, value as u64, words as u64]
        }
    };
    words.extend(call.stream.map(|stream| stream as u64));
    words
}

/// The entry of the array that a finding is at, and what else belongs to it.
fn entry(subject: &Subject, role: Role, index: usize) -> Option<String> {
    let arrays = &subject.arrays;
    let number = |array: Option<&[usize]>| array?.get(index).copied();
    let pointer = |array: Option<&[*mut core::ffi::c_void]>| array?.get(index).map(|pointer| *pointer as usize);
    match role {
        Role::Dst => pointer(arrays.dsts).map(|address| format!("{address:#x}")),
        Role::Src => pointer(arrays.srcs).map(|address| format!("{address:#x}")),
        Role::Count => number(arrays.sizes).map(|size| size.to_string()),
        Role::DstMax => {
            let max = number(arrays.dst_maxs)?;
            let size = number(arrays.sizes).map_or(String::new(), |size| format!(", sizes[{index}] = {size}"));
            Some(format!("{max}{size}"))
        }
        Role::AttrIndexes => {
            let at = |index: usize| arrays.attr_indexes?.get(index).copied();
            let before = index.checked_sub(1).and_then(|before| Some((before, at(before)?)));
            let before = before.map_or(String::new(), |(index, value)| format!(", attrsIndexes[{index}] = {value}"));
            Some(format!("{}{before}", at(index)?))
        }
        Role::Attrs => {
            let attr = arrays.attrs?.get(index)?;
            let first = arrays.attr_indexes.and_then(|indexes| indexes.get(index));
            let first = first.map_or(String::new(), |first| format!(", from item {first} on"));
            Some(format!("{{dst {}, src {}}}{first}", location(attr.dstLoc), location(attr.srcLoc)))
        }
        _ => None,
    }
}

/// A location as people say it. The id of a host location means nothing, and may be anything.
pub fn location(location: crate::abi::aclrtMemLocation) -> String {
    match location.type_ {
        0 => "HOST".into(),
        1 => format!("DEVICE {}", location.id),
        2 => "UNREGISTERED".into(),
        3 => "MANAGED".into(),
        4 => "HOST_NUMA".into(),
        other => format!("type {other}"),
    }
}

/// The attribute of an item: what a finding at an item of `dsts` or `srcs` is measured against.
fn attribute_of(subject: &Subject, item: usize) -> Option<String> {
    let indexes = subject.arrays.attr_indexes?;
    let entry = indexes.iter().rposition(|first| *first <= item)?;
    let attr = subject.arrays.attrs?.get(entry)?;
    Some(format!("attrs[{entry}] = {{dst {}, src {}}}", location(attr.dstLoc), location(attr.srcLoc)))
}

/// The call with its values, and where the finding is.
fn values(subject: &Subject, finding: &Finding) -> String {
    let row = subject.function.row();
    let words = words(&subject.call);
    let mut text = format!("{}(", row.name);
    for (position, (argument, word)) in row.arguments.iter().zip(&words).enumerate() {
        let comma = if position == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{} = {}", argument.name, value(argument.c_type, *word));
    }
    text.push(')');
    let Some(argument) = row.arguments.get(finding.argument as usize) else { return text };
    match finding.index {
        Some(index) => {
            let _ = write!(text, ": {}[{index}]", argument.name);
            let role = subject.role_in_batch(finding.argument);
            if let Some(entry) = role.and_then(|role| entry(subject, role, index)) {
                let _ = write!(text, " = {entry}");
            }
            if matches!(role, Some(Role::Dst | Role::Src))
                && let Some(attribute) = attribute_of(subject, index)
            {
                let _ = write!(text, ", {attribute}");
            }
        }
        None => {
            let _ = write!(text, "; wrong argument: {}", argument.name);
        }
    }
    text
}

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
        // What it has done says more than what it does.
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
            let place = |word: u64| location(crate::abi::aclrtMemLocation { id: 0, type_: word as i32 });
            format!(": attrs[{index}] = {{dst {}, src {}}}", place(noted[0]), place(noted[1]))
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
    /// Rules that it could break for all that is known.
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
    if let crate::rule::Prediction::Refused { rule, code: predicted, .. } = predict(subject)
        && predicted == code
        && let Some(rule) = RULES.get(rule)
    {
        add(&mut likely, rule);
    }
    crate::rules::judge_each(subject, &mut |rule, finding| {
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
mod tests {
    use super::*;
    use crate::functions::Function;
    use crate::rule::Arrays;
    use crate::rules::judge_each;
    use crate::world::World;

    #[test]
    fn every_case_has_a_message_with_values_statement_outcome_and_fix() {
        for rule in RULES {
            for case in rule.cases.iter().filter(|case| case.breaks) {
                case.look(|subject| {
                    judge_each(subject, &mut |found, finding| {
                        let text = message(found, subject, &finding, None);
                        let row = subject.function.row();
                        assert!(
                            text.starts_with(&format!("{} {}: {}(", finding.severity, found.id, row.name)),
                            "{text}"
                        );
                        assert!(text.contains(found.fix) && text.ends_with('.') && !text.contains(".."), "{text}");
                        assert_eq!(
                            text.contains("the vendor returns") || text.contains("The vendor returns"),
                            finding.code != 0,
                            "{text}"
                        );
                    });
                });
            }
        }
    }

    /// The first finding of a rule in its case of that text.
    fn told(id: &str, says: &str, returned: Option<aclError>) -> String {
        let rule = Rule::by_id(id).unwrap();
        let case = rule.cases.iter().find(|case| case.says == says).unwrap_or_else(|| panic!("{id}: {says}"));
        case.look(|subject| {
            let mut text = String::new();
            judge_each(subject, &mut |found, finding| {
                if std::ptr::eq(found, rule) {
                    text = message(found, subject, &finding, returned);
                }
            });
            text
        })
    }

    #[test]
    fn a_message_says_what_comes_of_this_very_call() {
        for (id, says, outcome) in [
            (
                "BATCH-DIRECTION",
                "both ways in one batch: accepted, not documented",
                "By itself the vendor accepts this.",
            ),
            ("PITCH-KIND", "by the addresses: accepted, not documented", "By itself the vendor accepts this."),
            ("UNSUPPORTED-PRODUCT", "a variable: not listed, and accepted", "By itself the vendor accepts this."),
            ("UNSUPPORTED-RELEASE", "before its release", "A library of such a release does not have it"),
            (
                "ZERO-SIZE",
                "accepted since 9.1, refused before",
                "CANN 9.1 and later accept it, earlier releases do not.",
            ),
            (
                "ASYNC-HOST-TO-HOST",
                "documented as refused, though the runtime makes it device to device",
                "The vendor may return 207000 (ACL_ERROR_RT_FEATURE_NOT_SUPPORT).",
            ),
        ] {
            let text = told(id, says, None);
            assert!(text.contains(outcome), "{text}");
            let text = told(id, says, Some(0));
            assert!(
                text.to_lowercase().contains("the vendor accepted this call") && !text.contains("may return"),
                "{text}"
            );
            let text = told(id, says, Some(107_002));
            assert!(text.contains("he vendor returned 107002 (ACL_ERROR_RT_CONTEXT_NULL) for this call."), "{text}");
        }
        // What is refused says so, and what came where that is something else.
        let refused = "The vendor returns 107000 (ACL_ERROR_RT_PARAM_INVALID)";
        for (returned, rest) in [
            (None, "."),
            (Some(107_000), "."),
            (Some(0), "; the vendor accepted this call."),
            (Some(107_002), "; the vendor returned 107002 (ACL_ERROR_RT_CONTEXT_NULL) for this call."),
        ] {
            let text = told("DEST-MAX", "one byte too many", returned);
            assert!(text.contains(&format!("{refused}{rest}")), "{text}");
        }
    }

    #[test]
    fn a_message_says_where_the_rule_holds() {
        let text = told("DEST-MAX", "one byte too many", None);
        assert!(text.contains("in bytes; all products; all versions]. "), "{text}");
        let text = told("UNSUPPORTED-RELEASE", "before its release", None);
        assert!(text.contains("; all products; before CANN 9.1]. "), "{text}");
        let text = told("PITCH-ROOT-COMPLEX", "on the board", None);
        assert!(text.contains("; all products (Ascend RC); all versions]. "), "{text}");
    }

    #[test]
    fn the_words_of_a_call_come_back() {
        for function in Function::ALL {
            let count = function.row().arguments.len();
            let given: Vec<u64> = (1..=count as u64).collect();
            assert_eq!(words(&function.call(&given)), given, "{}", function.row().name);
        }
    }

    #[test]
    fn a_message_names_the_entry_of_the_array_and_the_item() {
        let rule = Rule::by_id("BATCH-PLACE").unwrap();
        let text = rule.cases[0].look(|subject| {
            let mut text = String::new();
            judge_each(subject, &mut |rule, finding| text = message(rule, subject, &finding, None));
            text
        });
        assert!(text.contains(": dsts[1] = 0x100000200000, attrs[0] = {dst DEVICE 0, src HOST}."), "{text}");
        assert!(text.contains("The vendor returns 107000 (ACL_ERROR_RT_PARAM_INVALID), failIndex 1."), "{text}");
    }

    #[test]
    fn a_code_is_explained_by_what_is_broken_and_by_what_is_not_known() {
        let ids_on = |form, words: &[u64], code| {
            let function = Function::aclrtMemcpyAsync;
            let (call, arrays, world) = (function.call(words), Arrays::default(), World { form, ..World::UNKNOWN });
            let Reasons { likely, possible } = explain(&Subject { function, call, arrays, world }, code);
            [likely, possible].map(|rules| rules.iter().map(|rule| rule.id).collect::<Vec<_>>())
        };
        let ids = |words: &[u64], code| ids_on(None, words, code);
        assert_eq!(ids(&[64, 64, 0, 64, 1, 0], 100_000), [vec!["NULL-POINTER"], vec![]]);
        assert_eq!(ids(&[64, 64, 128, 64, 1, 0], 107_002), [vec![], vec!["CONTEXT-MISSING"]]);
        let [likely, possible] = ids(&[64, 63, 128, 64, 1, 0], 107_000);
        assert_eq!(likely, ["DEST-MAX"]);
        // Where memory is, and how long it is, is not known.
        assert!(possible.contains(&"KIND-PLACE") && possible.contains(&"MEMORY-ROOM"), "{possible:?}");
        assert!(!possible.contains(&"DEST-MAX"), "{possible:?}");
        // By any kind, whether the runtime will take the word for it or not.
        for form in [None, Some(world::Form::EndPoint)] {
            for kind in [0, 1, 4] {
                let ids = ids_on(form, &[64, 64, 128, 64, kind, 0], 207_000);
                assert_eq!(ids, [vec![], vec!["ASYNC-HOST-TO-HOST"]], "{form:?} {kind}");
            }
        }
        assert_eq!(ids(&[64, 64, 128, 64, 1, 0], 0), [vec![] as Vec<&str>, vec![]]);
    }
}
