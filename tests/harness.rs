//! The harness for C test programs: scopes, expectations and their results.

#[path = "support/harnessed.rs"]
mod harnessed;
mod support;

use harnessed::seen;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::{Build, Output, Run, host};

#[test]
fn one_binary_runs_with_and_without_the_shim_and_knows_which() {
    let program = Build::new("hosts/harness_active.c").program();
    assert_eq!(Run::new(&program).run().ok().stdout, "active 0\n");
    assert_eq!(Run::new(&program).shim().run().ok().stdout, "active 1\n");
    assert_eq!(Run::new(&program).shim().env("ACLSHIM_MODE", "off").run().ok().stdout, "active 0\n");
}

#[test]
fn without_the_shim_everything_is_0_and_so_it_is_switched_off() {
    let program = Build::new("hosts/harness_all.c").program();
    let zeros = "scope 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    assert_eq!(Run::new(&program).run().ok().stdout, zeros);
    let output = Run::new(&program).shim().env("ACLSHIM_MODE", "off").run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (zeros, ""));
    let there = "scope yes 1 0 0 0 -1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n";
    let output = Run::new(&program).shim().env("ACLSHIM_GOLDEN", "update").run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (there, ""));
}

/// A program that is not position-independent has the table for itself, as a copy, if it links the shim, and none if it
/// does not, whatever is preloaded. (On aarch64 compilers leave a weak symbol to the loader all the same.)
#[test]
fn a_program_without_position_independent_code_links_the_shim_first() {
    let build = || Build::new("hosts/harness_scopes.c").arg("-no-pie").arg("-fno-pic");
    let linked = build().link("aclshim").link("ascendcl").program();
    let folder = support::shim().parent().unwrap().to_owned();
    let output = Run::new(&linked).arg("nested").sim().library_path(folder).env("ACLSHIM_DRAIN", "off").run().ok();
    assert!(output.stdout.ends_with("whole 5\nwhole bytes 198\nwhole end 0\n"), "{}", output.stdout);
    let not_linked = build().link("ascendcl").program();
    let output = seen(&not_linked, &["nested"]).run().ok();
    let (calls, bytes) = if cfg!(target_arch = "x86_64") { (0, 0) } else { (5, 198) };
    let expected = format!("whole {calls}\nwhole bytes {bytes}\nwhole end 0\n");
    assert!(output.stdout.ends_with(&expected), "{}", output.stdout);
}

#[test]
fn the_headers_compile_cleanly_as_c99_and_as_cpp17_in_either_order() {
    let test = "the_headers_compile_cleanly_as_c99_and_as_cpp17_in_either_order";
    let all = fs::read_to_string(support::root().join("tests/hosts/harness_all.c")).unwrap();
    let body = all.split_once("int main").expect("a program").1;
    // Beside our stand-in, and beside the vendor's own headers where CANN is installed. Ours stands alone in its folder.
    let vendors = std::env::var_os("ASCEND_HOME_PATH").map(|home| ("-isystem", Path::new(&home).join("include")));
    let others: Vec<_> = [("-I", support::root().join("include"))].into_iter().chain(vendors).collect();
    for (compiler, language, standard) in [("cc", "c", "-std=c99"), ("c++", "c++", "-std=c++17")] {
        if !support::has(compiler, test) {
            continue;
        }
        let orders = [["aclshim.h", "acl/acl.h"], ["acl/acl.h", "aclshim.h"]];
        for (order, (how, other)) in orders.iter().flat_map(|order| others.iter().map(move |other| (order, other))) {
            let source = support::scratch("headers").join("both.c");
            let includes = order.map(|header| format!("#include \"{header}\"\n")).concat();
            fs::write(&source, format!("{includes}#include <stdio.h>\nint main{body}")).unwrap();
            let result = Command::new(compiler)
                .args(["-x", language, standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-c", "-o"])
                .arg(source.with_extension("o"))
                .arg("-I")
                .arg(support::target("include"))
                .args([OsStr::new(how), other.as_os_str()])
                .arg(&source)
                .output()
                .unwrap();
            let what = format!("{compiler}, {order:?}, {}", other.display());
            assert!(result.status.success(), "{what}: {}", String::from_utf8_lossy(&result.stderr));
        }
    }
}

#[test]
fn a_scope_knows_its_calls_by_everything_that_can_be_said_of_them() {
    let output = seen(&host("hosts/harness_scopes.c"), &["counts"]).run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (COUNTS, ""));
}

#[test]
fn a_call_that_was_refused_is_known_to_be() {
    let enforced = || seen(&host("hosts/harness_scopes.c"), &["refused"]).env("ACLSHIM_MODE", "enforce").run().ok();
    assert_eq!(enforced().stdout, "good 0\nno room 107000\ncalls 2\nflags 0\nflags 2\nrefused 1\nend 0\n");
    // The vendor refuses it too, but that was not us.
    let observed = seen(&host("hosts/harness_scopes.c"), &["refused"]).run().ok();
    assert_eq!(observed.stdout, "good 0\nno room 107000\ncalls 2\nflags 0\nflags 0\nrefused 0\nend 0\n");
}

const COUNTS: &str = "\
: 7 calls, 5420 bytes
aclrtMemcpy: 2 calls, 4096 bytes
aclrtMemcpy*: 6 calls, 5356 bytes
kind=H2D: 4 calls, 4588 bytes
direction=h2d: 5 calls, 5356 bytes
direction=d2h: 1 calls, 0 bytes
code=0: 6 calls, 5420 bytes
code=failed: 1 calls, 0 bytes
size=64: 3 calls, 128 bytes
size=65..4K: 4 calls, 5292 bytes
stream=copies: 1 calls, 64 bytes
stream=default: 1 calls, 128 bytes
stream=none: 5 calls, 5228 bytes
dst=weights: 6 calls, 5420 bytes
dst=weights stream=none size=100..: 3 calls, 5164 bytes
site=*harness_scopes*: 7 calls, 5420 bytes
site=libnone.so: 0 calls, 0 bytes
#0 aclrtMemcpy count 4096 bytes 4096 items 0 0x0 kind 1 way 2 stream 0 code 0 state 0 flags 0 findings 0
#1 aclrtMemcpyAsync count 64 bytes 64 items 0 0x0 kind 1 way 2 stream 1 code 0 state 0 flags 0 findings 0
#2 aclrtMemcpyAsync count 128 bytes 128 items 0 0x0 kind 1 way 2 stream 1 code 0 state 0 flags 0 findings 0
#3 aclrtMemcpy2d count 0 bytes 300 items 0 100x3 kind 1 way 2 stream 0 code 0 state 0 flags 0 findings 0
#4 aclrtMemcpyBatch count 0 bytes 768 items 3 0x0 kind -1 way 2 stream 0 code 0 state 0 flags 0 findings 0
#5 aclrtMemset count 64 bytes 64 items 0 0x0 kind -1 way 0 stream 0 code 0 state 0 flags 0 findings 0
#6 aclrtMemcpy count 64 bytes 64 items 0 0x0 kind 2 way 3 stream 0 code 107000 state 0 flags 0 findings 1
item 0 0 512 256
item 256 256 512 256
item 512 512 512 256
finding DEST-MAX aclrtMemcpy destMax severity 3 code 107000 index -1 call 6 1 1
of the rule 1
of another 0
end 0
after -2
";

#[test]
fn scopes_nest_and_belong_to_a_thread_or_to_all() {
    let output = seen(&host("hosts/harness_scopes.c"), &["nested"]).run().ok();
    let expected = "another's scope -10\nanother's end -10\nof all 3\nown 1\nown end 0\nwrong order -9\nwrong order too -9\n\
        inner 1\ninner end 0\nmine 2\nmine bytes 5\nmine end 0\nwhole 5\nwhole bytes 198\nwhole end 0\n";
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (expected, ""));
}

#[test]
fn a_call_that_was_left_is_known_as_such_and_what_the_vendor_calls_itself_is_none() {
    let faults = "longjmp@aclrtMemcpy:1,reenter@aclrtMemcpy:2";
    let output = seen(&host("hosts/harness_scopes.c"), &["left"]).env("ASCENDCL_SIM_FAULT", faults).run().ok();
    let states: Vec<_> =
        output.stdout.lines().filter_map(|line| line.split(" state ").nth(1)).map(|rest| &rest[..1]).collect();
    assert_eq!(states, ["2", "2", "0"], "{}", output.stdout);
    assert!(output.stdout.ends_with("bytes 128\nend 0\n"), "{}", output.stdout);
}

#[test]
fn the_first_copy_of_a_process_is_judged_with_what_is_known_after_it() {
    let output = seen(&host("hosts/harness_scopes.c"), &["first"]).run().ok();
    assert_eq!(output.stdout, "code 0\nfindings 1\nend 0\n");
}

#[test]
fn a_scope_makes_its_own_calls_fail_and_no_others() {
    let program = host("hosts/harness_scopes.c");
    let output = seen(&program, &["inject"]).run().ok();
    let short: Vec<_> = output.stdout.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = ["set 2", "first 0", "second 207000", "named 5", "not named 0", "struck 2", "end 0", "after 0"];
    assert_eq!(short[..8], expected, "{}", output.stdout);
    assert_eq!(short[8], "struck after -2");
    let flags: Vec<_> =
        output.stdout.lines().filter_map(|line| line.split(" flags ").nth(1)).map(|rest| &rest[..1]).collect();
    assert_eq!(flags, ["0", "1", "1", "0"], "{}", output.stdout);
    let refused = seen(&program, &["inject"]).env("ACLSHIM_PRESET", "production").run().ok();
    assert!(refused.stdout.starts_with("set -7\nfirst 0\nsecond 0\n"), "{}", refused.stdout);
    assert!(refused.stderr.contains("ACLSHIM_PRESET=production"), "{}", refused.stderr);
}

/// What an expectation says that is not met.
fn said(what: &str) -> String {
    let output = seen(&host("hosts/harness_expect.c"), &[what]).run();
    assert_eq!(output.status.code(), Some(1), "{what}: {}", output.stderr);
    output.stderr
}

#[test]
fn what_is_met_is_not_spoken_of() {
    let golden = support::scratch("golden").join("met.txt");
    let golden = golden.to_str().unwrap();
    let program = host("hosts/harness_expect.c");
    let written = seen(&program, &["golden", golden]).env("ACLSHIM_GOLDEN", "update").run().ok();
    assert_eq!(written.stderr, "");
    let output = seen(&program, &["met", golden]).run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
}

#[test]
fn an_expectation_that_is_not_met_says_what_was_expected_and_what_happened_call_by_call() {
    let calls = said("calls");
    let lines: Vec<_> = calls.lines().collect();
    assert_eq!(lines[0], "aclshim: scope \"prefill\": expected 2 calls of \"aclrtMemcpyAsync kind=H2D\", saw 3");
    assert!(lines[1].starts_with("  #0 aclrtMemcpyAsync(dst=weights+0x0, destMax=64, src=0x"), "{calls}");
    assert!(lines[1].contains("count=64, kind=HOST_TO_DEVICE, stream=s1) = 0  hosts_harness_expect_c"), "{calls}");
    assert!(lines[1..4].iter().all(|line| line.ends_with("   <- counted")), "{calls}");
    assert!(lines[3].contains("stream=default"), "{calls}");
    assert!(lines[4].contains(" = 107000 (ACL_ERROR_RT_PARAM_INVALID)") && !lines[4].contains("<-"), "{calls}");
    assert!(lines[5].contains("numBatches=2") && lines[5].contains(" [512 bytes]"), "{calls}");
    assert_eq!(lines.len(), 6, "{calls}");

    let first = |what: &str| said(what).lines().next().unwrap_or_default().replace("aclshim: scope \"prefill\": ", "");
    assert_eq!(first("least"), "expected at least 1 call of \"aclrtMemset\", saw 0");
    assert_eq!(first("most"), "expected at most 4 calls, saw 5");
    assert_eq!(first("bytes"), "expected 100 to 191 bytes by \"stream=s1\", saw 192");
}

#[test]
fn an_order_that_is_another_shows_both() {
    let order = said("order");
    assert!(
        order.contains("expected 2 calls on stream s1 in this order, saw 2; the first difference is at 2\n"),
        "{order}"
    );
    assert!(order.contains("  expected 1: size=64\n  expected 2: size=4096   <- not so\n"), "{order}");
    assert!(order.lines().last().is_some_and(|line| line.ends_with("<- saw this")), "{order}");
    assert!(
        said("fewer").contains("expected 3 calls on stream s1 in this order, saw 2; the first difference is at 3\n")
    );
    assert!(
        said("none").contains("expected 0 calls on stream s1 in this order, saw 2; the first difference is at 1\n")
    );
}

#[test]
fn findings_that_are_missing_or_too_many_are_told_with_rule_values_and_fix() {
    let missing = said("finding");
    assert!(missing.contains("expected 1 finding of NULL-POINTER, saw 0\n"), "{missing}");
    assert!(missing.contains("#3 aclrtMemcpy("), "{missing}");
    let clean = said("clean");
    assert!(clean.contains("expected no finding of severity error or worse, saw 1\n  #3 error DEST-MAX: "), "{clean}");
    assert!(clean.contains("destMax = 32") && clean.contains("Fix: pass the real size of the destination"), "{clean}");
}

#[test]
fn a_golden_file_is_written_read_and_compared() {
    let program = host("hosts/harness_expect.c");
    let golden = support::scratch("golden").join("run.txt");
    let path = golden.to_str().unwrap();
    let missing = seen(&program, &["golden", path]).run();
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("cannot be read") && missing.stderr.contains("ACLSHIM_GOLDEN=update"));
    seen(&program, &["golden", path]).env("ACLSHIM_GOLDEN", "update").run().ok();
    for _ in 0..5 {
        seen(&program, &["golden", path]).run().ok();
    }
    let text = fs::read_to_string(&golden).unwrap();
    assert!(text.contains("aclrtMemcpyAsync(dst=weights+0x0, destMax=64"), "{text}");
    fs::write(&golden, text.replace("count=4096", "count=2048")).unwrap();
    let other = seen(&program, &["golden", path]).run();
    assert_eq!(other.status.code(), Some(1));
    let has = |sign: char, count: &str| {
        other.stderr.lines().any(|line| line.starts_with(sign) && line.contains(&format!("count={count},")))
    };
    assert!(has('-', "2048") && has('+', "4096"), "{}", other.stderr);
}

#[test]
fn the_exit_status_fails_if_asked_also_for_what_fails_at_the_end() {
    let program = host("hosts/harness_expect.c");
    assert_eq!(seen(&program, &["calls", "-", "7"]).run().status.code(), Some(7));
    assert_eq!(seen(&program, &["nothing", "-", "7"]).run().status.code(), Some(0));
    let output = seen(&host("hosts/harness_misuse.c"), &["ends"]).run();
    assert_eq!(output.status.code(), Some(9), "{}", output.stderr);
    let expected = "early 1\nearly end 0\nfail exit 0\nat exit 1\nat exit end 1\ndestructor 1\ndestructor end 0\n";
    assert_eq!(output.stdout, expected);
}

#[test]
fn a_scope_that_nobody_ends_fails_at_the_end_of_the_program() {
    let output = seen(&host("hosts/harness_misuse.c"), &["forgotten"]).run();
    assert_eq!(output.status.code(), Some(9), "{}", output.stderr);
    let said = "aclshim: scope \"forgotten\": never ended, so 2 expectations could not be judged\n";
    assert_eq!(output.stderr, said);
}

fn results(output: &Output) -> Vec<Value> {
    let text = fs::read_to_string(output.scratch.join("results.jsonl")).expect("a file of results");
    text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
}

#[test]
fn results_are_a_line_a_scope_for_machines() {
    let program = host("hosts/harness_expect.c");
    let output = seen(&program, &["finding"]).env("ACLSHIM_RESULTS", "results.jsonl").run();
    let lines = results(&output);
    assert_eq!((lines.len(), &lines[0]["harness"]), (2, &Value::from(1)));
    assert!(lines[0]["executable"].as_str().is_some_and(|path| Path::new(path) == program));
    let scope = &lines[1];
    assert_eq!((&scope["scope"], &scope["reach"]), (&"prefill".into(), &"thread".into()));
    let numbers = ["calls", "bytes", "unseen", "expectations"].map(|key| scope[key].as_u64().unwrap());
    assert_eq!(numbers, [5, 64 + 128 + 4096 + 512, 0, 1]);
    assert_eq!(scope["findings"][0]["rule"], "DEST-MAX");
    assert_eq!((&scope["findings"][0]["count"], &scope["findings"][0]["expected"]), (&1.into(), &0.into()));
    assert_eq!(scope["failures"][0]["kind"], "finding");
    assert_eq!(scope["failures"][0]["text"], output.stderr.trim_end());
}

#[test]
fn misuse_gives_a_code_and_a_word_and_nothing_else() {
    let output = seen(&host("hosts/harness_misuse.c"), &["wrong"]).run().ok();
    let codes: Vec<_> = output.stdout.lines().map(|line| line.rsplit_once(' ').unwrap_or((line, ""))).collect();
    let expected = [
        ("reach", "-1"),
        ("negative reach", "-1"),
        ("no name", "1"),
        ("calls NULL", "-1"),
        ("calls no room", "-3"),
        ("calls too little room", "-3"),
        ("filled 1, the next", "not"),
        ("calls huge room", "2"),
        ("items NULL", "-1"),
        ("items too little room", "-3"),
        ("items of no batch", "0"),
        ("items of no call", "-1"),
        ("items of no call at all", "-1"),
        ("findings NULL", "-1"),
        ("no such rule", "-4"),
        ("nonsense", "-4"),
        ("nonsense too", "-4"),
        ("nonsense in order", "-4"),
        ("bounds", "-1"),
        ("no rule", "-1"),
        ("no such rule", "-4"),
        ("severity", "-1"),
        ("no path", "-1"),
        ("empty path", "-1"),
        ("no injection", "-1"),
        ("nonsense injection", "-4"),
        ("mark NULL", "-1"),
        ("stream NULL", "-1"),
        ("stream's name", "-1"),
        ("two words", "-1"),
        ("default", "-1"),
        ("never named", "0"),
        ("buffer NULL", "-1"),
        ("buffer of nothing", "-1"),
        ("buffer too long", "-1"),
        ("status", "-2"),
        ("long name", "1"),
        ("long selector", "-4"),
        ("inner end", "0"),
        ("end", "10"), // what makes no sense is not met
        ("end again", "-2"),
        ("after the end", "-2"),
    ];
    assert_eq!(codes[2..codes.len() - 2], expected);
    let words = "a selector makes no sense: \"many\" at 6 must be bytes";
    assert!(output.stderr.contains(words) && output.stderr.lines().all(|line| line.starts_with("aclshim: ")));
}
