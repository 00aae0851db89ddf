//! Rows of the time series: the samples of all partitions merged.

use crate::{
    ids::FlowId,
    measure::{SampledBalancer, SampledPort, SampledReceiver, SampledSender, Spread},
    partition::Partition,
    plan::Plan,
};
use anabranch_outcome::{FlowSample, FlowSeries, PortSample, PortSeries, SchemeSample, SchemeSeries};
use anabranch_topology::NodeId;
use anabranch_units::Time;

pub(super) fn series(
    plan: &Plan<'_>,
    partitions: &mut [Partition<'_>],
    end: Time,
) -> (Vec<PortSeries>, Vec<FlowSeries>, Vec<SchemeSeries>) {
    // All partitions have passed the same cuts; the time after the last one needs one more sample.
    for partition in partitions.iter_mut().filter(|partition| partition.cx.series.next() <= end.ps()) {
        partition.sample(end.ps());
    }
    let partitions = &*partitions;
    (ports(plan, partitions, end), flows(plan, partitions, end), balancers(plan, partitions, end))
}

fn ports(plan: &Plan<'_>, partitions: &[Partition<'_>], end: Time) -> Vec<PortSeries> {
    let mut links: Vec<u32> = plan.measure.series_links.iter().map(|link| link.0).collect();
    links.sort_unstable();
    links.dedup();
    let name = |node: u32| plan.topology.node(NodeId(node)).name.clone();
    // All ports are sampled at the same times.
    let times: Vec<Vec<(u32, u64)>> = partitions
        .iter()
        .map(|partition| {
            let series = &partition.cx.series;
            let of = |number: u32| series.times(number as usize, end.ps()).map(move |time| (number, time));
            (0..series.samples() as u32).flat_map(of).collect()
        })
        .collect();
    let of_link = |link: u32| {
        let owner = usize::from(plan.owner_of_link(link));
        let series = &partitions[owner].cx.series;
        let at = series.ports.binary_search(&plan.port_of(link)).ok();
        let sample = |&(number, time): &(u32, u64)| {
            port_sample(time, &series.sampled[number as usize * series.ports.len() + at.unwrap_or_default()])
        };
        let recorded = at.map_or(&[][..], |_| &times[owner][..]);
        let ends = &plan.links[link as usize];
        PortSeries { from: name(ends.from), to: name(ends.to), samples: recorded.iter().map(sample).collect() }
    };
    links.into_iter().filter(|_| plan.measure.series_interval > Time::ZERO).map(of_link).collect()
}

fn port_sample(time: u64, sampled: &SampledPort) -> PortSample {
    PortSample {
        time: Time::from_ps(time),
        queue_bytes: sampled.waiting_bytes.into(),
        queue_packets: sampled.waiting_packets.into(),
        sent_bytes: sampled.sent_bytes,
        sent_packets: sampled.sent_packets,
        ecn_marks: sampled.marked.into(),
        trims: sampled.trimmed.into(),
        drops: sampled.dropped.into(),
        pauses: sampled.pauses.into(),
        paused: sampled.paused != 0,
    }
}

fn flows(plan: &Plan<'_>, partitions: &[Partition<'_>], end: Time) -> Vec<FlowSeries> {
    let of_flow = |index: usize| {
        let flow = &plan.flows.flow(plan.measure.series_flows[index]);
        let source = &partitions[usize::from(plan.owner_of_host(flow.src))];
        let target = &partitions[usize::from(plan.owner_of_host(flow.dst))];
        let (sent, receiving) = (&source.cx.series.flows[index], &target.cx.series.flows[index]);
        let mut samples = Vec::new();
        for (number, sampled) in &sent.sender {
            let receiver = receiving.at(*number, || final_sample(target, sent.flow));
            let times = source.cx.series.times(*number as usize, end.ps()).enumerate();
            // Nothing was sent since the previous time.
            let sampled_at = |k: usize| SampledSender { paths: if k == 0 { sampled.paths } else { 0 }, ..*sampled };
            samples.extend(times.map(|(k, time)| flow_sample(time, &sampled_at(k), &receiver)));
        }
        let last = sent.last.as_ref();
        samples.extend(last.map(|(time, sampled)| flow_sample(*time, sampled, &final_sample(target, sent.flow))));
        FlowSeries { flow_id: sent.flow, samples }
    };
    let asked = if plan.measure.series_interval > Time::ZERO { plan.measure.series_flows.len() } else { 0 };
    (0..asked).map(of_flow).collect()
}

fn final_sample(partition: &Partition<'_>, flow: u32) -> SampledReceiver {
    let received = partition.hosts.received(FlowId(flow));
    SampledReceiver { received_bytes: received.received_bytes, out_of_order: received.metrics.out_of_order_packets }
}

fn flow_sample(time: u64, sampled: &SampledSender, receiver: &SampledReceiver) -> FlowSample {
    FlowSample {
        time: Time::from_ps(time),
        sent_packets: sampled.sent_packets,
        received_bytes: receiver.received_bytes,
        in_flight_bytes: sampled.in_flight,
        window_bytes: sampled.window,
        rate_bps: sampled.rate,
        retransmitted_packets: sampled.retransmitted,
        out_of_order_packets: receiver.out_of_order,
        marked_acks: sampled.marked,
        trim_notices: sampled.trimmed,
        path_tag: sampled.tag,
        path_switches: sampled.path_switches,
        paths: sampled.paths,
    }
}

fn balancers(plan: &Plan<'_>, partitions: &[Partition<'_>], end: Time) -> Vec<SchemeSeries> {
    let parts: Vec<_> = partitions.iter().filter_map(|partition| partition.cx.series.balancers.as_deref()).collect();
    if parts.is_empty() || plan.measure.series_interval == Time::ZERO {
        return Vec::new();
    }
    let series = &partitions[0].cx.series;
    let of_balancer = |balancer: usize| {
        let mut samples = Vec::new();
        for number in 0..series.samples() {
            let (mut sampled, mut spread) = (SampledBalancer::default(), Spread::default());
            for part in &parts {
                sampled += part.samples[number][balancer];
                spread.busiest += part.spread[number].busiest;
                spread.mean += part.spread[number].mean;
            }
            let imbalance = (spread.mean > 0).then(|| spread.busiest as f64 / spread.mean as f64);
            let times = series.times(number, end.ps()).enumerate();
            samples.extend(times.map(|(k, time)| scheme_sample(time, &sampled, imbalance.filter(|_| k == 0))));
        }
        SchemeSeries { load_balancer: balancer as u16, samples }
    };
    (0..plan.balancers.len()).map(of_balancer).collect()
}

fn scheme_sample(time: u64, sampled: &SampledBalancer, uplink_imbalance: Option<f64>) -> SchemeSample {
    SchemeSample {
        time: Time::from_ps(time),
        open_flows: sampled.open,
        finished_flows: sampled.finished,
        in_flight_bytes: sampled.in_flight,
        window_bytes: sampled.window,
        retransmitted_packets: sampled.retransmitted,
        path_switches: sampled.path_switches,
        flowlets: sampled.counters.flowlets,
        created_flowlets: sampled.counters.created_flowlets,
        added_delay: Time::from_ps(sampled.counters.added_delay_ps),
        reroutes: sampled.counters.reroutes,
        reordered_packets: sampled.counters.reordered_packets,
        uplink_imbalance,
    }
}
