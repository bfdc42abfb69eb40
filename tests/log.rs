//! `aclshim log`: every call once, in the order in which they began, filtered, and as they come.

mod support;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use support::{Output, Run, Stat, aclshim, host};

const COPIES: usize = 30;

fn log(scratch: &Path) -> Command {
    let mut command = aclshim();
    command.env("ACLSHIM_RING_DIR", scratch).arg("log").arg(scratch.join("out"));
    command
}

#[track_caller]
fn printed(mut command: Command) -> String {
    let output = command.output().expect("log");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn lines(scratch: &Path, arguments: &[&str]) -> Vec<Value> {
    let mut command = log(scratch);
    command.arg("--json").args(arguments);
    printed(command).lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
}

/// A program of three threads, with this number of rounds of copies.
fn steps(rounds: usize, settings: impl FnOnce(Run) -> Run) -> Output {
    fed(&format!("head -c {rounds} /dev/zero"), settings)
}

/// A program of three threads, with a round of copies for each byte that a shell writes.
fn fed(by: &str, settings: impl FnOnce(Run) -> Run) -> Output {
    let run = Run::new("sh").arg("-c").arg(format!("{{ {by}; }} | \"$0\" 3")).arg(host("hosts/log_steps.c"));
    settings(run.sim().shim()).run().ok()
}

#[test]
fn every_call_of_every_thread_is_shown_once_in_the_order_of_time() {
    for drain in ["auto", "off"] {
        let output = steps(2, |run| run.env("ACLSHIM_DRAIN", drain));
        let all = lines(&output.scratch, &[]);
        assert_eq!(all.len(), 2 * 3 * COPIES, "{drain}");
        let times: Vec<_> = all.iter().map(|line| line["time_ns"].as_u64().expect("a time")).collect();
        assert!(times.is_sorted(), "{drain}");
        let named: BTreeSet<_> = all.iter().map(|line| (line["thread"].as_u64(), line["number"].as_u64())).collect();
        assert_eq!(named.len(), all.len(), "{drain}: none is shown twice");
        let stat = output.stat();
        let sum = |key: &str, of: &dyn Fn(&&Value) -> bool| -> u64 {
            all.iter().filter(of).map(|line| line[key].as_u64().expect("a number")).sum()
        };
        assert_eq!(sum("bytes", &|line| line["code"] == 0), stat.total("bytes"), "{drain}");
        assert_eq!(all.iter().filter(|line| line["code"] != 0).count() as u64, stat.total("errors"), "{drain}");
        let mut functions = BTreeMap::new();
        for line in &all {
            *functions.entry(line["function"].as_str().expect("a name").to_owned()).or_insert(0) += 1;
        }
        assert_eq!(functions, stat.calls(), "{drain}");
        let text = printed(log(&output.scratch));
        assert_eq!(text.lines().count(), all.len(), "{drain}");
        for (line, of) in text.lines().zip(&all) {
            let name = of["function"].as_str().expect("a name");
            assert!(line.contains(&format!(" {name}(")) && line.contains(&format!(" = {}", of["code"])), "{line}");
        }
    }
}

/// A filter, and what it is to let through.
type Case = (&'static [&'static str], fn(&Value) -> bool);

const CASES: &[Case] = &[
    (&["--function", "*Async"], |line| line["function"] == "aclrtMemcpyAsync"),
    (&["--function", "aclrtMemcpy"], |line| line["function"] == "aclrtMemcpy"),
    (&["--kind", "device_to_host"], |line| line["kind"] == "DEVICE_TO_HOST"),
    (&["--larger", "1K"], |line| line["bytes"].as_u64() >= Some(1024)),
    (&["--larger", "128", "--smaller", "640"], |line| (128..=640).contains(&line["bytes"].as_u64().unwrap())),
    (&["--code", "107000"], |line| line["code"] == 107_000),
    (&["--code", "ACL_ERROR_RT_PARAM_INVALID"], |line| line["code"] == 107_000),
    (&["--failed"], |line| line["code"] != 0),
    (&["--rule", "dest-max"], |line| line["rules"].as_array().unwrap().contains(&"DEST-MAX".into())),
    (&["--rule", "any", "--function", "*Async"], |line| {
        line["function"] == "aclrtMemcpyAsync" && line["rules"] != Value::Array(Vec::new())
    }),
];

/// Which calls these are. (Of a program that ran for a moment only, times are known better with each reading.)
fn which<'a>(lines: impl IntoIterator<Item = &'a Value>) -> Vec<(u64, u64)> {
    let number = |line: &Value, key: &str| line[key].as_u64().expect("a number");
    lines.into_iter().map(|line| (number(line, "thread"), number(line, "number"))).collect()
}

/// A number between the two neighbours among these that are the farthest apart.
fn gap(lines: &[Value], key: &str) -> u64 {
    let mut numbers: Vec<_> = lines.iter().map(|line| line[key].as_u64().expect("a number")).collect();
    numbers.sort_unstable();
    let pairs = numbers.iter().zip(&numbers[1..]);
    let (low, high) = pairs.max_by_key(|(low, high)| *high - *low).expect("two");
    low.midpoint(*high)
}

#[test]
fn each_filter_lets_through_what_it_says() {
    // There is a time between calls that is longer than two readings of their times may differ.
    let output = fed("printf 1; sleep 0.3; printf 2", |run| run);
    let all = lines(&output.scratch, &[]);
    let shown = |arguments: &[&str]| which(&lines(&output.scratch, arguments));
    for (arguments, takes) in CASES {
        let expected = which(all.iter().filter(|line| takes(line)));
        assert!(!expected.is_empty() && expected.len() < all.len(), "{arguments:?}: {} lines", expected.len());
        assert_eq!(shown(arguments), expected, "{arguments:?}");
    }
    // What is different in each run.
    for key in ["thread", "stream"] {
        let value = all.iter().map(|line| &line[key]).rfind(|value| !value.is_null()).expect("one");
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let expected = which(all.iter().filter(|line| line[key] == *value));
        assert!(expected.len() < all.len());
        assert_eq!(shown(&[&format!("--{key}"), &text]), expected, "{key}");
    }
    for (key, unit, [less, more]) in
        [("time_ns", "", ["--to", "--from"]), ("duration_ns", "ns", ["--shorter", "--longer"])]
    {
        let middle = gap(&all, key);
        let [low, high]: [Vec<_>; 2] = all.iter().partition(|line| line[key].as_u64() < Some(middle)).into();
        let text = format!("{middle}{unit}");
        assert_eq!((shown(&[less, &text]), shown(&[more, &text])), (which(low), which(high)), "{key}");
    }
    let wrong = log(&output.scratch).args(["--rule", "NO-SUCH-RULE"]).output().expect("log");
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("NO-SUCH-RULE: no such rule"));
}

#[test]
fn paths_may_be_given_in_any_order_and_twice() {
    let output = steps(1000, |run| run.env("ACLSHIM_SEGMENT", "1M").env("ACLSHIM_RECORD", "lossless"));
    let out = output.scratch.join("out");
    let mut files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension() == Some("acltrace".as_ref()));
    assert!(files.len() > 10, "{} segments: the tenth comes before the second by name", files.len());
    files.sort();
    let lost = output.stat().total("not_recorded") as usize;
    let all = 1000 * 3 * COPIES - lost;
    for paths in [files.clone(), [files, vec![out.clone()]].concat(), vec![out.clone(), out]] {
        let run = |arguments: &[&str]| {
            let mut command = aclshim();
            command.env("ACLSHIM_RING_DIR", &output.scratch).args(arguments).args(&paths);
            printed(command)
        };
        let stat: Value = serde_json::from_str(&run(&["stat", "--json"])).expect("one JSON object");
        assert_eq!(stat["calls"].as_u64(), Some(all as u64), "{paths:?}");
        assert_eq!(run(&["log"]).lines().count(), all, "{paths:?}");
    }
}

#[test]
fn what_cannot_be_read_is_named_with_the_reason() {
    let folder = support::scratch("unreadable");
    let said = |path: &Path| {
        let output = aclshim().env("ACLSHIM_RING_DIR", &folder).arg("stat").arg(path).output().expect("stat");
        assert!(!output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    assert!(said(&folder.join("nowhere")).contains("nowhere: no such file or directory"));
    assert!(said(&folder).contains("no process has recorded a call here"));
    std::fs::write(folder.join("cut.acltrace"), b"ACLTRACE\x01\0\0\0").expect("a file");
    let text = said(&folder);
    assert!(text.contains("cut.acltrace: cut off"), "{text}");
    let full =
        aclshim().arg("rules").stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap()).output();
    let full = full.expect("rules");
    let text = String::from_utf8_lossy(&full.stderr).into_owned();
    assert!(
        full.status.code() == Some(1)
            && text.starts_with("aclshim: cannot print to stdout")
            && text.lines().count() == 1,
        "{text}"
    );
}

/// What is started and must end with the test, however it ends.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_a_running_program_copies_is_shown_as_it_comes() {
    for drain in ["auto", "off"] {
        let run = Run::new(host("hosts/log_steps.c")).arg("3").sim().shim().env("ACLSHIM_DRAIN", drain).input();
        let (child, scratch) = run.spawn();
        let mut program = Ends(child);
        let mut input = program.0.stdin.take().expect("its input");
        let mut output = program.0.stdout.take().expect("its output");
        let mut command = log(&scratch);
        let mut follow = Ends(command.args(["-f", "--json"]).stdout(Stdio::piped()).spawn().expect("log -f"));
        let lines = BufReader::new(follow.0.stdout.take().expect("its output")).lines();
        // On a thread of its own: a line that never comes fails the test in the end.
        let (send, shown) = mpsc::channel();
        std::thread::spawn(move || lines.into_iter().all(|line| send.send(line).is_ok()));
        let mut all = BTreeSet::new();
        for round in 1..=3 {
            input.write_all(b"x").expect("the program reads");
            output.read_exact(&mut [0]).expect("the program has copied");
            while all.len() < round * 3 * COPIES {
                let line = shown.recv_timeout(Duration::from_secs(120)).expect("log goes on").expect("a line");
                let line: Value = serde_json::from_str(&line).expect("one JSON object a line");
                let is_new = all.insert((line["thread"].as_u64(), line["number"].as_u64()));
                assert!(is_new && line["code"].is_number(), "{drain}, round {round}: {line}");
            }
        }
        drop(input);
        assert!(program.0.wait().expect("the program").success());
        let stat = Stat::of(&scratch.join("out"), &scratch);
        assert_eq!(stat.total("calls"), all.len() as u64, "{drain}");
    }
}
