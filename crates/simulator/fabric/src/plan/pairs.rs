//! The pairs of hosts between which flows run, and what limits and transports are resolved against: nothing depends on
//! links that no flow can reach, nor on the names of those that flows use.

use anabranch_backend::Setup;
use anabranch_topology::{FaultAction, LinkId, NodeId, Pairs, Topology};
use anabranch_units::{Rate, Time};
use anabranch_workload::{Flow, Medium};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs whose transports are the same: of two edge switches, two kinds of hosts, one class and one congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PairKey {
    edges: (u32, u32),
    kinds: (u16, u16),
    class: u8,
    /// Workload with a congestion control of its own; `u16::MAX`: that of the run.
    pub(crate) own: u16,
}

/// One of several alike pairs.
#[derive(Clone, Debug)]
pub(crate) struct UsedPair {
    pub(crate) key: PairKey,
    pub(crate) class: usize,
    /// Over the longest path: windows, timeouts and thresholds count with it.
    pub(crate) base_rtt: Time,
    /// Over the fastest path: what a host measures, and its scheme counts with.
    pub(crate) shortest_rtt: Time,
    /// Rate that the ports of the pair allow.
    pub(crate) capacity: Rate,
    pub(crate) nic_rate: Rate,
    /// Number of switch ports on a path.
    pub(crate) ports: u64,
    /// Rates of the switch ports on all paths: the healthy one, and the lowest during the run.
    pub(crate) rates: BTreeSet<(Rate, Rate)>,
    /// The lowest rate of a link of either direction during the run, those of the hosts included.
    pub(crate) slowest: Rate,
}

/// Round trip by which limits of ports scale.
#[derive(Clone, Debug)]
enum PortRtt {
    /// The bandwidth-delay product of every port, as the recorded model has it.
    Product(u64),
    /// One round trip at any rate.
    Fixed(Time),
    /// Per number of links of a path, the longest delay of both directions without wire times; and the bytes out and back.
    Paths(BTreeMap<u64, Time>, u64, u64),
}

#[derive(Clone, Debug)]
pub(crate) struct UsedPairs {
    kinds: Vec<u16>,
    /// Every pair has the same values, apart from class and congestion control.
    is_single: bool,
    has_classes: bool,
    own: Vec<u16>,
    pub(crate) list: Vec<UsedPair>,
    /// Largest base round trip and bandwidth-delay product.
    pub(crate) longest: (Time, u64),
    /// Lowest rate of a port that flows can reach.
    pub(crate) slowest: Rate,
    port_rtt: PortRtt,
}

/// Bytes of the packet and of the reply that a base round trip has.
fn sizes(setup: &Setup) -> (u64, u64) {
    match setup.fabric.recorded {
        false => (setup.transport.mtu() + setup.transport.header(), setup.transport.ack_size()),
        true => (setup.transport.mtu(), 0),
    }
}

/// Calls `see` with every flow over the network; of the groups of a job that use the same hosts, with those of the first.
fn each_flow(setup: &Setup, see: &mut dyn FnMut(&Flow)) {
    setup.flows.flows.iter().filter(|flow| flow.medium == Medium::Network).for_each(&mut *see);
    for template in &setup.flows.templates {
        let job = &setup.flows.grouped[template.job as usize];
        for group in 0..job.concurrent.min(template.groups()) {
            let hosts = job.hosts_of(group);
            for flow in template.of_ranks().iter().filter(|flow| flow.medium == Medium::Network) {
                see(&Flow { src: hosts[flow.src as usize], dst: hosts[flow.dst as usize], ..*flow });
            }
        }
    }
}

/// Returns, per directed link, the lowest rate that a fault gives it; empty without such faults.
fn lowest_rates(setup: &Setup) -> Vec<Rate> {
    let mut lowest = Vec::new();
    for fault in &setup.faults {
        let FaultAction::Degrade(rate) = fault.action else { continue };
        if lowest.is_empty() {
            lowest = setup.topology.links.iter().map(|link| link.rate).collect();
        }
        for link in &fault.links {
            let known: &mut Rate = &mut lowest[link.0 as usize];
            *known = rate.min(*known);
        }
    }
    lowest
}

/// Numbers the hosts by rates, healthy and lowest, and delays of their links.
fn kinds(topology: &Topology, lowest: &[Rate]) -> Vec<u16> {
    let mut known = FxHashMap::default();
    let of = |link: LinkId| (topology.link(link).rate, topology.link(link).delay, lowest.get(link.0 as usize));
    let kind = |host: u32| {
        let ports: Vec<_> = topology.out_links(NodeId(host)).iter().map(|up| (of(*up), of(up.reverse()))).collect();
        let next = known.len().min(usize::from(u16::MAX)) as u16;
        *known.entry(ports).or_insert(next)
    };
    (0..topology.hosts).map(kind).collect()
}

impl UsedPairs {
    pub(crate) fn new(setup: &Setup) -> Self {
        let topology = &setup.topology;
        let (out, back) = sizes(setup);
        let nic_rate = topology.nic_rate();
        let lowest = lowest_rates(setup);
        let recorded = setup.fabric.recorded;
        let is_single = recorded || topology.guidance.is_some();
        let mut used = UsedPairs {
            kinds: kinds(topology, &lowest),
            is_single,
            has_classes: setup.fabric.classes.len() > 1,
            own: (0..setup.flows.workloads.len() as u32)
                .map(|workload| if setup.own_transports.contains_key(&workload) { workload as u16 } else { u16::MAX })
                .collect(),
            list: Vec::new(),
            longest: (Time::ZERO, 0),
            slowest: Rate(u64::MAX),
            port_rtt: PortRtt::Paths(BTreeMap::new(), out, back),
        };
        let rate_of = |link: LinkId| topology.link(link).rate;
        let rates = |link: LinkId| (rate_of(link), lowest.get(link.0 as usize).copied().unwrap_or(rate_of(link)));
        let mut known = FxHashMap::default();
        if is_single {
            let base_rtt = topology.window_rtt(out, back);
            let bdp = nic_rate.bytes_in(base_rtt);
            used.port_rtt = if recorded { PortRtt::Product(bdp) } else { PortRtt::Fixed(base_rtt) };
            let all: BTreeSet<_> = topology.link_ids().map(rates).collect();
            let slowest = all.iter().map(|rates| rates.1).min().unwrap_or(nic_rate);
            each_flow(setup, &mut |flow| {
                known.entry(used.key(topology, flow)).or_insert_with_key(|key| {
                    let (class, capacity, rates) = (usize::from(flow.class), nic_rate, all.clone());
                    let (shortest_rtt, ports) = (base_rtt, 6);
                    let pair = UsedPair {
                        key: *key,
                        class,
                        base_rtt,
                        shortest_rtt,
                        capacity,
                        nic_rate,
                        ports,
                        rates,
                        slowest,
                    };
                    used.list.push(pair);
                });
            });
        } else {
            let (mut pairs, mut delays) = (Pairs::new(topology, out), Pairs::new(topology, 0));
            let mut paths = BTreeMap::new();
            each_flow(setup, &mut |flow| {
                let (src, dst) = (flow.src, flow.dst);
                known.entry(used.key(topology, flow)).or_insert_with_key(|key| {
                    let (shortest_rtt, base_rtt) = pairs.round_trips(topology, src, dst, out, back);
                    let capacity = pairs.capacity(topology, src, dst);
                    let (mut links, ups) = (Vec::new(), topology.out_links(NodeId(src)));
                    for plane in 0..topology.planes {
                        links.extend(pairs.links(topology, src, dst, plane, !lowest.is_empty()));
                        links.push(topology.host_uplink_in(dst, plane).reverse());
                    }
                    let both = links.iter().chain(ups).flat_map(|link| [*link, link.reverse()]);
                    let slowest = both.map(|link| rates(link).1).min().unwrap_or(nic_rate);
                    // Packets also wait for their port of a NIC that has several.
                    links.extend(ups.iter().filter(|_| topology.planes > 1));
                    let rates = links.into_iter().map(rates).collect();
                    let ports = pairs.hops(topology, src, dst) + 1;
                    let delay = delays.round_trips(topology, src, dst, 0, 0).1;
                    let longest = paths.entry(ports + 1).or_insert(delay);
                    *longest = delay.max(*longest);
                    let (class, nic_rate) = (usize::from(flow.class), topology.host_rates(src).0);
                    let key = *key;
                    let pair =
                        UsedPair { key, class, base_rtt, shortest_rtt, capacity, nic_rate, ports, rates, slowest };
                    used.list.push(pair);
                });
            });
            used.port_rtt = PortRtt::Paths(paths, out, back);
        }
        if used.list.is_empty() {
            used.port_rtt = PortRtt::Fixed(topology.window_rtt(out, back));
        }
        let slowest = used.list.iter().flat_map(|pair| pair.rates.iter().map(|rates| rates.1)).min();
        used.slowest = slowest.unwrap_or(nic_rate);
        let bdp = |pair: &UsedPair| pair.capacity.bytes_in(pair.base_rtt);
        used.longest = (
            used.list.iter().map(|pair| pair.base_rtt).max().unwrap_or_else(|| topology.window_rtt(out, back)),
            used.list.iter().map(bdp).max().unwrap_or(0),
        );
        used
    }

    /// Returns the healthy rates of the switch ports that flows can reach.
    pub(crate) fn reached(&self) -> BTreeSet<Rate> {
        self.list.iter().flat_map(|pair| pair.rates.iter().map(|rates| rates.0)).collect()
    }

    /// Returns how long replies wait behind one another at the slowed uplink of their host, for pairs that have one: those to
    /// the packets of all its senders, of which flows of a pair have `window_packets` in flight.
    pub(crate) fn replies(&self, setup: &Setup, window_packets: impl Fn(PairKey) -> u64) -> FxHashMap<PairKey, Time> {
        let topology = &setup.topology;
        let lowest = lowest_rates(setup);
        let lowest_of = |link: LinkId| lowest.get(link.0 as usize).copied().unwrap_or(topology.link(link).rate);
        let slowed = |host: u32| {
            let ports = topology.out_links(NodeId(host));
            let up = ports.iter().map(|up| lowest_of(*up)).min()?;
            ports.iter().any(|port| topology.link(port.reverse()).rate > up).then_some(up)
        };
        let mut packets: FxHashMap<u32, (Rate, u64)> = FxHashMap::default();
        let mtu = setup.transport.mtu();
        each_flow(setup, &mut |flow| {
            if let Some(up) = slowed(flow.dst) {
                let in_flight = flow.size.div_ceil(mtu).min(window_packets(self.key(topology, flow))).max(1);
                let of_host = packets.entry(flow.dst).or_insert((up, 0));
                of_host.1 = of_host.1.saturating_add(in_flight);
            }
        });
        let mut waits = FxHashMap::default();
        if !packets.is_empty() {
            each_flow(setup, &mut |flow| {
                if let Some((up, packets)) = packets.get(&flow.dst) {
                    let wait = up.wire_time(packets.saturating_mul(setup.transport.ack_size()));
                    let known: &mut Time = waits.entry(self.key(topology, flow)).or_default();
                    *known = wait.max(*known);
                }
            });
        }
        waits
    }

    #[inline]
    pub(crate) fn key(&self, topology: &Topology, flow: &Flow) -> PairKey {
        let class = if self.has_classes { flow.class } else { 0 };
        let own = self.own.get(usize::from(flow.workload)).copied().unwrap_or(u16::MAX);
        if self.is_single {
            return PairKey { edges: (0, 0), kinds: (0, 0), class, own };
        }
        let (src, dst) = (flow.src, flow.dst);
        let edges = (topology.edge_switch(src).0, topology.edge_switch(dst).0);
        PairKey { edges, kinds: (self.kinds[src as usize], self.kinds[dst as usize]), class, own }
    }

    /// Returns the bandwidth-delay product by which the limits of a port scale: of its own rate, as if every link of the
    /// longest path had it.
    pub(crate) fn port_bdp(&self, rate: Rate) -> u64 {
        match &self.port_rtt {
            PortRtt::Product(bdp) => *bdp,
            PortRtt::Fixed(rtt) => rate.bytes_in(*rtt),
            PortRtt::Paths(paths, out, back) => {
                let wire = rate.wire_time(*out).saturating_add(rate.wire_time(*back));
                let of = |(links, delay): (&u64, &Time)| delay.saturating_add(wire.saturating_mul(*links));
                rate.bytes_in(paths.iter().map(of).max().unwrap_or_default())
            }
        }
    }
}
