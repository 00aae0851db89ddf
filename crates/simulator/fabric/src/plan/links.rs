//! Directed links with their canonical ranks.

use crate::event::MAX_ENTITIES;
use anabranch_random::key;
use anabranch_topology::{LinkId, NodeId, NodeKind, Topology};
use anabranch_units::Rate;

#[derive(Clone, Debug)]
pub(crate) struct LinkPlan {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) rate: Rate,
    /// Propagation delay and latency of the switch it leads to, in picoseconds.
    pub(crate) delay: u64,
    pub(crate) rank: u32,
    /// Stable key for random streams.
    pub(crate) key: u64,
}

/// Returns the links with their ranks: by receiving node (stable name), then by a seeded permutation, so that no port
/// always wins a synchronous start. Fails if there are more links than ranks.
pub(crate) fn links(topology: &Topology, seed: u64) -> Result<Vec<LinkPlan>, String> {
    if topology.links.len().max(topology.nodes.len()) >= MAX_ENTITIES as usize {
        return Err(format!("{} links; expected fewer than {MAX_ENTITIES}", topology.links.len()));
    }
    let mut name = String::new();
    let mut plans: Vec<LinkPlan> = topology
        .links
        .iter()
        .enumerate()
        .map(|(index, link)| {
            topology.write_link_name(LinkId(index as u32), &mut name);
            let to_switch = matches!(topology.node(link.to).kind, NodeKind::Switch { .. });
            let latency = if to_switch { topology.switch_latency.ps() } else { 0 };
            let (from, to) = (link.from.0, link.to.0);
            LinkPlan {
                from,
                to,
                rate: link.rate,
                delay: link.delay.ps() + latency,
                rank: 0,
                key: anabranch_random::name_key(&name),
            }
        })
        .collect();
    let keys: Vec<u64> = (0..topology.nodes.len() as u32).map(|node| topology.key(NodeId(node))).collect();
    let mut ranked: Vec<(u64, u64, u32)> = (0..plans.len())
        .map(|i| (keys[plans[i].to as usize], key(seed, plans[i].key, "ingress rank"), i as u32))
        .collect();
    ranked.sort_unstable();
    for (rank, &(_, _, link)) in ranked.iter().enumerate() {
        plans[link as usize].rank = rank as u32;
    }
    Ok(plans)
}
