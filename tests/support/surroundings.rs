//! Hosts in namespaces of their own, and what is written of them.

use crate::collecting::{Collector, Folders};
use crate::recording::ordered::{Ordered, steps};
use crate::support::{Run, aclshim, has_that, scratch, target, until};
use aclshim_trace::reader;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

/// Where a host runs, seen from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Environment {
    /// Where we are.
    Here,
    /// With a boot id of its own, as systemd-nspawn and LXC give one to a container.
    Boot,
    /// In a time namespace: its clocks and start times are shifted.
    Time,
    /// In a pid namespace.
    Pid,
    /// With all three.
    Container,
}

use Environment::{Boot, Container, Here, Pid, Time};

impl Environment {
    pub const ALL: [Self; 5] = [Here, Boot, Time, Pid, Container];

    /// The arguments of `unshare` that lead into it. The last one of a script is the program that is to run there.
    pub fn arguments(self) -> &'static [&'static str] {
        const BOOT: &str = "mount --bind \"$BOOT_ID\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
        // A high pid that no process outside has.
        const CONTAINER: &str = "mount --bind \"$BOOT_ID\" /proc/sys/kernel/random/boot_id && \
                                 echo 32000 >/proc/sys/kernel/ns_last_pid; \"$@\"; exit $?";
        match self {
            Here => &[],
            Boot => &["-rm", "sh", "-c", BOOT, "sh"],
            Time => &["-rT", "--boottime", "100000", "--monotonic", "50000", "--fork", "--kill-child"],
            Pid => &["-rp", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "\"$@\"; exit $?", "sh"],
            Container => &[
                "-rpmT",
                "--boottime",
                "100000",
                "--monotonic",
                "50000",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "sh",
                "-c",
                CONTAINER,
                "sh",
            ],
        }
    }

    /// The program to start for one that is to run there.
    pub fn starter(self, program: &Path) -> PathBuf {
        if self == Here { program.to_owned() } else { "unshare".into() }
    }

    /// The arguments of [`Self::starter`].
    pub fn enter(self, run: Run, program: &Path) -> Run {
        let run = run.env("BOOT_ID", boot_id());
        match self {
            Here => run,
            _ => self.arguments().iter().fold(run, Run::arg).arg(program),
        }
    }

    /// Whether it can be had here.
    #[track_caller]
    pub fn is_there(self, test: &str) -> bool {
        let mut probe = Command::new("unshare");
        probe.args(self.arguments()).arg("true").env("BOOT_ID", boot_id());
        self == Here
            || has_that(
                probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()),
                &format!("unshare {}", self.arguments()[0]),
                test,
            )
    }
}

/// A file with a boot id that no machine has.
pub fn boot_id() -> PathBuf {
    let file = target("tests").join("boot_id");
    if !file.exists() {
        let unfinished = scratch("boot").join("id");
        fs::write(&unfinished, "01234567-89ab-cdef-0123-456789abcdef\n").unwrap();
        fs::rename(unfinished, &file).unwrap();
    }
    file
}

/// What a test of this file does with its folders.
pub trait Environments {
    /// A host in an environment that is drained from outside, if at all.
    fn host_in(&self, environment: Environment) -> Ordered;

    /// The ring files.
    fn ring_files(&self) -> Vec<PathBuf>;

    /// The command about these folders.
    fn command(&self, arguments: &[&str]) -> Output;

    /// What was written is whole, and has `calls` calls made since `begin_ns`.
    fn holds(&self, calls: u64, begin_ns: u64, what: &str);
}

impl Environments for Folders {
    fn host_in(&self, environment: Environment) -> Ordered {
        let run = |run: Run, pipe: &Path| self.run_outside(environment.enter(run, &steps()).arg(pipe));
        Ordered::new(run, environment.starter(&steps())).with_rings(&self.rings)
    }

    fn ring_files(&self) -> Vec<PathBuf> {
        reader::files(&self.rings).unwrap()
    }

    #[track_caller]
    fn command(&self, arguments: &[&str]) -> Output {
        aclshim().env("ACLSHIM_RING_DIR", &self.rings).args(arguments).output().unwrap()
    }

    #[track_caller]
    fn holds(&self, calls: u64, begin_ns: u64, what: &str) {
        let end_ns = now_ns();
        let stat = self.stat();
        assert_eq!((stat.total("calls"), stat.total("not_recorded")), (calls, 0), "{what}");
        // A clock may be off by a little, but not by the offset of a namespace.
        let span = (stat.total("first_ns")..=stat.total("last_ns"), begin_ns - SLACK..=end_ns + SLACK);
        assert!(span.1.contains(span.0.start()) && span.1.contains(span.0.end()), "{what}: {span:?}");
        let verified = self.command(&["verify", self.out.to_str().unwrap()]);
        assert!(verified.status.success(), "{what}: {}", String::from_utf8_lossy(&verified.stdout));
    }
}

/// Nanoseconds that a time may be off.
pub const SLACK: u64 = 100_000_000;

pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Lets a collector look for processes that ended a few times: it does so five times a second, and writes its file of
/// metrics 20 times.
#[track_caller]
pub fn looks(collector: &Collector) {
    let file = collector.folder.join("metrics.prom");
    for _ in 0..12 {
        let inode = || fs::metadata(&file).map_or(0, |about| about.ino());
        let before = inode();
        until("the file is written again", || inode() != before);
    }
}

pub fn kill(process: u32) {
    let process = process as libc::pid_t;
    // SAFETY: our own child, which was not waited for.
    unsafe {
        assert_eq!(libc::kill(process, libc::SIGKILL), 0);
        assert_eq!(libc::waitpid(process, std::ptr::null_mut(), 0), process);
    }
}
