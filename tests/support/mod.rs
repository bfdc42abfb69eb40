//! What every test needs: the built things, host programs, and a way to run them as a user would.
#![allow(dead_code, unused_imports)] // each test file uses its own part

mod build;

pub use build::{Build, host};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The project's folder.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A path under `target/`, with everything built: the same artefacts that a user gets.
pub fn target(path: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        // Cargo sets variables for a test that would make the inner build look stale.
        let mut make = Command::new("make");
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy().into_owned();
            if text.starts_with("CARGO_PKG")
                || text.starts_with("MAKE")
                || text == "MFLAGS"
                || text == "LD_LIBRARY_PATH"
            {
                make.env_remove(name);
            }
        }
        let built = make.args(["--silent", "build"]).current_dir(root()).stdin(Stdio::null()).output().expect("make");
        assert!(built.status.success(), "make build: {}", String::from_utf8_lossy(&built.stderr));
    });
    root().join("target").join(path)
}

/// The shim.
pub fn shim() -> PathBuf {
    target("release/libaclshim.so")
}

/// The command. It begins with the signals of a shell that has a terminal: one in the background ignores some of them,
/// and so would the tests, the command and its programs.
pub fn aclshim() -> Command {
    let mut command = Command::new(target("release/aclshim"));
    // SAFETY: system calls only.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command
}

/// Limits the memory of a command; it ends where it wants more.
pub fn limited(command: &mut Command, most: u64) -> &mut Command {
    // SAFETY: one system call.
    unsafe {
        command.pre_exec(move || {
            libc::setrlimit(libc::RLIMIT_DATA, &libc::rlimit { rlim_cur: most, rlim_max: most });
            Ok(())
        })
    }
}

/// Lets this process have as many descriptors as it may.
pub fn most_descriptors() {
    // SAFETY: a value of ours, which the system fills and reads.
    unsafe {
        let mut limit = std::mem::zeroed::<libc::rlimit>();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

/// The folder of the simulated device.
pub fn sim() -> PathBuf {
    target("sim")
}

/// An empty folder of this test's own, under `target/`.
pub fn scratch(name: &str) -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = root().join("target/tests").join(format!("{name}-{}-{number}", std::process::id()));
    // Of an earlier process with the same number.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a scratch folder");
    folder
}

/// Writes a program, or a script, that is to be run. By another process: what this one has open for writing is open in
/// every child that another test starts at that moment, and the system runs no file that is open for writing.
#[track_caller]
pub fn runnable(path: &Path, content: &[u8]) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut child = command.spawn().expect("sh");
    child.stdin.take().expect("its input").write_all(content).expect("it reads");
    assert!(child.wait().expect("sh").success(), "{}", path.display());
}

/// One run of a program.
pub struct Run {
    command: Command,
    preload: Vec<PathBuf>,
    library_path: Vec<PathBuf>,
    scratch: PathBuf,
}

/// What a run gave.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it printed as errors.
    pub stderr: String,
    /// The folder that was its `ACLSHIM_DIR` and `ACLSHIM_RING_DIR`.
    pub scratch: PathBuf,
}

impl Run {
    /// A program, with an environment that holds nothing of ours.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let program = program.as_ref();
        let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
        let scratch = scratch(&name[..name.len().min(60)]);
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["ACLSHIM_", "ASCEND", "LD_", "CARGO_", "RUST_"].iter().any(|ours| text.starts_with(ours)) {
                command.env_remove(name);
            }
        }
        command.current_dir(&scratch).stdin(Stdio::null());
        // A hidden folder for the ring: the program's own view of its working directory stays clean.
        command.env("ACLSHIM_RING_DIR", &scratch).env("ACLSHIM_DIR", scratch.join("out"));
        // However little of the machine the drain gets: what is in the files does not hang on that.
        command.env("ACLSHIM_END_WAIT", "60000");
        Self { command, preload: Vec::new(), library_path: Vec::new(), scratch }
    }

    /// An argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// A variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// One more library in front.
    pub fn preload(mut self, library: impl Into<PathBuf>) -> Self {
        self.preload.push(library.into());
        self
    }

    /// With the shim preloaded.
    pub fn shim(self) -> Self {
        let shim = shim();
        self.preload(shim)
    }

    /// One more folder for the loader.
    pub fn library_path(mut self, folder: impl Into<PathBuf>) -> Self {
        self.library_path.push(folder.into());
        self
    }

    /// With the simulated device.
    pub fn sim(self) -> Self {
        let sim = sim();
        self.library_path(sim)
    }

    /// With a standard input that we write to.
    pub fn input(mut self) -> Self {
        self.command.stdin(Stdio::piped());
        self
    }

    /// Starts it and leaves it running.
    pub fn spawn(mut self) -> (std::process::Child, PathBuf) {
        self.prepare();
        let child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a program that starts");
        (child, self.scratch)
    }

    /// Runs it to its end.
    pub fn run(mut self) -> Output {
        self.prepare();
        let output = self.command.output().unwrap_or_else(|error| panic!("{:?}: {error}", self.command));
        Output {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            scratch: self.scratch,
        }
    }

    fn prepare(&mut self) {
        let joined = |paths: &[PathBuf]| std::env::join_paths(paths).expect("paths without a colon");
        if !self.preload.is_empty() {
            self.command.env("LD_PRELOAD", joined(&self.preload));
        }
        if !self.library_path.is_empty() {
            self.command.env("LD_LIBRARY_PATH", joined(&self.library_path));
        }
    }
}

impl Output {
    /// Fails with everything that was printed unless the program ended with 0.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.status.success(), "{:?}\n{}\n{}", self.status, self.stdout, self.stderr);
        self
    }

    /// Exit code or signal, output and errors: what must be the same with and without the shim.
    pub fn seen(&self) -> (Option<i32>, Option<i32>, &str, &str) {
        (self.status.code(), self.status.signal(), &self.stdout, &self.stderr)
    }

    /// What `aclshim stat --json` says of this run.
    #[track_caller]
    pub fn stat(&self) -> Stat {
        Stat::of(&self.scratch.join("out"), &self.scratch)
    }

    /// The lines of the shim's log.
    pub fn log(&self) -> Vec<serde_json::Value> {
        log(&self.scratch.join("out"))
    }

    /// Those of one event.
    pub fn events(&self, event: &str) -> Vec<serde_json::Value> {
        self.log().into_iter().filter(|line| line["event"] == event).collect()
    }
}

/// The lines of all logs in a folder.
pub fn log(dir: &Path) -> Vec<serde_json::Value> {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let logs = files.map(|file| file.path()).filter(|path| path.extension() == Some("jsonl".as_ref()));
    let text: String = logs.map(|path| fs::read_to_string(path).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).expect("one JSON object a line")).collect()
}

/// The answer of `aclshim stat --json`.
#[derive(Debug)]
pub struct Stat(pub serde_json::Value);

impl Stat {
    /// About a directory, or a file, and the rings in a folder.
    #[track_caller]
    pub fn of(dir: &Path, rings: &Path) -> Self {
        Self::asked(dir, rings).unwrap_or_else(|said| panic!("aclshim stat: {said}"))
    }

    /// About a directory or a file, or the error: of a program that has just started there may be nothing to read yet.
    pub fn asked(dir: &Path, rings: &Path) -> Result<Self, String> {
        let output = aclshim().env("ACLSHIM_RING_DIR", rings).args(["stat", "--json"]).arg(dir).output().expect("stat");
        match output.status.success() {
            true => Ok(Self(serde_json::from_slice(&output.stdout).expect("one JSON object"))),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// A total.
    #[track_caller]
    pub fn total(&self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or_else(|| panic!("no number {key} in {}", self.0))
    }

    /// Calls by function.
    pub fn calls(&self) -> BTreeMap<String, u64> {
        let functions = self.0["functions"].as_object().expect("an object");
        functions.iter().map(|(name, of)| (name.clone(), of["calls"].as_u64().expect("a number"))).collect()
    }
}

/// Waits until something is so; what never comes fails the test in the end.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(120), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a command can be had. Where not, the test is skipped by name; in CI that is a failure.
#[track_caller]
pub fn has(tool: &str, test: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", tool]).stdout(Stdio::null()).status();
    has_that(found.is_ok_and(|status| status.success()), tool, test)
}

/// Whether a requirement that is not a command is met; where not, the test is skipped by name, and in CI that is a failure.
#[track_caller]
pub fn has_that(found: bool, what: &str, test: &str) -> bool {
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{test}: {what} is missing, and in CI nothing is skipped");
        let mut list =
            fs::OpenOptions::new().create(true).append(true).open(root().join("target/skipped.txt")).unwrap();
        writeln!(list, "{test}: needs {what}").unwrap();
    }
    found
}
