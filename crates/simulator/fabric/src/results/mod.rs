//! End of a run: checks the invariants and merges the results of all partitions.

mod conservation;
mod deadlock;
mod delays;
mod links;
mod scale_up;
mod series;
mod watched;

pub(crate) use deadlock::deadlock;

use crate::{
    group_ends::whole,
    ids::FlowId,
    partition::Partition,
    plan::Plan,
    skip::{Jump, with_jumps},
};
use anabranch_backend::{FlowOutcome, LoadBalancer, Setup, TRIMMED_SIZE, below_ideal, flow_rows, job_rows};
use anabranch_lb::SchemeCounters;
use anabranch_outcome::{Counters, FlowMetrics, JobRows, LinkWindow, RunRows};
use anabranch_settings::ControlOr;
use anabranch_units::Time;
use anabranch_workload::Medium;

#[derive(Clone, Debug, Default)]
pub(crate) struct End {
    pub(crate) simulated: Time,
    pub(crate) time_limit_struck: bool,
    pub(crate) interrupted: bool,
    pub(crate) deadlock: Vec<String>,
    pub(crate) stalled_after: Option<Time>,
    pub(crate) stall_reason: Option<String>,
    pub(crate) wall_seconds: f64,
    /// Jumps of a run with `run.skip`; `None`: without it.
    pub(crate) jumps: Option<Vec<Jump>>,
}

/// Merges the results of all partitions; fails with place and amount if an invariant does not hold.
pub(crate) fn collect(
    setup: &Setup,
    plan: &Plan<'_>,
    mut partitions: Vec<Partition<'_>>,
    end: End,
) -> Result<RunRows, String> {
    partitions.iter_mut().for_each(|partition| partition.hosts.note_open_flows());
    let links = links::links(plan, &mut partitions, end.simulated)?;
    let (series, flow_series, scheme_series) = series::series(plan, &mut partitions, end.simulated);
    let watched = watched::watched(plan, &mut partitions, end.simulated);
    end_groups(plan, &mut partitions);
    let mut flows = flows(plan, &partitions);
    delays::attribute(plan, &partitions, &mut flows)?;
    let conservation = conservation::conservation(plan, &partitions, &flows);
    conservation::check(&conservation)?;
    let gpus = scale_up::gpus(plan, &partitions, end.simulated);
    scale_up::check(&gpus)?;
    let count = |number: &dyn Fn(&Partition<'_>) -> u64| partitions.iter().map(number).sum::<u64>();
    let mut schemes = SchemeCounters::default();
    for (partition, balancer) in partitions.iter().flat_map(|p| (0..plan.balancers.len()).map(move |b| (p, b))) {
        schemes += partition.switches.counters(balancer);
        schemes += partition.hosts.scheme_counters(balancer);
    }
    let mut unlisted = JobRows::default();
    if let Some(first) = partitions.first() {
        first.cx.shared.group_ends.finish(&mut unlisted)?;
    }
    let in_packets = flows.iter().zip(&plan.flows.flows).filter(|(_, flow)| flow.medium == Medium::Network);
    let metrics = in_packets.map(|(outcome, _)| &outcome.metrics);
    let metrics = metrics.chain(unlisted.unlisted.iter().map(|job| &job.metrics));
    let of_flows = FlowMetrics::together(metrics).complete().unwrap_or_default();
    let counters = Counters {
        data_packets: conservation.data_packets.injected,
        acks: conservation.acks.injected,
        ecn_marked: links.iter().filter_map(|l| l.ecn_marks).sum(),
        trimmed: conservation.data_packets.trimmed,
        dropped: count(&|p| p.cx.ports.queues.ledger.all_dropped()),
        retransmitted: of_flows.retransmitted_packets,
        timeouts: count(&|p| p.hosts.nics.counters.timeouts),
        out_of_order: of_flows.out_of_order_packets,
        path_switches: of_flows.path_switches,
        pfc_pauses: count(&|p| p.cx.ports.pause_frames),
        probes: count(&|p| p.hosts.nics.counters.probes),
        probe_bytes: count(&|p| p.hosts.nics.counters.probe_bytes),
        flowlets: schemes.flowlets,
        created_flowlets: schemes.created_flowlets,
        added_delay_ns: schemes.added_delay_ps / 1000,
        reroutes: schemes.reroutes,
        reordered_packets: schemes.reordered_packets,
        max_queue_pairs: partitions.iter().map(|p| p.cx.nics.max_pairs()).max().unwrap_or(0),
        refused_packets: of_flows.refused_packets,
        unbuffered_flows: count(&|p| p.cx.nics.unbuffered),
        hold_timeouts_ns: schemes.hold_timeouts_ps / 1000,
        pfc_resumes: count(&|p| p.cx.ports.resume_frames),
        gaps: count(&|p| p.hosts.nics.counters.gaps.all),
        gaps_1_rtt: count(&|p| p.hosts.nics.counters.gaps.round_trips[0]),
        gaps_2_rtt: count(&|p| p.hosts.nics.counters.gaps.round_trips[1]),
        gaps_3_rtt: count(&|p| p.hosts.nics.counters.gaps.round_trips[2]),
    };
    if end.stalled_after.is_none()
        && let Some(what) = needless_timeouts(setup, &counters)
    {
        return Err(what);
    }
    let window_bytes = if end.interrupted { None } else { links::window_bytes(plan, &partitions, end.simulated) };
    let window = plan.window.zip(window_bytes).map(|((from, to), sent_bytes)| LinkWindow { from, to, sent_bytes });
    let bytes = count(&|p| {
        let packets = p.cx.ports.queues.packets.slots();
        let parts = [p.cx.ports.memory(), p.hosts.memory(plan, packets), p.cx.nics.bytes(), p.cx.series.memory()];
        (parts.into_iter().sum::<usize>() + p.scale_up.memory() + p.trigger_memory()) as u64
    });
    let jumps = end.jumps.as_deref();
    let with_jumps = |time: Time| Time::from_ps(with_jumps(jumps.unwrap_or_default(), time.ps()));
    for flow in flows.iter_mut().filter(|_| jumps.is_some()) {
        for time in [&mut flow.started, &mut flow.first_sent, &mut flow.received, &mut flow.acknowledged] {
            *time = time.map(with_jumps);
        }
    }
    let outcomes = flows;
    let flows = flow_rows(setup, &outcomes);
    if let Some(what) = flows.iter().find_map(|flow| below_ideal(setup, flow)) {
        return Err(what);
    }
    let listed = job_rows(setup, &outcomes, &flows);
    let jobs = listed.with_unlisted(unlisted);
    Ok(RunRows {
        fingerprint: None,
        simulated: with_jumps(end.simulated),
        skipped: jumps.map(|jumps| Time::from_ps(jumps.iter().map(|jump| jump.by).sum())),
        wall_seconds: end.wall_seconds,
        events: Some(count(&|p| p.events)),
        packet_hops: Some(count(&|p| p.cx.ports.hops)),
        time_limit_struck: end.time_limit_struck,
        interrupted: end.interrupted,
        deadlock: end.deadlock,
        stalled_after: end.stalled_after.map(with_jumps),
        stalled_port: end.stalled_after.and_then(|_| links::most_control(plan, &partitions)),
        stall_reason: end.stall_reason,
        counters: counters.into(),
        conservation: Some(conservation),
        series,
        flow_series,
        scheme_series,
        uplink_counts: links::uplink_counts(plan, &partitions),
        watched,
        on_wire: None,
        bytes_per_host: Some(bytes / u64::from(plan.hosts.max(1))),
        window,
        flows,
        jobs,
        links,
        gpus,
    })
}

/// Ends the groups of templates that have not ended in all partitions.
fn end_groups(plan: &Plan<'_>, partitions: &mut [Partition<'_>]) {
    for (template, of) in plan.flows.templates.iter().enumerate() {
        let job = &plan.flows.grouped[of.job as usize];
        for group in 0..job.groups {
            let mut owners: Vec<u16> = job.hosts_of(group).iter().map(|host| plan.owner_of_host(*host)).collect();
            owners.sort_unstable();
            owners.dedup();
            for owner in owners {
                let Partition { cx, hosts, .. } = &mut partitions[usize::from(owner)];
                if !hosts.has_ended(template, group) {
                    hosts.end_group(cx, template, group);
                }
            }
        }
    }
}

fn flows(plan: &Plan<'_>, partitions: &[Partition<'_>]) -> Vec<FlowOutcome> {
    let outcome = |(number, flow): (usize, &anabranch_workload::Flow)| {
        let id = FlowId(number as u32);
        if let Some([started, first_sent, received, acknowledged]) = scale_up::times(plan, partitions, id) {
            return FlowOutcome { started, first_sent, received, acknowledged, ..FlowOutcome::default() };
        }
        let mut outcome = Default::default();
        partitions[usize::from(plan.owner_of_host(flow.src))].hosts.sent(id).add_to(&mut outcome);
        partitions[usize::from(plan.owner_of_host(flow.dst))].hosts.received(id).add_to(&mut outcome);
        whole(outcome)
    };
    plan.flows.flows.iter().enumerate().map(outcome).collect()
}

/// Returns a description of timeouts where switches trim and nothing was dropped: each loss was then signalled by a NACK, and
/// each arrival by an acknowledgement.
fn needless_timeouts(setup: &Setup, counters: &Counters) -> Option<String> {
    let fabric = &setup.fabric;
    let mut transports = std::iter::once(&setup.transport).chain(setup.own_transports.values());
    let holds = |balancer: &LoadBalancer| balancer.switch.capabilities().distorts_round_trips();
    // Headers and acknowledgements nearly as large as packets take the links from them.
    let packet = setup.transport.mtu() + setup.transport.header();
    let signalled = fabric.trimming
        // Headers that precede data can starve it.
        && fabric.trimmed_class != ControlOr::Control
        && packet >= 8 * u64::from(TRIMMED_SIZE).max(setup.transport.ack_size())
        && fabric.shared_buffer.0 == 0
        && transports.all(|transport| transport.outlasts_queues())
        && !setup.load_balancers.iter().any(holds);
    let is_needless = signalled && counters.timeouts > 0 && counters.dropped == 0;
    let timeouts = counters.timeouts;
    is_needless.then(|| format!("{timeouts} packets timed out although switches trim and none was dropped"))
}
