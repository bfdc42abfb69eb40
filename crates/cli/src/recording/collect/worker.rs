//! A worker: drains the rings of one user, with that user's rights, until its supervisor ends it.
//!
//! Ring files are written by the user's programs, and say which files are to be written. So nothing that stands there can
//! do more than the user himself could; and what can only harm the reader, such as a ring file that is cut short
//! while it is read, ends this process and no other.
//!
//! It ends when its standard input is closed, and on SIGTERM. It reports its counts on standard output, a line of
//! JSON each time.

use super::Arguments;
use super::metrics::{MetricTotals, ProcessMetrics, WorkerReport};
use super::system::{always_wait, can_write, most_descriptors, never_wait, signals};
use crate::recording::drain_loop::poll::{Wakeup, Watched};
use crate::recording::drain_loop::search::Search;
use crate::recording::drain_loop::{DrainLoop, Turn};
use crate::recording::run::say;
use aclshim_collect::drain::outside::{Drained, Outside};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, FromRawFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest time from one report to the next. Counts that were not reported are lost if the worker dies.
const REPORT: Duration = Duration::from_millis(50);
/// The time after which the rest of a report is sent that the pipe had no room for.
const REST: Duration = Duration::from_secs(1);
/// Minimum time for which the highest fill level of a ring is reported.
const FULL: Duration = Duration::from_secs(60);
/// How long it waits for a process before it ends.
const IDLE: Duration = Duration::from_secs(60);
/// Added to a time that has to be over.
const NEXT: Duration = Duration::from_millis(1);
/// How long files are looked at in the end.
const LAST_LOOK: Duration = Duration::from_secs(2);
/// Passes at the end: programs that go on calling could otherwise keep it for ever.
const LAST: usize = 100;

/// Drains until the supervisor or a signal ends it.
pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    // We have the user's rights, and are still not the user's to look into.
    // SAFETY: concerns this process only.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    let signals = signals()?;
    let mut outside = Outside::new(&arguments.folder);
    outside.count_kinds();
    // Each process takes one for its ring file, one for its end, and two for what is written.
    outside.hold_at_most((most_descriptors().saturating_sub(32) / 4) as usize);
    let wakeup = Wakeup::new().ok().map(Arc::new);
    let mut worker = UserWorker::new(DrainLoop::new(outside, &arguments.folder, wakeup));
    if arguments.once {
        return worker.once();
    }
    let stdin = std::io::stdin();
    let mut reported = None::<Instant>;
    let mut busy = Instant::now();
    let mut is_report_due = true;
    loop {
        let turn = worker.turn();
        // What is full or cannot be reached changes with time, too.
        is_report_due |= turn.has_changed || turn.is_look;
        let since_report = reported.map_or(REPORT, |at| at.elapsed());
        if is_report_due && since_report >= REPORT || !worker.unsent.is_empty() {
            worker.send_report()?;
            reported = Some(Instant::now());
            is_report_due = false;
        }
        let is_idle = worker.outside().drained().next().is_none();
        if !is_idle {
            busy = Instant::now();
        } else if busy.elapsed() > IDLE {
            break;
        }
        let mut most = if is_idle { IDLE.saturating_sub(busy.elapsed()) + NEXT } else { Duration::MAX };
        if is_report_due {
            most = most.min(REPORT.saturating_sub(since_report));
        }
        if !worker.unsent.is_empty() {
            most = most.min(REST);
        }
        let ready = worker.drain_loop.sleep(&[signals.as_fd(), stdin.as_fd()], most);
        if ready.contains(&true) {
            break;
        }
    }
    // The supervisor does not wait for ever. What is not found now is for the next collector.
    let limit = Instant::now() + LAST_LOOK;
    let mut has_room = true;
    for _ in 0..LAST {
        if has_room {
            let time = limit.saturating_duration_since(Instant::now());
            let mut search = Search::new(&arguments.folder, Watched::Arrivals);
            search.advance(time, |path| _ = worker.outside().consider(path));
            worker.outside().end_round();
        }
        has_room = worker.end() > 0 && worker.outside().waiting() > 0;
        if worker.outside().flush().slots == 0 {
            break;
        }
    }
    worker.send_last_report()?;
    Ok(ExitCode::SUCCESS)
}

struct UserWorker {
    drain_loop: DrainLoop,
    /// Totals of processes that are gone.
    past: MetricTotals,
    /// How full the fullest ring of each process was, in this minute and in the one before.
    fullest: BTreeMap<PathBuf, [u64; 2]>,
    minute: Instant,
    last_report: String,
    /// The part of it that the supervisor has not read yet.
    unsent: Vec<u8>,
    /// Processes whose records cannot be written, for which that was reported.
    troubled: BTreeSet<PathBuf>,
    /// Whether it was reported that processes wait.
    is_full: bool,
}

impl UserWorker {
    fn new(drain_loop: DrainLoop) -> Self {
        // Who does not listen must not stop us.
        never_wait(libc::STDOUT_FILENO);
        Self {
            drain_loop,
            past: MetricTotals::default(),
            fullest: BTreeMap::new(),
            minute: Instant::now(),
            last_report: String::new(),
            unsent: Vec::new(),
            troubled: BTreeSet::new(),
            is_full: false,
        }
    }

    fn outside(&mut self) -> &mut Outside {
        &mut self.drain_loop.outside
    }

    /// One turn of the drain loop.
    fn turn(&mut self) -> Turn {
        let Self { drain_loop, past, fullest, .. } = self;
        drain_loop.turn(|one| {
            past.add_ended(one);
            fullest.remove(&one.file.path);
        })
    }

    /// Writes what there is now, and says what could not be written.
    fn once(&mut self) -> Result<ExitCode> {
        let mut left = LAST;
        self.outside().find();
        while left > 0 {
            let ended = self.end();
            // Files that had to wait may be taken now: others have ended.
            if ended > 0 && self.outside().waiting() > 0 {
                self.outside().find();
            }
            let slots = self.outside().pass().slots;
            if ended == 0 && slots == 0 {
                self.complain();
                if !self.let_go() {
                    break;
                }
                self.outside().find();
                left = LAST;
            } else if ended == 0 {
                left -= 1;
            }
        }
        self.complain();
        let is_well = self.troubled.is_empty();
        self.send_last_report()?;
        Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Makes room for others where as many are held as may be; whether it had to.
    fn let_go(&mut self) -> bool {
        let Self { drain_loop, past, .. } = self;
        drain_loop.outside.let_go(|one| past.add_ended(one))
    }

    /// Takes leave of processes that ended; how many.
    fn end(&mut self) -> usize {
        let Self { drain_loop, past, fullest, .. } = self;
        let mut ended = 0;
        drain_loop.outside.end(|one| {
            ended += 1;
            past.add_ended(one);
            fullest.remove(&one.file.path);
        });
        ended
    }

    /// Says what cannot be written, once.
    fn complain(&mut self) {
        for Drained { file, drain, .. } in self.drain_loop.outside.drained() {
            let Some(trouble) = drain.trouble() else {
                self.troubled.remove(&file.path);
                continue;
            };
            if self.troubled.insert(file.path.clone()) {
                let (path, pid) = (file.path.display(), drain.origin().pid);
                say(format_args!(
                    "aclshim: {path}: the records of process {pid} cannot be written and stay in the ring: {}",
                    trouble.first
                ));
            }
        }
        for (path, why) in self.drain_loop.outside.strange() {
            if self.troubled.insert(path.clone()) {
                say(format_args!("aclshim: {}: {why}", path.display()));
            }
        }
    }

    /// Reports problems while it runs; if standard error is full, later.
    fn complain_if_possible(&mut self) {
        if !can_write(io::stderr().as_fd()) {
            return;
        }
        let known: BTreeSet<PathBuf> = self.outside().drained().map(|one| one.file.path.clone()).collect();
        let strange = self.drain_loop.outside.strange();
        self.troubled.retain(|path| strange.contains_key(path) || known.contains(path));
        let waiting = self.outside().waiting();
        if waiting > 0 && !self.is_full {
            say(format_args!(
                "aclshim: as many processes are drained as there are descriptors for; {waiting} wait, and records that their \
                 rings have no room for are lost: raise the limit (ulimit -n)"
            ));
        }
        self.is_full = waiting > 0;
        self.complain();
    }

    /// Reports its counts if they have changed.
    fn send_report(&mut self) -> Result<()> {
        self.complain_if_possible();
        let is_over = self.minute.elapsed() >= FULL;
        if is_over {
            self.minute = Instant::now();
        }
        let mut report = WorkerReport { totals: self.past.clone(), processes: Vec::new() };
        for one in self.drain_loop.outside.drained() {
            let [now, before] = self.fullest.entry(one.file.path.clone()).or_default();
            if is_over {
                (*before, *now) = (*now, 0);
            }
            *now = one.drain.take_fullest().max(waiting(one)).max(*now);
            report.totals.add_process(one);
            report.processes.push(ProcessMetrics::of(one, *now.max(before)));
        }
        let line = serde_json::to_string(&report)? + "\n";
        if line != self.last_report && self.unsent.is_empty() {
            self.unsent.extend(line.as_bytes());
            self.last_report = line;
        }
        self.send()?;
        Ok(())
    }

    /// Sends the last report, and waits until it is read.
    fn send_last_report(&mut self) -> Result<()> {
        always_wait(libc::STDOUT_FILENO);
        self.send()?;
        self.send_report()
    }

    /// Writes as much of the report as the pipe takes.
    fn send(&mut self) -> io::Result<()> {
        // SAFETY: standard output, which is not closed here. (What goes through its buffer cannot be taken back.)
        let mut listener = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDOUT_FILENO) });
        while !self.unsent.is_empty() {
            match listener.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// How many slots of the fullest ring wait because they cannot be written. (Where they can, a pass has just counted
/// them; to look for them is to look at all slots.)
fn waiting(one: &mut Drained) -> u64 {
    if one.drain.is_well() {
        return 0;
    }
    let rings = (0..one.file.look_for_rings()).filter_map(|number| one.file.ring(number));
    let waiting = |ring: aclshim_trace::reader::Ring<'_>| {
        let drained = ring.control.drained.load(std::sync::atomic::Ordering::Relaxed);
        ring.end(drained) - drained
    };
    rings.map(waiting).max().unwrap_or(0)
}
