//! The rulebook against its own cases.

use super::entries::batch;
use super::*;
use crate::call::functions::Function;
use crate::rules::world::Untracked;
use crate::vendor::code;
use crate::vendor::product::{PRODUCTS, Product};

#[test]
fn an_id_is_capital_words_with_hyphens() {
    let is_plain = |id: &str| {
        id.split('-').all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()))
    };
    assert!(RULES.iter().all(|rule| is_plain(rule.id)));
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
fn every_rule_applies_to_some_function_and_every_function_has_rules() {
    for rule in RULES {
        assert!(rule.functions().next().is_some(), "{} is in no checklist", rule.id);
    }
    for function in Function::ALL {
        assert!(RULES.iter().any(|rule| rule.applies_to(*function)), "{}", function.row().name);
    }
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

#[test]
fn a_batch_that_claims_more_items_than_were_read_is_looked_at_no_further() {
    let case = batch::THREE_NOW;
    let mut words = case.to_vec();
    words[4] = u64::MAX;
    words[7] = u64::MAX;
    for function in [Function::aclrtMemcpyBatch, Function::aclrtMemcpyBatchAsync] {
        let case = crate::rules::case::Case::good(function, "", &[]).within(batch::THREE);
        case.look(|subject| {
            let subject = Subject { call: function.call(&words), ..*subject };
            judge(&subject);
            assert_eq!(predict(&subject), Prediction::Unknown);
        });
    }
}

#[test]
fn what_a_rule_is_said_to_imply_comes_with_one_of_its_cases() {
    for rule in RULES {
        for (id, reason) in rule.implies {
            let implied = Rule::by_id(id).unwrap_or_else(|| panic!("{} implies {id}, which is no rule", rule.id));
            let comes = |case: &crate::rules::case::Case| case.look(judge).set & 1 << implied.number != 0;
            assert!(rule.cases.iter().any(|case| case.breaks && comes(case)), "{} without {id}: {reason}", rule.id);
        }
    }
}

#[test]
fn a_scope_names_products_that_there_are_and_holds_where_the_rule_is_broken() {
    for rule in RULES {
        let is_one = |name: &&str| PRODUCTS.iter().any(|product| product.name == *name);
        assert!(rule.scope.products.iter().all(is_one), "{}", rule.id);
        for case in rule.cases.iter().filter(|case| case.breaks) {
            let scope = &rule.scope;
            let name = case.scene.soc.and_then(Product::of).map(|product| product.name);
            let is_product = scope.products.is_empty() || name.is_some_and(|name| scope.products.contains(&name));
            let is_mode =
                scope.run_modes.is_empty() || case.scene.run_mode.is_some_and(|mode| scope.run_modes.contains(&mode));
            let is_before = scope.before.is_none_or(|release| case.scene.cann.is_some_and(|cann| cann < release));
            let is_since = scope.since.is_none_or(|release| case.scene.cann.is_some_and(|cann| cann >= release));
            assert!(is_product && is_mode && is_before && is_since, "{}: {}", rule.id, case.says);
        }
    }
}

#[test]
fn a_stream_of_another_context_is_no_finding_where_the_memory_is_not_known() {
    let rule = Rule::by_id("STREAM-FOREIGN").expect("a rule");
    for case in rule.cases.iter().filter(|case| case.breaks) {
        let is_told_by_memory = case.scene.tells_pageable == Some(true) && case.scene.soc != Some("Ascend950");
        case.look(|subject| {
            let subject = Subject { world: World { memory: &Untracked, ..subject.world }, ..*subject };
            let is_found = judge(&subject).set & 1 << rule.number != 0;
            assert_eq!(is_found, !is_told_by_memory, "{}", case.says);
            assert!(is_found || predict(&subject) == Prediction::Unknown, "{}", case.says);
        });
    }
}

#[test]
fn a_code_that_a_rule_returns_has_a_name_and_a_meaning() {
    for (code, _) in RULES.iter().flat_map(|rule| rule.codes) {
        assert!(code::name(*code).is_some() && code::meaning(*code).is_some(), "{code}");
    }
    assert!(Rule::by_code(107_043).map(|rule| rule.id).eq(["SYMBOL-UNKNOWN"]));
    assert_eq!(Rule::by_code(207_020).count(), 0);
}
