//! Export of a run as a Perfetto trace. The reader implements the wire format of protocol buffers with Perfetto's field
//! numbers, and shares no code with the writer.

use crate::{
    common,
    common::{SCHEMES, add_measurements, fault, flow, meta, provenance, run},
};
use anabranch_outcome::RunRows;
use anabranch_report::{PerfettoCounts, export_perfetto};
use anabranch_results::{Formats, Inputs, LinkFault, OutputFile, Provenance, ReportError, RunMeta, WorkloadMeta};
use anabranch_testkit::{Folder, folder};
use anabranch_units::Time;
use std::{collections::BTreeMap, fs, path::Path, process::Command};

#[derive(Clone, Debug, PartialEq)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

type Message = BTreeMap<u64, Vec<Field>>;

fn export(dir: &Path, file: &Path) -> Result<PerfettoCounts, ReportError> {
    export_perfetto(dir, &OutputFile::new(file, true, &Inputs::default())?)
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

fn message(mut bytes: &[u8]) -> Message {
    let mut fields = Message::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.entry(key >> 3).or_default().push(field);
    }
    fields
}

fn number(message: &Message, field: u64) -> Option<u64> {
    match message.get(&field)?.first()? {
        Field::Number(number) => Some(*number),
        Field::Bytes(_) => panic!("field {field} is no number"),
    }
}

fn text(message: &Message, field: u64) -> Option<String> {
    match message.get(&field)?.first()? {
        Field::Bytes(bytes) => Some(String::from_utf8(bytes.clone()).unwrap()),
        Field::Number(_) => panic!("field {field} is no text"),
    }
}

fn inner(outer: &Message, field: u64) -> Option<Message> {
    match outer.get(&field)?.first()? {
        Field::Bytes(bytes) => Some(message(bytes)),
        Field::Number(_) => panic!("field {field} is no message"),
    }
}

#[derive(Debug, Default)]
struct Track {
    /// Names from the top level down, separated by slashes.
    path: String,
    counter: bool,
    /// Nanoseconds and value.
    values: Vec<(u64, f64)>,
    /// Name, begin, end, annotations.
    slices: Vec<(String, u64, u64, BTreeMap<String, u64>)>,
    instants: Vec<(u64, String)>,
}

fn details(event: &Message) -> BTreeMap<String, u64> {
    let annotations = event.get(&4).into_iter().flatten();
    let pair = |field: &Field| {
        let Field::Bytes(bytes) = field else { panic!("an annotation is a message") };
        let annotation = message(bytes);
        Some((text(&annotation, 10)?, number(&annotation, 3)?))
    };
    annotations.filter_map(pair).collect()
}

fn read(file: &Path) -> BTreeMap<u64, Track> {
    let trace = message(&fs::read(file).unwrap());
    let mut tracks: BTreeMap<u64, Track> = BTreeMap::new();
    for packet in &trace[&1] {
        let Field::Bytes(bytes) = packet else { panic!("a packet is a message") };
        let packet = message(bytes);
        assert_eq!(number(&packet, 10), Some(1), "every packet names its sequence");
        if let Some(descriptor) = inner(&packet, 60) {
            let own = text(&descriptor, 2).or_else(|| text(&inner(&descriptor, 3)?, 6)).expect("a name");
            let above = number(&descriptor, 5).map(|parent| format!("{}/", tracks[&parent].path));
            let path = above.unwrap_or_default() + &own;
            let counter = descriptor.contains_key(&8);
            tracks.insert(number(&descriptor, 1).unwrap(), Track { path, counter, ..Track::default() });
            continue;
        }
        let (time, event) = (number(&packet, 8).unwrap(), inner(&packet, 11).unwrap());
        let track = tracks.get_mut(&number(&event, 11).unwrap()).expect("a track that was described before");
        match number(&event, 9).unwrap() {
            1 => track.slices.push((text(&event, 23).unwrap(), time, u64::MAX, details(&event))),
            2 => track.slices.last_mut().expect("a slice that began").2 = time,
            3 => track.instants.push((time, text(&event, 23).unwrap())),
            4 => {
                assert!(track.counter, "{} is a counter", track.path);
                let value = number(&event, 30).map(|value| value as f64);
                track.values.push((time, value.or(number(&event, 44).map(f64::from_bits)).unwrap()));
            }
            other => panic!("type {other}"),
        }
    }
    tracks
}

fn at(values: &[(u64, f64)], ns: u64) -> f64 {
    values.iter().rev().find(|(time, _)| *time <= ns).map_or(0.0, |(_, value)| *value)
}

/// Web traffic, and a ring of four ranks in three phases, with series and a fault.
fn invented() -> (RunRows, RunMeta, Provenance) {
    let (mut result, mut meta) = (run(&SCHEMES[4], 1, 600, false), meta("prime", 1));
    add_measurements(&mut result);
    for phase in 0..3 {
        for rank in 0..4 {
            let mut one = flow(600 + 4 * phase + rank, 1 << 20, Time::from_us(100 + 50 * u64::from(phase)), 1.5);
            (one.src, one.dst, one.workload) = (rank, (rank + 1) % 4, 1);
            result.flows.push(one);
        }
    }
    common::unfinish(&mut result.flows[5]);
    meta.workloads = ["web", "ring"]
        .map(|name| WorkloadMeta { name: name.to_string(), measured: true, ..WorkloadMeta::default() })
        .to_vec();
    meta.faults = vec![fault("leaf3", "spine5", Time::from_us(20), LinkFault::DOWN)];
    let mut from = provenance();
    from.scenario_toml +=
        "\n[[workload]]\nkind = \"poisson\"\nname = \"web\"\n[[workload]]\nkind = \"collective\"\nname = \"ring\"\n";
    (result, meta, from)
}

fn written() -> (Folder, RunRows) {
    let dir = folder();
    let (result, meta, from) = invented();
    common::write_run_from(&dir, &result, &meta, &from, Formats::BOTH);
    (dir, result)
}

#[test]
fn tracks_slices_and_counters_equal_rows() {
    let (dir, result) = written();
    let file = dir.join("run.pftrace");
    let counts = export(&dir, &file).unwrap();
    let tracks = read(&file);
    assert_eq!(counts.tracks, tracks.len() as u64);
    let slices: Vec<_> =
        tracks.values().flat_map(|track| track.slices.iter().map(move |slice| (track, slice))).collect();
    assert_eq!(counts.slices, slices.len() as u64);
    // Each flow is present once, from its start to its last acknowledgement or, if unfinished, to the end of the run.
    let mut of_flows = BTreeMap::new();
    for (track, slice) in slices.iter().filter(|(track, _)| track.path.starts_with("Flows, by sending host/")) {
        let number: usize = slice.0.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(track.path.contains(&format!("host {}/", result.flows[number].src)), "{}", track.path);
        assert!(of_flows.insert(number, slice).is_none(), "flow {number} twice");
    }
    assert_eq!(of_flows.len(), result.flows.len());
    for (flow, (number, slice)) in result.flows.iter().zip(of_flows) {
        let start = flow.start.unwrap().ps();
        let end = flow.fct_ack.map_or(result.simulated.ps(), |fct| start + fct.ps());
        assert_eq!((slice.1, slice.2), (start / 1000, end / 1000), "flow {number}");
        assert_eq!((slice.3["start_ps"], slice.3["end_ps"]), (start, end));
        assert_eq!(slice.3["size_bytes"], flow.size_bytes);
    }
    for track in tracks.values() {
        assert!(track.slices.windows(2).all(|pair| pair[0].2 <= pair[1].1), "{}", track.path);
    }
    // Three phases of the ring, 50 us apart: (1 MiB * 20 ps + 4 us) * 1.5 + 4 us after their start.
    for phase in 0..3 {
        let path = format!("/ring/phase {}", phase + 1);
        let (_, slice) = slices.iter().find(|(track, _)| track.path.ends_with(&path)).expect("a phase");
        let from = 100_000 + 50_000 * phase;
        assert_eq!((slice.1, slice.2), (from, from + ((1 << 20) * 20 + 4_000_000) * 3 / 2 / 1000 + 4_000));
        assert_eq!(slice.3["flows"], 4);
    }
    let faults = tracks.values().find(|track| track.path == "Faults/links").unwrap();
    assert_eq!(faults.instants, [(20_000, "leaf3->spine5 down".to_string())]);
    // Counters have the value of every row at its time.
    let counter = |path: &str| tracks.values().find(|track| track.path == path).map(|track| track.values.as_slice());
    for sample in &result.series[0].samples {
        let ns = sample.time.ps() / 1000;
        let columns = [
            ("queue_bytes", sample.queue_bytes),
            ("queue_packets", sample.queue_packets),
            ("sent_bytes", sample.sent_bytes),
            ("sent_packets", sample.sent_packets),
            ("ecn_marks", sample.ecn_marks),
        ];
        for (column, value) in columns {
            let values = counter(&format!("Ports/leaf0->spine0/{column}")).expect("a counter");
            assert_eq!(at(values, ns), value as f64, "{column} at {ns} ns");
        }
    }
    // A column that is zero throughout has no counter. 50 kB per microsecond are 400 Gb/s.
    assert_eq!(counter("Ports/leaf0->spine0/pauses"), None);
    assert_eq!(counter("Ports/leaf0->spine0/throughput"), Some(&[(0, 400.0)][..]));
    for sample in &result.flow_series[0].samples {
        let values = counter("Flows: series/flow 7/window_bytes").unwrap();
        assert_eq!(at(values, sample.time.ps() / 1000), sample.window_bytes.unwrap() as f64);
    }
    let finished = counter("Load balancers/prime/finished_flows").unwrap();
    assert_eq!(finished.last().unwrap().1, result.scheme_series[0].samples.last().unwrap().finished_flows as f64);
    // What the scheme knew: 14 us from the acknowledgement on; and its calls that no packet shows.
    assert_eq!(counter("Flows: scheme_hopper/flow 7/average_ps"), Some(&[(2_000, 14e6)][..]));
    assert_eq!(counter("Flows: scheme_hopper/flow 7/probe_above_ps"), Some(&[(1_000, 12e6)][..]));
    let calls = tracks.values().find(|track| track.path == "Flows: scheme_hopper/flow 7/calls").unwrap();
    let found: Vec<(u64, &str)> = calls.instants.iter().map(|(at, name)| (*at, name.as_str())).collect();
    assert_eq!(found, [(3_000, "probe"), (4_000, "reply"), (5_000, "hold 11")]);
    let values: usize = tracks.values().map(|track| track.values.len()).sum();
    // A fault, and the events of the packets of the traced flow.
    let packets = tracks.values().find(|track| track.path == "Packets of traced flows/flow 7").unwrap();
    assert_eq!(packets.instants[0], (1_000, "hop data 3".to_string()));
    assert_eq!(packets.instants.len(), result.watched.trace.len());
    assert_eq!((counts.values, counts.instants), (values as u64, 1 + packets.instants.len() as u64 + 3));
}

#[test]
fn other_directories_are_refused_and_unchanged() {
    let dir = folder();
    fs::create_dir_all(dir.join("runs")).unwrap();
    let file = dir.join("run.pftrace");
    let error = export(&dir, &file).unwrap_err().to_string();
    assert!(error.contains("several runs") && error.contains("runs/SCHEME/seed1"), "{error}");
    fs::remove_dir_all(dir.join("runs")).unwrap();
    let error = export(&dir, &file).unwrap_err().to_string();
    assert!(error.contains("has no results"), "{error}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

/// Reads the trace back with Perfetto's own messages: `tests/perfetto/check.py`.
#[test]
#[ignore = "needs the package perfetto of PyPI"]
fn perfetto_reads_equal_values() {
    let (dir, _) = written();
    let file = dir.join("run.pftrace");
    export(&dir, &file).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perfetto/check.py");
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_string());
    let output = Command::new(python).arg(script).args([&*dir, &file]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
}
