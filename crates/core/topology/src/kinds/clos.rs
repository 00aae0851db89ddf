//! Clos: pods of leaves and spines with any numbers, joined by cores.

use super::{
    kind::{Kind, Scale},
    pods::{Cabling, Tree, counts},
};
use crate::{TopologyError, graph::Graph};
use anabranch_settings::{About, parameters};
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "clos",
    summary: "three tiers with any number of pods, leaves, spines and cores, oversubscribed where their numbers say so",
    source: "ours: for published clusters such as Meta's (arXiv 2407.21783, section 3.3.1)",
    description: "",
};

parameters! {
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
        links_per_spine: u64 = 1, source "ours";
        /// Number of cores: a multiple of `spines_per_pod`; spine j of every pod leads to the same cores.
        cores: u64 = 16, source "ours";
        /// Parallel cables between a spine and a core.
        links_per_core: u64 = 1, source "ours";
        /// Rate of every link.
        link_rate: Rate = Rate::gbps(400), source "arXiv 2407.21783, section 3.3.1";
        /// Rate of links to hosts; "": as `link_rate`.
        host_link_rate: Option<Rate> = None, source "ours";
        /// Rate of links to cores; "": as `link_rate`.
        core_link_rate: Option<Rate> = None, source "ours";
        /// Delay of every link.
        link_delay: Time = Time::from_ns(500), source "ours";
        /// Delay of links to hosts; "": as `link_delay`.
        host_link_delay: Option<Time> = None, source "ours";
        /// Time a packet spends in a switch before it reaches its output port.
        switch_latency: Time = Time::from_ns(500), source "ours";
    }
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
            spines: self.spines_per_pod,
            links_per_spine: self.links_per_spine,
            cores: self.cores,
            links_per_core: self.links_per_core,
        };
        tree.checked("pods")
    }
}

impl Kind for ClosParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.tree().ok()?.scale())
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        let tree = self.tree()?;
        let (per_leaf, per_pod) = (self.hosts_per_leaf as u32, self.leaves_per_pod as u32);
        let cabling = Cabling {
            link_rate: self.link_rate,
            host_link_rate: self.host_link_rate,
            core_link_rate: self.core_link_rate,
            link_delay: self.link_delay,
            host_link_delay: self.host_link_delay,
            switch_latency: self.switch_latency,
        };
        tree.build(&cabling, None, |host| host / per_leaf, |leaf| leaf / per_pod)
    }
}
