//! What `aclshim collect` says of itself and of the processes, in metrics.

#[path = "support/collecting.rs"]
mod collecting;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use aclshim_trace::reader;
use collecting::{Folders, Metrics, as_stat_says, python};
use recording::ordered::steps;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Run, aclshim, root, runnable, scratch, target, until};

#[test]
fn metrics_are_what_stat_says_and_the_official_parsers_read_them() {
    let test = "metrics_are_what_stat_says_and_the_official_parsers_read_them";
    let folders = Folders::new("collect");
    let collector = folders.collector();
    for name in ["linear", "async", "batch", "pitched", "condition", "kv_offload"] {
        let example = Run::new(target("c-examples").join(name)).sim().shim();
        folders.run_outside(example).run().ok();
    }
    folders.until_finished();
    let stat = folders.stat();
    until("all is told", || collector.metrics().sum("aclshim_calls_total", &[]) == stat.total("calls"));
    let metrics = collector.metrics();
    as_stat_says(&[&metrics], &stat);
    for (function, of) in stat.0["functions"].as_object().unwrap() {
        let bytes = metrics.sum("aclshim_copied_bytes_total", &[("function", function)]);
        assert_eq!(bytes, of["bytes"].as_u64().unwrap(), "{function}");
    }
    for (direction, of) in stat.0["directions"].as_object().unwrap() {
        // Of asynchronous ones only the submission is timed: they have no bandwidth. Nor have those that failed.
        let names = stat.0["functions"].as_object().unwrap().keys().filter(|name| !name.contains("Async"));
        let sum = |name| -> u64 {
            names.clone().map(|of| metrics.sum(name, &[("function", of), ("direction", direction)])).sum()
        };
        let [calls, errors, bytes] =
            ["aclshim_calls_total", "aclshim_call_errors_total", "aclshim_copied_bytes_total"].map(sum);
        assert_eq!([calls - errors, bytes], ["calls", "bytes"].map(|key| of[key].as_u64().unwrap()), "{direction}");
    }
    // All kinds of copy that there are, and some that there are not.
    let (mut child, _) = folders.hammer(&["3", "2000"]);
    child.wait().unwrap();
    // One that lives on while they are read, under a name that needs care.
    let odd = scratch("collect").join("a \"quoted\\name");
    runnable(&odd, &fs::read(steps()).unwrap());
    let mut host = folders.host(&odd);
    host.order("calls 100");
    host.until_drained();
    until("only that one is left", || reader::files(&folders.rings).unwrap().len() == 1);
    let stat = folders.stat();
    until("all is told", || collector.metrics().sum("aclshim_calls_total", &[]) == stat.total("calls"));
    let metrics = collector.metrics();
    as_stat_says(&[&metrics], &stat);
    assert!(metrics.text.contains("executable=\"a \\\"quoted\\\\name\""), "{}", metrics.text);
    assert!(metrics.sum("aclshim_findings_total", &[("severity", "error")]) > 0);
    let openmetrics = collector.folder.join("openmetrics.txt");
    fs::write(&openmetrics, &metrics.text).unwrap();
    host.end();
    folders.until_finished();
    let last = collector.end(libc::SIGTERM);
    as_stat_says(&[&last], &folders.stat());
    if let Some(mut python) = python("prometheus_client", test) {
        let read = python.arg(root().join("tests/read_metrics.py")).arg(openmetrics);
        let read = read.arg(folders.metrics.join("metrics.prom")).output().unwrap();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        let found: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
        assert_eq!(found["openmetrics"]["aclshim_calls_total"], stat.total("calls"));
        assert_eq!(found["text"]["aclshim_calls_total"], stat.total("calls"));
    }
}

#[test]
fn a_textfile_is_never_seen_half_written() {
    let folders = Folders::new("collect");
    let collector = folders.collector();
    let (file, seen) = (collector.folder.join("metrics.prom"), AtomicUsize::new(0));
    until("the file is there", || file.exists());
    let (mut reads, mut texts) = (0u64, std::collections::BTreeSet::new());
    std::thread::scope(|scope| {
        let host = scope.spawn(|| {
            for _ in 0..4 {
                let before = seen.load(Ordering::Relaxed);
                folders.hammer(&["2", "3000"]).0.wait().unwrap();
                until("another text is read", || seen.load(Ordering::Relaxed) > before);
            }
        });
        while !host.is_finished() || reads < 100 {
            let metrics = Metrics::of(&fs::read_to_string(&file).unwrap());
            assert!(metrics.text.starts_with("# TYPE aclshim_build_info gauge\n"));
            reads += 1;
            texts.insert(metrics.text);
            seen.store(texts.len(), Ordering::Relaxed);
        }
    });
    assert!(texts.len() >= 4, "{} texts", texts.len());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o644);
    collector.end(libc::SIGTERM);
    let left: Vec<_> = fs::read_dir(&*folders.metrics).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the file and what was said as errors: {left:?}");
}

#[test]
fn the_socket_answers_http_and_nobody_keeps_others_waiting() {
    let folders = Folders::new("collect");
    let collector = folders.collector();
    // A connection without a request.
    let silent = UnixStream::connect(collector.folder.join("metrics.sock")).unwrap();
    assert_eq!(collector.metrics().sum("aclshim_build_info", &[]), 1);
    for (request, begin) in [
        ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n"),
        ("HEAD /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n"),
        ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 405 Method Not Allowed\r\n"),
        ("\u{0}\u{1}\r\n\r\n", "HTTP/1.1 405 Method Not Allowed\r\n"),
    ] {
        let answer = collector.ask(request);
        assert!(answer.starts_with(begin), "{request:?}: {answer}");
    }
    assert!(collector.ask("HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    drop(silent);

    // A second one does not take its folders; one that was killed leaves it to the next.
    let another = || {
        let socket = folders.metrics.join("metrics.sock");
        aclshim().arg("collect").arg("--metrics-socket").arg(socket).arg(&folders.rings).output().unwrap()
    };
    let second = another();
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && said.contains("somebody answers there already"), "{said}");
    collector.kill();
    assert!(folders.metrics.join("metrics.sock").exists());
    folders.collector().end(libc::SIGTERM);
    fs::write(folders.metrics.join("metrics.sock"), "mine").unwrap();
    assert!(!another().status.success());
    assert_eq!(fs::read_to_string(folders.metrics.join("metrics.sock")).unwrap(), "mine");
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let text = fs::read_to_string(root().join("docs/grafana-dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let folders = Folders::new("collect");
    let collector = folders.collector();
    // One call is enough to have all series of calls, and while it lives those of a process.
    let mut host = folders.host(steps());
    host.order("calls 7");
    host.until_drained();
    until("it is told", || collector.metrics().sum("aclshim_calls_total", &[]) == 7);
    let metrics = collector.metrics();
    let names: std::collections::BTreeSet<&str> = metrics.names().collect();
    let labels = ["function", "kind", "direction", "rule", "severity", "pid", "executable", "le"];
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().expect("a query");
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            for word in query.split(|letter| !is_name(letter)).filter(|word| word.starts_with("aclshim_")) {
                let is_finding = word == "aclshim_findings_total" && metrics.text.contains("# TYPE aclshim_findings ");
                assert!(names.contains(word) || is_finding, "{word} is not told: {query}");
                asked += 1;
            }
            for by in query.split("by (").skip(1).filter_map(|rest| rest.split(')').next()) {
                assert!(by.split(", ").all(|label| labels.contains(&label)), "{query}");
            }
        }
    }
    assert!(asked >= 10, "{asked} names");
    host.end();
}
