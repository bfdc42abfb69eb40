//! The supervisor: starts a worker for each user who has rings, and adds up their reports.
//!
//! A normal user has one worker, for the user's own rings. Root has one for each user, and each gives up all rights but its user's
//! before it reads anything: a ring says which files are written, and it is the user's programs that write it.
//! A worker that fails is started again. One that lost its supervisor is ended by the system.

use super::Arguments;
use super::diagnostics::report;
use super::exposition::{Socket, Textfile};
use super::metrics::Metrics;
use super::real_user::{RealUser, RealUsers};
use super::system::{most_descriptors, signals};
use super::worker_process::{PipeState, StartRequest, WorkerProcess};
use crate::files::own_user;
use crate::recording::drain_loop::poll::{Watched, wait};
use crate::recording::drain_loop::search::{Round, Search};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time from something that may change which users need a worker to the next look at all files.
const ROUND: Duration = Duration::from_secs(1);
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
/// How long workers may take to end.
const LAST: Duration = Duration::from_secs(10);
/// The waits before a worker that fails is started again.
const AGAIN: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(60)];

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
    is_well: bool,
}

/// Starts workers until a signal ends it.
pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let signals = signals()?;
    let mut search = Search::new(&arguments.folder, Watched::Arrivals);
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
        if let Some(time) = supervisor.next_start() {
            search.request(time);
        }
        let mut files = vec![signals.as_fd()];
        supervisor.workers.values().for_each(|worker| files.extend(worker.pipes()));
        files.extend(search.watch());
        let next_write = textfile.as_ref().and_then(|file| file.written).map(|at| every.saturating_sub(at.elapsed()));
        let next_round = search.due().filter(|_| !arguments.once);
        let next_round = next_round.map(|at| at.saturating_duration_since(Instant::now()));
        let time = match round {
            Round::Unfinished => Duration::ZERO,
            _ => next_write.into_iter().chain(next_round).min().unwrap_or(Duration::MAX),
        };
        let ready = wait(&files, time);
        if ready[0] {
            break;
        }
        let has_arrivals = search.watch().is_some() && ready.last() == Some(&true);
        // The last worker of a user may have overlooked a file that came when it ended, and others may have waited for its end.
        if supervisor.listen() {
            search.request(Duration::ZERO);
        }
        if has_arrivals {
            std::thread::sleep(GATHER);
            for path in search.changes().arrived.into_iter().filter(|_| !arguments.once) {
                supervisor.consider(&path);
            }
            search.request(ROUND);
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
        let round = search.advance(LOOK, |path| {
            // Only in rounds: a file that has just arrived is counted by the next one.
            if let Some(user) = self.consider(&path) {
                *self.found.files.entry(user).or_default() += 1;
            }
        });
        if round == Round::Finished {
            self.end_round();
        }
        round
    }

    /// Looks at all ring files.
    fn look_at_all(&mut self) {
        let mut search = Search::new(&self.folder, Watched::Arrivals);
        while self.look(&mut search) == Round::Unfinished {}
    }

    /// Starts a worker for the owner of a ring file, unless that user has one or must wait. Returns the owner; `None` if the
    /// file does not concern us.
    fn consider(&mut self, path: &Path) -> Option<u32> {
        let me = own_user();
        let about = fs::symlink_metadata(path).ok()?;
        let user = about.uid();
        if !about.is_file() || me != 0 && user != me {
            return None;
        }
        let is_resting = self.failed.get(&user).is_some_and(|failed| failed.at.elapsed() < failed.wait);
        let has_had_one = self.once && self.started.contains(&user);
        if is_resting || has_had_one || self.workers.contains_key(&user) {
            return Some(user);
        }
        let owner = self.owners.of(user);
        if !self.may_start(owner) {
            self.hold_back(owner, user);
            return Some(user);
        }
        let request = StartRequest { folder: &self.folder, once: self.once, user, group: about.gid(), owner };
        match WorkerProcess::start(&request) {
            Ok(worker) => {
                self.started.extend(self.once.then_some(user));
                self.workers.insert(user, worker);
            }
            Err(error) => self.note_failure(user, &format!("cannot start: {error}")),
        }
        Some(user)
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

    /// The time until a user who waits may have a worker.
    fn next_start(&self) -> Option<Duration> {
        let rest = |failed: &FailedWorker| failed.wait.checked_sub(failed.at.elapsed());
        // A millisecond more: then it is over.
        let after_failure = self.failed.values().filter_map(rest).min().map(|rest| rest + Duration::from_millis(1));
        let held_back = (lock(&self.metrics).held_back > 0).then_some(ROUND);
        after_failure.into_iter().chain(held_back).min()
    }

    /// Reads the reports of all workers, and removes workers that have ended; returns whether there were any.
    fn listen(&mut self) -> bool {
        let mut ended = Vec::new();
        for (user, worker) in &mut self.workers {
            if worker.read(*user, &self.metrics) == PipeState::End {
                ended.push(*user);
            }
        }
        let has_ended = !ended.is_empty();
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
        has_ended
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
