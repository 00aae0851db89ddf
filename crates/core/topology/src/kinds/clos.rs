//! Clos: pods of leaves and spines with any numbers, joined by cores.

use super::{
    kind::{Kind, Scale, counts},
    pods::{Tree, tree_parameters},
};
use crate::{TopologyError, graph::Graph};
use anabranch_settings::About;
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "clos",
    summary: "three tiers with any number of pods, leaves, spines and cores, oversubscribed or not",
    source: "ours: for published clusters such as Meta's (arXiv 2407.21783, section 3.3.1)",
    description: "",
};

tree_parameters! {
    /// A three-tier Clos network. The oversubscription of a tier follows from the numbers of its links.
    pub struct ClosParameters {
        /// Number of pods.
        pods: u64 = 2, source "ours";
        /// Leaves of a pod.
        leaves_per_pod: u64 = 8, source "ours";
        /// Hosts at each leaf.
        hosts_per_leaf: u64 = 16, source "arXiv 2407.21783, section 3.3.1: a rack of two servers with 8 GPUs each";
        /// Spines of a pod.
        spines_per_pod: u64 = 16, source "ours";
        /// Parallel cables between a leaf and a spine of its pod.
        links_per_spine: u64 = 1, source "ours", Expert;
        /// Number of cores: a multiple of `spines_per_pod`; spine j of every pod leads to the same cores.
        cores: u64 = 16, source "ours";
        /// Parallel cables between a spine and a core.
        links_per_core: u64 = 1, source "ours", Expert;
    }
    with core_link_rate;
    link_rate = Rate::gbps(400), source "arXiv 2407.21783, section 3.3.1";
    link_delay = Time::from_ns(500), source "ours";
    switch_latency = Time::from_ns(500);
}

impl ClosParameters {
    fn tree(&self) -> Result<Tree, TopologyError> {
        counts(&[
            ("pods", self.pods),
            ("leaves_per_pod", self.leaves_per_pod),
            ("hosts_per_leaf", self.hosts_per_leaf),
            ("spines_per_pod", self.spines_per_pod),
            ("links_per_spine", self.links_per_spine),
            ("cores", self.cores),
            ("links_per_core", self.links_per_core),
        ])?;
        let leaves = self.pods.saturating_mul(self.leaves_per_pod);
        let tree = Tree {
            hosts: leaves.saturating_mul(self.hosts_per_leaf),
            leaves,
            groups: self.pods,
            middle: "spine",
            spines: self.spines_per_pod,
            links_per_spine: self.links_per_spine,
            cores: self.cores,
            links_per_core: self.links_per_core,
            planes: self.planes,
        };
        tree.checked("pods")
    }
}

impl Kind for ClosParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.tree().ok()?.scale())
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        self.tree()?.build(&self.cabling()?)
    }
}
