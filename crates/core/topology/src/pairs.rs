use crate::{
    LinkId, NodeId, Routes, Topology,
    graph::Graph,
    paths::{are_alike, follow},
};
use anabranch_units::{Rate, Serialiser, Time};
use rustc_hash::FxHashMap;
use std::{
    cmp::{Ordering, Reverse},
    collections::VecDeque,
    sync::Arc,
};

/// Rate that a delay makes available, beyond that of shorter delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Propagation and switch latencies from one edge switch to the other.
    pub delay: Time,
    /// Rate that is added.
    pub rate: Rate,
}

/// The shortest paths between two edge switches, all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    /// Links of the fastest one, for packets of the size of [`Pairs::new`].
    pub path: &'a [LinkId],
    /// `true` if there is no other.
    pub is_only: bool,
    /// Shortest delay of a path, wire times excluded.
    pub delay: Time,
    /// Maximum flow over time (Ford and Fulkerson 1958): until a time T, at most the sum of `rate * (T - delay)` passes.
    /// Delays ascend; the sum of the rates ends at that of the fastest host. Empty if no path is slower than both hosts.
    pub steps: &'a [Step],
}

/// The shortest paths of many pairs of hosts on the intact graph, computed once per pair of edge switches.
///
/// No result depends on the names or the order of switches and links.
#[derive(Clone, Debug)]
pub struct Pairs {
    packet: u64,
    routes: Option<Arc<Routes>>,
    /// All shortest paths of a pair have the same links, but for their names.
    are_alike: bool,
    /// Rate of the fastest link of a host, in either direction.
    fastest_host: Rate,
    dag: Dag,
    path: Vec<LinkId>,
    known: FxHashMap<(NodeId, NodeId), Known>,
    /// Shortest and longest round trips between edge switches, for the bytes (data, ACK) of the last request.
    round_trips: FxHashMap<(NodeId, NodeId), (Time, Time)>,
    sizes: (u64, u64),
}

#[derive(Clone, Debug)]
struct Known {
    path: Box<[LinkId]>,
    is_only: bool,
    delay: Time,
    steps: Box<[Step]>,
}

/// Links of the shortest paths between two switches, each after all links into its switch.
#[derive(Clone, Debug, Default)]
struct Dag {
    /// Place of each switch in `switches`; `u32::MAX`: none.
    place: Vec<u32>,
    switches: Vec<u32>,
    /// Links with the places of their switches.
    links: Vec<(u32, u32, LinkId)>,
    /// Place of the last switch.
    to: usize,
}

impl Dag {
    fn between(&mut self, graph: &Graph, routes: &Routes, from: NodeId, to: NodeId) {
        self.place.resize(graph.switches() as usize, u32::MAX);
        self.switches.drain(..).for_each(|switch| self.place[switch as usize] = u32::MAX);
        self.links.clear();
        let (from, to) = (from.0 - graph.hosts, to.0 - graph.hosts);
        self.place[from as usize] = 0;
        self.switches.push(from);
        let mut at = 0;
        while let Some(&switch) = self.switches.get(at).filter(|switch| **switch != to) {
            for &link in routes.towards(switch, to).links {
                let next = graph.link(link).to.0 - graph.hosts;
                if self.place[next as usize] == u32::MAX {
                    self.place[next as usize] = self.switches.len() as u32;
                    self.switches.push(next);
                }
                self.links.push((at as u32, self.place[next as usize], link));
            }
            at += 1;
        }
        self.to = at;
    }

    /// Returns the least sum of `cost` over a path; of several paths, that whose slowest link is fastest.
    fn least(&self, graph: &Graph, cost: impl Fn(LinkId) -> Time) -> (Time, Box<[LinkId]>) {
        let mut best = vec![(Time::from_ps(u64::MAX), Reverse(Rate(0)), usize::MAX); self.switches.len()];
        best[0] = (Time::ZERO, Reverse(Rate(u64::MAX)), usize::MAX);
        for (number, &(from, to, link)) in self.links.iter().enumerate() {
            let (so_far, Reverse(slowest), _) = best[from as usize];
            let found = (so_far.saturating_add(cost(link)), Reverse(slowest.min(graph.link(link).rate)), number);
            let known = &mut best[to as usize];
            if found.0.cmp(&known.0).then(found.1.cmp(&known.1)) == Ordering::Less {
                *known = found;
            }
        }
        let (least, _, mut last) = best[self.to];
        let mut path = vec![];
        while let Some(&(from, _, link)) = self.links.get(last) {
            path.push(link);
            last = best[from as usize].2;
        }
        path.reverse();
        (least, path.into())
    }

    /// Returns the longest path, where each link counts with both directions of its cable.
    fn longest(&self, time: impl Fn(LinkId) -> Time) -> Time {
        let mut longest = vec![Time::ZERO; self.switches.len()];
        for &(from, to, link) in &self.links {
            longest[to as usize] = longest[to as usize].max(longest[from as usize] + time(link));
        }
        longest[self.to]
    }

    /// Returns the steps of [`Pair::steps`] by successive shortest paths, up to the rate `limit`.
    fn steps(&self, graph: &Graph, limit: Rate) -> Box<[Step]> {
        let mut arcs: Vec<Residual> = Vec::with_capacity(2 * self.links.len());
        let mut leaving = vec![vec![]; self.switches.len()];
        for &(from, to, link) in &self.links {
            let delay = (graph.link(link).delay + graph.switch_latency).ps() as i64;
            leaving[from as usize].push(arcs.len());
            arcs.push(Residual { to, left: graph.link(link).rate.0, delay });
            leaving[to as usize].push(arcs.len());
            arcs.push(Residual { to: from, left: 0, delay: -delay });
        }
        let (mut steps, mut left): (Vec<Step>, u64) = (vec![], limit.0);
        while left > 0 {
            let mut nearest = vec![(i64::MAX, usize::MAX); self.switches.len()];
            nearest[0].0 = 0;
            let mut queue = VecDeque::from([0usize]);
            while let Some(at) = queue.pop_front() {
                for &arc in leaving[at].iter().filter(|arc| arcs[**arc].left > 0) {
                    let (to, total) = (arcs[arc].to as usize, nearest[at].0 + arcs[arc].delay);
                    if total < nearest[to].0 {
                        nearest[to] = (total, arc);
                        if !queue.contains(&to) {
                            queue.push_back(to);
                        }
                    }
                }
            }
            let back = |at: usize| (at != 0).then(|| arcs[nearest[at].1 ^ 1].to as usize);
            let along = || std::iter::successors(Some(self.to), |at| back(*at)).take_while(|at| *at != 0);
            let (delay, last) = nearest[self.to];
            if last == usize::MAX {
                break;
            }
            let rate = along().map(|at| arcs[nearest[at].1].left).min().unwrap_or(0).min(left);
            let used: Vec<usize> = along().map(|at| nearest[at].1).collect();
            for arc in used {
                arcs[arc].left -= rate;
                arcs[arc ^ 1].left += rate;
            }
            left -= rate;
            let delay = Time::from_ps(delay as u64);
            match steps.last_mut().filter(|step| step.delay == delay) {
                Some(step) => step.rate.0 += rate,
                None => steps.push(Step { delay, rate: Rate(rate) }),
            }
        }
        steps.into()
    }
}

/// A link of a residual graph, or its reverse.
struct Residual {
    to: u32,
    left: u64,
    delay: i64,
}

impl Pairs {
    /// Creates pairs of `topology`, which must not change, whose full packets have `packet` bytes on the wire.
    pub fn new(topology: &Topology, packet: u64) -> Self {
        let ups = (0..topology.hosts).flat_map(|host| topology.out_links(NodeId(host)));
        let hosts = ups.flat_map(|up| [*up, up.reverse()]);
        Pairs {
            packet,
            routes: None,
            are_alike: are_alike(topology),
            fastest_host: hosts.map(|link| topology.link(link).rate).max().unwrap_or_default(),
            dag: Dag::default(),
            path: vec![],
            known: FxHashMap::default(),
            round_trips: FxHashMap::default(),
            sizes: (0, 0),
        }
    }

    /// Returns `true` if all shortest paths of each pair have links of the same rates and delays.
    pub fn are_alike(&self) -> bool {
        self.are_alike
    }

    /// Returns the paths between the edge switches of two hosts in a plane.
    pub fn between(&mut self, topology: &Topology, src: u32, dst: u32, plane: u32) -> Pair<'_> {
        let hosts = hosts_rate(topology, src, dst, plane);
        let is_only = self.first(topology, src, dst, plane);
        let is_fast = || self.path.iter().all(|link| topology.link(*link).rate >= hosts);
        if is_only || self.are_alike && is_fast() {
            let delay = self.path.iter().map(|link| topology.link(*link).delay + topology.switch_latency).sum();
            return Pair { path: &self.path, is_only, delay, steps: &[] };
        }
        let Known { path, is_only, delay, steps } = self.known(topology, src, dst, plane);
        Pair { path, is_only: *is_only, delay: *delay, steps }
    }

    /// Returns the largest rate from one host to another over all shortest paths, the sum over all planes: that of both host
    /// links, and of the maximum flow between their edge switches.
    pub fn capacity(&mut self, topology: &Topology, src: u32, dst: u32) -> Rate {
        Rate((0..topology.planes).map(|plane| self.capacity_in(topology, src, dst, plane).0).sum())
    }

    fn capacity_in(&mut self, topology: &Topology, src: u32, dst: u32, plane: u32) -> Rate {
        let hosts = hosts_rate(topology, src, dst, plane);
        let pair = self.between(topology, src, dst, plane);
        if pair.is_only {
            return pair.path.iter().map(|link| topology.link(*link).rate).fold(hosts, Rate::min);
        }
        if pair.steps.is_empty() { hosts } else { hosts.min(Rate(pair.steps.iter().map(|step| step.rate.0).sum())) }
    }

    /// Returns the shortest and the longest round trip of a packet of `data` bytes and its ACK of `ack` bytes over a
    /// shortest path and back over its cables, host links included.
    pub fn round_trips(&mut self, topology: &Topology, src: u32, dst: u32, data: u64, ack: u64) -> (Time, Time) {
        let of_planes = (0..topology.planes).map(|plane| self.round_trips_in(topology, src, dst, plane, (data, ack)));
        of_planes.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default()
    }

    fn round_trips_in(
        &mut self,
        topology: &Topology,
        src: u32,
        dst: u32,
        plane: u32,
        (data, ack): (u64, u64),
    ) -> (Time, Time) {
        let round = |link: LinkId| topology.one_way(&[link], data) + topology.one_way(&[link.reverse()], ack);
        let hosts = round(topology.host_uplink_in(src, plane)) + round(topology.host_uplink_in(dst, plane).reverse());
        if self.first(topology, src, dst, plane) || self.are_alike {
            let only = hosts + self.path.iter().map(|link| round(*link)).sum();
            return (only, only);
        }
        if self.sizes != (data, ack) {
            self.round_trips.clear();
            self.sizes = (data, ack);
        }
        let (from, to) = (topology.edge_switch_in(src, plane), topology.edge_switch_in(dst, plane));
        let Pairs { round_trips, dag, routes, .. } = self;
        let between = round_trips.entry((from, to)).or_insert_with(|| {
            dag.between(topology, routes.get_or_insert_with(|| topology.routes()), from, to);
            (dag.least(topology, round).0, dag.longest(round))
        });
        (hosts + between.0, hosts + between.1)
    }

    /// Returns the links of all shortest paths between the edge switches of two hosts in a plane; where the paths are alike
    /// and not `all` are requested, those of one path.
    pub fn links(
        &mut self,
        topology: &Topology,
        src: u32,
        dst: u32,
        plane: u32,
        all: bool,
    ) -> impl Iterator<Item = LinkId> {
        let one = self.first(topology, src, dst, plane) || self.are_alike && !all;
        if !one {
            let (from, to) = (topology.edge_switch_in(src, plane), topology.edge_switch_in(dst, plane));
            let routes = self.routes.get_or_insert_with(|| topology.routes());
            self.dag.between(topology, routes, from, to);
        }
        let dag = if one { &[] } else { &self.dag.links[..] };
        let path = if one { &self.path[..] } else { &[] };
        path.iter().copied().chain(dag.iter().map(|(.., link)| *link))
    }

    /// Returns the number of links of a shortest path between the edge switches of two hosts.
    pub fn hops(&mut self, topology: &Topology, src: u32, dst: u32) -> u64 {
        self.first(topology, src, dst, 0);
        self.path.len() as u64
    }

    /// Puts the first shortest path between the edge switches into `path`; returns `true` if there is no other.
    fn first(&mut self, topology: &Topology, src: u32, dst: u32, plane: u32) -> bool {
        let (from, to) = (topology.edge_switch_in(src, plane), topology.edge_switch_in(dst, plane));
        self.path.clear();
        if from == to {
            return true;
        }
        let routes = self.routes.get_or_insert_with(|| topology.routes());
        let mut is_only = true;
        let next = |at: NodeId, to: NodeId| {
            let group = routes.group(at.0 - topology.hosts, to.0 - topology.hosts);
            is_only &= group.len == 1;
            routes.link_of(group, 0)
        };
        follow(topology, next, from, to, &mut self.path);
        is_only
    }

    fn known(&mut self, topology: &Topology, src: u32, dst: u32, plane: u32) -> &Known {
        let (from, to) = (topology.edge_switch_in(src, plane), topology.edge_switch_in(dst, plane));
        let Pairs { known, dag, routes, packet, fastest_host, .. } = self;
        known.entry((from, to)).or_insert_with(|| {
            dag.between(topology, routes.get_or_insert_with(|| topology.routes()), from, to);
            let delay = |link: LinkId| topology.link(link).delay + topology.switch_latency;
            let wire = |link: LinkId| Serialiser::new(topology.link(link).rate).serialise(*packet);
            let (_, path) = dag.least(topology, |link| delay(link) + wire(link));
            Known {
                path,
                is_only: dag.links.len() + 1 == dag.switches.len(),
                delay: dag.least(topology, delay).0,
                steps: dag.steps(topology, *fastest_host),
            }
        })
    }
}

/// Returns the rate of the slower of the links of two hosts in a plane.
fn hosts_rate(graph: &Graph, src: u32, dst: u32, plane: u32) -> Rate {
    let (up, down) = (graph.host_uplink_in(src, plane), graph.host_uplink_in(dst, plane).reverse());
    graph.link(up).rate.min(graph.link(down).rate)
}
