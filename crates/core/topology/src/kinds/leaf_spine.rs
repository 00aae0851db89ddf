//! Leaf-spine: every leaf has a cable (or several) to every spine.

use super::{
    kind::{Kind, Scale, counts},
    pods::{Tree, tree_parameters},
};
use crate::{TopologyError, graph::Graph};
use anabranch_settings::About;
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "leaf-spine",
    summary: "two tiers with any number of leaves, spines and hosts",
    source: "specification 10.6",
    description: "",
};

tree_parameters! {
    /// Leaf-spine. Oversubscription follows: hosts_per_leaf * host rate to spines * links_per_spine * uplink rate.
    pub struct LeafSpineParameters {
        /// Number of leaves.
        leaves: u64 = 8, source "Hopper §4.1.1";
        /// Number of spines.
        spines: u64 = 8, source "Hopper §4.1.1";
        /// Hosts at each leaf.
        hosts_per_leaf: u64 = 16, source "Hopper §4.1.1";
        /// Parallel cables between a leaf and a spine.
        links_per_spine: u64 = 1, source "ours", Expert;
    }
    link_rate = Rate::gbps(100), source "Hopper §4.1.1";
    link_delay = Time::from_us(1), source "Hopper §4.1.1";
    switch_latency = Time::ZERO;
}

impl LeafSpineParameters {
    fn tree(&self) -> Result<Tree, TopologyError> {
        counts(&[
            ("leaves", self.leaves),
            ("spines", self.spines),
            ("hosts_per_leaf", self.hosts_per_leaf),
            ("links_per_spine", self.links_per_spine),
        ])?;
        let tree = Tree {
            hosts: self.leaves * self.hosts_per_leaf,
            leaves: self.leaves,
            groups: 1,
            middle: "spine",
            spines: self.spines,
            links_per_spine: self.links_per_spine,
            cores: 0,
            links_per_core: 0,
            planes: self.planes,
        };
        tree.checked("leaves")
    }
}

impl Kind for LeafSpineParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.tree().ok()?.scale())
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        self.tree()?.build(&self.cabling()?)
    }
}
