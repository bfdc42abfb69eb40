//! What breaks a rule is found, named, counted and reported, and the program does not notice.

#[path = "support/checking.rs"]
mod checking;
mod support;

use checking::{cases, counted, findings, ids, many, one, printed, rules, same, text, watched, words};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use support::{Run, aclshim, host};

/// Function, rule, severity, argument, index, and the code that the vendor returns for it.
type Broken = (&'static str, &'static str, &'static str, &'static str, Option<u64>, Option<i64>);

/// What each call of `hosts/check_calls.c` breaks.
const BROKEN: &[Broken] = &[
    ("aclrtMemcpy", "NULL-POINTER", "error", "dst", None, Some(100_000)),
    ("aclrtMemcpy", "DEST-MAX", "error", "destMax", None, Some(107_000)),
    ("aclrtMemcpy", "KIND-RANGE", "error", "kind", None, Some(100_000)),
    ("aclrtMemcpy", "SAME-ADDRESS", "perf", "src", None, None),
    ("aclrtMemcpy", "OVERLAP", "violation", "src", None, None),
    ("aclrtMemcpyAsync", "KIND-FUNCTION", "error", "kind", None, Some(100_000)),
    ("aclrtMemcpyAsync", "ALIGN-64", "violation", "dst", None, None),
    // What it comes to depends on where the memory is, which is not known: what the documents forbid is.
    ("aclrtMemcpyAsync", "ASYNC-HOST-TO-HOST", "violation", "kind", None, None),
    ("aclrtMemcpyAsyncWithCondition", "DEPRECATED", "portability", "dst", None, None),
    ("aclrtMemcpy2d", "PITCH-WIDTH", "error", "spitch", None, Some(100_000)),
    ("aclrtMemcpy2d", "PITCH-LIMIT", "error", "width", None, Some(107_000)),
    ("aclrtMemcpy2d", "PITCH-LIMIT", "error", "height", None, Some(107_000)),
    ("aclrtMemcpy2d", "PITCH-KIND", "error", "kind", None, Some(207_000)),
    ("aclrtMemcpy2d", "RANGE-OVERFLOW", "violation", "dst", None, None),
    ("aclrtMemcpy2d", "PITCH-KIND", "violation", "kind", None, None),
    ("aclrtMemcpyBatch", "NULL-POINTER", "error", "srcs", None, Some(100_000)),
    ("aclrtMemcpyBatch", "NULL-POINTER", "error", "failIndex", None, Some(100_000)),
    ("aclrtMemcpyBatch", "BATCH-EMPTY", "error", "numBatches", None, Some(100_000)),
    // More attributes than items, too.
    ("aclrtMemcpyBatch", "BATCH-ATTRS", "error", "numAttrs", None, Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-DEST-MAX", "error", "destMaxs", Some(1), Some(100_000)),
    ("aclrtMemcpyBatch", "BATCH-RESERVED", "error", "attrs", Some(1), Some(100_000)),
    ("aclrtMemcpyBatch", "BATCH-ATTRS", "error", "numAttrs", None, Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-ATTRS", "error", "numAttrs", None, Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-LIMIT", "error", "numBatches", None, Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-INDEX-FIRST", "error", "attrsIndexes", Some(0), Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-INDEX-ORDER", "error", "attrsIndexes", Some(2), Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-INDEX-RANGE", "error", "attrsIndexes", Some(1), Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-ZERO-SIZE", "error", "sizes", Some(2), Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-UNREGISTERED", "error", "attrs", Some(0), Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-DIRECTION", "error", "attrs", Some(0), Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-UNORDERED", "violation", "dsts", Some(1), None),
    ("aclrtMemcpyBatch", "BATCH-NULL-ITEM", "error", "dsts", Some(1), Some(107_000)),
    ("aclrtMemcpyBatch", "BATCH-DIRECTION", "violation", "attrs", Some(1), None),
    ("aclrtMemcpyBatchAsync", "BATCH-NULL-ITEM", "error", "srcs", Some(2), Some(107_000)),
    ("aclrtMemcpyBatchAsync", "BATCH-INDEX-FIRST", "error", "attrsIndexes", Some(0), Some(107_000)),
    ("aclrtMemcpyBatchV2", "BATCH-DEST-MAX", "error", "destMaxs", Some(2), Some(100_000)),
    ("aclrtMemcpyBatchAsync", "BATCH-DEST-MAX", "error", "destMaxs", Some(2), Some(100_000)),
    ("aclrtMemcpyBatchAsyncV2", "BATCH-DEST-MAX", "error", "destMaxs", Some(2), Some(100_000)),
    ("aclrtMemcpyAsyncWithOffset", "SIZE-LIMIT", "error", "count", None, Some(107_000)),
    ("aclrtMemcpyAsyncWithOffset", "OFFSET-LIMIT", "error", "dstDataOffset", None, Some(107_000)),
    ("aclrtMemcpyAsyncWithOffset", "OFFSET-ROOM", "error", "dstDataOffset", None, Some(107_000)),
    ("aclrtSetMemcpyDesc", "DESC-ALIGN", "error", "desc", None, Some(107_000)),
    ("aclrtSetMemcpyDesc", "DESC-CONFIG", "error", "config", None, Some(100_000)),
    ("aclrtSetMemcpyDesc", "ZERO-SIZE", "error", "count", None, Some(100_000)),
    ("aclrtSetMemcpyDesc", "SIZE-TRUNCATED", "violation", "count", None, None),
    // Of this much memory all lies within reach of everything.
    ("aclrtSetMemcpyDesc", "OVERLAP", "violation", "srcAddr", None, None),
    ("aclrtMemcpyAsyncWithDesc", "DESC-STREAM-NULL", "error", "stream", None, Some(100_000)),
    ("aclrtMemcpyFromSymbol", "NULL-POINTER", "error", "symbol", None, Some(100_000)),
    ("aclrtMemcpyFromSymbol", "DEST-MAX", "error", "dstMax", None, Some(100_000)),
    ("aclrtMemcpyFromSymbol", "SYMBOL-OVERFLOW", "error", "offset", None, Some(500_001)),
    ("aclrtMemcpyToSymbol", "KIND-FUNCTION", "error", "kind", None, Some(100_000)),
    ("aclrtMemset", "DEST-MAX", "error", "maxCount", None, Some(107_000)),
    ("aclrtMemsetD32", "WORDS-ALIGN", "error", "ptr", None, Some(100_000)),
];

/// A finding as the list above has it.
fn as_listed(finding: &Value) -> Value {
    json!(["function", "rule", "severity", "argument", "index", "code"].map(|key| finding[key].clone()))
}

#[test]
fn one_bad_call_of_each_kind_is_named_in_the_log_and_by_the_reader_and_the_program_does_not_notice() {
    let program = many();
    let name = program.file_name().unwrap().to_str().unwrap().to_owned();
    let listed: Vec<Value> = BROKEN.iter().map(|row| json!(row)).collect();
    for drain in ["auto", "outside", "off"] {
        let output = same(program.clone(), |run| run.env("ACLSHIM_DRAIN", drain));
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        if drain == "outside" {
            let collected = aclshim().args(["collect", "--once"]).arg(&output.scratch).status();
            assert!(collected.is_ok_and(|status| status.success()));
        }
        let found = findings(&output);
        assert_eq!(found.iter().map(as_listed).collect::<Vec<_>>(), listed, "{drain}");
        for finding in &found {
            let message = text(&finding["message"]);
            let [rule, severity, function, fix] =
                ["rule", "severity", "function", "fix"].map(|key| text(&finding[key]));
            assert!(
                message.starts_with(&format!("{severity} {rule}: {function}(")) && message.contains(fix),
                "{message}"
            );
            assert!(!text(&finding["source"]).is_empty() && finding["refused"] == false, "{finding}");
            let [products, versions] = ["products", "versions"].map(|key| text(&finding[key]));
            assert!(message.contains(&format!("; {products}; {versions}]. ")), "{finding}");
            // What it says of the vendor is what the vendor did.
            let returned = finding["returned"].as_i64().unwrap();
            let is_said = match finding["code"].as_i64() {
                Some(code) => message.contains(&format!("The vendor returns {code} ")),
                None if returned == 0 => message.contains("he vendor accepted this call"),
                None => message.contains(&format!("he vendor returned {returned} ")),
            };
            assert!(is_said, "{finding}");
            if drain == "auto" {
                // Where a program that is gone had its modules is unknown, unless its drain has written that.
                assert_eq!(finding["module"], *name, "{finding}");
                assert!(finding["offset"].as_u64().is_some_and(|offset| offset > 0), "{finding}");
            }
            if finding["severity"] == "error" && finding["rule"] != "BATCH-ATTRS" {
                assert_eq!(finding["code"], finding["returned"], "{finding}");
            }
        }
        let mut counts = BTreeMap::new();
        BROKEN.iter().for_each(|row| *counts.entry(row.1).or_insert(0) += 1);
        assert_eq!(output.stat().0["findings"], json!(counts), "{drain}");
        if drain != "off" {
            let told = output.events("finding");
            assert_eq!(told.iter().map(as_listed).collect::<Vec<_>>(), listed);
            for (told, found) in told.iter().zip(&found) {
                for key in [
                    "message", "module", "offset", "returned", "fix", "products", "versions", "number", "thread",
                    "site",
                ] {
                    assert_eq!(told[key], found[key], "{key}");
                }
            }
        }
    }
}

#[test]
fn a_batch_tells_what_stood_in_its_arrays() {
    let found = findings(&cases("batch_room 1").run().ok());
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert!(text(&finding["message"]).contains("sizes[2] = 256, destMaxs[2] = 1"), "{finding}");
}

#[test]
fn what_is_found_before_a_batch_does_not_hide_what_only_the_vendors_answer_lets_be_read() {
    // On a stream the indexes must not be read before the vendor has read them, and older releases have a word about every such call.
    let run = |run: Run| words(run, "good 1 late_index 3").env("ASCENDCL_SIM_CANN", "8.5");
    let output = same(one(), run).ok();
    let counts = ["EXPERIMENTAL", "BATCH-INDEX-FIRST"].map(|rule| counted(&output, rule));
    assert_eq!(counts, [3, 3], "{:?}", checking::said(&output));
}

#[test]
fn a_destination_written_twice_is_found_in_every_release_and_with_every_name_of_the_host() {
    for (calls, cann) in [("twice", "9.2"), ("twice", "8.5"), ("twice_numa", "9.2"), ("twice_both_ways", "9.2")] {
        let run = |run: Run| words(run, &format!("good 1 {calls} 2")).env("ASCENDCL_SIM_CANN", cann);
        let output = same(one(), run).ok();
        assert_eq!(counted(&output, "BATCH-UNORDERED"), 2, "{calls} {cann}: {:?}", checking::said(&output));
    }
}

#[test]
fn findings_are_printed_for_people_with_their_places_and_sums() {
    let output = cases("room 25 overlap 1").run().ok();
    let text = printed(&output, &[]);
    let name = one().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(text.matches("error DEST-MAX: aclrtMemcpy(dst = 0x").count(), 10, "{text}");
    let places =
        text.lines().filter(|line| line.starts_with("    call from call_") && line.contains(&format!("{name}+0x")));
    assert_eq!(places.count(), 11, "{text}");
    assert_eq!(text.matches("returned 107000").count(), 10, "{text}");
    assert!(text.contains("25 x DEST-MAX (error)") && text.contains("1 x OVERLAP (violation)"), "{text}");
    assert_eq!(printed(&cases("good 3").run().ok(), &[]), "No rule is broken.\n");
}

#[test]
fn nothing_is_said_of_calls_with_nothing_wrong() {
    let output = same(one(), |run| words(run, "good 500 from_host 500 batch 50 offset 50"));
    assert_eq!(rules(&output.ok()), [""; 0]);
}

// ---- How much is reported ----

#[test]
fn equal_findings_of_a_call_site_are_told_ten_times_and_counted_to_the_last() {
    for calls in ["room", "batch_room"] {
        let output = same(one(), |run| words(run, &format!("{calls} 25"))).ok();
        let found = findings(&output);
        let told = output.events("finding");
        assert_eq!((found.len(), told.len()), (10, 10), "{calls}");
        let is_last =
            |finding: &Value| text(&finding["message"]).contains("The last that is told of this rule and call site");
        for all in [&found, &told] {
            assert!(is_last(&all[9]) && !all[..9].iter().any(is_last), "{all:?}");
        }
        let rule = text(&found[0]["rule"]);
        assert_eq!(counted(&output, rule), 25);
        let [sums] = &output.events("findings")[..] else { panic!("one line: {:?}", checking::said(&output)) };
        assert_eq!(
            ["rule", "found", "told", "known"].map(|key| sums[key].clone()),
            [json!(rule), json!(25), json!(10), json!(0)]
        );
    }
    // Another call site is another matter.
    let output = cases("room 25 room_too 25").run().ok();
    assert_eq!((findings(&output).len(), counted(&output, "DEST-MAX")), (20, 50));
}

#[test]
fn what_holds_for_a_call_site_and_not_for_a_call_is_told_once() {
    let output = cases("align 25 host_align 25 itself 25 deprecated 25").run().ok();
    assert_eq!(rules(&output), ["ALIGN-64", "ALIGN-64", "SAME-ADDRESS", "DEPRECATED"]);
    let counts = ["ALIGN-64", "SAME-ADDRESS", "DEPRECATED"].map(|rule| counted(&output, rule));
    assert_eq!(counts, [50, 25, 25]);
    let severities: Vec<Value> = findings(&output).iter().map(|finding| finding["severity"].clone()).collect();
    assert_eq!(json!(severities), json!(["violation", "portability", "perf", "portability"]));
    assert!(findings(&output).iter().all(|finding| text(&finding["message"]).contains("Told once for this call site")));
}

// ---- What is known already ----

#[test]
fn a_rule_a_module_or_a_call_site_can_be_muted_and_is_counted_all_the_same() {
    let run = |mute: &str| cases("room 3 room_too 3 overlap 3").env("ACLSHIM_MUTE", mute).run().ok();
    let all = findings(&run(""));
    assert_eq!(all.len(), 9);
    let (module, offset) = (text(&all[0]["module"]), all[0]["offset"].as_u64().unwrap());
    let site = format!("DEST-MAX@{module}+{offset:#x}");
    let by_module = format!("DEST-MAX@{module}");
    let others = "DEST-MAX@libc.so.6,OVERLAP@other+0x10".to_owned();
    for (mute, left) in [
        ("DEST-MAX", &["OVERLAP"; 3][..]),
        (&by_module, &["OVERLAP"; 3]),
        (&format!("*@{module}"), &[]),
        (&site, &["DEST-MAX", "DEST-MAX", "DEST-MAX", "OVERLAP", "OVERLAP", "OVERLAP"]),
        (
            &others,
            &["DEST-MAX", "DEST-MAX", "DEST-MAX", "DEST-MAX", "DEST-MAX", "DEST-MAX", "OVERLAP", "OVERLAP", "OVERLAP"],
        ),
    ] {
        let output = run(mute);
        assert_eq!(rules(&output), left, "{mute}");
        assert_eq!(ids(&output.events("finding")), left, "{mute}");
        assert_eq!((counted(&output, "DEST-MAX"), counted(&output, "OVERLAP")), (6, 3), "{mute}");
    }
}

#[test]
fn a_baseline_of_one_run_silences_the_next_but_not_a_new_call() {
    let first = cases("room 3 batch_room 3 align 3").run().ok();
    let baseline = printed(&first, &["--baseline"]);
    assert_eq!(baseline.lines().count(), 3, "{baseline}");
    let path = first.scratch.join("baseline.txt");
    fs::write(&path, baseline).unwrap();
    let run = |calls| cases(calls).env("ACLSHIM_BASELINE", &path).run().ok();
    let again = run("room 3 batch_room 3 align 3");
    // The loader has put the program elsewhere, and still it is the same place.
    let place = |output| text(&output_site(output)).to_owned();
    fn output_site(output: &support::Output) -> Value {
        json!(output.events("failed_call")[0]["site"])
    }
    assert_eq!((rules(&again), ids(&again.events("finding"))), (vec![], vec![]));
    assert_eq!(counted(&again, "BATCH-DEST-MAX"), 3);
    assert_ne!(place(&again), place(&first), "the addresses are others");
    let more = run("room 3 batch_room 3 align 3 room_too 1 null 1");
    assert_eq!(rules(&more), ["DEST-MAX", "NULL-POINTER"]);
    assert_eq!(ids(&more.events("finding")), ["DEST-MAX", "NULL-POINTER"]);
}

// ---- Stack ----

#[test]
fn a_finding_carries_the_return_addresses_of_the_outer_functions_if_that_is_asked_for() {
    let program = host("hosts/check_stack.c");
    let name = program.file_name().unwrap().to_str().unwrap().to_owned();
    let without = same(program.clone(), |run| run).ok();
    assert!(findings(&without).iter().all(|finding| finding["stack"] == json!([])), "not asked for");
    // The program's own words differ in nothing but where it lies.
    let output = same(program, |run| run.env("ACLSHIM_STACK", "findings")).ok();
    let returns = |of: &str| {
        let line = output.stdout.lines().find_map(|line| line.strip_prefix(of)).expect("where it was called from");
        format!("{name}+0x{}", line.trim())
    };
    let outer = [returns("inner"), returns("middle"), returns("outer")];
    let found = findings(&output);
    assert_eq!(ids(&found), ["BATCH-DEST-MAX", "DEST-MAX"]);
    let stack = |finding: &Value| -> Vec<String> {
        finding["stack"].as_array().unwrap().iter().map(|frame| text(frame).to_owned()).collect()
    };
    assert_eq!(stack(&found[0])[..3], outer);
    assert_eq!(stack(&found[1])[..1], outer[2..]);
    let told = output.events("finding");
    assert!(text(&told[0]["stack"]).starts_with(&outer.join(" ")), "{}", told[0]);
}

// ---- Standard error ----

#[test]
fn findings_are_written_to_standard_error_only_if_that_is_asked_for() {
    let calls = |run: Run| words(run, "room 2 context 1 align 1 deprecated 1 good 10");
    let without = same(one(), calls).ok();
    assert_eq!(without.stderr, "");
    let [some, all] = ["findings", "all"].map(|what| calls(watched(one())).env("ACLSHIM_STDERR", what).run().ok());
    let lines: Vec<&str> = some.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", some.stderr);
    for (line, rule) in lines.iter().zip(["error DEST-MAX", "error DEST-MAX", "violation ALIGN-64"]) {
        assert!(line.starts_with(&format!("aclshim: {rule}: aclrtMemcpy")), "{line}");
    }
    assert!(all.stderr.lines().count() == 6 && all.stderr.contains("107002"), "{}", all.stderr);
    for output in [some, all] {
        assert_eq!((&output.stdout, output.status), (&without.stdout, without.status));
    }
}

#[test]
fn a_standard_error_that_is_full_and_that_nobody_reads_holds_nothing_up() {
    let program = host("hosts/check_pipe.c");
    for what in ["findings", "all"] {
        let output = same(program.clone(), |run| run.env("ACLSHIM_STDERR", what)).ok();
        assert_eq!(output.stdout, "called\n");
        // Nor is the drain held up, which would leave the log without its end.
        assert_eq!((output.events("finding").len(), output.events("stopped").len()), (20, 1), "{what}");
        assert_eq!((counted(&output, "DEST-MAX"), counted(&output, "NULL-POINTER")), (20, 20));
    }
}
