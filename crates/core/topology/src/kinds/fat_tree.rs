//! Fat trees of switches of one radix k, with more hosts per leaf where they are oversubscribed.
//!
//! Two tiers: k leaves with k/2 hosts each, k/2 spines. Three tiers: k pods of k/2 leaves and k/2 aggregation switches,
//! (k/2)^2 cores; aggregation switch j of every pod has cables to the cores j*k/2 .. j*k/2 + k/2 - 1.

use super::{
    kind::{Kind, Scale},
    pods::{Tree, tree_parameters},
};
use crate::{TopologyError, graph::Graph};
use anabranch_settings::About;
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "fat-tree",
    summary: "non-blocking tree of 2 or 3 tiers of switches of one radix",
    source: "PRIME, Table I; specification 10.6",
    description: "",
};

tree_parameters! {
    /// A fat tree.
    pub struct FatTreeParameters {
        /// Tiers of switches: 2 or 3.
        tiers: u64 = 2, source "PRIME, Table I";
        /// Ports of a switch, even.
        radix: u64 = 16, source "PRIME, Table I";
        /// Hosts per uplink of a leaf: 1 is non-blocking, 2 gives every leaf twice as many hosts.
        oversubscription: u64 = 1, source "PRIME, Table I; 2: ConWeave's fat trees (specification 17.1)";
    }
    link_rate = Rate::gbps(400), source "ours: the paper's rates are lost (specification 5.2)";
    link_delay = Time::from_us(1), source "ours: the paper's delay is lost (specification 5.2)";
    switch_latency = Time::ZERO;
}

impl FatTreeParameters {
    fn tree(&self) -> Result<Tree, TopologyError> {
        let k = self.radix;
        if !(2..=3).contains(&self.tiers) {
            return Err(TopologyError::at("tiers", format!("`tiers` is {}; a fat tree has 2 or 3", self.tiers)));
        }
        if k % 2 == 1 || !(2..=1024).contains(&k) {
            let near = k.saturating_add(k % 2).clamp(2, 1024);
            let message = format!("`radix` is {k}; an even number from 2 to 1024 is needed, for example {near}");
            return Err(TopologyError::at("radix", message));
        }
        if !(1..=64).contains(&self.oversubscription) {
            let message =
                format!("`oversubscription` is {}; a whole number from 1 to 64 is needed", self.oversubscription);
            return Err(TopologyError::at("oversubscription", message));
        }
        // Uplinks of a leaf and of an aggregation switch.
        let half = k / 2;
        let (leaves, groups, middle, cores) =
            if self.tiers == 3 { (k * half, k, "agg", half * half) } else { (k, 1, "spine", 0) };
        let hosts = leaves * half * self.oversubscription;
        let planes = self.planes;
        let tree =
            Tree { hosts, leaves, groups, middle, spines: half, links_per_spine: 1, cores, links_per_core: 1, planes };
        tree.checked(if self.oversubscription > 1 { "oversubscription" } else { "radix" })
    }
}

impl Kind for FatTreeParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.tree().ok()?.scale())
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        self.tree()?.build(&self.cabling()?)
    }
}
