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
use super::search::{Round, Search};
use super::system::{always_wait, can_write, most_descriptors, never_wait, signals, wait};
use crate::recording::run::say;
use aclshim_collect::drain::outside::{Considered, Drained, Outside};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, FromRawFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The shortest and the longest pause between two passes, while there is a process. A ring of the default size holds ten
/// milliseconds' calls at a hundred thousand a second.
const PAUSES: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(8)];
/// Number of slots in one pass after which the next pass follows at once: half of a ring of the default size.
const MANY: u64 = 512;
/// The pause while there is none: files that come end it.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// How often processes that ended are looked for.
const END: Duration = Duration::from_millis(200);
/// How long files are looked at between two passes: while there is a process, and else. Others may have put any number
/// of them there.
const LOOK: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(10)];
/// How long a new file, which may be incomplete, is looked at in every pass.
const FRESH: Duration = Duration::from_millis(50);
/// Files that are looked at in every pass. More are found by rounds.
const MOST_FRESH: usize = 256;
/// How often it reports its counts: while records come, and otherwise. Counts that were not reported are lost if the worker
/// dies.
const REPORT_INTERVALS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// Minimum time for which the highest fill level of a ring is reported.
const FULL: Duration = Duration::from_secs(60);
/// How long it waits for a process before it ends.
const IDLE: Duration = Duration::from_secs(60);
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
    let mut search = Search::new(&arguments.folder);
    let mut outside = Outside::new(&arguments.folder);
    outside.count_kinds();
    // Each process takes one for its ring file, and two for what is written.
    outside.hold_at_most((most_descriptors().saturating_sub(32) / 3) as usize);
    let mut worker = UserWorker::new(outside);
    if arguments.once {
        return worker.once();
    }
    let stdin = std::io::stdin();
    let mut pause = PAUSES[0];
    let (mut ended, mut reported) = (None::<Instant>, None::<Instant>);
    let is_due = |last: Option<Instant>, every: Duration| last.is_none_or(|last| last.elapsed() >= every);
    let mut busy = Instant::now();
    // Files that came, and when.
    let mut fresh: Vec<(PathBuf, Instant)> = Vec::new();
    let mut is_active = true;
    loop {
        let outside = &mut worker.outside;
        fresh.retain(|(path, came)| outside.consider(path.clone()) == Considered::Unready && came.elapsed() < FRESH);
        let is_idle = outside.drained().next().is_none();
        if search.advance(LOOK[usize::from(is_idle)], |path| _ = outside.consider(path)) == Round::Finished {
            outside.end_round();
        }
        if is_due(ended, END) {
            worker.end();
            ended = Some(Instant::now());
        }
        let passed = worker.outside.pass();
        is_active &= passed.slots == 0;
        if is_due(reported, REPORT_INTERVALS[usize::from(is_active)]) {
            worker.send_report()?;
            reported = Some(Instant::now());
            is_active = true;
        }
        pause = match passed.slots {
            0 => (pause * 5 / 4).min(PAUSES[1]),
            _ => PAUSES[0],
        };
        let is_idle = worker.outside.drained().next().is_none();
        if !is_idle {
            busy = Instant::now();
        } else if busy.elapsed() > IDLE {
            break;
        }
        let is_waiting = is_idle && fresh.is_empty() && !search.is_in_round();
        let mut files = vec![signals.as_fd(), stdin.as_fd()];
        files.extend(search.watch());
        let ready = wait(
            &files,
            match passed.slots {
                MANY.. => Duration::ZERO,
                _ if is_waiting => IDLE_PAUSE,
                _ if is_idle && search.is_in_round() => Duration::ZERO,
                _ => pause,
            },
        );
        if ready[0] || ready[1] {
            break;
        }
        if ready.get(2) == Some(&true) {
            let now = Instant::now();
            for path in search.arrived() {
                let is_unready = worker.outside.consider(path.clone()) == Considered::Unready;
                if is_unready && fresh.len() < MOST_FRESH {
                    fresh.push((path, now));
                }
            }
            pause = PAUSES[0];
        }
    }
    // The supervisor does not wait for ever. What is not found now is for the next collector.
    let limit = Instant::now() + LAST_LOOK;
    let mut has_room = true;
    for _ in 0..LAST {
        if has_room {
            let time = limit.saturating_duration_since(Instant::now());
            Search::new(&arguments.folder).advance(time, |path| _ = worker.outside.consider(path));
            worker.outside.end_round();
        }
        has_room = worker.end() > 0 && worker.outside.waiting() > 0;
        if worker.outside.flush().slots == 0 {
            break;
        }
    }
    worker.send_last_report()?;
    Ok(ExitCode::SUCCESS)
}

struct UserWorker {
    outside: Outside,
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
    fn new(outside: Outside) -> Self {
        // Who does not listen must not stop us.
        never_wait(libc::STDOUT_FILENO);
        Self {
            outside,
            past: MetricTotals::default(),
            fullest: BTreeMap::new(),
            minute: Instant::now(),
            last_report: String::new(),
            unsent: Vec::new(),
            troubled: BTreeSet::new(),
            is_full: false,
        }
    }

    /// Writes what there is now, and says what could not be written.
    fn once(&mut self) -> Result<ExitCode> {
        let mut left = LAST;
        self.outside.find();
        while left > 0 {
            let ended = self.end();
            // Files that had to wait may be taken now: others have ended.
            if ended > 0 && self.outside.waiting() > 0 {
                self.outside.find();
            }
            let slots = self.outside.pass().slots;
            if ended == 0 && slots == 0 {
                self.complain();
                if !self.let_go() {
                    break;
                }
                self.outside.find();
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
        let past = &mut self.past;
        self.outside.let_go(|one| past.add_ended(one))
    }

    /// Takes leave of processes that ended; how many.
    fn end(&mut self) -> usize {
        let Self { outside, past, fullest, .. } = self;
        let mut ended = 0;
        outside.end(|one| {
            ended += 1;
            past.add_ended(one);
            fullest.remove(&one.file.path);
        });
        ended
    }

    /// Says what cannot be written, once.
    fn complain(&mut self) {
        for Drained { file, drain, .. } in self.outside.drained() {
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
        for (path, why) in self.outside.strange() {
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
        let known: BTreeSet<PathBuf> = self.outside.drained().map(|one| one.file.path.clone()).collect();
        let strange = self.outside.strange();
        self.troubled.retain(|path| strange.contains_key(path) || known.contains(path));
        let waiting = self.outside.waiting();
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
        for one in self.outside.drained() {
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
