//! One round of `make bench`: the file it writes has its keys, and numbers in them. Nothing about time.

use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// One round, run as a user would, against itself as another build; what was written and what was printed.
fn one_round() -> (Value, String) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let out = root.join("target/bench").join(format!("smoke-{}.json", std::process::id()));
    let mut make = Command::new("make");
    // Cargo and make set variables for a test that would make the inner build look stale.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().into_owned();
        if ["CARGO_PKG", "MAKE", "MFLAGS", "LD_LIBRARY_PATH"].iter().any(|ours| text.starts_with(ours)) {
            make.env_remove(name);
        }
    }
    make.args(["--silent", "bench"]).arg(format!("BENCH=--rounds 1 --against target/release --out {}", out.display()));
    let ran = make.current_dir(&root).stdin(Stdio::null()).output().expect("make");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{printed}{}", String::from_utf8_lossy(&ran.stderr));
    let written = serde_json::from_slice(&std::fs::read(&out).expect("the file")).expect("one JSON object");
    std::fs::remove_file(&out).expect("the file can be removed");
    (written, printed)
}

/// Whether instructions can be counted here; if not, the list of what was skipped says so.
fn has_valgrind() -> bool {
    let found = Command::new("valgrind").arg("--version").output().is_ok();
    if !found {
        let list = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/skipped.txt");
        let mut list = OpenOptions::new().create(true).append(true).open(list).expect("the list");
        writeln!(list, "benches, instructions a call: needs valgrind").expect("one more line");
    }
    found
}

/// Those that run everywhere; the peers need packages that not every machine has.
const ALL: [&str; 8] = ["direct", "tail_jump", "off", "check", "record", "record_drained", "limit", "naive"];

/// Each of `variants` has a number under `key`.
fn numbers(written: &Value, key: &str, variants: &[&str]) {
    for variant in variants {
        assert!(written[key][variant].is_number(), "{key} of {variant}: {}", written[key][variant]);
    }
}

/// Each of `variants` has a number above 0 under `key`.
fn positive(written: &Value, key: &str, variants: &[&str]) {
    for variant in variants {
        let number = written[key][variant].as_f64();
        assert!(number.is_some_and(|number| number > 0.0), "{key} of {variant}: {number:?}");
    }
}

/// What becomes of records: every key has its numbers, and the books balance.
fn keeping(written: &Value, printed: &str) {
    for load in ["paced_8x100k", "paced_1x1m", "bursts_8x16384"] {
        let of = &written["loss"][load]["aclshim"];
        for key in ["runs", "made", "recorded", "ring_kib", "rss_kib"] {
            assert!(of[key].as_f64() > Some(0.0), "{key} of {load}: {of}");
        }
        assert_eq!(of["unknown"], 0, "{load}: {of}");
    }
    for way in ["inside", "run", "collect"] {
        let of = &written["idle"][way];
        assert!(of["wake_ups"].is_number() && of["is_in_stat"] == true, "{way}: {of}");
    }
    for rate in ["1000", "20000", "100000"] {
        let of = &written["busy_percent"][rate];
        assert!(of["inside"].is_number() && of["run"].is_number(), "{rate}: {of}");
    }
    for key in ["drain_ns_a_call", "recorded", "lossless_calls_per_s"] {
        assert!(written["full_speed"][key].as_f64() > Some(0.0), "{key}: {}", written["full_speed"]);
    }
    for key in ["times_direct", "rss_kib_a_thread", "ring_kib_a_thread"] {
        assert!(written["live_threads"][key].as_f64() > Some(0.0), "{key}: {}", written["live_threads"]);
    }
    for heading in ["losses beside busy loops", "an idle process", "% of a processor"] {
        assert!(printed.contains(heading), "{heading} is not in\n{printed}");
    }
}

#[test]
fn one_round_writes_every_key_with_a_number_for_every_variant() {
    let (written, printed) = one_round();

    for key in ["ns", "median_ns", "sustained_ns", "sustained_median_ns", "first_call_us", "first_call_median_us"] {
        positive(&written, key, &ALL);
    }
    if has_valgrind() {
        positive(&written, "instructions", &ALL);
    }
    // Differences, of which one round may bring a negative one.
    for key in ["cold_ns", "cold_median_ns", "startup_us", "startup_median_us", "rss_kib", "rss_per_thread_kib"] {
        numbers(&written, key, &ALL[1..]);
    }
    numbers(&written, "batch_1000_ns_per_item", &["check", "record", "record_items_apart", "record_drained"]);
    positive(&written, "reading", &["stat_s", "bare_s", "stat_calls_per_s", "stat_rss_growth"]);
    for key in ["brought_ns", "partial_ns"] {
        positive(&written, key, &["direct", "off", "record"]);
    }
    positive(&written, "thread_gain", &["direct", "record"]);
    positive(&written, "ring_file_kib_10000_threads", &["record", "record_drained"]);
    positive(&written, "recorded_share", &["record_drained"]);
    for variant in ["direct", "record"] {
        let rates: Vec<_> = written["calls_per_s"][variant].as_array().expect("two rates").iter().collect();
        assert!(rates.len() == 2 && rates.iter().all(|rate| rate.as_f64() > Some(0.0)), "{variant}: {rates:?}");
    }
    for key in ["calls", "not_recorded", "expected", "late_us"] {
        assert!(written["paced_8x100k"][key].is_number(), "{key}: {}", written["paced_8x100k"]);
    }

    keeping(&written["keeping"], &printed);

    for (figure, variant) in [("ns", "off"), ("ns", "record"), ("first_call_us", "record_drained"), ("seconds", "stat")]
    {
        let is_compared = |line: &str| line.split_whitespace().take(2).eq([figure, variant]);
        assert!(
            printed.lines().any(is_compared),
            "{figure} of {variant} is not compared with the other build:\n{printed}"
        );
    }
    positive(&written, "ns", &["off@other", "record@other"]);

    for variant in ALL {
        let rows = printed.lines().filter(|line| line.split_whitespace().next() == Some(variant)).count();
        assert_eq!(rows, 2, "{variant} has a row in each table:\n{printed}");
    }
    let goals = written["goals"].as_array().expect("an array");
    assert!(!goals.is_empty());
    for goal in goals {
        let text = goal["goal"].as_str().expect("a text");
        assert!(goal["bound"].is_number() && goal["at"].is_string(), "{goal}");
        assert!(goal["value"].is_null() == goal["holds"].is_null(), "{goal}");
        assert!(goal["value"].is_null() || goal["value"].is_number() && goal["holds"].is_boolean(), "{goal}");
        assert!(printed.lines().any(|line| line.ends_with(text)), "{text} is not in\n{printed}");
    }
}
