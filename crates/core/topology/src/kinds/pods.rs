//! Common part of the trees: leaves with hosts, spines above groups of leaves, cores above the spines.

use super::kind::{Scale, at_most_planes, few_cables, moving, not_too_many, per_plane, short};
use crate::{LinkClass, TopologyError, build::Builder, graph::Graph, graph::Rails};
use anabranch_units::{Rate, Time};

/// Numbers of switches and cables of a tree. A *group* is a set of leaves with the same spines.
#[derive(Clone, Copy)]
pub(super) struct Tree {
    pub(super) hosts: u64,
    pub(super) leaves: u64,
    pub(super) groups: u64,
    /// Name of the spines.
    pub(super) middle: &'static str,
    /// Spines of a group; 0: the leaf of each group is alone.
    pub(super) spines: u64,
    pub(super) links_per_spine: u64,
    /// Cores of all groups; core k is above spine k / (cores / spines) of every group. 0: no third tier.
    pub(super) cores: u64,
    pub(super) links_per_core: u64,
    /// Number of such trees: each is a plane.
    pub(super) planes: u64,
}

/// Rates and delays of a plane's links to hosts, to spines and to cores, the latency of a switch, and the number of planes.
pub(super) struct Cabling {
    pub(super) links: [(Rate, Time); 3],
    pub(super) latency: Time,
    pub(super) planes: u32,
}

impl Cabling {
    /// Checks rates and delays; those of links to hosts and cores are by default those of every link. The planes share rates.
    pub(super) fn checked(
        (rate, delay): (Rate, Time),
        hosts: (Option<Rate>, Option<Time>),
        core_rate: Option<Rate>,
        latency: Time,
        planes: u64,
    ) -> Result<Self, TopologyError> {
        let rate = per_plane("link_rate", moving("link_rate", rate)?, planes)?;
        let own = |key: &str, own: Option<Rate>| own.map_or(Ok(rate), |own| per_plane(key, moving(key, own)?, planes));
        let (host_rate, core_rate) = (own("host_link_rate", hosts.0)?, own("core_link_rate", core_rate)?);
        short("link_delay", delay)?;
        let host_delay = short("host_link_delay", hosts.1.unwrap_or(delay))?;
        let links = [(host_rate, host_delay), (rate, delay), (core_rate, delay)];
        Ok(Cabling { links, latency: short("switch_latency", latency)?, planes: planes as u32 })
    }
}

/// Declares the parameters of a tree of up to three tiers: its own, then rates and delays of its cables, which
/// `cabling()` returns. A tree with cores names the key of their rate.
macro_rules! tree_parameters {
    ($(#[doc = $title:literal])* pub struct $name:ident {
        $($(#[doc = $meaning:literal])+ $field:ident: $kind:ty = $default:expr, source $source:literal $(, $level:ident)?;)*
    } $(with $core_link_rate:ident;)?
    link_rate = $rate:expr, source $rate_source:literal;
    link_delay = $delay:expr, source $delay_source:literal;
    switch_latency = $latency:expr;) => {
        anabranch_settings::parameters! {
            $(#[doc = $title])*
            pub struct $name {
                $($(#[doc = $meaning])+ $field: $kind = $default, source $source $(, $level)?;)*
                /// Planes: fabrics of this shape side by side, over which every host has its rate in equal parts.
                planes: u64 = 1, source "ours";
                /// Rate of every link, of several planes over all of them.
                link_rate: anabranch_units::Rate = $rate, source $rate_source;
                /// Rate of links to hosts; "": as `link_rate`.
                host_link_rate: Option<anabranch_units::Rate> = None, source "ours", Expert;
                $(/// Rate of links to cores; "": as `link_rate`.
                $core_link_rate: Option<anabranch_units::Rate> = None, source "ours", Expert;)?
                /// Delay of every link.
                link_delay: anabranch_units::Time = $delay, source $delay_source;
                /// Delay of links to hosts; "": as `link_delay`.
                host_link_delay: Option<anabranch_units::Time> = None, source "ours", Expert;
                /// Time a packet spends in a switch before it reaches its output port.
                switch_latency: anabranch_units::Time = $latency, source "ours", Expert;
            }
        }

        impl $name {
            fn cabling(&self) -> Result<$crate::kinds::pods::Cabling, TopologyError> {
                let (links, hosts) = ((self.link_rate, self.link_delay), (self.host_link_rate, self.host_link_delay));
                let core_rate = [$(self.$core_link_rate,)? None][0];
                $crate::kinds::pods::Cabling::checked(links, hosts, core_rate, self.switch_latency, self.planes)
            }
        }
    };
}

pub(super) use tree_parameters;

impl Tree {
    /// Checks the size; `hosts_key` is at fault where there are too many hosts.
    pub(super) fn checked(self, hosts_key: &str) -> Result<Self, TopologyError> {
        at_most_planes(self.planes)?;
        not_too_many(hosts_key, self.hosts)?;
        if self.cores > 0 && !self.cores.is_multiple_of(self.spines) {
            let near = self.cores.next_multiple_of(self.spines);
            let message = format!(
                "`cores` is {}; a multiple of the {} spines of a pod is needed, for example {near}: every spine has cores of \
                 its own",
                self.cores, self.spines
            );
            return Err(TopologyError::at("cores", message));
        }
        few_cables("spines", self.lower_cables().saturating_mul(self.planes))?;
        few_cables("cores", self.upper_cables().saturating_mul(self.planes))?;
        Ok(self)
    }

    fn lower_cables(&self) -> u64 {
        self.leaves.saturating_mul(self.spines).saturating_mul(self.links_per_spine)
    }

    fn upper_cables(&self) -> u64 {
        self.groups.saturating_mul(self.cores).saturating_mul(self.links_per_core)
    }

    pub(super) fn scale(&self) -> Scale {
        let switches = (self.leaves + self.groups * self.spines + self.cores) * self.planes;
        let cables = (self.hosts + self.lower_cables() + self.upper_cables()) * self.planes;
        Scale { hosts: self.hosts, switches, leaves: self.leaves, cables, guide_bytes: 0 }
    }

    /// Builds the graph, hosts and leaves in blocks.
    pub(super) fn build(&self, cabling: &Cabling) -> Result<Graph, TopologyError> {
        let [per_leaf, per_group] = [self.hosts / self.leaves, self.leaves / self.groups].map(|count| count as u32);
        self.build_rails(cabling, None, |host| host / per_leaf, |leaf| leaf / per_group)
    }

    /// Builds the graph. `leaf_of` returns the leaf of a host, `group_of` the group of a leaf.
    pub(super) fn build_rails(
        &self,
        cabling: &Cabling,
        rails: Option<Rails>,
        leaf_of: impl Fn(u32) -> u32,
        group_of: impl Fn(u32) -> u32,
    ) -> Result<Graph, TopologyError> {
        let [to_host, to_spine, to_core] = cabling.links;
        let [hosts, leaves, groups, spines, cores] =
            [self.hosts, self.leaves, self.groups, self.spines, self.cores].map(|count| count as u32);
        let mut builder = Builder::default();
        builder.hosts(hosts);
        builder.planes(cabling.planes);
        let above = cores.checked_div(spines).unwrap_or(0);
        for plane in 0..cabling.planes {
            let name = |name: &str| if cabling.planes > 1 { format!("p{plane}.{name}") } else { name.to_string() };
            let leaf = builder.switches(leaves, &name("leaf"), 0);
            let spine = builder.switches(groups * spines, &name(self.middle), 1);
            let core = builder.switches(cores, &name("core"), 2);
            for host in 0..hosts {
                builder.cable(host, leaf + leaf_of(host), to_host, LinkClass::Host);
            }
            for (l, s) in (0..leaves).flat_map(|l| (0..spines).map(move |s| (l, s))) {
                for _ in 0..self.links_per_spine {
                    let upper = spine + group_of(l) * spines + s;
                    builder.cable(leaf + l, upper, to_spine, LinkClass::Tier { lower: 0 });
                }
            }
            for (s, k) in (0..groups * spines).flat_map(|s| (0..above).map(move |k| (s, k))) {
                for _ in 0..self.links_per_core {
                    let upper = core + s % spines * above + k;
                    builder.cable(spine + s, upper, to_core, LinkClass::Tier { lower: 1 });
                }
            }
        }
        builder.rails(rails);
        let uplinks = [spines * self.links_per_spine as u32, above * self.links_per_core as u32];
        builder.finish(cabling.latency, uplinks.into_iter().take_while(|uplinks| *uplinks > 0).collect())
    }
}
