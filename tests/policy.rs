//! What is done about a finding.

#[path = "support/checking.rs"]
mod checking;
mod support;

use checking::{about, cases, counted, findings, ids, many, rules, text, watched};
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use support::{Build, Output, Run};

/// The lines of a host of which one begins so.
#[track_caller]
fn line<'a>(output: &'a Output, of: &str) -> &'a str {
    let said = output.stdout.lines().find_map(|line| line.strip_prefix(of)?.strip_prefix(": "));
    said.unwrap_or_else(|| panic!("no line {of}: {output:?}"))
}

// ---- enforce ----

/// Of the calls of `hosts/check_calls.c`, those that go to the vendor all the same.
const FORWARDED: [&str; 17] = [
    // What is not an error, whatever the vendor says then.
    "onto itself",
    "overlap",
    "misaligned",
    "host to host",
    "deprecated",
    "one destination twice",
    "rows that wrap",
    "rows by default",
    "both ways",
    "4 GiB, stored as 0",
    // Where the vendor comes to the item only if the memory of those before it is what it should be.
    "empty item",
    "unregistered",
    "one place",
    "null item",
    "null item, on a stream",
    // Where the vendor first has to know the symbol.
    "symbol's offset",
    // Where the indexes must not be read before the vendor has accepted the stream.
    "first index, on a stream",
];

#[test]
fn a_refused_call_never_reaches_the_vendor_and_returns_what_the_vendor_would() {
    let run = |run: Run| run.arg("entered");
    let without = run(Run::new(many()).sim()).run();
    let with = run(watched(many())).env("ACLSHIM_MODE", "enforce").run();
    assert_eq!((with.status, &with.stderr), (without.status, &without.stderr));
    let found = findings(&with);
    // Codes and failIndex are the vendor's; whether the vendor was entered tells the two runs apart.
    let without_count = |line: &str| line.split(", entered").next().unwrap().to_owned();
    let [lines, known] = [&with, &without].map(|output| output.stdout.lines().collect::<Vec<_>>());
    assert_eq!(lines.len(), known.len());
    let mut refused = 0;
    for (line, known) in lines.iter().zip(&known).skip(1) {
        assert_eq!(without_count(line), without_count(known));
        assert!(known.ends_with("entered 1"), "{known}");
        let name = line.split(':').next().unwrap();
        let goes = FORWARDED.contains(&name);
        assert!(line.ends_with(if goes { "entered 1" } else { "entered 0" }), "{line}");
        refused += u64::from(!goes);
    }
    let is_refused = |finding: &&Value| finding["refused"] == true;
    // One call breaks two rules.
    assert_eq!(found.iter().filter(is_refused).count() as u64, refused + 1);
    for finding in &found {
        const LEFT: [&str; 5] =
            ["BATCH-ZERO-SIZE", "BATCH-NULL-ITEM", "BATCH-UNREGISTERED", "BATCH-DIRECTION", "SYMBOL-OVERFLOW"];
        let of_items = LEFT.contains(&text(&finding["rule"]));
        let is_on_stream = finding["function"] == "aclrtMemcpyBatchAsync" && finding["rule"] == "BATCH-INDEX-FIRST";
        let is_refused = finding["severity"] == "error" && !of_items && !is_on_stream;
        assert_eq!(finding["refused"], is_refused, "{finding}");
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

    // What hangs on where memory is, and would be left to the vendor.
    let output = watched(many()).arg("entered").env("ACLSHIM_RULES", "BATCH-DIRECTION=refuse").run();
    assert_eq!(line(&output, "one place"), "107000, failIndex 0, entered 0");
    assert_eq!(line(&output, "unregistered"), "107000, failIndex 0, entered 1");

    // What the vendor takes and the documents do not: the code that they name, and the item.
    assert_eq!(line(&output, "both ways"), "107000, failIndex 1, entered 0");
    let output =
        watched(many()).arg("entered").env("ACLSHIM_RULES", "ASYNC-HOST-TO-HOST=refuse,PITCH-KIND=refuse").run();
    assert_eq!(line(&output, "host to host"), "207000, failIndex 777, entered 0");
    assert_eq!(line(&output, "rows by default"), "100000, failIndex 777, entered 0");
    let unlisted = cases("symbol 1 words 1").env("ENTERED", "1").env("ACLSHIM_SOC", "Ascend910A");
    let output = unlisted.env("ACLSHIM_RULES", "UNSUPPORTED-PRODUCT=refuse,WORDS-IGNORED=refuse").run().ok();
    assert_eq!(line(&output, "symbol"), "207000, 0 good, entered 0");
    assert_eq!(line(&output, "words"), "207000, 0 good, entered 0");

    // An error that is only to be reported is not refused, though others are.
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

#[test]
fn a_list_that_is_too_long_is_named_and_no_half_of_it_holds() {
    let long = format!("OVERLAP=refuse,{}", "DEST-MAX=log,".repeat(200));
    let output = cases("overlap 1").env("ACLSHIM_RULES", long).run().ok();
    let [said] = &output.events("setting")[..] else { panic!("one line: {:?}", checking::said(&output)) };
    assert_eq!(said["subject"], "ACLSHIM_RULES");
    assert!(text(&said["message"]).contains("too long"), "{said}");
    assert_eq!(line(&output, "overlap"), "0, 1 good");
}

#[test]
fn nonsense_about_what_is_muted_and_about_other_products_is_named_once() {
    for (name, value) in [
        ("ACLSHIM_MUTE", "DEST-MAX@here,NO-SUCH-RULE@there"),
        ("ACLSHIM_BASELINE", "/no/such/file"),
        ("ACLSHIM_AS", "Ascend950,Kirin"),
    ] {
        let output = cases("room 1 wait 1 good 1").env(name, value).run().ok();
        let said = about(&output, "warning", "setting");
        assert_eq!(said.len(), 1, "{name}: {:?}", checking::said(&output));
        assert!(text(&said[0]["message"]).contains(name), "{}", said[0]);
        assert_eq!(rules(&output), ["DEST-MAX"], "{name}");
    }
}

#[test]
fn no_call_is_forwarded_unjudged_by_threads_whose_first_calls_race_with_the_start_of_the_shim() {
    let library = Build::new("hosts/policy_racing_lib.c").link("ascendcl").arg("-pthread").library("policy_racing");
    let folder = library.parent().unwrap();
    let program = Build::new("hosts/policy_racing.c").arg(format!("-L{}", folder.display())).arg("-rdynamic");
    let program = program.link("policy_racing").link("ascendcl").program();
    for _ in 0..10 {
        let output = Run::new(&program).sim().shim().library_path(folder).env("ACLSHIM_MODE", "enforce").run().ok();
        assert_eq!(output.stdout, "4000 bad calls, 4000 refused; 0 have entered the vendor\n");
    }
}
