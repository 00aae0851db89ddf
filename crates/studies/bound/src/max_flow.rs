//! Maximum concurrent flow: the least time in which the links between switches can carry all bytes, over any paths.
//!
//! The linear program routes the bytes of each pair (leaf of the sender, leaf of the receiver) over paths, split at will, so
//! that no link needs longer than T; it minimises T. Its dual gives a length to each link. Any lengths are a certificate, so
//! that the accuracy of the solver does not matter: every byte occupies at least the shortest distance between its leaves,
//! and per unit of time the links offer the sum of their rates times their lengths. The bound is computed from the lengths,
//! by shortest paths over all links. Paths are generated: shorter ones than those in use are added until the gap is closed.

use crate::{Demand, Network, distances, network::search};
use anabranch_topology::{LinkId, NodeId, Routes};
use clarabel::{
    algebra::CscMatrix,
    solver::{DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, ZeroConeT},
};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of pairs of leaves.
pub(crate) const MAX_PAIRS: usize = 20_000;
/// Maximum number of paths at the beginning.
const MAX_PATHS: usize = 40_000;
/// Maximum number of paths per pair at the beginning.
const MAX_PATHS_OF_A_PAIR: usize = 32;
/// Maximum number of linear programs.
const MAX_ROUNDS: u32 = 40;
/// Gap between certificate and linear program that ends the search, as a share.
const GAP: f64 = 1e-4;

/// A certificate with its cost.
#[derive(Clone, Debug)]
pub(crate) struct MaxFlow {
    /// Length of each directed link, none negative.
    pub(crate) lengths: Vec<f64>,
    /// Bytes times length that the links carry per picosecond.
    pub(crate) capacity: f64,
    /// Least time in which all bytes cross, in picoseconds, by the certificate.
    pub(crate) time: f64,
    /// Time of the best routing that was found: no certificate exceeds it.
    pub(crate) routed: f64,
    pub(crate) pairs: usize,
    pub(crate) paths: usize,
    pub(crate) rounds: u32,
}

/// Bytes between two switches.
#[derive(Clone, Copy, Debug)]
struct Pair {
    from: NodeId,
    to: NodeId,
    bytes: f64,
    hosts: (u32, u32),
}

/// Returns the certificate for the flows `numbers`; `None` if no bytes cross links between switches.
/// Errors: the number of pairs of leaves, if it exceeds [`MAX_PAIRS`].
pub(crate) fn max_flow(network: &Network<'_>, demands: &[Demand], numbers: &[usize]) -> Result<Option<MaxFlow>, usize> {
    let pairs = pairs(network, demands, numbers);
    if pairs.is_empty() {
        return Ok(None);
    }
    if pairs.len() > MAX_PAIRS {
        return Err(pairs.len());
    }
    let links: Vec<LinkId> = network.switch_links().collect();
    let mut paths = first_paths(network, &pairs);
    let mut known: BTreeSet<(usize, Vec<LinkId>)> = paths.iter().cloned().collect();
    let mut best = MaxFlow {
        lengths: vec![],
        capacity: 0.0,
        time: 0.0,
        routed: f64::INFINITY,
        pairs: pairs.len(),
        paths: 0,
        rounds: 0,
    };
    // Equal shares of all links are a certificate too, and the first one.
    let mut lengths = vec![0.0; network.topology.links.len()];
    links.iter().for_each(|link| lengths[link.0 as usize] = 1.0 / network.rate(*link));
    best.improve(network, &pairs, lengths);
    if best.time.is_infinite() {
        return Ok(Some(best));
    }
    while best.rounds < MAX_ROUNDS {
        best.rounds += 1;
        let Some((time, lengths)) = solve(network, &links, &pairs, &paths) else { break };
        best.routed = best.routed.min(time);
        best.improve(network, &pairs, lengths.clone());
        if best.time >= best.routed * (1.0 - GAP) {
            break;
        }
        let before = paths.len();
        for (number, path) in shorter(network, &pairs, &lengths) {
            if known.insert((number, path.clone())) {
                paths.push((number, path));
            }
        }
        if paths.len() == before {
            break;
        }
    }
    best.paths = paths.len();
    Ok(Some(best))
}

impl MaxFlow {
    /// Returns the time of the fabric for the bytes of a flow, given the distance between its leaves.
    pub(crate) fn work(&self, bytes: f64, distance: f64) -> f64 {
        if distance == 0.0 { 0.0 } else { bytes * distance / self.capacity }
    }

    fn improve(&mut self, network: &Network<'_>, pairs: &[Pair], lengths: Vec<f64>) {
        let capacity = capacity(network, &lengths);
        let mut from: BTreeMap<NodeId, Vec<f64>> = BTreeMap::new();
        let mut sum = 0.0;
        for pair in pairs {
            let costs = || costs(network, &lengths);
            let distances = from.entry(pair.from).or_insert_with(|| distances(network.topology, pair.from, &costs()));
            sum += pair.bytes * distances[(pair.to.0 - network.topology.hosts) as usize];
        }
        // Without a path between a pair its flows never end.
        let (time, capacity) = if sum.is_finite() { (sum / capacity, capacity) } else { (f64::INFINITY, 1.0) };
        if time > self.time {
            (self.time, self.capacity, self.lengths) = (time, capacity, lengths);
        }
    }
}

fn capacity(network: &Network<'_>, lengths: &[f64]) -> f64 {
    network.switch_links().map(|link| network.rate(link) * lengths[link.0 as usize]).sum()
}

/// Returns the lengths as costs; those of links that are down throughout are infinite.
pub(crate) fn costs(network: &Network<'_>, lengths: &[f64]) -> Vec<f64> {
    let cost = |link: LinkId| if network.rate(link) > 0.0 { lengths[link.0 as usize] } else { f64::INFINITY };
    network.topology.link_ids().map(cost).collect()
}

fn pairs(network: &Network<'_>, demands: &[Demand], numbers: &[usize]) -> Vec<Pair> {
    let mut pairs: BTreeMap<(NodeId, NodeId), Pair> = BTreeMap::new();
    for demand in numbers.iter().map(|number| &demands[*number]) {
        let (from, to) = (network.topology.edge_switch(demand.src), network.topology.edge_switch(demand.dst));
        if from != to {
            let pair = Pair { from, to, bytes: 0.0, hosts: (demand.src, demand.dst) };
            pairs.entry((from, to)).or_insert(pair).bytes += demand.bytes();
        }
    }
    pairs.into_values().collect()
}

/// Returns shortest paths of each pair, evenly spread over all of them.
fn first_paths(network: &Network<'_>, pairs: &[Pair]) -> Vec<(usize, Vec<LinkId>)> {
    let topology = network.topology;
    let dead: Vec<bool> = topology.link_ids().map(|link| network.rate(link) == 0.0).collect();
    let routes = Routes::shortest(topology, &dead);
    let most = (MAX_PATHS / pairs.len()).clamp(1, MAX_PATHS_OF_A_PAIR);
    let mut found = vec![];
    for (number, pair) in pairs.iter().enumerate() {
        let all = topology.paths(&routes, pair.hosts.0, pair.hosts.1, 8 * MAX_PATHS_OF_A_PAIR);
        // Pairs begin at different paths, so that few paths of each still use all links.
        let taken = all.len().min(most);
        for at in 0..taken {
            let path = &all[(number + at * all.len() / taken) % all.len()];
            found.push((number, path[1..path.len() - 1].to_vec()));
        }
    }
    found
}

/// Returns the shortest path of each pair by `lengths`.
fn shorter(network: &Network<'_>, pairs: &[Pair], lengths: &[f64]) -> Vec<(usize, Vec<LinkId>)> {
    let topology = network.topology;
    let costs = costs(network, lengths);
    let mut from = BTreeMap::new();
    let mut found = vec![];
    for (number, pair) in pairs.iter().enumerate() {
        let (least, last) = from.entry(pair.from).or_insert_with(|| search(topology, pair.from, &costs));
        // The plane in which the pair is nearest.
        let places = topology.plane_switches();
        let copies = (0..topology.planes).map(|plane| NodeId(pair.to.0 + plane * places));
        let of = |node: &NodeId| least[(node.0 - topology.hosts) as usize];
        let to = copies.min_by(|a, b| of(a).total_cmp(&of(b))).unwrap_or(pair.to);
        let (mut path, mut at) = (vec![], to);
        let is_from = |at: NodeId| (at.0 - topology.hosts) % places == pair.from.0 - topology.hosts;
        while let Some(link) = last[(at.0 - topology.hosts) as usize].filter(|_| !is_from(at)) {
            path.push(link);
            at = topology.link(link).from;
        }
        path.reverse();
        found.push((number, path));
    }
    found
}

/// Solves the linear program over `paths`; returns T in picoseconds and a length per link. `None`: the solver found none.
fn solve(
    network: &Network<'_>,
    links: &[LinkId],
    pairs: &[Pair],
    paths: &[(usize, Vec<LinkId>)],
) -> Option<(f64, Vec<f64>)> {
    let mut row = vec![usize::MAX; network.topology.links.len()];
    links.iter().enumerate().for_each(|(number, link)| row[link.0 as usize] = number);
    // Bytes in those of the mean pair, rates in those of the fastest link.
    let bytes = pairs.iter().map(|pair| pair.bytes).sum::<f64>() / pairs.len() as f64;
    let rate = links.iter().map(|link| network.rate(*link)).fold(0.0, f64::max);
    let (columns, rows) = (paths.len() + 1, pairs.len() + links.len() + paths.len());
    let (mut starts, mut places, mut values) = (vec![0], vec![], vec![]);
    for (number, (pair, path)) in paths.iter().enumerate() {
        // A path of `shorter` visits no link twice, and neither does a shortest one.
        let mut own: Vec<(usize, f64)> = vec![(*pair, 1.0)];
        own.extend(path.iter().map(|link| (pairs.len() + row[link.0 as usize], 1.0)));
        own.push((pairs.len() + links.len() + number, -1.0));
        own.sort_by_key(|(place, _)| *place);
        places.extend(own.iter().map(|(place, _)| *place));
        values.extend(own.iter().map(|(_, value)| *value));
        starts.push(places.len());
    }
    places.extend((0..links.len()).map(|number| pairs.len() + number));
    values.extend(links.iter().map(|link| -network.rate(*link) / rate));
    starts.push(places.len());
    let constraints = CscMatrix::new(rows, columns, starts, places, values);
    let mut objective = vec![0.0; columns];
    objective[columns - 1] = 1.0;
    let mut right: Vec<f64> = pairs.iter().map(|pair| pair.bytes / bytes).collect();
    right.resize(rows, 0.0);
    let cones = [ZeroConeT(pairs.len()), NonnegativeConeT(links.len() + paths.len())];
    let settings = DefaultSettingsBuilder::default().verbose(false).build().ok()?;
    let quadratic = CscMatrix::zeros((columns, columns));
    let mut solver = DefaultSolver::new(&quadratic, &objective, &constraints, &right, &cones, settings).ok()?;
    solver.solve();
    let solution = &solver.solution;
    let time = solution.x.last().copied().filter(|time| time.is_finite() && *time > 0.0)?;
    let mut lengths = vec![0.0; network.topology.links.len()];
    for (number, link) in links.iter().enumerate() {
        let length = solution.z[pairs.len() + number];
        lengths[link.0 as usize] = if length.is_finite() { length.max(0.0) } else { 0.0 };
    }
    (capacity(network, &lengths) > 0.0).then_some((time * bytes / rate, lengths))
}
