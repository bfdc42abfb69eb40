//! Programs of another user, and on a file system of their own.
#![allow(dead_code)] // each test file uses its own part

use crate::recording::hammer;
use crate::recording::ordered::{Ordered, steps};
use crate::support::{Output, Run, Stat, has_that, scratch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

/// Starts a program, where we are root as another user, to whom files can be refused. The working directory is his.
pub const AS_ANOTHER: &str = "if [ $(id -u) = 0 ]; then chmod 777 . && \
                          exec setpriv --reuid=54321 --regid=54321 --clear-groups -- \"$@\"; fi; exec \"$@\"";

/// Whether that can be done with what is built here.
#[track_caller]
pub fn has_another(test: &str) -> bool {
    let mut probe = Command::new("sh");
    probe.args(["-c", AS_ANOTHER, "sh", "test", "-x"]).arg(hammer()).current_dir(scratch("another"));
    has_that(
        probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()),
        "setpriv, and a path for others",
        test,
    )
}

/// Whether programs of two users can be run: root alone can do that.
#[track_caller]
pub fn has_two_users(test: &str) -> bool {
    // SAFETY: asks for our own number.
    has_that(unsafe { libc::geteuid() } == 0, "root", test) && has_another(test)
}

/// A run of `sh` that becomes `program`.
pub fn as_another(run: Run, program: &Path) -> Run {
    run.arg("-c").arg(AS_ANOTHER).arg("sh").arg(program)
}

/// Starts a program with a disk of the size `SIZE` at `DISK`; what is in its folder `out` at the end is saved in `SAVED`.
const ON_A_DISK: &str = "mount -t tmpfs -o size=$SIZE none \"$DISK\" && \"$@\"; code=$?; \
                         [ ! -d \"$DISK/out\" ] || cp -r \"$DISK/out\" \"$SAVED\"; exit $code";

/// Whether that can be done here.
#[track_caller]
pub fn has_disks(test: &str) -> bool {
    let mut probe = Command::new("unshare");
    probe.args(["-rm", "sh", "-c", ON_A_DISK, "sh", "true"]).env("SIZE", "16k").env("DISK", scratch("disk"));
    has_that(probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()), "a mount namespace", test)
}

/// A run of `unshare` that becomes `program`.
pub fn on_a_disk(run: Run, size: &str, disk: &Path, program: &Path) -> Run {
    let saved = disk.with_extension("saved");
    let run = run.arg("-rm").arg("sh").arg("-c").arg(ON_A_DISK).arg("sh").arg(program);
    run.env("SIZE", size).env("DISK", disk).env("SAVED", saved)
}

/// Puts what was on the disk where the disk was.
fn bring_back(disk: &Path) {
    let saved = disk.with_extension("saved");
    if saved.exists() {
        fs::rename(saved, disk.join("out")).unwrap();
    }
}

/// A host on a disk that is filled to the last byte when 100 of its calls are written.
pub struct FullDisk {
    /// The host.
    pub host: Ordered,
    disk: PathBuf,
}

impl FullDisk {
    /// Starts it; for a test that [`has_disks`].
    #[track_caller]
    pub fn new() -> Self {
        let disk = scratch("disk");
        // A ring that does not grow: what comes while the disk is full does not fit into it.
        let run = |run, pipe: &Path| {
            let run = on_a_disk(run, "1m", &disk, &steps()).arg(pipe).env("ACLSHIM_DIR", disk.join("out"));
            run.env("ACLSHIM_RING_LIMIT", "64K")
        };
        let mut full = Self { host: Ordered::new(run, "unshare"), disk: disk.clone() };
        full.host.order("calls 100");
        full.host.until_drained();
        full.host.order(&format!("fill {}", full.ballast().display()));
        full
    }

    fn ballast(&self) -> PathBuf {
        self.disk.join("ballast")
    }

    /// Makes room as soon as something could not be written, and waits until it is.
    #[track_caller]
    pub fn make_room(&mut self) {
        self.host.until("writing failed", |file| file.header().write_failures.load(Ordering::Relaxed) > 0);
        self.host.order(&format!("remove {}", self.ballast().display()));
        self.host.until_drained();
    }

    /// Has the host end: its output, what is said of it, and where its files are.
    #[track_caller]
    pub fn end(self) -> (Output, Stat, PathBuf) {
        let output = self.host.end();
        bring_back(&self.disk);
        let dir = self.disk.join("out");
        let stat = Stat::of(&dir, &output.scratch);
        (output, stat, dir)
    }
}
