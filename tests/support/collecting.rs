//! A collector that runs, and what it tells.

use crate::support::{aclshim, has_that, root, until};
use std::collections::BTreeMap;
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

    /// The same by a command that is, or becomes, `aclshim`.
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

    /// Ends it by a signal: with 0, and nothing is left of its socket. What it told last.
    #[track_caller]
    pub fn end(mut self, signal: i32) -> Metrics {
        let status = self.ended(signal);
        assert!(status.success(), "{status:?}: {}", self.errors());
        assert!(!self.folder.join("metrics.sock").exists());
        Metrics::of(&fs::read_to_string(self.folder.join("metrics.prom")).unwrap())
    }

    /// What it answers to a request. It hangs up on whoever is slow, as any of us may be on a busy machine: then once more.
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

    /// What it tells now.
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

/// What was told: each sample by its name and labels.
#[derive(Debug)]
pub struct Metrics {
    /// As it was told.
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
