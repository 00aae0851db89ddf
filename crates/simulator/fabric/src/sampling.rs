//! Sampling of a partition's state for the time series.

use crate::{
    arena::Packets,
    context::Ctx,
    host::{Hosts, sample_sender},
    ids::{FlowId, PortId},
    measure::{
        BalancerSamples, FlowSamples, SampledBalancer, SampledPort, SampledReceiver, Series, Spread, series_bytes,
    },
    plan::Plan,
    port::Ports,
    switch::Switches,
};
use anabranch_backend::RunError;
use anabranch_topology::{NodeId, NodeKind};
use anabranch_units::{Bytes, Time};

/// Number of ports in advance at which a port is prefetched into the processor's caches.
const FETCH: usize = 8;

pub(crate) fn series(plan: &Plan<'_>, me: u16) -> Series {
    let measure = plan.measure;
    let asked = !measure.series_links.is_empty() || !measure.series_flows.is_empty() || measure.series_scheme;
    let mut series = Series::new(if asked { measure.series_interval.ps() } else { 0 });
    let mine = measure.series_links.iter().filter(|link| plan.owner_of_link(link.0) == me);
    series.ports = mine.map(|link| plan.port_of(link.0)).collect();
    series.ports.sort_unstable();
    series.ports.dedup();
    series.flows = measure.series_flows.iter().map(|&flow| FlowSamples { flow, ..FlowSamples::default() }).collect();
    if measure.series_scheme {
        let switches = (plan.hosts..plan.topology.nodes.len() as u32).map(NodeId);
        let mine = switches.filter(|&switch| plan.cells.owner_of(switch) == me);
        series.balancers = Some(Box::new(BalancerSamples {
            done: vec![SampledBalancer::default(); plan.balancers.len()],
            uplinks: mine.map(|switch| uplinks(plan, switch)).filter(|uplinks| uplinks.len() > 1).collect(),
            ..BalancerSamples::default()
        }));
    }
    series
}

/// Accounts for `bytes`; fails where the series and packets of all partitions exceed the memory limit.
pub(crate) fn hold(plan: &Plan<'_>, packets: &Packets, bytes: u64, now: u64) -> Result<(), RunError> {
    let Some(limit) = packets.hold_series(bytes) else { return Ok(()) };
    Err(RunError::Setup(format!(
        "measure.series_interval: found {}: at {} the time series of this run exceed {}, what the memory limit leaves for them and packets (`memory_limit` of [run], else this machine, its control group or `ulimit -v`); use a larger interval, fewer links or flows, or end the run earlier (`run.until`)",
        plan.measure.series_interval,
        Time::from_ps(now),
        Bytes(limit).rounded()
    )))
}

/// Returns the ports of a switch that lead to switches no lower than itself.
fn uplinks(plan: &Plan<'_>, switch: NodeId) -> Vec<(PortId, u64)> {
    let tier = |node: NodeId| match plan.topology.node(node).kind {
        NodeKind::Host => None,
        NodeKind::Switch { tier } => Some(tier),
    };
    let links = plan.topology.out_links(switch).iter();
    let up = links.filter(|link| tier(plan.topology.link(**link).to) >= tier(switch));
    up.map(|link| (plan.port_of(link.0), 0)).collect()
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Takes the next sample, which is valid to before `start`.
pub(crate) fn sample(cx: &mut Ctx<'_>, hosts: &Hosts, switches: &Switches, start: u64) {
    let now = cx.series.next();
    let bytes = cx.series.last_bytes(now);
    if let Err(error) = hold(cx.plan, &cx.ports.queues.packets, bytes, now) {
        cx.failure.get_or_insert(error);
    }
    let Ctx { plan, ports, series, .. } = cx;
    let number = series.sample(start);
    for (index, port) in series.ports.iter().enumerate() {
        if let Some(ahead) = series.ports.get(index + FETCH) {
            ports.fetch_port(*ahead);
        }
        series.sampled.push(sample_port(ports, *port));
    }
    for samples in &mut series.flows {
        sample_flow(plan, hosts, samples, number, now);
    }
    if let Some(balancers) = &mut series.balancers {
        sample_balancers(plan, ports, hosts, switches, balancers, now);
    }
    let open = series.flows.iter().filter(|of| of.sender.last().is_some_and(|sample| sample.0 == number)).count();
    let balancers = series.balancers.as_ref().map_or(0, |balancers| balancers.done.len());
    series.bytes_per_time = series_bytes(series.ports.len() as u64, open as u64, balancers as u64);
}

fn sample_port(ports: &Ports<'_>, id: PortId) -> SampledPort {
    let (port, counters) = (ports.port(id), ports.queues.counters(id));
    SampledPort {
        waiting_bytes: port.waiting_bytes,
        waiting_packets: port.waiting_packets,
        sent_bytes: port.account.sent_bytes,
        sent_packets: port.account.sent_packets,
        marked: narrow(counters.marked),
        trimmed: narrow(counters.trimmed),
        dropped: narrow(counters.dropped),
        pauses: narrow(counters.pauses),
        paused: port.paused,
    }
}

fn sample_flow(plan: &Plan<'_>, hosts: &Hosts, samples: &mut FlowSamples, number: u32, now: u64) {
    let flow = FlowId(samples.flow);
    if let Some(flow) = hosts.sender(flow) {
        samples.sender.push((number, sample_sender(plan, flow, &mut samples.counted, now)));
    }
    if let Some(receiver) = hosts.receiver(flow) {
        let sample =
            SampledReceiver { received_bytes: receiver.received_bytes(), out_of_order: receiver.out_of_order() };
        samples.receives(number, sample);
    } else if hosts.is_complete(flow) {
        samples.closed.get_or_insert(number);
    }
}

fn sample_balancers(
    plan: &Plan<'_>,
    ports: &Ports<'_>,
    hosts: &Hosts,
    switches: &Switches,
    balancers: &mut BalancerSamples,
    now: u64,
) {
    let mut samples = balancers.done.clone();
    for flow in hosts.open_senders() {
        let sample = &mut samples[usize::from(flow.of.balancer)];
        sample.open += 1;
        sample.in_flight += flow.sender.in_flight();
        sample.window += flow.sender.allowed(plan.transports.of(flow.of.transport), Time::from_ps(now)).0.unwrap_or(0);
        sample.retransmitted += flow.sender.retransmitted();
        sample.path_switches += flow.path_switches();
    }
    for (balancer, sample) in samples.iter_mut().enumerate() {
        sample.counters += hosts.scheme_counters(balancer);
        sample.counters += switches.counters(balancer);
    }
    balancers.samples.push(samples);
    let mut spread = Spread::default();
    for uplinks in &mut balancers.uplinks {
        let (mut busiest, mut all) = (0, 0);
        for (port, before) in uplinks.iter_mut() {
            let sent = ports.port(*port).account.sent_bytes;
            let bytes = sent - std::mem::replace(before, sent);
            busiest = bytes.max(busiest);
            all += bytes;
        }
        spread.busiest += busiest;
        spread.mean += all / uplinks.len() as u64;
    }
    balancers.spread.push(spread);
}
