//! Ports of a NIC with one per plane: how packets are distributed over them, and when they are down.

use anabranch_backend::{LoadBalancer, PortSelector};
use anabranch_topology::{Fault, FaultAction, LinkId, Topology};

/// Distribution of a load balancer's packets over the ports of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NicPorts {
    /// There is one, or the next free one takes the next packet.
    Free,
    /// Part 0 of a multi-part entropy value names it, of this many.
    Part(u32),
    /// By a hash of flow and entropy value.
    Hash,
}

impl NicPorts {
    pub(super) fn new(selector: PortSelector, balancer: &LoadBalancer, planes: u32) -> Self {
        let withdraws = balancer.host.capabilities().heeds_ports();
        let by_ev = selector == PortSelector::ByEv || selector == PortSelector::Auto && withdraws;
        match balancer.named_planes(selector, planes) {
            1 if planes > 1 && by_ev => NicPorts::Hash,
            1 => NicPorts::Free,
            planes => NicPorts::Part(planes),
        }
    }

    /// Returns the number of planes that entropy values name as their part 0; 1: none.
    pub(crate) fn named_planes(self) -> u32 {
        if let NicPorts::Part(planes) = self { planes } else { 1 }
    }

    pub(crate) fn plane_bits(self) -> u32 {
        u32::BITS - (self.named_planes() - 1).leading_zeros()
    }
}

/// A host's port goes down or comes up, as its NIC or its peers have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortChange {
    /// Picoseconds.
    pub(crate) at: u64,
    pub(crate) host: u32,
    /// In [`DownPorts`].
    pub(crate) bit: u32,
    pub(crate) is_down: bool,
    pub(crate) is_remote: bool,
}

/// Directions of a NIC's links that are down: bit p towards plane p, bit 16 + p from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DownPorts(u32);

impl DownPorts {
    /// Returns the ports that are down, one bit each: those without one of their directions.
    pub(crate) fn ports(self) -> u32 {
        (self.0 | self.0 >> 16) & 0xffff
    }

    pub(crate) fn change(&mut self, change: &PortChange) {
        self.0 = if change.is_down { self.0 | 1 << change.bit } else { self.0 & !(1 << change.bit) };
    }
}

/// Returns the changes of ports by faults, in order of time; none with one plane.
pub(super) fn port_changes(topology: &Topology, faults: &[Fault]) -> Vec<PortChange> {
    let mut changes = Vec::new();
    if topology.planes == 1 {
        return changes;
    }
    let bit = |link: &LinkId| {
        let (ends, plane) = (topology.link(*link), topology.plane_of(*link));
        let host = ends.from.0.min(ends.to.0);
        (host < topology.hosts).then(|| (host, if ends.from.0 == host { plane } else { 16 + plane }))
    };
    for fault in faults {
        let is_down = match fault.action {
            FaultAction::Down => true,
            FaultAction::Up => false,
            _ => continue,
        };
        for (at, is_remote) in fault.port_detect_at.into_iter().zip([false, true]) {
            let Some(at) = at.map(|at| at.ps()) else { continue };
            let links = fault.links.iter().filter_map(bit);
            changes.extend(links.map(|(host, bit)| PortChange { at, host, bit, is_down, is_remote }));
        }
    }
    changes.sort_by_key(|change| change.at);
    changes
}
