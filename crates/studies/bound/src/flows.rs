//! Flows as bounds see them: bytes on the wire, earliest start, and the least times of a flow alone.

use crate::{Network, earliest::earliest};
use anabranch_backend::{FctKind, FlowOutcome, Setup, flow_rows};
use anabranch_topology::LinkId;
use anabranch_transport::TransportParameters;
use anabranch_units::Time;
use anabranch_workload::Start;

/// A flow. Times are picoseconds as `f64`.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) workload: u16,
    /// Full packets before the last one.
    pub(crate) full: u64,
    /// Bytes of the last packet on the wire: the smallest of the flow.
    pub(crate) last: u64,
    /// Bytes of a full packet on the wire.
    pub(crate) packet: u64,
    /// Start time; `None` for a flow that waits for a trigger.
    pub(crate) start: Option<f64>,
    /// Earliest start: [`Demand::start`], or what triggers allow.
    pub(crate) earliest: f64,
    /// Longest time from the start to the first packet on the wire, in turns with the other flows of the host; infinite if
    /// no limit is known.
    pub(crate) turn: f64,
    /// Least time of its bytes on the link of its sender.
    pub(crate) up: f64,
    /// Least time of its bytes on the link of its receiver.
    pub(crate) down: f64,
    /// Delay of that link.
    pub(crate) after_down: f64,
    /// Least time from its last byte behind the last link between switches to its receiver.
    pub(crate) after_core: f64,
    /// Least time from its start to its first byte at a link between switches.
    pub(crate) before_core: f64,
    /// Least time from the start of its first packet to its first byte at the last link.
    pub(crate) before_down: f64,
    /// Least time from the end of its last byte at the first link to its receiver.
    pub(crate) after_up: f64,
    /// Least time from its receiver to the acknowledgement at its sender.
    pub(crate) back: f64,
    /// Ideal times (rx, ack) of the results.
    pub(crate) ideal: (f64, f64),
}

impl Demand {
    /// Returns the bytes on the wire.
    pub(crate) fn bytes(&self) -> f64 {
        (self.full * self.packet + self.last) as f64
    }

    /// Returns the least time from its first packet on the wire to its last byte at the receiver.
    pub(crate) fn alone(&self) -> f64 {
        (self.up + self.after_up).max(self.before_down + self.down + self.after_down)
    }

    /// Returns the least completion time of this kind.
    pub(crate) fn alone_of(&self, kind: FctKind) -> f64 {
        match kind {
            FctKind::Rx => self.alone(),
            FctKind::Ack => self.alone() + self.back,
        }
    }

    pub(crate) fn ideal_of(&self, kind: FctKind) -> f64 {
        match kind {
            FctKind::Rx => self.ideal.0,
            FctKind::Ack => self.ideal.1,
        }
    }
}

/// Returns the first time at which a flow may start: the state of links before that does not count.
pub(crate) fn first_start(setup: &Setup) -> Time {
    let starts = setup.flows.flows.iter().filter_map(|flow| match flow.start {
        Start::At(time) => Some(time),
        Start::On(_) => None,
    });
    let triggers = setup.flows.triggers.iter().filter_map(|trigger| trigger.at);
    starts.chain(triggers).min().unwrap_or_default()
}

/// Returns every flow of `setup`, in order.
pub(crate) fn demands(setup: &Setup, network: &mut Network<'_>) -> Vec<Demand> {
    let topology = &setup.topology;
    let (mtu, header, ack) = (setup.transport.mtu(), setup.transport.header(), setup.transport.ack_size());
    let rows = flow_rows(setup, &vec![FlowOutcome::default(); setup.flows.flows.len()]);
    let mut demands: Vec<Demand> = setup
        .flows
        .flows
        .iter()
        .zip(rows)
        .map(|(flow, row)| {
            let packets = flow.size.div_ceil(mtu).max(1);
            let (full, last) = (packets - 1, flow.size - (packets - 1) * mtu + header);
            let (ups, downs) = (network.ups(flow.src), network.downs(flow.dst));
            let (from, to) = (topology.edge_switch(flow.src), topology.edge_switch(flow.dst));
            let between = network.latency(from, to, last, false);
            let crossing =
                |network: &Network<'_>, links: &[LinkId]| least(links, |link| network.crossing(link, last, false));
            let start = match flow.start {
                Start::At(time) => Some(time.ps() as f64),
                Start::On(_) => None,
            };
            Demand {
                src: flow.src,
                dst: flow.dst,
                workload: flow.workload,
                full,
                last,
                packet: mtu + header,
                start,
                earliest: start.unwrap_or(f64::INFINITY),
                turn: f64::INFINITY,
                up: network.train_over(&ups, full, mtu + header, last),
                down: network.train_over(&downs, full, mtu + header, last),
                after_down: least(&downs, |link| network.behind(link)),
                after_core: crossing(network, &downs),
                before_core: crossing(network, &ups),
                before_down: crossing(network, &ups) + between,
                after_up: least(&ups, |link| network.behind(link)) + between + crossing(network, &downs),
                back: back(network, flow.src, flow.dst, ack),
                ideal: (row.ideal_rx.ps() as f64, row.ideal_ack.ps() as f64),
            }
        })
        .collect();
    earliest(setup, &mut demands);
    turns(setup, network, &mut demands);
    demands
}

/// Largest share of a host's link for acknowledgements of packets that arrive at the full rate.
const MAX_ACK_SHARE: f64 = 0.25;

fn back(network: &mut Network<'_>, src: u32, dst: u32, ack: u64) -> f64 {
    let topology = network.topology;
    let (first, last) = (network.ups(dst), network.downs(src));
    let between = network.latency(topology.edge_switch(dst), topology.edge_switch(src), ack, true);
    let crossing = |links: &[LinkId]| least(links, |link| network.crossing(link, ack, true));
    crossing(&first) + between + crossing(&last)
}

/// Returns the least value of a host's links, one per plane.
fn least(links: &[LinkId], of: impl Fn(LinkId) -> f64) -> f64 {
    links.iter().map(|link| of(*link)).fold(f64::INFINITY, f64::min)
}

/// Determines how long the first packet of each flow may wait for its turn at its host.
///
/// A host serves its flows in turns, a packet each. A flow that starts while the host has no other traffic sends at once.
/// With `k` other flows that may be active it waits for a packet of each, and for as many bytes of control packets and probes
/// at most. There is no limit with pauses, several classes, RoCEv2 (whose rates may hold a flow back), or where
/// acknowledgements of what the host receives could fill its link. With several planes a packet may also wait for its port.
fn turns(setup: &Setup, network: &Network<'_>, demands: &mut [Demand]) {
    if setup.fabric.pfc || setup.fabric.classes.len() > 1 {
        return;
    }
    let hosts = setup.topology.hosts as usize;
    let (mut sends, mut receives): (Vec<Vec<f64>>, Vec<f64>) = (vec![vec![]; hosts], vec![f64::INFINITY; hosts]);
    for demand in demands.iter() {
        sends[demand.src as usize].push(demand.earliest);
        let first = &mut receives[demand.dst as usize];
        *first = first.min(demand.earliest);
    }
    sends.iter_mut().for_each(|starts| starts.sort_by(f64::total_cmp));
    for demand in demands.iter_mut() {
        let Some(start) = demand.start else { continue };
        let others = sends[demand.src as usize].partition_point(|other| *other <= start) - 1;
        let receives = receives[demand.src as usize] < start;
        let link = setup.topology.host_uplink(demand.src);
        let packet = network.train(link, 0, 0, demand.packet);
        let acks = network.train(link, 0, 0, setup.transport.ack_size());
        let is_paced = matches!(setup.transport, TransportParameters::Roce(_));
        let is_crowded = is_paced || acks > MAX_ACK_SHARE * network.train(link.reverse(), 0, 0, demand.packet);
        demand.turn = match (others, receives) {
            (0, false) => 0.0,
            // Acknowledgements of what the host receives may come first.
            (0, true) => f64::INFINITY,
            _ if is_crowded || setup.topology.planes > 1 => f64::INFINITY,
            (others, _) => 2.0 * others as f64 * packet,
        };
    }
}
