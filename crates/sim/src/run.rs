//! From a setup to its results.

use crate::{Progress, Setup, SimError, fingerprint::fingerprint, ideal::ideal};
use anabranch_engine::Outcome;
use anabranch_fabric::{Balancer, Failure, FlowOutcome, Harvest, Partition, Plan, PlanInput, deadlock, harvest};
use anabranch_outcome::{FlowRow, FlowStatus, RunResult};
use anabranch_topology::BasePaths;
use anabranch_units::Time;
use std::time::Instant;

/// How ports work out their transmissions; the results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// When somebody needs to know: about one event per packet-hop.
    Lazy,
    /// When they happen: two events per packet-hop. The yardstick for the lazy path.
    Eager,
}

/// Runs `setup` on `threads` threads. `progress` is called now and then and returns false to interrupt the run.
///
/// # Errors
/// [`SimError`].
pub fn run(setup: &Setup, threads: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, SimError> {
    run_with(setup, threads, Port::Lazy, progress)
}

/// As [`run`], with a choice of how ports work.
///
/// # Errors
/// [`SimError`].
pub fn run_with(
    setup: &Setup,
    threads: usize,
    port: Port,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<RunResult, SimError> {
    let balancer = |b: &crate::LoadBalancer| Balancer { host: b.host.clone(), switch: b.switch.clone() };
    let plan = Plan::new(PlanInput {
        topology: &setup.topology,
        flows: &setup.flows,
        fabric: &setup.fabric,
        transport: &setup.transport,
        balancers: setup.load_balancers.iter().map(balancer).collect(),
        faults: &setup.faults,
        measure: &setup.measure,
        trigger_latency: setup.limits.trigger_latency,
        seed: setup.seed,
        partitions: threads,
        lazy: port == Port::Lazy,
    })
    .map_err(SimError::Setup)?;
    let mut partitions: Vec<_> = (0..plan.partitions() as u16).map(|me| Partition::new(&plan, me)).collect();
    let flows_total = setup.flows.flows.len() as u64;
    // All is built: whoever watches hears of it before the first event.
    progress(&Progress { flows_total, ..Progress::default() });
    let started = Instant::now();
    let outcome =
        anabranch_engine::run(&mut partitions, plan.lookahead(), setup.limits.time_limit.ps(), &mut |status| {
            progress(&Progress {
                now: Time::from_ps(status.now),
                packet_hops: status.work,
                flows_finished: status.finished,
                flows_total,
            })
        });
    let wall_seconds = started.elapsed().as_secs_f64();
    if let Some(failure) = partitions.iter().find_map(Partition::failure) {
        return Err(match failure.clone() {
            Failure::Invariant(message) => SimError::Invariant(message),
            Failure::Input(message) => SimError::Setup(message),
        });
    }
    if let Some(circle) = deadlock(&plan, &partitions) {
        return Err(SimError::Stalled(circle));
    }
    let finished: u64 = partitions.iter().map(Partition::finished).sum();
    let idle = partitions.iter_mut().all(|p| anabranch_engine::Partition::next_time(p).is_none());
    let all_done = finished == flows_total;
    if outcome == Outcome::Done
        && idle
        && !all_done
        && let Some(flow) = partitions.iter().find_map(Partition::open_flow)
    {
        return Err(SimError::Stalled(format!("no event is pending, but {flow}")));
    }
    let interrupted = outcome == Outcome::Interrupted;
    let last = partitions.iter().map(Partition::last_arrival).max().unwrap_or_default();
    let ends_by_itself = idle && setup.limits.until_all_done && !interrupted;
    let simulated = match () {
        () if interrupted => partitions.iter().map(Partition::now).max().unwrap_or_default(),
        () if ends_by_itself => last,
        () => setup.limits.time_limit,
    };
    let harvest = harvest(&plan, partitions, simulated).map_err(SimError::Invariant)?;
    // A run that was asked to end at a time has not been struck by a limit.
    let struck = setup.limits.until_all_done && !interrupted && !all_done && !idle;
    Ok(results(setup, harvest, simulated, wall_seconds, struck, interrupted))
}

fn results(
    setup: &Setup,
    harvest: Harvest,
    simulated: Time,
    wall_seconds: f64,
    time_limit_struck: bool,
    interrupted: bool,
) -> RunResult {
    let mut paths = BasePaths::default();
    let flows: Vec<FlowRow> =
        harvest.flows.iter().enumerate().map(|(n, outcome)| row(setup, &mut paths, n, outcome)).collect();
    RunResult {
        fingerprint: fingerprint(&flows, &harvest.links),
        simulated,
        wall_seconds,
        events: harvest.events,
        packet_hops: harvest.packet_hops,
        time_limit_struck,
        interrupted,
        flows,
        links: harvest.links,
        counters: harvest.counters,
        conservation: harvest.conservation,
        series: harvest.series,
        uplink_counts: harvest.uplink_counts,
        bytes_per_host: harvest.bytes / u64::from(setup.topology.hosts.max(1)),
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
        retransmitted_packets: outcome.retransmitted,
        out_of_order_packets: outcome.out_of_order,
        out_of_sequence_packets: outcome.out_of_sequence,
        max_reorder_bytes: outcome.max_reorder_bytes,
        path_switches: outcome.path_switches,
    }
}
