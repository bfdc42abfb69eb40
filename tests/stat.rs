//! `aclshim stat`: what it adds up is what `aclshim log` shows.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use support::{Output, Run, aclshim, host};

fn log(output: &Output) -> Vec<Value> {
    let mut command = aclshim();
    command.env("ACLSHIM_RING_DIR", &output.scratch).args(["log", "--json"]).arg(output.scratch.join("out"));
    let printed = command.output().expect("log");
    let text = String::from_utf8(printed.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
}

/// What a person sees.
fn table(output: &Output) -> String {
    let text = aclshim().env("ACLSHIM_RING_DIR", &output.scratch).arg("stat").arg(output.scratch.join("out")).output();
    String::from_utf8(text.expect("stat").stdout).expect("text")
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("no number {key} in {of}"))
}

fn sum<'a>(of: impl IntoIterator<Item = &'a Value>, key: &str) -> u64 {
    of.into_iter().map(|of| number(of, key)).sum()
}

fn list<'a>(of: &'a Value, key: &str) -> &'a Vec<Value> {
    of[key].as_array().unwrap_or_else(|| panic!("no list {key} in {of}"))
}

/// A program of three threads that copies, with errors among it.
fn copied() -> Output {
    let run = Run::new("sh").arg("-c").arg("head -c 2 /dev/zero | \"$0\" 3").arg(host("hosts/log_steps.c"));
    run.sim().shim().run().ok()
}

#[test]
fn directions_sizes_sites_and_the_slowest_are_those_of_the_calls() {
    let output = copied();
    let (stat, all) = (output.stat().0, log(&output));
    let is_good = |line: &&Value| line["code"] == 0;
    let good: Vec<_> = all.iter().filter(is_good).collect();

    // Only synchronous calls have a bandwidth, and these all go one way.
    let plain: Vec<&Value> = good.iter().copied().filter(|line| line["stream"].is_null()).collect();
    let directions = stat["directions"].as_object().expect("an object");
    assert_eq!(directions.keys().collect::<Vec<_>>(), ["host to device"]);
    let there = &directions["host to device"];
    assert_eq!(number(there, "calls"), plain.len() as u64);
    assert_eq!(number(there, "bytes"), sum(plain.iter().copied(), "bytes"));
    assert_eq!(number(there, "bytes_per_s"), number(there, "bytes") * 1_000_000_000 / number(there, "ns"));
    let mut least = 0;
    for size in list(there, "sizes") {
        let below = number(size, "below");
        let of_size = plain.iter().filter(|line| (least..below).contains(&number(line, "bytes")));
        assert_eq!(number(size, "calls"), of_size.count() as u64, "below {below}");
        least = below;
    }
    assert_eq!(sum(list(there, "sizes"), "calls"), plain.len() as u64);

    for (name, of) in stat["functions"].as_object().expect("an object") {
        let counts = list(of, "histogram").iter().map(|pair| pair[1].as_u64().expect("a count"));
        assert_eq!(counts.sum::<u64>(), number(of, "calls"), "{name}");
        let [half, most, longest] = ["p50_ns", "p99_ns", "max_ns"].map(|key| number(of, key));
        assert!(0 < half && half <= most && most <= longest, "{name}: {half}, {most}, {longest}");
    }

    let slowest: Vec<_> = list(&stat, "slowest").iter().map(|slow| number(slow, "duration_ns")).collect();
    let mut expected: Vec<_> = all.iter().map(|line| number(line, "duration_ns")).collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(slowest.len(), 5);
    for (slow, expected) in slowest.iter().zip(&expected) {
        // Of a program that ran for a moment only, times are known better with each reading.
        assert!(slow.abs_diff(*expected) <= expected / 100 + 1, "{slow}, {expected}");
    }

    let mut sites: BTreeMap<(String, String), u64> = BTreeMap::new();
    for line in &good {
        let site = format!("{}+{:#x}", line["module"].as_str().expect("a module"), number(line, "offset"));
        *sites.entry((site, line["function"].to_string())).or_default() += 1;
    }
    assert_eq!(list(&stat, "sites").len(), sites.len());
    for site in list(&stat, "sites") {
        // The function and its line stand before it.
        let text = site["site"].as_str().and_then(|text| text.rsplit(' ').next()).expect("text");
        let key = (text.to_owned(), site["function"].to_string());
        assert_eq!(sites.get(&key), Some(&number(site, "calls")), "{site}");
    }
    assert_eq!(number(&stat, "asynchronous"), all.iter().filter(|line| !line["stream"].is_null()).count() as u64);
    let text = table(&output);
    for part in ["aclrtMemcpyAsync", "host to device", "slowest calls", "call sites that took the longest", "DEST-MAX"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn what_cannot_be_known_is_said_to_be_unknown_and_not_to_be_nothing() {
    let run = |case: &str| Run::new(host("hosts/check_one.c")).arg(case).arg("3").sim().shim().run().ok();
    // Calls on a stream: where their memory lies was not tracked, and when their bytes arrived was not seen.
    let output = run("from_host");
    let stat = output.stat().0;
    assert_eq!((number(&stat, "asynchronous"), &stat["pageable"]), (3, &Value::Null));
    let text = table(&output);
    assert!(text.contains("\npageable share: not known (memory is not tracked)\n"), "{text}");
    assert!(text.contains("\nno synchronous call that succeeded: no bandwidth\n"), "{text}");
    // Of others neither is asked.
    let text = table(&run("good"));
    assert!(!text.contains("pageable") && !text.contains("no bandwidth"), "{text}");
}
