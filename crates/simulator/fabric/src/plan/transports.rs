//! The transports of the flows: one per kind of pair of hosts, and per workload with a congestion control of its own.

use super::{
    Limits,
    pairs::{PairKey, UsedPair, UsedPairs},
};
use anabranch_backend::{Scheduling, Setup};
use anabranch_settings::{Auto, Raw, Setting};
use anabranch_topology::Topology;
use anabranch_transport::{Network, Transport};
use anabranch_units::{BytesOrBdp, Rate, Time};
use anabranch_workload::{Flow, GroupTemplate};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Number of a transport among those of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransportId(u32);

/// The transports of a run, each with the network that it is resolved against.
#[derive(Clone, Debug)]
pub(crate) struct FlowTransports {
    all: Vec<(Network, Time, Transport)>,
    numbers: FxHashMap<PairKey, TransportId>,
    pairs: UsedPairs,
}

/// Bytes on the wire that can hold up each class at a port: those of all flows of classes with priority, each twice, since
/// a packet that is trimmed further on crosses a port again.
fn preceding(setup: &Setup) -> Vec<u64> {
    let mut bytes = vec![0u64; setup.fabric.classes.len().max(1)];
    if setup.fabric.scheduling != Scheduling::Strict || bytes.len() == 1 {
        return bytes;
    }
    let (mtu, header) = (setup.transport.mtu(), setup.transport.header());
    let mut add = |class: u8, size: u64, times: u64| {
        let packets = size.div_ceil(mtu).max(1).saturating_mul(2).saturating_mul(times);
        let size = packets.saturating_mul(mtu + header);
        for later in bytes.iter_mut().skip(usize::from(class) + 1) {
            *later = later.saturating_add(size);
        }
    };
    setup.flows.flows.iter().for_each(|flow| add(flow.class, flow.size, 1));
    for template in &setup.flows.templates {
        template.of_ranks().iter().for_each(|flow| add(flow.class, flow.size, u64::from(template.groups())));
    }
    bytes
}

/// Returns the part of a port's rate that a class has while all have packets, as (its weight, all weights).
fn share(setup: &Setup, class: usize) -> (u64, u64) {
    let fabric = &setup.fabric;
    if fabric.scheduling == Scheduling::Strict {
        return (1, 1);
    }
    match fabric.class_weights.get(class) {
        None => (1, fabric.classes.len().max(1) as u64),
        Some(own) => (*own.max(&1), fabric.class_weights.iter().fold(0u64, |sum, weight| sum.saturating_add(*weight))),
    }
}

/// Returns the bytes that `pair` can have in flight, at first all sent at once, before the queue of a port that all its traffic may take
/// overflows: one that is slower than the sender's, but not than the paths together. `None`: any, also in a shared buffer.
fn burst(setup: &Setup, pair: &UsedPair, limits: &Limits) -> Option<u64> {
    if setup.fabric.shared_buffer.0 > 0 {
        return None;
    }
    let packet = setup.transport.mtu() + setup.transport.header();
    // Planes have equal parts of a flow.
    let planes = u64::from(setup.topology.planes);
    let of_port = |rate: Rate| {
        let held = planes * u64::from(limits.least_held(Rate(rate.0 / planes)));
        // One packet is on the wire; while the others arrive, more leave.
        let others = u128::from(held / packet) * u128::from(pair.nic_rate.0) / u128::from(pair.nic_rate.0 - rate.0);
        let burst = (others + 1).saturating_mul(u128::from(packet));
        // Later the path holds a BDP to within a packet, and the queue the rest.
        let later = held.saturating_add(pair.capacity.bytes_in(pair.base_rtt)).saturating_sub(packet);
        later.min(u64::try_from(burst).unwrap_or(u64::MAX))
    };
    let rates = pair
        .rates
        .iter()
        .map(|rates| Rate(planes * rates.0.0))
        .filter(|rate| (pair.capacity..pair.nic_rate).contains(rate));
    rates.map(of_port).min()
}

/// Returns a warning where the window that `setup` sets, sent at once by a lone flow, overflows the queue of a port on its path.
pub fn long_window(setup: &Setup) -> Option<String> {
    if setup.transport.entries().contains(&("window", Auto::<BytesOrBdp>::Auto.write())) {
        return None;
    }
    let (window, _) = setup.transport.window()?;
    let packet = setup.transport.mtu() + setup.transport.header();
    let pairs = UsedPairs::new(setup);
    let marking = setup.marking.chosen(&setup.fabric.marking);
    let limits =
        Limits::new(&setup.fabric, marking, &|rate| pairs.port_bdp(rate), &setup.topology, packet as u32).ok()?;
    let burst =
        |pair: &UsedPair| Some((burst(setup, pair, &limits)?, window.bytes(pair.capacity.bytes_in(pair.base_rtt))));
    let (burst, window) = pairs.list.iter().filter_map(burst).filter(|(burst, window)| window > burst).min()?;
    Some(format!(
        "[transport]: `window`: {window}B of a flow overflow the queue of a port that is slower than its NIC, even if it is alone; \"{burst}B\" do not"
    ))
}

/// Returns a warning where the limit of unacknowledged packets cannot fill the path of a flow that is longer.
pub fn short_range(setup: &Setup) -> Option<String> {
    let range = setup.transport.entries().into_iter().find_map(|entry| match entry {
        ("max_psn_range", Raw::Int(packets)) => u64::try_from(packets).ok(),
        _ => None,
    })?;
    let packet = setup.transport.mtu() + setup.transport.header();
    let of_groups = setup.flows.templates.iter().flat_map(GroupTemplate::of_ranks);
    let longest_flow = setup.flows.flows.iter().chain(of_groups).map(|flow| flow.size).max()?;
    let bdp = UsedPairs::new(setup).list.iter().map(|pair| pair.capacity.bytes_in(pair.base_rtt)).max()?;
    let short = bdp > range.saturating_mul(packet) && longest_flow > range.saturating_mul(setup.transport.mtu());
    short.then(|| {
        format!(
            "[transport]: `max_psn_range`: {range} packets cannot fill a path of {bdp}B (its BDP), which takes {} at least",
            bdp.div_ceil(packet).next_multiple_of(128)
        )
    })
}

/// Returns a warning where the window that `setup` sets cannot fill the path of a flow that is longer; of several such pairs,
/// for the one with the longest path.
pub fn short_window(setup: &Setup) -> Option<String> {
    if setup.transport.entries().contains(&("window", Auto::<BytesOrBdp>::Auto.write())) {
        return None;
    }
    let pairs = UsedPairs::new(setup);
    let of_groups = setup.flows.templates.iter().flat_map(GroupTemplate::of_ranks);
    let longest_flow = setup.flows.flows.iter().chain(of_groups).map(|flow| flow.size).max()?;
    let known = pairs.list.iter();
    let known: BTreeSet<_> =
        known.map(|pair| (pair.capacity.bytes_in(pair.base_rtt), pair.base_rtt, pair.key.own, pair.nic_rate)).collect();
    let short = known.into_iter().rev().find_map(|(bdp, base_rtt, own, nic_rate)| {
        let network = Network { base_rtt, bdp, nic_rate, longest: pairs.longest, ..Network::default() };
        let transport = setup.own_transports.get(&u32::from(own)).unwrap_or(&setup.transport);
        let (window, filling) = Transport::new(transport, &network).short_window(&network)?;
        (longest_flow > window).then_some((bdp, window, filling))
    });
    let (bdp, window, filling) = short?;
    let (per_ack, s) = match setup.transport.packets_per_ack() {
        1 => (String::new(), ""),
        packets => (packets.to_string() + " ", "s"),
    };
    Some(format!(
        "[transport]: `window`: {window}B cannot fill a path of {bdp}B (its BDP) with an acknowledgement per {per_ack}packet{s}; \"{filling}B\" can"
    ))
}

impl FlowTransports {
    /// Resolves the transports for the pairs of `setup`; fails if one cannot work between its hosts.
    pub(crate) fn new(setup: &Setup, pairs: UsedPairs, limits: &Limits) -> Result<Self, String> {
        let preceding = preceding(setup);
        let recorded = setup.fabric.recorded;
        let drain = |healthy: Rate, lowest: Rate| lowest.wire_time(u64::from(limits.held(healthy)));
        let (mut all, mut numbers) = (Vec::new(), FxHashMap::default());
        let mut known: FxHashMap<(u16, Network, Time), TransportId> = FxHashMap::default();
        let transport = |key: PairKey, network: &Network| {
            let own = setup.own_transports.get(&u32::from(key.own));
            Transport::new(own.unwrap_or(&setup.transport), network)
        };
        let mut networks: FxHashMap<PairKey, Network> = FxHashMap::default();
        for pair in &pairs.list {
            let queue_drain = pair.rates.iter().map(|rates| drain(rates.0, rates.1)).max().unwrap_or_default();
            let (own, of_all) = share(setup, pair.class);
            // Among several classes: a turn of the others, and the headers and replies that precede all.
            let turn = pair.slowest.wire_time(setup.transport.mtu() + setup.transport.header());
            let (own, of_all) =
                if of_all > own { (own.saturating_mul(2), of_all.saturating_mul(3)) } else { (own, of_all) };
            let queue_drain = if of_all > own { queue_drain + turn } else { queue_drain };
            let queues = pair.ports + u64::from(setup.topology.planes > 1);
            let wait = u128::from(queue_drain.ps()) * u128::from(queues) * u128::from(of_all) / u128::from(own);
            // Headers of packets trimmed at one port wait for their share of it.
            let headers = |rates: &(Rate, Rate)| {
                limits.trimmed_share.map(|share| share.drain(limits.held_headers(rates.0), rates.1))
            };
            let wait = wait + pair.rates.iter().filter_map(headers).max().unwrap_or(0);
            // And at every port, both ways, the packet that is on the wire.
            let wait = wait + u128::from(turn.ps()) * 2 * u128::from(pair.ports + 1);
            let held_up = pair.slowest.wire_time(preceding[pair.class.min(preceding.len() - 1)]);
            let network = Network {
                base_rtt: pair.base_rtt,
                bdp: pair.capacity.bytes_in(pair.base_rtt),
                longest: pairs.longest,
                queue_drain,
                max_wait: Time::from_ps(u64::try_from(wait).unwrap_or(u64::MAX)).saturating_add(held_up),
                trimming: limits.trimming,
                nic_rate: pair.nic_rate,
                links: if recorded { 0 } else { pair.ports + 1 },
                burst: burst(setup, pair, limits),
                selective: setup.load_balancers.iter().any(|b| b.host.capabilities().reads_selective()),
            };
            networks.insert(pair.key, network);
        }
        // Windows do not depend on timeouts, and limit how many replies a port may have.
        let replies = pairs.replies(setup, |key| transport(key, &networks[&key]).window_packets());
        for pair in &pairs.list {
            let mut network = networks[&pair.key];
            let replies = replies.get(&pair.key).copied().unwrap_or_default();
            network.max_wait = network.max_wait.saturating_add(replies);
            let kind = (pair.key.own, network, pair.shortest_rtt);
            let number = match known.get(&kind) {
                Some(number) => *number,
                None => {
                    let transport = transport(pair.key, &network);
                    transport.check(&network)?;
                    let number = TransportId(all.len() as u32);
                    all.push((network, pair.shortest_rtt, transport));
                    known.insert(kind, number);
                    number
                }
            };
            numbers.insert(pair.key, number);
        }
        if all.is_empty() {
            // There are no flows over the network.
            let network = Network {
                base_rtt: pairs.longest.0,
                bdp: 0,
                longest: pairs.longest,
                queue_drain: Time::ZERO,
                max_wait: Time::ZERO,
                trimming: limits.trimming,
                nic_rate: setup.topology.nic_rate(),
                ..Network::default()
            };
            all.push((network, network.base_rtt, Transport::new(&setup.transport, &network)));
        }
        Ok(FlowTransports { all, numbers, pairs })
    }

    #[inline]
    pub(crate) fn number_of(&self, topology: &Topology, flow: &Flow) -> TransportId {
        self.numbers.get(&self.pairs.key(topology, flow)).copied().unwrap_or(TransportId(0))
    }

    #[inline]
    pub(crate) fn of(&self, number: TransportId) -> &Transport {
        &self.all[number.0 as usize].2
    }

    pub(crate) fn shortest_rtt(&self, number: TransportId) -> Time {
        self.all[number.0 as usize].1
    }

    pub(crate) fn network(&self, number: TransportId) -> &Network {
        &self.all[number.0 as usize].0
    }

    fn each(&self) -> impl Iterator<Item = &Transport> {
        self.all.iter().map(|(.., transport)| transport)
    }

    /// Returns `true` if receivers grant credit to any flow.
    pub(crate) fn has_credit(&self) -> bool {
        self.each().any(|transport| transport.credit_window().is_some())
    }

    /// Returns what does not depend on pair and congestion control.
    pub(crate) fn main(&self) -> &Transport {
        &self.all[0].2
    }

    pub(crate) fn max_timeout(&self) -> Option<Time> {
        self.each().filter_map(Transport::max_timeout).max()
    }

    pub(crate) fn min_timeout(&self) -> Option<Time> {
        self.each().filter_map(Transport::min_timeout).min()
    }

    pub(crate) fn window_packets(&self) -> u64 {
        self.each().map(Transport::window_packets).max().unwrap_or(1)
    }
}
