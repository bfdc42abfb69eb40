//! `aclshim collect`: one service for all processes of a machine, and what it tells of them.

#[path = "support/collecting.rs"]
mod collecting;
#[path = "support/places.rs"]
mod places;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use aclshim_trace::reader::{self, RingFile};
use aclshim_trace::ring::layout::{Control, HEADER, Header};
use collecting::{Collector, Metrics, Short, python};
use places::{AS_ANOTHER, has_another};
use recording::balance::balanced_at_any_end;
use recording::ordered::{Ordered, steps};
use recording::truth::Truth;
use recording::{hammer, traces, watched};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Output, Run, Stat, aclshim, has, has_that, root, runnable, scratch, target, until};

/// A folder with one for rings, one for what is written and one for what the collector tells.
struct Place {
    rings: PathBuf,
    out: PathBuf,
    told: Short,
}

impl Place {
    fn new() -> Self {
        let folder = scratch("collect");
        let [rings, out] = ["rings", "out"].map(|name| folder.join(name));
        fs::create_dir(&rings).unwrap();
        Self { rings, out, told: Short::new() }
    }

    fn collector(&self) -> Collector {
        Collector::new(&self.rings, &self.told).ready()
    }

    /// A run that is drained here.
    fn run(&self, run: Run) -> Run {
        run.env("ACLSHIM_RING_DIR", &self.rings).env("ACLSHIM_DIR", &self.out).env("ACLSHIM_DRAIN", "outside")
    }

    /// Threads that call at full speed.
    fn hammer(&self, arguments: &[&str]) -> (Child, PathBuf) {
        let run = self.run(watched(hammer())).env("ACLSHIM_RECORD", "lossless");
        arguments.iter().fold(run, |run, argument| run.arg(argument)).spawn()
    }

    /// One that calls when it is told to.
    fn host(&self, program: impl AsRef<std::ffi::OsStr>) -> Ordered {
        Ordered::new(|run, pipe| self.run(run).arg(pipe), program).with_rings(&self.rings)
    }

    fn stat(&self) -> Stat {
        Stat::of(&self.out, &self.rings)
    }

    /// Waits until nothing is left of the processes that ended.
    #[track_caller]
    fn until_finished(&self) {
        // One that was killed while it made its file has left nothing in it; it is removed later.
        let is_written = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.iter().take(8).all(|byte| *byte == 0));
        until("all rings are written and removed", || reader::files(&self.rings).unwrap().iter().all(is_written));
    }
}

/// The counters of calls add up to what `aclshim stat` says.
#[track_caller]
fn as_stat_says(metrics: &[&Metrics], stat: &Stat) {
    let sum = |name: &str, labels: &[(&str, &str)]| metrics.iter().map(|told| told.sum(name, labels)).sum::<u64>();
    for (key, name) in [
        ("calls", "aclshim_calls_total"),
        ("nested", "aclshim_nested_calls_total"),
        ("errors", "aclshim_call_errors_total"),
        ("not_recorded", "aclshim_calls_not_recorded_total"),
        ("overwritten", "aclshim_slots_overwritten_total"),
        ("evicted", "aclshim_calls_evicted_total"),
    ] {
        assert_eq!(sum(name, &[]), stat.total(key), "{key}");
    }
    for (function, of) in stat.0["functions"].as_object().unwrap() {
        let labels = [("function", function.as_str())];
        for (key, name) in [("calls", "aclshim_calls_total"), ("errors", "aclshim_call_errors_total")] {
            assert_eq!(sum(name, &labels), of[key].as_u64().unwrap(), "{key} of {function}");
        }
        let timed = sum("aclshim_call_duration_seconds_count", &labels);
        assert_eq!(timed, of["calls"].as_u64().unwrap() - stat.total("in_flight"), "durations of {function}");
    }
    for (rule, found) in stat.0["findings"].as_object().unwrap() {
        assert_eq!(sum("aclshim_findings_total", &[("rule", rule)]), found.as_u64().unwrap(), "{rule}");
    }
}

// ---- Many processes, and what ends ----

#[test]
fn many_processes_at_once_are_drained_by_one_collector_and_the_totals_are_exact() {
    let place = Place::new();
    let collector = place.collector();
    let spin = (0..8).map(|at| (1000u64 << (2 * at)).to_string()).collect::<Vec<_>>();
    let mut ending: Vec<_> = (0..12).map(|_| place.hammer(&["2", "3000"])).collect();
    let mut killing: Vec<_> = spin.iter().map(|spin| place.hammer(&["2", "0", spin])).collect();
    let mut killed: Vec<_> = (0..4).map(|_| place.hammer(&["1", "0"])).collect();
    for (child, folder) in &mut killed {
        until("it has called", || Truth::of(folder).ended() > 2000);
        child.kill().unwrap();
    }
    let [mut begun, mut ended] = [0; 2];
    for (child, folder) in ending.iter_mut().chain(&mut killing).chain(&mut killed) {
        child.wait().unwrap();
        let truth = Truth::of(folder);
        begun += truth.begun();
        // A call that came while another thread made the file is counted there with its thread's next one.
        ended += truth.lanes().map(|lane| lane.ended).filter(|ended| *ended > 1).sum::<u64>();
    }
    place.until_finished();
    let metrics = collector.end(libc::SIGTERM);
    let stat = place.stat();
    assert!((16..=24).contains(&stat.total("processes")), "but for those that were killed at their first calls");
    let sum = stat.total("calls") + stat.total("not_recorded");
    // Of each thread that was killed one call may be under way, and be recorded or not yet.
    assert!((ended..=begun).contains(&sum) && begun - ended <= 40, "{ended} <= {sum} <= {begun}");
    assert_eq!(metrics.sum("aclshim_calls_total", &[]), stat.total("calls"));
    assert_eq!(metrics.sum("aclshim_calls_not_recorded_total", &[]), stat.total("not_recorded"));
    assert_eq!(metrics.sum("aclshim_processes", &[]), 0);
    assert_eq!(metrics.sum("aclshim_worker_failures_total", &[]), 0);
    assert!(!metrics.text.contains("pid="), "those of processes that are gone are not told");
}

/// How many slots of the rings in a folder have been given back.
fn given_back(rings: &Path) -> u64 {
    let files = reader::files(rings).unwrap();
    let of = |mut file: RingFile| -> u64 {
        let rings = (0..file.look_for_rings()).filter_map(|number| file.ring(number));
        rings.map(|ring| ring.control.drained.load(Ordering::Acquire)).sum()
    };
    files.iter().filter_map(|file| RingFile::open(file).ok()).map(of).sum()
}

#[test]
fn a_collector_that_is_killed_again_and_again_loses_nothing_and_doubles_nothing() {
    for seed in 1..=3u64 {
        let told = Short::new();
        let run = watched(hammer()).arg("3").arg("0").env("ACLSHIM_DRAIN", "outside");
        let (child, folder) = run.env("ACLSHIM_RECORD", "lossless").env("ACLSHIM_RING_SIZE", "16K").spawn();
        let mut random = seed;
        for _ in 0..8 {
            let before = given_back(&folder);
            let collector = Collector::new(&folder, &told);
            // However slow the machine is: one that never came to drain would have the host wait at every call.
            until("it drains", || given_back(&folder) != before);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            std::thread::sleep(std::time::Duration::from_micros(random % 20_000));
            collector.kill();
        }
        // SAFETY: our own child, which was not waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGUSR1) }, 0);
        let collector = Collector::new(&folder, &told).ready();
        let output = child.wait_with_output().unwrap();
        until("all is written", || reader::files(&folder).unwrap().is_empty());
        collector.end(libc::SIGTERM);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        let output = Output { status: output.status, stdout, stderr, scratch: folder }.ok();
        let found = balanced_at_any_end(&output);
        assert!(traces(&output.scratch.join("out")).len() >= 2, "{found:?}");
        recording::done(output);
    }
}

#[test]
fn two_collectors_at_once_share_the_work_and_one_takes_over_from_the_other() {
    let place = Place::new();
    let first = place.collector();
    let told = Short::new();
    let second = Collector::new(&place.rings, &told).ready();
    let mut hosts: Vec<_> = (0..8).map(|_| place.hammer(&["2", "2000"])).collect();
    let mut calls = 0;
    for (child, folder) in &mut hosts {
        child.wait().unwrap();
        calls += Truth::of(folder).begun();
    }
    place.until_finished();
    // One that lives on: whoever has it is ended, and then the other has it.
    let mut host = place.host(steps());
    host.order("calls 100");
    host.until_drained();
    let first = first.end(libc::SIGINT);
    host.order("calls 100");
    host.until_drained();
    host.end();
    place.until_finished();
    let second = second.end(libc::SIGTERM);
    let stat = place.stat();
    assert_eq!(stat.total("calls") + stat.total("not_recorded"), calls + 200);
    as_stat_says(&[&first, &second], &stat);
}

#[test]
fn what_is_in_a_ring_is_written_when_the_collector_is_told_to_end() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let place = Place::new();
        let mut host = place.host(steps());
        host.order("calls 100");
        let collector = place.collector();
        host.until_drained();
        host.order("calls 100");
        let metrics = collector.end(signal);
        assert_eq!(metrics.sum("aclshim_calls_total", &[]), 200, "signal {signal}");
        host.until_drained();
        assert_eq!(place.stat().total("calls"), 200);
        host.end();
    }
}

#[test]
fn a_worker_that_does_not_end_is_killed_and_that_is_said() {
    let place = Place::new();
    let mut host = place.host(steps());
    host.order("calls 100");
    let mut collector = place.collector();
    host.until_drained();
    // SAFETY: the only child of our own child.
    assert_eq!(unsafe { libc::kill(collector.worker(), libc::SIGSTOP) }, 0);
    assert_eq!(collector.ended(libc::SIGTERM).code(), Some(1));
    let errors = collector.errors();
    assert!(
        errors.contains("did not end within 10 s and was killed") && errors.contains("aclshim recover"),
        "{errors}"
    );
    host.end();
    assert_eq!(place.stat().total("calls"), 100);
}

// ---- Other namespaces ----

#[test]
fn a_process_of_another_pid_namespace_is_not_declared_dead_while_it_lives_and_finished_when_it_is_gone() {
    let test = "a_process_of_another_pid_namespace_is_not_declared_dead_while_it_lives_and_finished_when_it_is_gone";
    let probe = Command::new("unshare").args(["-r", "--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    if !has_that(probe.is_ok_and(|status| status.success()), "a pid namespace", test) {
        return;
    }
    let place = Place::new();
    let collector = place.collector();
    let run = |run: Run, pipe: &Path| {
        let run = run.arg("-r").arg("--pid").arg("--fork").arg("--kill-child").arg(steps()).arg(pipe);
        place.run(run)
    };
    let mut host = Ordered::new(run, "unshare").with_rings(&place.rings);
    for _ in 0..3 {
        host.order("calls 100");
        host.until_drained();
        let [ring] = &reader::files(&place.rings).unwrap()[..] else { panic!("one ring") };
        let name = ring.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("aclshim-1-"), "{name}: it is the first of its namespace");
        // The file is written some 20 times a second, processes that ended are looked for five times.
        let file = collector.folder.join("metrics.prom");
        for _ in 0..20 {
            let inode = || fs::metadata(&file).map_or(0, |about| about.ino());
            let before = inode();
            until("the file is written again", || inode() != before);
        }
        assert!(ring.exists());
        assert_eq!(collector.metrics().sum("aclshim_processes", &[]), 1);
    }
    host.end();
    place.until_finished();
    let metrics = collector.end(libc::SIGTERM);
    let stat = place.stat();
    assert_eq!((stat.total("calls"), stat.total("not_recorded")), (300, 0));
    as_stat_says(&[&metrics], &stat);
    let lines = support::log(&place.out);
    assert_eq!(lines.iter().filter(|line| line["event"] == "stopped").count(), 1, "{lines:?}");
}

#[test]
fn a_process_is_not_declared_dead_by_a_proc_of_another_pid_namespace() {
    let test = "a_process_is_not_declared_dead_by_a_proc_of_another_pid_namespace";
    let probe = Command::new("unshare").args(["-r", "--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    if !has_that(probe.is_ok_and(|status| status.success()), "a pid namespace", test) {
        return;
    }
    let place = Place::new();
    let file = place.told.join("metrics.prom");
    // Both in one namespace, where the host is the first process; under /proc that is another, which began long ago.
    let shell = "\"$1\" collect --metrics-file \"$2\" --metrics-interval 0.05 \"$3\" </dev/null >/dev/null & exec \"$4\" \"$5\"";
    let run = |run: Run, pipe: &Path| {
        let run = ["-r", "--pid", "--fork", "--kill-child", "sh", "-c", shell, "sh"].iter().fold(run, Run::arg);
        place.run(run.arg(target("release/aclshim")).arg(&file).arg(&place.rings).arg(steps()).arg(pipe))
    };
    let mut host = Ordered::new(run, "unshare").with_rings(&place.rings);
    for _ in 0..2 {
        host.order("calls 100");
        host.until_drained();
        let [ring] = &reader::files(&place.rings).unwrap()[..] else { panic!("one ring") };
        assert!(ring.file_name().unwrap().to_str().unwrap().starts_with("aclshim-1-"), "{ring:?}");
        // The file is written some 20 times a second, processes that ended are looked for five times.
        for _ in 0..20 {
            let inode = || fs::metadata(&file).map_or(0, |about| about.ino());
            let before = inode();
            until("the file is written again", || inode() != before);
        }
        assert!(ring.exists());
    }
    host.end();
    assert_eq!(place.stat().total("calls"), 200);
}

// ---- Metrics ----

#[test]
fn metrics_are_what_stat_says_and_the_official_parsers_read_them() {
    let test = "metrics_are_what_stat_says_and_the_official_parsers_read_them";
    let place = Place::new();
    let collector = place.collector();
    for name in ["linear", "async", "batch", "pitched", "condition", "kv_offload"] {
        let example = Run::new(target("c-examples").join(name)).sim().shim();
        place.run(example).run().ok();
    }
    place.until_finished();
    let stat = place.stat();
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
    let (mut child, _) = place.hammer(&["3", "2000"]);
    child.wait().unwrap();
    // One that lives on while they are read, under a name that needs care.
    let odd = scratch("collect").join("a \"quoted\\name");
    runnable(&odd, &fs::read(steps()).unwrap());
    let mut host = place.host(&odd);
    host.order("calls 100");
    host.until_drained();
    until("only that one is left", || reader::files(&place.rings).unwrap().len() == 1);
    let stat = place.stat();
    until("all is told", || collector.metrics().sum("aclshim_calls_total", &[]) == stat.total("calls"));
    let metrics = collector.metrics();
    as_stat_says(&[&metrics], &stat);
    assert!(metrics.text.contains("executable=\"a \\\"quoted\\\\name\""), "{}", metrics.text);
    assert!(metrics.sum("aclshim_findings_total", &[("severity", "error")]) > 0);
    let openmetrics = collector.folder.join("openmetrics.txt");
    fs::write(&openmetrics, &metrics.text).unwrap();
    host.end();
    place.until_finished();
    let last = collector.end(libc::SIGTERM);
    as_stat_says(&[&last], &place.stat());
    if let Some(mut python) = python("prometheus_client", test) {
        let read = python.arg(root().join("tests/read_metrics.py")).arg(openmetrics);
        let read = read.arg(place.told.join("metrics.prom")).output().unwrap();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        let found: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
        assert_eq!(found["openmetrics"]["aclshim_calls_total"], stat.total("calls"));
        assert_eq!(found["text"]["aclshim_calls_total"], stat.total("calls"));
    }
}

#[test]
fn a_textfile_is_never_seen_half_written() {
    let place = Place::new();
    let collector = place.collector();
    let (file, seen) = (collector.folder.join("metrics.prom"), AtomicUsize::new(0));
    until("the file is there", || file.exists());
    let (mut reads, mut texts) = (0u64, std::collections::BTreeSet::new());
    std::thread::scope(|scope| {
        let host = scope.spawn(|| {
            for _ in 0..4 {
                let before = seen.load(Ordering::Relaxed);
                place.hammer(&["2", "3000"]).0.wait().unwrap();
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
    let left: Vec<_> = fs::read_dir(&*place.told).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the file and what was said as errors: {left:?}");
}

#[test]
fn the_socket_answers_while_thousands_of_connections_ask_for_nothing_or_read_nothing() {
    let place = Place::new();
    let collector = place.collector();
    let socket = collector.folder.join("metrics.sock");
    support::most_descriptors();
    let connect = || UnixStream::connect(&socket).unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let kinds: [&[u8]; 3] = [b"", b"GET /metr", request];
    for begin in kinds {
        // What it sends may find the connection closed again.
        let open = |_| {
            let mut stream = connect();
            let _ = stream.write_all(begin);
            stream
        };
        let half_open: Vec<UnixStream> = (0..2000).map(open).collect();
        // Once, and not again and again until it is answered.
        let mut answer = String::new();
        let mut stream = connect();
        stream.write_all(request).unwrap();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{begin:?}: {answer}");
        drop(half_open);
    }
    collector.end(libc::SIGTERM);
}

#[test]
fn the_socket_answers_http_and_nobody_keeps_others_waiting() {
    let place = Place::new();
    let collector = place.collector();
    // Somebody who asks for nothing.
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

    // A second one does not take its place; one that was killed leaves it to the next.
    let another = || {
        let socket = place.told.join("metrics.sock");
        aclshim().arg("collect").arg("--metrics-socket").arg(socket).arg(&place.rings).output().unwrap()
    };
    let second = another();
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && said.contains("somebody answers there already"), "{said}");
    collector.kill();
    assert!(place.told.join("metrics.sock").exists());
    place.collector().end(libc::SIGTERM);
    fs::write(place.told.join("metrics.sock"), "mine").unwrap();
    assert!(!another().status.success());
    assert_eq!(fs::read_to_string(place.told.join("metrics.sock")).unwrap(), "mine");
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let text = fs::read_to_string(root().join("docs/grafana-dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let place = Place::new();
    let collector = place.collector();
    // One call is enough to have all series of calls, and while it lives those of a process.
    let mut host = place.host(steps());
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

// ---- What others put there ----

/// The ring file of a process that has ended, with 100 calls and one ring, for somebody to spoil.
fn leftover(out: &Path) -> Vec<u8> {
    let run = watched(hammer()).arg("1").arg("100").env("ACLSHIM_DRAIN", "off").env("ACLSHIM_DIR", out);
    let output = run.run().ok();
    let [ring] = &reader::files(&output.scratch).unwrap()[..] else { panic!("one ring") };
    fs::read(ring).unwrap()
}

/// A copy with one word changed, and its process another one, so that none has the name of another.
fn spoiled(ring: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut copy = ring.to_vec();
    copy[at..at + value.len()].copy_from_slice(value);
    copy
}

#[test]
fn what_is_no_ring_or_a_spoiled_one_does_no_harm() {
    let place = Place::new();
    let elsewhere = scratch("collect");
    let ring = leftover(&elsewhere.join("out"));
    let out = elsewhere.join("living");
    let run = |run: Run, pipe: &Path| run.arg(pipe).env("ACLSHIM_DRAIN", "off").env("ACLSHIM_DIR", &out);
    let mut host = Ordered::new(run, steps());
    host.order("calls 100");
    let living_ring = fs::read(&reader::files(&host.scratch).unwrap()[0]).unwrap();
    let first = u64::from_le_bytes(*ring[offset_of!(Header, first)..].first_chunk().unwrap()) as usize;
    let put = |number: u64, bytes: &[u8]| {
        let path = place.rings.join(format!("aclshim-{}-{number:x}.ring", 4_000_000 + number));
        fs::write(&path, bytes).unwrap();
        path
    };
    let long = [u8::MAX; 8];
    let mut kept = vec![
        put(1, b""),
        put(2, b"garbage"),
        put(3, &vec![7; 100_000]),
        put(4, &ring[..1000]),
        put(5, &spoiled(&ring, offset_of!(Header, version), &99u32.to_le_bytes())),
        put(6, &spoiled(&ring, offset_of!(Header, slots), &3u32.to_le_bytes())),
        put(7, &spoiled(&ring, offset_of!(Header, slots), &long[..4])),
        put(8, &spoiled(&ring, offset_of!(Header, stride), &[0; 8])),
    ];
    // These can be read, more or less: of a process that is gone, and of one that lives.
    let changes = [
        (offset_of!(Header, rings), &long[..4]),
        (offset_of!(Header, first), &long[..]),
        (offset_of!(Header, stride), &long[..]),
        (offset_of!(Header, functions), &long[..4]),
        (offset_of!(Header, calls), &long[..4]),
        (offset_of!(Header, clock), &long[..4]),
        (offset_of!(Header, pid), &[0; 4][..]),
        (offset_of!(Header, pid), &long[..4]),
        (offset_of!(Header, pid_ns), &long[..]),
        (offset_of!(Header, ticks_hz), &[1, 0, 0, 0, 0, 0, 0, 0][..]),
        (offset_of!(Header, born_ns), &long[..]),
        (offset_of!(Header, segment), &[0; 8][..]),
        (offset_of!(Header, budget), &[0; 8][..]),
        (offset_of!(Header, executable), &[0xff; 1024][..]),
        (offset_of!(Header, dir), &[b'/'; 4096][..]),
        (offset_of!(Header, dir), b"relative\0"),
        (offset_of!(Header, pattern), b"../../up\0"),
        (first + offset_of!(Control, drained), &long[..]),
        (first + offset_of!(Control, drained), &[0, 0, 0, 0, 1, 0, 0, 0][..]),
        (first + offset_of!(Control, since), &long[..]),
        (first + offset_of!(Control, not_recorded), &long[..]),
        (first + 4096, &long[..]),
    ];
    let mut in_use = Vec::new();
    for (number, (at, value)) in changes.iter().enumerate() {
        put(100 + number as u64, &spoiled(&ring, *at, value));
        // A copy that is in use, as that of a living process is.
        let living = put(400 + number as u64, &spoiled(&living_ring, *at, value));
        in_use.push(fs::OpenOptions::new().write(true).open(living).unwrap());
    }
    let mut random = 1u64;
    for number in 0..8 {
        let mut noise = ring.clone();
        for word in noise[first + 4096..].chunks_exact_mut(8) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.copy_from_slice(&(random ^ random >> 29).to_le_bytes());
        }
        put(200 + number, &noise);
    }
    let huge = put(300, &ring);
    fs::OpenOptions::new().write(true).open(huge).unwrap().set_len(1 << 40).unwrap();
    let huge = put(301, &spoiled(&ring, offset_of!(Header, rings), &long[..4]));
    fs::OpenOptions::new().write(true).open(huge).unwrap().set_len(1 << 40).unwrap();
    let name = |number: u64| place.rings.join(format!("aclshim-{number}-1.ring"));
    let fifo = std::ffi::CString::new(name(5_000_001).as_os_str().as_bytes()).unwrap();
    // SAFETY: a C string.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    let target = elsewhere.join("target");
    fs::write(&target, &ring).unwrap();
    symlink(&target, name(5_000_002)).unwrap();
    symlink(elsewhere.join("nowhere"), name(5_000_003)).unwrap();
    fs::create_dir(name(5_000_004)).unwrap();
    kept.extend((5_000_001..=5_000_004).map(name));

    let collector = place.collector();
    let (mut child, folder) = place.hammer(&["2", "2000"]);
    child.wait().unwrap();
    let is_left = |numbers: &[u64]| {
        let left = reader::files(&place.rings).unwrap();
        let of = |number: &u64| place.rings.join(format!("aclshim-{}-{number:x}.ring", 4_000_000 + number));
        let names: Vec<PathBuf> = numbers.iter().map(of).collect();
        left.iter().all(|path| kept.contains(path) || names.contains(path)) && names.iter().all(|path| path.exists())
    };
    // What belongs nowhere stays.
    let [nowhere, living] = [[114, 115], [414, 415]];
    let all: Vec<u64> = nowhere.into_iter().chain(400..400 + changes.len() as u64).collect();
    until("those of the dead are written", || is_left(&all));
    assert!(fs::read_dir(&out).unwrap().count() > 0, "those of the living are read, too");
    host.end();
    drop(in_use);
    until("all that can be written is", || is_left(&[nowhere, living].concat()));
    let metrics = collector.metrics();
    assert_eq!(metrics.sum("aclshim_worker_failures_total", &[]), 0, "{}", collector.errors());
    collector.end(libc::SIGTERM);
    let stat = place.stat();
    assert_eq!(stat.total("calls") + stat.total("not_recorded"), Truth::of(&folder).begun());
    assert!(kept.iter().all(|path| fs::symlink_metadata(path).is_ok()), "what is no ring is left alone");
    assert_eq!(fs::read(&target).unwrap(), ring, "nothing is read through a link");
    assert!(!elsewhere.join("up").exists() && !elsewhere.parent().unwrap().join("up").exists());
}

#[test]
fn once_goes_on_until_nothing_is_left_and_tells_of_it() {
    let place = Place::new();
    for _ in 0..9 {
        assert!(place.hammer(&["1", "100"]).0.wait().unwrap().success());
    }
    assert_eq!(reader::files(&place.rings).unwrap().len(), 9);
    let file = place.told.join("metrics.prom");
    // So few descriptors that not all can be held at a time.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 44; exec \"$@\"", "sh"]).arg(target("release/aclshim"));
    command.args(["collect", "--once", "--metrics-file"]).arg(&file).arg(&place.rings);
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(reader::files(&place.rings).unwrap().len(), 0);
    assert_eq!(place.stat().total("calls"), 900);
    assert_eq!(Metrics::of(&fs::read_to_string(file).unwrap()).sum("aclshim_calls_total", &[]), 900);
}

#[test]
fn a_ring_of_another_format_is_named_once_and_fails_once() {
    let place = Place::new();
    let ring = leftover(&scratch("collect").join("out"));
    let path = place.rings.join("aclshim-4000005-5.ring");
    fs::write(&path, spoiled(&ring, offset_of!(Header, version), &99u32.to_le_bytes())).unwrap();
    let mut command = aclshim();
    command.args(["collect", "--once", "--metrics-file"]).arg(place.told.join("metrics")).arg(&place.rings);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.matches("format version 99").count()), (Some(1), 1), "{said}");
    assert!(said.contains("end in .prom") && said.contains(path.to_str().unwrap()), "{said}");
    assert!(path.exists());
}

#[test]
fn a_ring_that_is_cut_short_while_it_is_read_costs_the_others_nothing() {
    let place = Place::new();
    let mut host = place.host(steps());
    host.order("calls 100");
    // One more of the same process, which so seems to live: somebody has it open.
    let [ring] = &reader::files(&place.rings).unwrap()[..] else { panic!("one ring") };
    let out = scratch("collect").join("out");
    let mut path = [0; 4096];
    path[..out.as_os_str().len()].copy_from_slice(out.as_os_str().as_bytes());
    let copy = spoiled(&fs::read(ring).unwrap(), offset_of!(Header, dir), &path);
    let copied = place.rings.join("aclshim-1-1.ring");
    fs::write(&copied, copy).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&copied).unwrap();
    let collector = place.collector();
    let is_written = |calls| {
        let stat = place.stat();
        stat.total("calls") == calls && stat.0["slots"]["ring"] == 0
    };
    until("both are read", || is_written(100) && out.exists());
    // And told: a worker that dies before it has said what it counted takes that with it.
    until("both are counted", || collector.metrics().sum("aclshim_calls_total", &[]) >= 200);
    file.set_len(HEADER as u64).unwrap();
    until("the worker has met the end of the file", || {
        collector.metrics().sum("aclshim_worker_failures_total", &[]) > 0 && collector.errors().contains("SIGBUS")
    });
    host.order("calls 100");
    until("the rest is read", || is_written(200));
    fs::remove_file(copied).unwrap();
    host.end();
    until("the ring is written and removed", || reader::files(&place.rings).unwrap().is_empty());
    let metrics = collector.end(libc::SIGTERM);
    let stat = place.stat();
    assert_eq!((stat.total("calls"), stat.total("not_recorded")), (200, 0));
    assert!(metrics.sum("aclshim_calls_total", &[]) >= 200, "what was counted before is still counted");
}

// ---- Users ----

/// A program that becomes somebody else's where we are root.
fn as_another(place: &Place, program: &Path) -> Run {
    place.run(watched("sh").arg("-c").arg(AS_ANOTHER).arg("sh").arg(program))
}

/// Whether these tests can be: root alone can be two users.
#[track_caller]
fn has_two_users(test: &str) -> bool {
    // SAFETY: asks for our own number.
    has_that(unsafe { libc::geteuid() } == 0, "root", test) && has_another(test)
}

#[test]
fn root_drains_for_all_and_writes_as_the_owner_of_each_ring() {
    if !has_two_users("root_drains_for_all_and_writes_as_the_owner_of_each_ring") {
        return;
    }
    let place = Place::new();
    for folder in [&place.rings, place.out.parent().unwrap()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    // Where only root may write, also by a link that the user has put there.
    let closed = scratch("collect");
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let link = place.out.with_file_name("link");
    symlink(&closed, &link).unwrap();
    let collector = place.collector();
    let mine = place.hammer(&["1", "1000"]).0.wait().unwrap();
    assert!(mine.success());
    let theirs = place.out.with_file_name("theirs");
    let run = as_another(&place, &hammer()).arg("1").arg("1000").env("ACLSHIM_DIR", &theirs);
    run.env("ACLSHIM_RECORD", "lossless").run().ok();
    place.until_finished();
    for dir in [closed.join("out"), closed.clone(), link] {
        as_another(&place, &hammer()).arg("1").arg("100").env("ACLSHIM_DIR", &dir).run().ok();
    }
    until("it is said that three cannot be written", || {
        collector.errors().matches("cannot be written and stay in the ring").count() == 3
    });
    collector.end(libc::SIGTERM);
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 0, "nothing is written where the user may not");
    assert_eq!(reader::files(&place.rings).unwrap().len(), 3);
    for (dir, owner) in [(&place.out, 0), (&theirs, 54321)] {
        let stat = Stat::of(dir, &place.rings);
        assert_eq!(stat.total("calls") + stat.total("not_recorded"), 1000);
        for file in fs::read_dir(dir).unwrap() {
            let about = file.unwrap().metadata().unwrap();
            assert_eq!((about.uid(), about.gid(), about.mode() & 0o777), (owner, owner, 0o600));
        }
    }
}

#[test]
fn a_worker_for_another_user_has_nothing_of_roots() {
    if !has_two_users("a_worker_for_another_user_has_nothing_of_roots") {
        return;
    }
    let place = Place::new();
    for folder in [&place.rings, place.out.parent().unwrap()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    // With a descriptor that somebody left open.
    let mut command = Command::new("sh");
    command.args(["-c", "exec 9</etc/shadow; exec \"$@\"", "sh"]).arg(target("release/aclshim"));
    let collector = Collector::with(command, &place.rings, &place.told).ready();
    let theirs = place.out.with_file_name("theirs");
    as_another(&place, &hammer()).arg("1").arg("100").env("ACLSHIM_DIR", &theirs).run().ok();
    place.until_finished();
    let worker = collector.worker();
    let fds = PathBuf::from(format!("/proc/{worker}/fd"));
    // SAFETY: asks for a number.
    assert_eq!(unsafe { libc::getsid(worker) }, worker, "its session is its own");
    assert_eq!(fs::metadata(&fds).unwrap().uid(), 0, "its user cannot look into it");
    // It opens and closes files meanwhile.
    let open = fs::read_dir(&fds).unwrap().filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    let open: Vec<String> = open.map(|path| path.display().to_string()).collect();
    assert_eq!(open.iter().filter(|path| path.starts_with("pipe:")).count(), 3, "{open:?}");
    assert!(!open.iter().any(|path| path.contains("shadow") || path.contains("errors")), "{open:?}");
    collector.end(libc::SIGTERM);
}

#[test]
fn a_normal_user_drains_his_own_rings_and_no_others() {
    if !has_two_users("a_normal_user_drains_his_own_rings_and_no_others") {
        return;
    }
    let place = Place::new();
    for folder in [&*place.rings, &*place.told, place.out.parent().unwrap()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    }
    // Root's, which everybody may read and write, and which asks for files where the user may write.
    let ring = leftover(&place.told.join("traces"));
    let roots = place.rings.join("aclshim-4000001-1.ring");
    fs::write(&roots, ring).unwrap();
    fs::set_permissions(&roots, PermissionsExt::from_mode(0o666)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=54321", "--regid=54321", "--clear-groups", "--"]).arg(target("release/aclshim"));
    let collector = Collector::with(command, &place.rings, &place.told).ready();
    let run = as_another(&place, &hammer()).arg("1").arg("1000").env("ACLSHIM_RECORD", "lossless");
    run.run().ok();
    until("his own is written", || reader::files(&place.rings).unwrap().len() == 1);
    let metrics = collector.end(libc::SIGTERM);
    let stat = place.stat();
    assert_eq!(stat.total("calls") + stat.total("not_recorded"), 1000);
    as_stat_says(&[&metrics], &stat);
    assert!(roots.exists() && !place.told.join("traces").exists());
}

// ---- One user among others ----

/// Ids that no user of a machine has, nor as subordinate ones; the first of a block of 65,536.
const STRANGERS: u32 = 45_000 << 16;

/// Files that are named as rings and are none, and so are never done with, each of another user.
fn false_rings(rings: &Path, users: impl IntoIterator<Item = u32>) {
    for (number, user) in users.into_iter().enumerate() {
        // By name they come before those of real processes.
        let path = rings.join(format!("aclshim-0-{number:x}.ring"));
        fs::write(&path, "no ring").unwrap();
        chown(&path, Some(user), Some(user)).unwrap();
    }
}

/// A program of another user whose calls all fit into its ring: none can be lost if the ring is drained at all.
#[track_caller]
fn is_drained_for_another(place: &Place) {
    let theirs = place.out.with_file_name("theirs");
    as_another(place, &hammer()).arg("1").arg("500").env("ACLSHIM_DIR", &theirs).run().ok();
    let is_theirs = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.uid() == 54321);
    until("his ring is written and removed", || !reader::files(&place.rings).unwrap().iter().any(is_theirs));
    let stat = Stat::of(&theirs, &place.rings);
    assert_eq!((stat.total("calls"), stat.total("not_recorded")), (500, 0));
}

#[test]
fn one_user_with_many_ids_does_not_keep_others_from_being_drained() {
    if !has_two_users("one_user_with_many_ids_does_not_keep_others_from_being_drained") {
        return;
    }
    let place = Place::new();
    for folder in [&place.rings, place.out.parent().unwrap()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    false_rings(&place.rings, STRANGERS..STRANGERS + 300);
    let collector = place.collector();
    is_drained_for_another(&place);
    until("it is told who waits", || collector.metrics().sum("aclshim_users_held_back", &[]) == 268);
    let errors = collector.errors();
    let said: Vec<&str> = errors.lines().filter(|line| line.contains("waits for a worker")).collect();
    assert!(
        said.len() == 1
            && said[0]
                .contains(&format!("unknown users from {STRANGERS} to {} may have 32 at a time", STRANGERS | 0xffff)),
        "{errors}"
    );
    for ring in reader::files(&place.rings).unwrap() {
        fs::remove_file(ring).unwrap();
    }
    until("nobody waits", || collector.metrics().sum("aclshim_users_held_back", &[]) == 0);
    collector.end(libc::SIGTERM);
}

#[test]
fn once_gives_each_user_his_turn_where_there_are_more_than_one_may_have_workers_for() {
    if !has_two_users("once_gives_each_user_his_turn_where_there_are_more_than_one_may_have_workers_for") {
        return;
    }
    let place = Place::new();
    fs::create_dir(&place.out).unwrap();
    for folder in [&place.rings, &place.out] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    let ring = leftover(&place.out);
    for user in STRANGERS..STRANGERS + 40 {
        let path = place.rings.join(format!("aclshim-4000001-{user:x}.ring"));
        fs::write(&path, &ring).unwrap();
        chown(&path, Some(user), Some(user)).unwrap();
    }
    let output = aclshim().args(["collect", "--once"]).arg(&place.rings).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && errors.contains("waits for a worker"), "{errors}");
    assert!(reader::files(&place.rings).unwrap().is_empty());
    assert_eq!(traces(&place.out).len(), 40);
}

#[test]
fn ids_of_a_user_namespace_have_the_limits_of_its_owner() {
    let test = "ids_of_a_user_namespace_have_the_limits_of_its_owner";
    if !has_two_users(test) {
        return;
    }
    let spawn = |mut command: Command| command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().ok();
    let mut owner = Command::new("setpriv");
    owner.args(["--reuid=54321", "--regid=54321", "--clear-groups", "unshare", "--user", "sh", "-c"]);
    owner.arg("echo ready; exec sleep 1000");
    let mut owner = Ended::of(spawn(owner));
    let is_ready = owner.line() == "ready\n";
    let map = |of: &str| fs::write(format!("/proc/{}/{of}", owner.id()), format!("0 {STRANGERS} 300000")).is_ok();
    if !has_that(is_ready && map("uid_map") && map("gid_map"), "a user namespace with many ids", test) {
        return;
    }
    // In five blocks of 65536, eight in each: nothing but their namespace tells that they belong together.
    let users: Vec<u32> = (0..40).map(|number| STRANGERS + number * 7000).collect();
    let processes = users.iter().map(|user| {
        let mut command = Command::new("nsenter");
        let inside = (user - STRANGERS).to_string();
        command.args(["--user", "--target", &owner.id().to_string(), "--setuid", &inside, "--setgid", &inside]);
        command.args(["sh", "-c", "echo ready; exec sleep 1000"]);
        let mut process = Ended::of(spawn(command));
        assert_eq!(process.line(), "ready\n");
        process
    });
    let processes: Vec<Ended> = processes.collect();
    let place = Place::new();
    false_rings(&place.rings, users);
    let collector = place.collector();
    until("some wait", || collector.metrics().sum("aclshim_users_held_back", &[]) == 8);
    let errors = collector.errors();
    assert!(errors.contains("user 54321 may have 32 at a time"), "{errors}");
    collector.end(libc::SIGTERM);
    drop(processes);
}

/// A process that is killed in the end.
struct Ended(Option<Child>);

impl Ended {
    fn of(child: Option<Child>) -> Self {
        Self(child)
    }

    fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    /// A line that it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        if let Some(pipe) = self.0.as_mut().and_then(|child| child.stdout.as_mut()) {
            let _ = BufReader::new(pipe).read_line(&mut line);
        }
        line
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The most files that one process of a collector has looked at between two waits, by the calls that strace saw.
fn most_looks_at_once(calls: &Path) -> usize {
    let (mut looks, mut most) = (BTreeMap::<String, usize>::new(), 0);
    for line in fs::read_to_string(calls).unwrap().lines() {
        let (pid, call) = line.split_once(' ').unwrap_or_default();
        let now = looks.entry(pid.to_owned()).or_default();
        if call.contains("poll(") {
            *now = 0;
        } else if call.contains("aclshim-0-") {
            *now += 1;
            most = most.max(*now);
        }
    }
    most
}

#[test]
fn a_folder_full_of_files_does_not_keep_the_collector_from_its_work() {
    let test = "a_folder_full_of_files_does_not_keep_the_collector_from_its_work";
    if !has_two_users(test) || !has("strace", test) {
        return;
    }
    const FILES: usize = 12_000;
    let place = Place::new();
    for folder in [&place.rings, place.out.parent().unwrap()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    false_rings(&place.rings, std::iter::repeat_n(STRANGERS, FILES));
    let calls = place.told.join("calls");
    // The one that watches is not in between: signals are for the collector.
    let mut command = Command::new("strace");
    command
        .args(["-D", "-f", "--seccomp-bpf", "-qq", "-e", "trace=poll,ppoll,stat,lstat,newfstatat,statx,openat", "-o"])
        .arg(&calls);
    command.arg(target("release/aclshim"));
    let collector = Collector::with(command, &place.rings, &place.told).ready();
    is_drained_for_another(&place);
    until("all files were looked at", || collector.metrics().sum("aclshim_ring_files", &[]) >= FILES as u64);
    until("it is said whose they are", || {
        collector.errors().contains(&format!("user {STRANGERS} has 12000 ring files there"))
    });
    // Under strace an orderly end takes long.
    collector.kill();
    let most = most_looks_at_once(&calls);
    assert!((1..FILES / 2).contains(&most), "{most} files were looked at while rings had to wait");
}
