//! The rows of a result directory, as figures and the page need them.

use crate::{directory::read_summary, error::ReportError, manifest::Manifest, summary::Summary, tables::Frame};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A finished flow that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlowPoint {
    pub(crate) size_bytes: u64,
    pub(crate) slowdown: f64,
}

/// A directed link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkPoint {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) tier: String,
    pub(crate) direction: String,
    pub(crate) utilisation: f64,
    pub(crate) queue_mean_bytes: f64,
    pub(crate) queue_p99_bytes: f64,
    pub(crate) queue_max_bytes: f64,
    pub(crate) drops: u64,
    pub(crate) trims: u64,
    pub(crate) ecn_marks: u64,
}

impl LinkPoint {
    /// Tier and direction, for people.
    pub(crate) fn group(&self) -> String {
        group(&self.tier, &self.direction)
    }
    /// Whether a host sends on it.
    pub(crate) fn is_nic(&self) -> bool {
        self.tier == "host" && self.direction == "up"
    }
}

fn group(tier: &str, direction: &str) -> String {
    let name = match (tier, direction) {
        ("host", "up") => return "host to switch".to_string(),
        ("host", "down") => return "switch to host".to_string(),
        (tier, _) => match tier.strip_prefix("tier").and_then(|rest| rest.split_once('-')) {
            Some((low, high)) => format!("tier {low}\u{2013}{high}"),
            None => tier.to_string(),
        },
    };
    if direction == "flat" { format!("{name} links") } else { format!("{name}, {direction}") }
}

/// For how long how many packets waited, over the ports of a group of links.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occupancy {
    pub(crate) group: String,
    pub(crate) packets: u64,
    pub(crate) time_ps: u64,
}

/// One run's rows.
#[derive(Clone, Debug)]
pub(crate) struct RunRows {
    pub(crate) summary: Summary,
    pub(crate) flows: Vec<FlowPoint>,
    pub(crate) links: Vec<LinkPoint>,
    pub(crate) occupancy: Vec<Occupancy>,
}

/// A load balancer's runs, by seed.
#[derive(Clone, Debug)]
pub(crate) struct SchemeRuns {
    pub(crate) name: String,
    pub(crate) runs: Vec<RunRows>,
}

impl SchemeRuns {
    /// The flows of all seeds.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &FlowPoint> {
        self.runs.iter().flat_map(|run| &run.flows)
    }
}

/// Everything in a result directory.
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    pub(crate) manifest: Manifest,
    pub(crate) schemes: Vec<SchemeRuns>,
}

impl Dataset {
    /// Reads a run's directory or a comparison's.
    pub(crate) fn read(dir: &Path) -> Result<Self, ReportError> {
        let manifest = Manifest::read(dir)?;
        let mut found = vec![];
        for path in run_directories(dir)? {
            if let Some(run) = read_run(&path)? {
                found.push(run);
            }
        }
        if found.is_empty() {
            return Err(ReportError::NoResults { path: dir.to_path_buf() });
        }
        let manifest = manifest.unwrap_or_else(|| described_by(&found));
        let mut names = manifest.schemes.clone();
        for run in &found {
            if !names.contains(&run.summary.scheme) {
                names.push(run.summary.scheme.clone());
            }
        }
        found.sort_by_key(|run| run.summary.seed);
        let mut schemes: Vec<SchemeRuns> = names.into_iter().map(|name| SchemeRuns { name, runs: vec![] }).collect();
        for run in found {
            if let Some(scheme) = schemes.iter_mut().find(|scheme| scheme.name == run.summary.scheme) {
                scheme.runs.push(run);
            }
        }
        schemes.retain(|scheme| !scheme.runs.is_empty());
        Ok(Dataset { manifest, schemes })
    }

    pub(crate) fn summaries(&self) -> impl Iterator<Item = &Summary> {
        self.schemes.iter().flat_map(|scheme| scheme.runs.iter().map(|run| &run.summary))
    }
    /// All seeds, ascending.
    pub(crate) fn seeds(&self) -> Vec<u64> {
        let mut seeds: Vec<u64> = self.summaries().map(|summary| summary.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        seeds
    }
    /// Groups of links (tier and direction) in the order of the first run's links, NICs left out.
    pub(crate) fn link_groups(&self) -> Vec<String> {
        let mut groups = vec![];
        for link in self.schemes.iter().flat_map(|s| &s.runs).flat_map(|run| &run.links).filter(|l| !l.is_nic()) {
            let group = link.group();
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }
    /// Where the results come from, in a line; figures carry it.
    pub(crate) fn provenance(&self) -> String {
        let m = &self.manifest;
        let seeds: Vec<String> = self.seeds().iter().map(u64::to_string).collect();
        let fingerprints: Vec<String> =
            self.summaries().map(|s| format!("{}/seed{} {}", s.scheme, s.seed, s.fingerprint)).collect();
        format!(
            "Anabranch {} commit {}; scenario {} hash {}; seeds {}; fingerprints {}; wall time {:.3} s.",
            m.version,
            m.commit,
            m.name,
            m.scenario_hash,
            seeds.join(" "),
            fingerprints.join(", "),
            m.wall_s
        )
    }
}

/// What can be said where there is no manifest.
fn described_by(runs: &[RunRows]) -> Manifest {
    let Some(first) = runs.first().map(|run| &run.summary) else { return Manifest::default() };
    Manifest {
        name: first.scenario.clone(),
        version: first.version.clone(),
        commit: first.commit.clone(),
        threads: first.threads,
        wall_s: runs.iter().map(|run| run.summary.wall_s).sum(),
        ..Manifest::default()
    }
}

/// Every directory at or below `dir` with a run's summary, in order of their paths.
fn run_directories(dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    if dir.join("summary.json").exists() {
        return Ok(vec![dir.to_path_buf()]);
    }
    let runs = dir.join("runs");
    let mut found = vec![];
    let mut open = if runs.is_dir() { vec![runs] } else { vec![] };
    while let Some(path) = open.pop() {
        if path.join("summary.json").exists() {
            found.push(path);
            continue;
        }
        for entry in fs::read_dir(&path).map_err(|error| ReportError::file(&path, error))? {
            let entry = entry.map_err(|error| ReportError::file(&path, error))?.path();
            let hidden = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            if entry.is_dir() && !hidden {
                open.push(entry);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read_run(dir: &Path) -> Result<Option<RunRows>, ReportError> {
    let Some(summary) = read_summary(dir)? else { return Ok(None) };
    Ok(Some(RunRows { summary, flows: read_flows(dir)?, links: read_links(dir)?, occupancy: read_occupancy(dir)? }))
}

fn read_flows(dir: &Path) -> Result<Vec<FlowPoint>, ReportError> {
    let Some(frame) = Frame::read(dir, "flows", &["size_bytes", "slowdown", "measured"])? else { return Ok(vec![]) };
    let cells = frame.integers("size_bytes").iter().zip(frame.reals("slowdown")).zip(frame.flags("measured"));
    let counted = cells.filter(|(_, measured)| **measured);
    Ok(counted
        .filter_map(|((size, slowdown), _)| Some(FlowPoint { size_bytes: (*size)?, slowdown: (*slowdown)? }))
        .collect())
}

fn read_links(dir: &Path) -> Result<Vec<LinkPoint>, ReportError> {
    const COLUMNS: &[&str] = &[
        "from",
        "to",
        "tier",
        "direction",
        "utilisation",
        "queue_mean_bytes",
        "queue_p99_bytes",
        "queue_max_bytes",
        "drops",
        "trims",
        "ecn_marks",
    ];
    let Some(frame) = Frame::read(dir, "links", COLUMNS)? else { return Ok(vec![]) };
    let text = |name: &str, row: usize| frame.texts(name).get(row).cloned().unwrap_or_default();
    let real = |name: &str, row: usize| frame.reals(name).get(row).copied().flatten().unwrap_or_default();
    let whole = |name: &str, row: usize| frame.integers(name).get(row).copied().flatten().unwrap_or_default();
    let link = |row| LinkPoint {
        from: text("from", row),
        to: text("to", row),
        tier: text("tier", row),
        direction: text("direction", row),
        utilisation: real("utilisation", row),
        queue_mean_bytes: real("queue_mean_bytes", row),
        queue_p99_bytes: whole("queue_p99_bytes", row) as f64,
        queue_max_bytes: whole("queue_max_bytes", row) as f64,
        drops: whole("drops", row),
        trims: whole("trims", row),
        ecn_marks: whole("ecn_marks", row),
    };
    Ok((0..frame.rows()).map(link).collect())
}

/// The occupancy histograms, ports of a group of links added up.
fn read_occupancy(dir: &Path) -> Result<Vec<Occupancy>, ReportError> {
    let Some(frame) = Frame::read(dir, "occupancy", &["tier", "direction", "queue_packets", "time_ps"])? else {
        return Ok(vec![]);
    };
    let mut sums: std::collections::BTreeMap<(String, u64), u64> = Default::default();
    for row in 0..frame.rows() {
        let (tier, direction) = (&frame.texts("tier")[row], &frame.texts("direction")[row]);
        if tier == "host" && direction == "up" {
            continue;
        }
        let whole = |name: &str| frame.integers(name)[row].unwrap_or_default();
        *sums.entry((group(tier, direction), whole("queue_packets"))).or_default() += whole("time_ps");
    }
    Ok(sums.into_iter().map(|((group, packets), time_ps)| Occupancy { group, packets, time_ps }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_links_for_people() {
        assert_eq!(group("tier0-1", "up"), "tier 0\u{2013}1, up");
        assert_eq!(group("host", "down"), "switch to host");
        assert_eq!(group("global", "flat"), "global links");
    }
}
