//! Leaf-spine: every leaf has a cable (or several) to every spine.

use super::kind::{Kind, Scale, moving, not_too_many, positive, short};
use crate::{LinkClass, TopologyError, build::Builder, graph::Graph};
use anabranch_settings::{About, parameters};
use anabranch_units::{Rate, Time};

const MAX_CABLES: u64 = 1 << 24;

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
        /// Rate of every link.
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

struct Shape {
    leaves: u32,
    spines: u32,
    hosts: u32,
    hosts_per_leaf: u32,
    links_per_spine: u32,
    uplinks: u32,
}

impl Shape {
    fn scale(&self) -> Scale {
        let [hosts, leaves, spines, uplinks] = [self.hosts, self.leaves, self.spines, self.uplinks].map(u64::from);
        Scale { hosts, switches: leaves + spines, leaves, cables: hosts + leaves * uplinks, guide_bytes: 0 }
    }
}

impl LeafSpineParameters {
    fn shape(&self) -> Result<Shape, TopologyError> {
        for (key, value) in [
            ("leaves", self.leaves),
            ("spines", self.spines),
            ("hosts_per_leaf", self.hosts_per_leaf),
            ("links_per_spine", self.links_per_spine),
        ] {
            positive(key, value)?;
            if value > 1 << 16 {
                return Err(TopologyError::at(key, format!("`{key}` is {value}; at most 65536 are allowed")));
            }
        }
        let hosts = not_too_many("leaves", self.leaves * self.hosts_per_leaf)?;
        let uplinks = self.spines * self.links_per_spine;
        let cables = self.leaves.saturating_mul(uplinks);
        if cables > MAX_CABLES {
            let message = format!("`spines` makes {cables} cables between switches; at most {MAX_CABLES} are allowed");
            return Err(TopologyError::at("spines", message));
        }
        Ok(Shape {
            leaves: self.leaves as u32,
            spines: self.spines as u32,
            hosts,
            hosts_per_leaf: self.hosts_per_leaf as u32,
            links_per_spine: self.links_per_spine as u32,
            uplinks: uplinks as u32,
        })
    }
}

impl Kind for LeafSpineParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.shape().ok()?.scale())
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        let Shape { leaves, spines, hosts, hosts_per_leaf, links_per_spine, uplinks } = self.shape()?;
        let rate = moving("link_rate", self.link_rate)?;
        let host_rate = moving("host_link_rate", self.host_link_rate.unwrap_or(rate))?;
        let delay = short("link_delay", self.link_delay)?;
        let host_delay = short("host_link_delay", self.host_link_delay.unwrap_or(delay))?;
        let mut builder = Builder::default();
        builder.hosts(hosts);
        let leaf = builder.switches(leaves, "leaf", 0);
        let spine = builder.switches(spines, "spine", 1);
        for host in 0..hosts {
            builder.cable(host, leaf + host / hosts_per_leaf, host_rate, host_delay, LinkClass::Host);
        }
        for (l, s) in (0..leaves).flat_map(|l| (0..spines).map(move |s| (l, s))) {
            for _ in 0..links_per_spine {
                builder.cable(leaf + l, spine + s, rate, delay, LinkClass::Tier { lower: 0 });
            }
        }
        builder.finish(short("switch_latency", self.switch_latency)?, vec![uplinks])
    }
}
