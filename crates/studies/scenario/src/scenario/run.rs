//! `[run]`, `[measure]` and `[compare]`.

use super::ChosenFlows;
use crate::{ScenarioError, Section, Tree};
use anabranch_backend::{LoadBalancer, Setup};
use anabranch_settings::{Auto, InvalidValue, Never, Raw, Setting, ValueSchema, choices, parameters};
use anabranch_units::{Bytes, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Completion of every flow.
    AllFlowsDone,
    At(Time),
}

impl Setting for Until {
    fn expected() -> String {
        format!("\"all-flows-done\" or {}", Time::expected())
    }
    fn schema() -> ValueSchema {
        ValueSchema::Either(vec![ValueSchema::Words(vec!["all-flows-done"]), Time::schema()])
    }
    fn read(raw: &Raw) -> Result<Self, InvalidValue> {
        match raw {
            Raw::Text(word) if word == "all-flows-done" => Ok(Until::AllFlowsDone),
            _ => Time::read(raw).map(Until::At).map_err(|wrong| {
                let wrong = InvalidValue { expected: Self::expected(), ..wrong };
                wrong.near(["all-flows-done"])
            }),
        }
    }
    fn write(&self) -> Raw {
        match self {
            Until::AllFlowsDone => Raw::Text("all-flows-done".into()),
            Until::At(time) => time.write(),
        }
    }
}

choices! {
    /// Part of a run that is computed rather than simulated.
    pub enum SkipRule {
        /// Nothing: every packet is simulated.
        Off = "off",
        /// The steady state: while the rates of all flows are constant, their packets are not simulated.
        Steady = "steady",
    }
}

parameters! {
    /// End of a run, and selection of the flows that count.
    pub struct RunParameters {
        /// End condition: all flows done, or a time.
        until: Until = Until::AllFlowsDone, source "ours";
        /// Maximum simulated time. A run that reaches it ends with status `time-limit` and names the unfinished flows.
        time_limit: Time = Time::from_ms(1000), source "ours: far beyond the ready-made scenarios, so that it ends only runs whose flows cannot finish";
        /// Timeouts without a received byte after which a run without pending starts, triggers, computations, faults or changes of tables ends with status `stalled`; "never": at `time_limit`. Simulations only; real transfers end by their own timeouts.
        stall_after: Never<u64> = Never::Value(50), source "ours: five doublings of a timeout", Expert;
        /// Skips the steady state: where the rates of all open flows agree over three spans and no start or change is due, all flows are shortened by their rates times the same jump. The results are times of flows, about 1 % off, without a fingerprint. Simulations only.
        skip: SkipRule = SkipRule::Off, source "ours: skipped runs are for estimates, not for results to be quoted", Expert;
        /// Flows that start within this time of the first flow run, but are not in the statistics.
        warmup: Time = Time::ZERO, source "ours";
        /// Maximum estimated memory of a run, checked before it is built; auto: the memory available to a process. Results do not depend on it.
        memory_limit: Auto<Bytes> = Auto::Auto, source "ours", Expert;
        /// Time for a trigger or a barrier to reach another host.
        trigger_latency: Time = Time::from_us(1), source "ours: a link's delay; remote effects must take some time", Expert;
    }
}

choices! {
    /// Flows with rows in the results.
    pub enum FlowRows {
        /// All flows.
        All = "all",
        /// All but those of jobs, which are made as their groups start.
        WithoutJobs = "without-jobs",
    }
}

parameters! {
    /// Optional measurements.
    pub struct MeasureParameters {
        /// Links whose ports are sampled: a cable (leaf0-spine3), one direction of it (leaf0->spine3), a pattern (leaf0-*, leaf*->spine3) or a class (host, tier0-1, local, global).
        series_links: Vec<String> = vec![], source "ours";
        /// Flows that are sampled, named as in trace_flows.
        series_flows: Vec<ChosenFlows> = vec![], source "ours", Expert;
        /// Records a time series per load balancer: its flows, and the balance of the uplinks.
        series_scheme: bool = false, source "ours", Expert;
        /// Interval of the samples of all time series.
        series_interval: Time = Time::from_us(1), source "ours", Expert;
        /// Counts the packets of each flow on each uplink.
        uplink_counts: bool = false, source "ours", Expert;
        /// Records, per port, the time at each number of waiting packets.
        occupancy: bool = false, source "ours", Expert;
        /// Attributes each flow's completion time to queues, pauses, timeouts, notices of loss, its sender, its own packets and the flight; auto: in simulations of up to 100,000 flows that skip nothing.
        attribution: Auto<bool> = Auto::Auto, source "ours: it takes 1 to 2 % more instructions per packet-hop, and 250 B per flow", Expert;
        /// Flows whose every packet is traced: a number ("17" or 17), the first N of all ("first:10"), those of a workload
        /// ("web"), the first N of it ("web:10"), or those between hosts ("host3->host9"); names may be patterns ("host3->*").
        trace_flows: Vec<ChosenFlows> = vec![], source "ours";
        /// Records for the flows of `trace_flows` each call of their schemes, and what these knew after it, in `scheme_NAME.csv` and
        /// `.parquet`: a scheme's page lists its columns. Simulations only.
        trace_scheme: bool = false, source "ours";
        /// Flows with rows in the results: all, or without-jobs: groups of collectives, all-to-alls and training steps are
        /// made as they start and forgotten as they end, so that memory does not grow with their number. Rows per group, rank
        /// and step remain. `check` names jobs that keep rows of their flows: with [servers], a split_share, sizes or an order
        /// of their own for each group, and GOAL schedules. Simulations only.
        flow_rows: FlowRows = FlowRows::All, source "ours", Expert;
        /// Maximum number of rows of a trace, and of the calls of schemes; later rows are omitted with a warning. A row takes about 100 B of memory, of a scheme 250 B.
        trace_limit: u64 = 1_000_000, source "ours", Expert;
    }
}

/// Maximum number of flows whose delays are attributed without a request.
const MAX_ATTRIBUTED: usize = 100_000;

impl MeasureParameters {
    /// Returns `true` if the completion times of this many flows are attributed. `skips`: the run skips the steady state.
    pub(crate) fn attributes(&self, flows: usize, skips: bool) -> bool {
        match self.attribution {
            Auto::Value(given) => given,
            Auto::Auto => flows <= MAX_ATTRIBUTED && !skips && self.flow_rows == FlowRows::All,
        }
    }
    pub(crate) fn has_series(&self) -> bool {
        !self.series_links.is_empty() || !self.series_flows.is_empty() || self.series_scheme
    }
}

parameters! {
    /// Defaults of `anabranch compare` for arguments that are not given.
    pub struct CompareParameters {
        /// Load balancers to compare.
        schemes: Vec<String> = vec![], source "ours";
        /// Number of seeds, counting up from the scenario's.
        seeds: u64 = 1, source "ours";
        /// Load balancer that the others are compared with; empty: the first.
        baseline: Option<String> = None, source "ours";
    }
}

pub const MAX_SEEDS: u64 = 10_000;

pub(crate) fn read_run(section: Option<Section<'_>>, tree: &Tree) -> Result<RunParameters, ScenarioError> {
    let mut run = RunParameters::default();
    if let Some(section) = section {
        section.fill(&mut run, &[])?;
    }
    let wrong = |key: &str, message: String| {
        let place = tree.place(&format!("run.{key}"));
        Err(ScenarioError::new(format!("[run]: `{key}`: {message}")).maybe_at(place))
    };
    if run.time_limit == Time::ZERO {
        return wrong("time_limit", "found 0us, expected a time above zero".into());
    }
    if run.stall_after == Never::Value(0) {
        return wrong("stall_after", "found 0, expected 1 or more, or \"never\"".into());
    }
    if let Until::At(time) = run.until {
        if time == Time::ZERO {
            return wrong("until", "found 0us, expected a time above zero".into());
        }
        if time > run.time_limit {
            let message = format!("found {time}, which is later than time_limit ({})", run.time_limit);
            return wrong("until", message).map_err(|e| e.help("give a larger `time_limit` in [run]"));
        }
    }
    Ok(run)
}

/// Returns a warning where the steady state is to be skipped, but hosts keep the paths of flows: where these share links, their rates
/// rarely settle.
pub(crate) fn rarely_settles(setup: &Setup) -> Option<String> {
    let keeps_path = |balancer: &&LoadBalancer| balancer.host.capabilities().keeps_path();
    let name = &setup.load_balancers.iter().find(keeps_path).filter(|_| setup.limits.skip)?.name;
    Some(format!(
        "run.skip = \"steady\": the rates of flows that share links rarely settle under `{name}`, and such runs are simulated in full"
    ))
}

pub(crate) fn read_measure(section: Option<Section<'_>>, tree: &Tree) -> Result<MeasureParameters, ScenarioError> {
    let mut measure = MeasureParameters::default();
    if let Some(section) = section {
        section.fill(&mut measure, &[])?;
    }
    if measure.has_series() && measure.series_interval == Time::ZERO {
        let place = tree.place("measure.series_interval");
        let message = "[measure]: `series_interval`: found 0us, expected a time above zero, because there are series to be sampled";
        return Err(ScenarioError::new(message).maybe_at(place));
    }
    if measure.flow_rows == FlowRows::WithoutJobs {
        let per_flow = [
            ("series_flows", !measure.series_flows.is_empty()),
            ("trace_flows", !measure.trace_flows.is_empty()),
            ("uplink_counts", measure.uplink_counts),
            ("attribution", measure.attribution == Auto::Value(true)),
        ];
        if let Some((key, _)) = per_flow.into_iter().find(|(_, is_set)| *is_set) {
            let place = tree.place("measure.flow_rows");
            let message =
                format!("[measure]: `flow_rows`: found \"without-jobs\" together with `{key}`, which is per flow");
            let help = format!("give `flow_rows = \"all\"`, or remove `{key}`");
            return Err(ScenarioError::new(message).maybe_at(place).help(help));
        }
    }
    if measure.trace_scheme && measure.trace_flows.is_empty() {
        let message = "[measure]: `trace_scheme`: found true without `trace_flows`, whose schemes it records";
        let help = "give `trace_flows = [\"first:2\"]` too, or `trace_scheme = false`";
        return Err(ScenarioError::new(message).maybe_at(tree.place("measure.trace_scheme")).help(help));
    }
    if measure.trace_limit == 0 {
        let place = tree.place("measure.trace_limit");
        return Err(ScenarioError::new("[measure]: `trace_limit`: found 0, expected 1 or more").maybe_at(place));
    }
    Ok(measure)
}

/// Reads `[compare]`, its schemes unchecked.
pub(crate) fn read_compare(section: Option<Section<'_>>, tree: &Tree) -> Result<CompareParameters, ScenarioError> {
    let mut compare = CompareParameters::default();
    if let Some(section) = section {
        section.fill(&mut compare, &[])?;
    }
    if compare.seeds == 0 || compare.seeds > MAX_SEEDS {
        let place = tree.place("compare.seeds");
        let message = format!("[compare]: `seeds`: found {}, expected from 1 to {MAX_SEEDS}", compare.seeds);
        return Err(ScenarioError::new(message).maybe_at(place));
    }
    Ok(compare)
}
