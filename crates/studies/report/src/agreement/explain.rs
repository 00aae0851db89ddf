//! Quantities that explain the difference between two backends.

use super::{Agreement, Side, model::compared_seeds};
use anabranch_results::{ColumnEntry, Frame, ReportError, Summary, cell, rows};
use anabranch_statistics::mean;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One quantity on every backend, as a mean over its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The load balancer or variant.
    pub scheme: String,
    pub quantity: &'static str,
    /// The spine or port; empty for the whole run.
    pub place: String,
    pub unit: &'static str,
    /// Mean per backend, in the order of the backends; `None` where it was not measured.
    pub values: Vec<Option<f64>>,
}

type OfRun = fn(&Summary) -> Option<u64>;
const TOTALS: [(&str, &str, OfRun); 8] = [
    ("data packets", "packets", |run| run.counters.totals.data_packets),
    ("retransmissions", "packets", |run| run.counters.totals.retransmitted),
    ("timeouts", "packets", |run| run.counters.totals.timeouts),
    ("path changes", "packets", |run| run.counters.totals.path_switches),
    ("probe bytes", "bytes", |run| run.counters.totals.probe_bytes),
    ("probes", "packets", |run| run.counters.totals.probes),
    ("marks", "packets", |run| run.counters.totals.ecn_marked),
    ("drops", "packets", |run| run.counters.totals.dropped),
];

/// Values per quantity and spine or port.
type ValuesByPlace = BTreeMap<(&'static str, String), Vec<f64>>;

#[derive(Default)]
struct LinkCounts {
    places: ValuesByPlace,
    /// Quantities that are missing from some row.
    unknown: BTreeSet<&'static str>,
}

pub(super) fn explanations(sides: &[Side], schemes: &[String]) -> Result<Vec<Explanation>, ReportError> {
    let mut all = vec![];
    for scheme in schemes {
        let mut ports: Vec<Option<LinkCounts>> = vec![];
        let seeds = compared_seeds(sides, scheme);
        let counts = |run: &Summary| run.scheme == *scheme && seeds.contains(&run.seed);
        for (quantity, unit, of) in TOTALS {
            let value = |side: &Side| {
                let runs = side.summaries().filter(|run| counts(run));
                let known: Option<Vec<f64>> = runs.map(|run| of(run).map(|count| count as f64)).collect();
                known.and_then(|known| mean(&known))
            };
            let values = sides.iter().map(value).collect();
            all.push(Explanation { scheme: scheme.clone(), quantity, place: String::new(), unit, values });
        }
        for side in sides {
            ports.push(of_links(side, &counts)?);
        }
        let mut places: Vec<&(&str, String)> =
            ports.iter().flatten().flat_map(|counts_of_links| counts_of_links.places.keys()).collect();
        places.sort();
        places.dedup();
        for place in places {
            // A port that was read but is not listed had no such packets.
            let value = |counts_of_links: &Option<LinkCounts>| {
                let known =
                    counts_of_links.as_ref().filter(|counts_of_links| !counts_of_links.unknown.contains(place.0))?;
                Some(known.places.get(place).and_then(|values| mean(values)).unwrap_or(0.0))
            };
            let unit = if place.0 == "share of bytes" { "" } else { "packets" };
            let values = ports.iter().map(value).collect();
            all.push(Explanation { scheme: scheme.clone(), quantity: place.0, place: place.1.clone(), unit, values });
        }
    }
    Ok(all)
}

/// Returns the share of bytes per switch above the leaves, and the ports with marks or drops; `None` without rows of links.
fn of_links(side: &Side, counts: &dyn Fn(&Summary) -> bool) -> Result<Option<LinkCounts>, ReportError> {
    const COLUMNS: &[&str] = &["from", "to", "parallel", "tier", "direction", "bytes", "ecn_marks", "drops"];
    let mut counts_of_links = LinkCounts::default();
    let mut runs = 0;
    for (_, place) in side.runs.iter().filter(|(run, _)| counts(run)) {
        let Some(frame) = Frame::read(place, "links", COLUMNS)? else { return Ok(None) };
        if frame.rows() == 0 {
            return Ok(None);
        }
        runs += 1;
        let mut bytes: BTreeMap<String, f64> = BTreeMap::new();
        let text = |name: &str, row: usize| frame.texts(name).get(row).cloned().unwrap_or_default();
        let count = |name: &str, row: usize| frame.integers(name).get(row).copied().flatten();
        for row in 0..frame.rows() {
            let (from, to) = (text("from", row), text("to", row));
            if text("tier", row) != "host" && text("direction", row) == "up" {
                *bytes.entry(to.clone()).or_default() += count("bytes", row).unwrap_or_default() as f64;
            }
            for (quantity, column) in [("marks at a port", "ecn_marks"), ("drops at a port", "drops")] {
                match count(column, row) {
                    None => drop(counts_of_links.unknown.insert(quantity)),
                    Some(0) => {}
                    Some(packets) => {
                        let port = (
                            quantity,
                            anabranch_outcome::link_name(&from, &to, count("parallel", row).unwrap_or_default() as u16),
                        );
                        counts_of_links.places.entry(port).or_default().push(packets as f64);
                    }
                }
            }
        }
        let total: f64 = bytes.values().sum();
        for (switch, bytes) in bytes.into_iter().filter(|_| total > 0.0) {
            counts_of_links.places.entry(("share of bytes", switch)).or_default().push(bytes / total);
        }
    }
    // Runs without packets at a port count as zero in the mean.
    counts_of_links.places.values_mut().for_each(|values| values.resize(runs, 0.0));
    Ok((runs > 0).then_some(counts_of_links))
}

pub(super) fn to_csv(agreement: &Agreement) -> String {
    let row = |row: &Explanation| {
        let head = [row.scheme.clone(), row.quantity.to_string(), row.place.clone(), row.unit.to_string()];
        head.into_iter().chain(row.values.iter().copied().map(cell)).collect::<Vec<_>>()
    };
    rows::to_csv(&columns(agreement), agreement.explanations.iter().map(row))
}

pub(super) fn columns(agreement: &Agreement) -> Vec<ColumnEntry> {
    let head = [
        ("scheme", "load balancer or variant"),
        ("quantity", "name of the counter"),
        ("place", "its switch or port; empty: the whole run"),
        ("unit", "its unit; empty: a share"),
    ];
    let head = head.map(|(name, meaning)| ColumnEntry::new(name, "text", "", meaning));
    let values = agreement.backends.iter().map(|backend| {
        ColumnEntry::new(backend, "real", "", "mean over the runs of this backend; empty where it does not measure it")
    });
    head.into_iter().chain(values).collect()
}
