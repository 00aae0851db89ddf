//! Source-guided routing (Spritz; specification 8.1): the source selects the first one or two hops, static tables the others.
//!
//! The first switch forwards by EV1, the second by EV2, all others by the default table. A part is the number of a
//! switch-facing port. Exceptions on Dragonfly: inside one group EV1 names a switch of the group. EV2 counts only for a
//! packet that came over a local link and is not in its destination's group yet, and names a global link.

mod paths;
mod times;

pub use paths::GuidedPath;
pub(crate) use times::TypeTotal;
pub use times::guided_table_bytes;

use crate::{LinkClass, LinkId, NodeId, graph::Graph, guidance::Guidance};

const NONE: u32 = u32::MAX;

/// Tables of source-guided routing, which failures do not change: default next hops, and the ports that entropy values name.
///
/// Private methods count switches from the first one; public methods take nodes or such numbers.
#[derive(Clone, Debug)]
pub struct Guide {
    guidance: Guidance,
    hosts: u32,
    group: Vec<u32>,
    groups: u32,
    /// Start of each switch's ports in the lists that follow: `first[s]..first[s + 1]`.
    first: Vec<u32>,
    link: Vec<LinkId>,
    to: Vec<u32>,
    local: Vec<bool>,
    /// Dragonfly: the port between two groups, per (group, other group).
    gateways: Vec<u32>,
    /// Dragonfly: the default port out of a switch, per (switch, group).
    group_ports: Vec<u32>,
    /// Dragonfly: the port to a switch of the same group, per (switch, place in the group).
    member_ports: Vec<u32>,
    /// Dragonfly: the switch that owns each port.
    owner: Vec<u32>,
    /// But for a Dragonfly: the number of the default port, per (switch, other switch).
    default_ports: Vec<u16>,
}

/// Returns the virtual channel of a packet on its `hop`-th link between switches, counted from 0: the hop itself. Ascending
/// channels cannot deadlock (specification 8.1 leaves the choice open).
pub fn virtual_channel(hop: u8) -> u8 {
    hop
}

impl Guide {
    pub(crate) fn new(graph: &Graph, guidance: Guidance) -> Self {
        let (mut first, mut link, mut owner) = (vec![0], Vec::new(), Vec::new());
        for switch in 0..graph.switches() {
            let facing =
                graph.out_links(NodeId(graph.hosts + switch)).iter().filter(|l| graph.link(**l).to.0 >= graph.hosts);
            link.extend(facing);
            owner.resize(link.len(), switch);
            first.push(link.len() as u32);
        }
        let to = link.iter().map(|l| graph.link(*l).to.0 - graph.hosts).collect();
        let local = link.iter().map(|l| graph.link(*l).class == LinkClass::Local).collect();
        let mut guide = Guide {
            guidance,
            hosts: graph.hosts,
            group: graph.groups.clone(),
            groups: graph.groups.iter().max().map_or(0, |last| last + 1),
            first,
            link,
            to,
            local,
            gateways: Vec::new(),
            group_ports: Vec::new(),
            member_ports: Vec::new(),
            owner,
            default_ports: Vec::new(),
        };
        match guidance {
            Guidance::Dragonfly => guide.find_gateways(),
            Guidance::SlimFly => guide.find_default_ports(),
            Guidance::Graph => guide.find_shortest_ports(),
        }
        guide
    }

    /// Returns the routing rules of guided paths.
    pub fn guidance(&self) -> Guidance {
        self.guidance
    }

    /// Returns the number of switch-facing ports of a switch.
    #[inline]
    pub fn port_count(&self, switch: u32) -> u32 {
        self.first[switch as usize + 1] - self.first[switch as usize]
    }

    /// Returns the bytes of the tables that grow faster than the graph: [`crate::Scale::guide_bytes`].
    pub fn table_bytes(&self) -> u64 {
        let groups = [&self.gateways, &self.group_ports, &self.member_ports].map(|table| size_of_val(&table[..]));
        (groups.iter().sum::<usize>() + size_of_val(&self.default_ports[..])) as u64
    }

    /// Returns the largest number of switch-facing ports of a switch.
    pub fn max_ports(&self) -> u32 {
        (0..self.switches()).map(|switch| self.port_count(switch)).max().unwrap_or(0)
    }

    /// Returns the switch behind a switch-facing port.
    #[inline]
    pub fn peer(&self, switch: u32, port: u32) -> u32 {
        self.to[(self.first[switch as usize] + port) as usize]
    }

    /// Returns `true` if the link behind a switch-facing port is local.
    #[inline]
    pub fn is_local(&self, switch: u32, port: u32) -> bool {
        self.local[(self.first[switch as usize] + port) as usize]
    }

    /// Returns the link behind a switch-facing port.
    #[inline]
    pub fn link_at(&self, switch: u32, port: u32) -> LinkId {
        self.link[(self.first[switch as usize] + port) as usize]
    }

    /// Returns the group of a switch.
    #[inline]
    pub fn group_of(&self, switch: u32) -> u32 {
        self.group[switch as usize]
    }

    /// Returns the number of a switch's default port towards another.
    #[inline]
    pub fn default_port_of(&self, at: u32, to: u32) -> u32 {
        self.default_port(at, to) - self.first[at as usize]
    }

    /// Returns the port of [`Guide::next`] for two different switches, by numbers.
    #[inline]
    pub fn next_port(&self, at: u32, hop: u8, arrived_over_local: bool, ev: [u16; 2], to: u32) -> u32 {
        let same_group = self.group[at as usize] == self.group[to as usize];
        let port = match (self.guidance, hop) {
            (Guidance::SlimFly | Guidance::Graph, 0 | 1) => self.port(at, ev[usize::from(hop)], |_| true),
            (Guidance::Dragonfly, 0) => self.port(at, ev[0], |local| local || !same_group),
            (Guidance::Dragonfly, 1) if arrived_over_local && !same_group => self.port(at, ev[1], |local| !local),
            _ => None,
        };
        port.unwrap_or_else(|| self.default_port(at, to)) - self.first[at as usize]
    }

    /// Returns `true` if the default path between two switches crosses a link that is `dead` (per directed link).
    pub fn default_is_dead(&self, mut at: u32, to: u32, dead: &[bool]) -> bool {
        while at != to {
            let port = self.default_port(at, to) as usize;
            if dead[self.link[port].0 as usize] {
                return true;
            }
            at = self.to[port];
        }
        false
    }

    fn switches(&self) -> u32 {
        self.group.len() as u32
    }

    fn group_size(&self) -> u32 {
        self.switches() / self.groups
    }

    fn number(&self, node: NodeId) -> u32 {
        node.0 - self.hosts
    }

    fn ports(&self, switch: u32) -> std::ops::Range<u32> {
        self.first[switch as usize]..self.first[switch as usize + 1]
    }

    fn find_gateways(&mut self) {
        self.gateways = vec![NONE; (self.groups * self.groups) as usize];
        for port in (0..self.link.len()).filter(|port| !self.local[*port]) {
            let (from, to) = (self.group[self.owner[port] as usize], self.group[self.to[port] as usize]);
            let gateway = &mut self.gateways[(from * self.groups + to) as usize];
            *gateway = (port as u32).min(*gateway);
        }
        let groups = self.groups;
        let towards = |at: u32, there: u32| {
            let gateway = self.gateways[(self.group[at as usize] * groups + there) as usize];
            match self.owner.get(gateway as usize) {
                None => NONE,
                Some(owner) if *owner == at => gateway,
                Some(owner) => self.port_to(at, *owner),
            }
        };
        self.group_ports = (0..self.switches() * groups).map(|entry| towards(entry / groups, entry % groups)).collect();
        let size = self.group_size();
        let member = |entry: u32| self.port_to(entry / size, entry / size / size * size + entry % size);
        self.member_ports = (0..self.switches() * size).map(member).collect();
    }

    fn find_default_ports(&mut self) {
        let switches = self.switches();
        let mut table = vec![u16::MAX; (switches * switches) as usize];
        for switch in 0..switches {
            let row = &mut table[(switch * switches) as usize..][..switches as usize];
            let ports = self.first[switch as usize]..self.first[switch as usize + 1];
            // Ports lead to neighbours in ascending order: the smallest number is written last and remains.
            for (number, port) in ports.clone().enumerate().rev() {
                let middle = self.to[port as usize] as usize;
                for beyond in self.first[middle]..self.first[middle + 1] {
                    row[self.to[beyond as usize] as usize] = number as u16;
                }
            }
            for (number, port) in ports.enumerate() {
                row[self.to[port as usize] as usize] = number as u16;
            }
        }
        self.default_ports = table;
    }

    fn find_shortest_ports(&mut self) {
        let switches = self.switches();
        let mut table = vec![u16::MAX; (switches * switches) as usize];
        for to in 0..switches {
            let distances = self.distances(to);
            for at in (0..switches).filter(|at| *at != to) {
                let nearer = |port: &(u16, u32)| distances[self.to[port.1 as usize] as usize] < distances[at as usize];
                let port = (0..).zip(self.ports(at)).find(nearer);
                table[(at * switches + to) as usize] = port.map_or(u16::MAX, |port| port.0);
            }
        }
        self.default_ports = table;
    }

    /// Returns the number of links from every switch to `to`; `u32::MAX` where there is no path.
    fn distances(&self, to: u32) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.switches() as usize];
        let mut reached = vec![to];
        distances[to as usize] = 0;
        let mut next = 0;
        while let Some(&at) = reached.get(next) {
            next += 1;
            for port in self.ports(at) {
                let other = self.to[port as usize];
                if distances[other as usize] == u32::MAX {
                    distances[other as usize] = distances[at as usize] + 1;
                    reached.push(other);
                }
            }
        }
        distances
    }

    /// Returns the largest distance between two switches; `None` if some have no path.
    pub(crate) fn diameter(&self) -> Option<u32> {
        let farthest = |to| self.distances(to).into_iter().max();
        (0..self.switches()).filter_map(farthest).max().filter(|distance| *distance < u32::MAX)
    }

    fn port_to(&self, switch: u32, other: u32) -> u32 {
        let ports = self.ports(switch);
        let neighbours = &self.to[ports.start as usize..ports.end as usize];
        neighbours.binary_search(&other).map_or(NONE, |number| ports.start + number as u32)
    }

    fn default_port(&self, at: u32, to: u32) -> u32 {
        if self.guidance == Guidance::Dragonfly {
            let (here, there) = (self.group[at as usize], self.group[to as usize]);
            return match here == there {
                true => {
                    let size = self.group_size();
                    self.member_ports[(at * size + to % size) as usize]
                }
                false => self.group_ports[(at * self.groups + there) as usize],
            };
        }
        self.first[at as usize] + u32::from(self.default_ports[(at * self.switches() + to) as usize])
    }

    /// Returns the default next hop; `None` at the destination. On Dragonfly it leads over the gateway of the destination's
    /// group, on Slim Fly over the direct link or the common neighbour of the smallest number.
    pub fn minimal(&self, at: NodeId, to: NodeId) -> Option<LinkId> {
        (at != to).then(|| self.link[self.default_port(self.number(at), self.number(to)) as usize])
    }

    /// Returns the next hop at `at` of a packet for `to` that has passed `hop` links between switches, the last of them local
    /// or not; `None` at the destination.
    ///
    /// A part of the entropy value counts modulo the number of switch-facing ports. If that port is not of the kind that the
    /// rules require, it counts modulo the number of those that are. If there are none, the default applies.
    pub fn next(&self, at: NodeId, hop: u8, arrived_over_local: bool, ev: [u16; 2], to: NodeId) -> Option<LinkId> {
        if at == to {
            return None;
        }
        let (at, to) = (self.number(at), self.number(to));
        Some(self.link_at(at, self.next_port(at, hop, arrived_over_local, ev, to)))
    }

    /// Returns the port that a part of an entropy value names; `allowed` takes `true` for local ports.
    fn port(&self, at: u32, ev: u16, allowed: impl Fn(bool) -> bool) -> Option<u32> {
        let ports = self.ports(at);
        let named = ports.start + u32::from(ev) % (ports.len() as u32).max(1);
        let is_allowed = |port: &u32| allowed(self.local[*port as usize]);
        if ports.contains(&named) && is_allowed(&named) {
            return Some(named);
        }
        let count = ports.clone().filter(is_allowed).count();
        ports.filter(is_allowed).nth(usize::from(ev).checked_rem(count)?)
    }

    /// Returns both switches of the global link of the default table between two groups of a Dragonfly. `None` for the same
    /// or an unknown group, and on Slim Fly, whose groups have many links to each other.
    pub fn gateway(&self, from_group: u32, to_group: u32) -> Option<(NodeId, NodeId)> {
        if from_group.max(to_group) >= self.groups {
            return None;
        }
        let port = *self.gateways.get((from_group * self.groups + to_group) as usize)?;
        (port != NONE).then(|| {
            let ends = (self.owner[port as usize], self.to[port as usize]);
            (NodeId(self.hosts + ends.0), NodeId(self.hosts + ends.1))
        })
    }
}
