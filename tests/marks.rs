//! Marks, names and scopes of a program: in the record, and in everything that reads it.

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use support::{Output, Run, aclshim, host};

const HARM: &str = "\u{1b}[2J</script><b>\"harm\"</b>\n,'=1+1\u{fffd}";

fn run(what: &[&str], settings: impl FnOnce(Run) -> Run) -> Output {
    let run = what.iter().fold(Run::new(host("hosts/marks_all.c")), |run, word| run.arg(word));
    settings(run.sim().shim()).run()
}

fn command(scratch: &Path, name: &str) -> Command {
    let mut command = aclshim();
    command.env("ACLSHIM_RING_DIR", scratch).arg(name).arg(scratch.join("out"));
    command
}

#[track_caller]
fn printed(command: &mut Command) -> String {
    let output = command.output().expect("aclshim");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn logged(scratch: &Path, arguments: &[&str]) -> Vec<Value> {
    let text = printed(command(scratch, "log").arg("--json").args(arguments));
    text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
}

fn strings(lines: &[Value], event: &str, key: &str) -> Vec<String> {
    let of = lines.iter().filter(|line| line["event"] == event);
    of.map(|line| line[key].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn marks_and_names_stand_in_the_log_between_the_calls_and_can_do_no_harm() {
    for drain in ["inside", "off"] {
        let output = run(&["names"], |run| run.env("ACLSHIM_DRAIN", drain)).ok();
        assert_eq!(output.stdout, "0 -1 -1 -1\n");
        let lines = logged(&output.scratch, &[]);
        let cut = "x".repeat(256);
        assert_eq!(strings(&lines, "mark", "text"), ["begin", HARM, &cut], "{drain}");
        assert_eq!(strings(&lines, "name", "name"), ["copies", "weights", "", ""]);
        let calls: Vec<_> = lines.iter().filter(|line| line["event"].is_null()).collect();
        let told: Vec<_> = calls
            .iter()
            .map(|call| (call["bytes"].as_u64().unwrap(), &call["stream_name"], &call["buffers"]["dst"]))
            .collect();
        let [none, copies, at] = [Value::Null, "copies".into(), "weights+0x80".into()];
        assert_eq!(
            told,
            [
                (64, &copies, &none), // its first name, although that came later
                (64, &none, &none),
                (256, &none, &at),
                (128, &copies, &none),
                (512, &none, &none),
                (512, &none, &none),
            ],
            "{drain}"
        );
        let order: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap_or("call")).collect();
        let expected = "call call mark name name call call mark mark name name call call";
        assert_eq!(order.join(" "), expected, "{drain}");
        let text = printed(&mut command(&output.scratch, "log"));
        assert_eq!(text.lines().count(), lines.len());
        assert!(!text.contains('\u{1b}') && text.contains("-- mark: \\u{1b}[2J</script><b>\"harm\"</b>\\n,'=1+1"));
        assert!(text.contains("(dst=weights+0x80, ") && text.contains(", stream=copies)"), "{text}");
        // Only what is asked for, and nothing else between it.
        assert_eq!(logged(&output.scratch, &["--stream-name", "copies"]).len(), 2);
        assert_eq!(logged(&output.scratch, &["--larger", "512"]).len(), 2);
    }
}

#[test]
fn the_json_log_tells_them_too() {
    let output = run(&["names"], |run| run.env("ACLSHIM_CALLS", "json")).ok();
    let said: Vec<_> = output.events("mark").iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect();
    assert_eq!(said[..2], ["begin", HARM]);
    let kinds: Vec<_> = output.events("name").iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds, ["stream", "buffer", "buffer", "stream"]);
    let streams: Vec<_> = output.events("call").iter().map(|line| line["stream_name"].clone()).collect();
    assert_eq!(streams.iter().filter(|name| **name == "copies").count(), 1, "{streams:?}");
}

#[test]
fn calls_are_known_by_the_scope_that_was_open_on_whatever_thread() {
    for drain in ["inside", "off"] {
        let output = run(&["scopes"], |run| run.env("ACLSHIM_DRAIN", drain)).ok();
        assert_eq!(output.stdout, "0 1\n");
        let lines = logged(&output.scratch, &[]);
        let of: Vec<_> = lines
            .iter()
            .filter(|line| line["event"].is_null())
            .map(|line| (line["bytes"].as_u64().unwrap(), line["scope"].as_str().unwrap_or("")))
            .collect();
        let expected =
            [(64, ""), (128, "prefill"), (1024, "prefill"), (256, "layer <7>"), (512, ""), (2048, "prefill")];
        assert_eq!(of, expected, "{drain}");
        assert_eq!(strings(&lines, "scope", "scope"), ["prefill", "layer <7>", "prefill"]);
        assert_eq!(strings(&lines, "scope_end", "scope"), ["layer <7>", "prefill", "prefill"]);
        let sizes = |pattern: &str| -> Vec<u64> {
            let lines = logged(&output.scratch, &["--scope", pattern]);
            lines.iter().filter_map(|line| line["bytes"].as_u64()).collect()
        };
        assert_eq!(sizes("prefill"), [128, 1024, 256, 2048], "with what lies within");
        assert_eq!(sizes("layer*"), [256]);
        let within = logged(&output.scratch, &["--scope", "layer*"]);
        assert_eq!(strings(&within, "mark", "text"), ["within"]);
        let stat = output.stat();
        let prefill = &stat.0["scopes"]["prefill"];
        let sums = ["scopes", "calls", "bytes", "errors", "failures"].map(|key| prefill[key].as_u64().unwrap());
        assert_eq!(sums, [2, 3, 3200, 0, 1], "{prefill}");
        assert!(prefill["p50_ns"].as_u64() > Some(0) && stat.0["scopes"]["layer <7>"]["calls"] == 1);
        let table = printed(&mut command(&output.scratch, "stat"));
        let row = table.lines().find(|line| line.starts_with("prefill")).expect("a row");
        assert!(row.contains("3.1 KiB") && row.ends_with("1 failed expectations"), "{row}");
    }
}

#[test]
fn exports_have_names_and_marks() {
    let output = run(&["names"], |run| run).ok();
    let export = |format: &str| {
        let mut command = command(&output.scratch, "export");
        printed(command.args(["--format", format, "-o", "-"]))
    };
    let rows: Vec<Value> = export("jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 6, "a table of calls");
    assert_eq!((&rows[2]["dst_name"], &rows[3]["stream_name"]), (&"weights".into(), &"copies".into()));
    let chrome: Value = serde_json::from_str(&export("chrome")).expect("JSON");
    let events = chrome["traceEvents"].as_array().unwrap();
    let marks: Vec<_> = events.iter().filter(|event| event["cat"] == "mark").collect();
    assert!(marks.len() == 3 && marks.iter().all(|mark| mark["ph"] == "i") && marks[1]["name"] == HARM, "{marks:?}");
    let lines: Vec<_> = events.iter().filter_map(|event| event["args"]["name"].as_str()).collect();
    assert!(lines.iter().any(|line| line.starts_with("stream copies (0x")), "{lines:?}");
    let csv = export("csv");
    assert!(csv.contains(",copies,") && csv.contains(",weights,"), "{csv}");
    for format in ["perfetto", "parquet"] {
        let to = output.scratch.join(format);
        printed(command(&output.scratch, "export").args(["--format", format, "-o"]).arg(&to));
        if format == "perfetto" {
            let bytes = std::fs::read(&to).unwrap();
            let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(has("begin") && has(HARM) && has("stream copies (0x"));
        }
    }
}

#[test]
fn exports_have_the_scopes_of_all_threads() {
    let output = run(&["scopes"], |run| run).ok();
    let export = |format: &str| printed(command(&output.scratch, "export").args(["--format", format, "-o", "-"]));
    let rows: Vec<Value> = export("jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let scopes: Vec<_> = rows.iter().map(|row| row["scope"].as_str().unwrap_or("")).collect();
    assert_eq!(scopes, ["", "prefill", "prefill", "layer <7>", "", "prefill"]);
    let chrome: Value = serde_json::from_str(&export("chrome")).expect("JSON");
    let of = |phase: &str| -> Vec<&Value> {
        let events = chrome["traceEvents"].as_array().unwrap().iter();
        events.filter(|event| event["cat"] == "scope" && event["ph"] == phase).collect()
    };
    let (begins, ends) = (of("b"), of("e"));
    let names: Vec<_> = begins.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["prefill", "layer <7>", "prefill"]);
    assert!(ends.len() == 3 && begins.iter().all(|begin| ends.iter().any(|end| end["id"] == begin["id"])));
    assert_eq!(ends[2]["args"]["failures"], 1);
    let to = output.scratch.join("lake");
    printed(command(&output.scratch, "export").args(["--format", "parquet", "-o"]).arg(&to));
    let perfetto = output.scratch.join("perfetto");
    printed(command(&output.scratch, "export").args(["--format", "perfetto", "-o"]).arg(&perfetto));
    let bytes = std::fs::read(perfetto).unwrap();
    assert!(bytes.windows(9).any(|part| part == b"layer <7>"));
    let page = printed(command(&output.scratch, "report").args(["-o", "-"]));
    assert!(page.contains("\"kind\":\"scope\",\"text\":\"layer \\u003c7\\u003e\",\"failures\":0"), "in the list");
    assert!(page.contains("\"scopes\":[\"\",\"prefill\",\"layer \\u003c7\\u003e\",\"prefill\"]"), "at the calls");
}

#[test]
fn what_was_merged_still_has_its_scopes() {
    let outputs = [0, 1].map(|_| run(&["scopes"], |run| run).ok());
    let to = outputs[0].scratch.join("merged");
    let from = outputs.iter().map(|output| output.scratch.join("out"));
    printed(aclshim().arg("merge").args(from).arg("--out").arg(&to));
    let stat = support::Stat::of(&to, &to);
    let sums = ["scopes", "calls", "bytes", "failures"].map(|key| stat.0["scopes"]["prefill"][key].as_u64().unwrap());
    assert_eq!(sums, [4, 6, 6400, 2], "those of one name together: {}", stat.0["scopes"]);
}

#[test]
fn a_report_holds_them_and_cannot_be_broken_out_of() {
    let output = run(&["names"], |run| run).ok();
    let page = printed(command(&output.scratch, "report").args(["-o", "-"]));
    assert!(page.contains("copies (stream 0x") && page.contains("\"kind\":\"mark\",\"text\":\"begin\""));
    assert!(page.contains("\\u001b[2J\\u003c/script\\u003e\\u003cb\\u003e") && !page.contains("</script><b>"));
}

#[test]
fn marks_of_many_threads_are_all_there_in_their_order_and_whole() {
    let (threads, each) = (4, 300);
    let words = ["threads", &threads.to_string(), &each.to_string()];
    let output = run(&words, |run| {
        run.env("ACLSHIM_RECORD", "lossless").env("ACLSHIM_RING_SIZE", "256K").env("ACLSHIM_RING_LIMIT", "256K")
    })
    .ok();
    let lines = logged(&output.scratch, &[]);
    let mut next = vec![0; threads];
    for text in strings(&lines, "mark", "text") {
        let (thread, rest) = text.split_once('/').expect(&text);
        let (mark, dots) = rest.split_once(' ').expect(&text);
        let (thread, mark): (usize, usize) = (thread.parse().unwrap(), mark.parse().unwrap());
        assert_eq!((mark, dots), (next[thread], &*".".repeat(mark % 80)), "thread {thread}");
        next[thread] += 1;
    }
    assert_eq!(next, vec![each; threads]);
    let calls = lines.iter().filter(|line| line["event"].is_null()).count();
    assert_eq!(calls, threads * each + 1, "with that of the main thread");
    let verified = command(&output.scratch, "verify").output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[test]
fn what_finds_no_room_is_counted_and_said() {
    let settings = |run: Run| run.env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RING_LIMIT", "4K");
    let output = run(&["full"], |run| settings(run).env("ACLSHIM_DRAIN", "off")).ok();
    assert_eq!(output.stdout, "100 0\n");
    let stat = output.stat();
    let not = stat.total("notes_lost");
    let taken = 100 - not;
    assert!(taken > 20 && not > 20 && stat.total("not_recorded") == 0, "{taken} {not}");
    let log = command(&output.scratch, "log").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&log.stdout).matches("-- mark: ").count() as u64, taken);
    let said = format!("aclshim: {not} marks, scopes or names were told and not recorded");
    assert!(String::from_utf8_lossy(&log.stderr).contains(&said), "{log:?}");
    // Copies of the ring say the same.
    let merged = output.scratch.join("merged");
    printed(
        aclshim()
            .env("ACLSHIM_RING_DIR", &output.scratch)
            .arg("merge")
            .arg(output.scratch.join("out"))
            .arg("-o")
            .arg(&merged),
    );
    assert_eq!(support::Stat::of(&merged, &merged).total("notes_lost"), not);
    let to = output.scratch.join("kept");
    printed(aclshim().args(["recover", "--out"]).arg(&to).arg(&output.scratch));
    let recovered = support::Stat::of(&to, &to);
    assert_eq!(recovered.total("notes_lost"), not);
}

#[test]
fn a_child_tells_for_itself_and_a_kill_loses_nothing() {
    let output = run(&["fork"], |run| run).ok();
    let lines = logged(&output.scratch, &[]);
    let mut marks = strings(&lines, "mark", "text");
    marks.sort();
    assert_eq!(marks, ["child", "parent", "parent again"]);
    let pid = |text: &str| lines.iter().find(|line| line["text"] == text).unwrap()["pid"].clone();
    assert!(pid("child") != pid("parent") && pid("parent") == pid("parent again"));
    let output = run(&["kill"], |run| run);
    let marks = strings(&logged(&output.scratch, &[]), "mark", "text");
    assert_eq!(marks.len(), 2);
    assert!(marks[1].ends_with("of the ring"), "{marks:?}");
}

#[test]
fn where_nothing_is_recorded_a_mark_is_none() {
    for setting in ["ACLSHIM_RECORD", "ACLSHIM_MODE"] {
        let output = run(&["names"], |run| run.env(setting, "off")).ok();
        assert!(output.stdout.starts_with("0 "), "{}", output.stdout);
        assert!(!output.scratch.join("out").exists(), "{setting}");
    }
}
