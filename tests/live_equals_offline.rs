//! What the drain writes to the log while a program runs, and what the commands say of its trace afterwards: equal, call
//! for call and finding for finding.

#[path = "support/checking.rs"]
mod checking;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use support::{Output, Run, aclshim, has, host, target};

/// A host as a line: its source, its arguments, and behind `|` the faults of the simulated device.
const HOSTS: &[&str] = &[
    "guest_longjmp.c | longjmp@aclrtMemcpy:2,longjmp@aclrtMemcpy:5",
    "guest_coroutine.c | longjmp@aclrtMemcpy:1",
    "guest_cancel.c cancel | hang@aclrtMemcpy:2",
    "guest_cancel.c exit | hang@aclrtMemcpy:2",
    "guest_cancel.c jump | hang@aclrtMemcpy:2",
    "guest_reenter.c | reenter@aclrtMemcpy:1",
    "guest_reenter.c | reenter@aclrtMemcpy:1,longjmp@aclrtMemcpy:2",
    "guest_attach.c 40",
    "guest_calls.c 100",
    "guest_errno.c",
    "guest_idle.c copies",
    "guest_making.c",
    "guest_making.c mark",
    "guest_threads.c short 50",
    "guest_threads.c alive 20",
    "edge_early.c 3",
    "edge_handler.c",
    "edge_pending.c",
];

/// Hosts whose processes make others, or become another program.
const PROCESSES: &[&str] = &[
    "guest_clone.c",
    "guest_early_fork.c",
    "guest_exec.c",
    "guest_spawn.c",
    "harness_misuse.c fork",
    "marks_all.c fork",
    "sanitizer_fork.c",
];

/// Hosts that end in many ways, or their children do, some of them without a warning.
const ENDS: &[&str] = &[
    "check_malformed.c",
    "check_malformed.c warm",
    "garbage_cases.c each",
    "guest_end.c return",
    "guest_end.c exit",
    "guest_end.c _exit",
    "guest_end.c quick_exit",
    "guest_end.c abort",
    "guest_end.c fault",
    "guest_end.c kill",
    "guest_end.c pthread_exit",
    "guest_killed.c return",
    "export_calls.c 2 2 die",
    "keep_calls.c 2 50 kill",
    "marks_all.c kill",
    "run_end.c 3",
    "run_end.c s9",
    "run_end.c s15",
];

/// Hosts whose calls break rules, and hosts that annotate themselves.
const FINDINGS: &[&str] = &[
    "check_calls.c",
    "check_one.c null 30 overlap 30",
    "check_release.c",
    "check_stack.c",
    "export_calls.c 2 2",
    "golden_work.c",
    "harness_scopes.c counts",
    "harness_scopes.c nested",
    "harness_scopes.c inject",
    "harness_scopes.c left | longjmp@aclrtMemcpy:1",
    "harness_misuse.c threads",
    "keep_calls.c 2 50",
    "marks_all.c names",
    "marks_all.c scopes",
    "marks_all.c threads 2 5",
    "test_scopes.c well",
];

/// Hosts in C++.
const HOSTS_CPP: &[&str] = &[
    "guest_throw.cpp | throw@aclrtMemcpy:2,throw@aclrtMemcpy:5",
    "guest_late.cpp",
    "record_left.cpp throw 400 | throw@aclrtMemcpy:2",
    "record_left.cpp jump 9 | longjmp@aclrtMemcpy:2",
    "symbols_names.cpp",
];

/// How the drain inside a host ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DrainEnd {
    /// In order, having written all that it has read.
    InOrder,
    /// It may be killed with its process. Then a record may be in the trace and not yet in the log; and the drain that goes on
    /// does not know how often a rule was broken before.
    MayBeKilled,
}

/// Who drains: a thread in the host, or a collector once the program has ended.
const DRAINS: [&str; 2] = ["auto", "off"];

/// Runs a program with a line in the log for every call.
fn ran(program: PathBuf, arguments: &[&str], faults: &str, drain: &str) -> Output {
    let run = arguments.iter().fold(Run::new(program), Run::arg).sim().shim();
    let run = run.env("ACLSHIM_CALLS", "json").env("ACLSHIM_DRAIN", drain).env("ACLSHIM_AS", "Ascend310P3");
    let run = if faults.is_empty() { run } else { run.env("ASCENDCL_SIM_FAULT", faults) };
    let output = run.env("ACLSHIM_RING_SIZE", "64K").env("ACLSHIM_RING_LIMIT", "64K").run();
    // What is still in the ring: of processes that were killed, or that nobody has drained.
    let rest = aclshim().args(["collect", "--once"]).arg(&output.scratch).output().expect("aclshim collect");
    assert!(rest.status.success(), "{}", String::from_utf8_lossy(&rest.stderr));
    output
}

/// What a command prints of a run, by process.
#[track_caller]
fn printed(output: &Output, arguments: &[&str]) -> BTreeMap<u64, Vec<Value>> {
    let dir = output.scratch.join("out");
    let printed =
        aclshim().env("ACLSHIM_RING_DIR", &output.scratch).args(arguments).arg(dir).output().expect("aclshim");
    assert!(printed.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&printed.stderr));
    let text = String::from_utf8(printed.stdout).expect("text");
    by_process(text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")))
}

fn by_process(lines: impl Iterator<Item = Value>) -> BTreeMap<u64, Vec<Value>> {
    let mut processes: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for line in lines {
        processes.entry(line["pid"].as_u64().expect("a process")).or_default().push(line);
    }
    processes
}

/// The values of these keys.
fn of(line: &Value, keys: &[&str]) -> Value {
    keys.iter().map(|key| line[*key].clone()).collect()
}

/// What all three say of a call.
const CALL: [&str; 5] = ["function", "code", "nested", "injected", "thread"];
/// What the log and `aclshim log` say, beside the scope. (A stream may get its name when the log has the line of a call on it already.)
const DETAILS: [&str; 2] = ["stream", "site"];
/// What the log and `aclshim findings` say of a finding.
const FINDING: [&str; 15] = [
    "rule", "severity", "function", "argument", "index", "code", "returned", "refused", "on", "thread", "number",
    "site", "module", "offset", "message",
];

/// The calls of a process id, by thread and number: what is said of each. Where it has had several `programs`, one after the
/// other, there is one of each.
#[track_caller]
fn calls(lines: &[Value], programs: usize, what: impl Fn(&Value) -> Value) -> BTreeMap<(u64, u64), Vec<String>> {
    let mut calls: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for line in lines {
        let of_number = calls.entry(call_key(line)).or_default();
        of_number.push(what(line).to_string());
        of_number.sort();
        assert!(of_number.len() <= programs, "a call is named once: {line}");
    }
    calls
}

/// Thread and number of a call.
fn call_key(line: &Value) -> (u64, u64) {
    let number = |key: &str| line[key].as_u64().expect("a number");
    (number("thread"), number("number"))
}

/// How many programs a process id has had.
fn programs(log: &[Value]) -> usize {
    let started = log.iter().filter(|line| line["event"] == "started");
    started.map(|line| line["born_ns"].as_u64()).collect::<BTreeSet<_>>().len()
}

/// The findings of each thread, in order.
fn findings<'a>(lines: impl Iterator<Item = &'a Value>) -> BTreeMap<Option<u64>, Vec<Value>> {
    let mut threads: BTreeMap<_, Vec<Value>> = BTreeMap::new();
    for line in lines {
        threads.entry(line["thread"].as_u64()).or_default().push(of(line, &FINDING));
    }
    threads
}

/// The log's word for the state of a call in an export.
fn state(line: &Value) -> Value {
    match line["state"].as_str().expect("a state") {
        "done" => "returned".into(),
        "in flight" => "open".into(),
        other => other.into(),
    }
}

#[track_caller]
fn compared(output: &Output, what: &str, end: DrainEnd) {
    compared_calls(output, what, end);
    let live = by_process(support::log(&output.scratch.join("out")).into_iter());
    let mut found = printed(output, &["findings", "--json"]);
    let exported = printed(output, &["export", "--format", "jsonl", "-o", "-"]);
    for (pid, log) in live {
        let logged = log.iter().filter(|line| line["event"] == "finding");
        let found = found.remove(&pid).unwrap_or_default();
        match (programs(&log), end) {
            (1, DrainEnd::InOrder) => assert_eq!(findings(logged), findings(found.iter()), "{what}: findings"),
            (_, DrainEnd::InOrder) => assert_eq!(sorted(logged), sorted(found.iter()), "{what}: findings"),
            // What was found is true all the same.
            (_, DrainEnd::MayBeKilled) => {
                let rules: BTreeMap<_, _> =
                    exported[&pid].iter().map(|call| (call_key(call), &call["rules"])).collect();
                for line in logged.filter(|line| line["on"].is_null()) {
                    let of_call = rules.get(&call_key(line)).and_then(|rules| rules.as_array());
                    let is_broken = of_call.is_some_and(|rules| rules.contains(&line["rule"]));
                    assert!(is_broken, "{what}: {line}, and the call breaks {of_call:?}");
                }
            }
        }
    }
    assert!(found.is_empty(), "{what}: {found:?}");
}

fn sorted<'a>(lines: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut lines: Vec<String> = lines.map(|line| of(line, &FINDING).to_string()).collect();
    lines.sort();
    lines
}

#[track_caller]
fn compared_calls(output: &Output, what: &str, end: DrainEnd) {
    let is_call = |line: &Value| line["event"] == "call" || line["event"] == "failed_call";
    let live: BTreeMap<u64, Vec<Value>> = by_process(support::log(&output.scratch.join("out")).into_iter());
    let logged = printed(output, &["log", "--json"]);
    let exported = printed(output, &["export", "--format", "jsonl", "-o", "-"]);
    assert!(!live.is_empty() && live.keys().eq(exported.keys()), "{what}: {live:?}");
    for (pid, live) in live {
        let lines: Vec<Value> = live.iter().filter(|line| is_call(line)).cloned().collect();
        let programs = programs(&live);
        let is_logged = |call: &(u64, u64), of_log: &BTreeMap<(u64, u64), Vec<String>>| {
            end == DrainEnd::InOrder || of_log.contains_key(call)
        };
        let calls = |lines: &[Value], what: &dyn Fn(&Value) -> Value| calls(lines, programs, what);
        let returned = json!("returned");
        let state_of = |line: &Value| line.get("state").unwrap_or(&returned).clone();
        let of_log = calls(&lines, &|line| json!([of(line, &CALL), state_of(line)]));
        let mut of_export = calls(&exported[&pid], &|line| json!([of(line, &CALL), state(line)]));
        of_export.retain(|call, _| is_logged(call, &of_log));
        assert_eq!(of_log, of_export, "{what}: log and export");
        // A scope that another thread has begun is a number in the log while that thread's ring was not read.
        let is_number = |line: &&Value| line["scope"].as_str().is_some_and(|scope| scope.starts_with('#'));
        let unnamed: BTreeSet<_> = lines.iter().filter(is_number).map(call_key).collect();
        let details = |line: &Value| {
            let scope = if unnamed.contains(&call_key(line)) { Value::Null } else { line["scope"].clone() };
            json!([of(line, &CALL), of(line, &DETAILS), scope])
        };
        let of_log = calls(&lines, &details);
        let empty = Vec::new();
        let printed = logged.get(&pid).unwrap_or(&empty).iter().filter(|line| line.get("function").is_some());
        let mut of_command = calls(&printed.cloned().collect::<Vec<_>>(), &details);
        of_command.retain(|call, _| is_logged(call, &of_log));
        assert_eq!(of_log, of_command, "{what}: log and aclshim log");
    }
}

/// Compares what is said of a host of `tests/hosts/`.
#[track_caller]
fn compare(line: &str, end: DrainEnd) {
    let (program, faults) = line.split_once('|').unwrap_or((line, ""));
    let mut words = program.split_whitespace();
    let source = format!("hosts/{}", words.next().expect("a source"));
    let arguments: Vec<&str> = words.collect();
    let program = host(&source);
    for drain in DRAINS {
        let output = ran(program.clone(), &arguments, faults.trim(), drain);
        // A collector that comes afterwards is not killed.
        let end = if drain == "off" { DrainEnd::InOrder } else { end };
        compared(&output, &format!("{line}, {drain}"), end);
        fs::remove_dir_all(&output.scratch).expect("its folder");
    }
}

#[test]
fn of_the_examples_the_log_and_the_commands_say_the_same() {
    let sources = fs::read_dir(support::root().join("c-examples")).expect("the examples");
    let sources = sources.map(|entry| entry.expect("an entry").path());
    let examples: Vec<_> = sources.filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect();
    assert!(examples.len() >= 6, "{examples:?}");
    for example in examples {
        let example = example.file_stem().expect("a name");
        for drain in DRAINS {
            let output = ran(target("c-examples").join(example), &[], "", drain).ok();
            compared(&output, &format!("{example:?}, {drain}"), DrainEnd::InOrder);
        }
    }
}

#[test]
fn of_processes_that_make_others_the_log_and_the_commands_say_the_same() {
    PROCESSES.iter().for_each(|line| compare(line, DrainEnd::InOrder));
}

#[test]
fn of_processes_that_end_in_any_way_the_log_and_the_commands_say_the_same() {
    ENDS.iter().for_each(|line| compare(line, DrainEnd::MayBeKilled));
}

#[test]
fn of_calls_that_break_rules_the_log_and_the_commands_say_the_same() {
    FINDINGS.iter().for_each(|line| compare(line, DrainEnd::InOrder));
}

#[test]
fn of_hosts_that_do_their_worst_the_log_and_the_commands_say_the_same() {
    HOSTS.iter().for_each(|line| compare(line, DrainEnd::InOrder));
}

#[test]
fn of_hosts_that_throw_the_log_and_the_commands_say_the_same() {
    if has("c++", "of_hosts_that_throw_the_log_and_the_commands_say_the_same") {
        HOSTS_CPP.iter().for_each(|line| compare(line, DrainEnd::InOrder));
    }
}

/// A call that was left has a state of its own in the log.
#[test]
fn a_call_that_was_left_is_so_in_the_log() {
    let program = host("hosts/guest_longjmp.c");
    for drain in DRAINS {
        let output = ran(program.clone(), &[], "longjmp@aclrtMemcpy:2,longjmp@aclrtMemcpy:5", drain).ok();
        let states: BTreeMap<String, usize> = output.events("call").iter().fold(BTreeMap::new(), |mut states, line| {
            *states.entry(checking::text(&line["state"]).to_owned()).or_default() += 1;
            states
        });
        assert_eq!(states, [("left".to_owned(), 2), ("returned".to_owned(), 6)].into(), "{drain}");
    }
}

/// What is lost is lost for all: the calls that are there are equal.
#[test]
fn where_calls_are_lost_the_log_and_the_commands_say_the_same_of_the_others() {
    for drain in DRAINS {
        let run = recording::watched(recording::hammer()).arg("3").arg("20000").env("ACLSHIM_CALLS", "json");
        let output =
            run.env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RING_LIMIT", "4K").env("ACLSHIM_DRAIN", drain).run().ok();
        let rest = aclshim().args(["collect", "--once"]).arg(&output.scratch).output().expect("aclshim collect");
        assert!(rest.status.success(), "{}", String::from_utf8_lossy(&rest.stderr));
        let not_recorded = output.stat().total("not_recorded");
        let lost: u64 = output.events("lost").iter().map(|line| line["calls"].as_u64().expect("a number")).sum();
        // Those that were lost last have no line of their own: no later call found room.
        assert!(lost <= not_recorded, "{drain}: {lost} of {not_recorded} lost");
        // How much is lost depends on the drain; without one, all but what the rings hold.
        assert!(not_recorded > 0 || drain != "off");
        // Of the findings of a call site only the first are listed, and which of two threads comes first is not settled.
        compared_calls(&output, &format!("record_hammer, {drain}"), DrainEnd::InOrder);
    }
}
