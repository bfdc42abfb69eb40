//! A collector that runs, the folders it works on, and its metrics.
#![allow(dead_code)] // each test file uses its own part

use crate::recording::ordered::Ordered;
use crate::recording::{hammer, watched};
use crate::support::{Run, Stat, aclshim, has_that, root, scratch, until};
use aclshim_trace::reader;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// An empty folder whose path is short, wherever the project lies: a socket's may have no more than 107 bytes. Gone at
/// the end.
pub struct Short(PathBuf);

impl Short {
    /// A new one.
    pub fn new() -> Self {
        let mut path = *b"/tmp/aclshim-XXXXXX\0";
        // SAFETY: a C string of ours, which is written to.
        assert!(!unsafe { libc::mkdtemp(path.as_mut_ptr().cast()) }.is_null(), "a folder in /tmp");
        Self(str::from_utf8(&path[..path.len() - 1]).unwrap().into())
    }
}

impl std::ops::Deref for Short {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Short {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Folders for a test of what drains rings: one for the rings, one for what is written, one for a collector's metrics.
pub struct Folders {
    /// The `ACLSHIM_RING_DIR` of all programs.
    pub rings: PathBuf,
    /// Their `ACLSHIM_DIR`.
    pub out: PathBuf,
    /// Where the collector has its socket and its file of metrics.
    pub metrics: Short,
}

impl Folders {
    /// New ones, below a scratch folder of this name.
    pub fn new(name: &str) -> Self {
        let folder = scratch(name);
        let [rings, out] = ["rings", "out"].map(|name| folder.join(name));
        fs::create_dir(&rings).unwrap();
        Self { rings, out, metrics: Short::new() }
    }

    /// A collector that drains the rings.
    pub fn collector(&self) -> Collector {
        Collector::new(&self.rings, &self.metrics).ready()
    }

    /// A run whose rings and files are here.
    pub fn run(&self, run: Run) -> Run {
        run.env("ACLSHIM_RING_DIR", &self.rings).env("ACLSHIM_DIR", &self.out)
    }

    /// A run that is drained from outside, if at all.
    pub fn run_outside(&self, run: Run) -> Run {
        self.run(run).env("ACLSHIM_DRAIN", "outside")
    }

    /// Threads that call at full speed.
    pub fn hammer(&self, arguments: &[&str]) -> (Child, PathBuf) {
        let run = self.run_outside(watched(hammer())).env("ACLSHIM_RECORD", "lossless");
        arguments.iter().fold(run, |run, argument| run.arg(argument)).spawn()
    }

    /// A host that calls when it is ordered to.
    pub fn host(&self, program: impl AsRef<OsStr>) -> Ordered {
        Ordered::new(|run, pipe| self.run_outside(run).arg(pipe), program).with_rings(&self.rings)
    }

    /// What `aclshim stat` says of all that is here.
    #[track_caller]
    pub fn stat(&self) -> Stat {
        Stat::of(&self.out, &self.rings)
    }

    /// Waits until nothing is left of the processes that ended.
    #[track_caller]
    pub fn until_finished(&self) {
        // One that was killed while it made its file has left nothing in it; it is removed later.
        let is_written = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.iter().take(8).all(|byte| *byte == 0));
        until("all rings are written and removed", || reader::files(&self.rings).unwrap().iter().all(is_written));
    }
}

/// An `aclshim collect` that runs.
pub struct Collector {
    child: Child,
    /// Where its socket and its file are.
    pub folder: PathBuf,
}

impl Collector {
    /// Drains `rings`; its socket and its file of metrics are in `folder`, where there may be those of an earlier one.
    pub fn new(rings: &Path, folder: &Path) -> Self {
        Self::with(aclshim(), rings, folder)
    }

    /// Starts a collector by a command that is, or becomes, `aclshim`.
    pub fn with(mut command: Command, rings: &Path, folder: &Path) -> Self {
        command.arg("collect").arg("--metrics-socket").arg(folder.join("metrics.sock"));
        command.arg("--metrics-file").arg(folder.join("metrics.prom")).args(["--metrics-interval", "0.05"]).arg(rings);
        let errors = fs::OpenOptions::new().create(true).append(true).open(folder.join("errors")).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap();
        Self { child, folder: folder.to_owned() }
    }

    /// Its process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Its worker for the first user.
    #[track_caller]
    pub fn worker(&self) -> i32 {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid())).unwrap();
        children.split_whitespace().next().expect("a worker").parse().unwrap()
    }

    /// Waits until it answers: from then on it sees what comes.
    #[track_caller]
    pub fn ready(mut self) -> Self {
        until("the collector answers", || {
            assert!(self.child.try_wait().unwrap().is_none(), "the collector ended: {}", self.errors());
            UnixStream::connect(self.folder.join("metrics.sock")).is_ok()
        });
        self
    }

    /// What it says as errors.
    pub fn errors(&self) -> String {
        fs::read_to_string(self.folder.join("errors")).unwrap()
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// How it ends by a signal.
    pub fn ended(&mut self, signal: i32) -> ExitStatus {
        // SAFETY: our own child, which was not waited for.
        unsafe { libc::kill(self.pid(), signal) };
        self.child.wait().unwrap()
    }

    /// Ends it by a signal: with 0, and nothing is left of its socket. Its last metrics.
    #[track_caller]
    pub fn end(mut self, signal: i32) -> Metrics {
        let status = self.ended(signal);
        assert!(status.success(), "{status:?}: {}", self.errors());
        assert!(!self.folder.join("metrics.sock").exists());
        Metrics::of(&fs::read_to_string(self.folder.join("metrics.prom")).unwrap())
    }

    /// What it answers to a request. It hangs up on a slow client, as a test may be on a busy machine: then the request is repeated.
    #[track_caller]
    pub fn ask(&self, request: &str) -> String {
        let mut answer = String::new();
        until("the collector answers", || {
            let mut stream = UnixStream::connect(self.folder.join("metrics.sock")).unwrap();
            answer.clear();
            let asked = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
            asked.is_ok() && !answer.is_empty()
        });
        answer
    }

    /// Its metrics now.
    #[track_caller]
    pub fn metrics(&self) -> Metrics {
        let answer = self.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
        assert!(head.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
        Metrics::of(body)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Metrics: each sample by its name and labels.
#[derive(Debug)]
pub struct Metrics {
    /// The text as it was read.
    pub text: String,
    samples: BTreeMap<String, f64>,
}

impl Metrics {
    /// As it stands in a text, which must be whole.
    #[track_caller]
    pub fn of(text: &str) -> Self {
        assert!(text.ends_with("\n# EOF\n"), "{text}");
        let mut samples = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            let before = samples.insert(name.to_owned(), value.parse().expect("a number"));
            assert!(before.is_none(), "twice: {name}");
        }
        Self { text: text.to_owned(), samples }
    }

    /// The sum of all samples of a name that have these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let is_one = |sample: &str| {
            let (found, rest) = sample.split_once('{').unwrap_or((sample, ""));
            found == name && labels.iter().all(|(label, value)| rest.contains(&format!("{label}=\"{value}\"")))
        };
        self.samples.iter().filter(|(sample, _)| is_one(sample)).map(|(_, value)| *value as u64).sum()
    }

    /// Names of samples.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().map(|sample| sample.split('{').next().unwrap())
    }
}

/// The Python that the packages of `tests/requirements.txt` are installed for, if `package` is.
#[track_caller]
pub fn python(package: &str, test: &str) -> Option<Command> {
    let python = root().join("target/python/bin/python3");
    let mut probe = Command::new(&python);
    probe.args(["-c", &format!("import {package}")]).stderr(Stdio::null());
    has_that(probe.status().is_ok_and(|status| status.success()), package, test).then(|| Command::new(python))
}

/// The counters of calls add up to what `aclshim stat` says.
#[track_caller]
pub fn as_stat_says(metrics: &[&Metrics], stat: &Stat) {
    let sum =
        |name: &str, labels: &[(&str, &str)]| metrics.iter().map(|metrics| metrics.sum(name, labels)).sum::<u64>();
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

/// The ring file of a process that has ended, with 100 calls and one ring, for a test to damage.
pub fn leftover(out: &Path) -> Vec<u8> {
    let run = watched(hammer()).arg("1").arg("100").env("ACLSHIM_DRAIN", "off").env("ACLSHIM_DIR", out);
    let output = run.run().ok();
    let [ring] = &reader::files(&output.scratch).unwrap()[..] else { panic!("one ring") };
    fs::read(ring).unwrap()
}
