//! A worker as its supervisor sees it: started with its user's rights, and read through its pipes.

use super::diagnostics::{self, report};
use super::metrics::{Metrics, WorkerReport};
use super::real_user::RealUser;
use super::system::never_wait;
use super::user_rights::{done, groups, run_as};
use crate::files::own_user;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The longest line of a worker.
const LONGEST: usize = 16 << 20;
/// The longest line that a worker may complain in.
const LONGEST_COMPLAINT: usize = 4096;
/// Maximum number of reads from a worker in one turn: a worker that never stops must not block the others.
const READS: usize = 64;

/// Which worker is to be started.
pub struct StartRequest<'a> {
    /// The folder of the rings.
    pub folder: &'a Path,
    /// Whether it ends when everything that is there now has been written.
    pub once: bool,
    pub user: u32,
    /// The group of the user's ring.
    pub group: u32,
    /// The real user that limits apply to.
    pub owner: RealUser,
}

/// A running worker of one user.
pub struct WorkerProcess {
    pub child: Child,
    /// The real user that limits apply to.
    pub owner: RealUser,
    /// The incomplete last line of its standard output.
    line: Vec<u8>,
    /// The incomplete last line of its standard error.
    complaint: Vec<u8>,
}

/// Whether more may come from a worker.
#[derive(PartialEq, Eq)]
pub enum PipeState {
    Something,
    End,
}

impl WorkerProcess {
    /// Starts the worker of a user; `group` is that of the user's ring.
    pub fn start(request: &StartRequest<'_>) -> io::Result<Self> {
        let StartRequest { folder, once, user, group, owner } = *request;
        // Not by its path: that may be another version by now, or out of the user's reach.
        let mut command = Command::new("/proc/self/exe");
        command.args(["collect", "--worker"]).args(once.then_some("--once")).arg("--").arg(folder);
        // The environment of the supervisor is not passed on to users.
        command.arg0("aclshim").env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let groups = (own_user() == 0 && user != 0).then(|| groups(folder, user, group));
        if groups.is_some() || diagnostics::has_files() {
            command.stderr(Stdio::piped());
        }
        if let Some(groups) = groups {
            run_as(&mut command, user, groups);
        }
        // SAFETY: system calls only.
        unsafe {
            let parent = libc::getpid();
            command.pre_exec(move || {
                // After a change of user: it would be forgotten otherwise.
                done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
                if libc::getppid() == parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
            });
        }
        let child = command.spawn()?;
        child.stdout.iter().for_each(|pipe| never_wait(pipe.as_raw_fd()));
        child.stderr.iter().for_each(|pipe| never_wait(pipe.as_raw_fd()));
        Ok(Self { child, owner, line: Vec::new(), complaint: Vec::new() })
    }

    /// The pipes from its standard output and standard error.
    pub fn pipes(&self) -> Vec<BorrowedFd<'_>> {
        let Child { stdout, stderr, .. } = &self.child;
        stdout.iter().map(AsFd::as_fd).chain(stderr.iter().map(AsFd::as_fd)).collect()
    }

    /// Passes on what it complains of, line by line. [`report`] takes out what a terminal would act on.
    pub fn relay(&mut self) {
        let Some(pipe) = &mut self.child.stderr else { return };
        let mut buffer = [0; LONGEST_COMPLAINT];
        let mut is_over = false;
        for _ in 0..READS {
            match pipe.read(&mut buffer) {
                Ok(0) => is_over = true,
                Ok(read) => self.complaint.extend(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => is_over = true,
            }
            while let Some(end) = self.complaint.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.complaint.drain(..=end).collect();
                report(format_args!("{}", String::from_utf8_lossy(&line[..end])));
            }
            if self.complaint.len() > LONGEST_COMPLAINT || is_over && !self.complaint.is_empty() {
                let line = std::mem::take(&mut self.complaint);
                report(format_args!("{}", String::from_utf8_lossy(&line)));
            }
            if is_over {
                // Otherwise it would always be ready to be read.
                self.child.stderr = None;
                return;
            }
        }
    }

    /// Reads its reports.
    pub fn read(&mut self, user: u32, metrics: &Mutex<Metrics>) -> PipeState {
        self.relay();
        let Some(pipe) = &mut self.child.stdout else { return PipeState::End };
        let mut buffer = [0; 16 * 1024];
        for _ in 0..READS {
            let read = match pipe.read(&mut buffer) {
                Ok(0) => return PipeState::End,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return PipeState::Something,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return PipeState::End,
            };
            self.line.extend(&buffer[..read]);
            if self.line.len() > LONGEST {
                return PipeState::End;
            }
            if let Some(end) = self.line.iter().rposition(|&byte| byte == b'\n') {
                let newest = self.line[..end].rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
                if let Ok(report) = serde_json::from_slice::<WorkerReport>(newest) {
                    metrics.lock().unwrap_or_else(PoisonError::into_inner).workers.insert(user, report);
                }
                self.line.drain(..=end);
            }
        }
        PipeState::Something
    }
}
