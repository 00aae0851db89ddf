use crate::{FabricParameters, IdealFct, Setup};
use anabranch_outcome::FlowRow;
use anabranch_topology::{BasePaths, FaultAction, Link, LinkId, NodeId, Pairs, Step, Topology};
use anabranch_units::{Rate, Serialiser, Time};
use anabranch_workload::{Flow, Medium};

/// Ideal times of the flows of a setup: no flow of a simulation takes less, under any load balancer.
///
/// A flow alone has all shortest paths at once, or with guided paths and with new routes after faults any path. Each bound
/// below holds for every assignment of its packets to them, and to planes.
#[derive(Debug)]
pub(crate) struct IdealTimes {
    /// With the best rates that links ever have, where faults raise one above that of the setup.
    raised: Option<Box<Topology>>,
    pairs: Pairs,
    /// Fastest paths of any length, for a full packet and for none.
    any: Option<[BasePaths; 2]>,
    packet: u64,
    wire: Wire,
    planes_are_alike: bool,
}

/// Bytes of a flow on the wire.
#[derive(Clone, Copy, Debug)]
struct Train {
    /// Full packets before the last one.
    full: u64,
    /// Bytes of each of them.
    packet: u64,
    /// Bytes of the last packet.
    last: u64,
}

impl IdealTimes {
    pub(crate) fn new(setup: &Setup) -> Self {
        let raised = raised(setup);
        let topology = raised.as_deref().unwrap_or(&setup.topology);
        let packet = setup.transport.mtu() + setup.transport.header();
        let pairs = Pairs::new(topology, packet);
        let reroutes = setup.faults.iter().any(|fault| matches!(fault.action, FaultAction::Down));
        let any = topology.guidance.is_some() || reroutes && !pairs.are_alike();
        let any = any.then(|| [BasePaths::fastest(packet), BasePaths::fastest(0)]);
        let planes_are_alike = topology.planes_are_alike();
        IdealTimes { raised, pairs, any, packet, wire: Wire { rounds: setup.fabric.recorded }, planes_are_alike }
    }

    /// Returns `(ideal_rx, ideal_ack)` of `flow` alone, with an unlimited window. In the `conweave-ns3` profiles `ideal_ack`
    /// follows that model's formula (specification 17.7): base round trip and all bytes at the NIC's rate, one packet too
    /// many. With `transmission` both are the bytes of all packets at the rate of all paths. Over scale-up they are the bytes
    /// at the rate and the latency, and the latency back.
    pub(crate) fn of(&mut self, setup: &Setup, flow: &Flow) -> (Time, Time) {
        if let (Medium::ScaleUp, Some(servers)) = (flow.medium, &setup.flows.servers) {
            let rx = servers.scale_up_time(flow.size);
            return (rx, rx + servers.scale_up_latency);
        }
        let (mtu, header, ack) = (setup.transport.mtu(), setup.transport.header(), setup.transport.ack_size());
        let full = flow.size.div_ceil(mtu).max(1) - 1;
        let train = Train { full, packet: mtu + header, last: flow.size - full * mtu + header };
        let bytes = full * train.packet + train.last;
        let raised = self.raised.take();
        let topology = raised.as_deref().unwrap_or(&setup.topology);
        let there = self.between(topology, flow.src, flow.dst);
        let times = match setup.fabric.ideal_fct {
            IdealFct::Transmission => {
                let rate = there.iter().map(|plane| plane.slowest(topology).0).sum();
                [Rate(rate).wire_time(bytes); 2]
            }
            IdealFct::RttAndBytes => {
                let rate = topology.host_rates(flow.src).0;
                let path: Vec<LinkId> = there[0].links().collect();
                [self.train(topology, &there, train), topology.rtt(&path, mtu, 0) + rate.wire_time(bytes)]
            }
            IdealFct::LoneFlow => {
                let rx = self.train(topology, &there, train);
                let back = self.between(topology, flow.dst, flow.src);
                let alone = Train { full: 0, packet: self.packet, last: ack };
                [rx, rx + self.train(topology, &back, alone)]
            }
        };
        self.raised = raised;
        times.into()
    }

    /// Returns the paths of a flow in each plane.
    fn between(&mut self, topology: &Topology, src: u32, dst: u32) -> Vec<Between> {
        (0..topology.planes).map(|plane| self.between_in(topology, src, dst, plane)).collect()
    }

    /// Returns the earliest arrival of the last byte of a train over all planes.
    fn train(&self, topology: &Topology, planes: &[Between], train: Train) -> Time {
        let (wire, count) = (self.wire, planes.len() as u64);
        if count == 1 {
            return planes[0].train(topology, wire, train);
        }
        if self.planes_are_alike {
            // One plane has a part of the packets, rounded up: the last one among them only if all others have fewer.
            let (full, alone) = (train.full / count, train.full.is_multiple_of(count));
            let last = if alone { train.last } else { train.packet };
            return planes[0].train(topology, wire, Train { full, last, ..train });
        }
        // The least time until which the planes together pass as many packets, of which each may have the last one.
        let passes = |plane: &Between, until: Time| {
            let fits = |full: u64| plane.train(topology, wire, Train { full, ..train }) <= until;
            let (mut least, mut most) = (0, train.full + 1);
            while least < most {
                let half = (least + most).div_ceil(2);
                if fits(half - 1) { least = half } else { most = half - 1 }
            }
            least
        };
        let of_one = planes.iter().map(|plane| plane.train(topology, wire, train).ps());
        let (mut least, mut most) = (0, of_one.min().unwrap_or(0));
        while least < most {
            let half = least + (most - least) / 2;
            let passed: u64 = planes.iter().map(|plane| passes(plane, Time::from_ps(half))).sum();
            if passed > train.full { most = half } else { least = half + 1 }
        }
        Time::from_ps(least)
    }

    fn between_in(&mut self, topology: &Topology, src: u32, dst: u32, plane: u32) -> Between {
        let (up, down) = (topology.host_uplink_in(src, plane), topology.host_uplink_in(dst, plane).reverse());
        let (from, to) = (topology.edge_switch_in(src, plane), topology.edge_switch_in(dst, plane));
        let rounds = self.wire.rounds;
        let Some([full, empty]) = self.any.as_mut().filter(|_| from != to) else {
            let is_rounded = rounds && !self.pairs.are_alike();
            let pair = self.pairs.between(topology, src, dst, plane);
            let (path, steps) = (pair.path.into(), pair.steps.into());
            return Between { up, path, down, is_only: pair.is_only, is_rounded, delay: pair.delay, steps };
        };
        let inner = |path: &[LinkId]| path[1..path.len() - 1].into();
        let path: Box<[LinkId]> = inner(full.path_in(topology, src, dst, plane));
        let nearest: Box<[LinkId]> = inner(empty.path_in(topology, src, dst, plane));
        let delay = nearest.iter().map(|link| delay(topology, *link)).sum();
        // Packets of any path leave the one switch and enter the other.
        let sum = |links: &mut dyn Iterator<Item = LinkId>| links.map(|link| topology.link(link).rate.0).sum::<u64>();
        let out =
            || topology.out_links(from).iter().copied().filter(|link| topology.link(*link).to.0 >= topology.hosts);
        let into = topology.out_links(to).iter().filter(|link| topology.link(**link).to.0 >= topology.hosts);
        let rate = Rate(sum(&mut out()).min(sum(&mut into.map(|link| link.reverse()))));
        Between { up, path, down, is_only: false, is_rounded: rounds, delay, steps: [Step { delay, rate }].into() }
    }
}

/// Paths of a flow in a plane.
struct Between {
    up: LinkId,
    /// Fastest path between the edge switches, for full packets.
    path: Box<[LinkId]>,
    down: LinkId,
    is_only: bool,
    /// Wire times of whole nanoseconds may be shorter over another path than the fastest one.
    is_rounded: bool,
    /// Shortest delay between the edge switches.
    delay: Time,
    /// As in [`anabranch_topology::Pair::steps`].
    steps: Box<[Step]>,
}

impl Between {
    fn links(&self) -> impl Iterator<Item = LinkId> {
        [self.up].into_iter().chain(self.path.iter().copied()).chain([self.down])
    }

    fn hosts(&self, topology: &Topology) -> Rate {
        topology.link(self.up).rate.min(topology.link(self.down).rate)
    }

    /// Returns `true` if a train takes the fastest path as if it were the only one: no link of it is slower than both hosts.
    fn is_exact(&self, topology: &Topology) -> bool {
        let hosts = self.hosts(topology);
        let delays = self.path.iter().map(|link| delay(topology, *link)).sum::<Time>();
        self.is_only || delays == self.delay && self.path.iter().all(|link| topology.link(*link).rate >= hosts)
    }

    /// Returns the largest rate over all paths.
    fn slowest(&self, topology: &Topology) -> Rate {
        if self.is_only {
            return self.links().map(|link| topology.link(link).rate).min().unwrap_or_default();
        }
        let hosts = self.hosts(topology);
        if self.steps.is_empty() { hosts } else { hosts.min(Rate(self.steps.iter().map(|step| step.rate.0).sum())) }
    }

    /// Returns the least time of a packet between the edge switches.
    ///
    /// It is concave in the bytes, since the fastest path is: a straight line between those of a full packet and of none is
    /// never above it, and equal where one path is fastest for all sizes.
    fn latency(&self, topology: &Topology, wire: Wire, packet: u64, bytes: u64) -> Time {
        if self.is_rounded {
            return self.delay;
        }
        let along = |bytes: u64| {
            self.path
                .iter()
                .map(|link| wire.time(topology.link(*link).rate, bytes, 1) + delay(topology, *link))
                .sum::<Time>()
        };
        if self.path.iter().map(|link| delay(topology, *link)).sum::<Time>() == self.delay {
            return along(bytes);
        }
        let more = u128::from((along(packet) - self.delay).ps());
        self.delay + Time::from_ps((more * u128::from(bytes) / u128::from(packet)) as u64)
    }

    /// Returns the earliest arrival of the last byte of a train that starts at time 0.
    fn train(&self, topology: &Topology, wire: Wire, train: Train) -> Time {
        if self.is_only {
            let path: Vec<LinkId> = self.links().collect();
            let time = |rate: Rate, bytes: u64, count: u64| wire.time(rate, bytes, count);
            return topology.train_arrival_with(&path, train.full, train.packet, train.last, time);
        }
        let Train { full, packet, last } = train;
        let [up, down] = [self.up, self.down].map(|link| topology.link(link).rate);
        let (behind_up, behind_down) = (delay(topology, self.up), topology.link(self.down).delay);
        let latency = |bytes: u64| behind_up + self.latency(topology, wire, packet, bytes);
        let (others, rest) = (wire.time(up, packet, full.min(1)), full.saturating_sub(1));
        // The last packet arrives at the last link: alone, it leaves that after its wire time.
        let last_here = others + wire.time(up, packet, rest) + wire.time(up, last, 1) + latency(last);
        let last_time = wire.time(down, last, 1);
        let mut end = last_here + last_time;
        if full > 0 {
            // Full packets arrive there from `first` on, the last of them at `final_full`. From any time on, the link needs
            // the wire time of all packets that come no earlier. The short one may have overtaken them.
            let first = others + latency(packet);
            let final_full = first + wire.time(up, packet, rest);
            let unless_before = |at: Time| if last_here >= at { last_time } else { Time::ZERO };
            let all_full = wire.time(down, packet, 1) + wire.time(down, packet, rest);
            end = end.max(first + all_full + unless_before(first));
            end = end.max(final_full + wire.time(down, packet, 1) + unless_before(final_full));
            end = end.max(first.min(last_here) + all_full + last_time);
        }
        if !self.steps.is_empty() && !wire.rounds {
            end = end.max(self.over_time(topology, train));
        }
        end + behind_down
    }

    /// Returns the earliest end at the last link by the flow over time ([`Between::steps`]).
    ///
    /// With all bytes at both hosts' rates it needs no wire times. Without the hosts it begins with the first packet behind
    /// the first link, and a packet is still to cross the last one.
    fn over_time(&self, topology: &Topology, Train { full, packet, last }: Train) -> Time {
        let hosts = self.hosts(topology);
        let wire = |link: LinkId, bytes: u64| Serialiser::new(topology.link(link).rate).serialise(bytes);
        let bits = u128::from(full * packet + last) * 8_000_000_000_000;
        let is_narrow = self.slowest(topology) < hosts;
        let ends = if is_narrow {
            wire(self.up, if full > 0 { packet } else { last }) + wire(self.down, last)
        } else {
            Time::ZERO
        };
        // Over the first steps alone: the sum of rate * (T - delay) is largest over those that are shorter than T.
        let (mut rate, mut before, mut least) = (0u128, 0u128, u128::MAX);
        for step in &*self.steps {
            let own = u128::from(step.rate.0).min(u128::from(hosts.0) - rate.min(u128::from(hosts.0)));
            rate += own;
            before += own * u128::from(step.delay.ps());
            least = least.min((bits + before) / rate.max(1));
        }
        // A port may round a picosecond down.
        delay(topology, self.up) + ends + Time::from_ps((least as u64).saturating_sub(1))
    }
}

/// Returns a sentence without its full stop where the ideal times of `setup` are not exact, with the first such flow; `None` if
/// all are.
pub fn ideal_note(setup: &Setup) -> Option<String> {
    if setup.fabric.ideal_fct == IdealFct::RttAndBytes {
        let model = "Ideal times are the recorded model's formula (`ideal_fct = \"rtt-and-bytes\"`), not times alone on the network";
        return Some(format!("{model}: it is no bound, and a slowdown can be below 1"));
    }
    let mut ideals = IdealTimes::new(setup);
    let raised = ideals.raised.take();
    let topology = raised.as_deref().unwrap_or(&setup.topology);
    let (of_hosts, others): (Vec<&Link>, Vec<&Link>) =
        topology.links.iter().partition(|link| link.from.0.min(link.to.0) < topology.hosts);
    let rates = |links: &[&Link]| links.iter().map(|link| link.rate).collect::<Vec<_>>();
    let is_alike = ideals.any.is_none() && ideals.pairs.are_alike() && ideals.planes_are_alike;
    if is_alike && rates(&others).into_iter().min() >= rates(&of_hosts).into_iter().max() {
        return None;
    }
    let mut over_network = setup.flows.all_flows().filter(|flow| flow.medium == Medium::Network);
    let first = over_network.find(|flow| {
        !ideals.planes_are_alike
            || !ideals.between(topology, flow.src, flow.dst).iter().all(|plane| plane.is_exact(topology))
    })?;
    let [src, dst] = [first.src, first.dst].map(|host| &topology.node(NodeId(host)).name);
    Some(format!(
        "Ideal times are lower bounds, so that slowdowns may be too high, where the paths of a flow differ or are slower than its hosts' links (first: {src} to {dst})"
    ))
}

/// Returns a description of a simulated flow that took less than its ideal time, which none can; `None` if it did not.
///
/// Skipped spans make times estimates, and the recorded model's formula is no bound.
pub fn below_ideal(setup: &Setup, flow: &FlowRow) -> Option<String> {
    let FabricParameters { ideal_fct, recorded, .. } = setup.fabric;
    if setup.limits.skip || ideal_fct == IdealFct::Transmission && recorded {
        return None;
    }
    let ack = flow.fct_ack.filter(|_| ideal_fct != IdealFct::RttAndBytes);
    let (end, fct, ideal) = [("received", flow.fct_rx, flow.ideal_rx), ("acknowledged", ack, flow.ideal_ack)]
        .into_iter()
        .find_map(|(end, fct, ideal)| Some((end, fct.filter(|fct| *fct < ideal)?, ideal)))?;
    let name = |host: u32| &setup.topology.node(NodeId(host)).name;
    let FlowRow { flow_id, size_bytes, src, dst, .. } = flow;
    let (src, dst, seed) = (name(*src), name(*dst), setup.seed);
    Some(format!(
        "flow {flow_id} of {size_bytes} B from {src} to {dst} was {end} in {} ps, less than its ideal {} ps (seed {seed}): \
         the ideal or the simulator is wrong",
        fct.ps(),
        ideal.ps(),
    ))
}

/// Wire times as the setup counts them.
#[derive(Clone, Copy, Debug)]
struct Wire {
    /// Truncates them to whole nanoseconds.
    rounds: bool,
}

impl Wire {
    /// Returns the time of `count` packets of `bytes` back to back.
    fn time(self, rate: Rate, bytes: u64, count: u64) -> Time {
        if self.rounds { rate.wire_time_in_ns(bytes) * count } else { Serialiser::new(rate).serialise(bytes * count) }
    }
}

/// Returns the delay of a link to a switch, with the latency of that switch.
fn delay(topology: &Topology, link: LinkId) -> Time {
    topology.link(link).delay + topology.switch_latency
}

/// Returns the topology with the best rates that links ever have; `None` if no fault raises one.
fn raised(setup: &Setup) -> Option<Box<Topology>> {
    let topology = &setup.topology;
    let mut raised = None;
    for fault in &setup.faults {
        let FaultAction::Degrade(rate) = fault.action else { continue };
        for link in fault.links.iter().filter(|link| topology.link(**link).rate < rate) {
            let own: &mut Box<Topology> = raised.get_or_insert_with(|| Box::new(topology.clone()));
            let link = &mut own.links[link.0 as usize];
            link.rate = link.rate.max(rate);
        }
    }
    raised
}
