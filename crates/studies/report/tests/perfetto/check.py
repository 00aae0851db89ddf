"""Reads a trace with the messages of PyPI's `perfetto` and holds it to the rows of the directory it was made from.

    pip install perfetto
    python check.py DIR FILE

Needs no network: the package brings the messages; its trace processor, which it would download, is not used.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def rows(directory, table):
    path = directory / f"{table}.csv"
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def check(condition, message):
    if not condition:
        sys.exit(message)


def main(directory, file):
    trace = Trace()
    trace.ParseFromString(file.read_bytes())
    paths, counters, slices, instants = {}, {}, defaultdict(list), 0
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            name = track.process.process_name if track.HasField("process") else track.name
            above = paths[track.parent_uuid] + "/" if track.HasField("parent_uuid") else ""
            check(track.uuid not in paths, f"track {track.uuid} twice")
            paths[track.uuid] = above + name
            if track.HasField("counter"):
                counters[above + name] = []
            continue
        event = packet.track_event
        path = paths[event.track_uuid]
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            slices[path].append([event, packet.timestamp, None])
        elif event.type == TrackEvent.TYPE_SLICE_END:
            slices[path][-1][2] = packet.timestamp
        elif event.type == TrackEvent.TYPE_COUNTER:
            whole = event.HasField("counter_value")
            counters[path].append((packet.timestamp, event.counter_value if whole else event.double_counter_value))
        else:
            check(event.type == TrackEvent.TYPE_INSTANT, f"an event of type {event.type}")
            instants += 1

    flows = {row["flow_id"]: row for row in rows(directory, "flows") if row["start_ps"]}
    seen = set()
    for path, of_track in slices.items():
        if not path.startswith("Flows, by sending host/"):
            continue
        for event, begin, end in of_track:
            number = event.name.split()[1]
            row = flows[number]
            check(number not in seen, f"flow {number} twice")
            seen.add(number)
            start = int(row["start_ps"])
            check(begin == start // 1000, f"flow {number} begins at {begin} ns, not {start} ps")
            if row["fct_ack_ps"]:
                last = start + int(row["fct_ack_ps"])
                check(end == last // 1000, f"flow {number} ends at {end} ns, not {last} ps")
            known = {a.name: a for a in event.debug_annotations}
            check(known["size_bytes"].uint_value == int(row["size_bytes"]), f"size of flow {number}")
    check(len(seen) == len(flows), f"{len(seen)} slices for {len(flows)} flows")

    tables = [
        ("series", "Ports", lambda row: f"{row['from']}->{row['to']}"),
        ("series_flows", "Flows: series", lambda row: f"flow {row['flow_id']}"),
        ("series_scheme", "Load balancers", lambda row: row["scheme"]),
    ]
    compared = 0
    for table, group, owner in tables:
        expected = defaultdict(list)
        for row in rows(directory, table):
            for column, cell in row.items():
                if column not in ("from", "to", "flow_id", "scheme", "time_ps", "seed") and cell != "":
                    value = float({"true": 1, "false": 0}.get(cell, cell))
                    expected[f"{group}/{owner(row)}/{column}"].append((int(row["time_ps"]) // 1000, value))
        for path, samples in expected.items():
            if all(value == 0 for _, value in samples):
                check(path not in counters, f"{path} is zero throughout and has a counter")
                continue
            changes = iter(counters[path] + [(float("inf"), None)])
            (_, value), (until, following) = next(changes), next(changes)
            for time, sample in samples:
                while until <= time:
                    value = following
                    until, following = next(changes)
                check(value == sample, f"{path} is {value} at {time} ns, not {sample}")
                compared += 1
    known = {f"{group}/" for _, group, _ in tables}
    for path in counters:
        check(any(path.startswith(group) for group in known), f"{path} is of no table")
    faults = sum(len(row["fault"].split("; ")) for row in rows(directory, "links") if row["fault"])
    happened = len(rows(directory, "trace"))
    check(instants == faults + happened, f"{instants} moments for {faults} faults and {happened} events of packets")
    total = sum(len(of_track) for of_track in slices.values())
    print(f"{len(paths)} tracks, {total} slices, {len(counters)} counters, {compared} samples: as in the rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
