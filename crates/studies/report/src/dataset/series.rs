//! Time series, aggregated while they are read: figures show the sum and the worst of thousands of ports.

use super::{LinkPoint, Reader, group};
use anabranch_outcome::{LinkRow, PortSample, RunResult};
use anabranch_results::{Frame, ReportError};
use anabranch_units::Time;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinksAt {
    pub(crate) time_ps: u64,
    pub(crate) ports: u64,
    /// Bytes sent so far, summed over the ports.
    pub(crate) sent_bytes: u64,
    /// Longest queue.
    pub(crate) deepest_bytes: u64,
    /// Packets marked so far; `losses`: trimmed or dropped.
    pub(crate) marks: u64,
    pub(crate) losses: u64,
    pub(crate) paused: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowAt {
    pub(crate) time_ps: u64,
    pub(crate) received_bytes: u64,
    pub(crate) in_flight_bytes: u64,
    pub(crate) window_bytes: Option<u64>,
    pub(crate) rate_bps: Option<u64>,
    pub(crate) paths: u64,
}

/// Sums over the load balancers of a run at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SchemeAt {
    pub(crate) time_ps: u64,
    pub(crate) open_flows: u64,
    pub(crate) in_flight_bytes: u64,
    pub(crate) path_switches: u64,
    pub(crate) imbalance: Option<f64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TimeSeries {
    /// By group of links, in the order of time.
    pub(crate) links: BTreeMap<String, Vec<LinksAt>>,
    /// By number of the flow, in the order of time.
    pub(crate) flows: BTreeMap<u64, Vec<FlowAt>>,
    pub(crate) scheme: Vec<SchemeAt>,
    /// Times and effects of faults, each once.
    pub(crate) faults: Vec<(u64, String)>,
}

/// Time series of ports, summed over the links of a tier and direction: what figures show of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesSums {
    by_group: BTreeMap<String, Vec<LinksAt>>,
}

impl SeriesSums {
    /// Sums up the series of a run in memory: the same as from its files.
    pub fn of(result: &RunResult) -> Self {
        let mut sums = SeriesSums::default();
        if result.series.is_empty() {
            return sums;
        }
        let class = |link: &LinkRow| group(&link.tier, link.direction);
        let group_of: BTreeMap<(&str, &str), String> =
            result.links.iter().map(|link| ((link.from.as_str(), link.to.as_str()), class(link))).collect();
        for port in &result.series {
            let Some(group) = group_of.get(&(port.from.as_str(), port.to.as_str())) else { continue };
            let sample = |sample: &PortSample| LinksAt {
                time_ps: sample.time.ps(),
                ports: 1,
                sent_bytes: sample.sent_bytes,
                deepest_bytes: sample.queue_bytes,
                marks: sample.ecn_marks,
                losses: sample.trims + sample.drops,
                paused: u64::from(sample.paused),
            };
            sums.add(group, port.samples.iter().map(sample));
        }
        sums
    }

    /// Adds the samples of a port, in the order of time.
    fn add(&mut self, group: &str, port: impl Iterator<Item = LinksAt>) {
        if !self.by_group.contains_key(group) {
            self.by_group.insert(group.to_string(), Vec::new());
        }
        let Some(samples) = self.by_group.get_mut(group) else { return };
        let mut guess = 0;
        for sample in port {
            // Ports of a group are sampled at the same times.
            let at = match samples.get(guess) {
                Some(sum) if sum.time_ps == sample.time_ps => guess,
                _ => samples.partition_point(|sum| sum.time_ps < sample.time_ps),
            };
            if samples.get(at).is_none_or(|sum| sum.time_ps != sample.time_ps) {
                samples.insert(at, LinksAt { time_ps: sample.time_ps, ..LinksAt::default() });
            }
            guess = at + 1;
            let sum = &mut samples[at];
            sum.ports += sample.ports;
            sum.sent_bytes += sample.sent_bytes;
            sum.deepest_bytes = sum.deepest_bytes.max(sample.deepest_bytes);
            sum.marks += sample.marks;
            sum.losses += sample.losses;
            sum.paused += sample.paused;
        }
    }
}

fn whole(frame: &Frame, name: &str, row: usize) -> u64 {
    frame.integers(name).get(row).copied().flatten().unwrap_or_default()
}

impl Reader<'_> {
    pub(super) fn series(&mut self, dir: &Path, links: &[LinkPoint]) -> Result<TimeSeries, ReportError> {
        let links_at = match self.known {
            Some(known) => known.by_group.clone(),
            None => self.link_series(dir, links)?,
        };
        let (flows, scheme) = (self.flow_series(dir)?, self.scheme(dir)?);
        Ok(TimeSeries { links: links_at, flows, scheme, faults: faults(links) })
    }

    fn link_series(&mut self, dir: &Path, links: &[LinkPoint]) -> Result<BTreeMap<String, Vec<LinksAt>>, ReportError> {
        const COLUMNS: &[&str] =
            &["from", "to", "time_ps", "queue_bytes", "sent_bytes", "ecn_marks", "trims", "drops", "paused"];
        let Some(frame) = self.frame(dir, "series", COLUMNS)? else { return Ok(BTreeMap::new()) };
        let group_of: BTreeMap<(&str, &str), &str> =
            links.iter().map(|link| ((link.from.as_str(), link.to.as_str()), &*link.group)).collect();
        let mut sums = SeriesSums::default();
        let column = |name| frame.integers(name);
        let (times, queues, sent) = (column("time_ps"), column("queue_bytes"), column("sent_bytes"));
        let (marks, trims, drops) = (column("ecn_marks"), column("trims"), column("drops"));
        let (from, to, paused) = (frame.texts("from"), frame.texts("to"), frame.flags("paused"));
        if from.len() < frame.rows() || to.len() < frame.rows() {
            return Ok(BTreeMap::new());
        }
        let of = |column: &[Option<u64>], row: usize| column.get(row).copied().flatten().unwrap_or_default();
        let ends = |row: usize| (from[row].as_str(), to[row].as_str());
        // The rows of a port follow each other.
        let mut first = 0;
        while first < frame.rows() {
            let port = ends(first);
            let next = (first + 1..frame.rows()).find(|row| ends(*row) != port).unwrap_or(frame.rows());
            let rows = std::mem::replace(&mut first, next)..next;
            let Some(group) = group_of.get(&port) else { continue };
            let sample = |row| LinksAt {
                time_ps: of(times, row),
                ports: 1,
                sent_bytes: of(sent, row),
                deepest_bytes: of(queues, row),
                marks: of(marks, row),
                losses: of(trims, row) + of(drops, row),
                paused: u64::from(paused.get(row).copied().unwrap_or_default()),
            };
            sums.add(group, rows.map(sample));
        }
        Ok(sums.by_group)
    }

    fn flow_series(&mut self, dir: &Path) -> Result<BTreeMap<u64, Vec<FlowAt>>, ReportError> {
        const COLUMNS: &[&str] =
            &["flow_id", "time_ps", "received_bytes", "in_flight_bytes", "window_bytes", "rate_bps", "paths"];
        let mut flows: BTreeMap<u64, Vec<FlowAt>> = BTreeMap::new();
        let Some(frame) = self.frame(dir, "series_flows", COLUMNS)? else { return Ok(flows) };
        for row in 0..frame.rows() {
            let maybe = |name| frame.integers(name).get(row).copied().flatten();
            flows.entry(whole(&frame, "flow_id", row)).or_default().push(FlowAt {
                time_ps: whole(&frame, "time_ps", row),
                received_bytes: whole(&frame, "received_bytes", row),
                in_flight_bytes: whole(&frame, "in_flight_bytes", row),
                window_bytes: maybe("window_bytes"),
                rate_bps: maybe("rate_bps"),
                paths: whole(&frame, "paths", row),
            });
        }
        Ok(flows)
    }

    fn scheme(&mut self, dir: &Path) -> Result<Vec<SchemeAt>, ReportError> {
        const COLUMNS: &[&str] = &["time_ps", "open_flows", "in_flight_bytes", "path_switches", "uplink_imbalance"];
        let Some(frame) = self.frame(dir, "series_scheme", COLUMNS)? else { return Ok(vec![]) };
        let mut sums: BTreeMap<u64, SchemeAt> = BTreeMap::new();
        for row in 0..frame.rows() {
            let time_ps = whole(&frame, "time_ps", row);
            let sum = sums.entry(time_ps).or_default();
            sum.time_ps = time_ps;
            sum.open_flows += whole(&frame, "open_flows", row);
            sum.in_flight_bytes += whole(&frame, "in_flight_bytes", row);
            sum.path_switches += whole(&frame, "path_switches", row);
            // The imbalance is that of all traffic and the same in the rows of all load balancers.
            sum.imbalance = frame.reals("uplink_imbalance").get(row).copied().flatten();
        }
        Ok(sums.into_values().collect())
    }
}

/// Parses `down at 20us; up at 50us`.
pub(crate) fn faults_of(text: &str) -> Vec<(u64, String)> {
    let faults = text.split("; ").filter_map(|words| {
        let (what, at) = words.rsplit_once(" at ")?;
        Some((at.parse::<Time>().ok()?.ps(), what.to_string()))
    });
    faults.collect()
}

fn faults(links: &[LinkPoint]) -> Vec<(u64, String)> {
    let all = links.iter().filter(|link| link.has_fault()).flat_map(|link| faults_of(&link.fault));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_parsed_from_links() {
        let link = |fault: &str| LinkPoint { fault: fault.to_string(), ..LinkPoint::default() };
        let links = [link("down at 20us; up at 1.5ms"), link(""), link("down at 20us"), link("100Gbps at 5us")];
        let expected = [(5_000_000, "100Gbps"), (20_000_000, "down"), (1_500_000_000, "up")];
        assert_eq!(faults(&links), expected.map(|(at, what)| (at, what.to_string())));
    }
}
