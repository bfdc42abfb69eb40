//! What a timeline shows: processes, their threads and streams, and slices that lie within each other or apart.

use super::row::{About, COLUMNS, Column, Row, Value};
use super::texts::Texts;
use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::path::Path;

/// The columns that are attached to a slice.
pub fn arguments<'a>(row: &'a Row, texts: &'a Texts) -> impl Iterator<Item = (usize, &'static Column, Value<'a>)> {
    let of_the_call = COLUMNS.iter().enumerate().filter(|(_, column)| column.about == About::Call);
    let values = of_the_call.map(|(at, column)| (at, column, column.value(row, texts)));
    values.filter(|(_, _, value)| !matches!(value, Value::Nothing | Value::Flag(false) | Value::Rules(0)))
}

/// A span of time, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    pub begin: u64,
    pub end: u64,
}

/// When a call was made; `None` if that is not known.
pub fn begin(row: &Row) -> Option<u64> {
    row.time_ns.and_then(|time| u64::try_from(time).ok())
}

/// When a call was under way; `None` if it has no end.
pub fn span(row: &Row) -> Option<TimeSpan> {
    let (begin, duration) = (begin(row)?, u64::try_from(row.duration_ns?).ok()?);
    Some(TimeSpan { begin, end: begin.saturating_add(duration) })
}

/// A line of slices, each within another or behind it. Times are rounded, so one that ends with another may seem to
/// end a nanosecond later: it is cut.
#[derive(Default)]
pub struct SliceLane {
    /// The ends of the slices that are open, the innermost last.
    open: Vec<u64>,
    /// The time before which no slice can begin.
    at: u64,
}

impl SliceLane {
    /// Ends the slices that are over at `time`, and calls back for each.
    pub fn pass(&mut self, time: u64, mut ended: impl FnMut(u64)) {
        while let Some(end) = self.open.pop_if(|end| *end <= time) {
            self.at = self.at.max(end);
            ended(end);
        }
    }

    /// Opens a slice; where it lies.
    pub fn open(&mut self, span: TimeSpan) -> TimeSpan {
        let begin = self.at.max(span.begin);
        self.at = begin;
        let end = span.end.max(begin).min(self.open.last().copied().unwrap_or(u64::MAX));
        self.open.push(end);
        TimeSpan { begin, end }
    }

    /// A slice behind all others.
    pub fn queue(&mut self, span: TimeSpan) -> TimeSpan {
        let begin = self.at.max(span.begin);
        self.at = span.end.max(begin);
        TimeSpan { begin, end: self.at }
    }
}

/// A line that has a number in the file.
pub struct Track {
    pub id: u64,
    pub lane: SliceLane,
}

/// The processes, threads and streams that have been met.
#[derive(Default)]
pub struct Tracks {
    processes: HashMap<usize, u32>,
    taken: HashSet<u32>,
    tracks: HashMap<(usize, TrackKind), Track>,
}

/// What a line shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackKind {
    /// A process; its threads and streams have lines of their own.
    Process,
    /// The calls of a thread, by its id.
    Thread(u32),
    /// The calls on a stream, by its handle.
    Stream(u64),
    /// The scopes that a thread begins, by its id.
    Scopes(u32),
}

/// A line that is met for the first time.
pub struct NewTrack<'a> {
    /// The number of its process.
    pub pid: u32,
    /// The number of the line; 0 for a process.
    pub id: u64,
    pub kind: TrackKind,
    /// The row that it was met with.
    pub row: &'a Row,
}

impl Tracks {
    /// The number of a row's process: its pid, or one that is free if another process of this file had that pid, on
    /// another machine or before.
    pub fn process<E>(&mut self, row: &Row, new: &mut impl FnMut(NewTrack<'_>) -> Result<(), E>) -> Result<u32, E> {
        if let Some(pid) = self.processes.get(&row.process) {
            return Ok(*pid);
        }
        let mut pid = row.pid.unwrap_or_default();
        while !self.taken.insert(pid) {
            pid = pid.wrapping_add(OTHER_PROCESS);
        }
        self.processes.insert(row.process, pid);
        new(NewTrack { pid, id: 0, kind: TrackKind::Process, row })?;
        Ok(pid)
    }

    /// The line of a row's thread.
    pub fn thread<E>(
        &mut self,
        row: &Row,
        new: &mut impl FnMut(NewTrack<'_>) -> Result<(), E>,
    ) -> Result<&mut Track, E> {
        self.track(row, TrackKind::Thread(row.thread.unwrap_or_default()), new)
    }

    /// A line of a row's process.
    pub fn track<E>(
        &mut self,
        row: &Row,
        kind: TrackKind,
        new: &mut impl FnMut(NewTrack<'_>) -> Result<(), E>,
    ) -> Result<&mut Track, E> {
        let pid = self.process(row, new)?;
        let id = self.tracks.len() as u64 + 1;
        match self.tracks.entry((row.process, kind)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(vacant) => {
                new(NewTrack { pid, id, kind, row })?;
                Ok(vacant.insert(Track { id, lane: SliceLane::default() }))
            }
        }
    }

    /// The lines of all threads, in the order in which they were met.
    pub fn threads(&mut self) -> Vec<&mut Track> {
        let threads = self.tracks.iter_mut().filter(|((_, kind), _)| matches!(kind, TrackKind::Thread(_)));
        let mut threads: Vec<_> = threads.map(|(_, track)| track).collect();
        threads.sort_unstable_by_key(|track| track.id);
        threads
    }
}

/// Beyond all pids of Linux, which are 4194304 at most.
const OTHER_PROCESS: u32 = 10_000_000;

/// How a process is called: its program, rank and machine.
pub fn process_name(row: &Row, texts: &Texts) -> String {
    let text = |text| texts.get(text);
    let path = row.executable.map_or("", text);
    let program = Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy());
    let mut name = program.into_owned();
    if let Some(rank) = row.rank {
        name.push_str(&format!(", rank {}", text(rank)));
    }
    if let Some(host) = row.host {
        name.push_str(&format!(", on {}", text(host)));
    }
    format!("{name}, pid {}", row.pid.unwrap_or_default())
}

/// How a stream is called, by the first call on it.
pub fn stream_name(stream: u64, row: &Row, texts: &Texts) -> String {
    match row.stream_name {
        Some(name) => format!("stream {} ({stream:#x})", texts.get(name)),
        None if stream == 0 => "default stream".into(),
        None => format!("stream {stream:#x}"),
    }
}

/// A number that no other file is likely to have, out of one that counts.
pub fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ mixed >> 27).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin: u64, end: u64) -> TimeSpan {
        TimeSpan { begin, end }
    }

    #[test]
    fn slices_lie_within_each_other_or_apart() {
        let (mut lane, mut ended) = (SliceLane::default(), Vec::new());
        for (given, lies) in [
            (span(10, 20), span(10, 20)),
            (span(12, 21), span(12, 20)),
            (span(13, 14), span(13, 14)),
            (span(20, 25), span(20, 25)),
            (span(19, 22), span(20, 22)),
        ] {
            lane.pass(given.begin, |end| ended.push(end));
            assert_eq!(lane.open(given), lies, "{given:?}");
        }
        lane.pass(u64::MAX, |end| ended.push(end));
        assert_eq!(ended, [14, 20, 20, 22, 25]);
    }

    #[test]
    fn on_a_stream_they_lie_behind_each_other() {
        let mut lane = SliceLane::default();
        let lies = [span(10, 20), span(15, 18), span(17, 25), span(30, 31)].map(|given| lane.queue(given));
        assert_eq!(lies, [span(10, 20), span(20, 20), span(20, 25), span(30, 31)]);
    }

    #[test]
    fn two_processes_of_one_pid_have_numbers_of_their_own() {
        let mut tracks = Tracks::default();
        let mut pids = |process, pid| {
            tracks.process::<()>(&Row { process, pid: Some(pid), ..Row::default() }, &mut |_| Ok(())).unwrap()
        };
        assert_eq!([pids(0, 7), pids(1, 7), pids(0, 7), pids(2, 7)], [7, 10_000_007, 7, 20_000_007]);
    }
}
