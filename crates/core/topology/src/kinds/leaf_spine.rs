//! Leaf-spine: every leaf has a cable (or several) to every spine.

use super::{
    kind::{Kind, Scale, counts},
    pods::{Cabling, Tree},
};
use crate::{TopologyError, graph::Graph};
use anabranch_settings::{About, parameters};
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "leaf-spine",
    summary: "two tiers with any number of leaves, spines and hosts",
    source: "specification 10.6",
    description: "",
};

parameters! {
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
        /// Planes: fabrics of this shape side by side, over which every host has its rate in equal parts.
        planes: u64 = 1, source "ours";
        /// Rate of every link, of several planes over all of them.
        link_rate: Rate = Rate::gbps(100), source "Hopper §4.1.1";
        /// Rate of links to hosts; "": as `link_rate`.
        host_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Delay of every link.
        link_delay: Time = Time::from_us(1), source "Hopper §4.1.1";
        /// Delay of links to hosts; "": as `link_delay`.
        host_link_delay: Option<Time> = None, source "ours", Expert;
        /// Time a packet spends in a switch before it reaches its output port.
        switch_latency: Time = Time::ZERO, source "ours", Expert;
    }
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
        let (links, hosts) = ((self.link_rate, self.link_delay), (self.host_link_rate, self.host_link_delay));
        self.tree()?.build(&Cabling::checked(links, hosts, None, self.switch_latency, self.planes)?)
    }
}
