use crate::{
    LinkId, NodeId, Routes, Topology,
    paths::{along, base_costs, base_ports, follow_hosts},
};
use std::sync::Arc;

/// Base paths between many pairs of hosts on the intact graph. With guided paths, where the fastest path may not be a
/// shortest one, the tree towards an edge switch is computed once.
#[derive(Clone, Debug, Default)]
pub struct BasePaths {
    routes: Option<Arc<Routes>>,
    /// Port of every switch on the path to an edge switch, with guided paths only.
    ports: rustc_hash::FxHashMap<NodeId, Box<[u16]>>,
    costs: Box<[u64]>,
    /// Bytes of the packet for which paths are fastest, in any topology.
    packet: Option<u64>,
    path: Vec<LinkId>,
}

impl BasePaths {
    /// Creates paths that are the fastest for a packet of `packet` bytes, of any number of hops; `path` returns these.
    pub fn fastest(packet: u64) -> Self {
        BasePaths { packet: Some(packet), ..BasePaths::default() }
    }

    /// Returns the path of [`Topology::base_path`].
    pub fn path(&mut self, topology: &Topology, src: u32, dst: u32) -> &[LinkId] {
        self.path_in(topology, src, dst, 0)
    }

    /// Returns the path of [`BasePaths::path`] in a plane.
    pub fn path_in(&mut self, topology: &Topology, src: u32, dst: u32, plane: u32) -> &[LinkId] {
        self.path.clear();
        if topology.guidance.is_none() && self.packet.is_none() {
            let routes = self.routes.get_or_insert_with(|| topology.routes());
            let first = |at: NodeId, to: NodeId| routes.first(at.0 - topology.hosts, to.0 - topology.hosts);
            follow_hosts(topology, first, (src, dst), plane, &mut self.path);
            return &self.path;
        }
        if self.costs.is_empty() {
            self.costs = base_costs(topology, self.packet);
        }
        let to = topology.edge_switch_in(dst, plane);
        let ports = self.ports.entry(to).or_insert_with(|| base_ports(topology, to, &self.costs, true));
        follow_hosts(topology, along(topology, ports), (src, dst), plane, &mut self.path);
        &self.path
    }
}
