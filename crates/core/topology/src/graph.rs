//! The graph: hosts, switches and directed links.

use crate::{families::families, guidance::Guidance};
use anabranch_units::{Rate, Serialiser, Time};
use thiserror::Error;

/// A node: hosts come first (`0..hosts`), then switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A directed link. The two directions of a cable are `2k` and `2k + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// Returns the other direction of the same cable.
    pub fn reverse(self) -> LinkId {
        LinkId(self.0 ^ 1)
    }
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// A host with one NIC, of one port per plane.
    Host,
    /// A switch; hosts attach to tier 0.
    Switch {
        /// Its tier.
        tier: u8,
    },
}

/// A host or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Stable name: `host3`, `leaf0`, `spine2`, `agg1`, `core5`; `p1.leaf0` is in plane 1, `sw4.7` is switch 7 of group 4.
    pub name: String,
    /// Host or switch.
    pub kind: NodeKind,
}

/// Class of a link, by which overrides and tables address it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkClass {
    /// Between a host and its switch.
    Host,
    /// Between switches of tier `lower` and the next tier up (fat trees and leaf-spine).
    Tier {
        /// The lower of the two tiers.
        lower: u8,
    },
    /// Inside a group (Dragonfly, Slim Fly).
    Local,
    /// Between groups (Dragonfly, Slim Fly).
    Global,
}

/// A directed link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Node where packets enter it.
    pub from: NodeId,
    /// Node where packets leave it.
    pub to: NodeId,
    /// Its rate.
    pub rate: Rate,
    /// Its propagation delay.
    pub delay: Time,
    /// Its class.
    pub class: LinkClass,
}

impl LinkClass {
    /// Returns the name that overrides and tables use: `host`, `tier0-1`, `local`, `global`.
    pub fn name(self) -> String {
        match self {
            LinkClass::Host => "host".into(),
            LinkClass::Tier { lower } => format!("tier{lower}-{}", lower + 1),
            LinkClass::Local => "local".into(),
            LinkClass::Global => "global".into(),
        }
    }
}

/// Rails of a fabric: host h is on rail h % `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rails {
    /// Number of rails: NICs of a server.
    pub count: u32,
    /// `true` if links lead from one rail to another.
    pub are_joined: bool,
}

/// Reason why a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct TopologyError {
    /// The key of the scenario at fault, if it is a single one.
    pub key: Option<String>,
    /// The error, the allowed values and the remedy.
    pub message: String,
}

/// The graph of a fabric: nodes, directed links, and the latency of every switch.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Hosts first, then switches.
    pub nodes: Vec<Node>,
    /// Directed links, in pairs.
    pub links: Vec<Link>,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of planes: fabrics of one shape without a common switch. Every host has a port in each, and switches are
    /// numbered plane by plane.
    pub planes: u32,
    /// Time a packet spends in a switch before it reaches the output port.
    pub switch_latency: Time,
    /// Uplinks per tier of a plane as multi-part entropy values count them (leaf first); empty if the topology has no tiers.
    pub uplinks: Vec<u32>,
    /// Group of each switch, counted from the first switch (Dragonfly, Slim Fly); empty if there are no groups.
    pub groups: Vec<u32>,
    /// Routing rules of its source-guided paths; `None` if it has none.
    pub guidance: Option<Guidance>,
    /// Rails, where the fabric is wired by rails.
    pub rails: Option<Rails>,
    /// Links leaving each node, in port order: `ports[first[n]..first[n + 1]]`.
    pub(crate) first: Vec<u32>,
    pub(crate) ports: Vec<LinkId>,
    /// Number of each directed link among parallel cables between the same nodes, from 0.
    pub(crate) parallel: Vec<u16>,
}

impl TopologyError {
    /// Returns an error in the key `key`.
    pub fn at(key: &str, message: impl Into<String>) -> Self {
        TopologyError { key: Some(key.to_string()), message: message.into() }
    }
    /// Returns an error that no single key causes.
    pub fn new(message: impl Into<String>) -> Self {
        TopologyError { key: None, message: message.into() }
    }
}

impl Graph {
    /// Returns the number of switches.
    pub fn switches(&self) -> u32 {
        self.nodes.len() as u32 - self.hosts
    }

    /// Returns a node.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.0 as usize]
    }

    /// Returns the node of this name.
    ///
    /// # Errors
    /// Returns a [`TopologyError`] with the nearest name if there is no such node.
    pub fn node_named(&self, name: &str) -> Result<NodeId, TopologyError> {
        if let Some(index) = self.nodes.iter().position(|node| node.name == name) {
            return Ok(NodeId(index as u32));
        }
        Err(TopologyError::new(format!("there is no node `{name}`; {}{}", self.node_families(), self.node_hint(name))))
    }

    /// Returns the names of all nodes in short: `switches are leaf0 to leaf7, spine0 to spine3; hosts are host0 to host31`.
    fn node_families(&self) -> String {
        let (hosts, switches) = self.nodes.split_at(self.hosts as usize);
        format!("switches are {}; hosts are {}", families(switches), families(hosts))
    }

    fn node_hint(&self, name: &str) -> String {
        let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_string();
        let stems: std::collections::BTreeSet<String> = self.nodes.iter().map(|node| stem(&node.name)).collect();
        // A number out of range is no typing error, so that the ranges suffice.
        if stems.contains(&stem(name)) {
            return String::new();
        }
        let nearest = anabranch_settings::nearest(name, self.nodes.iter().map(|node| node.name.as_str()));
        nearest.map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default()
    }

    /// Returns the links that leave a node, in port order: towards hosts and lower tiers first, then upwards.
    pub fn out_links(&self, node: NodeId) -> &[LinkId] {
        &self.ports[self.first[node.0 as usize] as usize..self.first[node.0 as usize + 1] as usize]
    }

    /// Returns a directed link.
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.0 as usize]
    }

    /// Returns all directed links.
    pub fn link_ids(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len() as u32).map(LinkId)
    }

    fn ends(&self, link: LinkId) -> (&str, &str) {
        let link = self.link(link);
        (&self.node(link.from).name, &self.node(link.to).name)
    }

    fn suffix(&self, link: LinkId) -> String {
        match self.parallel[link.0 as usize] {
            0 => String::new(),
            number => format!("#{number}"),
        }
    }

    /// Returns the number of a directed link among parallel cables between the same nodes, from 0.
    pub fn parallel(&self, link: LinkId) -> u16 {
        self.parallel[link.0 as usize]
    }

    /// Returns the name of a directed link: `leaf0->spine3`, or `leaf0->spine3#1` among parallel ones.
    pub fn link_name(&self, link: LinkId) -> String {
        let mut name = String::new();
        self.write_link_name(link, &mut name);
        name
    }

    /// Replaces `name`, whose memory it reuses, by [`Graph::link_name`].
    pub fn write_link_name(&self, link: LinkId, name: &mut String) {
        use std::fmt::Write;
        let (from, to) = self.ends(link);
        name.clear();
        name.push_str(from);
        name.push_str("->");
        name.push_str(to);
        let parallel = self.parallel[link.0 as usize];
        if parallel > 0 {
            write!(name, "#{parallel}").expect("a string takes any text");
        }
    }

    /// Returns the name of a link's cable, lower node first: `leaf0-spine3`.
    pub fn cable_name(&self, link: LinkId) -> String {
        let (from, to) = self.ends(LinkId(link.0 & !1));
        format!("{from}-{to}{}", self.suffix(link))
    }

    /// Returns the directed links of this name: both of a cable (`leaf0-spine3`, `spine3-leaf0`), one of `leaf0->spine3`.
    ///
    /// # Errors
    /// Returns a [`TopologyError`] with the nearest name if there is no such link.
    pub fn link_named(&self, name: &str) -> Result<Vec<LinkId>, TopologyError> {
        let (ends, number) = match name.rsplit_once('#') {
            Some((ends, number)) => (ends, number.parse::<u16>().ok()),
            None => (name, Some(0)),
        };
        let directed = ends.split_once("->");
        let pair = directed.or_else(|| ends.split_once('-'));
        if let (Some((from, to)), Some(number)) = (pair, number)
            && let (Ok(from), Ok(to)) = (self.node_named(from.trim()), self.node_named(to.trim()))
        {
            let found = self.out_links(from).iter().copied();
            let found = found.filter(|&l| self.link(l).to == to && self.parallel[l.0 as usize] == number);
            let links: Vec<LinkId> = match directed {
                Some(_) => found.collect(),
                None => found.flat_map(|l| [LinkId(l.0 & !1), LinkId(l.0 | 1)]).collect(),
            };
            if !links.is_empty() {
                return Ok(links);
            }
        }
        Err(TopologyError::new(self.no_link(name, pair)))
    }

    fn no_link(&self, name: &str, pair: Option<(&str, &str)>) -> String {
        let cables: Vec<String> = self.link_ids().step_by(2).map(|l| self.cable_name(l)).collect();
        let nearest = anabranch_settings::nearest(&name.replace("->", "-"), cables.iter().map(String::as_str));
        let hint = nearest.map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
        let known = |end: &str| self.nodes.iter().position(|node| node.name == end.trim());
        match pair.map(|(from, to)| (known(from), known(to), from.trim(), to.trim())) {
            Some((Some(from), Some(_), ..)) => {
                let ends =
                    self.out_links(NodeId(from as u32)).iter().map(|link| &self.nodes[self.link(*link).to.0 as usize]);
                let ends: Vec<&Node> = ends.collect();
                let name_of = &self.nodes[from].name;
                format!("there is no link `{name}`; the links of {name_of} lead to {}{hint}", families(ends))
            }
            Some((known, other, from, to)) if known.is_some() != other.is_some() => {
                let unknown = if known.is_some() { to } else { from };
                format!("there is no link `{name}`, since there is no node `{unknown}`; {}{hint}", self.node_families())
            }
            _ => {
                let example = cables.last().map_or("", String::as_str);
                let directed = example.replacen('-', "->", 1);
                format!(
                    "there is no link `{name}`; a cable is named like `{example}`, one direction of it like `{directed}`; {}{hint}",
                    self.node_families()
                )
            }
        }
    }

    /// Returns the link from a host to its switch, of several planes the first.
    pub fn host_uplink(&self, host: u32) -> LinkId {
        self.ports[self.first[host as usize] as usize]
    }

    /// Returns the link from a host to its switch in a plane.
    pub fn host_uplink_in(&self, host: u32, plane: u32) -> LinkId {
        self.ports[(self.first[host as usize] + plane) as usize]
    }

    /// Returns the switch that a host attaches to, of several planes in the first.
    pub fn edge_switch(&self, host: u32) -> NodeId {
        self.link(self.host_uplink(host)).to
    }

    /// Returns the switch that a host attaches to in a plane.
    pub fn edge_switch_in(&self, host: u32, plane: u32) -> NodeId {
        self.link(self.host_uplink_in(host, plane)).to
    }

    /// Returns the number of switches of a plane.
    pub fn plane_switches(&self) -> u32 {
        self.switches() / self.planes
    }

    /// Returns the plane of a link: that of its switches.
    pub fn plane_of(&self, link: LinkId) -> u32 {
        let Link { from, to, .. } = self.link(link);
        (from.0.max(to.0) - self.hosts) / self.plane_switches()
    }

    /// Returns `true` if the links of all planes have the rates and delays of those of the first.
    pub fn planes_are_alike(&self) -> bool {
        let first = &self.links[..self.links.len() / self.planes as usize];
        let of = |link: &Link| (link.rate, link.delay);
        self.links.iter().zip(first.iter().cycle()).all(|(link, first)| of(link) == of(first))
    }

    /// Returns the rates from and to a host over all its ports.
    pub fn host_rates(&self, host: u32) -> (Rate, Rate) {
        let links = self.out_links(NodeId(host));
        let sum = |of: &dyn Fn(LinkId) -> LinkId| Rate(links.iter().map(|link| self.link(of(*link)).rate.0).sum());
        (sum(&|link| link), sum(&LinkId::reverse))
    }

    /// Returns `true` if a path leads from one host to another on the intact graph: not between rails that are not joined.
    pub fn is_connected(&self, src: u32, dst: u32) -> bool {
        self.rails.is_none_or(|rails| rails.are_joined || src % rails.count == dst % rails.count)
    }

    /// Returns the tier of a switch; `None` for a host.
    pub fn tier(&self, node: NodeId) -> Option<u8> {
        match self.node(node).kind {
            NodeKind::Host => None,
            NodeKind::Switch { tier } => Some(tier),
        }
    }

    /// Returns the group of a switch; `None` for a host and if there are no groups.
    pub fn group_of_switch(&self, node: NodeId) -> Option<u32> {
        self.groups.get(node.0.checked_sub(self.hosts)? as usize).copied()
    }

    /// Returns `true` if a link leads upwards: from a host, or to a switch of a higher tier.
    pub fn is_up(&self, link: LinkId) -> bool {
        let height = |node| self.tier(node).map_or(0, |tier| 1 + u32::from(tier));
        let link = self.link(link);
        height(link.from) < height(link.to)
    }

    /// Returns the links of a switch that lead upwards; in a graph without tiers all links to switches.
    pub fn uplinks_of(&self, node: NodeId) -> impl Iterator<Item = LinkId> + '_ {
        let tiers = !self.uplinks.is_empty();
        let chosen = move |link: &LinkId| if tiers { self.is_up(*link) } else { self.link(*link).to.0 >= self.hosts };
        self.out_links(node).iter().copied().filter(chosen)
    }

    /// Returns the switches with hosts, ascending, of several planes those of the first.
    pub fn edge_switches(&self) -> Vec<NodeId> {
        let mut edges: Vec<NodeId> = (0..self.hosts).map(|host| self.edge_switch(host)).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// Returns the stable key of a node, for random streams and canonical orders.
    pub fn key(&self, node: NodeId) -> u64 {
        anabranch_random::name_key(&self.node(node).name)
    }

    /// Returns the rate of the fastest NIC, all its ports together.
    pub fn nic_rate(&self) -> Rate {
        (0..self.hosts).map(|host| self.host_rates(host).0).max().unwrap_or_default()
    }

    /// Returns the store-and-forward time over an empty path: wire times, delays and switch latencies.
    pub fn one_way(&self, path: &[LinkId], wire_bytes: u64) -> Time {
        let crossing = |link: &LinkId| {
            let link = self.link(*link);
            let latency = if link.to.0 >= self.hosts { self.switch_latency } else { Time::ZERO };
            link.rate.wire_time(wire_bytes) + link.delay + latency
        };
        path.iter().map(crossing).sum()
    }

    /// Returns the round trip over `path` and back over its cables.
    pub fn rtt(&self, path: &[LinkId], data: u64, ack: u64) -> Time {
        let back: Vec<LinkId> = path.iter().rev().map(|l| l.reverse()).collect();
        self.one_way(path, data) + self.one_way(&back, ack)
    }

    /// Returns the store-and-forward arrival of the last byte of a train on an empty path: `full` packets of `full_bytes`,
    /// then one of `last_bytes`, sent back to back from time 0.
    ///
    /// On link h with wire time `s_h` and delay `d_h` (switch latency included) the k-th full packet leaves at
    /// `F_h(k) = S_h + (k-1) * M_h`. `S_h` is the sum of wire times and delays up to h, `M_h` the longest wire time so
    /// far. The last packet starts when it has arrived and the packet before it has left.
    ///
    /// Exact if the rates give whole picoseconds per byte. Else the result is at most two picoseconds per link early, never
    /// late, so that no flow beats its ideal.
    pub fn train_arrival(&self, path: &[LinkId], full: u64, full_bytes: u64, last_bytes: u64) -> Time {
        let wire = |rate: Rate, bytes: u64, count: u64| Serialiser::new(rate).serialise(bytes * count);
        self.train_arrival_with(path, full, full_bytes, last_bytes, wire)
    }

    /// Returns the arrival of [`Graph::train_arrival`], where `wire` gives the time of a number of packets by their bytes.
    pub fn train_arrival_with(
        &self,
        path: &[LinkId],
        full: u64,
        full_bytes: u64,
        last_bytes: u64,
        wire: impl Fn(Rate, u64, u64) -> Time,
    ) -> Time {
        let (mut first_left, mut last_here, mut delay) = (Time::ZERO, Time::ZERO, Time::ZERO);
        let mut slowest = Rate(u64::MAX);
        for link in path {
            let link = self.link(*link);
            slowest = slowest.min(link.rate);
            first_left += delay + wire(link.rate, full_bytes, 1);
            let before_left = match full {
                0 => Time::ZERO,
                _ => first_left + wire(slowest, full_bytes, full - 1),
            };
            last_here = (last_here + delay).max(before_left) + wire(link.rate, last_bytes, 1);
            let latency = if link.to.0 >= self.hosts { self.switch_latency } else { Time::ZERO };
            delay = link.delay + latency;
        }
        last_here + delay
    }

    pub(crate) fn classes(&self) -> Vec<String> {
        let mut classes: Vec<String> = self.links.iter().map(|l| l.class.name()).collect();
        classes.sort();
        classes.dedup();
        classes
    }
}
