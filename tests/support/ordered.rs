//! A program under `aclshim run` that takes orders.
#![allow(dead_code)] // each test file uses its own part

use crate::support::{Output, aclshim, host, scratch};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

pub fn calls(output: &Output) -> u64 {
    output.stat().total("calls")
}

// ---- Signals ----

/// A program under `aclshim run` in a process group of its own, that says a line when it is ready.
pub struct Ordered {
    pub child: Child,
    pub lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    pub program: libc::pid_t,
    pub scratch: PathBuf,
}

impl Ordered {
    pub fn start(arguments: &[&str]) -> Self {
        let scratch = scratch("ordered");
        let mut command = aclshim();
        command.args(["run", "--sim", "--"]).arg(host("hosts/run_signals.c")).args(arguments);
        Self::spawn(&mut command, scratch)
    }

    pub fn spawn(command: &mut Command, scratch: PathBuf) -> Self {
        command.env("ACLSHIM_DIR", scratch.join("out")).env("ACLSHIM_RING_DIR", &scratch).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut ordered = Self { child, lines, program: 0, scratch };
        ordered.program = ordered.line().strip_prefix("ready ").expect("ready").parse().unwrap();
        ordered
    }

    #[track_caller]
    pub fn line(&mut self) -> String {
        self.lines.next().expect("one more line").unwrap()
    }

    pub fn pid(&self) -> libc::pid_t {
        self.child.id() as libc::pid_t
    }

    pub fn send(&self, signal: libc::c_int) {
        // SAFETY: our own child.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Its state now, as its parent sees it.
    pub fn changed(&self) -> libc::c_int {
        let mut status = 0;
        // SAFETY: our own child, and a value of ours.
        assert!(unsafe { libc::waitpid(self.pid(), &mut status, libc::WUNTRACED | libc::WCONTINUED) } > 0);
        status
    }

    pub fn end(mut self) -> (std::process::ExitStatus, String, PathBuf) {
        let rest: Vec<String> = self.lines.map(Result::unwrap).collect();
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        let status = self.child.wait().unwrap();
        assert!(rest.is_empty() || rest == ["got 10"], "{rest:?}");
        (status, errors, self.scratch)
    }
}

/// A terminal: our end, and what a program has of it.
pub fn terminal() -> (fs::File, fs::File) {
    // Not by openpty: programs that other tests start meanwhile would inherit it.
    // SAFETY: two descriptors that are made here, and owned from here on; a buffer of ours.
    unsafe {
        let ours = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        let mut name = [0; 64];
        assert!(libc::grantpt(ours) == 0 && libc::unlockpt(ours) == 0);
        assert_eq!(libc::ptsname_r(ours, name.as_mut_ptr(), name.len()), 0);
        let theirs = libc::open(name.as_ptr(), libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(theirs >= 0);
        (fs::File::from_raw_fd(ours), fs::File::from_raw_fd(theirs))
    }
}

/// The state of a process, as the kernel shows it: T if it is stopped.
pub fn state(pid: libc::pid_t) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}
