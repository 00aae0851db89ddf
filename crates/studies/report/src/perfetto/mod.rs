//! Export of a run's rows as a trace for Perfetto (<https://perfetto.dev>).

mod messages;
mod writer;

pub use writer::PerfettoCounts;

use crate::dataset::faults_of;
use anabranch_results::{
    Column, ColumnKind, Frame, Manifest, OutputFile, ReportError, Summary, TABLES, Table, bytes, read_summary,
};
use std::{
    collections::BTreeMap,
    io,
    io::{BufWriter, Write},
    path::Path,
};
use writer::{Detail, Track, Writer};

/// Writes the rows of the run in `dir` as a Perfetto trace to `file`, which appears when it is complete.
///
/// # Errors
/// [`ReportError`] if `dir` contains no run, its rows cannot be read, or the file cannot be written.
pub fn export_perfetto(dir: &Path, file: &OutputFile) -> Result<PerfettoCounts, ReportError> {
    let Some(summary) = read_summary(dir)? else {
        if dir.join("runs").is_dir() {
            let found = "this is a directory of several runs";
            return Err(ReportError::content(dir, found, "give that of one of them, such as runs/SCHEME/seed1 in it"));
        }
        return Err(ReportError::NoResults { path: dir.to_path_buf() });
    };
    let rows = Rows::read(dir, summary)?;
    let (pending, counts) = file.write(|to| rows.write(BufWriter::new(to)))?;
    pending.publish()?;
    Ok(counts)
}

struct Rows {
    summary: Summary,
    /// Workloads whose flows run in phases.
    collectives: Vec<String>,
    flows: Vec<FlowRow>,
    faults: Vec<(u64, String, String)>,
    series: Vec<Series>,
    packets: Option<Frame>,
}

#[derive(Clone, Debug)]
struct FlowRow {
    flow_id: u64,
    src: u64,
    dst: u64,
    size_bytes: u64,
    start_ps: u64,
    end_ps: u64,
    slowdown: Option<f64>,
    status: String,
    workload: String,
    scheme: String,
    retransmitted: Option<u64>,
    path_switches: Option<u64>,
}

struct Series {
    table: &'static Table,
    frame: Frame,
    group: String,
    /// Columns that identify the owner of a sample, whose name `name` returns.
    keys: &'static [&'static str],
    name: fn(&[String]) -> String,
    /// A counter of bytes, whose rate is shown too.
    bytes: Option<&'static str>,
}

/// Table, group of tracks, key columns, name of the owner, counter of bytes.
type Kind = (&'static str, &'static str, &'static [&'static str], fn(&[String]) -> String, Option<&'static str>);

const FLOW_SERIES: Kind =
    ("series_flows", "Flows: series", &["flow_id"], |keys| format!("flow {}", keys[0]), Some("received_bytes"));

const SERIES: [Kind; 3] = [
    ("series", "Ports", &["from", "to"], |keys| keys.join("->"), Some("sent_bytes")),
    FLOW_SERIES,
    ("series_scheme", "Load balancers", &["scheme"], |keys| keys[0].clone(), None),
];

/// Columns of the calls of schemes that are shown beside the state.
const SCHEME: &[&str] = &["time_ps", "flow_id", "event", "psn", "tag"];
/// Calls that are shown as packets too.
const PACKET_CALLS: [&str; 3] = ["send", "ack", "forward"];

fn integer(frame: &Frame, name: &str, row: usize) -> Option<u64> {
    frame.integers(name).get(row).copied().flatten()
}

fn text(frame: &Frame, name: &str, row: usize) -> String {
    frame.texts(name).get(row).cloned().unwrap_or_default()
}

impl Rows {
    fn read(dir: &Path, summary: Summary) -> Result<Self, ReportError> {
        let end_ps = (summary.simulated_s * 1e12).round() as u64;
        let mut series = vec![];
        for (name, group, keys, of, bytes) in SERIES {
            let Some(table) = TABLES.iter().find(|table| table.name == name) else { continue };
            let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            if let Some(frame) = Frame::read(dir, name, &columns)? {
                series.push(Series { table, frame, group: group.to_string(), keys, name: of, bytes });
            }
        }
        for table in TABLES.iter().filter(|table| table.is_scheme()) {
            let state = table.columns.iter().filter(|column| column.kind == ColumnKind::Real);
            let columns: Vec<&str> = SCHEME.iter().copied().chain(state.map(|column| column.name)).collect();
            if let Some(frame) = Frame::read(dir, table.name, &columns)? {
                let (group, of) = (format!("Flows: {}", table.name), FLOW_SERIES.3);
                series.push(Series { table, frame, group, keys: FLOW_SERIES.2, name: of, bytes: None });
            }
        }
        let manifest = Manifest::read(dir)?.unwrap_or_default();
        Ok(Rows {
            summary,
            collectives: collectives(&manifest.scenario),
            flows: flows(dir, end_ps)?,
            faults: faults(dir)?,
            series,
            packets: Frame::read(dir, "trace", PACKETS)?,
        })
    }

    fn write(&self, to: impl Write) -> io::Result<PerfettoCounts> {
        let mut writer = Writer::new(to);
        self.write_faults(&mut writer)?;
        self.write_workloads(&mut writer)?;
        self.write_flows(&mut writer)?;
        for series in &self.series {
            series.write(&mut writer)?;
        }
        self.write_packets(&mut writer)?;
        writer.finish()
    }

    fn write_faults<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let group = writer.group("Faults")?;
        let track = writer.child(group, "links")?;
        for (at, what, link) in &self.faults {
            writer.instant(track, *at, &format!("{link} {what}"), [("link", Detail::Text(link.clone()))])?;
        }
        Ok(())
    }

    /// Writes the whole workload and, of a collective, its phases. A phase is the k-th flows of all ranks, from the
    /// first start to the last acknowledgement.
    fn write_workloads<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let group = writer.group(&format!("Workloads of {} under {}", self.summary.scenario, self.summary.scheme))?;
        let mut names: Vec<&str> = self.flows.iter().map(|flow| flow.workload.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let of: Vec<&FlowRow> = self.flows.iter().filter(|flow| flow.workload == name).collect();
            let Some(whole) = span(&of) else { continue };
            let track = writer.child(group, name)?;
            let all = of.iter().map(|flow| flow.size_bytes).sum();
            writer.slice(
                track,
                whole,
                name,
                [("flows", Detail::Number(of.len() as u64)), ("bytes", Detail::Number(all))],
            )?;
            if !self.collectives.iter().any(|collective| collective == name) {
                continue;
            }
            for (number, phase) in phases(&of).iter().enumerate() {
                let Some(span) = span(phase) else { continue };
                // Phases of ranks that run ahead overlap, so each has a track.
                let track = writer.child(track, &format!("phase {}", number + 1))?;
                let bytes = phase.iter().map(|flow| flow.size_bytes).sum();
                let details = [("flows", Detail::Number(phase.len() as u64)), ("bytes", Detail::Number(bytes))];
                writer.slice(track, span, &format!("{name}, phase {}", number + 1), details)?;
            }
        }
        Ok(())
    }

    /// Writes as many tracks per sending host as flows are open at the same time.
    fn write_flows<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let group = writer.group("Flows, by sending host")?;
        let mut by_host: BTreeMap<u64, Vec<&FlowRow>> = BTreeMap::new();
        self.flows.iter().for_each(|flow| by_host.entry(flow.src).or_default().push(flow));
        for (host, mut flows) in by_host {
            flows.sort_by_key(|flow| (flow.start_ps, flow.flow_id));
            let parent = writer.child(group, &format!("host {host}"))?;
            let mut lanes: Vec<(Track, u64)> = vec![];
            for flow in flows {
                let track = match lanes.iter_mut().find(|lane| lane.1 <= flow.start_ps) {
                    Some(lane) => {
                        lane.1 = flow.end_ps;
                        lane.0
                    }
                    None => {
                        let track = writer.child(parent, &format!("host {host}"))?;
                        lanes.push((track, flow.end_ps));
                        track
                    }
                };
                let name = format!("flow {} to host {}, {}", flow.flow_id, flow.dst, bytes(flow.size_bytes as f64));
                let details = vec![
                    ("size_bytes", Detail::Number(flow.size_bytes)),
                    ("start_ps", Detail::Number(flow.start_ps)),
                    ("end_ps", Detail::Number(flow.end_ps)),
                    ("slowdown", flow.slowdown.map_or_else(|| Detail::Text("none".into()), Detail::Real)),
                    ("status", Detail::Text(flow.status.clone())),
                    ("workload", Detail::Text(flow.workload.clone())),
                    ("scheme", Detail::Text(flow.scheme.clone())),
                ];
                let counts = [("retransmitted_packets", flow.retransmitted), ("path_switches", flow.path_switches)];
                let counts = counts.into_iter().filter_map(|(name, count)| Some((name, Detail::Number(count?))));
                let details = details.into_iter().chain(counts);
                writer.slice(track, (flow.start_ps, flow.end_ps), &name, details)?;
            }
        }
        Ok(())
    }
}

const PACKETS: &[&str] = &["time_ps", "event", "flow_id", "psn", "packet", "tag", "from", "to"];

impl Rows {
    fn write_packets<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let Some(frame) = &self.packets else { return Ok(()) };
        let group = writer.group("Packets of traced flows")?;
        let mut tracks: BTreeMap<u64, Track> = BTreeMap::new();
        for row in 0..frame.rows() {
            let number = |name: &str| integer(frame, name, row).unwrap_or_default();
            let flow = number("flow_id");
            let track = match tracks.get(&flow) {
                Some(track) => *track,
                None => *tracks.entry(flow).or_insert(writer.child(group, &format!("flow {flow}"))?),
            };
            let psn = integer(frame, "psn", row).map_or(String::new(), |psn| format!(" {psn}"));
            let name = format!("{} {}{psn}", text(frame, "event", row), text(frame, "packet", row));
            let link = format!("{}->{}", text(frame, "from", row), text(frame, "to", row));
            let details = [("link", Detail::Text(link)), ("tag", Detail::Number(number("tag")))];
            writer.instant(track, number("time_ps"), &name, details)?;
        }
        Ok(())
    }
}

/// Time from the first start to the last end.
fn span(flows: &[&FlowRow]) -> Option<(u64, u64)> {
    let from = flows.iter().map(|flow| flow.start_ps).min()?;
    Some((from, flows.iter().map(|flow| flow.end_ps).max()?))
}

/// The k-th flows of all senders, for each k.
fn phases<'f>(flows: &[&'f FlowRow]) -> Vec<Vec<&'f FlowRow>> {
    let mut sorted = flows.to_vec();
    sorted.sort_by_key(|flow| (flow.start_ps, flow.flow_id));
    let mut sent: BTreeMap<u64, usize> = BTreeMap::new();
    let mut phases: Vec<Vec<&FlowRow>> = vec![];
    for flow in sorted {
        let number = sent.entry(flow.src).or_default();
        if phases.len() <= *number {
            phases.push(vec![]);
        }
        phases[*number].push(flow);
        *number += 1;
    }
    phases
}

fn collectives(scenario: &str) -> Vec<String> {
    let scenario: toml::Table = scenario.parse().unwrap_or_default();
    let workloads = scenario.get("workload").and_then(toml::Value::as_array).into_iter().flatten();
    let word = |table: &toml::Value, key: &str| table.get(key).and_then(toml::Value::as_str).map(str::to_string);
    let collective = |table: &&toml::Value| {
        word(table, "kind")
            .is_some_and(|kind| ["collective", "training-rounds", "training-step"].contains(&kind.as_str()))
    };
    workloads.filter(collective).filter_map(|table| word(table, "name").or_else(|| word(table, "kind"))).collect()
}

/// An unfinished flow lasts until `end_ps`.
fn flows(dir: &Path, end_ps: u64) -> Result<Vec<FlowRow>, ReportError> {
    const COLUMNS: &[&str] = &[
        "flow_id",
        "src",
        "dst",
        "size_bytes",
        "start_ps",
        "fct_ack_ps",
        "slowdown",
        "status",
        "workload",
        "scheme",
        "retransmitted_packets",
        "path_switches",
    ];
    let Some(frame) = Frame::read(dir, "flows", COLUMNS)? else { return Ok(vec![]) };
    let row = |row: usize| {
        let number = |name: &str| integer(&frame, name, row);
        let start_ps = number("start_ps")?;
        Some(FlowRow {
            flow_id: number("flow_id")?,
            src: number("src")?,
            dst: number("dst")?,
            size_bytes: number("size_bytes").unwrap_or_default(),
            start_ps,
            end_ps: number("fct_ack_ps").map_or(end_ps.max(start_ps), |fct| start_ps + fct),
            slowdown: frame.reals("slowdown").get(row).copied().flatten(),
            status: text(&frame, "status", row),
            workload: text(&frame, "workload", row),
            scheme: text(&frame, "scheme", row),
            retransmitted: number("retransmitted_packets"),
            path_switches: number("path_switches"),
        })
    };
    Ok((0..frame.rows()).filter_map(row).collect())
}

/// Time, effect and link of each fault.
fn faults(dir: &Path) -> Result<Vec<(u64, String, String)>, ReportError> {
    let Some(frame) = Frame::read(dir, "links", &["from", "to", "parallel", "fault"])? else { return Ok(vec![]) };
    let of_link = |row: usize| {
        let parallel = integer(&frame, "parallel", row).unwrap_or_default() as u16;
        let link = anabranch_outcome::link_name(&text(&frame, "from", row), &text(&frame, "to", row), parallel);
        let faults = faults_of(&text(&frame, "fault", row));
        faults.into_iter().map(|(at, what)| (at, what, link.clone())).collect::<Vec<_>>()
    };
    let mut faults: Vec<_> = (0..frame.rows()).flat_map(of_link).collect();
    faults.sort();
    Ok(faults)
}

impl Series {
    /// Returns the owners with their rows, in order of their first.
    fn owners(&self) -> Vec<(String, Vec<usize>)> {
        let key = |row: usize| -> Vec<String> {
            let of = |name: &&str| match integer(&self.frame, name, row) {
                Some(number) => number.to_string(),
                None => text(&self.frame, name, row),
            };
            self.keys.iter().map(of).collect()
        };
        let mut owners: Vec<(Vec<String>, Vec<usize>)> = vec![];
        let mut known: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        for row in 0..self.frame.rows() {
            let key = key(row);
            let owner = *known.entry(key.clone()).or_insert(owners.len());
            if owner == owners.len() {
                owners.push((key, vec![]));
            }
            owners[owner].1.push(row);
        }
        owners.into_iter().map(|(key, rows)| ((self.name)(&key), rows)).collect()
    }

    fn write<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let group = writer.group(&self.group)?;
        for (name, rows) in self.owners() {
            let parent = writer.child(group, &name)?;
            let time = |row: usize| integer(&self.frame, "time_ps", row).unwrap_or_default();
            if let Some(bytes) = self.bytes {
                let sent = |row: usize| integer(&self.frame, bytes, row).unwrap_or_default();
                let between =
                    rows.iter().copied().zip(rows.iter().copied().skip(1)).filter(|(a, b)| time(*b) > time(*a));
                let rate = between.map(|(a, b)| {
                    let bits = 8.0 * sent(b).saturating_sub(sent(a)) as f64;
                    (time(a), bits * 1e3 / (time(b) - time(a)) as f64)
                });
                write_changes(writer, parent, "throughput", "Gbit/s", rate, |w, t, at, v| w.real(t, at, v))?;
            }
            if self.table.is_scheme() {
                self.write_calls(writer, parent, &rows)?;
            }
            let skip = |column: &&Column| {
                let is_key = column.name == "time_ps" || column.name == "seed" || self.keys.contains(&column.name);
                is_key || self.table.is_scheme() && column.kind != ColumnKind::Real
            };
            for column in self.table.columns.iter().filter(|column| !skip(column)) {
                let name = column.name;
                match column.kind {
                    ColumnKind::Integer | ColumnKind::Unsigned => {
                        let values =
                            rows.iter().copied().filter_map(|row| Some((time(row), integer(&self.frame, name, row)?)));
                        write_changes(writer, parent, name, column.unit, values, |w, t, at, v| w.value(t, at, v))?;
                    }
                    ColumnKind::Flag => {
                        let flag = |row: usize| self.frame.flags(name).get(row).copied();
                        let values = rows.iter().copied().filter_map(|row| Some((time(row), u64::from(flag(row)?))));
                        write_changes(writer, parent, name, "", values, |w, t, at, v| w.value(t, at, v))?;
                    }
                    ColumnKind::Real => {
                        let real = |row: usize| self.frame.reals(name).get(row).copied().flatten();
                        let values = rows.iter().copied().filter_map(|row| Some((time(row), real(row)?)));
                        write_changes(writer, parent, name, column.unit, values, |w, t, at, v| w.real(t, at, v))?;
                    }
                    ColumnKind::Text => {}
                }
            }
        }
        Ok(())
    }

    /// Writes the calls of a scheme that no packet shows: holds, probes, replies, losses.
    fn write_calls<W: Write>(&self, writer: &mut Writer<W>, parent: Track, rows: &[usize]) -> io::Result<()> {
        let track = writer.child(parent, "calls")?;
        for row in rows.iter().copied() {
            let event = text(&self.frame, "event", row);
            if PACKET_CALLS.contains(&event.as_str()) {
                continue;
            }
            let psn = integer(&self.frame, "psn", row).map_or(String::new(), |psn| format!(" {psn}"));
            let tag = integer(&self.frame, "tag", row).map_or(Detail::Text("none".into()), Detail::Number);
            let time = integer(&self.frame, "time_ps", row).unwrap_or_default();
            writer.instant(track, time, &format!("{event}{psn}"), [("tag", tag)])?;
        }
        Ok(())
    }
}

/// Writes a value at each change; no counter if it is zero throughout.
fn write_changes<W: Write, V: PartialEq + Copy + Default>(
    writer: &mut Writer<W>,
    parent: Track,
    name: &str,
    unit: &str,
    values: impl Iterator<Item = (u64, V)>,
    write: impl Fn(&mut Writer<W>, Track, u64, V) -> io::Result<()>,
) -> io::Result<()> {
    let mut changes: Vec<(u64, V)> = values.collect();
    changes.dedup_by(|next, before| next.1 == before.1);
    if changes.iter().all(|change| change.1 == V::default()) {
        return Ok(());
    }
    let track = writer.counter(parent, name, unit)?;
    changes.into_iter().try_for_each(|(at, value)| write(writer, track, at, value))
}
