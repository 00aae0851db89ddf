//! Topologies to test, and the distances of a plain breadth-first search.
#![allow(unreachable_pub)]

use anabranch_topology::{
    Arrangement, DragonflyParameters, FatTreeParameters, FileFormat, FileParameters, Guide, LeafSpineParameters,
    LinkId, NodeId, SlimFlyParameters, Topology, TopologyError, TopologyParameters,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub fn build(parameters: TopologyParameters) -> Result<Topology, TopologyError> {
    parameters.build(&|path| panic!("no file is to be read, but {path} is"))
}

pub fn fat_tree(tiers: u64, radix: u64) -> Topology {
    build(TopologyParameters::FatTree(FatTreeParameters { tiers, radix, ..Default::default() })).unwrap()
}

pub fn leaf_spine(leaves: u64, spines: u64, hosts_per_leaf: u64, links_per_spine: u64) -> Topology {
    let parameters = LeafSpineParameters { leaves, spines, hosts_per_leaf, links_per_spine, ..Default::default() };
    build(TopologyParameters::LeafSpine(parameters)).unwrap()
}

pub fn dragonfly(p: u64, a: u64, h: u64) -> Topology {
    build(TopologyParameters::Dragonfly(DragonflyParameters { p, a, h, ..Default::default() })).unwrap()
}

pub fn arranged(a: u64, h: u64, groups: u64, arrangement: Arrangement) -> Topology {
    let groups = anabranch_settings::Auto::Value(groups);
    let parameters = DragonflyParameters { p: 1, a, h, groups, arrangement, ..Default::default() };
    build(TopologyParameters::Dragonfly(parameters)).unwrap()
}

pub fn slim_fly(q: u64, p: u64) -> Topology {
    build(TopologyParameters::SlimFly(SlimFlyParameters { q, p, ..Default::default() })).unwrap()
}

/// Switches count from the first switch. Made from `links` alone.
pub fn neighbours(topology: &Topology) -> Vec<BTreeSet<u32>> {
    let mut all = vec![BTreeSet::new(); topology.switches() as usize];
    for link in topology.links.iter().filter(|l| l.from.0.min(l.to.0) >= topology.hosts) {
        all[(link.from.0 - topology.hosts) as usize].insert(link.to.0 - topology.hosts);
    }
    all
}

pub fn file(format: FileFormat, text: &str) -> Result<Topology, TopologyError> {
    let format = anabranch_settings::Auto::Value(format);
    let parameters = FileParameters { path: "fabric.txt".into(), format, ..Default::default() };
    TopologyParameters::File(parameters).build(&|_| Ok(text.to_string()))
}

pub fn adjacency(text: &str, hosts_per_switch: u64) -> Topology {
    let format = anabranch_settings::Auto::Value(FileFormat::Adjacency);
    let parameters = FileParameters { path: "graph.adjlist".into(), format, hosts_per_switch, ..Default::default() };
    TopologyParameters::File(parameters).build(&|_| Ok(text.to_string())).unwrap()
}

pub fn edges(topology: &Topology) -> Vec<NodeId> {
    let edges: BTreeSet<NodeId> = topology.links.iter().filter(|l| l.from.0 < topology.hosts).map(|l| l.to).collect();
    edges.into_iter().collect()
}

pub fn switches(topology: &Topology) -> impl Iterator<Item = NodeId> + use<> {
    (topology.hosts..topology.nodes.len() as u32).map(NodeId)
}

/// Returns live links between switches by the switch that they leave. Made from `links` alone.
pub fn live_links(topology: &Topology, dead: &[bool]) -> BTreeMap<NodeId, Vec<(LinkId, NodeId)>> {
    let mut live: BTreeMap<NodeId, Vec<(LinkId, NodeId)>> = BTreeMap::new();
    for (index, link) in topology.links.iter().enumerate() {
        let between = link.from.0 >= topology.hosts && link.to.0 >= topology.hosts;
        if between && !dead.get(index).copied().unwrap_or(false) {
            live.entry(link.from).or_default().push((LinkId(index as u32), link.to));
        }
    }
    live
}

pub fn hops_from(live: &BTreeMap<NodeId, Vec<(LinkId, NodeId)>>, from: NodeId) -> BTreeMap<NodeId, u32> {
    let mut hops = BTreeMap::from([(from, 0)]);
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        for (_, to) in live.get(&at).into_iter().flatten() {
            if !hops.contains_key(to) {
                hops.insert(*to, hops[&at] + 1);
                queue.push_back(*to);
            }
        }
    }
    hops
}

pub fn node(topology: &Topology, switch: u32) -> NodeId {
    NodeId(topology.hosts + switch)
}

pub fn pairs(topology: &Topology, step: usize) -> impl Iterator<Item = (NodeId, NodeId)> + use<> {
    let (hosts, switches) = (topology.hosts, topology.switches());
    let all = (0..switches).flat_map(move |a| (0..switches).filter(move |b| *b != a).map(move |b| (a, b)));
    all.step_by(step).map(move |(a, b)| (NodeId(hosts + a), NodeId(hosts + b)))
}

pub fn walk(topology: &Topology, guide: &Guide, from: NodeId, to: NodeId) -> Vec<LinkId> {
    let (mut at, mut links) = (from, Vec::new());
    while let Some(link) = guide.minimal(at, to) {
        assert_eq!(topology.link(link).from, at);
        links.push(link);
        at = topology.link(link).to;
        assert!(links.len() <= 3);
    }
    assert_eq!(at, to);
    links
}

pub fn description(topology: &Topology) -> Vec<String> {
    let nodes = topology.nodes.iter().map(|n| format!("{} {:?}", n.name, n.kind));
    let links = topology.links.iter().map(|l| format!("{l:?}"));
    nodes.chain(links).chain([format!("{} {:?}", topology.switch_latency, topology.uplinks)]).collect()
}
