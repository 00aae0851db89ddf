//! Topologies to test, and the distances of a plain breadth-first search.
#![allow(unreachable_pub)]

use anabranch_testkit::set_keys;
use anabranch_topology::{Guide, LinkClass, LinkId, NodeId, NodeKind, Topology, TopologyError, TopologyParameters};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub const LOWER: LinkClass = LinkClass::Tier { lower: 0 };
pub const UPPER: LinkClass = LinkClass::Tier { lower: 1 };

pub fn of_tier(topology: &Topology, tier: u8) -> u64 {
    topology.nodes.iter().filter(|n| n.kind == NodeKind::Switch { tier }).count() as u64
}

pub fn cables(topology: &Topology, class: LinkClass) -> u64 {
    topology.links.iter().filter(|l| l.class == class).count() as u64 / 2
}

/// Builds a topology of a kind from its keys.
pub fn make(kind: &str, keys: &str) -> Result<Topology, TopologyError> {
    parameters(kind, keys).build(&|path| panic!("no file is to be read, but {path} is"))
}

pub fn parameters(kind: &str, keys: &str) -> TopologyParameters {
    let mut parameters = TopologyParameters::named(kind).expect("a kind");
    set_keys(parameters.parameters_mut(), keys);
    parameters
}

pub fn fat_tree(tiers: u64, radix: u64) -> Topology {
    make("fat-tree", &format!("tiers={tiers} radix={radix}")).unwrap()
}

pub fn leaf_spine(leaves: u64, spines: u64, hosts_per_leaf: u64, links_per_spine: u64) -> Topology {
    let keys =
        format!("leaves={leaves} spines={spines} hosts_per_leaf={hosts_per_leaf} links_per_spine={links_per_spine}");
    make("leaf-spine", &keys).unwrap()
}

pub fn dragonfly(p: u64, a: u64, h: u64) -> Topology {
    make("dragonfly", &format!("p={p} a={a} h={h}")).unwrap()
}

pub fn arranged(a: u64, h: u64, groups: u64, arrangement: &str) -> Topology {
    make("dragonfly", &format!("p=1 a={a} h={h} groups={groups} arrangement={arrangement}")).unwrap()
}

pub fn slim_fly(q: u64, p: u64) -> Topology {
    make("slim-fly", &format!("q={q} p={p}")).unwrap()
}

/// Switches count from the first switch. Made from `links` alone.
pub fn neighbours(topology: &Topology) -> Vec<BTreeSet<u32>> {
    let mut all = vec![BTreeSet::new(); topology.switches() as usize];
    for link in topology.links.iter().filter(|l| l.from.0.min(l.to.0) >= topology.hosts) {
        all[(link.from.0 - topology.hosts) as usize].insert(link.to.0 - topology.hosts);
    }
    all
}

pub fn file(format: &str, text: &str) -> Result<Topology, TopologyError> {
    parameters("file", &format!("path=fabric.txt format={format}")).build(&|_| Ok(text.to_string()))
}

pub fn adjacency(text: &str, hosts_per_switch: u64) -> Topology {
    let keys = format!("path=graph.adjlist format=adjacency hosts_per_switch={hosts_per_switch}");
    parameters("file", &keys).build(&|_| Ok(text.to_string())).unwrap()
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

/// The lines of a section of `refused.txt`.
pub fn refused<const N: usize>(section: &str) -> Vec<[String; N]> {
    let all = include_str!("../../refused.txt").split("\n== ").find(|part| part.starts_with(section));
    let lines = all.expect("a section").lines().skip(1).filter(|line| !line.is_empty());
    let parts = |line: &str| line.replace("\\n", "\n").split(" => ").map(String::from).collect::<Vec<_>>();
    lines.map(|line| parts(line).try_into().expect(line)).collect()
}
