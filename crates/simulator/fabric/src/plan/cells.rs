//! Split of a fabric into cells, and of cells into partitions, one per thread.

use anabranch_topology::{NodeId, Topology, partition};

/// Minimum delay between cells, in picoseconds. Shorter windows cost more than cells gain: closer switches share a cell.
const MIN_WINDOW: u64 = 20_000;
/// Maximum number of cells that a port can name; beyond it, neighbours in the order of switches share a cell.
const MAX_CELLS: usize = u16::MAX as usize - 1;

/// Returns a warning where `topology` has more groups of switches than cells, so that neighbours share a cell.
pub fn shared_cells(topology: &Topology) -> Option<String> {
    let switches = topology.switches() as usize;
    if switches <= MAX_CELLS {
        return None;
    }
    let mut groups = Groups::new(switches);
    for link in &topology.links {
        let (from, to) = (place(topology, link.from), place(topology, link.to));
        if from != to && link.delay.saturating_add(topology.switch_latency).ps() < MIN_WINDOW {
            groups.join(from, to);
        }
    }
    let count = groups.count();
    let together = count.div_ceil(MAX_CELLS);
    (together > 1).then(|| {
        format!(
            "[topology]: {count} groups of switches, {MAX_CELLS} are kept apart: {together} neighbours each share a cell, so the \
             run is slower; results are the same"
        )
    })
}

/// The cells of a fabric. They depend on the fabric alone, never on the number of threads.
#[derive(Clone, Debug)]
pub(crate) struct CellPlan {
    pub(crate) of_node: Vec<u16>,
    pub(crate) owner: Vec<u16>,
    pub(crate) partitions: usize,
    /// Length of a window in picoseconds: minimum time from a cause in one cell to its effect in another.
    pub(crate) lookahead: u64,
}

impl CellPlan {
    /// Splits `topology` into cells and at most `threads` partitions. `delays` are those of its directed links in
    /// picoseconds, with the latency of the switch that a link leads to. `remote` is the minimum time in which a host affects
    /// another without a link: by a trigger, or over scale-up. Threads share `load`, the bytes that each host sends and receives. With `one` there
    /// is a single cell, as a reference for tests.
    pub(crate) fn new(
        topology: &Topology,
        delays: &[u64],
        remote: Option<u64>,
        threads: usize,
        load: &[u64],
        one: bool,
    ) -> Self {
        let (hosts, switches) = (topology.hosts, topology.switches() as usize);
        let between = |link: usize| {
            let ends = &topology.links[link];
            let (from, to) = (place(topology, ends.from), place(topology, ends.to));
            (from != to).then_some((from, to))
        };
        let mut groups = Groups::new(switches);
        let together = one || remote.is_some_and(|latency| latency < MIN_WINDOW);
        for (link, &delay) in delays.iter().enumerate() {
            let Some((from, to)) = between(link) else { continue };
            if together || delay < MIN_WINDOW {
                groups.join(from, to);
            }
        }
        groups.merge_into(if together { 1 } else { MAX_CELLS });
        let of_switch = groups.numbers();
        let cells = of_switch.iter().max().map_or(1, |last| usize::from(*last) + 1);
        let crossing =
            (0..delays.len()).filter(|&link| between(link).is_some_and(|(a, b)| of_switch[a] != of_switch[b]));
        let mut lookahead = crossing.map(|link| delays[link]).min();
        if cells > 1 {
            // Without links between cells, only remote effects bound the window.
            lookahead = [lookahead, remote].into_iter().flatten().min();
        }
        let parts = shares(topology, threads.clamp(1, cells), load);
        let mut owner = vec![u16::MAX; cells];
        for (switch, &cell) in of_switch.iter().enumerate().rev() {
            owner[usize::from(cell)] = parts[hosts as usize + switch];
        }
        // After merging, a part may own no cell.
        let mut used: Vec<u16> = owner.clone();
        used.sort_unstable();
        used.dedup();
        for part in &mut owner {
            *part = used.binary_search(part).expect("a part in use") as u16;
        }
        let of_host = (0..hosts).map(|host| of_switch[(topology.edge_switch(host).0 - hosts) as usize]);
        let of_node = of_host.chain(of_switch.iter().copied()).collect();
        // A single cell permits windows of any length; that of a few packets suits.
        let lookahead = lookahead.unwrap_or_else(|| delays.iter().copied().min().unwrap_or(0).max(1_000_000));
        CellPlan { of_node, owner, partitions: used.len().max(1), lookahead }
    }

    pub(crate) fn cells(&self) -> usize {
        self.owner.len()
    }

    pub(crate) fn owner_of(&self, node: NodeId) -> u16 {
        self.owner[usize::from(self.of_node[node.0 as usize])]
    }
}

/// Returns the switch whose cell a node is in: a host is in that of its leaf, of several planes in the first.
fn place(topology: &Topology, node: NodeId) -> usize {
    let switch = if node.0 < topology.hosts { topology.edge_switch(node.0) } else { node };
    (switch.0 - topology.hosts) as usize
}

/// Pieces of a fabric per thread, from which shares are assembled.
const PIECES: usize = 8;

/// Returns the thread of each node: each piece, the heaviest first, is assigned to the thread with the least load.
fn shares(topology: &Topology, threads: usize, load: &[u64]) -> Vec<u16> {
    let pieces = partition(topology, if threads == 1 { 1 } else { threads * PIECES });
    let count = pieces.iter().max().map_or(1, |last| usize::from(*last) + 1);
    let mut weights = vec![0u64; count];
    for (host, bytes) in load.iter().enumerate() {
        for plane in 0..topology.planes {
            let leaf = topology.edge_switch_in(host as u32, plane);
            let weight = &mut weights[usize::from(pieces[leaf.0 as usize])];
            *weight = weight.saturating_add(*bytes / u64::from(topology.planes));
        }
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&piece| (std::cmp::Reverse(weights[piece]), piece));
    let mut done = vec![(0u64, 0u32); threads];
    let mut thread_of = vec![0; count];
    for piece in order {
        // Pieces without hosts carry traffic of the others: they are shared out by number.
        let thread = (0..threads).min_by_key(|&thread| done[thread]).unwrap_or(0);
        done[thread].0 = done[thread].0.saturating_add(weights[piece]);
        done[thread].1 += 1;
        thread_of[piece] = thread as u16;
    }
    pieces.iter().map(|piece| thread_of[usize::from(*piece)]).collect()
}

/// Disjoint sets (union-find).
struct Groups {
    parent: Vec<u32>,
}

impl Groups {
    fn new(count: usize) -> Self {
        Groups { parent: (0..count as u32).collect() }
    }

    fn root(&mut self, mut switch: usize) -> usize {
        while self.parent[switch] as usize != switch {
            self.parent[switch] = self.parent[self.parent[switch] as usize];
            switch = self.parent[switch] as usize;
        }
        switch
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a.max(b)] = a.min(b) as u32;
    }

    fn count(&mut self) -> usize {
        (0..self.parent.len()).filter(|&switch| self.root(switch) == switch).count()
    }

    /// Joins neighbouring sets until at most `max` remain.
    fn merge_into(&mut self, max: usize) {
        let roots: Vec<usize> = (0..self.parent.len()).filter(|&switch| self.root(switch) == switch).collect();
        let together = roots.len().div_ceil(max).max(1);
        for merged in roots.chunks(together) {
            merged[1..].iter().for_each(|&switch| self.join(merged[0], switch));
        }
    }

    /// Returns dense numbers, ordered by the sets' first switches.
    fn numbers(&mut self) -> Vec<u16> {
        let mut next = 0;
        let mut numbers = vec![0; self.parent.len()];
        for switch in 0..self.parent.len() {
            let root = self.root(switch);
            if root == switch {
                numbers[switch] = next;
                next += 1;
            } else {
                numbers[switch] = numbers[root];
            }
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_settings::Raw;
    use anabranch_topology::TopologyParameters;

    /// 8 leaves of 4 hosts, 4 spines.
    fn fat_tree(delay: &str) -> Topology {
        let mut parameters = TopologyParameters::named("fat-tree").expect("a topology");
        let keys = [("tiers", Raw::Int(2)), ("radix", Raw::Int(8)), ("link_delay", Raw::Text(delay.into()))];
        for (key, value) in keys {
            parameters.parameters_mut().set(key, &value).expect("a parameter");
        }
        parameters.build(&|path| Err(std::io::Error::other(path.to_string()))).expect("a topology")
    }

    fn cells(topology: &Topology, trigger: Option<u64>, threads: usize, load: &[u64]) -> CellPlan {
        let delays: Vec<u64> = topology.links.iter().map(|link| link.delay.ps()).collect();
        CellPlan::new(topology, &delays, trigger, threads, load, false)
    }

    #[test]
    fn a_leaf_with_its_hosts_is_a_cell() {
        let topology = fat_tree("1us");
        let plan = cells(&topology, None, 1, &[1; 32]);
        assert_eq!((plan.cells(), plan.partitions, plan.lookahead), (12, 1, 1_000_000));
        for host in 0..32 {
            assert_eq!(plan.of_node[host], plan.of_node[topology.edge_switch(host as u32).0 as usize]);
        }
    }

    #[test]
    fn switches_that_are_near_each_other_share_a_cell() {
        assert_eq!(cells(&fat_tree("19999ps"), None, 3, &[1; 32]).cells(), 1);
        assert_eq!(cells(&fat_tree("20ns"), None, 3, &[1; 32]).cells(), 12);
        // A flow that starts another at once, on any host.
        assert_eq!(cells(&fat_tree("1us"), Some(0), 3, &[1; 32]).cells(), 1);
        assert_eq!(cells(&fat_tree("1us"), Some(300_000), 3, &[1; 32]).lookahead, 300_000);
    }

    /// 65,700 sets are merged in pairs, not into one; sets within the limit stay apart.
    #[test]
    fn too_many_sets_are_merged_by_neighbours() {
        let count = |switches: usize, max: usize| {
            let mut groups = Groups::new(switches);
            groups.merge_into(max);
            let numbers = groups.numbers();
            assert!(numbers.is_sorted());
            numbers.last().map_or(0, |last| usize::from(*last) + 1)
        };
        assert_eq!(
            (count(65_700, MAX_CELLS), count(65_534, MAX_CELLS), count(65_535, MAX_CELLS)),
            (32_850, 65_534, 32_768)
        );
        assert_eq!((count(12, 1), count(1, 1), count(7, 3)), (1, 1, 3));
    }

    /// A fabric with more switches than cells: two leaves and 65,534 spines.
    #[test]
    fn fabric_of_many_switches_keeps_its_cells() {
        let mut parameters = TopologyParameters::named("leaf-spine").expect("a topology");
        for (key, value) in [("leaves", 2), ("spines", 65_534), ("hosts_per_leaf", 1)] {
            parameters.parameters_mut().set(key, &Raw::Int(value)).expect("a parameter");
        }
        let topology = parameters.build(&|path| Err(std::io::Error::other(path.to_string()))).expect("a topology");
        let plan = cells(&topology, None, 1, &[1; 2]);
        assert_eq!((plan.cells(), plan.lookahead), (32_768, 1_000_000));
        let warning = shared_cells(&topology).expect("a warning");
        assert!(warning.contains("65536 groups") && warning.contains("2 neighbours"), "{warning}");
        assert_eq!(shared_cells(&fat_tree("1us")), None);
    }

    /// Only the first four leaves have load; each of two threads gets two of them.
    #[test]
    fn threads_share_the_load() {
        let topology = fat_tree("1us");
        let load: Vec<u64> = (0..32).map(|host| u64::from(host < 16)).collect();
        let plan = cells(&topology, None, 2, &load);
        assert_eq!(plan.partitions, 2);
        let of_first: u64 =
            (0..32).filter(|&host| plan.owner_of(NodeId(host)) == 0).map(|host| load[host as usize]).sum();
        assert_eq!(of_first, 8);
        let spines = (40..44).filter(|&switch| plan.owner_of(NodeId(switch)) == 0).count();
        assert_eq!(spines, 2);
    }

    #[test]
    fn cells_do_not_depend_on_threads() {
        let topology = fat_tree("1us");
        let one = cells(&topology, None, 1, &[1; 32]);
        for threads in 2..20 {
            assert_eq!(cells(&topology, None, threads, &[1; 32]).of_node, one.of_node);
        }
    }
}
