//! At the end of a run: the invariants are checked and the results of all partitions put together.

use crate::{
    outcome::{NEVER, RxOutcome, TxOutcome},
    partition::Partition,
    plan::Plan,
    port::Port,
    sender::SenderFlow,
    transport::Receiver,
    wires::{Tally, tally_of},
};
use anabranch_lb::{HostScheme, SchemeCounters};
use anabranch_outcome::{Balance, Conservation, Counters, LinkRow, PortSeries, QueueStats, UplinkCount};
use anabranch_topology::{LinkId, NodeId, NodeKind};
use anabranch_units::Time;

/// A flow's outcome as the fabric knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    /// When it started.
    pub started: Option<Time>,
    /// When its first packet was sent.
    pub first_sent: Option<Time>,
    /// When the receiver had the last byte.
    pub received: Option<Time>,
    /// When the sender had the last acknowledgement.
    pub acknowledged: Option<Time>,
    /// Data packets sent more than once.
    pub retransmitted: u64,
    /// Arrivals whose PSN was not the lowest one missing.
    pub out_of_order: u64,
    /// Arrivals whose PSN was not the last arrival's plus one.
    pub out_of_sequence: u64,
    /// Most payload bytes received beyond the lowest missing one.
    pub max_reorder_bytes: u64,
    /// Packets sent with another tag than the one before.
    pub path_switches: u64,
}

/// The results of all partitions together.
#[derive(Clone, Debug)]
pub struct Harvest {
    /// When the last packet arrived.
    pub last_arrival: Time,
    /// Events handled.
    pub events: u64,
    /// Packets that left a port.
    pub packet_hops: u64,
    /// Per flow.
    pub flows: Vec<FlowOutcome>,
    /// Per directed link.
    pub links: Vec<LinkRow>,
    /// Totals.
    pub counters: Counters,
    /// The balance.
    pub conservation: Conservation,
    /// Time series.
    pub series: Vec<PortSeries>,
    /// Packets per flow and uplink.
    pub uplink_counts: Vec<UplinkCount>,
    /// Bytes of memory held by the partitions.
    pub bytes: u64,
}

/// Ends a run at `end` (everything before it has been handled) and checks what must hold.
///
/// # Errors
/// The invariant that failed, where and by how much.
pub fn harvest(plan: &Plan, mut partitions: Vec<Partition<'_>>, end: Time) -> Result<Harvest, String> {
    for partition in &mut partitions {
        for link in plan.links_of(partition.me) {
            partition.settle(link, end.ps());
        }
        partition.note_open_flows();
    }
    let links = links(plan, &mut partitions, end)?;
    let series = series(plan, &mut partitions, end);
    let flows = flows(plan, &partitions);
    let conservation = conservation(plan, &partitions, &flows);
    check(&conservation)?;
    let count = |number: &dyn Fn(&Partition<'_>) -> u64| partitions.iter().map(number).sum::<u64>();
    let totals = |number: &dyn Fn(&crate::wires::Totals) -> u64| count(&|p| number(&p.wires.totals));
    let mut schemes = SchemeCounters::default();
    for partition in &partitions {
        schemes += partition.switches.counters();
        partition.hosts.iter().flat_map(|host| &host.schemes).for_each(|b| schemes += b.scheme.counters());
    }
    let counters = Counters {
        data_packets: conservation.data_packets.injected,
        acks: conservation.acks.injected,
        ecn_marked: links.iter().map(|l| l.ecn_marks).sum(),
        trimmed: totals(&|t| t.trimmed_packets),
        dropped: totals(&|t| t.dropped.iter().map(|d| d.packets).sum()),
        retransmitted: flows.iter().map(|f| f.retransmitted).sum(),
        timeouts: count(&|p| p.timeouts),
        out_of_order: flows.iter().map(|f| f.out_of_order).sum(),
        path_switches: flows.iter().map(|f| f.path_switches).sum(),
        pfc_pauses: totals(&|t| t.pause_frames),
        probes: count(&|p| p.probes.sent),
        probe_bytes: count(&|p| p.probes.bytes),
        flowlets: schemes.flowlets,
        created_flowlets: schemes.created_flowlets,
        added_delay_ns: schemes.added_delay_ps / 1000,
        reroutes: schemes.reroutes,
        reordered_packets: schemes.reordered_packets,
        gaps: count(&|p| p.gaps.all),
        gaps_1_rtt: count(&|p| p.gaps.round_trips[0]),
        gaps_2_rtt: count(&|p| p.gaps.round_trips[1]),
        gaps_3_rtt: count(&|p| p.gaps.round_trips[2]),
    };
    Ok(Harvest {
        last_arrival: Time::from_ps(partitions.iter().map(|p| p.last_arrival).max().unwrap_or(0)),
        events: count(&|p| p.events),
        packet_hops: totals(&|t| t.packet_hops),
        counters,
        conservation,
        series,
        uplink_counts: uplink_counts(plan, &partitions),
        bytes: count(&|p| p.bytes() as u64),
        flows,
        links,
    })
}

impl Partition<'_> {
    /// Open flows leave what they have so far.
    fn note_open_flows(&mut self) {
        for (_, flow) in &self.senders {
            self.tx[flow.flow as usize].note(&flow.sender, flow.path_switches);
        }
        for (number, &slot) in self.receiver_of.iter().enumerate() {
            if let Some(receiver) = self.receivers.get(slot as usize) {
                self.rx[number] = RxOutcome::of(receiver);
            }
        }
    }

    /// Bytes of memory held.
    fn bytes(&self) -> usize {
        let window = self.plan.transport.window_packets().next_power_of_two() as usize;
        let per_flow = size_of::<TxOutcome>() + size_of::<RxOutcome>() + 2 * size_of::<u32>();
        // A sender keeps 16 B per packet of its window, a receiver one bit.
        self.wires.bytes()
            + self.senders.capacity() * (size_of::<SenderFlow>() + 16 * window)
            + self.receivers.capacity() * (size_of::<Receiver>() + window / 8)
            + self.tx.len() * per_flow
    }

    /// The first open flow, for people: which, where, since when.
    pub fn open_flow(&self) -> Option<String> {
        let (_, flow) = self.senders.iter().next()?;
        let started = Time::from_ps(self.tx[flow.flow as usize].started);
        Some(format!(
            "flow {} (host{} to host{}, started at {started}) has {} of {} packets acknowledged and {} B in flight",
            flow.flow,
            flow.src,
            flow.dst,
            flow.sender.cumulative(),
            flow.sender.packets(),
            flow.sender.in_flight(),
        ))
    }

    /// Flows done at their senders.
    pub fn finished(&self) -> u64 {
        self.finished
    }
}

fn flows(plan: &Plan, partitions: &[Partition<'_>]) -> Vec<FlowOutcome> {
    let known = |time: u64| (time != NEVER).then(|| Time::from_ps(time));
    let flows = plan.flows.flows.iter().enumerate();
    flows
        .map(|(number, flow)| {
            let tx = &partitions[plan.owner_of_host(flow.src) as usize].tx[number];
            let rx = &partitions[plan.owner_of_host(flow.dst) as usize].rx[number];
            FlowOutcome {
                started: known(tx.started),
                first_sent: known(tx.first_sent),
                received: known(rx.done),
                acknowledged: known(tx.done),
                retransmitted: tx.retransmitted,
                out_of_order: rx.out_of_order,
                out_of_sequence: rx.out_of_sequence,
                max_reorder_bytes: rx.max_reorder_bytes,
                path_switches: tx.path_switches,
            }
        })
        .collect()
}

fn links(plan: &Plan, partitions: &mut [Partition<'_>], end: Time) -> Result<Vec<LinkRow>, String> {
    let mut rows = Vec::with_capacity(plan.links.len());
    for (index, link) in plan.links.iter().enumerate() {
        let partition = &mut partitions[plan.owner[link.from as usize] as usize];
        let number = index as u32;
        let port = &mut partition.wires.ports[index];
        let span = port.account(end.ps().max(port.changed_at));
        partition.wires.histograms.record(number, port.data_bytes, port.data_packets, span);
        let port = partition.wires.ports[index].clone();
        little(plan, partition, number, &port)?;
        let total = end.ps().max(1);
        let histograms = &partition.wires.histograms;
        let occupancy = histograms.occupancy(number, total);
        let p99_bytes = histograms.quantile_bytes(number, total, 0.99, port.max_bytes);
        let p99_packets = quantile_packets(&occupancy, total)
            .unwrap_or_else(|| p99_bytes.div_ceil(plan.wire_mtu).min(u64::from(port.max_packets)));
        let counters = partition.wires.counters[index];
        rows.push(LinkRow {
            from: plan.topology.node(NodeId(link.from)).name.clone(),
            to: plan.topology.node(NodeId(link.to)).name.clone(),
            tier: plan.topology.links[index].class.name(),
            direction: direction(plan, index),
            rate_bps: link.rate.0,
            bytes: port.sent_bytes,
            packets: port.sent_packets,
            utilisation: port.sent_bytes as f64 * 8.0 / (link.rate.0 as f64 * Time::from_ps(total).as_seconds()),
            queue: QueueStats {
                mean_bytes: port.area_bytes as f64 / total as f64,
                p99_bytes,
                max_bytes: u64::from(port.max_bytes),
                mean_packets: port.area_packets as f64 / total as f64,
                p99_packets,
                max_packets: u64::from(port.max_packets),
                occupancy,
            },
            ecn_marks: counters.marked,
            trims: counters.trimmed,
            drops: counters.dropped,
            pauses: counters.pauses,
        });
    }
    Ok(rows)
}

/// Little's law, exactly: the integral of the queue's length is the sum of its packets' waiting times.
fn little(plan: &Plan, partition: &Partition<'_>, link: u32, port: &Port) -> Result<(), String> {
    let packets = &partition.wires.packets;
    let still = partition.wires.queued(plan, link);
    let still = still.iter().map(|&id| &packets[id]).filter(|p| !p.is_control());
    let waited = port.waited + still.map(|p| port.changed_at - p.queued_at).sum::<u64>();
    if waited == port.area_packets {
        return Ok(());
    }
    let name = plan.topology.link_name(LinkId(link));
    Err(format!(
        "Little's law on {name}: the queue's length integrates to {} packet-ps, its packets waited {waited} ps",
        port.area_packets
    ))
}

fn quantile_packets(occupancy: &[(u64, u64)], total: u64) -> Option<u64> {
    let mut left = (total as f64 * 0.99) as u64;
    for &(packets, span) in occupancy {
        if left <= span {
            return Some(packets);
        }
        left -= span;
    }
    occupancy.last().map(|&(packets, _)| packets)
}

fn direction(plan: &Plan, link: usize) -> &'static str {
    let height = |node: u32| match plan.topology.node(NodeId(node)).kind {
        NodeKind::Host => 0,
        NodeKind::Switch { tier } => 1 + u32::from(tier),
    };
    match height(plan.links[link].from).cmp(&height(plan.links[link].to)) {
        std::cmp::Ordering::Less => "up",
        std::cmp::Ordering::Greater => "down",
        std::cmp::Ordering::Equal => "flat",
    }
}

/// What came into being against what became of it; what is in flight is counted where it lies.
fn conservation(plan: &Plan, partitions: &[Partition<'_>], flows: &[FlowOutcome]) -> Conservation {
    let sum = |tally: &dyn Fn(&Partition<'_>) -> Tally| {
        partitions
            .iter()
            .map(tally)
            .fold(Tally::default(), |a, b| Tally { packets: a.packets + b.packets, bytes: a.bytes + b.bytes })
    };
    let trimmed = sum(&|p| Tally { packets: p.wires.totals.trimmed_packets, bytes: p.wires.totals.trimmed_bytes });
    let balance = |kind: usize| {
        let dropped = sum(&|p| p.wires.totals.dropped[kind]);
        let injected = sum(&|p| {
            let pauses = if kind == 4 { p.wires.born_control } else { Tally::default() };
            Tally { packets: p.injected[kind].packets + pauses.packets, bytes: p.injected[kind].bytes + pauses.bytes }
        });
        let delivered = sum(&|p| p.delivered[kind]);
        let in_flight = sum(&|p| in_flight(p, kind));
        let trimmed = if kind == 0 { trimmed } else { Tally::default() };
        let of = |number: fn(&Tally) -> u64| Balance {
            injected: number(&injected),
            delivered: number(&delivered),
            dropped: number(&dropped),
            trimmed: number(&trimmed),
            in_flight: number(&in_flight),
        };
        (of(|t| t.packets), of(|t| t.bytes))
    };
    let (data_packets, data_bytes) = balance(0);
    let (mut headers, _) = balance(1);
    headers.injected = trimmed.packets;
    let (acks, ack_bytes) = balance(2);
    let ((probes, _), (control, _)) = (balance(3), balance(4));
    let complete = |(number, flow): (usize, &FlowOutcome)| {
        flow.received?;
        let definition = &plan.flows.flows[number];
        let receiver = &partitions[plan.owner_of_host(definition.dst) as usize];
        Some((receiver.rx[number].received_bytes, definition.size))
    };
    let complete: Vec<_> = flows.iter().enumerate().filter_map(complete).collect();
    Conservation {
        data_packets,
        data_bytes,
        headers,
        acks,
        ack_bytes,
        probes,
        control,
        unique_bytes: complete.iter().map(|c| c.0).sum(),
        flow_bytes: complete.iter().map(|c| c.1).sum(),
    }
}

fn in_flight(partition: &Partition<'_>, kind: usize) -> Tally {
    let mut tally = Tally::default();
    partition.wires.packets.live().filter(|p| tally_of(p.kind) == kind).for_each(|p| tally.add(p));
    tally
}

fn check(conservation: &Conservation) -> Result<(), String> {
    let balances = [
        ("data packets", conservation.data_packets),
        ("bytes of data packets", conservation.data_bytes),
        ("headers of trimmed packets", conservation.headers),
        ("acknowledgements", conservation.acks),
        ("bytes of acknowledgements", conservation.ack_bytes),
        ("probes and their replies", conservation.probes),
        ("control packets of switches", conservation.control),
    ];
    for (what, balance) in balances {
        if !balance.holds() {
            return Err(format!("conservation of {what}: {balance:?}"));
        }
    }
    if conservation.unique_bytes != conservation.flow_bytes {
        return Err(format!(
            "complete flows of {} B delivered {} unique bytes",
            conservation.flow_bytes, conservation.unique_bytes
        ));
    }
    Ok(())
}

fn series(plan: &Plan, partitions: &mut [Partition<'_>], end: Time) -> Vec<PortSeries> {
    let mut samples: Vec<_> = partitions.iter_mut().flat_map(|p| std::mem::take(&mut p.samples)).collect();
    samples.sort_by_key(|s| s.link);
    let name = |node: u32| plan.topology.node(NodeId(node)).name.clone();
    samples
        .into_iter()
        .map(|mut port| {
            port.samples.retain(|sample| sample.0 <= end);
            let link = &plan.links[port.link as usize];
            PortSeries { from: name(link.from), to: name(link.to), samples: port.samples }
        })
        .collect()
}

fn uplink_counts(plan: &Plan, partitions: &[Partition<'_>]) -> Vec<UplinkCount> {
    let counts = partitions.iter().filter_map(|p| p.switches.uplink_counts.as_ref()).flatten();
    let mut counts: Vec<_> = counts.map(|(&key, &packets)| (key, packets)).collect();
    counts.sort_unstable();
    let name = |node: u32| plan.topology.node(NodeId(node)).name.clone();
    let row = |((flow_id, link), packets): ((u32, u32), u64)| {
        let link = &plan.links[link as usize];
        UplinkCount { flow_id, from: name(link.from), to: name(link.to), packets }
    };
    counts.into_iter().map(row).collect()
}
