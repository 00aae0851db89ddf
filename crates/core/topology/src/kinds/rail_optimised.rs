//! Rail-optimised: leaf r of a pod connects NIC r of all servers of the pod, and spines join all leaves.

use super::{
    kind::{Kind, Scale, at_most, counts},
    pods::{Tree, tree_parameters},
};
use crate::{
    TopologyError,
    graph::{Graph, Rails},
};
use anabranch_settings::About;
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "rail-optimised",
    summary: "servers with a NIC per rail: leaf r of a pod connects NIC r of its servers, spines join all leaves",
    source: "NVIDIA DGX SuperPOD H100 reference architecture (RA-11333-001); Alibaba HPN (SIGCOMM 2024)",
    description: "NIC r of server s is host s * rails + r. Without cores the spines are above the leaves of all pods; with \
        cores every pod has spines of its own, and the cores join the pods.",
};

tree_parameters! {
    /// A rail-optimised tree. Oversubscription follows: servers_per_pod * host rate to spines * links_per_spine * link rate.
    pub struct RailOptimisedParameters {
        /// Number of servers.
        servers: u64 = 64, source "RA-11333-001: two scalable units";
        /// Rails: NICs of a server.
        rails: u64 = 8, source "RA-11333-001";
        /// Servers of a pod (a scalable unit, a segment): hosts at each leaf. The last pod has the rest.
        servers_per_pod: u64 = 32, source "RA-11333-001: a scalable unit has 32 servers";
        /// Spines above the leaves of all pods; with `cores`, spines of each pod.
        spines: u64 = 8, source "RA-11333-001, table of larger component counts: 8 for two scalable units";
        /// Parallel cables between a leaf and a spine.
        links_per_spine: u64 = 4, source "RA-11333-001: 512 cables between 16 leaves and 8 spines", Expert;
        /// Cores of a third tier: a multiple of `spines`; spine j of every pod leads to the same cores. 0: two tiers.
        cores: u64 = 0, source "ours";
        /// Parallel cables between a spine and a core.
        links_per_core: u64 = 1, source "ours", Expert;
    }
    with core_link_rate;
    link_rate = Rate::gbps(400), source "RA-11333-001: NDR InfiniBand";
    link_delay = Time::from_ns(500), source "ours";
    switch_latency = Time::from_ns(500);
}

/// Returns the number of pods of a rail fabric, and its leaves.
pub(super) fn pods_and_leaves(servers: u64, rails: u64, servers_per_pod: u64) -> (u64, u64) {
    let pods = servers.div_ceil(servers_per_pod);
    (pods, pods.saturating_mul(rails))
}

impl RailOptimisedParameters {
    fn tree(&self) -> Result<Tree, TopologyError> {
        counts(&[
            ("servers", self.servers),
            ("rails", self.rails),
            ("servers_per_pod", self.servers_per_pod),
            ("spines", self.spines),
            ("links_per_spine", self.links_per_spine),
            ("links_per_core", self.links_per_core),
        ])?;
        at_most("cores", self.cores)?;
        let (pods, leaves) = pods_and_leaves(self.servers, self.rails, self.servers_per_pod);
        if self.cores > 0 && pods == 1 {
            let message = format!(
                "`cores` is {}, and there is one pod; cores join pods: give 0, or `servers_per_pod` below {}",
                self.cores, self.servers
            );
            return Err(TopologyError::at("cores", message));
        }
        let tree = Tree {
            hosts: self.servers.saturating_mul(self.rails),
            leaves,
            groups: if self.cores > 0 { pods } else { 1 },
            middle: "spine",
            spines: self.spines,
            links_per_spine: self.links_per_spine,
            cores: self.cores,
            links_per_core: self.links_per_core,
            planes: self.planes,
        };
        tree.checked("servers")
    }
}

impl Kind for RailOptimisedParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.tree().ok()?.scale())
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        let tree = self.tree()?;
        let (rails, per_pod, pods) = (self.rails as u32, self.servers_per_pod as u32, self.cores > 0);
        let leaf_of = |host: u32| host / rails / per_pod * rails + host % rails;
        let group_of = |leaf: u32| if pods { leaf / rails } else { 0 };
        tree.build_rails(&self.cabling()?, Some(Rails { count: rails, are_joined: true }), leaf_of, group_of)
    }
}
