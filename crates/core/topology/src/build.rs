//! Builds a topology, its ports in order, from nodes and cables.

use crate::graph::{Graph, Link, LinkClass, LinkId, Node, NodeId, NodeKind, Rails, TopologyError};
use anabranch_units::{Rate, Time};
use std::collections::BTreeMap;

pub(crate) const MAX_HOSTS: u64 = 1 << 20;

/// Maximum number of ports of a switch: positions and sets of next hops have 16 bits.
const MAX_PORTS: usize = u16::MAX as usize;

/// Maximum number of entries of a forwarding table (switches times switches with hosts): 2 GiB.
const MAX_TABLE: u64 = 1 << 29;

/// The lower node comes first.
pub(crate) struct Cable {
    pub(crate) lower: NodeId,
    pub(crate) upper: NodeId,
    pub(crate) rate: Rate,
    pub(crate) delay: Time,
    pub(crate) class: LinkClass,
}

#[derive(Default)]
pub(crate) struct Builder {
    nodes: Vec<Node>,
    cables: Vec<Cable>,
    rails: Option<Rails>,
    /// 0: one, whose switches have no prefix.
    planes: u32,
}

impl Builder {
    pub(crate) fn rails(&mut self, rails: Option<Rails>) {
        self.rails = rails;
    }

    pub(crate) fn hosts(&mut self, count: u32) {
        self.add(count, "host", NodeKind::Host);
    }

    pub(crate) fn planes(&mut self, planes: u32) {
        self.planes = planes;
    }

    /// Adds switches `name0`, `name1`, ...; returns the first.
    pub(crate) fn switches(&mut self, count: u32, name: &str, tier: u8) -> u32 {
        self.add(count, name, NodeKind::Switch { tier })
    }

    pub(crate) fn named_switches(&mut self, count: u32, name: impl Fn(u32) -> String) -> u32 {
        let first = self.nodes.len() as u32;
        self.nodes.extend((0..count).map(|i| Node { name: name(i), kind: NodeKind::Switch { tier: 0 } }));
        first
    }

    fn add(&mut self, count: u32, name: &str, kind: NodeKind) -> u32 {
        let first = self.nodes.len() as u32;
        self.nodes.extend((0..count).map(|i| Node { name: format!("{name}{i}"), kind }));
        first
    }

    pub(crate) fn cable(&mut self, lower: u32, upper: u32, (rate, delay): (Rate, Time), class: LinkClass) {
        self.cables.push(Cable { lower: NodeId(lower), upper: NodeId(upper), rate, delay, class });
    }

    pub(crate) fn finish(self, switch_latency: Time, uplinks: Vec<u32>) -> Result<Graph, TopologyError> {
        let Builder { nodes, cables, rails, planes } = self;
        let planes = planes.max(1);
        let hosts = nodes.iter().filter(|n| n.kind == NodeKind::Host).count() as u32;
        let mut links = Vec::with_capacity(2 * cables.len());
        let mut parallel = Vec::with_capacity(2 * cables.len());
        let mut seen: BTreeMap<(NodeId, NodeId), u16> = BTreeMap::new();
        for Cable { lower, upper, rate, delay, class } in cables {
            let number = seen.entry((lower, upper)).or_insert(0);
            parallel.extend([*number; 2]);
            // Beyond 16 bits `check` refuses the switch.
            *number = number.wrapping_add(1);
            links.push(Link { from: lower, to: upper, rate, delay, class });
            links.push(Link { from: upper, to: lower, rate, delay, class });
        }
        let height = |node: NodeId| match nodes[node.0 as usize].kind {
            NodeKind::Host => 0,
            NodeKind::Switch { tier } => 1 + u32::from(tier),
        };
        let mut ports: Vec<LinkId> = (0..links.len() as u32).map(LinkId).collect();
        ports.sort_by_key(|l| {
            let link = &links[l.0 as usize];
            (link.from, height(link.to) > height(link.from), link.to, parallel[l.0 as usize])
        });
        let mut first = vec![0; nodes.len() + 1];
        for link in &links {
            first[link.from.0 as usize + 1] += 1;
        }
        for node in 0..nodes.len() {
            first[node + 1] += first[node];
        }
        let (groups, guidance) = (Vec::new(), None);
        let graph = Graph {
            nodes,
            links,
            hosts,
            planes,
            switch_latency,
            uplinks,
            groups,
            guidance,
            rails,
            first,
            ports,
            parallel,
        };
        check(&graph)?;
        Ok(graph)
    }
}

fn check(graph: &Graph) -> Result<(), TopologyError> {
    if graph.hosts < 2 {
        return Err(TopologyError::new(format!("the topology has {} host; at least 2 are needed", graph.hosts)));
    }
    if u64::from(graph.hosts) > MAX_HOSTS {
        return Err(TopologyError::new(format!("{} hosts; at most {MAX_HOSTS} are allowed", graph.hosts)));
    }
    for switch in graph.hosts..graph.nodes.len() as u32 {
        let ports = graph.out_links(NodeId(switch)).len();
        if ports > MAX_PORTS {
            let name = &graph.nodes[switch as usize].name;
            return Err(TopologyError::new(format!("{name} has {ports} ports; at most {MAX_PORTS} are allowed")));
        }
    }
    for host in 0..graph.hosts {
        let links = graph.out_links(NodeId(host));
        let name = &graph.nodes[host as usize].name;
        match links {
            [link, others @ ..] if others.len() as u32 + 1 == graph.planes && graph.link(*link).to.0 >= graph.hosts => {
            }
            [_] => {
                return Err(TopologyError::new(format!("{name} is linked to another host; hosts attach to switches")));
            }
            _ => {
                return Err(TopologyError::new(format!(
                    "{name} has {} links; a host has exactly one: its NIC. Write a host for each NIC, and [servers] with `gpus` and `nics` to join the hosts of a server",
                    links.len()
                )));
            }
        }
    }
    let mut reached = vec![false; graph.nodes.len()];
    // Every rail that is not joined to the others is a graph of its own, with a host of the first server.
    let separate = graph.rails.filter(|rails| !rails.are_joined).map_or(1, |rails| rails.count);
    let mut stack: Vec<NodeId> = (0..separate).map(NodeId).collect();
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut reached[node.0 as usize], true) {
            stack.extend(graph.out_links(node).iter().map(|l| graph.link(*l).to));
        }
    }
    if let Some(lost) = reached.iter().position(|r| !r) {
        return Err(TopologyError::new(format!("{} cannot be reached from host0", graph.nodes[lost].name)));
    }
    let entries = u64::from(graph.switches()) * graph.edge_switches().len() as u64;
    if entries > MAX_TABLE {
        let switches = graph.switches();
        return Err(TopologyError::new(format!(
            "{switches} switches are too many: {entries} entries in forwarding tables, at most {MAX_TABLE} are allowed"
        )));
    }
    Ok(())
}
