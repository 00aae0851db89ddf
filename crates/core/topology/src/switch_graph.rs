//! Graph of switches alone, laid out for searches: hosts are leaves of the graph and never on a path between others.

use crate::{LinkId, NodeId, graph::Graph};

#[derive(Clone, Copy)]
pub(crate) struct Incoming {
    pub(crate) from: u32,
    /// Index among the links of `from` to switches, in port order.
    pub(crate) port: u32,
}

/// Live links between switches.
pub(crate) struct SwitchGraph {
    into_first: Vec<u32>,
    into: Vec<Incoming>,
    out_first: Vec<u32>,
    /// In port order, dead ones included.
    out: Vec<LinkId>,
}

#[derive(Default)]
pub(crate) struct Search {
    /// Hops to the goal; `u32::MAX`: unreachable.
    pub(crate) distance: Vec<u32>,
    pub(crate) order: Vec<u32>,
}

impl SwitchGraph {
    pub(crate) fn of(topology: &Graph, live: impl Fn(LinkId) -> bool) -> Self {
        let switches = topology.switches();
        let node = |switch: u32| NodeId(topology.hosts + switch);
        let to_switch = |link: &LinkId| topology.link(*link).to.0 >= topology.hosts;
        let mut out_first = vec![0];
        let mut out = Vec::new();
        let mut port = vec![u32::MAX; topology.links.len()];
        for switch in 0..switches {
            for (index, link) in topology.out_links(node(switch)).iter().filter(|l| to_switch(l)).enumerate() {
                port[link.0 as usize] = index as u32;
                out.push(*link);
            }
            out_first.push(out.len() as u32);
        }
        let mut into_first = vec![0];
        let mut into = Vec::with_capacity(out.len());
        for switch in 0..switches {
            for link in topology.out_links(node(switch)).iter().filter(|l| to_switch(l)).map(|l| l.reverse()) {
                if live(link) {
                    into.push(Incoming {
                        from: topology.link(link).from.0 - topology.hosts,
                        port: port[link.0 as usize],
                    });
                }
            }
            into_first.push(into.len() as u32);
        }
        SwitchGraph { into_first, into, out_first, out }
    }

    pub(crate) fn switches(&self) -> usize {
        self.out_first.len() - 1
    }

    pub(crate) fn into(&self, switch: u32) -> &[Incoming] {
        &self.into[self.into_first[switch as usize] as usize..self.into_first[switch as usize + 1] as usize]
    }

    /// In port order, dead ones included.
    pub(crate) fn out(&self, switch: u32) -> &[LinkId] {
        &self.out[self.out_first[switch as usize] as usize..self.out_first[switch as usize + 1] as usize]
    }

    pub(crate) fn widest(&self) -> usize {
        self.out_first.windows(2).map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0)
    }

    /// Calls `nearer(switch, link)` for every `link` into `switch` that leads a hop nearer to `goal`.
    pub(crate) fn search(&self, goal: u32, search: &mut Search, mut nearer: impl FnMut(u32, Incoming)) {
        let Search { distance, order } = search;
        distance.clear();
        distance.resize(self.switches(), u32::MAX);
        distance[goal as usize] = 0;
        order.clear();
        order.push(goal);
        let mut next = 0;
        while let Some(&switch) = order.get(next) {
            next += 1;
            let here = distance[switch as usize] + 1;
            for &way in self.into(switch) {
                let found = &mut distance[way.from as usize];
                if *found == u32::MAX {
                    *found = here;
                    order.push(way.from);
                }
                if *found == here {
                    nearer(switch, way);
                }
            }
        }
    }
}

/// Breadth-first searches towards up to 64 goals side by side; a goal is a bit.
pub(crate) struct WideSearch {
    /// Goals that each switch has been found to reach.
    seen: Vec<u64>,
    /// Goals that each switch reaches in exactly the hops searched so far.
    level: Vec<u64>,
    next: Vec<u64>,
    /// Goals that each link of `SwitchGraph::out` leads nearer to.
    nearer: Vec<u64>,
    /// Last level in which each switch was found.
    found_at: Vec<u32>,
}

impl WideSearch {
    pub(crate) fn new(graph: &SwitchGraph) -> Self {
        let switches = vec![0; graph.switches()];
        WideSearch {
            found_at: vec![0; graph.switches()],
            seen: switches.clone(),
            level: switches.clone(),
            next: switches,
            nearer: vec![0; graph.out.len()],
        }
    }

    /// Returns the number of pairs of a switch and a goal that are not connected. Switches `stride` apart are one goal.
    pub(crate) fn run(&mut self, graph: &SwitchGraph, goals: &[u32], stride: u32) -> u64 {
        self.seen.fill(0);
        self.nearer.fill(0);
        self.found_at.fill(0);
        let mut hops = 0;
        let mut active = Vec::new();
        let copies = |(bit, first): (usize, &u32)| {
            (*first..graph.switches() as u32).step_by(stride as usize).map(move |goal| (bit, goal))
        };
        for (bit, goal) in goals.iter().enumerate().flat_map(copies) {
            if self.level[goal as usize] == 0 {
                active.push(goal);
            }
            self.level[goal as usize] |= 1 << bit;
            self.seen[goal as usize] |= 1 << bit;
        }
        while !active.is_empty() {
            let mut found = Vec::new();
            for &switch in &active {
                let goals = std::mem::take(&mut self.level[switch as usize]);
                for way in graph.into(switch) {
                    // Goals that `way.from` reaches first in this level, which is not in `seen` yet.
                    let new = goals & !self.seen[way.from as usize];
                    if new != 0 {
                        self.nearer[(graph.out_first[way.from as usize] + way.port) as usize] |= new;
                        let next = &mut self.next[way.from as usize];
                        if *next == 0 {
                            found.push(way.from);
                        }
                        *next |= new;
                    }
                }
            }
            hops += 1;
            for &switch in &found {
                self.seen[switch as usize] |= self.next[switch as usize];
                self.found_at[switch as usize] = hops;
            }
            std::mem::swap(&mut self.level, &mut self.next);
            active = found;
        }
        self.seen.iter().map(|seen| goals.len() as u64 - u64::from(seen.count_ones())).sum()
    }

    /// Returns the maximum number of hops to a goal of the last search from a switch that is `chosen`.
    pub(crate) fn farthest(&self, chosen: impl Fn(u32) -> bool) -> u32 {
        (0..).zip(&self.found_at).filter(|(switch, _)| chosen(*switch)).map(|(_, hops)| *hops).max().unwrap_or(0)
    }

    pub(crate) fn goals_of_ports(&self, graph: &SwitchGraph, switch: u32) -> &[u64] {
        &self.nearer[graph.out_first[switch as usize] as usize..graph.out_first[switch as usize + 1] as usize]
    }
}
