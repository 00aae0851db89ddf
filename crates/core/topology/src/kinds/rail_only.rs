//! Rail-only: the leaves of a rail are joined within the rail alone; no link leads from one rail to another.

use super::{
    kind::{Kind, Scale, at_most, counts},
    pods::{Tree, tree_parameters},
    rail_optimised::pods_and_leaves,
};
use crate::{
    TopologyError,
    graph::{Graph, Rails},
};
use anabranch_settings::About;
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "rail-only",
    summary: "servers with a NIC per rail, every rail a network of its own: no links between rails",
    source: "Wang et al., Rail-only (arXiv 2307.12169)",
    description: "NIC r of server s is host s * rails + r. Traffic between rails crosses the scale-up network of a server \
        (`[servers]` with `cross_rail = \"pxn\"`).",
};

tree_parameters! {
    /// A rail-only fabric: one leaf-spine per rail, or one switch per rail where a leaf has a port for every server.
    pub struct RailOnlyParameters {
        /// Number of servers.
        servers: u64 = 16, source "ours";
        /// Rails: NICs of a server.
        rails: u64 = 8, source "ours: an HGX H100 server has 8 NICs";
        /// Servers of a pod: hosts at each leaf. The last pod has the rest.
        servers_per_pod: u64 = 16, source "ours";
        /// Spines of each rail; 0 where there is one pod: the rail is a single switch.
        spines: u64 = 0, source "arXiv 2307.12169: rails need no spine up to the radix of a switch";
        /// Parallel cables between a leaf and a spine of its rail.
        links_per_spine: u64 = 1, source "ours", Expert;
    }
    link_rate = Rate::gbps(400), source "arXiv 2307.12169";
    link_delay = Time::from_ns(500), source "ours";
    switch_latency = Time::from_ns(500);
}

impl RailOnlyParameters {
    fn tree(&self) -> Result<Tree, TopologyError> {
        counts(&[
            ("servers", self.servers),
            ("rails", self.rails),
            ("servers_per_pod", self.servers_per_pod),
            ("links_per_spine", self.links_per_spine),
        ])?;
        at_most("spines", self.spines)?;
        if self.servers == 1 {
            let message = "`servers` is 1; a rail joins 2 or more servers";
            return Err(TopologyError::at("servers", message));
        }
        let (pods, leaves) = pods_and_leaves(self.servers, self.rails, self.servers_per_pod);
        if self.spines == 0 && pods > 1 {
            let message = format!(
                "`spines` is 0, and each rail has {pods} leaves; give spines that join them, or `servers_per_pod` = {}",
                self.servers
            );
            return Err(TopologyError::at("spines", message));
        }
        let tree = Tree {
            hosts: self.servers.saturating_mul(self.rails),
            leaves,
            groups: self.rails,
            middle: "spine",
            spines: self.spines,
            links_per_spine: self.links_per_spine,
            cores: 0,
            links_per_core: 0,
            planes: self.planes,
        };
        tree.checked("servers")
    }
}

impl Kind for RailOnlyParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.tree().ok()?.scale())
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        let tree = self.tree()?;
        let (rails, per_pod) = (self.rails as u32, self.servers_per_pod as u32);
        let leaf_of = |host: u32| host / rails / per_pod * rails + host % rails;
        tree.build_rails(&self.cabling()?, Some(Rails { count: rails, are_joined: rails == 1 }), leaf_of, |leaf| {
            leaf % rails
        })
    }
}
