//! The trace event format of Chrome: for `chrome://tracing`, Perfetto and Speedscope.

use super::Sink;
use super::row::Row;
use super::text::json_pair;
use super::texts::Texts;
use super::timeline::{self, NewTrack, TimeSpan, TrackKind, Tracks};
use crate::output::file::OutputFile;
use aclshim_trace::record::annotation::Annotation;
use anyhow::Result;
use std::io::Write;

/// One event after the other, as complete events.
pub struct Chrome {
    to: OutputFile,
    tracks: Tracks,
    /// Times are relative to the first call: as times since 1970 they would lose digits.
    start: Option<u64>,
    flows: u64,
}

/// Streams are lines beside the threads; their numbers are beyond all of Linux.
const STREAMS: u64 = 1_000_000_000;

impl Chrome {
    /// Nothing is written before the first row.
    pub fn new(to: OutputFile) -> Self {
        Self { to, tracks: Tracks::default(), start: None, flows: 0 }
    }

    fn begin(&mut self, start: u64) -> Result<u64> {
        if let Some(start) = self.start {
            return Ok(start);
        }
        self.start = Some(start);
        writeln!(self.to, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"start_ns\":\"{start}\"}},\"traceEvents\":[")?;
        // So that every event that follows can begin with a comma.
        let about = "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"trace_name\",\"args\":{\"name\":\"aclshim\"}}";
        self.to.write_all(about.as_bytes())?;
        Ok(start)
    }
}

/// Microseconds, to the nanosecond.
fn micros(ns: i128) -> String {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    format!("{sign}{}.{:03}", ns / 1000, ns % 1000)
}

fn name(to: &mut OutputFile, texts: &Texts, NewTrack { pid, id, kind, row }: NewTrack<'_>) -> Result<()> {
    let (kind, tid, name) = match kind {
        TrackKind::Process => ("process_name", 0, timeline::process_name(row, texts)),
        TrackKind::Thread(thread) => ("thread_name", thread.into(), format!("thread {thread}")),
        TrackKind::Stream(stream) => ("thread_name", STREAMS + id, timeline::stream_name(stream, row, texts)),
        TrackKind::Scopes(thread) => ("thread_name", STREAMS + id, format!("scopes of thread {thread}")),
    };
    let name = serde_json::to_string(&name)?;
    write!(to, ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{kind}\",\"args\":{{\"name\":{name}}}}}")?;
    Ok(())
}

impl Sink for Chrome {
    fn row(&mut self, row: &Row, texts: &Texts) -> Result<()> {
        let Some(time) = timeline::begin(row) else { return Ok(()) };
        let start = self.begin(time)?;
        let (to, tracks) = (&mut self.to, &mut self.tracks);
        let at = |time: u64| micros(i128::from(time) - i128::from(start));
        let pid = tracks.process(row, &mut |new| name(to, texts, new))?;
        let tid = row.thread.unwrap_or_default();
        let lane = &mut tracks.thread(row, &mut |new| name(to, texts, new))?.lane;
        lane.pass(time, |_| {});
        let function = row.function.map_or("?", |function| texts.get(function));
        let head = format!("\"name\":\"{function}\",\"cat\":\"copy\",\"pid\":{pid}");
        let slice = |to: &mut OutputFile, tid: u64, TimeSpan { begin, end }: TimeSpan| -> Result<()> {
            let (ts, dur) = (at(begin), micros((end - begin).into()));
            write!(to, ",\n{{\"ph\":\"X\",{head},\"tid\":{tid},\"ts\":{ts},\"dur\":{dur},\"args\":{{")?;
            arguments(to, row, texts)
        };
        let Some(given) = timeline::span(row) else {
            let ts = at(time);
            write!(to, ",\n{{\"ph\":\"i\",\"s\":\"t\",{head},\"tid\":{tid},\"ts\":{ts},\"args\":{{")?;
            return arguments(to, row, texts);
        };
        let lies = lane.open(given);
        slice(to, tid.into(), lies)?;
        if let Some(stream) = row.submits() {
            let track = tracks.track(row, TrackKind::Stream(stream), &mut |new| name(to, texts, new))?;
            let (queued, line) = (track.lane.queue(given), STREAMS + track.id);
            slice(to, line, queued)?;
            self.flows += 1;
            let flow = format!("\"name\":\"submits\",\"cat\":\"copy\",\"id\":{},\"pid\":{pid}", self.flows);
            write!(to, ",\n{{\"ph\":\"s\",{flow},\"tid\":{tid},\"ts\":{}}}", at(lies.begin))?;
            write!(to, ",\n{{\"ph\":\"f\",\"bp\":\"e\",{flow},\"tid\":{line},\"ts\":{}}}", at(queued.begin))?;
        }
        Ok(())
    }

    /// Marks as instants on their threads; scopes as slices, which may overlap where threads share one.
    fn remark(&mut self, row: &Row, what: &Annotation, text: &str, texts: &Texts) -> Result<()> {
        let Some(time) = timeline::begin(row).filter(|_| !matches!(what, Annotation::Name { .. })) else {
            return Ok(());
        };
        let start = self.begin(time)?;
        let (to, tracks) = (&mut self.to, &mut self.tracks);
        let ts = micros(i128::from(time) - i128::from(start));
        let pid = tracks.process(row, &mut |new| name(to, texts, new))?;
        let head = format!("\"name\":{},\"pid\":{pid},\"ts\":{ts}", serde_json::to_string(text)?);
        match what {
            Annotation::Mark { .. } => {
                tracks.thread(row, &mut |new| name(to, texts, new))?;
                let tid = row.thread.unwrap_or_default();
                write!(to, ",\n{{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"mark\",{head},\"tid\":{tid}}}")?;
            }
            Annotation::Scope { id, .. } | Annotation::ScopeEnd { id, .. } => {
                let kind = TrackKind::Scopes(row.thread.unwrap_or_default());
                let tid = STREAMS + tracks.track(row, kind, &mut |new| name(to, texts, new))?.id;
                let (phase, about) = match what {
                    Annotation::ScopeEnd { failures, .. } => ("e", format!(",\"args\":{{\"failures\":{failures}}}")),
                    _ => ("b", String::new()),
                };
                let event = format!("\"ph\":\"{phase}\",\"cat\":\"scope\",\"id\":\"{pid}.{id}\"");
                write!(to, ",\n{{{event},{head},\"tid\":{tid}{about}}}")?;
            }
            Annotation::Name { .. } => {}
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _texts: &Texts) -> Result<()> {
        self.begin(0)?;
        self.to.write_all(b"\n]}\n")?;
        self.to.finish()
    }
}

fn arguments(to: &mut OutputFile, row: &Row, texts: &Texts) -> Result<()> {
    let mut between = "";
    for (_, column, value) in timeline::arguments(row, texts) {
        to.write_all(between.as_bytes())?;
        between = ",";
        json_pair(to, column.name, value)?;
    }
    to.write_all(b"}}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::micros;

    #[test]
    fn a_microsecond_has_a_thousand_nanoseconds() {
        assert_eq!([0, 1, 1_234_567, -1, -1500].map(micros), ["0.000", "0.001", "1234.567", "-0.001", "-1.500"]);
    }
}
