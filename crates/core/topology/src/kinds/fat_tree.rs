//! Fat trees of switches of one radix k, with more hosts per leaf where they are oversubscribed.
//!
//! Two tiers: k leaves with k/2 hosts each, k/2 spines. Three tiers: k pods of k/2 leaves and k/2 aggregation switches,
//! (k/2)^2 cores; aggregation switch j of every pod has cables to the cores j*k/2 .. j*k/2 + k/2 - 1.

use super::kind::{Kind, Scale, moving, not_too_many, short};
use crate::{LinkClass, TopologyError, build::Builder, graph::Graph};
use anabranch_settings::{About, parameters};
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "fat-tree",
    summary: "non-blocking tree of 2 or 3 tiers of switches of one radix",
    source: "PRIME, Table I; specification 10.6",
    description: "",
};

parameters! {
    /// A fat tree.
    pub struct FatTreeParameters {
        /// Tiers of switches: 2 or 3.
        tiers: u64 = 2, source "PRIME, Table I";
        /// Ports of a switch, even.
        radix: u64 = 16, source "PRIME, Table I";
        /// Hosts per uplink of a leaf: 1 is non-blocking, 2 gives every leaf twice as many hosts.
        oversubscription: u64 = 1, source "PRIME, Table I; 2: ConWeave's fat trees (specification 17.1)";
        /// Rate of every link.
        link_rate: Rate = Rate::gbps(400), source "ours: the paper's rates are lost (specification 5.2)";
        /// Rate of links to hosts; "": as `link_rate`.
        host_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Delay of every link.
        link_delay: Time = Time::from_us(1), source "ours: the paper's delay is lost (specification 5.2)";
        /// Delay of links to hosts; "": as `link_delay`.
        host_link_delay: Option<Time> = None, source "ours", Expert;
        /// Time a packet spends in a switch before it reaches its output port.
        switch_latency: Time = Time::ZERO, source "ours", Expert;
    }
}

struct Shape {
    three: bool,
    /// Half the radix: uplinks of a leaf and of an aggregation switch.
    half: u32,
    hosts: u32,
    per_leaf: u32,
    leaves: u32,
    aggs: u32,
    top: u32,
}

impl Shape {
    fn scale(&self) -> Scale {
        let [hosts, leaves, aggs, top, half] = [self.hosts, self.leaves, self.aggs, self.top, self.half].map(u64::from);
        let cables = hosts + (leaves + aggs) * half;
        Scale { hosts, switches: leaves + aggs + top, leaves, cables, guide_bytes: 0 }
    }
}

impl FatTreeParameters {
    fn shape(&self) -> Result<Shape, TopologyError> {
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
        let (three, half) = (self.tiers == 3, k / 2);
        let (leaves, aggs, top) = if three { (k * half, k * half, half * half) } else { (k, 0, half) };
        let per_leaf = half * self.oversubscription;
        let key = if self.oversubscription > 1 { "oversubscription" } else { "radix" };
        let hosts = not_too_many(key, leaves * per_leaf)?;
        let [half, per_leaf, leaves, aggs, top] = [half, per_leaf, leaves, aggs, top].map(|count| count as u32);
        Ok(Shape { three, half, hosts, per_leaf, leaves, aggs, top })
    }
}

impl Kind for FatTreeParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.shape().ok()?.scale())
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        let Shape { three, half, hosts, per_leaf, leaves, aggs, top } = self.shape()?;
        let rate = moving("link_rate", self.link_rate)?;
        let delay = short("link_delay", self.link_delay)?;
        let host_rate = moving("host_link_rate", self.host_link_rate.unwrap_or(rate))?;
        let host_delay = short("host_link_delay", self.host_link_delay.unwrap_or(delay))?;
        let mut builder = Builder::default();
        builder.hosts(hosts);
        let leaf = builder.switches(leaves, "leaf", 0);
        for host in 0..hosts {
            builder.cable(host, leaf + host / per_leaf, host_rate, host_delay, LinkClass::Host);
        }
        let lower = LinkClass::Tier { lower: 0 };
        if !three {
            let spine = builder.switches(top, "spine", 1);
            for (l, s) in (0..leaves).flat_map(|l| (0..half).map(move |s| (l, s))) {
                builder.cable(leaf + l, spine + s, rate, delay, lower);
            }
            return builder.finish(short("switch_latency", self.switch_latency)?, vec![half]);
        }
        let agg = builder.switches(aggs, "agg", 1);
        let core = builder.switches(top, "core", 2);
        for (l, j) in (0..leaves).flat_map(|l| (0..half).map(move |j| (l, j))) {
            builder.cable(leaf + l, agg + l / half * half + j, rate, delay, lower);
        }
        for (a, j) in (0..aggs).flat_map(|a| (0..half).map(move |j| (a, j))) {
            builder.cable(agg + a, core + a % half * half + j, rate, delay, LinkClass::Tier { lower: 1 });
        }
        builder.finish(short("switch_latency", self.switch_latency)?, vec![half, half])
    }
}
