//! Forwarding tables: the equal-cost shortest next hops of every switch towards every other.

use crate::{
    LinkId, NodeId,
    graph::Graph,
    switch_graph::{SwitchGraph, WideSearch},
};
use rustc_hash::FxHashMap;

/// A set of next hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Index of the first link.
    pub first: u32,
    /// Number of links; 0 if there is no route.
    pub len: u16,
    /// Dense number of the set at its switch.
    pub local: u16,
}

/// Next hops of a packet at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHops<'a> {
    /// The links, in port order; empty if there is no route.
    pub links: &'a [LinkId],
    /// Position of each link among the switch's uplinks in the intact graph (0 for links downwards).
    pub positions: &'a [u16],
    /// Number of each link's output port: its index in [`Graph::out_links`].
    pub ports: &'a [u16],
    /// Dense number of this set at this switch; `u32::MAX` for the link down to a host.
    pub group: u32,
}

/// Equal-cost shortest-path tables over live links. Switches are counted from the first switch.
#[derive(Clone, Debug)]
pub struct Routes {
    hosts: u32,
    /// Leaves in the same place of different planes share a column. `u32::MAX` for switches without hosts.
    column: Vec<u32>,
    columns: usize,
    /// Per (switch, block of [`BLOCK`] columns): the group of all of them, or [`SPLIT`] and an index into `split`. In a tree
    /// most switches forward to all leaves of a block alike.
    blocks: Vec<u32>,
    /// Number of blocks of a switch.
    row: usize,
    split: Vec<[u32; BLOCK]>,
    groups: Vec<Group>,
    links: Vec<LinkId>,
    positions: Vec<u16>,
    ports: Vec<u16>,
    down: Vec<LinkId>,
    groups_at: Vec<u16>,
    widest: Vec<u16>,
    unreachable: u64,
    farthest: u32,
}

/// Columns of a block of the table; divides 64.
const BLOCK: usize = 16;
/// Marks a block whose columns have different groups.
const SPLIT: u32 = 1 << 31;

impl Routes {
    /// Computes tables over the links of `topology` that are not `dead` (per directed link; links beyond its end are live). A
    /// host's own link does not matter.
    pub fn shortest(topology: &Graph, dead: &[bool]) -> Self {
        let (hosts, switches) = (topology.hosts, topology.switches() as usize);
        let edges = topology.edge_switches();
        let mut column = vec![u32::MAX; switches];
        let per_plane = topology.plane_switches();
        for (number, edge) in edges.iter().enumerate() {
            for copy in column.iter_mut().skip((edge.0 - hosts) as usize).step_by(per_plane as usize) {
                *copy = number as u32;
            }
        }
        let mut routes = Routes {
            hosts,
            column,
            columns: edges.len(),
            blocks: vec![0; switches * edges.len().div_ceil(BLOCK)],
            row: edges.len().div_ceil(BLOCK),
            split: Vec::new(),
            groups: Vec::new(),
            links: Vec::new(),
            positions: Vec::new(),
            ports: Vec::new(),
            down: (0..hosts).map(|host| topology.host_uplink(host).reverse()).collect(),
            groups_at: vec![0; switches],
            widest: vec![0; switches],
            unreachable: 0,
            farthest: 0,
        };
        let graph = SwitchGraph::of(topology, |link| !dead.get(link.0 as usize).copied().unwrap_or(false));
        let position = positions(topology);
        let port = port_numbers(topology);
        let mut search = WideSearch::new(&graph);
        let mut sets = Sets::new(&graph);
        for (number, goals) in edges.chunks(64).enumerate() {
            let goals: Vec<u32> = goals.iter().map(|edge| edge.0 - hosts).collect();
            routes.unreachable += search.run(&graph, &goals, per_plane);
            routes.farthest = routes.farthest.max(search.farthest(|switch| routes.column[switch as usize] != u32::MAX));
            for switch in 0..switches as u32 {
                let own = goals.iter().position(|goal| *goal == switch % per_plane);
                let first_block = switch as usize * routes.row + number * (64 / BLOCK);
                let blocks = goals.len().div_ceil(BLOCK);
                let group_of = |routes: &mut Routes, sets: &mut Sets, bit: usize| {
                    sets.known(switch, bit).unwrap_or_else(|| {
                        let group = routes.add(switch, sets.links(&graph, switch, bit), &position, &port);
                        sets.remember(switch, bit, group);
                        group
                    })
                };
                if let Some(bit) = sets.read(&graph, &search, switch, goals.len(), own) {
                    let group = group_of(&mut routes, &mut sets, bit);
                    routes.blocks[first_block..first_block + blocks].fill(group);
                    continue;
                }
                for block in 0..blocks {
                    let bits = block * BLOCK..goals.len().min((block + 1) * BLOCK);
                    let mut groups = [u32::MAX; BLOCK];
                    for bit in bits.clone().filter(|bit| own != Some(*bit)) {
                        groups[bit % BLOCK] = group_of(&mut routes, &mut sets, bit);
                    }
                    // The entries of the switch itself and beyond the last column are as any other.
                    let any = groups.iter().copied().find(|group| *group != u32::MAX).unwrap_or(0);
                    groups.iter_mut().filter(|group| **group == u32::MAX).for_each(|group| *group = any);
                    routes.blocks[first_block + block] = if groups.iter().all(|group| *group == any) {
                        any
                    } else {
                        routes.split.push(groups);
                        SPLIT | (routes.split.len() - 1) as u32
                    };
                }
            }
        }
        routes
    }

    fn add(&mut self, switch: u32, hops: impl Iterator<Item = LinkId>, position: &[u16], port: &[u16]) -> u32 {
        let first = self.links.len();
        self.links.extend(hops);
        self.positions.extend(self.links[first..].iter().map(|l| position[l.0 as usize]));
        self.ports.extend(self.links[first..].iter().map(|l| port[l.0 as usize]));
        let len = (self.links.len() - first) as u16;
        let local = &mut self.groups_at[switch as usize];
        self.groups.push(Group { first: first as u32, len, local: *local });
        *local += 1;
        let widest = &mut self.widest[switch as usize];
        *widest = (*widest).max(len);
        self.groups.len() as u32 - 1
    }

    /// Returns the next hops at switch number `switch` towards `edge`, the number of another switch with hosts: of several
    /// planes, towards that in its place in the plane of `switch`.
    #[inline]
    pub fn towards(&self, switch: u32, edge: u32) -> NextHops<'_> {
        let group = self.groups[self.entry(switch, edge) as usize];
        let range = group.first as usize..group.first as usize + group.len as usize;
        NextHops {
            links: &self.links[range.clone()],
            positions: &self.positions[range.clone()],
            ports: &self.ports[range],
            group: u32::from(group.local),
        }
    }

    /// Returns the set of next hops of [`Routes::towards`].
    #[inline]
    pub fn group(&self, switch: u32, edge: u32) -> Group {
        self.groups[self.entry(switch, edge) as usize]
    }

    /// Returns link number `index` of a set.
    #[inline]
    pub fn link_of(&self, group: Group, index: u32) -> LinkId {
        self.links[(group.first + index) as usize]
    }

    /// Returns the first of [`Routes::towards`]. There must be one, as in every intact graph.
    pub fn first(&self, switch: u32, edge: u32) -> LinkId {
        self.link_of(self.group(switch, edge), 0)
    }

    /// Returns the link down to a host.
    pub fn host_down(&self, host: u32) -> LinkId {
        self.down[host as usize]
    }

    /// Returns the index in [`Routes::groups`] of the next hops at `switch` towards `edge`, another switch with hosts.
    #[inline]
    pub fn entry(&self, switch: u32, edge: u32) -> u32 {
        let column = self.column[edge as usize] as usize;
        let block = self.blocks[switch as usize * self.row + column / BLOCK];
        if block & SPLIT == 0 { block } else { self.split[(block ^ SPLIT) as usize][column % BLOCK] }
    }

    /// Returns the maximum number of hops between two switches with hosts that are connected.
    pub fn farthest(&self) -> u32 {
        self.farthest
    }

    /// Returns the bytes of memory of the table, which equal entries share.
    pub fn table_bytes(&self) -> usize {
        size_of_val(&*self.blocks) + size_of_val(&*self.split)
    }

    /// Returns the number of switches with hosts.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the column of switch number `edge`; `None` if it has no hosts.
    pub fn column(&self, edge: u32) -> Option<u32> {
        Some(self.column[edge as usize]).filter(|column| *column != u32::MAX)
    }

    /// Returns all sets of next hops of all switches.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the number of different sets of next hops at a switch.
    pub fn groups_at(&self, switch: NodeId) -> u32 {
        u32::from(self.groups_at[(switch.0 - self.hosts) as usize])
    }

    /// Returns the maximum number of next hops in a set of a switch.
    pub fn widest(&self, switch: NodeId) -> u32 {
        u32::from(self.widest[(switch.0 - self.hosts) as usize])
    }

    /// Returns the number of ordered pairs (switch, other switch with hosts) without a route.
    pub fn unreachable(&self) -> u64 {
        self.unreachable
    }
}

/// Next hops of one switch towards up to 64 goals as sets of ports, and the group of each set.
struct Sets {
    words: usize,
    /// A row of words per goal: the ports of the current switch that lead nearer to it.
    rows: Vec<u64>,
    /// Last set of each switch and its group, the likeliest to occur next.
    last: Vec<u64>,
    last_group: Vec<u32>,
    known: Vec<FxHashMap<Box<[u64]>, u32>>,
}

impl Sets {
    fn new(graph: &SwitchGraph) -> Self {
        let (switches, words) = (graph.switches(), graph.widest().div_ceil(64).max(1));
        Sets {
            words,
            rows: vec![0; 64 * words],
            last: vec![0; switches * words],
            last_group: vec![u32::MAX; switches],
            known: vec![FxHashMap::default(); switches],
        }
    }

    /// Transposes goals per port into ports per goal. Where all `goals` but the switch's `own` have the same ports, only the
    /// row of one of them is filled, and its number returned.
    fn read(
        &mut self,
        graph: &SwitchGraph,
        search: &WideSearch,
        switch: u32,
        goals: usize,
        own: Option<usize>,
    ) -> Option<usize> {
        let ports = search.goals_of_ports(graph, switch);
        let others = (u64::MAX >> (64 - goals)) & !own.map_or(0, |own| 1 << own);
        if others != 0 && ports.iter().all(|goals| *goals == 0 || *goals == others) {
            let only = others.trailing_zeros() as usize;
            let row = &mut self.rows[only * self.words..(only + 1) * self.words];
            row.fill(0);
            for (port, _) in ports.iter().enumerate().filter(|(_, goals)| **goals != 0) {
                row[port / 64] |= 1 << (port % 64);
            }
            return Some(only);
        }
        self.rows.fill(0);
        for (port, goals) in ports.iter().enumerate() {
            let mut goals = *goals;
            while goals != 0 {
                self.rows[goals.trailing_zeros() as usize * self.words + port / 64] |= 1 << (port % 64);
                goals &= goals - 1;
            }
        }
        None
    }

    fn row(&self, goal: usize) -> &[u64] {
        &self.rows[goal * self.words..(goal + 1) * self.words]
    }

    fn known(&mut self, switch: u32, goal: usize) -> Option<u32> {
        let (row, at) = (goal * self.words, switch as usize * self.words);
        let (row, last) = (&self.rows[row..row + self.words], &mut self.last[at..at + self.words]);
        let last_group = &mut self.last_group[switch as usize];
        if *last_group == u32::MAX || row != last {
            *last_group = *self.known[switch as usize].get(row)?;
            last.copy_from_slice(row);
        }
        Some(*last_group)
    }

    fn remember(&mut self, switch: u32, goal: usize, group: u32) {
        let row: Box<[u64]> = self.row(goal).into();
        self.known[switch as usize].insert(row, group);
    }

    fn links<'a>(&'a self, graph: &'a SwitchGraph, switch: u32, goal: usize) -> impl Iterator<Item = LinkId> + 'a {
        let row = self.row(goal);
        let inside = move |port: &(usize, &LinkId)| row[port.0 / 64] >> (port.0 % 64) & 1 == 1;
        graph.out(switch).iter().enumerate().filter(inside).map(|(_, link)| *link)
    }
}

fn positions(topology: &Graph) -> Vec<u16> {
    let mut position = vec![0; topology.links.len()];
    for switch in 0..topology.switches() {
        for (number, link) in topology.uplinks_of(NodeId(topology.hosts + switch)).enumerate() {
            position[link.0 as usize] = number as u16;
        }
    }
    position
}

fn port_numbers(topology: &Graph) -> Vec<u16> {
    let mut port = vec![0; topology.links.len()];
    for switch in 0..topology.switches() {
        for (number, link) in topology.out_links(NodeId(topology.hosts + switch)).iter().enumerate() {
            port[link.0 as usize] = number as u16;
        }
    }
    port
}

/// Returns the hops from every switch to switch `edge` over live links; `u32::MAX`: no route.
pub(crate) fn distances(
    topology: &Graph,
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
            // The search runs backwards: the link from there to here must be live.
            if to >= topology.hosts && live(link.reverse()) && distance[(to - topology.hosts) as usize] == u32::MAX {
                distance[(to - topology.hosts) as usize] = distance[switch as usize] + 1;
                queue.push(to - topology.hosts);
            }
        }
    }
}
