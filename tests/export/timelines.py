"""timelines.py CHROME PERFETTO JSONL: reads both timelines, and finds the calls of the JSON lines in each: on their threads,
accepted ones on their streams too, slices within each other or apart, an arrow from each submission to its stream."""

import json
import os
import shutil
import sys
import tempfile
from collections import Counter, defaultdict

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto


def is_submission(row):
    return row["stream"] is not None and row["code"] == 0 and not row["nested"] and not row["refused"]


def stream_name(row):
    return "default stream" if row["stream"] == "0x0" else "stream " + row["stream"]


def expected(rows):
    """What must be there: slices on threads, marks on threads, slices on streams."""
    ended = [row for row in rows if row["duration_ns"] is not None]
    slices = Counter((row["function"], row["thread"], row["number"]) for row in ended)
    marks = Counter((row["function"], row["thread"], row["number"]) for row in rows if row["duration_ns"] is None)
    streams = Counter((row["function"], stream_name(row), row["number"]) for row in ended if is_submission(row))
    return slices, marks, streams


def nested(spans):
    """Whether each lies within another or apart."""
    open_ends = []
    for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            return False
        open_ends.append(end)
    return True


def chrome(path, rows):
    trace = json.load(open(path, encoding="utf-8"))
    events = trace["traceEvents"]
    kinds = Counter(event["ph"] for event in events)
    assert set(kinds) <= set("MXisf"), kinds
    assert kinds["s"] == kinds["f"], kinds
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    nanos = lambda value: round(value * 1000)
    start = int(trace["otherData"]["start_ns"])
    by_number = {(row["thread"], row["number"], row["pid"], row["boot"]): row for row in rows}
    spans, slices, marks, streams = defaultdict(list), Counter(), Counter(), Counter()
    for event in events:
        if event["ph"] not in "Xi":
            continue
        assert event["pid"] in processes and (event["pid"], event["tid"]) in names, event
        name, number = names[event["pid"], event["tid"]], event["args"]["number"]
        if event["ph"] == "i":
            marks[event["name"], event["tid"], number] += 1
            continue
        span = (nanos(event["ts"]), nanos(event["ts"]) + nanos(event["dur"]))
        spans[event["pid"], event["tid"]].append(span)
        if "stream" in name:
            streams[event["name"], name, number] += 1
        else:
            assert name == f"thread {event['tid']}", name
            slices[event["name"], event["tid"], number] += 1
            row = next((row for key, row in by_number.items() if key[:2] == (event["tid"], number)), None)
            if len(processes) == 1:
                assert abs(start + span[0] - row["time_ns"]) <= 1 and abs(span[1] - span[0] - row["duration_ns"]) <= 1, (event, row)
                assert event["args"].get("count") == row["count"], (event, row)
    assert (slices, marks, streams) == expected(rows)
    assert all(nested(track) for track in spans.values())
    ends = defaultdict(dict)
    for event in events:
        if event["ph"] in "sf":
            ends[event["id"]][event["ph"]] = (event["pid"], event["tid"], nanos(event["ts"]))
    assert len(ends) == sum(streams.values())
    for flow in ends.values():
        for end in "sf":
            pid, tid, at = flow[end]
            assert any(begin <= at <= until for begin, until in spans[pid, tid]), flow
        assert "thread" in names[flow["s"][:2]] and "stream" in names[flow["f"][:2]], flow
    return len(processes)


def perfetto(path, rows):
    trace = proto.Trace()
    trace.ParseFromString(open(path, "rb").read())
    event_type = proto.TrackEvent.Type
    names, columns, values, tracks, events = {}, {}, {}, {}, []
    for packet in trace.packet:
        for entry in packet.interned_data.event_names:
            assert entry.iid not in names
            names[entry.iid] = entry.name
        columns.update((entry.iid, entry.name) for entry in packet.interned_data.debug_annotation_names)
        values.update((entry.iid, entry.str.decode()) for entry in packet.interned_data.debug_annotation_string_values)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks and (not track.parent_uuid or track.parent_uuid in tracks)
            tracks[track.uuid] = track
        if packet.HasField("track_event"):
            event = packet.track_event
            assert packet.trusted_packet_sequence_id and event.track_uuid in tracks
            assert event.type == event_type.TYPE_SLICE_END or event.name_iid in names
            assert all(note.name_iid in columns for note in event.debug_annotations)
            assert all(not note.string_value_iid or note.string_value_iid in values for note in event.debug_annotations)
            events.append((packet.timestamp, event))
    assert trace.packet[0].clock_snapshot.primary_trace_clock == 1
    clocks = {packet.trace_packet_defaults.timestamp_clock_id for packet in trace.packet if packet.HasField("trace_packet_defaults")}
    assert clocks == {1}, clocks
    events.sort(key=lambda event: event[0])  # as trace_processor does: in the order of time, and of the file
    stacks, slices, marks, streams, flows = defaultdict(list), Counter(), Counter(), Counter(), defaultdict(list)
    ended = {}
    for time, event in events:
        track, stack = tracks[event.track_uuid], stacks[event.track_uuid]
        if event.type == event_type.TYPE_SLICE_END:
            key, begin = stack.pop()
            ended[key] = (begin, time)
            continue
        told = {columns[note.name_iid]: note for note in event.debug_annotations}
        number, tid = told["number"].uint_value, track.thread.tid
        key = (names[event.name_iid], tid or track.name, number)
        if event.type == event_type.TYPE_INSTANT:
            marks[key] += 1
            continue
        assert event.type == event_type.TYPE_SLICE_BEGIN
        (slices if tid else streams)[key] += 1
        stack.append((key, time))
        for flow in event.flow_ids:
            flows[flow].append(("from", bool(tid), number))
        for flow in event.terminating_flow_ids:
            flows[flow].append(("to", bool(tid), number))
    assert not any(stacks.values()), "every slice that begins ends"
    assert (slices, marks, streams) == expected(rows)
    assert len(flows) == sum(streams.values())
    for ends in flows.values():
        (start, on_thread, one), (end, also_on_thread, other) = sorted(ends)
        assert (start, end, on_thread, also_on_thread, one) == ("from", "to", True, False, other), ends
    processes = [track for track in tracks.values() if track.HasField("process")]
    assert len({track.process.pid for track in processes}) == len(processes)
    if len(processes) == 1:
        for row in rows:
            if row["duration_ns"] is not None:
                begin, end = ended[row["function"], row["thread"], row["number"]]
                assert abs(begin - row["time_ns"]) <= 1 and abs(end - begin - row["duration_ns"]) <= 1, row
    rules = [[item.string_value for item in note.array_values] for _, event in events if event.type == event_type.TYPE_SLICE_BEGIN
             and tracks[event.track_uuid].HasField("thread") for note in event.debug_annotations if columns[note.name_iid] == "rules"]
    assert sorted(rules) == sorted(row["rules"] for row in rows if row["rules"] and row["duration_ns"] is not None)
    processor, way = trace_processor()
    if processor:
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

        with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=processor, load_timeout=600)) as reader:
            found = next(reader.query("select count(*) as count from slice where dur >= 0")).count
        assert found == len(rows) + sum(streams.values()), found
    return len(processes), way


def trace_processor():
    """Perfetto's own reader, if it can be had, and how it was had: from PATH, or as the package gets it, from the network."""
    found = shutil.which("trace_processor_shell")
    if found:
        return found, "by the trace_processor on PATH"
    from perfetto.prebuilts.manifests.trace_processor_shell import TRACE_PROCESSOR_SHELL_MANIFEST
    from perfetto.prebuilts.perfetto_prebuilts import get_perfetto_prebuilt

    with tempfile.TemporaryDirectory() as folder:
        # The package waits for curl, and by default that waits for ever.
        with open(os.path.join(folder, ".curlrc"), "w") as limits:
            limits.write("connect-timeout = 5\nmax-time = 60\nsilent\n")
        os.environ["CURL_HOME"] = folder
        try:
            return get_perfetto_prebuilt(TRACE_PROCESSOR_SHELL_MANIFEST), "by the package's trace_processor"
        except Exception as why:  # whatever it is, the file was decoded all the same
            return None, f"by a protobuf decode alone ({type(why).__name__}: the package's trace_processor cannot be had)"


def main():
    rows = [json.loads(line) for line in open(sys.argv[3], encoding="utf-8")]
    assert rows
    of_perfetto, way = perfetto(sys.argv[2], rows)
    counts = [chrome(sys.argv[1], rows), of_perfetto]
    assert counts == [len({(row["boot"], row["pid"], row["born_ns"]) for row in rows})] * 2, counts
    print(counts[0], "processes,", len(rows), "calls; the Perfetto file was read", way)


main()
