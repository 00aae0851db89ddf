//! Rows of a result directory, in the form that figures and the page require.

mod groups;
mod series;
mod tail;

pub(crate) use groups::GroupPoint;
pub use series::SeriesSums;
pub(crate) use series::{FlowAt, LinksAt, SchemeAt, TimeSeries, faults_of};
pub(crate) use tail::{PART_COLUMNS, PARTS, TailFlow};

use anabranch_results::{
    FlowCounts, Frame, LinkFault, Manifest, REPEAT_RUN, ReportError, Summary, read_runs, runs_of, seconds_trimmed,
    significant_digits, significant_digits_trimmed,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlowPoint {
    pub(crate) size_bytes: u64,
    pub(crate) slowdown: f64,
    /// Index into [`Dataset::workloads`].
    pub(crate) workload: u16,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LinkPoint {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Number among parallel cables; 0 in results without the column.
    pub(crate) parallel: u16,
    pub(crate) tier: Arc<str>,
    /// Tier and direction in words, shared by the links of a group.
    pub(crate) group: Arc<str>,
    /// `true` for the link from a host to its switch.
    pub(crate) is_nic: bool,
    pub(crate) rate_bps: u64,
    /// Utilisation over the whole run.
    pub(crate) whole: f64,
    /// Utilisation while flows start.
    pub(crate) window: Option<f64>,
    /// Load by the measure of [`Dataset::load`].
    pub(crate) load: f64,
    // `None`: not measured.
    /// Mean over [`RunRows::common_s`].
    pub(crate) queue_mean_bytes: Option<f64>,
    pub(crate) queue_p99_bytes: Option<f64>,
    pub(crate) queue_max_bytes: Option<f64>,
    pub(crate) queue_mean_packets: Option<f64>,
    pub(crate) drops: Option<u64>,
    pub(crate) trims: Option<u64>,
    pub(crate) ecn_marks: Option<u64>,
    /// Effects of faults on the link.
    pub(crate) fault: String,
}

impl LinkPoint {
    /// Number that is proportional to the bytes of the links of a run.
    fn carried(&self) -> f64 {
        self.whole * self.rate_bps.max(1) as f64
    }
    /// Returns the receiving node, and the number of a parallel cable: `spine0#1`.
    pub(crate) fn to_port(&self) -> String {
        if self.parallel == 0 { self.to.clone() } else { format!("{}#{}", self.to, self.parallel) }
    }
    pub(crate) fn has_fault(&self) -> bool {
        !self.fault.is_empty()
    }
    /// Returns `true` if a fault took the link down; other faults degrade it.
    pub(crate) fn failed(&self) -> bool {
        faults_of(&self.fault).iter().any(|(_, what)| what == LinkFault::DOWN)
    }
    /// Returns the words of a caption for faulty links among `links`: "failed", "degraded", or both; `None` without any.
    pub(crate) fn fault_words<'l>(links: impl Iterator<Item = &'l LinkPoint>) -> Option<&'static str> {
        let (failed, degraded): (Vec<_>, Vec<_>) =
            links.filter(|link| link.has_fault()).partition(|link| link.failed());
        match (failed.is_empty(), degraded.is_empty()) {
            (true, true) => None,
            (false, true) => Some("failed"),
            (true, false) => Some("degraded"),
            (false, false) => Some("failed or degraded"),
        }
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

/// Time during which a number of packets waited, summed over the ports of a group of links.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occupancy {
    pub(crate) group: String,
    pub(crate) packets: u64,
    pub(crate) time_ps: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct RunRows {
    pub(crate) summary: Summary,
    /// Groups of jobs by repetition, those that all ranks have ended.
    pub(crate) groups: Vec<GroupPoint>,
    pub(crate) flows: Vec<FlowPoint>,
    /// The slowest flows of each workload, where their delays were measured.
    pub(crate) tail: Vec<TailFlow>,
    pub(crate) links: Vec<LinkPoint>,
    pub(crate) occupancy: Vec<Occupancy>,
    pub(crate) series: TimeSeries,
    /// Duration over which queues are averaged, in seconds: that of the longest run of this seed.
    pub(crate) common_s: f64,
}

impl RunRows {
    /// Returns the number of flows that count and did not finish, of a workload or of all.
    pub(crate) fn unfinished(&self, workload: Option<&str>) -> usize {
        let of = |flows: &FlowCounts| usize::try_from(flows.measured_unfinished).unwrap_or(usize::MAX);
        match workload {
            Some(name) => self.summary.workloads.get(name).map_or(0, |workload| of(&workload.flows)),
            None => of(&self.summary.all.flows),
        }
    }
}

/// Measure by which links are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Utilisation while flows start, a window that the scenario sets: the same for every scheme.
    Window,
    /// Utilisation over the run, where there is one scheme.
    Run,
    /// Bytes over those of an even split among the links of a tier and direction. It needs no window.
    EvenSplit,
}

impl Load {
    fn of(schemes: &[SchemeRuns]) -> Self {
        let runs = || schemes.iter().flat_map(|scheme| &scheme.runs);
        let window = |run: &RunRows| {
            let known = !run.links.is_empty() && run.links.iter().all(|link| link.window.is_some());
            run.summary.window_from_s.zip(run.summary.window_to_s).filter(|_| known)
        };
        let same =
            |run: &RunRows| runs().filter(|r| r.summary.seed == run.summary.seed).all(|r| window(r) == window(run));
        match () {
            () if runs().all(|run| window(run).is_some() && same(run)) => Load::Window,
            () if schemes.len() == 1 => Load::Run,
            () => Load::EvenSplit,
        }
    }
    /// Returns the title of axes and columns.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Load::Window | Load::Run => "utilisation",
            Load::EvenSplit => "bytes over even split",
        }
    }
    /// Returns the name of the column in rows of figures.
    pub(crate) fn column(self) -> &'static str {
        match self {
            Load::Window | Load::Run => "utilisation",
            Load::EvenSplit => "bytes_over_even_split",
        }
    }
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Load::Window | Load::Run => format!("{} %", significant_digits(value * 100.0, 3)),
            Load::EvenSplit => significant_digits(value, 3),
        }
    }
    /// Formats a tick of an axis.
    pub(crate) fn tick(self) -> fn(f64) -> String {
        match self {
            Load::Window | Load::Run => |value| format!("{} %", significant_digits_trimmed(value * 100.0, 3)),
            Load::EvenSplit => |value| significant_digits_trimmed(value, 3),
        }
    }
}

/// Puts the runs of a seed on one scale: links by `load`, queues by their mean over the longest run of the seed.
fn align(schemes: &mut [SchemeRuns]) -> Load {
    let load = Load::of(schemes);
    let mut longest: BTreeMap<u64, f64> = BTreeMap::new();
    for run in schemes.iter().flat_map(|scheme| &scheme.runs) {
        let end = longest.entry(run.summary.seed).or_default();
        *end = end.max(run.summary.simulated_s);
    }
    for run in schemes.iter_mut().flat_map(|scheme| &mut scheme.runs) {
        run.common_s = longest[&run.summary.seed];
        let part = if run.common_s > 0.0 { run.summary.simulated_s / run.common_s } else { 1.0 };
        let mut sums: BTreeMap<Arc<str>, (f64, f64)> = BTreeMap::new();
        for link in &run.links {
            let sum = sums.entry(link.group.clone()).or_default();
            *sum = (sum.0 + link.carried(), sum.1 + 1.0);
        }
        for link in &mut run.links {
            let (bytes, links) = sums[&link.group];
            link.load = match load {
                Load::Window => link.window.unwrap_or_default(),
                Load::Run => link.whole,
                Load::EvenSplit if bytes > 0.0 => link.carried() * links / bytes,
                Load::EvenSplit => 0.0,
            };
            // A whole run changes no digit.
            if part < 1.0 {
                link.queue_mean_bytes = link.queue_mean_bytes.map(|mean| mean * part);
            }
        }
    }
    load
}

#[derive(Clone, Debug)]
pub(crate) struct SchemeRuns {
    pub(crate) name: String,
    pub(crate) runs: Vec<RunRows>,
}

#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    pub(crate) manifest: Manifest,
    /// The runs compared: those of seeds that every scheme has, or all if there is no such seed.
    pub(crate) schemes: Vec<SchemeRuns>,
    pub(crate) summaries: Vec<Summary>,
    pub(crate) workloads: Vec<String>,
    /// Names of the runs that the plan lacks.
    pub(crate) unfinished: Vec<String>,
    /// Measure by which links are compared.
    pub(crate) load: Load,
    /// Pairs of table and column that are missing from some rows.
    missing: BTreeSet<(String, String)>,
}

impl Dataset {
    /// Names of the schemes, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.schemes.iter().map(|scheme| scheme.name.clone()).collect()
    }
    pub(crate) fn read(dir: &Path) -> Result<Self, ReportError> {
        Self::read_with(dir, None)
    }
    /// Reads as [`Dataset::read`]; `known` are the sums of the only run's series.
    pub(crate) fn read_with(dir: &Path, known: Option<&SeriesSums>) -> Result<Self, ReportError> {
        let manifest = Manifest::read(dir)?;
        let mut summaries = read_runs(dir)?;
        if summaries.is_empty() {
            return Err(ReportError::NoResults { path: dir.to_path_buf() });
        }
        let manifest = manifest.unwrap_or_else(|| described_by(&summaries));
        let mut names = manifest.schemes.clone();
        for (summary, _) in &summaries {
            if !names.contains(&summary.scheme) {
                names.push(summary.scheme.clone());
            }
        }
        let workloads: BTreeSet<&String> = summaries.iter().flat_map(|(summary, _)| summary.workloads.keys()).collect();
        let workloads = workloads.into_iter().cloned().collect();
        summaries.sort_by_key(|(summary, _)| summary.seed);
        let seeds_of = |scheme: &str| -> BTreeSet<u64> {
            summaries.iter().filter(|(s, _)| s.scheme == scheme).map(|(s, _)| s.seed).collect()
        };
        let sets: Vec<BTreeSet<u64>> = names.iter().map(|name| seeds_of(name)).filter(|set| !set.is_empty()).collect();
        let compared = sets.iter().skip(1).fold(sets[0].clone(), |common, set| &common & set);
        let mut reader = Reader { workloads, missing: BTreeSet::new(), known };
        let mut schemes: Vec<SchemeRuns> = names.into_iter().map(|name| SchemeRuns { name, runs: vec![] }).collect();
        for (summary, path) in &summaries {
            if !compared.is_empty() && !compared.contains(&summary.seed) {
                continue;
            }
            if let Some(scheme) = schemes.iter_mut().find(|scheme| scheme.name == summary.scheme) {
                scheme.runs.push(reader.run(path, summary)?);
            }
        }
        schemes.retain(|scheme| !scheme.runs.is_empty());
        let load = align(&mut schemes);
        let mut all: Vec<Summary> = vec![];
        for scheme in &schemes {
            all.extend(summaries.iter().filter(|(s, _)| s.scheme == scheme.name).map(|(s, _)| s.clone()));
        }
        Ok(Dataset {
            manifest,
            schemes,
            summaries: all,
            workloads: reader.workloads,
            unfinished: runs_of(dir)?.into_iter().filter(|run| !run.is_finished()).map(|run| run.name).collect(),
            load,
            missing: reader.missing,
        })
    }

    pub(crate) fn lacks(&self, table: &str, column: &str) -> bool {
        self.missing.contains(&(table.to_string(), column.to_string()))
    }
    /// Index into [`Dataset::workloads`] and name.
    pub(crate) fn measured_workloads(&self) -> Vec<(u16, String)> {
        let measured = |name: &String| {
            self.summaries.iter().filter_map(|s| s.workloads.get(name)).any(|workload| workload.measured)
        };
        (0..).zip(&self.workloads).filter(|(_, name)| measured(name)).map(|(at, name)| (at, name.clone())).collect()
    }
    pub(crate) fn seeds(&self) -> Vec<u64> {
        let runs = self.schemes.iter().flat_map(|scheme| &scheme.runs);
        runs.map(|run| run.summary.seed).collect::<BTreeSet<u64>>().into_iter().collect()
    }
    /// Groups of links (tier and direction) in the order of the first run's links, without NICs.
    pub(crate) fn link_groups(&self) -> Vec<String> {
        let mut groups: Vec<String> = vec![];
        for link in self.schemes.iter().flat_map(|s| &s.runs).flat_map(|run| &run.links).filter(|l| !l.is_nic) {
            if !groups.iter().any(|group| **group == *link.group) {
                groups.push(link.group.to_string());
            }
        }
        groups
    }
    /// Returns what the load of links is, with its window.
    pub(crate) fn load_words(&self) -> String {
        let first = &self.schemes[0].runs[0].summary;
        match (self.load, first.window_from_s, first.window_to_s) {
            (Load::Window, Some(from), Some(to)) => {
                let of = self.of_seed();
                let (from, to) = (seconds_trimmed(from), seconds_trimmed(to));
                format!("utilisation over the time in which flows start ({from} to {to}{of})")
            }
            (Load::EvenSplit, ..) => {
                "bytes over those of an even split among the links of a tier and direction".to_string()
            }
            _ => {
                let end = seconds_trimmed(first.simulated_s);
                format!("utilisation over the whole run (0 to {end}, the drain included{})", self.of_seed())
            }
        }
    }
    /// Returns the time over which queues are averaged.
    pub(crate) fn queue_words(&self) -> String {
        let first = &self.schemes[0].runs[0];
        let end = seconds_trimmed(first.common_s);
        match self.schemes.len() {
            1 => format!("the whole run (0 to {end}{})", self.of_seed()),
            _ => format!("the longest run of each seed (0 to {end}{})", self.of_seed()),
        }
    }
    /// Returns `, seed 1` where there are several.
    fn of_seed(&self) -> String {
        match self.seeds().len() {
            1 => String::new(),
            _ => format!(", seed {}", self.schemes[0].runs[0].summary.seed),
        }
    }
    /// Time of the last start in seconds, and share of the run after it, in which the network drains. Both are of the first run.
    pub(crate) fn drain(&self) -> Option<(f64, f64)> {
        let summary = &self.schemes[0].runs[0].summary;
        let last = summary.arrivals_to_s.filter(|_| self.load == Load::Run && summary.simulated_s > 0.0)?;
        Some((last, 1.0 - last / summary.simulated_s))
    }
    pub(crate) fn provenance(&self) -> String {
        let m = &self.manifest;
        let seeds: Vec<String> = self.seeds().iter().map(u64::to_string).collect();
        let fingerprints: Vec<String> = self
            .summaries
            .iter()
            .filter_map(|s| Some(format!("{}/seed{} {}", s.scheme, s.seed, s.fingerprint.as_ref()?)))
            .collect();
        let fingerprints = match fingerprints.is_empty() {
            true => String::new(),
            false => format!("; fingerprints {}", fingerprints.join(", ")),
        };
        format!(
            "Anabranch {} commit {}; scenario {} hash {}; seeds {}{fingerprints}.",
            m.version,
            m.commit,
            m.name,
            m.scenario_hash,
            seeds.join(" "),
        )
    }
}

fn described_by(runs: &[(Summary, PathBuf)]) -> Manifest {
    let first = &runs[0].0;
    Manifest {
        name: first.scenario.clone(),
        version: first.version.clone(),
        commit: first.commit.clone(),
        threads: first.threads,
        wall_s: runs.iter().map(|(run, _)| run.wall_s).sum(),
        ..Manifest::default()
    }
}

struct Reader<'k> {
    workloads: Vec<String>,
    missing: BTreeSet<(String, String)>,
    known: Option<&'k SeriesSums>,
}

impl Reader<'_> {
    fn run(&mut self, dir: &Path, summary: &Summary) -> Result<RunRows, ReportError> {
        let named = Manifest::read(dir)?.unwrap_or_default();
        let there = |file: &str| dir.join(file).exists();
        // A run may have been moved without its large tables; the manifest lists the files that belong to it.
        for table in ["flows", "links"] {
            let files = [format!("{table}.parquet"), format!("{table}.csv")];
            let promised = named.files.iter().any(|file| files.contains(&file.name));
            if promised && !files.iter().any(|file| there(file)) {
                let found = format!("its manifest lists rows of `{table}`, but the file is missing");
                return Err(ReportError::content(dir, found, REPEAT_RUN));
            }
        }
        let (flows, tail) = self.flows(dir, summary)?;
        let (links, occupancy) = (self.links(dir)?, self.occupancy(dir)?);
        let series = self.series(dir, &links)?;
        let groups = groups::read(self.frame(dir, "jobs", groups::COLUMNS)?.as_ref(), &self.workloads);
        let common_s = summary.simulated_s;
        Ok(RunRows { summary: summary.clone(), groups, flows, tail, links, occupancy, series, common_s })
    }

    fn frame(&mut self, dir: &Path, table: &str, columns: &[&str]) -> Result<Option<Frame>, ReportError> {
        let frame = Frame::read(dir, table, columns)?;
        let lacks: Vec<&str> = match &frame {
            Some(frame) => frame.missing().iter().map(String::as_str).collect(),
            // Tables that exist on request only lack nothing.
            None if ["flows", "links"].contains(&table) => columns.to_vec(),
            None => vec![],
        };
        self.missing.extend(lacks.into_iter().map(|column| (table.to_string(), column.to_string())));
        Ok(frame)
    }

    fn flows(&mut self, dir: &Path, summary: &Summary) -> Result<(Vec<FlowPoint>, Vec<TailFlow>), ReportError> {
        let columns = [&["size_bytes", "slowdown", "measured", "workload"], tail::COLUMNS, &PART_COLUMNS].concat();
        let Some(frame) = self.frame(dir, "flows", &columns)? else { return Ok((vec![], vec![])) };
        if frame.rows() as u64 != summary.all.flows.total {
            let (rows, flows) = (frame.rows(), summary.all.flows.total);
            let found = format!("{rows} rows of `flows`, but `summary.json` counts {flows} flows");
            return Err(ReportError::content(dir, found, REPEAT_RUN));
        }
        let numbers: BTreeMap<&str, u16> = self.workloads.iter().map(String::as_str).zip(0..).collect();
        let (sizes, slowdowns) = (frame.integers("size_bytes"), frame.reals("slowdown"));
        let (names, measured) = (frame.texts("workload"), frame.flags("measured"));
        let point = |row: usize| {
            let workload = names.get(row).and_then(|name| numbers.get(name.as_str())).copied().unwrap_or_default();
            let (size_bytes, slowdown) = ((*sizes.get(row)?)?, (*slowdowns.get(row)?)?);
            measured.get(row)?.then_some((row, size_bytes, slowdown, workload))
        };
        let points: Vec<_> = (0..frame.rows()).filter_map(point).collect();
        let tail = tail::slowest(&frame, summary, &points);
        let flow = |(_, size_bytes, slowdown, workload)| FlowPoint { size_bytes, slowdown, workload };
        Ok((points.into_iter().map(flow).collect(), tail))
    }

    fn links(&mut self, dir: &Path) -> Result<Vec<LinkPoint>, ReportError> {
        const COLUMNS: &[&str] = &[
            "from",
            "to",
            "parallel",
            "tier",
            "direction",
            "rate_bps",
            "utilisation",
            "window_utilisation",
            "queue_mean_bytes",
            "queue_p99_bytes",
            "queue_max_bytes",
            "queue_mean_packets",
            "drops",
            "trims",
            "ecn_marks",
            "fault",
        ];
        let Some(frame) = self.frame(dir, "links", COLUMNS)? else { return Ok(vec![]) };
        let text = |name: &str, row: usize| frame.texts(name).get(row).cloned().unwrap_or_default();
        let maybe = |name: &str, row: usize| frame.reals(name).get(row).copied().flatten();
        let real = |name: &str, row: usize| maybe(name, row).unwrap_or_default();
        let count = |name: &str, row: usize| frame.integers(name).get(row).copied().flatten();
        let whole = |name: &str, row: usize| count(name, row).unwrap_or_default();
        let mut classes: Vec<(Arc<str>, String, Arc<str>)> = vec![];
        let mut class = |row: usize| {
            let of = |name: &str| frame.texts(name).get(row).map_or("", String::as_str);
            let (tier, direction) = (of("tier"), of("direction"));
            let known = classes.iter().find(|class| *class.0 == *tier && class.1 == direction);
            let (tier, direction, group) = known.cloned().unwrap_or_else(|| {
                let class = (tier.into(), direction.to_string(), group(tier, direction).into());
                classes.push(class.clone());
                class
            });
            let is_nic = *tier == *"host" && direction == "up";
            (tier, group, is_nic)
        };
        let link = |row| {
            let (tier, group, is_nic) = class(row);
            LinkPoint {
                from: text("from", row),
                to: text("to", row),
                parallel: whole("parallel", row) as u16,
                tier,
                group,
                is_nic,
                rate_bps: whole("rate_bps", row),
                whole: real("utilisation", row),
                load: 0.0,
                window: maybe("window_utilisation", row),
                queue_mean_bytes: maybe("queue_mean_bytes", row),
                queue_p99_bytes: count("queue_p99_bytes", row).map(|bytes| bytes as f64),
                queue_max_bytes: count("queue_max_bytes", row).map(|bytes| bytes as f64),
                queue_mean_packets: maybe("queue_mean_packets", row),
                drops: count("drops", row),
                trims: count("trims", row),
                ecn_marks: count("ecn_marks", row),
                fault: text("fault", row),
            }
        };
        let links: Vec<LinkPoint> = (0..frame.rows()).map(link).collect();
        // A column that the backend does not measure counts as missing.
        for column in ["queue_mean_bytes", "queue_p99_bytes", "queue_max_bytes", "queue_mean_packets"] {
            if frame.reals(column).contains(&None) || frame.integers(column).contains(&None) {
                self.missing.insert(("links".into(), column.into()));
            }
        }
        Ok(links)
    }

    fn occupancy(&mut self, dir: &Path) -> Result<Vec<Occupancy>, ReportError> {
        let columns = ["tier", "direction", "queue_packets", "time_ps"];
        let Some(frame) = self.frame(dir, "occupancy", &columns)? else { return Ok(vec![]) };
        if !frame.missing().is_empty() {
            return Ok(vec![]);
        }
        let mut sums: BTreeMap<(String, u64), u64> = BTreeMap::new();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_groups_are_in_words() {
        assert_eq!(group("tier0-1", "up"), "tier 0\u{2013}1, up");
        assert_eq!(group("host", "down"), "switch to host");
        assert_eq!(group("global", "flat"), "global links");
    }
}
