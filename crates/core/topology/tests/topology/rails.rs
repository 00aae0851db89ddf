//! Clos, rail-optimised and rail-only fabrics against counts by hand and a plain breadth-first search.

use crate::common::{LOWER, UPPER, cables, edges, hops_from, live_links, make, of_tier, switches};
use anabranch_topology::{NodeId, Rails, Routes, Topology, partition};
use anabranch_units::{Rate, Time};

fn optimised(keys: &str) -> Topology {
    make("rail-optimised", keys).unwrap()
}

fn only(keys: &str) -> Topology {
    make("rail-only", keys).unwrap()
}

/// NVIDIA's table of component counts (RA-11333-001): two scalable units are 64 nodes, 512 GPUs, 16 leaves, 8 spines, 512
/// cables from nodes to leaves and 512 from leaves to spines; four are 128 nodes, 32 leaves, 16 spines, 1024 and 1024.
#[test]
fn superpods_of_two_and_four_units() {
    for (servers, leaves, spines, links_per_spine) in [(64, 16, 8, 4), (128, 32, 16, 2)] {
        let pod = optimised(&format!("servers={servers} spines={spines} links_per_spine={links_per_spine}"));
        assert_eq!((u64::from(pod.hosts), of_tier(&pod, 0), of_tier(&pod, 1)), (servers * 8, leaves, spines));
        assert_eq!((cables(&pod, LOWER), pod.oversubscription()), (servers * 8, 1.0));
        // QM9700: every switch has 64 ports.
        assert!(switches(&pod).all(|switch| pod.out_links(switch).len() == 64));
        assert_eq!(pod.rails, Some(Rails { count: 8, are_joined: true }));
    }
}

/// The same table: sixteen units are 512 nodes, 4096 GPUs, 128 leaves, 128 spines, 64 cores and 4096 cables of each class.
#[test]
fn superpod_of_sixteen_units_has_three_tiers() {
    // 16 pods of 8 spines; a leaf has 32 uplinks, 4 to each; 8 cores above each spine number, 4 cables to each.
    let pod = optimised("servers=512 spines=8 links_per_spine=4 cores=64 links_per_core=4");
    assert_eq!(pod.hosts, 4096);
    assert_eq!([0, 1, 2].map(|tier| of_tier(&pod, tier)), [128, 128, 64]);
    assert_eq!([cables(&pod, LOWER), cables(&pod, UPPER)], [4096, 4096]);
    assert!(switches(&pod).all(|switch| pod.out_links(switch).len() == 64));
    assert_eq!(pod.uplinks, [32, 32]);
    assert_eq!(pod.node(NodeId(4096 + 128 + 128)).name, "core0");
}

#[test]
fn leaf_r_of_a_pod_connects_nic_r_of_its_servers() {
    // 7 servers in pods of 3: 3, 3 and 1; leaf 4 p + r.
    let fabric = optimised("servers=7 rails=4 servers_per_pod=3 spines=2");
    assert_eq!((fabric.hosts, of_tier(&fabric, 0)), (28, 12));
    for host in 0..28 {
        let (server, nic) = (host / 4, host % 4);
        assert_eq!(fabric.edge_switch(host).0 - 28, server / 3 * 4 + nic, "host{host}");
    }
    assert!(fabric.is_connected(0, 1));
    // Servers 0 and 1 on rail 2 share leaf 2, server 3 is in the next pod: leaf 6.
    let of = |server: u32, rail: u32| fabric.edge_switch(server * 4 + rail);
    assert_eq!(of(0, 2), of(1, 2));
    // 2 spines with 4 cables each (the default): 2 * 4 * 4.
    let routes = Routes::shortest(&fabric, &[]);
    for (from, to) in [(of(0, 2), of(3, 2)), (of(0, 2), of(0, 3))] {
        assert_eq!(fabric.shortest_paths(&routes, from, to), 32);
    }
}

#[test]
fn pods_with_spines_of_their_own_meet_at_the_cores() {
    // 2 pods of 2 servers and 2 rails; 2 spines per pod, 4 cores: spine j leads to cores 2 j and 2 j + 1.
    let keys = "servers=4 rails=2 servers_per_pod=2 spines=2 links_per_spine=1 cores=4 links_per_core=3 core_link_rate=800Gbps";
    let fabric = optimised(keys);
    assert_eq!([0, 1, 2].map(|tier| of_tier(&fabric, tier)), [4, 4, 4]);
    assert_eq!([cables(&fabric, LOWER), cables(&fabric, UPPER)], [4 * 2, 4 * 2 * 3]);
    assert!(fabric.links.iter().filter(|l| l.class == UPPER).all(|l| l.rate == Rate::gbps(800)));
    let named = |name: &str| fabric.node_named(name).unwrap();
    let above = |name: &str| {
        let mut all: Vec<String> =
            fabric.uplinks_of(named(name)).map(|l| fabric.node(fabric.link(l).to).name.clone()).collect();
        all.dedup();
        all
    };
    assert_eq!(
        (above("leaf1"), above("leaf2")),
        (vec!["spine0".into(), "spine1".into()], vec!["spine2".into(), "spine3".into()])
    );
    assert_eq!(
        (above("spine1"), above("spine2")),
        (vec!["core2".into(), "core3".into()], vec!["core0".into(), "core1".into()])
    );
    let routes = Routes::shortest(&fabric, &[]);
    // In the pod over 2 spines; between pods over 2 spines, 2 cores each, 3 cables up and 3 down.
    for (to, hops, paths) in [("leaf1", 2, 2), ("leaf3", 4, 2 * 2 * 9)] {
        assert_eq!(fabric.switch_distance(named("leaf0"), named(to)), hops);
        assert_eq!(fabric.shortest_paths(&routes, named("leaf0"), named(to)), paths);
    }
    // A thread gets whole pods.
    let parts = partition(&fabric, 2);
    assert_eq!((0..8).map(|host| parts[host]).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn rails_of_a_rail_only_fabric_are_networks_of_their_own() {
    // 6 servers, 3 rails, pods of 2: 3 leaves and 2 spines per rail.
    let fabric = only("servers=6 rails=3 servers_per_pod=2 spines=2 links_per_spine=2");
    assert_eq!((fabric.hosts, of_tier(&fabric, 0), of_tier(&fabric, 1)), (18, 9, 6));
    assert_eq!(cables(&fabric, LOWER), 9 * 2 * 2);
    let live = live_links(&fabric, &[]);
    let routes = Routes::shortest(&fabric, &[]);
    // Each of 9 leaves does not reach the 6 of the other rails, nor each of 6 spines.
    assert_eq!(routes.unreachable(), 9 * 6 + 6 * 6);
    for src in 0..18 {
        let hops = hops_from(&live, fabric.edge_switch(src));
        for dst in (0..18).filter(|dst| *dst != src) {
            let same = src % 3 == dst % 3;
            assert_eq!(fabric.is_connected(src, dst), same);
            assert_eq!(hops.contains_key(&fabric.edge_switch(dst)), same, "host{src} to host{dst}");
            let expected = match (same, src / 3 / 2 == dst / 3 / 2) {
                (false, _) => 0,
                (true, true) => 1,
                // 2 spines, 2 cables up and 2 down.
                (true, false) => 8,
            };
            assert_eq!(fabric.paths(&routes, src, dst, 100).len(), expected);
        }
    }
    let summary = fabric.summary(4160, 64);
    let [all] = &summary.paths[..] else { panic!("one kind of pair: {:?}", summary.paths) };
    // Per rail 3 * 2 ordered pairs of leaves.
    assert_eq!((all.switch_hops, all.paths, all.pairs, summary.diameter_links), (2, 8, 18, 4));
    // 4 links of 83.2 ns (4160 B at 400 Gb/s), 4 of 1.28 ns back, 8 delays and 6 switches of 500 ns.
    assert_eq!(summary.base_rtt, Time::from_ps(4 * 83_200 + 4 * 1280 + 14 * 500_000));
}

#[test]
fn a_rail_can_be_a_single_switch() {
    let fabric = only("servers=4 rails=2 servers_per_pod=4");
    assert_eq!((fabric.hosts, fabric.switches(), fabric.links.len(), fabric.uplinks.len()), (8, 2, 16, 0));
    let routes = Routes::shortest(&fabric, &[]);
    assert_eq!((fabric.paths(&routes, 0, 6, 9).len(), fabric.paths(&routes, 0, 7, 9).len()), (1, 0));
    let summary = fabric.summary(4160, 64);
    // 2 links there (with a switch) and back: 2 * 83.2 + 2 * 1.28 + 4 * 500 + 2 * 500 ns.
    assert_eq!((summary.paths.len(), summary.base_rtt), (0, Time::from_ps(2 * 83_200 + 2 * 1280 + 6 * 500_000)));
    // One rail is an ordinary network.
    let one = only("servers=4 rails=1 servers_per_pod=4");
    assert!(one.is_connected(0, 3));
}

#[test]
fn unequal_links_do_not_hide_the_largest_round_trip_of_a_rail() {
    let mut fabric = only("servers=4 rails=2 servers_per_pod=2 spines=1");
    let slow = fabric.link_named("host3-leaf1").unwrap();
    slow.iter().for_each(|link| fabric.links[link.0 as usize].delay = Time::from_us(9));
    // host3 (server 1, rail 1) to host5 (server 2, rail 1): 4 links; one of 9 us.
    let expected = 4 * 83_200 + 4 * 1280 + 2 * (9_000_000 + 3 * 500_000 + 3 * 500_000);
    assert_eq!(fabric.max_base_rtt(4160, 64), Time::from_ps(expected));
}

/// Meta's cluster for Llama 3 (arXiv 2407.21783, section 3.3.1): racks of 16 GPUs, pods without oversubscription, 1:7 above.
#[test]
fn clos_is_oversubscribed_above_its_pods() {
    // 7 racks of 16 hosts and 16 spines: 7 links down and 1 up.
    let fabric = make("clos", "pods=2 leaves_per_pod=7").unwrap();
    assert_eq!((fabric.hosts, [0, 1, 2].map(|tier| of_tier(&fabric, tier))), (224, [14, 32, 16]));
    assert_eq!([cables(&fabric, LOWER), cables(&fabric, UPPER)], [14 * 16, 32]);
    let tiers = fabric.summary(4160, 64).tiers;
    assert_eq!(tiers.iter().map(|t| t.oversubscription).collect::<Vec<_>>(), [Some(1.0), Some(7.0), None]);
    let routes = Routes::shortest(&fabric, &[]);
    let leaves = edges(&fabric);
    for (to, paths) in [(1, 16), (7, 16)] {
        assert_eq!(fabric.shortest_paths(&routes, leaves[0], leaves[to]), paths);
    }
    assert_eq!(fabric.rails, None);
}
