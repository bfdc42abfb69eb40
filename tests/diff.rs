//! Two runs compared: by what the calls are, and not by where their memory is.

#[path = "support/keeping.rs"]
mod keeping;
mod support;

use keeping::{answer, command, kept, only};
use serde_json::Value;
use std::fs;
use std::path::Path;
use support::scratch;

fn diff(a: &Path, b: &Path) -> (i32, Value, String) {
    let none = scratch("none");
    let (status, out, err) = answer(command(&none, &["diff", "--json"]).args([a, b]));
    let (same, text, _) = answer(command(&none, &["diff"]).args([a, b]));
    assert_eq!(status, same);
    (status, serde_json::from_str(&out).unwrap_or_default(), text + &err)
}

#[test]
fn two_runs_of_the_same_are_the_same_whatever_their_threads_and_addresses() {
    let [a, b] = [(); 2].map(|()| kept(&["2", "12"]).ok().scratch.join("out"));
    let (status, answer, text) = diff(&a, &b);
    assert_eq!(status, 0, "{text}");
    assert_eq!(answer["calls"]["changed"], serde_json::json!([]));
    assert!(text.contains("The same calls"), "{text}");
    // As many calls, spread over other threads.
    let c = kept(&["4", "6"]).ok().scratch.join("out");
    let (status, _, text) = diff(&a, &c);
    assert_eq!(status, 1, "the sizes come in another mix: {text}");
    let d = kept(&["3", "8"]).ok().scratch.join("out");
    let (status, _, text) = diff(&a, &d);
    assert_eq!(status, 0, "{text}");
}

#[test]
fn new_slow_copies_are_told_first_and_by_their_place() {
    let [a, b] =
        [&["2", "12"][..], &["2", "12", "itself", "3"]].map(|arguments| kept(arguments).ok().scratch.join("out"));
    let (status, answer, text) = diff(&a, &b);
    assert_eq!(status, 1);
    assert!(text.starts_with("B has 3 new slow copies that break SAME-ADDRESS (perf)\n"), "{text}");
    let [new] = &answer["findings"]["new"].as_array().unwrap()[..] else { panic!("{answer}") };
    assert_eq!((&new["rule"], &new["a"], &new["b"]), (&"SAME-ADDRESS".into(), &0.into(), &3.into()));
    assert!(
        new["site"].as_str().unwrap().contains("keep_calls_c") && new["site"].as_str().unwrap().contains("+0x"),
        "{new}"
    );
    assert_eq!(answer["functions"]["aclrtMemcpy"], serde_json::json!({"a": 25, "b": 28}));
    let [group] = &answer["calls"]["new"].as_array().unwrap()[..] else { panic!("{answer}") };
    assert_eq!(
        (&group["direction"], &group["up_to"], &group["b"]["calls"]),
        (&"device to device".into(), &64.into(), &3.into())
    );
    // And the other way round they are gone.
    let (status, answer, text) = diff(&b, &a);
    assert!(status == 1 && text.starts_with("B has 3 fewer slow copies"), "{text}");
    assert_eq!(answer["findings"]["gone"].as_array().unwrap().len(), 1);
    // More of the same is a change.
    let c = kept(&["2", "20"]).ok().scratch.join("out");
    let (status, answer, text) = diff(&a, &c);
    assert!(status == 1 && text.contains("aclrtMemcpy: 25 -> 41 calls"), "{text}");
    assert_eq!(answer["calls"]["changed"].as_array().unwrap().len(), 4, "one for each size: {answer}");
}

#[test]
fn what_cannot_be_read_is_no_difference() {
    let a = kept(&["2", "12"]).ok().scratch.join("out");
    let (status, _, text) = diff(&a, &scratch("empty"));
    assert!(status == 2 && text.contains("no process has recorded"), "{text}");
    let foreign = scratch("foreign").join("a.acltrace");
    fs::write(&foreign, "hello").unwrap();
    assert_eq!(diff(&foreign, &a).0, 2);
    // What is damaged is read as far as it goes, and that is said.
    let trace = only(&a, "acltrace");
    let mut bytes = fs::read(&trace).unwrap();
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    let broken = scratch("broken").join("b.acltrace");
    fs::write(&broken, bytes).unwrap();
    let (_, _, text) = diff(&trace, &broken);
    assert!(text.contains("damaged"), "{text}");
}
