//! A host that makes its calls when it is ordered to.

use super::truth::Truth;
use super::{patterned, watched};
use crate::support::{Output, Run, scratch};
use aclshim_trace::reader::{self, RingFile};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// The host itself.
pub fn steps() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| patterned("hosts/record_steps.c")).clone()
}

/// Leaves the processor to the process that is waited for.
fn rest() {
    std::thread::sleep(std::time::Duration::from_millis(1));
}

/// A host that carries out orders.
pub struct Ordered {
    child: std::process::Child,
    /// Its working directory.
    pub scratch: PathBuf,
    /// The folder that is its `ACLSHIM_RING_DIR`.
    rings: PathBuf,
    orders: fs::File,
    given: u64,
}

impl Ordered {
    /// Starts `program`, which is or becomes [`steps`]; `prepare` is given the pipe that the orders come from.
    pub fn new(prepare: impl FnOnce(Run, &Path) -> Run, program: impl AsRef<OsStr>) -> Self {
        let pipe = scratch("orders").join("pipe");
        let path = std::ffi::CString::new(pipe.as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        // For both, so that opening does not wait for a host that may never come.
        let orders = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let (child, scratch) = prepare(watched(program), &pipe).spawn();
        Self { child, rings: scratch.clone(), scratch, orders, given: 0 }
    }

    /// Has its rings in another folder.
    pub fn with_rings(self, rings: &Path) -> Self {
        Self { rings: rings.to_owned(), ..self }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order and waits until it is done.
    #[track_caller]
    pub fn order(&mut self, line: &str) {
        writeln!(self.orders, "{line}").unwrap();
        self.given += 1;
        while Truth::of(&self.scratch).steps() < self.given {
            assert!(self.child.try_wait().unwrap().is_none(), "the host ended at: {line}");
            rest();
        }
    }

    /// Waits until something can be seen in the ring.
    #[track_caller]
    pub fn until(&mut self, what: &str, is_so: impl Fn(&mut RingFile) -> bool) {
        loop {
            let files = reader::files(&self.rings).unwrap();
            if files.iter().filter_map(|file| RingFile::open(file).ok()).any(|mut ring| is_so(&mut ring)) {
                return;
            }
            // A host that waits too long is ended by its alarm.
            assert!(self.child.try_wait().unwrap().is_none(), "the host ended before {what}");
            rest();
        }
    }

    /// Waits until all is written.
    #[track_caller]
    pub fn until_drained(&mut self) {
        self.until("all was written", |file| {
            let rings = file.look_for_rings();
            rings > 0
                && (0..rings).all(|number| {
                    let ring = file.ring(number).unwrap();
                    let drained = ring.control.drained.load(Ordering::Acquire);
                    drained > 0 && ring.end(drained) == drained
                })
        });
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Has it end.
    #[track_caller]
    pub fn end(self) -> Output {
        self.end_when(|| ())
    }

    /// Gives an order, and does something between the order and its end.
    #[track_caller]
    pub fn end_when(mut self, between: impl FnOnce()) -> Output {
        writeln!(self.orders, "end").unwrap();
        between();
        let output = self.child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let output = Output {
            status: output.status,
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            scratch: self.scratch,
        };
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("done\n", ""));
        output.ok()
    }
}
