use crate::{
    Guide, LinkId, NodeId, NodeKind, PathType, Rails,
    graph::Graph,
    guide::{TypeTotal, guided_table_bytes},
    paths::count_paths,
    switch_graph::{Search, SwitchGraph},
};
use anabranch_units::{Rate, Time};
use std::collections::BTreeMap;

/// Counts of the switches of one tier.
#[derive(Clone, Debug, PartialEq)]
pub struct TierCount {
    /// The tier.
    pub tier: u8,
    /// Number of switches.
    pub switches: u32,
    /// Maximum number of ports of a switch.
    pub ports: u32,
    /// Rate of its links downwards over rate of its links upwards; `None` at the top.
    pub oversubscription: Option<f64>,
}

/// Number of ordered pairs of switches with hosts, by distance and number of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathCount {
    /// Switch-to-switch links on a shortest path.
    pub switch_hops: u32,
    /// Number of shortest paths.
    pub paths: u64,
    /// Number of ordered pairs of different switches with hosts that are connected.
    pub pairs: u64,
}

/// Counts of guided paths of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeCount {
    /// Number of local and global links.
    pub kind: PathType,
    /// Number of paths, over the ordered pairs of switches examined.
    pub paths: u64,
    /// Shortest latency: propagation and a wire time per hop (Spritz, Table I).
    pub latency: Time,
}

/// Summary of guided paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuidedSummary {
    /// Number of switches whose paths to all others were counted; evenly spaced ones if there are many million paths.
    pub sources: u32,
    /// Minimum number of paths of an ordered pair of different switches.
    pub fewest: u64,
    /// Maximum number of paths of such a pair.
    pub most: u64,
    /// Counts of paths by type, in the order of Spritz's Table I.
    pub types: Vec<TypeCount>,
    /// Bytes of an endpoint's table with `most` paths to every switch.
    pub table_bytes: u64,
    /// Largest round trip: data over the longest guided path, its ACK over the longest default path.
    pub base_rtt: Time,
    /// Bandwidth-delay product of that round trip, in bytes.
    pub bdp_bytes: u64,
    /// In packets, rounded up.
    pub bdp_packets: u64,
}

type RatesAndDelays = Vec<(Rate, Time)>;

/// Counts, distances and path counts of a topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of hosts.
    pub hosts: u32,
    /// Switches per tier.
    pub tiers: Vec<TierCount>,
    /// Cables per class: name, number, pairs of rate and delay.
    pub cables: Vec<(String, u64, RatesAndDelays)>,
    /// Maximum number of links between two hosts on a shortest path.
    pub diameter_links: u32,
    /// Maximum number of links between two switches with hosts on a shortest path.
    pub diameter_switch_hops: u32,
    /// Average of the links between two different switches with hosts on a shortest path; 0 without pairs.
    pub average_switch_hops: f64,
    /// Shortest paths between switches with hosts, by distance and number.
    pub paths: Vec<PathCount>,
    /// Largest base round trip for packets of the given sizes.
    pub base_rtt: Time,
    /// Bandwidth-delay product in bytes.
    pub bdp_bytes: u64,
    /// In packets, rounded up.
    pub bdp_packets: u64,
    /// Guided paths; `None` if there are none.
    pub guided: Option<GuidedSummary>,
    /// Number of planes; distances and paths are those in one of them.
    pub planes: u32,
    /// Rails; `None` if the fabric is not wired by rails.
    pub rails: Option<Rails>,
}

pub(crate) fn summary(graph: &Graph, guide: Option<&Guide>, base_rtt: Time, data: u64, ack: u64) -> Summary {
    let switches = SwitchGraph::of(graph, |_| true);
    let edges: Vec<u32> = graph.edge_switches().iter().map(|edge| edge.0 - graph.hosts).collect();
    let (mut search, mut ways) = (Search::default(), Vec::new());
    let mut paths: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    for &to in &edges {
        count_paths(&switches, to, &mut search, &mut ways);
        let reached = |from: &&u32| **from != to && search.distance[**from as usize] != u32::MAX;
        for from in edges.iter().filter(reached).map(|from| *from as usize) {
            *paths.entry((search.distance[from], ways[from])).or_insert(0) += 1;
        }
    }
    let far = paths.keys().map(|key| key.0).max().unwrap_or(0);
    let pairs: u64 = paths.values().sum();
    let hops: u64 = paths.iter().map(|((hops, _), pairs)| u64::from(*hops) * pairs).sum();
    let bdp_bytes = graph.nic_rate().bytes_in(base_rtt);
    Summary {
        hosts: graph.hosts,
        tiers: tier_counts(graph),
        cables: cable_counts(graph),
        diameter_links: far + 2,
        diameter_switch_hops: far,
        average_switch_hops: if pairs == 0 { 0.0 } else { hops as f64 / pairs as f64 },
        paths: paths.into_iter().map(|((switch_hops, paths), pairs)| PathCount { switch_hops, paths, pairs }).collect(),
        base_rtt,
        bdp_bytes,
        bdp_packets: bdp_bytes.div_ceil(data.max(1)),
        guided: guide.map(|guide| guided_summary(graph, guide, data, ack)),
        planes: graph.planes,
        rails: graph.rails,
    }
}

fn guided_summary(graph: &Graph, guide: &Guide, data: u64, ack: u64) -> GuidedSummary {
    let totals = guide.totals(graph, data);
    let base_rtt = guide.base_rtt(graph, data, ack);
    let bdp_bytes = graph.nic_rate().bytes_in(base_rtt);
    let count = |t: &TypeTotal| TypeCount { kind: t.kind, paths: t.paths, latency: t.latency };
    GuidedSummary {
        sources: totals.sources,
        fewest: totals.fewest,
        most: totals.most,
        types: totals.types.iter().map(count).collect(),
        table_bytes: guided_table_bytes(graph.switches().into(), totals.most),
        base_rtt,
        bdp_bytes,
        bdp_packets: bdp_bytes.div_ceil(data.max(1)),
    }
}

fn tier_counts(graph: &Graph) -> Vec<TierCount> {
    let mut tiers: BTreeMap<u8, (u32, u32, u64, u64)> = BTreeMap::new();
    for index in graph.hosts..graph.nodes.len() as u32 {
        let node = NodeId(index);
        let NodeKind::Switch { tier } = graph.node(node).kind else { continue };
        let entry = tiers.entry(tier).or_default();
        entry.0 += 1;
        entry.1 = entry.1.max(graph.out_links(node).len() as u32);
        for &link in graph.out_links(node) {
            let rate = graph.link(link).rate.0;
            if graph.is_up(link) { entry.3 += rate } else { entry.2 += rate }
        }
    }
    let row = |(tier, (switches, ports, down, up)): (u8, (u32, u32, u64, u64))| TierCount {
        tier,
        switches,
        ports,
        oversubscription: (up > 0).then(|| down as f64 / up as f64),
    };
    tiers.into_iter().map(row).collect()
}

fn cable_counts(graph: &Graph) -> Vec<(String, u64, RatesAndDelays)> {
    let mut classes: BTreeMap<_, (u64, Vec<(Rate, Time)>)> = BTreeMap::new();
    for link in graph.link_ids().filter(|l: &LinkId| l.0.is_multiple_of(2)).map(|l| graph.link(l)) {
        let entry = classes.entry(link.class).or_default();
        entry.0 += 1;
        if !entry.1.contains(&(link.rate, link.delay)) {
            entry.1.push((link.rate, link.delay));
        }
    }
    classes.into_iter().map(|(class, (count, kinds))| (class.name(), count, kinds)).collect()
}

pub(crate) fn oversubscription(graph: &Graph) -> f64 {
    let tiers = tier_counts(graph);
    tiers.first().and_then(|t| t.oversubscription).unwrap_or(1.0)
}
