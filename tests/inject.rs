//! Faults that are put into calls on purpose reach the program, are in the record, and come the same way every time.

#[path = "support/checking.rs"]
mod checking;
mod support;

use checking::{watched, words};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::OnceLock;
use support::{Build, Output, Run, aclshim, host};

fn program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| host("hosts/inject_calls.c")).clone()
}

/// A run of `hosts/inject_calls.c`.
fn calls(injections: &str, cases: &str) -> Run {
    words(watched(program()), cases).env("ACLSHIM_INJECT", injections)
}

/// What it says, a line each.
#[track_caller]
fn answers(injections: &str, cases: &str) -> Vec<String> {
    lines(&calls(injections, cases).run().ok())
}

fn lines(output: &Output) -> Vec<String> {
    output.stdout.lines().map(str::to_owned).collect()
}

/// What `aclshim log --json` prints of a run.
#[track_caller]
fn logged(output: &Output) -> Vec<Value> {
    let mut command = aclshim();
    command.env("ACLSHIM_RING_DIR", &output.scratch).args(["log", "--json"]).arg(output.scratch.join("out"));
    let printed = command.output().expect("aclshim log");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let lines = String::from_utf8(printed.stdout).expect("text");
    lines.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
}

#[test]
fn a_program_that_is_told_that_batches_are_not_supported_copies_one_by_one() {
    assert_eq!(answers("", "fallback 2"), ["fallback: 0 0"]);
    assert_eq!(answers("aclrtMemcpyBatchAsync return=207000", "fallback 2"), ["fallback: 3 3"]);
    assert_eq!(
        answers("aclrtMemcpyBatch* nth=2 return=ACL_ERROR_RT_FEATURE_NOT_SUPPORT", "fallback 3"),
        ["fallback: 0 3 0"]
    );
}

#[test]
fn a_code_is_returned_instead_of_forwarding_or_after_it() {
    for (injection, entered) in [("nth=2 return=507899", 2), ("nth=2 then_return=507899", 3)] {
        let output = calls(injection, "copy 3").env("ENTERED", "1").run().ok();
        assert_eq!(lines(&output), ["copy: 0 507899 0".to_owned(), format!("entered {entered}")], "{injection}");
    }
    // Success, too: a call that never was.
    let output = calls("aclrtMemcpy return=0", "bad 2").env("ENTERED", "1").run().ok();
    assert_eq!(lines(&output), ["bad: 0 0", "entered 0"]);
    assert_eq!(answers("then_return=0", "bad 1 copy 1"), ["bad: 0", "copy: 0"]);
    // A batch whose arrays were not read.
    assert_eq!(answers("return=0", "arrays 1"), ["arrays: 0"]);
}

#[test]
fn a_call_waits_before_it_is_forwarded_or_before_it_returns_whatever_interrupts_it() {
    let before = answers("nth=1 delay=50ms", "slow 1");
    assert!(before[0].starts_with("slow: [first 0, last ") && before[0].ends_with(", slow] 0"), "{before:?}");
    let after = answers("nth=1 delay_after=50ms", "slow 1");
    assert!(after[0].ends_with(", last 1, slow] 0"), "{after:?}");
    // errno is not changed.
    assert_eq!(answers("delay=1us delay_after=1us", "errno 2"), ["errno: 0 0"]);
    let output = calls("delay=30ms; delay_after=20ms", "copy 1").run().ok();
    let calls = logged(&output);
    let [call] = &calls[..] else { panic!("{calls:?}") };
    assert!(call["duration_ns"].as_u64().is_some_and(|ns| ns >= 50_000_000) && call["injected"] == true, "{call}");
}

#[test]
fn the_failing_index_is_written_where_there_is_a_place_for_it() {
    let injection = "return=107000 fail_index=2";
    assert_eq!(answers(injection, "batch 1 v2 1 copy 1"), ["batch: 107000/2", "v2: 107000", "copy: 107000"]);
    assert_eq!(answers(injection, "placeless 1"), ["placeless: 107000"]);
    assert_eq!(answers("then_return=107000 fail_index=1", "batch 1"), ["batch: 107000/1"]);
    assert_eq!(answers("fail_index=0", "batch 1"), ["batch: 0/0"]);
}

#[test]
fn numbers_say_which_calls_are_struck() {
    for (injection, expected) in [
        ("return=5", "5 5 5 5 5 5"),
        ("nth=3 return=5", "0 0 5 0 0 0"),
        ("every=2 return=5", "0 5 0 5 0 5"),
        ("every=2 times=2 return=5", "0 5 0 5 0 0"),
        ("times=4 return=5", "5 5 5 5 0 0"),
        ("probability=1 times=4 return=5", "5 5 5 5 0 0"),
        ("probability=0 return=5", "0 0 0 0 0 0"),
        // Each counts for itself, and the first that strikes says what is returned.
        ("nth=1 return=5; every=3 return=6; nth=6 return=7", "5 0 6 0 0 6"),
    ] {
        assert_eq!(answers(injection, "copy 6"), [format!("copy: {expected}")], "{injection}");
    }
}

#[test]
fn chance_with_a_seed_comes_the_same_way_every_time() {
    let run = |seed: u32| answers(&format!("probability=0.3 seed={seed} return=5"), "copy 100");
    let [one, again, other] = [run(42), run(42), run(43)];
    assert_eq!(one, again);
    assert_ne!(one, other);
    let hits = one[0].matches(" 5").count();
    assert!((10..60).contains(&hits), "{one:?}");
}

#[test]
fn two_threads_draw_what_one_draws() {
    let injection = "probability=0.1 seed=7 return=5";
    let together = answers(injection, "threads 1");
    let alone = answers(injection, "thousand 1");
    let number = |lines: &[String]| lines[0].rsplit(' ').next().unwrap().parse::<u32>().unwrap();
    assert_eq!(number(&together), number(&alone));
    assert!(number(&alone) > 0);
    assert_eq!(answers("every=10 return=5", "threads 1"), ["threads: 100"]);
}

#[test]
fn only_the_calls_that_a_selector_means_are_struck_and_counted() {
    let cases = "copy 1 back 1 large 1 async 1 default 1 set 1 batch 1 home 1 copy 1";
    let all = ["copy", "back", "large", "async", "default", "set", "batch", "home", "copy"];
    for (selector, struck) in [
        ("aclrtMemcpy", &[0, 1, 2, 8][..]),
        ("aclrtMemcpyAsync,aclrtMemset", &[3, 4, 5]),
        ("aclrtMemcpy*", &[0, 1, 2, 3, 4, 6, 7, 8]),
        ("kind=H2D", &[0, 2, 3, 4, 8]),
        ("kind=DEVICE_TO_HOST", &[1]),
        ("direction=h2d", &[0, 2, 3, 4, 6, 8]),
        ("direction=d2h", &[1, 7]),
        ("size=64", &[0, 1, 3, 4, 5, 8]),
        ("size=4K..", &[2]),
        ("size=768", &[6, 7]),
        ("stream=none aclrtMemcpy* size=..100", &[0, 1, 8]),
        ("stream=default", &[4]),
        ("aclrtMemcpy nth=4", &[8]),
        ("site=no-such-module", &[]),
        ("dst=no-such-name", &[]),
    ] {
        let expected: Vec<String> = all
            .iter()
            .enumerate()
            .map(|(at, name)| format!("{name}: {}", if struck.contains(&at) { 5 } else { 0 }))
            .collect();
        assert_eq!(answers(&format!("{selector} return=5"), cases), expected, "{selector}");
    }
}

#[test]
fn a_call_site_is_named_as_the_log_names_it() {
    let output = calls("", "copy 2 back 1").run().ok();
    let sites: Vec<Value> = logged(&output).into_iter().map(|call| json!([call["module"], call["offset"]])).collect();
    assert_eq!(sites.len(), 3, "{sites:?}");
    let name = program().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(sites[0][0], *name);
    let back = sites[2][1].as_u64().unwrap();
    assert_eq!(answers(&format!("site={name} return=5"), "copy 2 back 1"), ["copy: 5 5", "back: 5"]);
    assert_eq!(
        answers(&format!("site={name}+{back:#x} return=5"), "copy 2 back 1 back 1"),
        ["copy: 0 0", "back: 5", "back: 5"]
    );
}

#[test]
fn records_say_which_calls_were_struck() {
    let output =
        calls("nth=2 return=207000; nth=3 then_return=0", "copy 3 batch 1").env("ACLSHIM_CALLS", "json").run().ok();
    let seen: Vec<Value> =
        logged(&output).iter().map(|call| json!([call["function"], call["code"], call["injected"]])).collect();
    let expected = json!([
        ["aclrtMemcpy", 0, false],
        ["aclrtMemcpy", 207_000, true],
        ["aclrtMemcpy", 0, true],
        ["aclrtMemcpyBatch", 0, false],
    ]);
    assert_eq!(json!(seen), expected);
    let stat = output.stat();
    assert_eq!([stat.total("calls"), stat.total("errors"), stat.total("injected")], [4, 1, 2]);
    // In the JSON log as well; and it is neither taken for the vendor's answer nor for a question to the vendor.
    let failed = output.events("failed_call");
    assert!(failed.len() == 1 && failed[0]["injected"] == true, "{failed:?}");
    assert!(failed[0]["message"].as_str().unwrap().contains("because an injection asked for it"), "{failed:?}");
    assert_eq!(output.events("drift").len(), 0);
    let text = aclshim()
        .env("ACLSHIM_RING_DIR", &output.scratch)
        .arg("log")
        .arg(output.scratch.join("out"))
        .output()
        .expect("aclshim log");
    assert_eq!(String::from_utf8_lossy(&text.stdout).matches(" injected").count(), 2);
}

#[test]
fn a_batch_that_was_forwarded_has_its_arrays_in_the_record() {
    let output = calls("then_return=5", "batch 1").run().ok();
    assert_eq!(logged(&output)[0]["bytes"], 768);
    let output = calls("return=0", "arrays 1").run().ok();
    assert_eq!(logged(&output)[0]["bytes"], 0);
}

#[test]
fn handlers_lookups_and_fork_children_are_struck_like_all_others() {
    assert_eq!(answers("every=2 return=5", "handler 4"), ["handler: 0 5 0 5"]);
    assert_eq!(answers("every=2 return=5", "lookup 4"), ["lookup: 0 5 0 5"]);
    // A child counts anew: its first copy is the first.
    assert_eq!(answers("nth=1 return=5", "copy 2 fork 1 copy 1"), ["copy: 5 0", "fork: 2", "copy: 0"]);
}

#[test]
fn what_the_vendor_does_inside_a_call_is_not_struck() {
    for record in ["audit", "off"] {
        let output = calls("nth=2 return=5", "copy 3")
            .env("ASCENDCL_SIM_FAULT", "reenter@aclrtMemcpy:1")
            .env("ACLSHIM_RECORD", record)
            .run()
            .ok();
        assert_eq!(lines(&output), ["copy: 0 5 0"], "{record}");
    }
}

#[test]
fn every_mode_injects_but_off() {
    for (mode, record, expected) in [
        ("observe", "audit", "copy: 0 5"),
        ("observe", "flight", "copy: 0 5"),
        ("observe", "off", "copy: 0 5"),
        ("enforce", "audit", "copy: 0 5"),
        ("enforce", "off", "copy: 0 5"),
        ("off", "audit", "copy: 0 0"),
    ] {
        let run = calls("nth=2 return=5", "copy 2").env("ACLSHIM_MODE", mode).env("ACLSHIM_RECORD", record);
        assert_eq!(lines(&run.run().ok()), [expected], "{mode} {record}");
    }
    // A call that a rule refuses is not struck, and does not count.
    let output = calls("nth=1 return=5", "bad 1 copy 2").env("ACLSHIM_MODE", "enforce").run().ok();
    assert_eq!(lines(&output), ["bad: 107000", "copy: 5 0"]);
    let flags: Vec<Value> = logged(&output).iter().map(|call| json!([call["refused"], call["injected"]])).collect();
    assert_eq!(json!(flags), json!([[true, false], [false, true], [false, false]]));
}

#[test]
fn production_refuses_and_nonsense_is_said_once_and_does_nothing() {
    let output = calls("return=5", "copy 3").env("ACLSHIM_PRESET", "production").run().ok();
    assert_eq!(lines(&output), ["copy: 0 0 0"]);
    let about = |output: &Output| {
        let said = output.events("setting").into_iter().filter(|line| line["subject"] == "ACLSHIM_INJECT");
        said.map(|line| line["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let refused = "ACLSHIM_INJECT is refused, because ACLSHIM_PRESET=production: calls are forwarded as they are";
    assert_eq!(about(&output), [refused]);
    assert_eq!(output.stat().total("injected"), 0);

    let output = calls("return=5; aclrtMemcpyy return=6", "copy 3").run().ok();
    assert_eq!(lines(&output), ["copy: 0 0 0"]);
    let [told] = &about(&output)[..] else { panic!("{:?}", about(&output)) };
    assert!(told.starts_with("ACLSHIM_INJECT: \"aclrtMemcpyy\" at 11 is no function"), "{told}");
    assert!(told.ends_with("; nothing of it is in force"), "{told}");

    // One too many.
    let output = calls(&"nth=1 return=5;".repeat(65), "copy 1").run().ok();
    assert_eq!((lines(&output), about(&output).len()), (vec!["copy: 0".to_owned()], 1));
    let output = calls(&"nth=9 return=5;".repeat(64), "copy 1").run().ok();
    assert_eq!((lines(&output), about(&output).len()), (vec!["copy: 0".to_owned()], 0));
}

#[test]
fn the_command_tells_of_injections() {
    let output = aclshim().arg("config").env("ACLSHIM_INJECT", "retrun=5").output().expect("aclshim config");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && errors.contains("\"retrun=5\" at 1 is a word of neither"), "{errors}");
    let mut command = aclshim();
    command.args(["config"]).env("ACLSHIM_INJECT", "return=5").env("ACLSHIM_PRESET", "production");
    let errors = String::from_utf8_lossy(&command.output().expect("aclshim config").stderr).into_owned();
    assert!(errors.contains("ACLSHIM_INJECT is refused"), "{errors}");

    let scratch = support::scratch("inject-run");
    let mut command = aclshim();
    command.current_dir(&scratch).env("ACLSHIM_RING_DIR", &scratch).env("LD_LIBRARY_PATH", support::sim());
    command.env("ACLSHIM_INJECT", "every=2 return=5").arg("run").arg("--").arg(program()).args(["copy", "4"]);
    let output = command.output().expect("aclshim run");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("4 calls") && errors.contains("2 of them struck by an injection"), "{errors}");
}

#[test]
fn a_call_that_met_an_injection_whose_scope_has_ended_counts_for_no_other_one() {
    let program = Build::new("hosts/inject_swapped.c").arg("-rdynamic").link("ascendcl").program();
    let output = Run::new(&program).sim().shim().env("ACLSHIM_DRAIN", "off").run().ok();
    let said = "set 1\nset 1\na call that met the first 0\nthe first call of the second 507899\nstruck 1\n";
    assert_eq!(output.stdout, said);
}
