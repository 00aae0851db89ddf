//! Sizes of the built topologies against the closed forms of specification 5.1 and 10.6.

use crate::common::{LOWER, UPPER, cables, edges, fat_tree, leaf_spine, make, of_tier, refused, switches};
use anabranch_topology::{LinkClass, NodeId, Routes};
use anabranch_units::{Rate, Time};

#[test]
fn two_tiers_of_any_radix() {
    for k in (4..=32).step_by(2) {
        let tree = fat_tree(2, k);
        assert_eq!(u64::from(tree.hosts), k * k / 2, "hosts at radix {k}");
        assert_eq!((of_tier(&tree, 0), of_tier(&tree, 1)), (k, k / 2), "leaves and spines at radix {k}");
        assert_eq!(u64::from(tree.switches()), k + k / 2);
        assert_eq!((cables(&tree, LinkClass::Host), cables(&tree, LOWER)), (k * k / 2, k * k / 2));
        assert_eq!(tree.links.len() as u64, 2 * k * k);
        assert!(switches(&tree).all(|s| tree.out_links(s).len() as u64 == k), "every port is used at radix {k}");
        assert_eq!(tree.uplinks, [k as u32 / 2]);
        let summary = tree.summary(4160, 64);
        // host, leaf, spine, leaf, host.
        assert_eq!((summary.diameter_links, summary.diameter_switch_hops), (4, 2));
        let [all] = &summary.paths[..] else { panic!("one kind of pair at radix {k}: {:?}", summary.paths) };
        assert_eq!((all.switch_hops, all.paths, all.pairs), (2, k / 2, k * (k - 1)));
        let rows: Vec<_> = summary.tiers.iter().map(|t| (t.tier, t.switches, t.ports, t.oversubscription)).collect();
        assert_eq!(rows, [(0, k as u32, k as u32, Some(1.0)), (1, k as u32 / 2, k as u32, None)]);
    }
}

#[test]
fn three_tiers_of_any_radix() {
    for k in (4..=32).step_by(2) {
        let tree = fat_tree(3, k);
        let half = k / 2;
        let leaves = k * half;
        assert_eq!(u64::from(tree.hosts), k * k * k / 4, "hosts at radix {k}");
        let tiers = [0, 1, 2].map(|tier| of_tier(&tree, tier));
        assert_eq!(tiers, [leaves, leaves, half * half], "leaves, aggs and cores at radix {k}");
        for class in [LinkClass::Host, LOWER, UPPER] {
            assert_eq!(cables(&tree, class), k * k * k / 4, "{} cables at radix {k}", class.name());
        }
        assert!(switches(&tree).all(|s| tree.out_links(s).len() as u64 == k), "every port is used at radix {k}");
        assert_eq!(tree.uplinks, [half as u32; 2]);
        let routes = Routes::shortest(&tree, &[]);
        let leaf = |number: u64| NodeId(tree.hosts + number as u32);
        // Leaf 0 and its pod, leaf 0 and all others.
        for other in 1..leaves {
            let expected = if other < half { half } else { half * half };
            assert_eq!(tree.shortest_paths(&routes, leaf(0), leaf(other)), expected, "paths to leaf{other} at {k}");
            let distance = if other < half { 2 } else { 4 };
            assert_eq!(tree.switch_distance(leaf(0), leaf(other)), distance);
        }
        assert_eq!(routes.unreachable(), 0);
        if k > 8 {
            continue;
        }
        let summary = tree.summary(4160, 64);
        // host, leaf, agg, core, agg, leaf, host.
        assert_eq!((summary.diameter_links, summary.diameter_switch_hops), (6, 4));
        let found: Vec<_> = summary.paths.iter().map(|p| (p.switch_hops, p.paths, p.pairs)).collect();
        // A leaf has half - 1 others in its pod and leaves - half outside.
        assert_eq!(found, [(2, half, leaves * (half - 1)), (4, half * half, leaves * (leaves - half))]);
        assert_eq!(summary.cables.iter().map(|c| c.1).collect::<Vec<_>>(), [k * k * k / 4; 3]);
        assert_eq!(summary.cables.iter().map(|c| c.0.as_str()).collect::<Vec<_>>(), ["host", "tier0-1", "tier1-2"]);
    }
}

/// specification 17.1: `fat_k4_100G_OS2` has 32 hosts; each of its 8 leaves has 4 hosts and 2 uplinks.
#[test]
fn an_oversubscribed_tree_has_more_hosts_per_leaf() {
    let tree = make("fat-tree", "tiers=3 radix=4 oversubscription=2").unwrap();
    assert_eq!((tree.hosts, tree.switches(), tree.links.len()), (32, 20, 2 * (32 + 16 + 16)));
    for leaf in edges(&tree) {
        assert_eq!(((0..32).filter(|&h| tree.edge_switch(h) == leaf).count(), tree.uplinks_of(leaf).count()), (4, 2));
    }
    assert_eq!(tree.uplinks, [2, 2]);
}

#[test]
fn leaf_spine_sizes() {
    for (leaves, spines, hosts, parallel) in [(8, 8, 16, 1), (2, 1, 1, 1), (5, 3, 7, 2), (4, 2, 8, 4)] {
        let fabric = leaf_spine(leaves, spines, hosts, parallel);
        assert_eq!(u64::from(fabric.hosts), leaves * hosts);
        assert_eq!((of_tier(&fabric, 0), of_tier(&fabric, 1)), (leaves, spines));
        assert_eq!(cables(&fabric, LOWER), leaves * spines * parallel);
        assert_eq!(fabric.uplinks, [(spines * parallel) as u32]);
        for switch in switches(&fabric) {
            let expected = if fabric.tier(switch) == Some(0) { hosts + spines * parallel } else { leaves * parallel };
            assert_eq!(fabric.out_links(switch).len() as u64, expected);
        }
        let routes = Routes::shortest(&fabric, &[]);
        // Any of the parallel cables up, any of them down.
        let paths = fabric.shortest_paths(&routes, NodeId(fabric.hosts), NodeId(fabric.hosts + 1));
        assert_eq!(paths, spines * parallel * parallel);
        assert_eq!(fabric.oversubscription(), hosts as f64 / (spines * parallel) as f64);
    }
}

#[test]
fn oversubscription_counts_rates() {
    // Hopper §4.1.1: 16 hosts at 100 Gb/s over 8 uplinks at 100 Gb/s is 2 to 1.
    let hopper = make("leaf-spine", "").unwrap();
    assert_eq!((hopper.hosts, hopper.oversubscription()), (128, 2.0));
    // 16 hosts at 25 Gb/s over 4 spines with 2 cables at 100 Gb/s: 400 to 800.
    let half = make("leaf-spine", "spines=4 links_per_spine=2 host_link_rate=25Gbps host_link_delay=10ns").unwrap();
    assert_eq!(half.oversubscription(), 0.5);
    assert_eq!(half.nic_rate(), Rate::gbps(25));
    let host = half.link(half.host_uplink(3));
    assert_eq!((host.rate, host.delay), (Rate::gbps(25), Time::from_ns(10)));
    let mut between = half.links.iter().filter(|l| l.class == LOWER);
    assert!(between.all(|l| (l.rate, l.delay) == (Rate::gbps(100), Time::from_us(1))));
}

#[test]
fn names_and_ports() {
    let tree = fat_tree(3, 4);
    let named = |name: &str| tree.node_named(name).unwrap();
    assert_eq!((named("host0"), named("host15")), (NodeId(0), NodeId(15)));
    assert_eq!(
        (named("leaf0"), named("leaf7"), named("agg0"), named("core0"), named("core3")),
        (NodeId(16), NodeId(23), NodeId(24), NodeId(32), NodeId(35))
    );
    let ports = |name: &str| -> Vec<String> {
        let node = named(name);
        tree.out_links(node).iter().map(|l| tree.node(tree.link(*l).to).name.clone()).collect()
    };
    // Down first, then up, each by number; agg j of every pod has cores j*k/2 .. j*k/2 + k/2 - 1.
    assert_eq!(ports("host5"), ["leaf2"]);
    assert_eq!(ports("leaf2"), ["host4", "host5", "agg2", "agg3"]);
    assert_eq!(ports("agg3"), ["leaf2", "leaf3", "core2", "core3"]);
    assert_eq!(ports("agg6"), ["leaf6", "leaf7", "core0", "core1"]);
    assert_eq!(ports("core1"), ["agg0", "agg2", "agg4", "agg6"]);
    let up = tree.link_named("leaf2->agg3").unwrap();
    assert_eq!(up.len(), 1);
    assert_eq!(tree.link_name(up[0]), "leaf2->agg3");
    assert_eq!(tree.link_name(up[0].reverse()), "agg3->leaf2");
    assert_eq!(tree.cable_name(up[0].reverse()), "leaf2-agg3");
    assert!(tree.is_up(up[0]) && !tree.is_up(up[0].reverse()));
}

#[test]
fn parallel_cables_have_names_of_their_own() {
    let fabric = leaf_spine(2, 2, 1, 3);
    let leaf = fabric.node_named("leaf1").unwrap();
    let names: Vec<String> = fabric.out_links(leaf).iter().map(|l| fabric.link_name(*l)).collect();
    let to = |spine: u32| ["", "#1", "#2"].map(|n| format!("leaf1->spine{spine}{n}"));
    let expected: Vec<String> = ["leaf1->host1".to_string()].into_iter().chain(to(0)).chain(to(1)).collect();
    assert_eq!(names, expected);
    for link in fabric.link_ids() {
        assert_eq!(fabric.link_named(&fabric.link_name(link)).unwrap(), [link]);
        let cable = fabric.link_named(&fabric.cable_name(link)).unwrap();
        assert_eq!(cable, [link.min(link.reverse()), link.max(link.reverse())]);
    }
    assert_eq!(fabric.link_named("spine0-leaf1#2").unwrap(), fabric.link_named("leaf1-spine0#2").unwrap());
    let error = fabric.link_named("leaf1-spine0#3").unwrap_err();
    assert!(error.message.contains("leaf1-spine0#3"), "{error}");
    let error = fabric.link_named("leaf1-spin0").unwrap_err();
    assert!(error.message.contains("did you mean `leaf1-spine0`"), "{error}");
    let error = fabric.node_named("spine9").unwrap_err();
    assert!(error.message.contains("spine0 to spine1"), "{error}");
}

#[test]
fn hosts_attach_in_blocks() {
    for topology in [fat_tree(2, 8), fat_tree(3, 6), leaf_spine(3, 2, 5, 1)] {
        let per_leaf = topology.hosts / edges(&topology).len() as u32;
        for host in 0..topology.hosts {
            assert_eq!(topology.edge_switch(host), NodeId(topology.hosts + host / per_leaf));
            assert_eq!(topology.tier(topology.edge_switch(host)), Some(0));
        }
    }
}

#[test]
fn impossible_parameters_are_refused() {
    for [kind, keys, key, said] in refused("parameters") {
        let error = make(&kind, &keys).expect_err(&keys);
        assert_eq!(error.key.as_deref().unwrap_or_default(), key, "{kind} {keys}: {error}");
        assert!(error.message.contains(&said), "{kind} {keys}: {error}");
    }
}
