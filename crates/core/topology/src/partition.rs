use crate::{NodeId, NodeKind, graph::Graph};

/// Returns the part of each node, deterministically; parts differ by at most one leaf (or pod, or group) in size.
///
/// Hosts stay with their switch, the lower tiers of a pod and the switches of a group stay together; upper switches are
/// spread evenly.
pub fn partition(topology: &Graph, parts: usize) -> Vec<u16> {
    let hosts = topology.hosts;
    let parts = parts.clamp(1, usize::from(u16::MAX));
    let mut owner = vec![u16::MAX; topology.nodes.len()];
    let pods = pods(topology);
    let count = pods.iter().flatten().max().map_or(1, |last| last + 1);
    let mut spread = 0;
    for switch in hosts..topology.nodes.len() as u32 {
        owner[switch as usize] = match pods[(switch - hosts) as usize] {
            Some(pod) => (pod * parts / count) as u16,
            None => {
                spread += 1;
                ((spread - 1) % parts) as u16
            }
        };
    }
    for host in 0..hosts {
        owner[host as usize] = owner[topology.edge_switch(host).0 as usize];
    }
    owner
}

/// Returns the pod of each switch: switches below the top tier that stay connected without it; `None` for the top tier. A
/// group is a pod: only global links, the longest, lead out of it. Without tiers and groups, every switch is a pod.
fn pods(topology: &Graph) -> Vec<Option<usize>> {
    if !topology.groups.is_empty() {
        return topology.groups.iter().map(|group| Some(*group as usize)).collect();
    }
    let (hosts, switches) = (topology.hosts, topology.switches());
    let tier = |switch: u32| match topology.node(NodeId(hosts + switch)).kind {
        NodeKind::Switch { tier } => tier,
        NodeKind::Host => unreachable!("hosts come first"),
    };
    let top = (0..switches).map(tier).max().unwrap_or(0);
    if top == 0 {
        return (0..switches as usize).map(Some).collect();
    }
    let mut pods = vec![None; switches as usize];
    let mut count = 0;
    for first in 0..switches {
        if tier(first) == top || pods[first as usize].is_some() {
            continue;
        }
        let mut stack = vec![first];
        while let Some(switch) = stack.pop() {
            if pods[switch as usize].replace(count).is_some() {
                continue;
            }
            for link in topology.out_links(NodeId(hosts + switch)) {
                let to = topology.link(*link).to.0;
                if to >= hosts && tier(to - hosts) != top && pods[(to - hosts) as usize].is_none() {
                    stack.push(to - hosts);
                }
            }
        }
        count += 1;
    }
    pods
}
