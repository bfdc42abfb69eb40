//! What is done about a finding, and for which product, form and release a call is judged.

#[path = "support/checking.rs"]
mod checking;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use checking::{about, cases, counted, findings, ids, many, one, rules, same, text, watched, words};
use recording::ordered::{Ordered, steps};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use support::{Build, Output, Run, host};

/// The lines of a host of which one begins so.
#[track_caller]
fn line<'a>(output: &'a Output, of: &str) -> &'a str {
    let said = output.stdout.lines().find_map(|line| line.strip_prefix(of)?.strip_prefix(": "));
    said.unwrap_or_else(|| panic!("no line {of}: {output:?}"))
}

// ---- enforce ----

#[test]
fn a_refused_call_never_reaches_the_vendor_and_returns_what_the_vendor_would() {
    let run = |run: Run| run.arg("entered");
    let without = run(Run::new(many()).sim()).run();
    let with = run(watched(many())).env("ACLSHIM_MODE", "enforce").run();
    assert_eq!((with.status, &with.stderr), (without.status, &without.stderr));
    let found = findings(&with);
    // Codes and failIndex are the vendor's; who was entered tells the two runs apart.
    let without_count = |line: &str| line.split(", entered").next().unwrap().to_owned();
    let [lines, known] = [&with, &without].map(|output| output.stdout.lines().collect::<Vec<_>>());
    assert_eq!(lines.len(), known.len());
    let mut refused = 0;
    for (line, known) in lines.iter().zip(&known).skip(1) {
        assert_eq!(without_count(line), without_count(known));
        assert!(known.ends_with("entered 1"), "{known}");
        let name = line.split(':').next().unwrap();
        // What is not an error goes to the vendor, whatever it says then; and so do indexes on a stream, which nobody
        // may read before the vendor has found the stream to be one.
        let goes = ["onto itself", "overlap", "misaligned", "host to host", "deprecated", "one destination twice"];
        let goes = goes.contains(&name) || name == "first index, on a stream";
        assert!(line.ends_with(if goes { "entered 1" } else { "entered 0" }), "{line}");
        refused += u64::from(!goes);
    }
    let is_refused = |finding: &&Value| finding["refused"] == true;
    // One call breaks two rules.
    assert_eq!(found.iter().filter(is_refused).count() as u64, refused + 1);
    let is_afterwards = |finding: &Value| {
        (text(&finding["function"]), text(&finding["rule"])) == ("aclrtMemcpyBatchAsync", "BATCH-INDEX-FIRST")
    };
    for finding in &found {
        let is_error = finding["severity"] == "error" && !is_afterwards(finding);
        assert_eq!(finding["refused"], is_error, "{finding}");
    }
    for finding in with.events("finding") {
        let action = if finding["severity"] == "error" { "refuse" } else { "warn" };
        let action = if ["perf", "portability"].contains(&text(&finding["severity"])) { "log" } else { action };
        assert_eq!(finding["action"], action, "{finding}");
    }
}

#[test]
fn without_records_a_call_is_refused_all_the_same_and_no_file_is_made() {
    let run = cases("room 3 batch_room 3 good 3").env("ENTERED", "1");
    let output = run.env("ACLSHIM_MODE", "enforce").env("ACLSHIM_RECORD", "off").run().ok();
    assert_eq!(line(&output, "room"), "107000, 0 good, entered 0");
    assert_eq!(line(&output, "batch_room"), "100000, 0 good, entered 0");
    assert_eq!(line(&output, "good"), "0, 3 good, entered 3");
    let left: Vec<_> = fs::read_dir(&output.scratch).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(left, [] as [PathBuf; 0]);
}

#[test]
fn a_mode_of_off_says_nothing_and_refuses_nothing() {
    let output = cases("room 3 good 3").env("ENTERED", "1").env("ACLSHIM_MODE", "off").run().ok();
    assert_eq!(line(&output, "room"), "107000, 0 good, entered 3");
    assert!(!output.scratch.join("out").exists());
}

// ---- ACLSHIM_RULES ----

#[test]
fn a_rule_can_be_silenced_refused_or_left_alone_one_by_one() {
    let run = |rules: &str, mode: &str| {
        let run = cases("room 3 overlap 3 align 3 good 3").env("ENTERED", "1");
        run.env("ACLSHIM_RULES", rules).env("ACLSHIM_MODE", mode).run().ok()
    };
    let output = run("DEST-MAX=off,ALIGN-64=off", "observe");
    assert_eq!(
        (rules(&output), ids(&output.events("finding"))),
        (vec!["OVERLAP".to_owned(); 3], vec!["OVERLAP".to_owned(); 3])
    );
    assert_eq!((counted(&output, "DEST-MAX"), counted(&output, "ALIGN-64")), (0, 0));

    // What the vendor takes and a rule is to refuse has a code of its own.
    let output = run("OVERLAP=refuse", "observe");
    assert_eq!(line(&output, "overlap"), "100000, 0 good, entered 0");
    assert_eq!(line(&output, "room"), "107000, 0 good, entered 3");
    assert_eq!(line(&output, "align"), "0, 3 good, entered 3");
    let found = findings(&output);
    assert!(found.iter().all(|finding| (finding["refused"] == true) == (finding["rule"] == "OVERLAP")), "{found:?}");

    // An error that is only to be told of is not refused, though others are.
    for action in ["log", "warn", "off"] {
        let output = run(&format!("DEST-MAX={action}"), "enforce");
        assert_eq!(line(&output, "room"), "107000, 0 good, entered 3", "{action}");
        assert_eq!(counted(&output, "DEST-MAX"), if action == "off" { 0 } else { 3 });
    }
}

#[test]
fn a_rule_can_end_the_program_and_says_which_it_was() {
    let output = cases("good 3 overlap 1 good 3").env("ACLSHIM_RULES", "OVERLAP=abort").run();
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    assert_eq!(output.stdout, "good: 0, 3 good\n");
    let [said] = &output.stderr.lines().collect::<Vec<_>>()[..] else { panic!("one line: {output:?}") };
    assert!(said.starts_with("aclshim: ") && said.contains("OVERLAP") && said.contains("ACLSHIM_RULES"), "{said}");
    let [aborted] = &output.events("aborted")[..] else { panic!("one line: {:?}", checking::said(&output)) };
    assert_eq!(aborted["subject"], "OVERLAP");
    assert_eq!(rules(&output), ["OVERLAP"], "the call that did it is recorded");
}

#[test]
fn nonsense_among_the_rules_is_named_once_and_the_rest_holds() {
    let output = cases("overlap 1").env("ACLSHIM_RULES", "NO-SUCH-RULE=off,OVERLAP=refuse").run().ok();
    let [said] = &output.events("setting")[..] else { panic!("one line: {:?}", checking::said(&output)) };
    assert_eq!(said["subject"], "ACLSHIM_RULES");
    assert!(text(&said["message"]).contains("NO-SUCH-RULE=off"), "{said}");
    assert_eq!(line(&output, "overlap"), "100000, 0 good");
    let output = cases("overlap 1").env("ACLSHIM_RULES", "OVERLAP=sometimes").run().ok();
    assert_eq!(output.events("setting").len(), 1);
    assert_eq!(line(&output, "overlap"), "0, 1 good");
    assert_eq!(cases("overlap 1").env("ACLSHIM_RULES", "OVERLAP=log").run().ok().events("setting").len(), 0);
}

// ---- Product, form and release ----

#[test]
fn a_run_is_judged_for_other_products_too() {
    let run = |cases: &str| same(one(), |run| words(run, cases).env("ACLSHIM_AS", "Ascend310P3,Ascend950")).ok();
    for (calls, function) in [("good 1 batch 1", "aclrtMemcpyBatch"), ("good 1 offset 1", "aclrtMemcpyAsyncWithOffset")]
    {
        let output = run(calls);
        let found = findings(&output);
        let [finding] = &found[..] else {
            panic!("{calls}: one finding, {found:?}, log {:?}", checking::said(&output))
        };
        assert_eq!((text(&finding["rule"]), text(&finding["function"])), ("UNSUPPORTED-PRODUCT", function));
        assert_eq!((text(&finding["on"]), text(&finding["severity"])), ("Ascend310P3", "portability"));
        assert!(text(&finding["message"]).starts_with("would be refused on Ascend310P3: "), "{finding}");
        let told = output.events("finding");
        assert_eq!((told.len(), &told[0]["on"]), (1, &json!("Ascend310P3")));
    }
    assert_eq!(rules(&run("good 20 from_host 20")), [""; 0]);
}

#[test]
fn what_the_settings_say_of_product_form_and_release_comes_before_what_the_library_says() {
    // The library: Ascend910B1, ACL_HOST, 9.2.0.
    let rules = |calls: &str, name: &str, value: &str| {
        let output = same(one(), |run| words(run, calls).env(name, value)).ok();
        rules(&output)
    };
    assert_eq!(rules("good 1 offset 1", "ACLSHIM_SOC", "Ascend310P3"), ["UNSUPPORTED-PRODUCT"]);
    assert_eq!(rules("good 1 offset 1", "ACLSHIM_SOC", "Ascend910B4"), [""; 0]);
    assert_eq!(
        rules("offset 1", "ACLSHIM_SOC", "Ascend310P3"),
        ["UNSUPPORTED-PRODUCT"],
        "known from the first call on"
    );
    assert_eq!(rules("from_host 1", "ACLSHIM_FORM", "rc"), ["KIND-ROOT-COMPLEX"]);
    assert_eq!(rules("from_host 1", "ACLSHIM_FORM", "ep"), [""; 0]);
    assert_eq!(rules("good 1 experimental 1", "ACLSHIM_CANN", "8.5.0"), ["EXPERIMENTAL"]);
    assert_eq!(rules("good 1 experimental 1", "ACLSHIM_CANN", "9.1.0"), [""; 0]);
}

#[test]
fn an_unknown_product_is_said_once_and_what_depends_on_the_product_is_not_judged() {
    let output =
        cases("good 5 offset 5 batch 5 room 1").env("ACLSHIM_SOC", "Kirin").env("ACLSHIM_MODE", "enforce").run().ok();
    let said = about(&output, "warning", "product");
    assert_eq!(said.len(), 1, "{:?}", checking::said(&output));
    assert!(text(&said[0]["message"]).contains("Kirin"), "{}", said[0]);
    assert_eq!(rules(&output), ["DEST-MAX"]);
    assert_eq!(line(&output, "batch"), "0, 5 good");
    assert_eq!(about(&cases("good 5").run().ok(), "warning", "product").len(), 0);
}

#[test]
fn an_unknown_product_is_said_once_however_often_the_records_are_drained() {
    let run = |run: Run, pipe: &Path| run.arg(pipe).env("ACLSHIM_SOC", "Kirin");
    let mut host = Ordered::new(run, steps());
    for _ in 0..3 {
        host.order("calls 10");
        host.until_drained();
    }
    let output = host.end();
    assert_eq!(about(&output, "warning", "product").len(), 1, "{:?}", checking::said(&output));
}

#[test]
fn the_library_is_asked_once_and_not_before_it_has_copied_something() {
    let vendor = Build::new("hosts/check_vendor.c").library("ascendcl");
    let folder = vendor.parent().unwrap();
    let program = host("hosts/check_asked.c");
    let run = || Run::new(&program).library_path(folder).shim();
    let times = |n: u32| {
        let lines = ["nothing", "a failure", "copies of nothing", "a batch of nothing", "copies of threads"];
        lines
            .iter()
            .map(|line| format!("{line}: {0} {0} {0}\n", if line.ends_with("threads") { n } else { 0 }))
            .collect::<String>()
    };
    for drain in ["auto", "outside", "off"] {
        assert_eq!(run().env("ACLSHIM_DRAIN", drain).run().ok().stdout, times(1), "{drain}");
    }
    assert_eq!(run().env("ACLSHIM_MODE", "enforce").run().ok().stdout, times(1));
    assert_eq!(run().env("ACLSHIM_MODE", "off").run().ok().stdout, times(0));
}

#[test]
fn whoever_reads_the_ring_later_knows_the_product_and_the_release() {
    for drain in ["auto", "outside", "off"] {
        let run = |soc: &str, cann: &str| {
            let run = cases("good 1 offset 1 zero 1").env("ACLSHIM_DRAIN", drain);
            run.env("ASCENDCL_SIM_SOC", soc).env("ASCENDCL_SIM_CANN", cann).run().ok()
        };
        let errors = |output: Output| -> Vec<String> {
            let found = findings(&output);
            let errors = ids(&found.into_iter().filter(|finding| finding["severity"] == "error").collect::<Vec<_>>());
            assert!(errors.iter().all(|rule| counted(&output, rule) == 1), "{drain}");
            errors
        };
        assert_eq!(errors(run("Ascend310P3", "9.2")), ["UNSUPPORTED-PRODUCT"], "{drain}");
        assert_eq!(errors(run("Ascend910B1", "8.5")), ["ZERO-SIZE"], "{drain}");
        assert_eq!(errors(run("Ascend910B1", "9.2")), [""; 0], "{drain}");
    }
}
