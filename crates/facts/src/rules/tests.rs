//! The rulebook against its own cases.

use super::*;
use crate::functions::Function;
use std::collections::BTreeSet;

#[test]
fn a_number_is_a_position_and_there_is_room_for_128() {
    for (position, rule) in RULES.iter().enumerate() {
        assert_eq!(rule.number as usize, position, "{}", rule.id);
    }
    assert!(RULES.len() <= 128);
}

#[test]
fn every_case_breaks_its_rule_and_no_other_and_every_near_miss_none() {
    let mut wrong = Vec::new();
    for rule in RULES {
        for case in rule.cases {
            let broken = case.look(|subject| {
                let mut broken = Vec::new();
                judge_each(subject, &mut |rule, finding| broken.push((rule, finding)));
                broken
            });
            let is_broken = broken.iter().any(|(found, _)| found.id == rule.id);
            if is_broken != case.breaks {
                wrong.push(format!("{}: {:?}: broken is {is_broken}", rule.id, case.says));
            }
            for (other, finding) in broken {
                let is_implied = case.breaks && rule.implies.iter().any(|(id, _)| *id == other.id);
                if finding.severity >= Severity::Violation && other.id != rule.id && !is_implied {
                    wrong.push(format!("{}: {:?}: also breaks {}", rule.id, case.says, other.id));
                }
                if finding.code != 0 && !other.codes.iter().any(|(code, _)| *code == finding.code) {
                    wrong.push(format!("{}: {:?}: {} is not a code of {}", rule.id, case.says, finding.code, other.id));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_rule_has_a_case_that_breaks_it_and_a_near_miss() {
    for rule in RULES {
        assert!(rule.cases.iter().any(|case| case.breaks), "{} has no case that breaks it", rule.id);
        assert!(rule.cases.iter().any(|case| !case.breaks), "{} has no near miss", rule.id);
    }
}

#[test]
fn a_rule_holds_for_the_functions_whose_checklists_name_it() {
    for rule in RULES {
        let named = Function::ALL.iter().filter(|function| names(**function, rule));
        let named: BTreeSet<_> = named.map(|function| *function as u8).collect();
        let said: BTreeSet<_> = rule.functions.iter().map(|function| *function as u8).collect();
        assert_eq!(named, said, "{}", rule.id);
    }
}

/// What the walk over the items may find broken.
const ITEMS: &[&str] = &[
    "BATCH-ZERO-SIZE",
    "BATCH-NULL-ITEM",
    "BATCH-PLACE",
    "BATCH-UNREGISTERED",
    "BATCH-DIRECTION",
    "UNALLOCATED",
    "MEMORY-ROOM",
];
const ITEMS_NOW: &[&str] = &["DEVICE-CLOSED"];
const ITEMS_ON_STREAM: &[&str] = &["STREAM-FOREIGN", "CAPTURE-PAGEABLE", "CAPTURE-BLOCKS", "BATCH-LIMIT"];

fn names(function: Function, rule: &Rule) -> bool {
    let is_it = |other: &&&Rule| other.id == rule.id;
    let list = checklist(function);
    let is_async = function.row().arguments.last().is_some_and(|argument| argument.name == "stream");
    list.advice.iter().chain(list.always).any(|other| is_it(&other))
        || list.steps.iter().any(|step| match step {
            Step::Accept(_) => false,
            Step::Check(other) | Step::Part(other, _) => is_it(&other),
            Step::Items => {
                let more = if is_async { ITEMS_ON_STREAM } else { ITEMS_NOW };
                ITEMS.iter().chain(more).any(|id| *id == rule.id)
            }
        })
}

#[test]
fn a_prediction_names_a_rule_that_is_found_with_the_same_code() {
    for rule in RULES {
        for case in rule.cases {
            let (prediction, findings) = case.look(|subject| (predict(subject), judge(subject)));
            let worst = findings.worst == Some(Severity::Error);
            match prediction {
                Prediction::Refused { rule: number, code, .. } => {
                    let same = findings.iter().find(|(other, _)| *other as usize == number);
                    let (_, finding) = same.unwrap_or_else(|| panic!("{} {:?}", rule.id, case.says));
                    assert_eq!(
                        (finding.code, finding.severity),
                        (code, Severity::Error),
                        "{} {:?}",
                        rule.id,
                        case.says
                    );
                }
                Prediction::Accepted => assert!(!worst, "{} {:?}", rule.id, case.says),
                Prediction::Unknown => {}
            }
        }
    }
}
