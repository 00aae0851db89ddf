//! The graph: hosts, switches and directed links.

use anabranch_units::{Rate, Time};
use thiserror::Error;

/// A node: hosts come first (`0..hosts`), then switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A directed link. The two directions of a cable are `2k` and `2k + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

impl LinkId {
    /// The other direction of the same cable.
    pub fn reverse(self) -> LinkId {
        LinkId(self.0 ^ 1)
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// An end host with one NIC.
    Host,
    /// A switch; tier 0 is the one hosts attach to.
    Switch {
        /// Its tier.
        tier: u8,
    },
}

/// A host or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Stable name: `host3`, `leaf0`, `spine2`, `agg1`, `core5`.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
}

/// Which kind of cable a link is; overrides and tables speak of classes.
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
    /// Where packets enter it.
    pub from: NodeId,
    /// Where they leave it.
    pub to: NodeId,
    /// Its rate.
    pub rate: Rate,
    /// Its propagation delay.
    pub delay: Time,
    /// Its class.
    pub class: LinkClass,
}

/// Why a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct TopologyError {
    /// The key of the scenario that is at fault, where there is one.
    pub key: Option<String>,
    /// What is wrong, what is allowed, what to do.
    pub message: String,
}

/// A fabric: nodes, directed links, and what every switch adds to a packet's way.
#[derive(Clone, Debug)]
pub struct Topology {
    /// Hosts first, then switches.
    pub nodes: Vec<Node>,
    /// Directed links, in pairs.
    pub links: Vec<Link>,
    /// Number of hosts.
    pub hosts: u32,
    /// Time a packet spends in a switch before it reaches the output port.
    pub switch_latency: Time,
    /// Uplinks per tier as multi-part entropy values count them (leaf first); empty where the topology has no tiers.
    pub uplinks: Vec<u32>,
    /// Links leaving each node, in port order: `ports[first[n]..first[n + 1]]`.
    first: Vec<u32>,
    ports: Vec<LinkId>,
}
