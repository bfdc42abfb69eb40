//! The messages of all cases, and examples of each part of a message.

use super::*;
use crate::call::functions::Function;
use crate::rules::rule::Arrays;
use crate::rules::world::{RunMode, World};
use values::words;

#[test]
fn every_case_has_a_message_with_values_statement_outcome_and_fix() {
    for rule in RULES {
        for case in rule.cases.iter().filter(|case| case.breaks) {
            case.look(|subject| {
                judge_each(subject, &mut |found, finding| {
                    let text = message(found, subject, &finding, None);
                    let row = subject.function.row();
                    assert!(text.starts_with(&format!("{} {}: {}(", finding.severity, found.id, row.name)), "{text}");
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
        ("BATCH-DIRECTION", "both ways in one batch: accepted, not documented", "By itself the vendor accepts this."),
        ("PITCH-KIND", "by the addresses: accepted, not documented", "By itself the vendor accepts this."),
        ("UNSUPPORTED-PRODUCT", "a variable: not listed, and accepted", "By itself the vendor accepts this."),
        ("UNSUPPORTED-RELEASE", "before its release", "A library of such a release does not have it"),
        ("ZERO-SIZE", "accepted since 9.1, refused before", "CANN 9.1 and later accept it, earlier releases do not."),
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
    let ids_on = |run_mode, words: &[u64], code| {
        let function = Function::aclrtMemcpyAsync;
        let (call, arrays, world) = (function.call(words), Arrays::default(), World { run_mode, ..World::UNKNOWN });
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
    for run_mode in [None, Some(RunMode::EndPoint)] {
        for kind in [0, 1, 4] {
            let ids = ids_on(run_mode, &[64, 64, 128, 64, kind, 0], 207_000);
            assert_eq!(ids, [vec![], vec!["ASYNC-HOST-TO-HOST"]], "{run_mode:?} {kind}");
        }
    }
    assert_eq!(ids(&[64, 64, 128, 64, 1, 0], 0), [vec![] as Vec<&str>, vec![]]);
}
