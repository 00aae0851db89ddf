//! Paths between hosts: the labels over each, and the rates of their links.

use crate::{Fabric, TestbedError, TestbedPlan};
use anabranch_topology::{NodeId, Topology};
use anabranch_units::Rate;
use anabranch_wire::{
    FindLabels, Label, WireParameters,
    paths::{LabelPath, PathRequest, discover, groups},
};
use std::{net::SocketAddrV4, time::Duration};

pub(crate) const PORT: u16 = 7000;
/// Path discoveries per pair of hosts.
const ROUNDS: usize = 5;
const REPLY_TIMEOUT: Duration = Duration::from_millis(200);

/// Labels over a spine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) labels: Vec<Label>,
    plane: u32,
    /// Number of the spine among the uplinks of the leaf; `None`: the path stays within the leaf.
    spine: Option<usize>,
}

/// Returns the paths of each plane in the order of their spines; empty: every label is a path.
pub(crate) fn paths(
    wire: &WireParameters,
    fabric: &Fabric,
    topology: &Topology,
    (from, to): (u32, u32),
) -> Result<Vec<Path>, TestbedError> {
    if wire.find_labels != FindLabels::Paths {
        return Ok(Vec::new());
    }
    let ends = |host: u32| fabric.plan().planes(host as usize);
    let (planes, mut all) = (ends(from).count() as u32, Vec::new());
    for (plane, ((_, leaf), (at, other))) in (0..).zip(ends(from).zip(ends(to))) {
        let labels = wire.labels / planes;
        let mut found = match leaf == other {
            true => vec![Path { labels: (0..labels).collect(), plane, spine: None }],
            false => {
                let found = trace(fabric, from, to, SocketAddrV4::new(at, PORT), labels)?;
                over_spines(fabric.plan(), topology, (plane, leaf), &found)
            }
        };
        found.iter_mut().flat_map(|path| &mut path.labels).for_each(|label| *label = *label * planes + plane);
        all.append(&mut found);
    }
    Ok(all)
}

fn trace(fabric: &Fabric, from: u32, to: u32, at: SocketAddrV4, labels: u32) -> Result<Vec<LabelPath>, TestbedError> {
    let plan = fabric.plan();
    let request = PathRequest { to: at, port: PORT, labels: labels as u16, hops: 2, timeout: REPLY_TIMEOUT };
    // A new interface carries nothing until the kernel has noticed its carrier, at most a second later.
    for _ in 0..ROUNDS {
        let found = fabric.within(from as usize, || discover(&request))??;
        if found.iter().all(|path| path.hops.get(1).is_some_and(Option::is_some)) {
            return Ok(found);
        }
    }
    let (from, to) = (&plan.nodes[from as usize].name, &plan.nodes[to as usize].name);
    Err(TestbedError::Input(format!(
        "the spine of a label from {from} to {to} does not reply; `wire.find_labels = \"all\"` needs no replies"
    )))
}

/// Groups the labels of a plane by the spine that replied as their second hop.
fn over_spines(plan: &TestbedPlan, topology: &Topology, (plane, leaf): (u32, usize), found: &[LabelPath]) -> Vec<Path> {
    let spine = |label: Label| {
        let at = (*found.get(label as usize)?.hops.get(1)?)?.at;
        let cable = plan.cables.iter().find(|cable| cable.lower.node == leaf && cable.upper.address == at)?;
        let leads_there = |link| topology.link(link).to.0 as usize == cable.upper.node;
        topology.uplinks_of(NodeId(leaf as u32)).position(leads_there)
    };
    let path = |labels: Vec<Label>| Path { plane, spine: labels.first().and_then(|label| spine(*label)), labels };
    let mut paths: Vec<Path> = groups(found).paths.into_iter().map(path).collect();
    paths.sort_by_key(|path| path.spine);
    paths
}

/// Returns the rate between the switches of each path, where links have the rates `of_links`; empty: these are unknown, or there
/// is no choice.
pub(crate) fn rates(topology: &Topology, (from, to): (u32, u32), paths: &[Path], of_links: &[Rate]) -> Vec<Rate> {
    if of_links.is_empty() {
        return Vec::new();
    }
    let of = |path: &Path| {
        let [from, to] = [from, to].map(|host| topology.edge_switch_in(host, path.plane));
        topology.path_rates(from, to, &|link| of_links[link.0 as usize]).get(path.spine?).copied()
    };
    paths.iter().map(of).collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Queue;
    use anabranch_settings::Raw;
    use anabranch_topology::TopologyParameters;
    use anabranch_wire::paths::Hop;

    /// Three spines, of which the second has no label and the link down from the third is slower.
    #[test]
    fn paths_have_the_rates_of_their_spines() {
        let mut parameters = TopologyParameters::named("leaf-spine").unwrap();
        for (key, value) in [("leaves", 2), ("spines", 3), ("hosts_per_leaf", 1)] {
            parameters.parameters_mut().set(key, &Raw::Int(value)).unwrap();
        }
        parameters.parameters_mut().set("link_rate", &Raw::Text("100Mbps".into())).unwrap();
        let topology = parameters.build(&|_| Err(std::io::ErrorKind::NotFound.into())).unwrap();
        let queue = Queue { limit: 300_000, marking: None, trimming: false };
        let plan = TestbedPlan::new(&topology, 1500, queue, 1).unwrap();
        let [leaf0, leaf1, spine2] = ["leaf0", "leaf1", "spine2"].map(|name| plan.node(name).unwrap());
        let hop =
            |spine: u8| Some(Hop { at: [10, 100, spine + 1, 2].into(), round_trip: Duration::ZERO, is_last: false });
        let traced = |(label, spine): (u16, u8)| LabelPath {
            label,
            source: PORT,
            destination: PORT + label,
            hops: vec![Some(Hop { at: [10, 1, 1, 1].into(), round_trip: Duration::ZERO, is_last: false }), hop(spine)],
        };
        let found: Vec<LabelPath> = (0..).zip([2, 0, 2, 0]).map(traced).collect();
        let paths = over_spines(&plan, &topology, (0, leaf0), &found);
        let path = |labels: [Label; 2], spine| Path { labels: labels.to_vec(), plane: 0, spine: Some(spine) };
        assert_eq!(paths, [path([1, 3], 0), path([0, 2], 2)]);
        let mut of_links: Vec<Rate> = topology.links.iter().map(|link| link.rate).collect();
        let is_slow = |link: &anabranch_topology::Link| (link.from.0 as usize, link.to.0 as usize) == (spine2, leaf1);
        of_links[topology.links.iter().position(is_slow).unwrap()] = Rate(20_000_000);
        let mbps = |pair, of_links: &[Rate]| {
            rates(&topology, pair, &paths, of_links).iter().map(|rate| rate.0 / 1_000_000).collect::<Vec<_>>()
        };
        assert_eq!(mbps((0, 1), &of_links), [100, 20]);
        assert_eq!(mbps((1, 0), &of_links), [100, 100], "the other direction");
        assert_eq!(mbps((0, 1), &[]), [0u64; 0], "unknown");
    }
}
