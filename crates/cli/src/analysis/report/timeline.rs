//! Calls over time, added up in bins: by thread, by stream and by direction.
//!
//! All tracks together have a fixed number of bins. When these are used up every bin becomes twice as wide, so a trace
//! of any length fits into a fixed amount of memory, at the finest resolution that it allows.

use super::event::{TimelineEvent, TransferKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of bins of all tracks together.
const BINS: usize = 32_768;
/// A bin is 2^10 ns wide at first.
const SHIFT: u32 = 10;
/// Maximum number of tracks of threads, and of streams; further ones share one track.
const TRACKS: usize = 128;
/// Maximum number of bins that one call is distributed over.
const PIECES: u64 = 256;

/// What happened in a part of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// Calls that began here.
    pub calls: u64,
    /// The bytes that calls moved here.
    pub bytes: u64,
    /// The time that calls took here; more than the bin is wide where several were under way at once.
    pub busy_ns: u64,
    /// Calls that began here and failed.
    pub errors: u64,
    /// Calls that began here and break a rule.
    pub findings: u64,
    /// The longest call that began here.
    #[serde(skip)]
    pub longest_ns: u64,
    /// Its direction and function, as numbers.
    #[serde(skip)]
    pub of: (u8, u8),
}

impl Bin {
    fn add(&mut self, other: &Bin) {
        if other.calls > 0 && (self.calls == 0 || other.longest_ns > self.longest_ns) {
            (self.longest_ns, self.of) = (other.longest_ns, other.of);
        }
        self.calls += other.calls;
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.errors += other.errors;
        self.findings += other.findings;
    }
}

/// What a track shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackKey {
    /// The calls of a thread of a process.
    Thread(usize, u32),
    /// All threads that have no track of their own.
    OtherThreads,
    /// The calls on a stream of a process.
    Stream(usize, u64),
    /// All streams that have no track of their own.
    OtherStreams,
    /// The calls in a direction.
    TransferKind(TransferKind),
}

/// The calls of one thread, stream or direction over time.
pub struct Track {
    pub key: TrackKey,
    /// All together; also of calls whose time is not known.
    pub total: Bin,
    bins: BTreeMap<u64, Bin>,
    /// The bin that was added to last, which is nearly always the next one too; not in `bins` yet.
    last: Option<(u64, Bin)>,
}

/// All tracks, with bins of one width.
pub struct Timeline {
    shift: u32,
    tracks: Vec<Track>,
    by_key: BTreeMap<TrackKey, usize>,
    /// The tracks that were looked for last: of a thread and of a stream.
    latest: [Option<(TrackKey, usize)>; 2],
    threads: usize,
    streams: usize,
    bins: usize,
    limit: usize,
    /// The first moment and the last.
    pub span: Option<(u64, u64)>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self::with_limit(BINS)
    }
}

impl Timeline {
    fn with_limit(limit: usize) -> Self {
        Self {
            shift: SHIFT,
            tracks: Vec::new(),
            by_key: BTreeMap::new(),
            latest: [None; 2],
            threads: 0,
            streams: 0,
            bins: 0,
            limit,
            span: None,
        }
    }

    /// The tracks of a call: its thread's, and its stream's if it has one.
    pub fn tracks_of(&mut self, call: &TimelineEvent) -> (usize, Option<usize>) {
        let thread = self.thread(call.process, call.thread);
        let stream = call.stream.map(|stream| self.track(TrackKey::Stream(call.process, stream), 1));
        (thread, stream)
    }

    /// The track of a thread.
    pub fn thread(&mut self, process: usize, thread: u32) -> usize {
        self.track(TrackKey::Thread(process, thread), 0)
    }

    fn track(&mut self, key: TrackKey, latest: usize) -> usize {
        if let Some((known, at)) = self.latest[latest]
            && known == key
        {
            return at;
        }
        let is_full = match key {
            TrackKey::Thread(..) => self.threads >= TRACKS,
            TrackKey::Stream(..) => self.streams >= TRACKS,
            _ => false,
        };
        let wanted = match key {
            TrackKey::Thread(..) if is_full && !self.by_key.contains_key(&key) => TrackKey::OtherThreads,
            TrackKey::Stream(..) if is_full && !self.by_key.contains_key(&key) => TrackKey::OtherStreams,
            key => key,
        };
        let at = *self.by_key.entry(wanted).or_insert_with(|| {
            match wanted {
                TrackKey::Thread(..) => self.threads += 1,
                TrackKey::Stream(..) => self.streams += 1,
                _ => {}
            }
            self.tracks.push(Track { key: wanted, total: Bin::default(), bins: BTreeMap::new(), last: None });
            self.tracks.len() - 1
        });
        self.latest[latest] = Some((key, at));
        at
    }

    /// Adds a call to its tracks; a nested one is part of another, and not added.
    pub fn add(&mut self, call: &TimelineEvent, thread: usize, stream: Option<usize>) {
        let direction = match self.by_key.get(&TrackKey::TransferKind(call.direction)) {
            Some(at) => *at,
            None => {
                let at = self.track(TrackKey::TransferKind(call.direction), 0);
                self.latest[0] = None;
                at
            }
        };
        let begun = Bin {
            calls: 1,
            errors: call.has_failed().into(),
            findings: (call.rules != 0).into(),
            longest_ns: call.duration_ns.unwrap_or(0),
            of: (call.direction as u8, call.function as u8),
            ..Bin::default()
        };
        let busy_ns = call.duration_ns.unwrap_or(0);
        let whole = Bin { busy_ns, bytes: call.moved(), ..begun };
        for at in [Some(thread), stream, Some(direction)].into_iter().flatten() {
            self.tracks[at].total.add(&whole);
        }
        let Some(begin) = call.time_ns else { return };
        let end = begin.saturating_add(busy_ns);
        let (first, last) = self.span.unwrap_or((begin, end));
        self.span = Some((first.min(begin), last.max(end)));
        for at in [Some(thread), stream, Some(direction)].into_iter().flatten() {
            self.lay(at, begin, end, &begun, &whole);
        }
        while self.bins > self.limit {
            self.widen();
        }
    }

    /// Lays a call over the bins from its begin to its end.
    fn lay(&mut self, track: usize, begin: u64, end: u64, begun: &Bin, whole: &Bin) {
        let (first, last) = (begin >> self.shift, end.saturating_sub(1).max(begin) >> self.shift);
        if first == last {
            return self.put(track, first, whole);
        }
        self.put(track, first, begun);
        let step = (last - first + 1).div_ceil(PIECES);
        let mut given = 0;
        let mut at = first;
        while at <= last {
            let from = begin.max(at << self.shift);
            let to = end.min((at + step).saturating_mul(1 << self.shift));
            // All up to here, so that nothing is left over at the end.
            let until = u128::from(whole.bytes) * u128::from(to - begin) / u128::from((end - begin).max(1));
            let bytes = until as u64 - given;
            given = until as u64;
            self.put(track, at, &Bin { busy_ns: to - from, bytes, ..Bin::default() });
            at += step;
        }
    }

    fn put(&mut self, track: usize, at: u64, what: &Bin) {
        let track = &mut self.tracks[track];
        match &mut track.last {
            Some((last, bin)) if *last == at => bin.add(what),
            last => {
                if let Some((old, bin)) = last.replace((at, *what)) {
                    let before = track.bins.len();
                    track.bins.entry(old).or_default().add(&bin);
                    self.bins += track.bins.len() - before;
                }
            }
        }
    }

    /// Makes all bins twice as wide.
    fn widen(&mut self) {
        self.shift += 1;
        self.bins = 0;
        for track in &mut self.tracks {
            track.flush();
            let mut wide: BTreeMap<u64, Bin> = BTreeMap::new();
            for (at, bin) in &track.bins {
                wide.entry(at >> 1).or_default().add(bin);
            }
            track.bins = wide;
            self.bins += track.bins.len();
        }
    }

    /// How wide a bin is.
    pub fn width_ns(&self) -> u64 {
        1 << self.shift
    }

    /// Everything, with all bins in place.
    pub fn finish(&mut self) -> &[Track] {
        self.tracks.iter_mut().for_each(Track::flush);
        &self.tracks
    }
}

impl Track {
    fn flush(&mut self) {
        if let Some((at, bin)) = self.last.take() {
            self.bins.entry(at).or_default().add(&bin);
        }
    }

    /// The bins by number: a bin begins at its number times the width.
    pub fn bins(&self) -> impl Iterator<Item = (u64, &Bin)> {
        self.bins.iter().map(|(at, bin)| (*at, bin))
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::tests::copy;
    use super::*;

    fn timeline(limit: usize, calls: impl IntoIterator<Item = TimelineEvent>) -> Timeline {
        let mut timeline = Timeline::with_limit(limit);
        for call in calls {
            let (thread, stream) = timeline.tracks_of(&call);
            timeline.add(&call, thread, stream);
        }
        timeline.finish();
        timeline
    }

    fn sum(track: &Track) -> Bin {
        track.bins().fold(Bin::default(), |mut sum, (_, bin)| {
            sum.add(bin);
            sum
        })
    }

    #[test]
    fn a_long_trace_takes_no_more_bins_than_a_short_one_and_nothing_gets_lost() {
        let calls = (0..200_000u64).map(|at| TimelineEvent { duration_ns: Some(at % 977), ..copy(at * 5003) });
        let timeline = timeline(512, calls);
        let bins: usize = timeline.tracks.iter().map(|track| track.bins.len()).sum();
        assert!((200..=514).contains(&bins), "{bins}");
        for track in &timeline.tracks {
            assert_eq!(sum(track), track.total);
            assert_eq!((track.total.calls, track.total.bytes, track.total.longest_ns), (200_000, 12_800_000, 976));
        }
        assert_eq!(timeline.span, Some((0, 199_999 * 5003 + 199_999 % 977)));
    }

    #[test]
    fn a_long_call_lies_over_all_its_bins_and_no_byte_is_lost_on_the_way() {
        for duration in [3 << SHIFT, 1 << 40, u64::MAX] {
            let call = TimelineEvent { duration_ns: Some(duration), bytes: 1_000_003, ..copy(1 << 30) };
            let timeline = timeline(BINS, [call]);
            let track = &timeline.tracks[0];
            assert!(track.bins.len() as u64 <= PIECES + 1 && track.bins.len() > 2, "{}", track.bins.len());
            let end = (1u64 << 30).saturating_add(duration);
            assert_eq!((sum(track).calls, sum(track).bytes, sum(track).busy_ns), (1, 1_000_003, end - (1 << 30)));
            let mut rates = track.bins().map(|(_, bin)| bin.bytes as f64 / bin.busy_ns as f64);
            let rate = 1_000_003.0 / (end - (1 << 30)) as f64;
            assert!(rates.all(|of| (of / rate - 1.0).abs() < 0.01), "evenly");
        }
    }

    #[test]
    fn threads_beyond_the_limit_share_a_track() {
        let calls = (0..1000).map(|thread| TimelineEvent { thread, stream: Some(thread.into()), ..copy(5) });
        let timeline = timeline(BINS, calls);
        assert_eq!(timeline.tracks.len(), 2 * TRACKS + 2 + 1);
        let of = |key: TrackKey| timeline.tracks.iter().find(|track| track.key == key).unwrap().total.calls;
        let rest = 1000 - TRACKS as u64;
        assert_eq!([TrackKey::OtherThreads, TrackKey::OtherStreams, TrackKey::Thread(0, 3)].map(of), [rest, rest, 1]);
    }

    #[test]
    fn a_call_at_an_unknown_time_is_counted_and_in_no_bin() {
        let timeline = timeline(BINS, [TimelineEvent { time_ns: None, ..copy(0) }]);
        assert_eq!((timeline.tracks[0].total.calls, timeline.tracks[0].bins.len(), timeline.span), (1, 0, None));
    }
}
