//! Perfetto's own format: for ui.perfetto.dev and `trace_processor`.

use super::Sink;
use super::proto::*;
use super::row::{COLUMNS, Row, Value};
use super::texts::{Text, Texts};
use super::timeline::{self, NewTrack, TimeSpan, TrackKind, Tracks, scattered};
use crate::output::file::OutputFile;
use aclshim_collect::findings::rule_bits::rule_ids;
use aclshim_trace::record::annotation::Annotation;
use anyhow::Result;
use prost::Message;
use std::collections::{HashMap, HashSet};
use std::io::Write;

/// One packet after the other.
pub struct Perfetto {
    packets: Packets,
    tracks: Tracks,
    flows: u64,
    /// The lines of scopes that are open: another thread may end one.
    scopes: HashMap<(usize, u32), u64>,
}

/// The output of packets, and what has been interned in it.
struct Packets {
    to: OutputFile,
    bytes: Vec<u8>,
    /// Interned data for the next packet.
    news: InternedData,
    names: HashSet<Text>,
    values: HashSet<Text>,
    is_begun: bool,
}

/// The writer of the packets: any number but 0.
const SEQUENCE: u32 = 0x0061_636c;
const COPY: u64 = 1;
const MARK: u64 = 2;
const SCOPE: u64 = 3;

impl Perfetto {
    /// Nothing is written before the first row.
    pub fn new(to: OutputFile) -> Self {
        let packets = Packets {
            to,
            bytes: Vec::new(),
            news: InternedData::default(),
            names: HashSet::new(),
            values: HashSet::new(),
            is_begun: false,
        };
        Self { packets, tracks: Tracks::default(), flows: 0, scopes: HashMap::new() }
    }
}

impl Packets {
    fn write(&mut self, packet: TracePacket) -> Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        // The field `packet` of the message `Trace`, which need not be held as a whole.
        self.bytes.clear();
        prost::encoding::encode_key(1, prost::encoding::WireType::LengthDelimited, &mut self.bytes);
        packet.encode_length_delimited(&mut self.bytes)?;
        self.to.write_all(&self.bytes)?;
        Ok(())
    }

    /// Writes the clock, the columns and the category, which apply to all packets.
    fn begin(&mut self, time: u64) -> Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let clock = Clock { clock_id: Some(BUILTIN_CLOCK_REALTIME), timestamp: Some(time) };
        self.write(TracePacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock],
                primary_trace_clock: Some(BUILTIN_CLOCK_REALTIME),
            }),
            ..TracePacket::default()
        })?;
        let name = |iid: u64, name: &str| Name { iid: Some(iid), name: Some(name.into()) };
        let columns = COLUMNS.iter().enumerate().map(|(at, column)| name(at as u64 + 1, column.name));
        self.write(TracePacket {
            sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
            trace_packet_defaults: Some(TracePacketDefaults { timestamp_clock_id: Some(BUILTIN_CLOCK_REALTIME) }),
            interned_data: Some(InternedData {
                event_categories: vec![name(COPY, "copy"), name(MARK, "mark"), name(SCOPE, "scope")],
                debug_annotation_names: columns.collect(),
                ..InternedData::default()
            }),
            ..TracePacket::default()
        })
    }

    fn event(&mut self, time: u64, event: TrackEvent) -> Result<()> {
        let news = std::mem::take(&mut self.news);
        self.write(TracePacket {
            timestamp: Some(time),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            interned_data: (news != InternedData::default()).then_some(news),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    fn end(&mut self, track: u64, time: u64) -> Result<()> {
        let end = TrackEvent { r#type: Some(Type::SliceEnd.into()), track_uuid: Some(track), ..TrackEvent::default() };
        self.event(time, end)
    }

    fn describe(&mut self, texts: &Texts, NewTrack { pid, id, kind, row }: NewTrack<'_>) -> Result<()> {
        let line = TrackDescriptor {
            uuid: Some(scattered(id)),
            parent_uuid: Some(process_uuid(pid)),
            ..TrackDescriptor::default()
        };
        let track = match kind {
            TrackKind::Process => TrackDescriptor {
                uuid: Some(process_uuid(pid)),
                process: Some(ProcessDescriptor {
                    pid: Some(pid as i32),
                    cmdline: row.executable.map(|path| texts.get(path).into()).into_iter().collect(),
                    process_name: Some(timeline::process_name(row, texts)),
                }),
                ..TrackDescriptor::default()
            },
            TrackKind::Thread(thread) => TrackDescriptor {
                thread: Some(ThreadDescriptor {
                    pid: Some(pid as i32),
                    tid: Some(thread as i32),
                    thread_name: Some(format!("thread {thread}")),
                }),
                ..line
            },
            TrackKind::Stream(stream) => {
                TrackDescriptor { name: Some(timeline::stream_name(stream, row, texts)), ..line }
            }
            TrackKind::Scopes(thread) => TrackDescriptor { name: Some(format!("scopes of thread {thread}")), ..line },
        };
        self.write(TracePacket { track_descriptor: Some(track), ..TracePacket::default() })
    }

    /// The number of a text, which is interned with the next packet if it is new.
    fn value(&mut self, text: Text, texts: &Texts) -> Annotated {
        let iid = text.number() as u64 + 1;
        if self.values.insert(text) {
            let str = Some(texts.get(text).as_bytes().to_vec());
            self.news.debug_annotation_string_values.push(InternedString { iid: Some(iid), str });
        }
        Annotated::StringIid(iid)
    }

    fn slice(&mut self, row: &Row, texts: &Texts, track: u64, kind: Type) -> TrackEvent {
        let name_iid = row.function.map(|function| {
            let iid = function.number() as u64 + 1;
            if self.names.insert(function) {
                let name = Some(texts.get(function).into());
                self.news.event_names.push(Name { iid: Some(iid), name });
            }
            iid
        });
        let mut annotations = Vec::new();
        for (at, column, value) in timeline::arguments(row, texts) {
            let array_values = match value {
                Value::Rules(rules) => {
                    rule_ids(rules).map(|id| annotation(None, Annotated::String(id.into()))).collect()
                }
                _ => Vec::new(),
            };
            let value = match value {
                Value::Nothing | Value::Rules(_) => None,
                Value::Text(_) => column.text(row).map(|text| self.value(text, texts)),
                Value::Number(number) => Some(Annotated::Uint(number)),
                Value::Signed(number) => Some(Annotated::Int(number)),
                Value::Address(address) => Some(Annotated::Pointer(address)),
                Value::Flag(flag) => Some(Annotated::Bool(flag)),
            };
            annotations.push(DebugAnnotation { name_iid: Some(at as u64 + 1), value, array_values });
        }
        TrackEvent {
            category_iids: vec![COPY],
            debug_annotations: annotations,
            r#type: Some(kind.into()),
            name_iid,
            track_uuid: Some(track),
            ..TrackEvent::default()
        }
    }
}

fn annotation(name_iid: Option<u64>, value: Annotated) -> DebugAnnotation {
    DebugAnnotation { name_iid, value: Some(value), array_values: Vec::new() }
}

/// Beyond the numbers of all threads and streams.
fn process_uuid(pid: u32) -> u64 {
    scattered(u64::from(pid) | 1 << 40)
}

impl Sink for Perfetto {
    fn row(&mut self, row: &Row, texts: &Texts) -> Result<()> {
        let Some(time) = timeline::begin(row) else { return Ok(()) };
        let Self { packets, tracks, flows, .. } = self;
        packets.begin(time)?;
        let track = tracks.thread(row, &mut |new| packets.describe(texts, new))?;
        let uuid = scattered(track.id);
        let mut outcome = Ok(());
        track.lane.pass(time, |end| {
            if outcome.is_ok() {
                outcome = packets.end(uuid, end);
            }
        });
        outcome?;
        let Some(given) = timeline::span(row) else {
            let event = packets.slice(row, texts, uuid, Type::Instant);
            return packets.event(time, event);
        };
        let TimeSpan { begin, .. } = track.lane.open(given);
        let mut event = packets.slice(row, texts, uuid, Type::SliceBegin);
        let Some(stream) = row.submits() else { return packets.event(begin, event) };
        *flows += 1;
        event.flow_ids.push(scattered(*flows));
        packets.event(begin, event)?;
        let track = tracks.track(row, TrackKind::Stream(stream), &mut |new| packets.describe(texts, new))?;
        let (uuid, queued) = (scattered(track.id), track.lane.queue(given));
        let mut event = packets.slice(row, texts, uuid, Type::SliceBegin);
        event.terminating_flow_ids.push(scattered(*flows));
        packets.event(queued.begin, event)?;
        packets.end(uuid, queued.end)
    }

    /// Marks as instants on their threads; scopes as slices on lines of their own.
    fn remark(&mut self, row: &Row, what: &Annotation, text: &str, texts: &Texts) -> Result<()> {
        let Some(time) = timeline::begin(row).filter(|_| !matches!(what, Annotation::Name { .. })) else {
            return Ok(());
        };
        let Self { packets, tracks, scopes, .. } = self;
        packets.begin(time)?;
        let mut describe = |new: NewTrack<'_>| packets.describe(texts, new);
        let (track, kind, category) = match what {
            Annotation::ScopeEnd { id, .. } => match scopes.remove(&(row.process, *id)) {
                Some(track) => (track, Type::SliceEnd, SCOPE),
                None => return Ok(()),
            },
            Annotation::Scope { id, .. } => {
                let kind = TrackKind::Scopes(row.thread.unwrap_or_default());
                let track = scattered(tracks.track(row, kind, &mut describe)?.id);
                scopes.insert((row.process, *id), track);
                (track, Type::SliceBegin, SCOPE)
            }
            _ => (scattered(tracks.thread(row, &mut describe)?.id), Type::Instant, MARK),
        };
        let event = TrackEvent {
            category_iids: vec![category],
            name: (kind != Type::SliceEnd).then(|| text.into()),
            r#type: Some(kind.into()),
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        packets.event(time, event)
    }

    fn finish(mut self: Box<Self>, _texts: &Texts) -> Result<()> {
        let mut ends = Vec::new();
        for track in self.tracks.threads() {
            track.lane.pass(u64::MAX, |end| ends.push((scattered(track.id), end)));
        }
        for (track, end) in ends {
            self.packets.end(track, end)?;
        }
        self.packets.to.finish()
    }
}
