//! Forwarding tables and path sets against a breadth-first search and a walk of every path.

use crate::common::{adjacency, edges, fat_tree, hops_from, leaf_spine, live_links, switches};
use anabranch_topology::{BasePaths, LinkId, NodeId, Routes, Topology};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Switch i has a link to an earlier one; further edges are random.
fn graph(parents: &[u32], further: &[(u32, u32)], hosts: u64) -> Topology {
    let count = parents.len() as u32 + 1;
    let mut edges: Vec<(u32, u32)> = parents.iter().zip(1..).map(|(parent, i)| (parent % i, i)).collect();
    for (a, b) in further {
        let edge = ((a % count).min(b % count), (a % count).max(b % count));
        if edge.0 != edge.1 && !edges.contains(&edge) {
            edges.push(edge);
        }
    }
    let mut text = String::new();
    for switch in 0..count {
        text += &switch.to_string();
        edges.iter().filter(|e| e.0 == switch).for_each(|e| text += &format!(" {}", e.1));
        text.push('\n');
    }
    adjacency(&text, hosts)
}

fn any_topology() -> impl Strategy<Value = Topology> {
    prop_oneof![
        (1..6u64, 1..5u64, 2..4u64, 1..4u64).prop_map(|(l, s, h, p)| leaf_spine(l, s, h, p)),
        (2..4u64, 1..4u64).prop_map(|(tiers, half)| fat_tree(tiers, 2 * half)),
        (prop::collection::vec(any::<u32>(), 1..9), prop::collection::vec(any::<(u32, u32)>(), 0..12), 1..3u64)
            .prop_map(|(parents, further, hosts)| graph(&parents, &further, hosts)),
    ]
}

fn with_dead(topology: impl Strategy<Value = Topology>) -> impl Strategy<Value = (Topology, Vec<bool>)> {
    (topology, 0..=60u8).prop_flat_map(|(topology, percent)| {
        let links = topology.links.len();
        (Just(topology), prop::collection::vec((0..100u8).prop_map(move |p| p < percent), links))
    })
}

/// Returns uplinks in port order: those to the tier above; in graphs without tiers all to switches.
fn uplinks(topology: &Topology, at: NodeId) -> Vec<LinkId> {
    let tiers = !topology.uplinks.is_empty();
    let up = |l: &LinkId| {
        let to = topology.link(*l).to;
        to.0 >= topology.hosts && (!tiers || topology.tier(to) > topology.tier(at))
    };
    topology.out_links(at).iter().copied().filter(up).collect()
}

fn ways(live: &BTreeMap<NodeId, Vec<(LinkId, NodeId)>>, at: NodeId, to: NodeId, left: u32) -> Vec<Vec<LinkId>> {
    if at == to {
        return vec![vec![]];
    }
    if left == 0 {
        return vec![];
    }
    let mut found = Vec::new();
    for (link, next) in live.get(&at).into_iter().flatten() {
        found.extend(ways(live, *next, to, left - 1).into_iter().map(|rest| [vec![*link], rest].concat()));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn next_hops_are_the_links_that_lead_nearer((topology, dead) in with_dead(any_topology())) {
        let routes = Routes::shortest(&topology, &dead);
        let live = live_links(&topology, &dead);
        let hops: BTreeMap<NodeId, BTreeMap<NodeId, u32>> =
            switches(&topology).map(|from| (from, hops_from(&live, from))).collect();
        let mut unreachable = 0;
        for at in switches(&topology) {
            let mut groups: Vec<(u32, Vec<LinkId>)> = Vec::new();
            let mut widest = 0;
            for to in edges(&topology).into_iter().filter(|to| *to != at) {
                let here = hops[&at].get(&to);
                unreachable += u64::from(here.is_none());
                let mut expected: Vec<LinkId> = live.get(&at).into_iter().flatten()
                    .filter(|(_, next)| here.is_some_and(|here| hops[next].get(&to) == Some(&(here - 1))))
                    .map(|(link, _)| *link)
                    .collect();
                let found = routes.towards(at.0 - topology.hosts, to.0 - topology.hosts);
                let ports = topology.out_links(at);
                expected.sort_by_key(|l| ports.iter().position(|p| p == l));
                prop_assert_eq!(found.links, &expected[..]);
                let up = uplinks(&topology, at);
                let positions: Vec<u16> =
                    expected.iter().map(|l| up.iter().position(|u| u == l).unwrap_or(0) as u16).collect();
                prop_assert_eq!(found.positions, &positions[..]);
                if expected.iter().all(|l| up.contains(l)) {
                    prop_assert!(positions.windows(2).all(|w| w[0] < w[1]), "positions ascend");
                }
                widest = widest.max(expected.len() as u32);
                for (group, links) in &groups {
                    prop_assert_eq!(*group == found.group, *links == expected);
                }
                prop_assert!(found.group < routes.groups_at(at));
                groups.push((found.group, expected));
            }
            let mut numbers: Vec<u32> = groups.iter().map(|g| g.0).collect();
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers.len() as u32, routes.groups_at(at));
            prop_assert_eq!(routes.widest(at), widest);
        }
        prop_assert_eq!(routes.unreachable(), unreachable);
    }

    #[test]
    fn paths_are_all_the_shortest_paths((topology, dead) in with_dead(any_topology()), a in any::<u32>(), b in any::<u32>()) {
        let (src, dst) = (a % topology.hosts, b % topology.hosts);
        prop_assume!(src != dst);
        let routes = Routes::shortest(&topology, &dead);
        let live = live_links(&topology, &dead);
        let (from, to) = (topology.edge_switch(src), topology.edge_switch(dst));
        let mut expected: Vec<Vec<LinkId>> = match hops_from(&live, from).get(&to) {
            Some(hops) => ways(&live, from, to, *hops),
            None => vec![],
        };
        for path in &mut expected {
            path.insert(0, topology.host_uplink(src));
            path.push(topology.host_uplink(dst).reverse());
        }
        let found = topology.paths(&routes, src, dst, usize::MAX);
        prop_assert_eq!(topology.shortest_paths(&routes, from, to), expected.len() as u64);
        let port = |link: &LinkId| {
            let from = topology.link(*link).from;
            topology.out_links(from).iter().position(|l| l == link).unwrap()
        };
        expected.sort_by_key(|path| path.iter().map(port).collect::<Vec<_>>());
        prop_assert_eq!(&found, &expected, "all of them, in port order");
        for most in [0, 1, 2] {
            prop_assert_eq!(&topology.paths(&routes, src, dst, most)[..], &expected[..most.min(expected.len())]);
        }
    }

    #[test]
    fn base_paths_are_shortest(topology in any_topology()) {
        let live = live_links(&topology, &[]);
        let mut known = BasePaths::default();
        for src in 0..topology.hosts.min(12) {
            for dst in (0..topology.hosts).filter(|d| *d != src) {
                let path = topology.base_path(src, dst);
                let ends: Vec<(NodeId, NodeId)> =
                    path.iter().map(|l| (topology.link(*l).from, topology.link(*l).to)).collect();
                prop_assert_eq!((ends[0].0, ends[ends.len() - 1].1), (NodeId(src), NodeId(dst)));
                prop_assert!(ends.windows(2).all(|w| w[0].1 == w[1].0), "links follow one another");
                let (from, to) = (topology.edge_switch(src), topology.edge_switch(dst));
                let hops = hops_from(&live, from)[&to];
                prop_assert_eq!(path.len() as u32, hops + 2);
                prop_assert_eq!(topology.switch_distance(from, to), hops);
                prop_assert_eq!(known.path(&topology, src, dst), &path[..]);
                prop_assert_eq!(known.path(&topology, src, dst), &path[..]);
            }
        }
    }

    /// The parts of an entropy value name uplinks; downwards the destination decides, over any live cable.
    #[test]
    fn dead_paths_of_two_tiers(
        (fabric, dead) in with_dead((2..6u64, 1..5u64, 1..4u64).prop_map(|(l, s, p)| leaf_spine(l, s, 1, p)))
    ) {
        let ends = |l: usize| (fabric.links[l].from, fabric.links[l].to);
        for (from, to) in pairs(&fabric) {
            // Part 0 is an uplink in port order: spine by spine, its parallel cables in turn.
            let up = uplinks(&fabric, from);
            prop_assert_eq!(up.len() as u32, fabric.uplinks[0]);
            let expected: Vec<bool> = up.iter().map(|link| {
                let spine = fabric.link(*link).to;
                let down = (0..dead.len()).any(|l| ends(l) == (spine, to) && !dead[l]);
                dead[link.0 as usize] || !down
            }).collect();
            prop_assert_eq!(fabric.dead_paths(from, to, &dead), expected);
        }
    }

    #[test]
    fn dead_paths_of_three_tiers((tree, dead) in with_dead((1..4u64).prop_map(|half| fat_tree(3, 2 * half)))) {
        let half = tree.uplinks[0] as usize;
        let number = |name: &str, index: usize| tree.node_named(&format!("{name}{index}")).unwrap();
        let is_dead = |from: NodeId, to: NodeId| {
            let link = (0..dead.len()).find(|l| (tree.links[*l].from, tree.links[*l].to) == (from, to));
            dead[link.expect("a cable of the tree")]
        };
        for (from, to) in pairs(&tree) {
            let index = |leaf: NodeId| (leaf.0 - tree.hosts) as usize;
            let (pod, other) = (index(from) / half, index(to) / half);
            let found = tree.dead_paths(from, to, &dead);
            // Specification 10.6: agg j of every pod has the cores j*k/2 .. j*k/2 + k/2 - 1.
            let expected: Vec<bool> = if pod == other {
                (0..half).map(|j| {
                    let agg = number("agg", pod * half + j);
                    is_dead(from, agg) || is_dead(agg, to)
                }).collect()
            } else {
                let mut paths = vec![false; half * half];
                for (j, c) in (0..half).flat_map(|j| (0..half).map(move |c| (j, c))) {
                    let (up, down) = (number("agg", pod * half + j), number("agg", other * half + j));
                    let core = number("core", j * half + c);
                    paths[j + half * c] =
                        is_dead(from, up) || is_dead(up, core) || is_dead(core, down) || is_dead(down, to);
                }
                paths
            };
            prop_assert_eq!(found, expected, "{} to {}", tree.node(from).name, tree.node(to).name);
        }
    }
}

fn pairs(topology: &Topology) -> Vec<(NodeId, NodeId)> {
    let edges = edges(topology);
    edges.iter().flat_map(|a| edges.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b).collect()
}

#[test]
fn pairs_without_a_choice_have_no_paths() {
    let tree = fat_tree(2, 4);
    assert_eq!(tree.dead_paths(NodeId(tree.hosts), NodeId(tree.hosts), &vec![true; tree.links.len()]), []);
    let flat = adjacency("0 1\n1", 1);
    assert_eq!(flat.dead_paths(NodeId(2), NodeId(3), &vec![true; flat.links.len()]), []);
}

#[test]
fn a_short_list_of_dead_links_leaves_the_rest_alive() {
    let tree = fat_tree(3, 4);
    let first = tree.link_named("host0-leaf0").unwrap()[1].0 as usize;
    // Hosts' own links do not matter for the tables.
    let routes = Routes::shortest(&tree, &vec![true; first + 1]);
    assert_eq!(routes.unreachable(), 0);
}
