//! Forwarding tables: the equal-cost shortest next hops of every switch towards every other.

use crate::{LinkId, NodeId, Topology};
use rustc_hash::FxHashMap;

/// A set of next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Index of the first link.
    pub first: u32,
    /// How many there are; 0 where there is no way.
    pub len: u16,
    /// Dense number of the set at its switch.
    pub local: u16,
}

/// The next hops of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHops<'a> {
    /// The links, in port order; empty where there is no way.
    pub links: &'a [LinkId],
    /// For each its position among the switch's uplinks when nothing has failed (0 for links downwards).
    pub positions: &'a [u16],
    /// Dense number of this set at this switch.
    pub group: u32,
}

/// Equal-cost shortest-path tables over the links that live.
#[derive(Clone, Debug)]
pub struct Routes {
    hosts: u32,
    /// Column of each switch in `table`; `u32::MAX` for switches without hosts.
    column: Vec<u32>,
    columns: usize,
    /// Group of (switch, column).
    table: Vec<u32>,
    groups: Vec<Group>,
    links: Vec<LinkId>,
    positions: Vec<u16>,
    groups_at: Vec<u16>,
    widest: Vec<u16>,
    unreachable: u64,
}

impl Routes {
    /// Tables over the links of `topology` that are not `dead` (per directed link; links beyond its end live). Paths
    /// lead over switches and live links only; a host's own link does not matter here.
    pub fn shortest(topology: &Topology, dead: &[bool]) -> Self {
        let (hosts, switches) = (topology.hosts, topology.switches() as usize);
        let mut edges: Vec<u32> = (0..hosts).map(|host| topology.edge_switch(host).0 - hosts).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut column = vec![u32::MAX; switches];
        for (number, edge) in edges.iter().enumerate() {
            column[*edge as usize] = number as u32;
        }
        let mut routes = Routes {
            hosts,
            column,
            columns: edges.len(),
            table: vec![0; switches * edges.len()],
            groups: Vec::new(),
            links: Vec::new(),
            positions: Vec::new(),
            groups_at: vec![0; switches],
            widest: vec![0; switches],
            unreachable: 0,
        };
        let position = positions(topology);
        let live = |link: LinkId| !dead.get(link.0 as usize).copied().unwrap_or(false);
        let mut seen: FxHashMap<(u32, Box<[LinkId]>), u32> = FxHashMap::default();
        let mut distance = vec![u32::MAX; switches];
        let mut queue = Vec::with_capacity(switches);
        for (number, &edge) in edges.iter().enumerate() {
            distances(topology, edge, &live, &mut distance, &mut queue);
            for switch in (0..switches as u32).filter(|s| *s != edge) {
                let here = distance[switch as usize];
                routes.unreachable += u64::from(here == u32::MAX);
                let nearer = |link: &LinkId| {
                    let to = topology.link(*link).to.0;
                    here != u32::MAX && to >= hosts && live(*link) && distance[(to - hosts) as usize] == here - 1
                };
                let hops = topology.out_links(NodeId(hosts + switch)).iter().copied().filter(nearer).collect();
                let key = (switch, hops);
                let group = match seen.get(&key) {
                    Some(group) => *group,
                    None => {
                        let group = routes.add(switch, &key.1, &position);
                        seen.insert(key, group);
                        group
                    }
                };
                routes.table[switch as usize * routes.columns + number] = group;
            }
        }
        routes
    }

    fn add(&mut self, switch: u32, hops: &[LinkId], position: &[u16]) -> u32 {
        let local = &mut self.groups_at[switch as usize];
        self.groups.push(Group { first: self.links.len() as u32, len: hops.len() as u16, local: *local });
        *local += 1;
        self.links.extend(hops);
        self.positions.extend(hops.iter().map(|l| position[l.0 as usize]));
        let widest = &mut self.widest[switch as usize];
        *widest = (*widest).max(hops.len() as u16);
        self.groups.len() as u32 - 1
    }

    /// Next hops at switch number `switch` towards switch number `edge` (numbers count from the first switch). `edge`
    /// must be another switch and have hosts.
    #[inline]
    pub fn towards(&self, switch: u32, edge: u32) -> NextHops<'_> {
        let column = self.column[edge as usize] as usize;
        let group = self.groups[self.table[switch as usize * self.columns + column] as usize];
        let range = group.first as usize..group.first as usize + group.len as usize;
        NextHops { links: &self.links[range.clone()], positions: &self.positions[range], group: u32::from(group.local) }
    }

    /// Next hops at a switch towards a host of another switch.
    pub fn next_hops(&self, topology: &Topology, switch: NodeId, host: u32) -> NextHops<'_> {
        self.towards(switch.0 - self.hosts, topology.edge_switch(host).0 - self.hosts)
    }

    /// Number of different sets of next hops at a switch.
    pub fn groups_at(&self, switch: NodeId) -> u32 {
        u32::from(self.groups_at[(switch.0 - self.hosts) as usize])
    }

    /// Most next hops in a set of a switch.
    pub fn widest(&self, switch: NodeId) -> u32 {
        u32::from(self.widest[(switch.0 - self.hosts) as usize])
    }

    /// Ordered pairs (switch, switch with hosts) between which there is no way.
    pub fn unreachable(&self) -> u64 {
        self.unreachable
    }
}

/// Per directed link its position among the uplinks of its switch.
fn positions(topology: &Topology) -> Vec<u16> {
    let mut position = vec![0; topology.links.len()];
    for switch in 0..topology.switches() {
        for (number, link) in topology.uplinks_of(NodeId(topology.hosts + switch)).enumerate() {
            position[link.0 as usize] = number as u16;
        }
    }
    position
}

/// Hops from every switch to switch `edge` over live links; `u32::MAX`: no way.
pub(crate) fn distances(
    topology: &Topology,
    edge: u32,
    live: &dyn Fn(LinkId) -> bool,
    distance: &mut [u32],
    queue: &mut Vec<u32>,
) {
    distance.fill(u32::MAX);
    distance[edge as usize] = 0;
    queue.clear();
    queue.push(edge);
    let mut next = 0;
    while let Some(&switch) = queue.get(next) {
        next += 1;
        for link in topology.out_links(NodeId(topology.hosts + switch)) {
            let to = topology.link(*link).to.0;
            // The way runs against the search: the link from there to here must live.
            if to >= topology.hosts && live(link.reverse()) && distance[(to - topology.hosts) as usize] == u32::MAX {
                distance[(to - topology.hosts) as usize] = distance[switch as usize] + 1;
                queue.push(to - topology.hosts);
            }
        }
    }
}
