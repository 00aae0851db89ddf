//! Parts of the completion time of every flow.

use crate::{
    host::NEVER,
    ids::FlowId,
    partition::Partition,
    plan::{Plan, start_time},
};
use anabranch_backend::FlowOutcome;
use anabranch_outcome::FlowDelays;
use anabranch_topology::FaultAction;
use anabranch_units::{Rate, Time};
use anabranch_workload::Flow;

/// Sets the parts of each flow whose bytes have all been received; fails if they do not add up to its completion time.
pub(super) fn attribute(
    plan: &Plan<'_>,
    partitions: &[Partition<'_>],
    flows: &mut [FlowOutcome],
) -> Result<(), String> {
    if !plan.measure.attribution {
        return Ok(());
    }
    let mut first = vec![NEVER; plan.flows.workloads.len()];
    for (outcome, flow) in flows.iter().zip(&plan.flows.flows) {
        let first = &mut first[usize::from(flow.workload)];
        *first = (*first).min(outcome.started.map_or(NEVER, Time::ps));
    }
    let rates = best_rates(plan);
    for (number, outcome) in flows.iter_mut().enumerate() {
        let Some(delays) = delays(plan, partitions, FlowId(number as u32), outcome, &first) else { continue };
        let (Some(sent), Some(received)) = (outcome.first_sent, outcome.received) else { continue };
        let (part, least) = (delays.serialisation, least_serialisation(plan, &rates, number));
        if part < least {
            return Err(format!(
                "delays of flow {number}: {part} of serialisation, its bytes take {least}: {delays:?}"
            ));
        }
        if delays.transfer() != received - sent {
            let (sum, time) = (delays.transfer(), received - sent);
            return Err(format!("delays of flow {number}: its parts add up to {sum}, it took {time}: {delays:?}"));
        }
        outcome.delays = Some(delays);
    }
    Ok(())
}

/// Returns the best rate that each host's link ever has; none with several planes, where packets that wait at a busy port leave it
/// beside the flow's timeline.
fn best_rates(plan: &Plan<'_>) -> Vec<Rate> {
    if plan.planes > 1 {
        return Vec::new();
    }
    let mut best: Vec<Rate> = plan.host_up.iter().map(|up| plan.links[*up as usize].rate).collect();
    for fault in plan.faults {
        let FaultAction::Degrade(rate) = fault.action else { continue };
        for from in fault.links.iter().map(|link| plan.links[link.0 as usize].from).filter(|from| *from < plan.hosts) {
            best[from as usize] = best[from as usize].max(rate);
        }
    }
    best
}

/// Returns the least time in which a flow's bytes leave its host, each once: at the link's best rate, less what each packet's time
/// can be rounded down.
fn least_serialisation(plan: &Plan<'_>, rates: &[Rate], number: usize) -> Time {
    let Flow { src, size, .. } = plan.flows.flows[number];
    let (overhead, Some(rate)) = (u64::from(plan.data_overhead), rates.get(src as usize)) else { return Time::ZERO };
    let packets = size.div_ceil(plan.wire_mtu - overhead).max(1);
    let rounded = match rate.ps_per_byte() {
        _ if plan.fabric.whole_nanoseconds => Time::from_ns(packets),
        Some(_) => Time::ZERO,
        None => Time::from_ps(packets),
    };
    rate.wire_time(size + packets * overhead).saturating_sub(rounded)
}

fn delays(
    plan: &Plan<'_>,
    partitions: &[Partition<'_>],
    id: FlowId,
    outcome: &FlowOutcome,
    first: &[u64],
) -> Option<FlowDelays> {
    let flow = &plan.flows.flows[id.at()];
    let (started, sent, received) = (outcome.started?, outcome.first_sent?, outcome.received?);
    let record = partitions[usize::from(plan.owner_of_host(flow.src))].hosts.record(id, received.ps())?;
    let waits = partitions[usize::from(plan.owner_of_host(flow.dst))].hosts.receivers.waits.get(id.at())?;
    let (parts, links) = record.complete(received.ps(), waits);
    let waits_for_others = start_time(flow.start).is_none();
    let link = |order: Option<u32>| order.map_or(plan.topology.host_uplink(flow.src).0, |order| plan.link_of(order));
    let first = Time::from_ps(first[usize::from(flow.workload)]);
    Some(FlowDelays {
        predecessor: if waits_for_others { started - first } else { Time::ZERO },
        start: sent - started,
        ack: outcome.acknowledged.map(|acknowledged| acknowledged - received),
        longest: links.longest().map(|(order, span)| (link(order), Time::from_ps(span))),
        ..parts
    })
}
