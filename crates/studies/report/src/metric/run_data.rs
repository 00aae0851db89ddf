//! What metrics need of a run: its summary and, for some of them, rows of flows, links and uplinks.

use super::{ALL, COLUMNS, FLOW_COLUMNS, Kind, LinkFilter, Metric, Of, over_flows};
use anabranch_results::{FctKind, Frame, ReportError, Summary, read_summary};
use anabranch_statistics::{mean, quantile};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// Finished flow that counts.
#[derive(Clone, Copy, Debug)]
struct FlowValue {
    size: u64,
    slowdown: f64,
    time_us: f64,
    workload: usize,
    columns: [f64; FLOW_COLUMNS.len()],
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Pick {
    Slowdown,
    Time,
    Column(usize),
}

#[derive(Clone, Debug)]
struct LinkValue {
    rate: u64,
    words: [String; 5],
    values: Vec<f64>,
}

#[derive(Debug)]
pub struct RunData {
    pub summary: Summary,
    pub(super) json: serde_json::Value,
    flows: Vec<FlowValue>,
    /// Sizes and workloads of the flows that count and did not finish.
    unfinished: Vec<(u64, usize)>,
    workloads: Vec<String>,
    links: Vec<LinkValue>,
    /// Per uplink (its two switches), the data packets of each flow on it.
    uplinks: BTreeMap<(String, String), Vec<f64>>,
    bins: BTreeMap<String, (u64, u64)>,
}

impl RunData {
    /// Reads the data that `metrics` need from the run in `directory`; `bins` are names with their ranges of sizes.
    /// `None` if there is no finished run.
    pub fn read<'m>(
        directory: &Path,
        metrics: impl Iterator<Item = &'m Metric> + Clone,
        bins: BTreeMap<String, (u64, u64)>,
    ) -> Result<Option<Self>, ReportError> {
        let Some(summary) = read_summary(directory)? else { return Ok(None) };
        let json = serde_json::to_value(&summary).unwrap_or_default();
        let workloads = summary.workloads.keys().cloned().collect();
        let mut data = RunData {
            summary,
            json,
            flows: vec![],
            unfinished: vec![],
            workloads,
            links: vec![],
            uplinks: BTreeMap::new(),
            bins,
        };
        let need = |is: &dyn Fn(&Kind) -> bool| metrics.clone().any(|metric| metric.needs(is));
        if need(&|kind| matches!(kind, Kind::UplinkSpread { .. })) {
            data.read_uplinks(directory)?;
        }
        let has_bins = !data.bins.is_empty();
        if need(&|kind| match kind {
            Kind::Compared(metric) => has_bins && over_flows(metric.name).is_some(),
            Kind::Flows { .. } | Kind::Count | Kind::Column { .. } | Kind::JainOfFlows { .. } => true,
            _ => false,
        }) {
            data.read_flows(directory)?;
        }
        if need(&|kind| matches!(kind, Kind::Links { .. })) {
            data.read_links(directory)?;
        }
        Ok(Some(data))
    }

    fn read_flows(&mut self, directory: &Path) -> Result<(), ReportError> {
        let time = match self.summary.all.fct_kind {
            FctKind::Rx => "fct_rx_ps",
            FctKind::Ack => "fct_ack_ps",
        };
        let columns: Vec<&str> =
            ["slowdown", "measured", "workload", time].into_iter().chain(FLOW_COLUMNS.iter().copied()).collect();
        let Some(frame) = Frame::read(directory, "flows", &columns)? else { return Ok(()) };
        let (sizes, slowdowns, times) = (frame.integers("size_bytes"), frame.reals("slowdown"), frame.integers(time));
        let (names, counts) = (frame.texts("workload"), frame.flags("measured"));
        let unmeasured = |name: &String| self.summary.workloads.get(name).is_some_and(|workload| !workload.measured);
        let place = |row: usize| {
            let name = names.get(row)?;
            if !*counts.get(row)? && !unmeasured(name) {
                return None;
            }
            Some(((*sizes.get(row)?)?, self.workloads.iter().position(|known| known == name)?))
        };
        let flow = |row: usize| {
            let (size, workload) = place(row)?;
            let (slowdown, time) = ((*slowdowns.get(row)?)?, (*times.get(row)?)?);
            let whole =
                |name: &str| frame.integers(name).get(row).copied().flatten().map_or(f64::NAN, |value| value as f64);
            let columns = FLOW_COLUMNS.map(whole);
            Some(FlowValue { size, slowdown, time_us: time as f64 / 1e6, workload, columns })
        };
        let finished = |row: &usize| times.get(*row).is_some_and(Option::is_some);
        self.unfinished = (0..frame.rows()).filter(|row| !finished(row)).filter_map(place).collect();
        self.flows = (0..frame.rows()).filter_map(flow).collect();
        Ok(())
    }

    fn read_links(&mut self, directory: &Path) -> Result<(), ReportError> {
        const WORDS: [&str; 5] = ["tier", "direction", "from", "to", "fault"];
        let columns: Vec<&str> = WORDS.iter().chain(COLUMNS).copied().chain(["rate_bps"]).collect();
        let Some(frame) = Frame::read(directory, "links", &columns)? else { return Ok(()) };
        let number = |name: &str, row: usize| {
            let whole = frame.integers(name).get(row).copied().flatten().map(|value| value as f64);
            whole.or_else(|| frame.reals(name).get(row).copied().flatten()).unwrap_or(f64::NAN)
        };
        let link = |row: usize| LinkValue {
            rate: frame.integers("rate_bps").get(row).copied().flatten().unwrap_or_default(),
            words: WORDS.map(|name| frame.texts(name).get(row).cloned().unwrap_or_default()),
            values: COLUMNS.iter().map(|name| number(name, row)).collect(),
        };
        self.links = (0..frame.rows()).map(link).collect();
        Ok(())
    }

    fn read_uplinks(&mut self, directory: &Path) -> Result<(), ReportError> {
        let columns = ["flow_id", "from", "to", "packets"];
        let Some(frame) = Frame::read(directory, "uplinks", &columns)? else { return Ok(()) };
        let (flows, from, to) = (frame.integers("flow_id"), frame.texts("from"), frame.texts("to"));
        let packets = frame.integers("packets");
        let mut of_switch: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for row in 0..frame.rows() {
            if let (Some(Some(flow)), Some(from), Some(to), Some(Some(packets))) =
                (flows.get(row), from.get(row), to.get(row), packets.get(row))
            {
                of_switch.entry(from).or_default().insert(*flow);
                self.uplinks.entry((from.clone(), to.clone())).or_default().push(*packets as f64);
            }
        }
        // A flow without a row for an uplink of its switch has sent nothing there.
        for ((from, _), packets) in &mut self.uplinks {
            let flows = of_switch.get(from.as_str()).map_or(0, BTreeSet::len);
            packets.resize(flows.max(packets.len()), 0.0);
        }
        Ok(())
    }

    /// Returns the mean over uplinks of what one flow puts on it most less what one puts there least, over the mean of all
    /// flows; `None` where uplinks were not counted.
    pub(super) fn uplink_spread(&self, from: &str) -> Option<f64> {
        let of = self.uplinks.iter().filter(|((own, _), _)| from.is_empty() || is_named(own, from));
        let of = of.filter_map(|(_, flows)| spread(flows));
        let spreads: Vec<f64> = of.collect();
        take(&spreads, Of::Mean)
    }

    /// Returns `true` if a deadlock, a stall or the time limit ended the run before flows that count had finished.
    pub(super) fn has_unfinished_flows(&self, workload: &str, bin: &str) -> bool {
        let flows = if workload == ALL { Some(&self.summary.all) } else { self.summary.workloads.get(workload) };
        let ended_early = self.summary.time_limit_struck
            || self.summary.last_progress_s.is_some()
            || !self.summary.deadlock.is_empty();
        if !ended_early || flows.is_none_or(|flows| flows.flows.measured_unfinished == 0) {
            return false;
        }
        let in_bin = self.bins.get(bin).copied().unwrap_or((0, u64::MAX));
        bin == ALL || self.unfinished.iter().any(|flow| self.belongs(*flow, workload, in_bin))
    }

    /// Returns `true` if a flow, by size and workload, is of the workload and within a range of sizes.
    fn belongs(&self, (size, own): (u64, usize), workload: &str, (from, to): (u64, u64)) -> bool {
        let name = &self.workloads[own];
        let is_of_it = if workload == ALL { self.summary.workloads[name].measured } else { name == workload };
        is_of_it && (from..to).contains(&size)
    }

    /// Returns the values of the flows of a workload and bin, ascending.
    pub(super) fn sorted(&self, pick: Pick, workload: &str, bin: &str) -> Vec<f64> {
        let range = self.bins.get(bin).copied().unwrap_or((0, u64::MAX));
        let belongs = |flow: &&FlowValue| self.belongs((flow.size, flow.workload), workload, range);
        let value = |flow: &FlowValue| match pick {
            Pick::Slowdown => flow.slowdown,
            Pick::Time => flow.time_us,
            Pick::Column(place) => flow.columns[place],
        };
        // A value that was not measured is not finite.
        let mut values: Vec<f64> =
            self.flows.iter().filter(belongs).map(value).filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    pub(super) fn over_flows(&self, slowdown: bool, of: Of, workload: &str, bin: &str) -> Option<f64> {
        take(&self.sorted(if slowdown { Pick::Slowdown } else { Pick::Time }, workload, bin), of)
    }

    pub(super) fn over_links(&self, column: &str, of: Option<Of>, filter: &LinkFilter) -> Option<f64> {
        let place = COLUMNS.iter().position(|name| *name == column)?;
        let fits = |link: &&LinkValue| {
            let [tier, direction, from, to, fault] = &link.words;
            filter.rate.is_none_or(|rate| rate.0 == link.rate)
                && filter.tier.as_ref().is_none_or(|required| required == tier)
                && filter.direction.as_ref().is_none_or(|required| required == direction)
                && filter.failed.is_none_or(|required| required != fault.is_empty())
                && filter.from.as_ref().is_none_or(|name| is_named(from, name))
                && filter.to.as_ref().is_none_or(|name| is_named(to, name))
        };
        let mut values: Vec<f64> =
            self.links.iter().filter(fits).map(|link| link.values[place]).filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        of.map_or_else(|| (!values.is_empty()).then(|| values.iter().sum()), |of| take(&values, of))
    }
}

/// `name` is that of a node, or the beginning of several before a star: `host*`.
fn is_named(node: &str, name: &str) -> bool {
    name.strip_suffix('*').map_or(node == name, |begin| node.starts_with(begin))
}

pub(super) fn take(sorted: &[f64], of: Of) -> Option<f64> {
    match of {
        Of::Mean => mean(sorted),
        Of::Quantile(share) => quantile(sorted, share),
    }
}

/// Returns the largest value less the smallest over the mean; `None` without a mean above 0.
fn spread(values: &[f64]) -> Option<f64> {
    let ends = values.iter().fold((f64::INFINITY, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
    let mean = mean(values).filter(|mean| *mean > 0.0)?;
    Some((ends.1 - ends.0) / mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_results::summary::FlowSummary;

    #[test]
    fn the_spread_of_an_uplink_by_hand() {
        // 8, 10, 12 packets of three flows: (12 - 8) / 10.
        assert_eq!((spread(&[8.0, 10.0, 12.0]), spread(&[5.0; 4]), spread(&[])), (Some(0.4), Some(0.0), None));
    }

    #[test]
    fn nodes_by_name() {
        assert!(is_named("host1", "host1") && !is_named("host10", "host1"));
        assert!(is_named("host10", "host1*") && is_named("host1", "host*") && !is_named("leaf1", "host*"));
    }

    #[test]
    fn bins_without_unfinished_flows_have_no_value() {
        let mut summary = Summary { time_limit_struck: true, ..Summary::default() };
        summary.all.flows.measured_unfinished = 1;
        summary.workloads.insert("web".into(), FlowSummary { measured: true, ..FlowSummary::default() });
        let bins = [("<2kB", (0, 2_000)), (">=2kB", (2_000, u64::MAX))].map(|(name, range)| (name.to_string(), range));
        let run = RunData {
            summary,
            json: serde_json::Value::Null,
            flows: vec![],
            unfinished: vec![(64_000, 0)],
            workloads: vec!["web".into()],
            links: vec![],
            uplinks: BTreeMap::new(),
            bins: bins.into(),
        };
        let of = |bin: &str| Metric::read("slowdown_mean").unwrap().value(&run, ALL, bin);
        assert_eq!((of("<2kB"), of(">=2kB"), of(ALL)), (None, Some(f64::INFINITY), Some(f64::INFINITY)));
    }
}
