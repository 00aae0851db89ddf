//! Plan of a network: a scenario's leaf-spine with names, addresses and rates.

use crate::TestbedError;
use anabranch_backend::Setup;
use anabranch_topology::{LinkClass, NodeKind, Topology};
use anabranch_wire::{DatapathKind, WireParameters};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Maximum number of hosts of a testbed.
pub const MAX_HOSTS: u32 = 64;
pub const MAX_SWITCHES: u32 = 32;
/// Maximum rate of a link, bits per second.
pub const MAX_RATE: u64 = 1_000_000_000;
/// Minimum rate of a link, bits per second.
pub const MIN_RATE: u64 = 1_000_000;
/// Bytes of the headers of IPv4 and UDP.
const IP_AND_UDP: u64 = 28;
/// Maximum length of the name of a network interface in Linux.
const LONGEST_NAME: usize = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A host, which sends and receives.
    Host,
    /// A switch with hosts.
    Leaf,
    /// A switch between leaves.
    Spine,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Name in the scenario, and of the interfaces that lead to the node.
    pub name: String,
    pub role: Role,
    /// Address of the node; for a switch, that of its first interface, for a host in several planes that in the first.
    pub address: Ipv4Addr,
    /// Plane of a switch; 0 for a host.
    pub plane: u32,
}

/// Endpoint of a cable: the port from which packets leave to the other node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Node, an index into [`TestbedPlan::nodes`].
    pub node: usize,
    pub address: Ipv4Addr,
    /// Rate of the port, bits per second.
    pub rate: u64,
}

/// Cable between two nodes, a pair of interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// Port of the lower node: the host of host and leaf, the leaf of leaf and spine.
    pub lower: End,
    /// Port of the upper node.
    pub upper: End,
}

/// Random early marking: never below `min`, always from `max` on, linear up to `probability` in between.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marking {
    /// Lower threshold in bytes.
    pub min: u64,
    /// Upper threshold in bytes.
    pub max: u64,
    /// Marking probability just below `max`, from 0 to 1.
    pub probability: f64,
}

/// Queues of the switches' ports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// Capacity in bytes.
    pub limit: u64,
    /// Marking thresholds; `None` if the port does not mark.
    pub marking: Option<Marking>,
    /// `true` if the port trims packets to their headers instead of dropping them, and serves the headers first.
    pub trimming: bool,
}

/// Network to build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestbedPlan {
    /// Nodes: hosts first, then switches, as in the scenario.
    pub nodes: Vec<Node>,
    /// Cables in the order of the scenario's links: cable `k` has the directed links `2k` (upwards) and `2k + 1`.
    pub cables: Vec<Cable>,
    /// Maximum size of an IP packet in bytes.
    pub mtu: u32,
    /// Queues of the switches' ports.
    pub queue: Queue,
    /// Seed of the switches' hashes.
    pub seed: u64,
}

/// Minimum burst of a port in bytes.
const MIN_BURST: u64 = 15_000;
/// Bytes of an Ethernet header, which shaping counts.
const ETHERNET: u64 = 14;

/// Returns the bytes that a port may send at once after an idle period: a millisecond, so that a late timer costs nothing.
pub(crate) fn burst(rate: u64, mtu: u32) -> u64 {
    MIN_BURST.max(rate / 8000).max(u64::from(mtu) + 2 * ETHERNET)
}

fn refused(what: impl Into<String>) -> TestbedError {
    let expected = format!(
        "a leaf-spine (or a fat tree of two tiers) with one cable between two switches, up to {MAX_HOSTS} hosts and \
         {MAX_SWITCHES} switches, links from {} to {} Mbit/s, for example `hopper-testbed-small`",
        MIN_RATE / 1_000_000,
        MAX_RATE / 1_000_000,
    );
    TestbedError::Unbuildable { found: what.into(), expected }
}

impl Queue {
    fn of(setup: &Setup, wire: &WireParameters) -> Self {
        let (fabric, transport) = (&setup.fabric, &setup.transport);
        let packet = transport.mtu() + transport.header();
        let bdp = setup.topology.window_bdp(packet, transport.ack_size());
        let [limit, min, max] = [fabric.queue_limit, fabric.ecn_kmin, fabric.ecn_kmax].map(|size| size.bytes(bdp));
        let marking = (fabric.ecn && wire.ecn).then_some(Marking { min, max, probability: fabric.ecn_pmax });
        Queue { limit, marking, trimming: wire.trimming }
    }

    pub(crate) fn has_programs(&self) -> bool {
        self.marking.is_some() || self.trimming
    }
}

impl TestbedPlan {
    /// Returns the plan of a scenario.
    /// Errors: [`TestbedError::Unbuildable`] if namespaces cannot form that network.
    pub fn of_setup(setup: &Setup, wire: &WireParameters) -> Result<Self, TestbedError> {
        if wire.datapath != DatapathKind::Udp {
            let message =
                "[wire]: datapath: found queue pairs, expected \"udp\": endpoints of a testbed talk over sockets";
            return Err(TestbedError::Input(message.into()));
        }
        let payload = wire.payload_of(&setup.transport);
        let payload = payload.map_err(|error| TestbedError::Input(format!("[wire]: {error}")))?;
        let mtu = payload + wire.max_header() + IP_AND_UDP;
        TestbedPlan::new(&setup.topology, mtu.clamp(1280, 65_000) as u32, Queue::of(setup, wire), setup.seed)
    }

    /// Returns the plan of a topology whose hosts send IP packets of at most `mtu` bytes.
    /// Errors: [`TestbedError::Unbuildable`] if namespaces cannot form that network.
    pub fn new(topology: &Topology, mtu: u32, queue: Queue, seed: u64) -> Result<Self, TestbedError> {
        let (hosts, switches) = (topology.hosts, topology.switches());
        if topology.links.iter().any(|link| matches!(link.class, LinkClass::Local | LinkClass::Global)) {
            return Err(refused("the topology has groups of switches instead of leaves and spines"));
        }
        if topology.nodes.iter().any(|node| matches!(node.kind, NodeKind::Switch { tier: 2.. })) {
            return Err(refused("the topology has more than two tiers of switches"));
        }
        if hosts > MAX_HOSTS || switches > MAX_SWITCHES {
            return Err(refused(format!("the topology has {hosts} hosts and {switches} switches")));
        }
        let too_fast = topology.links.iter().find(|link| !(MIN_RATE..=MAX_RATE).contains(&link.rate.0));
        if let Some(link) = too_fast {
            let (from, to) = (&topology.node(link.from).name, &topology.node(link.to).name);
            return Err(refused(format!("{from}-{to} has {}", link.rate)));
        }
        if let Some(node) = topology.nodes.iter().find(|node| node.name.len() > LONGEST_NAME) {
            return Err(refused(format!("`{}` is longer than the {LONGEST_NAME} letters of an interface", node.name)));
        }
        let role = |node: usize| match topology.nodes[node].kind {
            NodeKind::Host => Role::Host,
            NodeKind::Switch { tier: 0 } => Role::Leaf,
            NodeKind::Switch { .. } => Role::Spine,
        };
        let unnamed = Ipv4Addr::UNSPECIFIED;
        let mut nodes: Vec<Node> = (topology.nodes.iter().enumerate())
            .map(|(n, node)| {
                let plane = (n as u32).checked_sub(hosts).map_or(0, |switch| switch / topology.plane_switches().max(1));
                Node { name: node.name.clone(), role: role(n), address: unnamed, plane }
            })
            .collect();
        let place = |node: usize| (0..node).filter(|other| role(*other) == role(node)).count() as u8;
        let mut attached = vec![0u8; nodes.len()];
        let mut cables: Vec<Cable> = Vec::with_capacity(topology.links.len() / 2);
        for pair in topology.links.chunks_exact(2) {
            let (up, down) = (&pair[0], &pair[1]);
            let (lower, upper) = (up.from.0 as usize, up.to.0 as usize);
            let [below, above] = match (role(lower), role(upper)) {
                (Role::Host, Role::Leaf) => {
                    attached[upper] += 1;
                    let net = |last| Ipv4Addr::new(10, place(upper) + 1, attached[upper], last);
                    [net(2), net(1)]
                }
                (Role::Leaf, Role::Spine) => {
                    let net = |last| Ipv4Addr::new(10, 100 + place(lower), place(upper) + 1, last);
                    [net(1), net(2)]
                }
                _ => {
                    let (from, to) = (&nodes[lower].name, &nodes[upper].name);
                    return Err(refused(format!("{from}-{to} joins neither a host and a leaf nor a leaf and a spine")));
                }
            };
            if cables.iter().any(|cable| (cable.lower.node, cable.upper.node) == (lower, upper)) {
                let (from, to) = (&nodes[lower].name, &nodes[upper].name);
                return Err(refused(format!("there are several cables between {from} and {to}")));
            }
            cables.push(Cable {
                lower: End { node: lower, address: below, rate: up.rate.0 },
                upper: End { node: upper, address: above, rate: down.rate.0 },
            });
            for (node, address) in [(lower, below), (upper, above)] {
                if nodes[node].address == unnamed {
                    nodes[node].address = address;
                }
            }
        }
        let plan = TestbedPlan { nodes, cables, mtu, queue, seed };
        for (leaf, Node { plane, .. }) in plan.all(Role::Leaf) {
            let mut spines = plan.all(Role::Spine).filter(|(_, spine)| spine.plane == *plane);
            if let Some((spine, _)) = spines.find(|(spine, _)| plan.cable(leaf, *spine).is_none()) {
                let (leaf, spine) = (&plan.nodes[leaf].name, &plan.nodes[spine].name);
                return Err(refused(format!("there is no cable between {leaf} and {spine}")));
            }
        }
        Ok(plan)
    }

    /// Returns the nodes of a role, with their indices.
    pub fn all(&self, role: Role) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.role == role)
    }

    /// Returns the cable between two nodes.
    pub fn cable(&self, lower: usize, upper: usize) -> Option<&Cable> {
        self.cables.iter().find(|cable| (cable.lower.node, cable.upper.node) == (lower, upper))
    }

    /// Returns the address of a host in each plane, and the leaf that it attaches to there.
    pub fn planes(&self, host: usize) -> impl Iterator<Item = (Ipv4Addr, usize)> {
        let own = self.cables.iter().filter(move |cable| cable.lower.node == host);
        own.map(|cable| (cable.lower.address, cable.upper.node))
    }

    pub fn plane_count(&self) -> usize {
        self.planes(0).count().max(1)
    }

    /// Returns every port with the node it leads to, in the order of the scenario's directed links.
    pub fn ports(&self) -> impl Iterator<Item = (&End, usize)> {
        self.cables.iter().flat_map(|cable| [(&cable.lower, cable.upper.node), (&cable.upper, cable.lower.node)])
    }

    /// Returns the index of a node by name.
    /// Errors: [`TestbedError::Input`] with the existing names if there is none.
    pub fn node(&self, name: &str) -> Result<usize, TestbedError> {
        self.nodes.iter().position(|node| node.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            TestbedError::Input(format!("there is no `{name}` on this testbed; there are {}", names.join(", ")))
        })
    }

    /// Returns the port `FROM->TO`, as links of a scenario are named: its node, and the node it leads to.
    /// Errors: [`TestbedError::Input`] if there is none.
    pub fn port(&self, name: &str) -> Result<(usize, usize), TestbedError> {
        let split = name.split_once("->");
        let Some((from, to)) = split else {
            let message = format!("found `{name}`, expected a port as FROM->TO, for example 'leaf0->spine0'");
            return Err(TestbedError::Input(message));
        };
        let (from, to) = (self.node(from)?, self.node(to)?);
        let there = self.ports().any(|(end, other)| (end.node, other) == (from, to));
        let message = || format!("there is no cable between {} and {}", self.nodes[from].name, self.nodes[to].name);
        if there { Ok((from, to)) } else { Err(TestbedError::Input(message())) }
    }

    /// Returns the cable `A-B`, with its nodes in either order, as an index into [`TestbedPlan::cables`].
    /// Errors: [`TestbedError::Input`] if there is none.
    pub fn cable_named(&self, name: &str) -> Result<usize, TestbedError> {
        let named = |cable: &Cable| {
            let (a, b) = (&self.nodes[cable.lower.node].name, &self.nodes[cable.upper.node].name);
            name == format!("{a}-{b}") || name == format!("{b}-{a}")
        };
        self.cables.iter().position(named).ok_or_else(|| {
            TestbedError::Input(format!(
                "found `{name}`, expected a cable of this testbed by its ends, for example leaf0-spine0"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_topology::TopologyParameters;

    fn queue() -> Queue {
        Queue { limit: 300_000, marking: None, trimming: false }
    }

    fn topology(kind: &str, changes: &[(&str, &str)]) -> Topology {
        let mut parameters = TopologyParameters::named(kind).unwrap();
        for (key, value) in changes {
            let raw = value
                .parse()
                .map_or_else(|_| anabranch_settings::Raw::Text((*value).into()), anabranch_settings::Raw::Int);
            parameters.parameters_mut().set(key, &raw).unwrap();
        }
        parameters.build(&|_| Err(std::io::ErrorKind::NotFound.into())).unwrap()
    }

    #[test]
    fn addresses_and_names_follow_from_the_scenario() {
        let small = [("leaves", "2"), ("spines", "6"), ("hosts_per_leaf", "4"), ("link_rate", "200Mbps")];
        let plan = TestbedPlan::new(&topology("leaf-spine", &small), 4180, queue(), 1).unwrap();
        assert_eq!((plan.nodes.len(), plan.cables.len()), (16, 8 + 12));
        let host5 = &plan.nodes[plan.node("host5").unwrap()];
        assert_eq!((host5.role, host5.address.to_string()), (Role::Host, "10.2.2.2".to_string()));
        let cable = &plan.cables[plan.cable_named("spine3-leaf1").unwrap()];
        assert_eq!(
            (cable.lower.address.to_string(), cable.upper.address.to_string()),
            ("10.101.4.1".into(), "10.101.4.2".into())
        );
        assert_eq!(plan.port("leaf1->spine3").unwrap(), (plan.node("leaf1").unwrap(), plan.node("spine3").unwrap()));
        assert!(plan.port("leaf0->leaf1").unwrap_err().to_string().contains("no cable"));
        assert!(plan.node("leaf2").unwrap_err().to_string().contains("leaf1, spine0"));
    }

    /// Leaves and spines of all planes have numbers of their own, and with them addresses.
    #[test]
    fn hosts_have_an_address_in_each_plane() {
        let two =
            [("leaves", "2"), ("spines", "3"), ("hosts_per_leaf", "2"), ("link_rate", "200Mbps"), ("planes", "2")];
        let plan = TestbedPlan::new(&topology("leaf-spine", &two), 1500, queue(), 1).unwrap();
        // Four hosts, and in each plane two leaves and three spines; a cable per host and six of leaves.
        assert_eq!((plan.nodes.len(), plan.cables.len()), (4 + 2 * 5, 2 * (4 + 6)));
        let of = |host: &str| -> Vec<(String, String)> {
            let planes = plan.planes(plan.node(host).unwrap());
            planes.map(|(at, leaf)| (at.to_string(), plan.nodes[leaf].name.clone())).collect()
        };
        assert_eq!(of("host3"), [("10.2.2.2".into(), "p0.leaf1".into()), ("10.4.2.2".into(), "p1.leaf1".into())]);
        let rates: Vec<u64> = plan.ports().map(|(end, _)| end.rate).collect();
        assert!(rates.iter().all(|rate| *rate == 100_000_000), "a plane has half of the rate");
        let planes = |name: &str| plan.nodes[plan.node(name).unwrap()].plane;
        assert_eq!(["host3", "p0.spine2", "p1.leaf0", "p1.spine0"].map(planes), [0, 0, 1, 1]);
    }

    #[test]
    fn unsupported_topologies_are_refused_with_alternatives() {
        let refused = |kind: &str, changes: &[(&str, &str)], word: &str| {
            let error = TestbedPlan::new(&topology(kind, changes), 1500, queue(), 1).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("64 hosts") && error.contains("1000 Mbit/s"), "{error}");
        };
        refused("dragonfly", &[("p", "2"), ("a", "4"), ("h", "2")], "groups of switches");
        refused("fat-tree", &[("tiers", "3"), ("radix", "4"), ("link_rate", "100Mbps")], "more than two tiers");
        refused("leaf-spine", &[("leaves", "2"), ("spines", "2"), ("hosts_per_leaf", "2")], "Gbps");
        let large = [("leaves", "100"), ("spines", "10"), ("hosts_per_leaf", "100"), ("link_rate", "100Mbps")];
        refused("leaf-spine", &large, "10000 hosts");
        let several = [
            ("leaves", "2"),
            ("spines", "2"),
            ("hosts_per_leaf", "2"),
            ("links_per_spine", "2"),
            ("link_rate", "100Mbps"),
        ];
        refused("leaf-spine", &several, "several cables");
    }

    #[test]
    fn a_burst_is_a_millisecond_or_a_few_packets() {
        assert_eq!(burst(200_000_000, 4180), 25_000);
        assert_eq!(burst(20_000_000, 4180), 15_000);
    }
}
