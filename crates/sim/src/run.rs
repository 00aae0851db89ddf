//! From a setup to its results.

use crate::{Progress, Setup, SimError, fingerprint::fingerprint, ideal::ideal, window::arrivals};
use anabranch_fabric::{Balancer, FabricError, FlowOutcome, Output, Split, Timing};
use anabranch_outcome::{FlowRow, FlowStatus, LinkWindow, RunResult};
use anabranch_topology::BasePaths;
use anabranch_units::Time;

/// How a run is done. The results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Most threads.
    pub threads: usize,
    /// When ports work out their transmissions.
    pub timing: Timing,
    /// How the fabric is split into cells.
    pub split: Split,
}

impl How {
    /// On so many threads, in the quickest way.
    pub fn on(threads: usize) -> Self {
        How { threads, timing: Timing::default(), split: Split::default() }
    }
}

/// Runs `setup` on `threads` threads. `progress` is called a few times per second, from the preparations on, and returns
/// false to interrupt the run.
///
/// # Errors
/// [`SimError`].
pub fn run(setup: &Setup, threads: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, SimError> {
    run_with(setup, How::on(threads), progress)
}

/// As [`run`], with a choice of how.
///
/// # Errors
/// [`SimError`].
pub fn run_with(setup: &Setup, how: How, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, SimError> {
    let flows_total = setup.flows.flows.len() as u64;
    let mut observer = |p: &anabranch_fabric::Progress| {
        let anabranch_fabric::Progress { now, packet_hops, flows_finished } = *p;
        progress(&Progress { now, packet_hops, flows_finished, flows_total })
    };
    let output = anabranch_fabric::run(&fabric_setup(setup, how), setup.limits.until_all_done, &mut observer)?;
    Ok(results(setup, output))
}

/// Whether `setup` can be run: prepares everything without running it. `go_on` is asked now and then.
///
/// # Errors
/// [`SimError`].
pub fn check(setup: &Setup, go_on: &mut dyn FnMut() -> bool) -> Result<(), SimError> {
    Ok(anabranch_fabric::check(&fabric_setup(setup, How::on(1)), go_on)?)
}

fn fabric_setup(setup: &Setup, how: How) -> anabranch_fabric::Setup<'_> {
    let balancer = |b: &crate::LoadBalancer| Balancer { host: b.host.clone(), switch: b.switch.clone() };
    anabranch_fabric::Setup {
        topology: &setup.topology,
        flows: &setup.flows,
        fabric: &setup.fabric,
        transport: &setup.transport,
        balancers: setup.load_balancers.iter().map(balancer).collect(),
        faults: &setup.faults,
        measure: &setup.measure,
        trigger_latency: setup.limits.trigger_latency,
        seed: setup.seed,
        threads: how.threads,
        timing: how.timing,
        split: how.split,
        time_limit: setup.limits.time_limit,
        window: arrivals(setup),
    }
}

impl From<FabricError> for SimError {
    fn from(error: FabricError) -> Self {
        match error {
            FabricError::Setup(message) => SimError::Setup(message),
            FabricError::Invariant(message) => SimError::Invariant(message),
            FabricError::Stalled(message) => SimError::Stalled(message),
            FabricError::Interrupted => SimError::Interrupted,
        }
    }
}

/// The results of a run of `setup` that gave `output`: with ideal times, and the fingerprint.
pub fn results(setup: &Setup, output: Output) -> RunResult {
    let mut paths = BasePaths::default();
    let flows: Vec<FlowRow> =
        output.flows.iter().enumerate().map(|(n, outcome)| row(setup, &mut paths, n, outcome)).collect();
    let window = arrivals(setup).zip(output.window_bytes);
    let window = window.map(|((from, to), sent_bytes)| LinkWindow { from, to, sent_bytes });
    RunResult {
        fingerprint: fingerprint(&flows, &output.links),
        simulated: output.simulated,
        wall_seconds: output.wall_seconds,
        events: output.events,
        packet_hops: output.packet_hops,
        time_limit_struck: output.time_limit_struck,
        interrupted: output.interrupted,
        flows,
        links: output.links,
        counters: output.counters,
        conservation: output.conservation,
        series: output.series,
        flow_series: output.flow_series,
        scheme_series: output.scheme_series,
        uplink_counts: output.uplink_counts,
        watched: output.watched,
        on_wire: None,
        bytes_per_host: output.bytes / u64::from(setup.topology.hosts.max(1)),
        window,
    }
}

fn row(setup: &Setup, paths: &mut BasePaths, number: usize, outcome: &FlowOutcome) -> FlowRow {
    let flow = &setup.flows.flows[number];
    let (ideal_rx, ideal_ack) = ideal(setup, paths, flow);
    let span = |from: Option<Time>, to: Option<Time>| Some(to? - from?);
    FlowRow {
        flow_id: number as u32,
        src: flow.src,
        dst: flow.dst,
        size_bytes: flow.size,
        start: outcome.started,
        fct_rx: span(outcome.first_sent, outcome.received),
        fct_ack: span(outcome.started, outcome.acknowledged),
        ideal_rx,
        ideal_ack,
        status: match (outcome.started, outcome.received, outcome.acknowledged) {
            (None, ..) => FlowStatus::NotStarted,
            (_, None, _) => FlowStatus::Unfinished,
            (_, _, None) => FlowStatus::Received,
            _ => FlowStatus::Finished,
        },
        workload: flow.workload,
        load_balancer: setup.flows.workloads[flow.workload as usize].load_balancer,
        class: flow.class,
        metrics: outcome.metrics,
    }
}
