use crate::{
    Link, LinkClass, LinkId, NodeId, Routes,
    graph::Graph,
    routes::distances,
    switch_graph::{Search, SwitchGraph},
};
use anabranch_units::{Rate, Serialiser, Time};
use std::{cmp::Reverse, collections::BinaryHeap};

/// Wire bytes of the packet by which paths are compared: 4 KiB with headers (specification 9.4).
const FULL_PACKET: u64 = 4160;

pub(crate) fn switch_distance(graph: &Graph, from: NodeId, to: NodeId) -> u32 {
    if from == to {
        return 0;
    }
    if !graph.uplinks.is_empty() {
        return tree_distance(graph, from, to);
    }
    let mut distance = vec![u32::MAX; graph.switches() as usize];
    distances(graph, to.0 - graph.hosts, &|_| true, &mut distance, &mut Vec::new());
    distance[(from.0 - graph.hosts) as usize]
}

/// Counts levels of a breadth-first search until one contains `to`.
fn tree_distance(graph: &Graph, from: NodeId, to: NodeId) -> u32 {
    let mut level = vec![from];
    let mut seen = vec![false; graph.nodes.len()];
    seen[from.0 as usize] = true;
    let mut hops = 0;
    while !level.is_empty() {
        hops += 1;
        let mut next = Vec::new();
        for node in level {
            for link in graph.out_links(node) {
                let other = graph.link(*link).to;
                if other == to {
                    return hops;
                }
                if other.0 >= graph.hosts && !std::mem::replace(&mut seen[other.0 as usize], true) {
                    next.push(other);
                }
            }
        }
        level = next;
    }
    u32::MAX
}

pub(crate) fn base_path(graph: &Graph, src: u32, dst: u32) -> Vec<LinkId> {
    let mut path = Vec::new();
    let ports = base_ports(graph, graph.edge_switch(dst), &base_costs(graph, None), graph.guidance.is_some());
    follow_hosts(graph, along(graph, &ports), (src, dst), 0, &mut path);
    path
}

pub(crate) fn along<'a>(graph: &'a Graph, ports: &'a [u16]) -> impl Fn(NodeId, NodeId) -> LinkId + 'a {
    |at, _| graph.out_links(at)[usize::from(ports[(at.0 - graph.hosts) as usize])]
}

/// Appends the path between two hosts in a plane, as [`follow`].
pub(crate) fn follow_hosts(
    graph: &Graph,
    next: impl FnMut(NodeId, NodeId) -> LinkId,
    (src, dst): (u32, u32),
    plane: u32,
    path: &mut Vec<LinkId>,
) {
    path.push(graph.host_uplink_in(src, plane));
    follow(graph, next, graph.edge_switch_in(src, plane), graph.edge_switch_in(dst, plane), path);
    path.push(graph.host_uplink_in(dst, plane).reverse());
}

/// Appends the path between two switches on which `next` returns the link at a switch towards the second one.
pub(crate) fn follow(
    graph: &Graph,
    mut next: impl FnMut(NodeId, NodeId) -> LinkId,
    mut at: NodeId,
    to: NodeId,
    path: &mut Vec<LinkId>,
) {
    while at != to {
        let link = next(at, to);
        path.push(link);
        at = graph.link(link).to;
    }
}

/// Returns the cost of each link: its time for a packet of `packet` bytes. Without them that of a full packet in topologies
/// with guided paths, else one hop.
pub(crate) fn base_costs(graph: &Graph, packet: Option<u64>) -> Box<[u64]> {
    let time = |link| match packet {
        Some(bytes) => {
            let of = graph.link(link);
            let time = of.delay + graph.switch_latency + Serialiser::new(of.rate).serialise(bytes);
            // Of equally fast paths that of fewest hops, so that links without delay form no circle.
            (time.ps() << 10) + 1
        }
        None if graph.guidance.is_some() => graph.one_way(&[link], FULL_PACKET).ps(),
        None => 1,
    };
    graph.link_ids().map(time).collect()
}

/// Returns, per switch, the index in [`Graph::out_links`] of its first link on a base path to `to`. `are_times`: costs differ
/// from link to link.
pub(crate) fn base_ports(graph: &Graph, to: NodeId, costs: &[u64], are_times: bool) -> Box<[u16]> {
    let distance = if are_times {
        min_costs(graph, to, costs)
    } else {
        let mut hops = vec![u32::MAX; graph.switches() as usize];
        distances(graph, to.0 - graph.hosts, &|_| true, &mut hops, &mut Vec::new());
        hops.into_iter().map(u64::from).collect()
    };
    let port = |switch: u32| {
        let on_the_way = |link: &LinkId| {
            let next = graph.link(*link).to.0.checked_sub(graph.hosts);
            next.is_some_and(|next| distance[next as usize] + costs[link.0 as usize] == distance[switch as usize])
        };
        let found = graph.out_links(NodeId(graph.hosts + switch)).iter().position(on_the_way);
        found.map_or(u16::MAX, |port| port as u16)
    };
    (0..graph.switches()).map(port).collect()
}

fn min_costs(graph: &Graph, to: NodeId, costs: &[u64]) -> Vec<u64> {
    let mut least = vec![u64::MAX; graph.switches() as usize];
    let mut queue = BinaryHeap::from([Reverse((0, to.0 - graph.hosts))]);
    least[(to.0 - graph.hosts) as usize] = 0;
    while let Some(Reverse((so_far, switch))) = queue.pop() {
        if so_far > least[switch as usize] {
            continue;
        }
        for link in graph.out_links(NodeId(graph.hosts + switch)) {
            let Some(other) = graph.link(*link).to.0.checked_sub(graph.hosts) else { continue };
            // The search runs backwards.
            let total = so_far + costs[link.reverse().0 as usize];
            if total < least[other as usize] {
                least[other as usize] = total;
                queue.push(Reverse((total, other)));
            }
        }
    }
    least
}

/// Returns the largest round trip of two hosts over any of their shortest paths, without guided paths.
pub(crate) fn max_base_rtt(graph: &Graph, routes: &Routes, data: u64, ack: u64) -> Time {
    // The round trip is a sum over links: the slowest hosts of a switch, as source and as destination, represent all.
    let out = |up: LinkId| graph.one_way(&[up], data) + graph.one_way(&[up.reverse()], ack);
    let mut sources: Vec<Slowest> = vec![Slowest::default(); graph.switches() as usize];
    let mut destinations = sources.clone();
    for up in (0..graph.hosts).flat_map(|host| graph.out_links(NodeId(host))).copied() {
        let Link { from: NodeId(host), to: edge, .. } = *graph.link(up);
        let edge = (edge.0 - graph.hosts) as usize;
        sources[edge].add(host, out(up));
        destinations[edge].add(host, out(up.reverse()));
    }
    let rounds: Vec<Time> = graph.link_ids().map(out).collect();
    if let Some((host, between)) = alike(graph, &rounds) {
        return host + between * u64::from(routes.farthest());
    }
    let per_plane = graph.plane_switches();
    let edges: Vec<u32> = (0..graph.switches()).filter(|switch| routes.column(*switch).is_some()).collect();
    let are_alike = are_alike(graph);
    let mut between = vec![None; graph.switches() as usize];
    let mut open = Vec::new();
    let mut largest = Time::ZERO;
    for &to in &edges {
        between.fill(None);
        between[to as usize] = Some(Time::ZERO);
        for &from in &edges {
            // Other planes, and rails that are not joined.
            if from / per_plane != to / per_plane || from != to && routes.group(from, to).len == 0 {
                continue;
            }
            open.push(from);
            while let Some(&at) = open.last() {
                if between[at as usize].is_some() {
                    open.pop();
                    continue;
                }
                let links = routes.towards(at, to).links;
                let links = &links[..if are_alike { 1 } else { links.len() }];
                let next = |link: LinkId| graph.link(link).to.0 - graph.hosts;
                let known = open.len();
                open.extend(links.iter().map(|link| next(*link)).filter(|next| between[*next as usize].is_none()));
                if open.len() == known {
                    let over = |link: &LinkId| Some(between[next(*link) as usize]? + rounds[link.0 as usize]);
                    between[at as usize] = links.iter().filter_map(over).max();
                }
            }
            let ends = sources[from as usize].with(&destinations[to as usize]);
            largest = ends.zip(between[from as usize]).map_or(largest, |(ends, time)| largest.max(ends + time));
        }
    }
    largest
}

/// Returns the round trip over the links of two hosts, and that over a link between switches, where these are the same
/// everywhere: then hops determine the largest round trip.
fn alike(graph: &Graph, rounds: &[Time]) -> Option<(Time, Time)> {
    let of = |link: LinkId| rounds[link.0 as usize];
    let ends = |up: LinkId| (of(up), of(up.reverse()));
    let first = ends(graph.host_uplink(0));
    let mut between = graph.link_ids().filter(|link| {
        let link = graph.link(*link);
        link.from.0 >= graph.hosts && link.to.0 >= graph.hosts
    });
    let round = between.next().map_or(Time::ZERO, of);
    let mut ups = (0..graph.hosts).flat_map(|host| graph.out_links(NodeId(host)));
    let same = ups.all(|up| ends(*up) == first) && between.all(|link| of(link) == round);
    same.then_some((first.0 + first.1, round))
}

pub(crate) fn shortest_paths(graph: &Graph, routes: &Routes, from: NodeId, to: NodeId) -> u64 {
    let goal = to.0 - graph.hosts;
    let mut ways = vec![0u64; graph.switches() as usize];
    let mut level = vec![from.0 - graph.hosts];
    ways[level[0] as usize] = 1;
    // Every hop is one nearer to the goal, so a level is complete before the next begins.
    while !level.is_empty() && level[0] != goal {
        let mut next = Vec::new();
        for switch in level {
            for link in routes.towards(switch, goal).links {
                let other = (graph.link(*link).to.0 - graph.hosts) as usize;
                if ways[other] == 0 {
                    next.push(other as u32);
                }
                ways[other] = ways[other].saturating_add(ways[switch as usize]);
            }
        }
        level = next;
    }
    ways[goal as usize]
}

pub(crate) fn paths(graph: &Graph, routes: &Routes, src: u32, dst: u32, most: usize) -> Vec<Vec<LinkId>> {
    let mut found = Vec::new();
    let first = |plane: u32| (plane, graph.edge_switch_in(src, plane), vec![graph.host_uplink_in(src, plane)]);
    let mut stack: Vec<_> = (0..graph.planes).rev().map(first).collect();
    while let Some((plane, at, path)) = stack.pop() {
        if found.len() == most {
            break;
        }
        let to = graph.edge_switch_in(dst, plane);
        if at == to {
            found.push(path.into_iter().chain([graph.host_uplink_in(dst, plane).reverse()]).collect());
            continue;
        }
        for link in routes.towards(at.0 - graph.hosts, to.0 - graph.hosts).links.iter().rev() {
            stack.push((plane, graph.link(*link).to, path.iter().copied().chain([*link]).collect()));
        }
    }
    found
}

pub(crate) fn dead_paths(graph: &Graph, from: NodeId, to: NodeId, dead: &[bool]) -> Vec<bool> {
    let rates = path_rates(graph, from, to, &|link| Rate(u64::from(!dead[link.0 as usize])));
    rates.into_iter().map(|rate| rate == Rate(0)).collect()
}

/// Returns the rate of the slowest link of each path, numbered as by [`dead_paths`].
pub(crate) fn path_rates(graph: &Graph, from: NodeId, to: NodeId, rate: &impl Fn(LinkId) -> Rate) -> Vec<Rate> {
    let hops = switch_distance(graph, from, to);
    if from == to || hops == u32::MAX || graph.uplinks.is_empty() {
        return Vec::new();
    }
    let levels = (hops as usize / 2).min(graph.uplinks.len());
    let total: u32 = graph.uplinks[..levels].iter().product();
    (0..total).map(|path| rate_of(graph, from, to, path, levels, rate)).collect()
}

/// Rate of the slowest link of a path; 0: a link of it has rate 0.
fn rate_of(
    graph: &Graph,
    from: NodeId,
    to: NodeId,
    mut path: u32,
    levels: usize,
    rate: &impl Fn(LinkId) -> Rate,
) -> Rate {
    let (mut at, mut slowest) = (from, Rate(u64::MAX));
    for uplinks in &graph.uplinks[..levels] {
        let part = path % uplinks;
        path /= uplinks;
        let Some(link) = graph.uplinks_of(at).nth(part as usize) else { return Rate(0) };
        slowest = slowest.min(rate(link));
        if slowest == Rate(0) {
            return slowest;
        }
        at = graph.link(link).to;
    }
    // Every step downwards needs at least one live cable, or the path is dead.
    for left in (0..levels).rev() {
        let downwards = |link: &&LinkId| {
            let next = graph.link(**link).to;
            !graph.is_up(**link)
                && next.0 >= graph.hosts
                && (if left == 0 { next == to } else { is_above(graph, next, to) })
        };
        let mut down = graph.out_links(at).iter().filter(downwards).filter(|l| rate(**l) > Rate(0));
        let Some(link) = down.next() else { return Rate(0) };
        slowest = slowest.min(rate(*link));
        at = graph.link(*link).to;
    }
    slowest
}

fn is_above(graph: &Graph, upper: NodeId, lower: NodeId) -> bool {
    graph.out_links(upper).iter().any(|l| graph.link(*l).to == lower)
}

/// Computes distances from a goal, and the numbers of shortest paths to it (at most `u64::MAX`).
pub(crate) fn count_paths(graph: &SwitchGraph, goal: u32, search: &mut Search, ways: &mut Vec<u64>) {
    ways.clear();
    ways.resize(graph.switches(), 0);
    ways[goal as usize] = 1;
    // A switch comes after all that are nearer to the goal, so its own number is complete at that point.
    graph.search(goal, search, |switch, way| {
        ways[way.from as usize] = ways[way.from as usize].saturating_add(ways[switch as usize]);
    });
}

/// The two slowest hosts of a switch with their times, slowest first.
#[derive(Clone, Default)]
struct Slowest([Option<(Time, u32)>; 2]);

impl Slowest {
    fn add(&mut self, host: u32, time: Time) {
        let [first, second] = &mut self.0;
        if first.is_none_or(|f| time > f.0) {
            *second = first.replace((time, host));
        } else if second.is_none_or(|s| time > s.0) {
            *second = Some((time, host));
        }
    }

    /// Returns the largest sum of the times of two different hosts, one of each.
    fn with(&self, other: &Slowest) -> Option<Time> {
        let pairs = self.0.iter().flatten().flat_map(|a| other.0.iter().flatten().map(move |b| (a, b)));
        pairs.filter(|(a, b)| a.1 != b.1).map(|(a, b)| a.0 + b.0).max()
    }
}

/// Returns `true` if links between switches have one rate and delay, in a tree those between the same tiers.
pub(crate) fn are_alike(graph: &Graph) -> bool {
    let mut first: Vec<(LinkClass, Rate, Time)> = vec![];
    let is_tree = !graph.uplinks.is_empty();
    graph.links.iter().filter(|link| link.from.0 >= graph.hosts && link.to.0 >= graph.hosts).all(|link| {
        let is_of_tree = matches!(link.class, LinkClass::Tier { .. });
        let known = first.iter().find(|known| !is_tree || known.0 == link.class).copied();
        let (_, rate, delay) = known.unwrap_or_else(|| {
            first.push((link.class, link.rate, link.delay));
            (link.class, link.rate, link.delay)
        });
        (rate, delay) == (link.rate, link.delay) && (is_of_tree || !is_tree)
    })
}
