//! What every partition may read and none may change: links, routes, flows, limits, faults.

use crate::{
    buffer::SharedBuffer,
    classes::quanta,
    guided::Guided,
    order::{self, TRIGGER_NUMBER},
    packet::Packet,
    parameters::{FabricParameters, MarkAt, Quirks, Scheduling, Trim},
    transport::{Transport, TransportParameters},
};
use anabranch_lb::registry::{HostParameters, Sees, SwitchParameters};
use anabranch_random::key;
use anabranch_settings::Never;
use anabranch_topology::{Fault, FaultAction, LinkId, NodeId, NodeKind, Routes, Topology, partition};
use anabranch_transport::uet::Network;
use anabranch_units::{Rate, Time};
use anabranch_workload::{FlowSet, Start, TriggerKind};

/// What partitions tell each other.
#[derive(Clone, Copy, Debug)]
pub enum Message {
    /// A packet arrives.
    #[doc(hidden)]
    Packet {
        /// When.
        time: u64,
        /// Canonical order of the arrival.
        order: u32,
        #[allow(private_interfaces, missing_docs)]
        packet: Packet,
    },
    /// A trigger is activated.
    Activate {
        /// When.
        time: u64,
        /// Which.
        trigger: u32,
    },
    /// A flow starts.
    Start {
        /// When.
        time: u64,
        /// Which.
        flow: u32,
    },
}

/// A load balancer in use: its two sides.
#[derive(Clone, Debug)]
pub struct Balancer {
    /// The host side.
    pub host: HostParameters,
    /// The switch side.
    pub switch: SwitchParameters,
}

/// What is measured beyond what always is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// Links whose ports give a time series.
    pub series_links: Vec<LinkId>,
    /// Interval of the samples; zero: no series.
    pub series_interval: Time,
    /// Per-flow packet counts per uplink.
    pub uplink_counts: bool,
    /// Occupancy histograms per port, in packets.
    pub occupancy: bool,
}

/// A directed link.
#[derive(Clone, Debug)]
pub(crate) struct LinkPlan {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) rate: Rate,
    /// Propagation delay and, where the link ends at a switch, that switch's latency.
    pub(crate) delay: u64,
    /// Rank of its arrivals in the canonical order.
    pub(crate) rank: u32,
    /// Stable key for random streams.
    pub(crate) key: u64,
}

/// `[fabric]` with every size in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) queue_limit: u32,
    pub(crate) control_limit: u32,
    pub(crate) ecn: bool,
    pub(crate) ecn_kmin: u32,
    pub(crate) ecn_kmax: u32,
    pub(crate) ecn_pmax: f64,
    pub(crate) mark_at: MarkAt,
    pub(crate) trimming: bool,
    pub(crate) trim: Trim,
    pub(crate) trimmed_size: u16,
    pub(crate) classes: usize,
    pub(crate) scheduling: Scheduling,
    pub(crate) quanta: Vec<i32>,
    pub(crate) pfc: bool,
    /// Picoseconds that a pause lasts; `None`: until it is lifted.
    pub(crate) pfc_pause: Option<u64>,
    pub(crate) pfc_frame: u16,
    pub(crate) quirks: Quirks,
    /// Whether ports work out their transmissions lazily.
    pub(crate) lazy: bool,
}

/// Forwarding tables from one moment on.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) from: u64,
    pub(crate) routes: Routes,
    /// Per directed link: known to be dead.
    pub(crate) dead: Vec<bool>,
    /// Whether any is.
    pub(crate) any_dead: bool,
}

/// Everything a run is a function of, prepared for the hot path.
#[derive(Debug)]
pub struct Plan {
    pub(crate) topology: Topology,
    pub(crate) seed: u64,
    pub(crate) hosts: u32,
    pub(crate) links: Vec<LinkPlan>,
    /// Partition of each node.
    pub(crate) owner: Vec<u16>,
    pub(crate) partitions: usize,
    /// Switch (dense number) that each host attaches to.
    pub(crate) edge: Vec<u32>,
    pub(crate) host_up: Vec<u32>,
    /// Per switch the rate of its fastest link to another switch.
    pub(crate) fastest: Vec<Rate>,
    pub(crate) host_down: Vec<u32>,
    pub(crate) tables: Vec<Tables>,
    pub(crate) flows: FlowSet,
    pub(crate) flow_keys: Vec<u64>,
    /// Host at which each trigger keeps its state.
    pub(crate) trigger_home: Vec<u32>,
    pub(crate) trigger_latency: u64,
    pub(crate) fabric: Limits,
    /// The buffers of the switches, where their ports share them.
    pub(crate) shared: Option<SharedBuffer>,
    pub(crate) transport: Transport,
    pub(crate) data_overhead: u16,
    /// Bytes of a full data packet on the wire.
    pub(crate) wire_mtu: u64,
    pub(crate) ack_size: u16,
    pub(crate) bdp_packets: u64,
    /// What guided schemes need; `None` where there is none.
    pub(crate) guided: Option<Guided>,
    /// The round trip over the longest guided path, which every flow reckons with; `None` where there are no such paths.
    pub(crate) longest_rtt: Option<Time>,
    pub(crate) balancers: Vec<Balancer>,
    /// Per balancer: its switch scheme sees every hop of data.
    pub(crate) every_hop: Vec<bool>,
    /// Per balancer: its host scheme leaves the tag alone, so that the reference model's ports stay what they are.
    pub(crate) plain_host: Vec<bool>,
    /// The link of each rank of arrivals.
    pub(crate) link_of_rank: Vec<u32>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) measure: Measure,
    /// Whether the state of the ports outgrows the processor's caches, so that it pays to fetch it ahead.
    pub(crate) large: bool,
    /// Least time between a cause in one partition and its effect in another.
    pub(crate) lookahead: u64,
}

/// Directed links above which a fabric is large: their ports, queues and packets take a few MiB.
const LARGE: usize = 3000;

/// What a plan is made from.
#[derive(Clone, Debug)]
pub struct PlanInput<'a> {
    /// The graph.
    pub topology: &'a Topology,
    /// The traffic.
    pub flows: &'a FlowSet,
    /// `[fabric]`.
    pub fabric: &'a FabricParameters,
    /// `[transport]`.
    pub transport: &'a TransportParameters,
    /// Load balancers; workloads point into this list.
    pub balancers: Vec<Balancer>,
    /// Faults, resolved to links.
    pub faults: &'a [Fault],
    /// Extra measurements.
    pub measure: &'a Measure,
    /// Time for a trigger to reach another host.
    pub trigger_latency: Time,
    /// Seed of everything random.
    pub seed: u64,
    /// Number of partitions.
    pub partitions: usize,
    /// Whether ports work out their transmissions lazily (the general, slower path gives the same results).
    pub lazy: bool,
}

impl Plan {
    /// Prepares a run.
    ///
    /// # Errors
    /// A message where the parts do not fit together.
    pub fn new(input: PlanInput<'_>) -> Result<Self, String> {
        let topology = input.topology.clone();
        let hosts = topology.hosts;
        let overhead = input.transport.header();
        let wire_mtu = input.transport.mtu() + overhead;
        let ack_size = input.transport.ack_size();
        if wire_mtu > u64::from(u16::MAX) {
            return Err(format!("transport.mtu and header make {wire_mtu} B packets; at most {} B fit", u16::MAX));
        }
        let reference = input.fabric.quirks == Quirks::ConweaveNs3;
        // The reference model counts the payload out and propagation alone back (conweave-ns3 1.1).
        let (out, back) = if reference { (input.transport.mtu(), 0) } else { (wire_mtu, ack_size) };
        let base_rtt = topology.window_rtt(out, back);
        let nic_rate = (0..hosts).map(|h| topology.link(topology.host_uplink(h)).rate).max().unwrap_or(Rate(1));
        let bdp = nic_rate.bytes_in(base_rtt);
        let fabric = limits(input.fabric, bdp, wire_mtu as u32, input.lazy)?;
        if fabric.pfc && input.fabric.shared_buffer.0 == 0 {
            return Err("fabric.pfc needs a fabric.shared_buffer, whose filling it watches".into());
        }
        let slowest = topology.links.iter().map(|l| l.rate).min().unwrap_or(nic_rate);
        let transport = Transport::new(
            input.transport,
            &Network {
                base_rtt,
                bdp,
                queue_drain: slowest.wire_time(u64::from(fabric.queue_limit)),
                trimming: fabric.trimming,
                nic_rate,
            },
        );
        let partitions = input.partitions.clamp(1, topology.switches().max(1) as usize);
        let owner = partition(&topology, partitions);
        let links = link_plans(&topology, input.seed);
        let mut link_of_rank = vec![0; links.len()];
        links.iter().enumerate().for_each(|(link, plan)| link_of_rank[plan.rank as usize] = link as u32);
        let shared = match input.fabric.shared_buffer.0 {
            0 => None,
            _ => Some(SharedBuffer::new(&topology, &links, input.fabric, wire_mtu)?),
        };
        let crossing = links.iter().filter(|l| owner[l.from as usize] != owner[l.to as usize]);
        let mut lookahead = crossing.map(|l| l.delay).min().unwrap_or(u64::MAX);
        if !input.flows.triggers.is_empty() {
            lookahead = lookahead.min(input.trigger_latency.ps());
        }
        if partitions > 1 && lookahead == 0 {
            return Err("a run on several threads needs a link delay and a run.trigger_latency above zero".into());
        }
        let guided = Guided::new(&topology, &input.balancers)?;
        let switch_number = |node: NodeId| node.0 - hosts;
        let mut fastest = vec![Rate(0); topology.switches() as usize];
        for link in links.iter().filter(|link| link.from >= hosts && link.to >= hosts) {
            let rate = &mut fastest[(link.from - hosts) as usize];
            *rate = (*rate).max(link.rate);
        }
        let host_up: Vec<u32> = (0..hosts).map(|h| topology.host_uplink(h).0).collect();
        Ok(Plan {
            seed: input.seed,
            hosts,
            edge: (0..hosts).map(|h| switch_number(topology.edge_switch(h))).collect(),
            host_down: host_up.iter().map(|&l| LinkId(l).reverse().0).collect(),
            host_up,
            fastest,
            tables: tables(&topology, input.faults),
            flow_keys: if reference {
                reference_ports(input.flows, hosts)
            } else {
                input.flows.flows.iter().map(|f| f.key).collect()
            },
            trigger_home: trigger_homes(input.flows, hosts)?,
            trigger_latency: input.trigger_latency.ps(),
            flows: input.flows.clone(),
            fabric,
            transport,
            data_overhead: overhead as u16,
            wire_mtu,
            ack_size: ack_size as u16,
            bdp_packets: bdp.div_ceil(wire_mtu),
            guided,
            longest_rtt: topology.guidance.map(|_| base_rtt),
            every_hop: input.balancers.iter().map(|b| b.switch.about().sees == Sees::EveryHop).collect(),
            plain_host: input.balancers.iter().map(|b| reference && b.host.name() == "ecmp").collect(),
            balancers: input.balancers,
            shared,
            link_of_rank,
            faults: input.faults.to_vec(),
            measure: input.measure.clone(),
            large: links.len() > LARGE,
            lookahead,
            links,
            owner,
            partitions,
            topology,
        })
    }

    /// Number of partitions.
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Least time between a cause in one partition and its effect in another, in picoseconds.
    pub fn lookahead(&self) -> u64 {
        self.lookahead
    }

    /// Whether the fabric follows the model behind the recorded runs.
    pub(crate) fn reference(&self) -> bool {
        self.fabric.quirks == Quirks::ConweaveNs3
    }

    /// Bytes that a queue holds before it draws on the shared buffer.
    pub(crate) fn queue_minimum(&self) -> u32 {
        self.shared.as_ref().map_or(0, |shared| shared.queue_minimum)
    }

    /// Links that leave the nodes of partition `me`.
    pub(crate) fn links_of(&self, me: u16) -> impl Iterator<Item = u32> {
        let mine = move |link: &u32| self.owner[self.links[*link as usize].from as usize] == me;
        (0..self.links.len() as u32).filter(mine)
    }

    /// Propagation delay of a link between switches.
    pub(crate) fn hop_delay(&self) -> Time {
        let between = self.topology.links.iter().find(|l| l.from.0 >= self.hosts && l.to.0 >= self.hosts);
        between.map_or(Time::ZERO, |l| l.delay)
    }

    /// Rate that a flow between two hosts can reach alone: of the slowest among the NICs and the fastest links that
    /// leave and enter their switches.
    pub(crate) fn lone_rate(&self, src: u32, dst: u32) -> Rate {
        let nics = self.nic_rate(src).min(self.nic_rate(dst));
        let (from, to) = (self.edge[src as usize], self.edge[dst as usize]);
        if from == to { nics } else { nics.min(self.fastest[from as usize]).min(self.fastest[to as usize]) }
    }

    /// Rate of a host's NIC.
    pub(crate) fn nic_rate(&self, host: u32) -> Rate {
        self.links[self.host_up[host as usize] as usize].rate
    }

    /// The partition of a host.
    pub(crate) fn owner_of_host(&self, host: u32) -> u16 {
        self.owner[host as usize]
    }
}

fn limits(fabric: &FabricParameters, bdp: u64, wire_mtu: u32, lazy: bool) -> Result<Limits, String> {
    let bytes = |name: &str, value: u64| {
        u32::try_from(value).map_err(|_| format!("fabric.{name} is {value} B; at most {} B fit", u32::MAX))
    };
    let queue_limit = bytes("queue_limit", fabric.queue_limit.bytes(bdp))?;
    let weights =
        if fabric.class_weights.is_empty() { vec![1; fabric.classes.len()] } else { fabric.class_weights.clone() };
    Ok(Limits {
        queue_limit,
        control_limit: bytes("control_limit", fabric.control_limit.bytes(bdp))?,
        ecn: fabric.ecn,
        ecn_kmin: bytes("ecn_kmin", fabric.ecn_kmin.bytes(bdp))?,
        ecn_kmax: bytes("ecn_kmax", fabric.ecn_kmax.bytes(bdp))?,
        ecn_pmax: fabric.ecn_pmax,
        mark_at: fabric.ecn_mark_at,
        trimming: fabric.trimming,
        trim: fabric.trim,
        trimmed_size: fabric.trimmed_size.0 as u16,
        classes: fabric.classes.len().max(1),
        scheduling: fabric.scheduling,
        quanta: quanta(&weights, wire_mtu),
        pfc: fabric.pfc,
        pfc_pause: match fabric.pfc_pause {
            Never::Never => None,
            Never::Value(time) => Some(time.ps()),
        },
        pfc_frame: fabric.pfc_frame.0 as u16,
        quirks: fabric.quirks,
        // What a switch hears of its buffer must be said when it happens.
        lazy: lazy && !fabric.pfc,
    })
}

/// UDP ports of every flow as the reference model hands them out (conweave-ns3 1.1): sources count from 10,000 per
/// sending host, destinations from 100 per receiving host, among flows of one start in the order of the flow file;
/// source in the lower 16 bits, destination above.
fn reference_ports(flows: &FlowSet, hosts: u32) -> Vec<u64> {
    let (mut source, mut destination) = (vec![10_000u16; hosts as usize], vec![100u16; hosts as usize]);
    let next = |port: &mut u16| {
        let this = *port;
        *port = port.wrapping_add(1);
        u64::from(this)
    };
    let mut order: Vec<usize> = (0..flows.flows.len()).collect();
    order.sort_by_key(|&i| (start_time(flows.flows[i].start).unwrap_or(u64::MAX), flows.flows[i].listed));
    let mut ports = vec![0; order.len()];
    for i in order {
        let flow = &flows.flows[i];
        ports[i] = next(&mut source[flow.src as usize]) | next(&mut destination[flow.dst as usize]) << 16;
    }
    ports
}

/// Links with their canonical ranks: by receiving node (stable name), then by a seeded permutation of its links.
fn link_plans(topology: &Topology, seed: u64) -> Vec<LinkPlan> {
    let mut plans: Vec<LinkPlan> = topology
        .links
        .iter()
        .enumerate()
        .map(|(index, link)| {
            let name = anabranch_random::name_key(&topology.link_name(LinkId(index as u32)));
            let to_switch = matches!(topology.node(link.to).kind, NodeKind::Switch { .. });
            let latency = if to_switch { topology.switch_latency.ps() } else { 0 };
            let (from, to) = (link.from.0, link.to.0);
            LinkPlan { from, to, rate: link.rate, delay: link.delay.ps() + latency, rank: 0, key: name }
        })
        .collect();
    let mut ranked: Vec<(u64, u64, u32)> = (0..plans.len())
        .map(|i| (topology.key(NodeId(plans[i].to)), key(seed, plans[i].key, "ingress rank"), i as u32))
        .collect();
    ranked.sort_unstable();
    for (rank, &(_, _, link)) in ranked.iter().enumerate() {
        plans[link as usize].rank = rank as u32;
    }
    debug_assert!(plans.len() < (order::KIND & !(order::KIND - 1)) as usize);
    plans
}

/// Forwarding tables from the start on and from each moment at which a fault is detected.
fn tables(topology: &Topology, faults: &[Fault]) -> Vec<Tables> {
    let mut changes: Vec<(u64, bool, LinkId)> = Vec::new();
    for fault in faults {
        let Some(at) = fault.detect_at else { continue };
        let dead = match fault.action {
            FaultAction::Down => true,
            FaultAction::Up => false,
            _ => continue,
        };
        changes.extend(fault.links.iter().map(|&link| (at.ps(), dead, link)));
    }
    changes.sort_by_key(|&(at, ..)| at);
    let mut dead = vec![false; topology.links.len()];
    let mut tables = Vec::new();
    let mut next = 0;
    loop {
        let from = if tables.is_empty() { 0 } else { changes[next].0 };
        while next < changes.len() && changes[next].0 == from {
            dead[changes[next].2.0 as usize] = changes[next].1;
            next += 1;
        }
        let any_dead = dead.contains(&true);
        tables.push(Tables { from, routes: Routes::shortest(topology, &dead), dead: dead.clone(), any_dead });
        if next == changes.len() {
            return tables;
        }
    }
}

/// A trigger keeps its state at its home, else at the sender of its first target.
fn trigger_homes(flows: &FlowSet, hosts: u32) -> Result<Vec<u32>, String> {
    if flows.triggers.len() > TRIGGER_NUMBER as usize {
        return Err(format!("{} triggers; at most {TRIGGER_NUMBER} fit", flows.triggers.len()));
    }
    let home = |(number, trigger): (usize, &anabranch_workload::Trigger)| match (trigger.home, trigger.targets.first())
    {
        (Some(home), _) if home < hosts => Ok(home),
        (Some(home), _) => {
            Err(format!("trigger {number} is at home at host {home}; hosts are 0 to {}", hosts.max(1) - 1))
        }
        (None, Some(first)) => Ok(flows.flows[*first as usize].src),
        (None, None) => Err(format!("trigger {number} starts no flow and has no host as its home")),
    };
    flows.triggers.iter().enumerate().map(home).collect()
}

/// Whether a flow has a start time of its own, and which.
pub(crate) fn start_time(start: Start) -> Option<u64> {
    match start {
        Start::At(time) => Some(time.ps()),
        Start::On(_) => None,
    }
}

/// Activations after which a trigger fires all its targets; `None` for one target per activation.
pub(crate) fn activations(kind: TriggerKind) -> Option<u32> {
    match kind {
        TriggerKind::Oneshot => Some(1),
        TriggerKind::Barrier(count) => Some(count),
        TriggerKind::Multishot => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_workload::{Flow, Start};

    #[test]
    fn flows_of_one_start_count_their_ports_in_file_order() {
        // Lines of the recorded incast: 16, 33 and 23 to host 0 at once; sorted by source 23 stands before 33. Recorded
        // destination ports: 100, 101 and, for the last line, 102. A later flow counts on, whatever its line.
        let flow = |src, start, listed| Flow {
            src,
            dst: 0,
            size: 1,
            start: Start::At(Time::from_ns(start)),
            workload: 0,
            class: 0,
            key: 0,
            listed,
            on_sent: None,
            on_received: None,
        };
        let list = vec![flow(16, 0, 1), flow(23, 0, 3), flow(33, 0, 2), flow(16, 5, 0)];
        let set = FlowSet { flows: list, ..FlowSet::default() };
        let ports: Vec<(u64, u64)> = reference_ports(&set, 40).iter().map(|p| (p & 0xffff, p >> 16)).collect();
        assert_eq!(ports, [(10_000, 100), (10_000, 102), (10_000, 101), (10_001, 103)]);
    }
}
