//! What a failure means, which failures are none, and where vendor and rulebook do not agree.

#[path = "support/checking.rs"]
mod checking;
mod support;

use checking::{about, cases, one, same, text, words};
use serde_json::json;
use support::{Output, Run};

/// On a product without batches.
fn without_batches(calls: &str) -> Output {
    same(one(), |run| words(run, calls).env("ASCENDCL_SIM_SOC", "Ascend310P3")).ok()
}

#[test]
fn a_function_that_is_tried_and_done_without_is_one_note_and_no_failure() {
    // With and without knowing what the product is.
    for calls in ["fallback 50", "good 1 fallback 50"] {
        let output = without_batches(calls);
        let notes = about(&output, "note", "probe");
        assert_eq!(notes.len(), 1, "{calls}: {:?}", checking::said(&output));
        let said = text(&notes[0]["message"]);
        assert!(said.contains("aclrtMemcpyBatch") && said.contains("207000"), "{said}");
        assert_eq!(output.events("failed_call").len(), 0, "{calls}: {:?}", checking::said(&output));
        assert_eq!(about(&output, "warning", "unsupported").len(), 0, "{calls}");
        assert_eq!(output.stat().total("errors"), 50);
    }
}

#[test]
fn a_function_that_is_missed_is_a_warning() {
    // The last calls of the program, or followed by one that fails too, or by itself.
    for (calls, times) in [("batch 1", 1), ("good 1 batch 1", 1), ("batch 1 room 1 good 1", 1), ("good 1 batch 5", 5)] {
        let output = without_batches(calls);
        let said = about(&output, "warning", "unsupported");
        assert_eq!(said.len(), times, "{calls}: {:?}", checking::said(&output));
        for line in said {
            let message = text(&line["message"]);
            assert!(message.contains("207000 (ACL_ERROR_RT_FEATURE_NOT_SUPPORT)"), "{message}");
            assert!(message.contains("UNSUPPORTED-PRODUCT"), "{calls}: {message}");
        }
        assert_eq!(about(&output, "note", "probe").len(), 0, "{calls}");
    }
}

#[test]
fn what_a_function_has_and_refuses_is_not_taken_for_a_function_that_is_missing() {
    // Host to host on a stream is refused with the same code, and another function follows.
    let program = checking::many();
    let output = same(program, |run| run);
    for note in about(&output, "note", "probe") {
        assert!(!text(&note["message"]).contains("aclrtMemcpyAsync is not there"), "{note}");
    }
    // Nor with a kind that says nothing of it: the runtime goes by where the memory is, which only it knows.
    for case in ["host_to_host", "by_default"] {
        let output = same(one(), |run| words(run, &format!("good 1 {case} 1 good 1 {case} 2 good 1"))).ok();
        assert_eq!(about(&output, "note", "probe").len(), 0, "{case}: {:?}", checking::said(&output));
        let failed = output.events("failed_call");
        assert_eq!(failed.len(), 3, "{case}: {:?}", checking::said(&output));
        for line in &failed {
            assert!(text(&line["message"]).contains("possible ASYNC-HOST-TO-HOST"), "{line}");
        }
    }
}

#[test]
fn a_code_is_explained_by_its_name_its_meaning_and_the_likely_rule() {
    let output = same(one(), |run| words(run, "good 1 context 12")).ok();
    let failed = output.events("failed_call");
    assert_eq!(failed.len(), 10, "each from a new thread, and all from one place");
    for line in &failed {
        assert_eq!((&line["code"], &line["code_name"]), (&json!(107_002), &json!("ACL_ERROR_RT_CONTEXT_NULL")));
        let message = text(&line["message"]);
        for part in ["107002", "ACL_ERROR_RT_CONTEXT_NULL", "the calling thread has no context", "CONTEXT-MISSING"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    assert!(text(&failed[9]["message"]).contains("not told again"), "{}", failed[9]);
    assert_eq!(output.stat().total("errors"), 12);
}

#[test]
fn the_rule_that_is_broken_explains_a_code_before_those_that_may_be() {
    let output = cases("good 1 room 1").run().ok();
    let [failed] = &output.events("failed_call")[..] else { panic!("{:?}", checking::said(&output)) };
    assert!(text(&failed["message"]).contains("likely DEST-MAX"), "{failed}");
}

// ---- Drift ----

#[test]
fn where_the_vendor_does_not_do_what_the_rulebook_says_the_arguments_are_kept_ten_times() {
    let run = |run: Run| words(run, "good 1 zero 12").env("ACLSHIM_CANN", "8.5");
    let output = same(one(), run).ok();
    let drifts = output.events("drift");
    assert_eq!(drifts.len(), 10, "{:?}", checking::said(&output));
    for line in &drifts {
        let known = ["function", "rule", "expected", "returned", "cann"].map(|key| line[key].clone());
        assert_eq!(json!(known), json!(["aclrtMemcpy", "ZERO-SIZE", 107_000, 0, "8.5"]));
        let arguments: Vec<&str> = text(&line["arguments"]).split(' ').collect();
        // dst, destMax, src, count, kind
        assert_eq!((arguments.len(), &arguments[1], &arguments[3..]), (5, &"0x40", &["0x0", "0x1"][..]), "{line}");
    }
    assert!(!text(&drifts[0]["arguments"]).starts_with("0x0 "), "{}", drifts[0]);
    // And the other way round: expected to be accepted, and refused.
    let run = |run: Run| words(run, "good 1 zero 12").env("ACLSHIM_CANN", "9.2").env("ASCENDCL_SIM_CANN", "8.5");
    let drifts = same(one(), run).ok().events("drift");
    assert_eq!(drifts.len(), 10);
    for line in &drifts {
        let known = ["function", "rule", "expected", "returned", "cann"].map(|key| line[key].clone());
        assert_eq!(json!(known), json!(["aclrtMemcpy", null, 0, 107_000, "9.2"]));
        assert_eq!(text(&line["arguments"]).split(' ').count(), 5, "{line}");
    }
    let agreeing = same(one(), |run| words(run, "good 20 zero 12 room 5 null 5 batch_room 5 align 5 context 2")).ok();
    assert_eq!(agreeing.events("drift").len(), 0, "{:?}", agreeing.events("drift"));
}

#[test]
fn a_program_of_bad_calls_of_every_kind_shows_no_drift() {
    for (soc, cann) in [("Ascend910B1", "9.2"), ("Ascend950", "9.1"), ("Ascend310P3", "9.2"), ("Ascend910B1", "8.5")] {
        let output = same(checking::many(), |run| run.env("ASCENDCL_SIM_SOC", soc).env("ASCENDCL_SIM_CANN", cann));
        assert_eq!(output.events("drift").len(), 0, "{soc} {cann}: {:?}", output.events("drift"));
    }
}
