//! Entropy values by the paths on which switches hash them: what profiling the source ports of a testbed finds
//! (Hopper §3.2).

use crate::{plan::Plan, switch};
use anabranch_lb::{
    PacketView, SwitchScheme, Tag,
    registry::{PacketScope, Switch},
};
use anabranch_topology::{NodeId, Routes};

/// Values tried per path before paths without a value are skipped.
const TRIES: u32 = 64;

/// Switch schemes, for their hashes alone: those of a partition's switches are of no use for the whole path.
#[derive(Debug)]
pub(crate) struct Labels {
    /// Per switch and load balancer.
    schemes: Vec<Switch>,
    /// Per switch: its uplinks when nothing has failed.
    uplinks: Vec<u32>,
}

impl Labels {
    pub(crate) fn new(plan: &Plan<'_>) -> Self {
        let infos = (0..plan.topology.switches()).map(|switch| switch::info(plan, NodeId(plan.hosts + switch)));
        let infos: Vec<_> = infos.collect();
        let build = |info| plan.balancers.iter().map(move |balancer| balancer.switch.build(plan.seed, info));
        let schemes = infos.iter().flat_map(build).collect();
        Labels { schemes, uplinks: infos.iter().map(|info| info.own_uplinks()).collect() }
    }

    /// Returns one value per path of a flow, up to `paths`; empty if its switches do not hash.
    pub(crate) fn of(&self, plan: &Plan<'_>, routes: &Routes, flow: u32, paths: u32) -> Vec<Tag> {
        let of = &plan.flows.flow(flow);
        let balancer = plan.balancer_of(of);
        // Values that lead over different paths in one plane may share one in another.
        if plan.packet_scopes[usize::from(balancer)] != PacketScope::Choices || plan.planes > 1 {
            return Vec::new();
        }
        let (src_leaf, dst_leaf) = (plan.leaf[of.src as usize], plan.leaf[of.dst as usize]);
        let mut known: Vec<Vec<u32>> = Vec::new();
        let mut labels = Vec::new();
        for tag in 0..paths.saturating_mul(TRIES) {
            let view = PacketView {
                src: of.src,
                dst: of.dst,
                src_leaf,
                dst_leaf,
                flow: plan.flow_key(flow),
                tag,
                bytes: plan.wire_mtu as u32,
                control: false,
                marked: false,
            };
            let Some(path) = self.path(plan, routes, balancer, &view) else { return Vec::new() };
            if !known.contains(&path) {
                known.push(path);
                labels.push(tag);
                if labels.len() as u32 == paths {
                    break;
                }
            }
        }
        labels
    }

    /// Returns the links between switches that a packet takes; `None` if a switch does not choose by hash, or has no route.
    fn path(&self, plan: &Plan<'_>, routes: &Routes, balancer: u8, packet: &PacketView) -> Option<Vec<u32>> {
        let (mut at, mut path) = (packet.src_leaf, Vec::new());
        while at != packet.dst_leaf {
            let group = routes.group(at, packet.dst_leaf);
            let scheme = &self.schemes[at as usize * plan.balancers.len() + usize::from(balancer)];
            let index = match u32::from(group.len) {
                0 => return None,
                1 => 0,
                count => scheme.by_labels(packet.tag, || *packet, count, self.uplinks[at as usize])?,
            };
            let link = routes.link_of(group, index);
            path.push(link.0);
            at = plan.topology.link(link).to.0 - plan.hosts;
        }
        Some(path)
    }
}
