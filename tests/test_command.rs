//! `aclshim test`: one verdict on a program, as text, as exit status, and as JUnit and SARIF.

#[path = "support/checking.rs"]
mod checking;
mod support;

use checking::one;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use support::{Build, Output, Run, aclshim, has, host, root, scratch, target};

/// `aclshim test OPTIONS -- command`. The device is the one that the command brings along.
fn test(options: &[&str], command: &[&str]) -> Output {
    let run = options.iter().fold(Run::new(target("release/aclshim")).arg("test"), |run, option| run.arg(option));
    command.iter().fold(run.arg("--"), |run, word| run.arg(word)).run()
}

/// Calls of `check_one.c`: `good 2`.
fn calls(options: &[&str], cases: &str) -> Output {
    let program = one();
    let command: Vec<&str> = [program.to_str().unwrap()].into_iter().chain(cases.split_whitespace()).collect();
    test(options, &command)
}

/// A program that says of itself what the harness would say, and then makes these calls.
fn telling(options: &[&str], lines: &[Value], cases: &str) -> Output {
    let told = scratch("told").join("lines");
    let text: String = lines.iter().map(|line| line.to_string().replace("\"PID\"", "PID") + "\n").collect();
    fs::write(&told, text).unwrap();
    let script = format!("sed s/PID/$$/ {} >> \"$ACLSHIM_RESULTS\"; exec {} {cases}", told.display(), one().display());
    test(options, &["sh", "-c", &script])
}

fn scope(name: &str, findings: Value, failures: Value) -> Value {
    json!({"scope": name, "reach": "thread", "pid": "PID", "thread": 1, "begin_ns": 5, "duration_ns": 1500000, "calls": 2,
           "bytes": 128, "unseen": 0, "expectations": 2, "findings": findings, "failures": failures})
}

fn harness() -> Value {
    json!({"harness": 1, "pid": "PID", "executable": "/some/where/test_program"})
}

/// What a script of ours makes of a file.
fn read(script: &str, file: &Path) -> Vec<Value> {
    let output = Command::new("python3").arg(root().join("tests").join(script)).arg(file).output().unwrap();
    let (said, text) = (String::from_utf8_lossy(&output.stderr), fs::read_to_string(file).unwrap());
    assert!(output.status.success(), "{said}\n{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn is_left(output: &Output) -> bool {
    output.scratch.join("out").exists()
}

#[test]
fn a_program_that_breaks_no_rule_passes_and_leaves_nothing() {
    let output = calls(&[], "good 3").ok();
    assert_eq!(output.stdout, "good: 0, 3 good\n");
    assert!(output.stderr.starts_with("aclshim: 3 calls, 192 B, 0 errors in 1 process\n"), "{}", output.stderr);
    assert!(output.stderr.ends_with("aclshim: nothing was lost\naclshim: test passed\n"), "{}", output.stderr);
    assert!(!is_left(&output), "the folder of the records is gone");
    let quiet = calls(&["--quiet"], "good 3").ok();
    assert_eq!(quiet.stderr, "");
    let kept = calls(&["--out", "kept"], "good 3").ok();
    assert!(kept.stderr.contains("trace and log in kept: "), "{}", kept.stderr);
    assert!(fs::read_dir(kept.scratch.join("kept")).unwrap().all(|file| {
        let name = file.unwrap().file_name().into_string().unwrap();
        name.ends_with(".acltrace") || name.ends_with(".jsonl") || name.starts_with(".aclshim-usage-")
    }));
}

#[test]
fn a_finding_fails_the_test_from_a_severity_on() {
    let error = calls(&[], "good 1 room 2");
    assert_eq!(error.status.code(), Some(1), "{}", error.stderr);
    assert!(error.stderr.contains("aclshim:   counts: error 2 x DEST-MAX\n"), "{}", error.stderr);
    assert!(error.stderr.ends_with("aclshim: test failed: 2 findings\n"), "{}", error.stderr);
    assert!(is_left(&error) && error.stderr.contains("trace and log in "), "what went wrong can be looked at");
    let kinds = [("room 1", "error"), ("align 1", "violation"), ("itself 1", "perf"), ("host_align 1", "portability")];
    let severities = ["error", "violation", "perf", "portability"];
    for (cases, kind) in kinds {
        for (least, severity) in severities.iter().enumerate() {
            let is_bad = severities.iter().position(|other| *other == kind) <= Some(least);
            let output = calls(&["--severity", severity], cases);
            assert_eq!(output.status.code(), Some(i32::from(is_bad)), "{cases} from {severity} on: {}", output.stderr);
        }
        assert_eq!(calls(&[], cases).status.code(), Some(i32::from(matches!(kind, "error" | "violation"))), "{cases}");
        calls(&["--severity", "off"], cases).ok();
    }
    let nonsense = calls(&["--severity", "bad"], "good 1");
    assert!(nonsense.stderr.contains("off, error, violation, perf or portability"), "{}", nonsense.stderr);
}

#[test]
fn the_end_of_the_program_comes_before_everything_else() {
    let program = one().display().to_string();
    let status = test(&[], &["sh", "-c", &format!("{program} room 1; exit 7")]);
    assert_eq!(status.status.code(), Some(7));
    assert!(status.stderr.ends_with("test failed: the program ended with 7, 1 finding\n"), "{}", status.stderr);
    let killed = test(&[], &["sh", "-c", &format!("{program} good 1; kill -TERM $$")]);
    assert_eq!(killed.status.signal(), Some(15), "{}", killed.stderr);
    assert!(killed.stderr.ends_with("test failed: the program was ended by signal 15\n"), "{}", killed.stderr);
    for (command, code) in [("/nowhere/at/all", 127), ("/dev/null", 126)] {
        let output = test(&[], &[command]);
        assert_eq!((output.status.code(), is_left(&output)), (Some(code), false), "{}", output.stderr);
    }
}

#[test]
fn nothing_that_was_watched_is_no_success() {
    let output = test(&[], &["true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.contains("aclshim: nothing was watched (the program made no copy, or "), "{}", output.stderr);
    assert!(output.stderr.ends_with("test failed: nothing was watched\n"), "{}", output.stderr);
    // A program that uses the harness may expect that there is no call.
    let output = telling(&[], &[harness(), scope("idle", json!([]), json!([]))], "good 0").ok();
    assert!(output.stderr.ends_with("1 scope with 2 expectations: 1 passed, 0 failed\naclshim: test passed\n"));
}

#[test]
fn a_failed_expectation_fails_the_test_and_is_told_in_a_line() {
    let text = "scope \"decode\": expected 2 calls of \"aclrtMemcpy\", saw 3\n  #0 aclrtMemcpy(...)";
    let failures = json!([{"kind": "calls", "text": text}, {"kind": "clean", "text": "no finding was expected"}]);
    let lines = [harness(), scope("prefill", json!([]), json!([])), scope("decode", json!([]), failures)];
    let output = telling(&[], &lines, "good 1");
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    let told = "aclshim: 2 scopes with 4 expectations: 1 passed, 1 failed\naclshim:   failed: decode\n\
                aclshim:     scope \"decode\": expected 2 calls of \"aclrtMemcpy\", saw 3\n\
                aclshim:     no finding was expected\naclshim: test failed: 1 scope failed\n";
    assert!(output.stderr.ends_with(told), "{}", output.stderr);
    let garbled = telling(&[], &[harness(), json!({"scope": 7})], "good 1");
    assert!(garbled.stderr.ends_with("test failed: the results cannot be read\n"), "{}", garbled.stderr);
    assert!(garbled.stderr.contains("aclshim: line 2 of the results: "), "{}", garbled.stderr);
}

#[test]
fn findings_that_a_scope_expects_do_not_count_and_others_of_that_rule_do() {
    let expected = json!([{"rule": "DEST-MAX", "severity": "error", "count": 2, "expected": 2}]);
    let lines = [harness(), scope("refused", expected, json!([]))];
    telling(&[], &lines, "good 1 room 2").ok();
    let more = telling(&[], &lines, "good 1 room 2 room_too 1");
    assert_eq!(more.status.code(), Some(1), "{}", more.stderr);
    assert!(more.stderr.contains("aclshim:   counts: error 1 x DEST-MAX\n"), "{}", more.stderr);
}

#[test]
fn what_is_asked_for_reaches_the_program() {
    let shown = "echo \"$ACLSHIM_INJECT|$ACLSHIM_GOLDEN|$LD_LIBRARY_PATH|$ACLSHIM_BATCH_ITEMS|$ACLSHIM_RECORD\"; [ ! -e \"$ACLSHIM_RESULTS\" ]";
    let plain = test(&[], &["sh", "-c", shown]);
    let sim = target("sim").canonicalize().unwrap().display().to_string();
    assert_eq!(plain.stdout, format!("||{sim}|4096|lossless\n"), "{}", plain.stderr);
    let asked = test(&["--inject", "aclrtMemcpy nth=2 return=107000", "--update", "--no-sim"], &["sh", "-c", shown]);
    assert_eq!(asked.stdout, "aclrtMemcpy nth=2 return=107000|update||4096|lossless\n", "{}", asked.stderr);
}

#[test]
fn junit_holds_a_test_case_for_each_scope_and_for_the_program() {
    let test = "junit_holds_a_test_case_for_each_scope_and_for_the_program";
    if !has("python3", test) {
        return;
    }
    let strange = "a\u{1}<b attr=\"x\">&amp;]]>\u{1b}[31m ü \u{ffff}\n\ttab";
    let failures = json!([{"kind": "calls", "text": format!("expected {strange}\nsecond line")}, {"kind": "bytes", "text": "more"}]);
    let lines = [
        harness(),
        scope("prefill", json!([]), json!([])),
        scope("prefill", json!([]), json!([])),
        scope(strange, json!([]), failures),
    ];
    let output = telling(&["--junit", "made/results.xml", "--golden", "no.golden"], &lines, "good 1 room 1");
    let cases = read("read_junit.py", &output.scratch.join("made/results.xml"));
    let names: Vec<&str> = cases.iter().map(|case| case["name"].as_str().unwrap()).collect();
    let shown = "a\\x01<b attr=\"x\">&amp;]]>\\x1b[31m ü \\uffff\n\ttab";
    let own = ["program ends with 0", "calls are watched", "no rule is broken", "golden run no.golden"];
    assert_eq!(names, [&["prefill", "prefill (2)", shown][..], &own].concat());
    assert!(cases.iter().all(|case| case["suite"] == "sh" && case["class"] == "sh"), "{cases:?}");
    let failed: Vec<bool> = cases.iter().map(|case| case["outcome"]["as"] == "failure").collect();
    assert_eq!(failed, [false, false, true, false, false, true, true]);
    let failure = &cases[2]["outcome"];
    assert_eq!(failure["text"], format!("expected {shown}\nsecond line\nmore"));
    assert_eq!(
        (&failure["type"], &failure["message"]),
        (&json!("calls"), &json!("expected a\\x01<b attr=\"x\">&amp;]]>\\x1b[31m ü \\uffff"))
    );
    assert_eq!(cases[5]["outcome"]["text"], "error 1 x DEST-MAX");
}

#[test]
fn junit_tells_a_program_that_was_killed_as_an_error() {
    let test_name = "junit_tells_a_program_that_was_killed_as_an_error";
    if !has("python3", test_name) {
        return;
    }
    let output = test(&["--junit", "results.xml"], &["sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.signal(), Some(9));
    let cases = read("read_junit.py", &output.scratch.join("results.xml"));
    let exit = cases.iter().find(|case| case["name"] == "program ends with 0").unwrap();
    assert_eq!((&exit["outcome"]["as"], &exit["outcome"]["type"]), (&json!("error"), &json!("signal")));
}

/// A program with the harness itself: `hosts/test_scopes.c`.
fn scopes(options: &[&str], how: &str) -> Output {
    let program = host("hosts/test_scopes.c");
    test(options, &[program.to_str().unwrap(), how])
}

#[test]
fn the_scopes_of_a_real_program_are_told() {
    let well = scopes(&[], "well").ok();
    let told = "aclshim: 2 scopes with 3 expectations: 2 passed, 0 failed\naclshim: test passed\n";
    assert!(well.stderr.ends_with(told), "an expected finding does not count: {}", well.stderr);
    let extra = scopes(&["--junit", "results.xml"], "extra");
    assert_eq!(extra.status.code(), Some(1), "{}", extra.stderr);
    assert!(
        extra.stderr.contains("aclshim:   failed: prefill\naclshim:     scope \"prefill\": expected 1 call"),
        "{}",
        extra.stderr
    );
    assert!(extra.stderr.ends_with("aclshim: test failed: 1 scope failed\n"), "{}", extra.stderr);
    if has("python3", "the_scopes_of_a_real_program_are_told") {
        let cases = read("read_junit.py", &extra.scratch.join("results.xml"));
        let names: Vec<&str> = cases.iter().map(|case| case["name"].as_str().unwrap()).collect();
        assert_eq!(names[..2], ["prefill", "refused"]);
        assert_eq!((&cases[0]["outcome"]["type"], &cases[1]["outcome"]), (&json!("calls"), &Value::Null));
        assert!(cases[0]["outcome"]["text"].as_str().unwrap().contains("#1 aclrtMemcpy("), "{cases:?}");
    }
    let open = scopes(&[], "open");
    assert_eq!(open.status.code(), Some(1), "{}", open.stderr);
    assert!(
        open.stderr.contains("aclshim:   failed: prefill\naclshim:     scope \"prefill\": never ended"),
        "{}",
        open.stderr
    );
    // The calls were not seen, and no process is left that could say so.
    let gone = scopes(&[], "gone");
    assert_eq!(gone.status.code(), Some(1), "{}", gone.stderr);
    assert!(gone.stderr.contains("aclshim:   never ended: prefill; what it expected was not"), "{}", gone.stderr);
    assert!(gone.stderr.ends_with("aclshim: test failed: 1 scope never ended\n"), "{}", gone.stderr);
}

#[test]
fn names_that_a_program_gives_stand_in_golden_files_and_update_writes_those_of_scopes_too() {
    let output = scopes(&["--golden", "whole.golden", "--update"], "golden").ok();
    let whole = fs::read_to_string(output.scratch.join("whole.golden")).unwrap();
    let of_scope = fs::read_to_string(output.scratch.join("refused.golden")).unwrap();
    for text in [&whole, &of_scope] {
        assert!(text.contains("(dst=cache+0x0, destMax=63, src=b1+0x0, count=64, "), "{text}");
        assert!(text.contains("(dst=cache+0x80, ") && text.contains("stream=upload) = ACL_SUCCESS\n"), "{text}");
    }
    assert!(
        whole.contains("= ACL_SUCCESS\n  aclrtMemcpy(")
            && !of_scope.contains("destMax=64, src=b1+0x0, count=64, kind=HOST_TO_DEVICE)")
    );
}

#[test]
fn a_call_that_is_made_to_fail_is_marked_and_nonsense_is_refused_before_anything_runs() {
    let options = ["--inject", "aclrtMemcpy nth=2 return=107000", "--golden", "run.golden", "--update"];
    let output = calls(&options, "good 3").ok();
    assert_eq!(output.stdout, "good: 0, 2 good\n", "{}", output.stderr);
    let text = fs::read_to_string(output.scratch.join("run.golden")).unwrap();
    assert_eq!(text.matches("= ACL_ERROR_RT_PARAM_INVALID (injected)\n").count(), 1, "{text}");
    let nonsense = calls(&["--inject", "aclrtMemcpy nth=x"], "good 1");
    assert_eq!((nonsense.status.code(), nonsense.stdout.as_str()), (Some(2), ""), "{}", nonsense.stderr);
    let refused = Run::new(target("release/aclshim")).env("ACLSHIM_PRESET", "production").arg("test");
    let refused = refused.arg("--inject").arg("aclrtMemcpy return=107000").arg("--").arg(one()).run();
    assert_eq!((refused.status.code(), refused.stdout.as_str()), (Some(125), ""), "{}", refused.stderr);
}

/// The line of `check_one.c` that holds some text.
fn line_of(part: &str) -> usize {
    let source = fs::read_to_string(root().join("tests/hosts/check_one.c")).unwrap();
    source.lines().position(|line| line.contains(part)).unwrap() + 1
}

#[test]
fn sarif_names_the_line_of_the_call_and_how_often() {
    if !has("python3", "sarif_names_the_line_of_the_call_and_how_often") {
        return;
    }
    let out = scratch("sarif").join("out");
    let made = out.with_extension("sarif");
    let run = |folder: &Path| {
        let mut command = aclshim();
        command.current_dir(folder).arg("test").arg("--out").arg(&out).arg("--sarif").arg(&made).arg("--").arg(one());
        assert_eq!(
            command.args(["good", "1", "room", "25", "room_too", "1", "align", "2"]).output().unwrap().status.code(),
            Some(1)
        );
        read("read_sarif.py", &made)
    };
    let results = run(&root());
    let told: Vec<(&str, &str, u64, u64)> = results
        .iter()
        .map(|result| {
            let text = |key: &str| result[key].as_str().unwrap();
            (text("rule"), text("level"), result["count"].as_u64().unwrap(), result["line"].as_u64().unwrap())
        })
        .collect();
    let line = |part| line_of(part) as u64;
    assert_eq!(
        told,
        [
            ("ALIGN-64", "warning", 2, line("int call_align(void)")),
            ("DEST-MAX", "error", 25, line("int call_room(void)")),
            ("DEST-MAX", "error", 1, line("int call_room_too(void)")),
        ]
    );
    assert!(
        results.iter().all(|result| result["uri"] == "tests/hosts/check_one.c" && result["base"] == "SRCROOT"),
        "{results:?}"
    );
    assert_eq!(results[1]["names"][0], "call_room");
    fs::remove_dir_all(&out).unwrap();
    // The file is the same one from elsewhere, and what is the same finding is known again.
    let elsewhere = run(Path::new("/"));
    assert_eq!(elsewhere.len(), 3);
    let file = root().join("tests/hosts/check_one.c").display().to_string();
    assert!(elsewhere.iter().all(|result| file.ends_with(result["uri"].as_str().unwrap())), "{elsewhere:?}");
    // `aclshim findings --sarif` prints the same of the kept files.
    let printed = aclshim().current_dir(root()).arg("findings").arg("--sarif").arg(&out).output().unwrap();
    fs::write(&made, &printed.stdout).unwrap();
    assert_eq!(read("read_sarif.py", &made), results);
}

#[test]
fn sarif_names_the_module_where_there_is_no_line() {
    if !has("python3", "sarif_names_the_module_where_there_is_no_line") {
        return;
    }
    let program = Build::new("hosts/check_one.c").arg("-s").arg("-g0").link("ascendcl").program();
    let output = test(&["--sarif", "made.sarif"], &[program.to_str().unwrap(), "room", "1"]);
    let results = read("read_sarif.py", &output.scratch.join("made.sarif"));
    let name = program.file_name().unwrap().to_str().unwrap();
    let [result] = &results[..] else { panic!("{results:?}") };
    assert_eq!((&result["line"], &result["base"]), (&Value::Null, &Value::Null), "{result}");
    assert!(result["uri"].as_str().unwrap().ends_with(name), "{result}");
    assert!(result["names"][0].as_str().unwrap().starts_with(&format!("{name}+0x")), "{result}");
}

#[test]
fn sarif_marks_what_was_expected() {
    if !has("python3", "sarif_marks_what_was_expected") {
        return;
    }
    let expected = json!([{"rule": "DEST-MAX", "severity": "error", "count": 2, "expected": 2}]);
    let output =
        telling(&["--sarif", "made.sarif"], &[harness(), scope("refused", expected, json!([]))], "room 2 host_align 1")
            .ok();
    let results = read("read_sarif.py", &output.scratch.join("made.sarif"));
    let told: Vec<_> = results.iter().map(|result| (result["rule"].as_str().unwrap(), &result["suppressed"])).collect();
    assert_eq!(told, [("ALIGN-64", &json!(false)), ("DEST-MAX", &json!(true))]);
}
