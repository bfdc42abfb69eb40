//! The supervisor: starts a worker for each user who has rings, and adds up their reports.
//!
//! A normal user has one worker, for the user's own rings. Root has one for each user, and each gives up all rights but its user's
//! before it reads anything: a ring says which files are written, and it is the user's programs that write it.
//! A worker that fails is started again. One that lost its supervisor is ended by the system.

use super::Arguments;
use super::diagnostics::{self, report};
use super::exposition::{self, Socket};
use super::metrics::{Metrics, MetricsFormat, WorkerReport};
use super::real_user::{RealUser, RealUsers};
use super::search::{Round, Search};
use super::system::{most_descriptors, never_wait, signals, wait};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest wait for something to happen.
const WAIT: Duration = Duration::from_secs(1);
/// How long files are looked at before workers are listened to again.
const LOOK: Duration = Duration::from_millis(20);
/// How long the supervisor waits for further files after a new one.
const GATHER: Duration = Duration::from_millis(5);
/// Workers at a time, but for the first one of each real user.
const MOST_WORKERS: usize = 256;
/// Workers at a time in all.
const MOST_USERS: usize = 1024;
/// Workers of one real user, who may have many ids.
const MOST_OF_ONE: usize = 32;
/// With more ring files than this a user is named: new ones are found later because of them.
const MANY_FILES: u64 = 10_000;
/// Memory limit of a worker: the content of a user's rings must not exhaust the machine.
pub const MOST_MEMORY: u64 = 1 << 30;
/// The longest line of a worker.
const LONGEST: usize = 16 << 20;
/// The longest line that a worker may complain in.
const LONGEST_COMPLAINT: usize = 4096;
/// Maximum number of reads from a worker in one turn: a worker that never stops must not block the others.
const READS: usize = 64;
/// How long workers may take to end.
const LAST: Duration = Duration::from_secs(10);
/// The waits before a worker that fails is started again.
const AGAIN: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(60)];

struct WorkerProcess {
    child: Child,
    owner: RealUser,
    /// The incomplete last line of its standard output.
    line: Vec<u8>,
    /// The incomplete last line of its standard error.
    complaint: Vec<u8>,
}

/// A worker that failed.
struct FailedWorker {
    at: Instant,
    wait: Duration,
}

/// Users who have rings and no worker because a limit is reached, by the real user that the limit is for.
type HeldBack = BTreeMap<RealUser, BTreeSet<u32>>;

/// What was found in the present round.
#[derive(Default)]
struct FoundUsers {
    /// Ring files by user.
    files: BTreeMap<u32, u64>,
    held_back: HeldBack,
}

struct Supervisor {
    folder: PathBuf,
    once: bool,
    /// With `once`: users who have had a worker.
    started: BTreeSet<u32>,
    owners: RealUsers,
    found: FoundUsers,
    /// Real users for whom it was reported that some of their ids wait for a worker.
    said_held_back: BTreeSet<RealUser>,
    /// Users for whom it was reported that they have many files.
    said_many: BTreeSet<u32>,
    workers: BTreeMap<u32, WorkerProcess>,
    failed: BTreeMap<u32, FailedWorker>,
    metrics: Arc<Mutex<Metrics>>,
    /// Whether everything went well.
    is_well: bool,
}

/// Starts workers until a signal ends it.
pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let signals = signals()?;
    let mut search = Search::new(&arguments.folder);
    most_descriptors();
    let metrics = Arc::new(Mutex::new(Metrics::default()));
    let socket = arguments.metrics_socket.as_deref();
    let socket = socket.map(|path| Socket::serve(path, metrics.clone())).transpose()?;
    let mut supervisor = Supervisor {
        folder: arguments.folder.clone(),
        once: arguments.once,
        started: BTreeSet::new(),
        owners: RealUsers::default(),
        found: FoundUsers::default(),
        said_held_back: BTreeSet::new(),
        said_many: BTreeSet::new(),
        workers: BTreeMap::new(),
        failed: BTreeMap::new(),
        metrics,
        is_well: true,
    };
    let mut textfile = arguments.metrics_file.as_deref().map(Textfile::new);
    if let Some(path) = arguments.metrics_file.as_deref().filter(|path| path.extension() != Some("prom".as_ref())) {
        report(format_args!("aclshim: {}: node_exporter reads only files whose names end in .prom", path.display()));
    }
    let every = arguments.metrics_interval;
    loop {
        let mut round = Round::Resting;
        if !arguments.once {
            round = supervisor.look(&mut search);
        } else if supervisor.workers.is_empty() {
            // Also when some have ended: others may have had to wait for them.
            supervisor.look_at_all();
            if supervisor.workers.is_empty() {
                break;
            }
        }
        if let Some(textfile) = textfile.as_mut().filter(|file| file.written.is_none_or(|at| at.elapsed() >= every)) {
            textfile.write(&supervisor.metrics);
        }
        let mut files = vec![signals.as_fd()];
        supervisor.workers.values().for_each(|worker| files.extend(worker.pipes()));
        files.extend(search.watch());
        let ready = wait(&files, if round == Round::Unfinished { Duration::ZERO } else { WAIT.min(every) });
        if ready[0] {
            break;
        }
        supervisor.listen();
        if search.watch().is_some() && ready.last() == Some(&true) {
            std::thread::sleep(GATHER);
            for path in search.arrived().into_iter().filter(|_| !arguments.once) {
                supervisor.consider(&path);
            }
        }
    }
    supervisor.end();
    if let Some(textfile) = &mut textfile {
        textfile.write(&supervisor.metrics);
    }
    drop(socket);
    Ok(if supervisor.is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Supervisor {
    /// Looks at ring files for a while, and at the end of a round says what it has found.
    fn look(&mut self, search: &mut Search) -> Round {
        let round = search.advance(LOOK, |path| self.consider(&path));
        if round == Round::Finished {
            self.end_round();
        }
        round
    }

    /// Looks at all ring files.
    fn look_at_all(&mut self) {
        let mut search = Search::new(&self.folder);
        while self.look(&mut search) == Round::Unfinished {}
    }

    /// Starts a worker for the owner of a ring file, unless that user has one or must wait.
    fn consider(&mut self, path: &Path) {
        // SAFETY: asks for our own number.
        let me = unsafe { libc::geteuid() };
        let Ok(about) = fs::symlink_metadata(path) else { return };
        let user = about.uid();
        if !about.is_file() || me != 0 && user != me {
            return;
        }
        *self.found.files.entry(user).or_default() += 1;
        let is_resting = self.failed.get(&user).is_some_and(|failed| failed.at.elapsed() < failed.wait);
        let has_had_one = self.once && self.started.contains(&user);
        if is_resting || has_had_one || self.workers.contains_key(&user) {
            return;
        }
        let owner = self.owners.of(user);
        if !self.may_start(owner) {
            self.hold_back(owner, user);
            return;
        }
        match self.spawn(me, user, about.gid()) {
            Ok(child) => {
                self.started.extend(self.once.then_some(user));
                self.workers.insert(user, WorkerProcess { child, owner, line: Vec::new(), complaint: Vec::new() });
            }
            Err(error) => self.note_failure(user, &format!("cannot start: {error}")),
        }
    }

    /// Whether a real user may have one more worker. The first worker is always allowed: other users cannot prevent it.
    fn may_start(&self, owner: RealUser) -> bool {
        match self.workers.values().filter(|worker| worker.owner == owner).count() {
            0 => self.workers.len() < MOST_USERS,
            own => own < MOST_OF_ONE && self.workers.len() < MOST_WORKERS,
        }
    }

    /// Notes that a user waits for a worker, and says so where it is the first one of that real user.
    fn hold_back(&mut self, owner: RealUser, user: u32) {
        self.found.held_back.entry(owner).or_default().insert(user);
        if self.said_held_back.insert(owner) {
            report(format_args!(
                "aclshim: user {user} waits for a worker, and maybe others do: {owner} may have {MOST_OF_ONE} at a time, and all \
                 together {MOST_WORKERS}; records that waiting users' rings have no room for are lost"
            ));
        }
        let waiting = self.found.held_back.values().map(BTreeSet::len).sum::<usize>() as u64;
        let mut metrics = lock(&self.metrics);
        metrics.held_back = metrics.held_back.max(waiting);
    }

    /// Reports what a complete round has found.
    fn end_round(&mut self) {
        let FoundUsers { files, held_back } = std::mem::take(&mut self.found);
        self.said_held_back.retain(|owner| held_back.contains_key(owner));
        self.said_many.retain(|user| files.get(user).is_some_and(|count| *count > MANY_FILES));
        for (user, count) in files.iter().filter(|(_, count)| **count > MANY_FILES) {
            if self.said_many.insert(*user) {
                report(format_args!(
                    "aclshim: {}: user {user} has {count} ring files there; new ones may be found late because of them, and records \
                     that their rings have no room for be lost: `aclshim clean --rings` removes those that nobody needs",
                    self.folder.display()
                ));
            }
        }
        let mut metrics = lock(&self.metrics);
        metrics.held_back = held_back.values().map(BTreeSet::len).sum::<usize>() as u64;
        metrics.ring_files = files.values().sum();
    }

    fn spawn(&self, me: u32, user: u32, group: u32) -> io::Result<Child> {
        // Not by its path: that may be another version by now, or out of the user's reach.
        let mut command = Command::new("/proc/self/exe");
        command.args(["collect", "--worker"]).args(self.once.then_some("--once")).arg("--").arg(&self.folder);
        // The environment of the supervisor is not passed on to users.
        command.arg0("aclshim").env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let groups = (me == 0 && user != 0).then(|| groups(&self.folder, user, group));
        if groups.is_some() || diagnostics::has_files() {
            command.stderr(Stdio::piped());
        }
        // SAFETY: system calls only.
        unsafe {
            let parent = libc::getpid();
            command.pre_exec(move || {
                if let Some(groups) = &groups {
                    // Nothing of ours is to be within the user's reach: no terminal, no descriptor.
                    done(libc::setsid().min(0))?;
                    close_at_exec();
                    become_user(user, groups)?;
                    let most = libc::rlimit { rlim_cur: MOST_MEMORY, rlim_max: MOST_MEMORY };
                    done(libc::setrlimit(libc::RLIMIT_DATA, &most))?;
                }
                // After that: it would be forgotten otherwise.
                done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
                if libc::getppid() == parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
            });
        }
        let child = command.spawn()?;
        child.stdout.iter().for_each(|pipe| never_wait(pipe.as_raw_fd()));
        child.stderr.iter().for_each(|pipe| never_wait(pipe.as_raw_fd()));
        Ok(child)
    }

    /// Reads the reports of all workers, and removes workers that have ended.
    fn listen(&mut self) {
        let mut ended = Vec::new();
        for (user, worker) in &mut self.workers {
            if worker.read(*user, &self.metrics) == PipeState::End {
                ended.push(*user);
            }
        }
        for user in ended {
            let Some(mut worker) = self.workers.remove(&user) else { continue };
            // It may have closed its output only.
            let _ = worker.child.kill();
            let status = worker.child.wait();
            worker.relay();
            lock(&self.metrics).end(user);
            match status {
                Ok(status) if status.success() => _ = self.failed.remove(&user),
                // The worker itself has reported why.
                Ok(status) if self.once && status.code().is_some() => self.is_well = false,
                Ok(status) => self.note_failure(user, &how(status)),
                Err(error) => self.note_failure(user, &error.to_string()),
            }
        }
    }

    fn note_failure(&mut self, user: u32, why: &str) {
        let wait = self.failed.get(&user).map_or(AGAIN[0], |failed| (failed.wait * 2).min(AGAIN[1]));
        self.failed.insert(user, FailedWorker { at: Instant::now(), wait });
        self.is_well &= !self.once;
        // Reported before it is counted: a reader of the metric then finds the reason.
        report(format_args!("aclshim: the worker for user {user}: {why}; next try in {} ms", wait.as_millis()));
        lock(&self.metrics).failures += 1;
    }

    /// Has all workers write what there is, and end.
    fn end(&mut self) {
        let begin = Instant::now();
        self.workers.values_mut().for_each(|worker| drop(worker.child.stdin.take()));
        while !self.workers.is_empty() && begin.elapsed() < LAST {
            let files: Vec<_> = self.workers.values().flat_map(WorkerProcess::pipes).collect();
            wait(&files, Duration::from_millis(100));
            self.listen();
        }
        for (user, worker) in &mut self.workers {
            report(format_args!(
                "aclshim: the worker for user {user} did not end within {} s and was killed: what it had not written is \
                 still in the rings, for the next collector or `aclshim recover`, and the metrics lack its last report",
                LAST.as_secs()
            ));
            self.is_well = false;
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}

#[derive(PartialEq, Eq)]
enum PipeState {
    Something,
    End,
}

impl WorkerProcess {
    /// The pipes from its standard output and standard error.
    fn pipes(&self) -> Vec<BorrowedFd<'_>> {
        let Child { stdout, stderr, .. } = &self.child;
        stdout.iter().map(AsFd::as_fd).chain(stderr.iter().map(AsFd::as_fd)).collect()
    }

    /// Passes on what it complains of, line by line. [`say`] takes out what a terminal would act on.
    fn relay(&mut self) {
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
    fn read(&mut self, user: u32, metrics: &Mutex<Metrics>) -> PipeState {
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
                    lock(metrics).workers.insert(user, report);
                }
                self.line.drain(..=end);
            }
        }
        PipeState::Something
    }
}

fn lock(metrics: &Mutex<Metrics>) -> MutexGuard<'_, Metrics> {
    metrics.lock().unwrap_or_else(PoisonError::into_inner)
}

fn how(status: ExitStatus) -> String {
    match status.signal() {
        Some(libc::SIGBUS) => "ended by SIGBUS: somebody has cut a ring file short, or its folder is full".into(),
        Some(signal) => format!("ended by signal {signal}"),
        None => format!("ended with {}", status.code().unwrap_or_default()),
    }
}

/// What a system call answered.
pub fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has all descriptors but the first three closed by exec; between fork and exec.
pub fn close_at_exec() {
    // SAFETY: system calls on descriptors of the new process.
    unsafe {
        let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_uint;
        if libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, flags) != 0 {
            (3..4096).for_each(|fd| _ = libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC));
        }
    }
}

/// Gives up all rights but a user's; between fork and exec.
///
/// # Safety
/// Nothing of this process may rely on its rights afterwards.
pub unsafe fn become_user(user: u32, groups: &[libc::gid_t]) -> io::Result<()> {
    // SAFETY: a list of that length; the caller's promise.
    unsafe {
        done(libc::setgroups(groups.len(), groups.as_ptr()))?;
        done(libc::setresgid(groups[0], groups[0], groups[0]))?;
        done(libc::setresuid(user, user, user))
    }
}

/// The groups of a user, the primary group first. For a user without an entry on this machine, as in containers, the group of
/// the ring: a file has its creator's group, unless the folder hands down its own.
pub fn groups(folder: &Path, user: u32, of_ring: u32) -> Vec<libc::gid_t> {
    const NOBODY: libc::gid_t = 65534;
    let gives_own = fs::metadata(folder).is_ok_and(|about| about.mode() & libc::S_ISGID != 0);
    let unknown = vec![if gives_own { NOBODY } else { of_ring }];
    let mut text = vec![0; 64 * 1024];
    // SAFETY: all zero is a valid entry; it points into `text`, which outlives it.
    unsafe {
        let mut entry = std::mem::zeroed::<libc::passwd>();
        let mut found = std::ptr::null_mut();
        libc::getpwuid_r(user, &mut entry, text.as_mut_ptr(), text.len(), &mut found);
        if found.is_null() {
            return unknown;
        }
        let mut groups = vec![0; 1024];
        let mut count = groups.len() as libc::c_int;
        let name = CStr::from_ptr(entry.pw_name);
        if libc::getgrouplist(name.as_ptr(), entry.pw_gid, groups.as_mut_ptr(), &mut count) < 0 {
            return vec![entry.pw_gid];
        }
        groups.truncate(count as usize);
        groups.retain(|group| *group != entry.pw_gid);
        groups.insert(0, entry.pw_gid);
        groups
    }
}

/// The file that metrics are written to.
struct Textfile<'a> {
    path: &'a Path,
    written: Option<Instant>,
    is_troubled: bool,
}

impl<'a> Textfile<'a> {
    fn new(path: &'a Path) -> Self {
        Self { path, written: None, is_troubled: false }
    }

    fn write(&mut self, metrics: &Mutex<Metrics>) {
        self.written = Some(Instant::now());
        let text = lock(metrics).render(MetricsFormat::Text);
        match exposition::write(self.path, &text) {
            Ok(()) => self.is_troubled = false,
            Err(error) if !self.is_troubled => {
                let path = self.path.display();
                report(format_args!("aclshim: {path}: the metrics cannot be written: {error}; tried again"));
                self.is_troubled = true;
            }
            Err(_) => {}
        }
    }
}
