//! Tables at relevant sizes, their raw views, and invalid files and faults.

use crate::common::{adjacency, build, edges, fat_tree, file, leaf_spine, switches};
use anabranch_topology::{
    FatTreeParameters, FaultKind, FaultParameters, FileFormat, FileParameters, LeafSpineParameters, LinkOverride,
    NodeId, Routes, Topology, TopologyParameters,
};
use anabranch_units::{Rate, Serialiser, Time};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// Specification 9.1: a switches per group, fully meshed, h global links each, a*h + 1 groups, one global link per pair
/// of groups, wired "relative": port k of group g leads to group g + k + 1, switch (G - (k + 1) - 1) div h there.
fn dragonfly(hosts_per_switch: u64, a: u32, h: u32) -> Topology {
    let groups = a * h + 1;
    let mut text = String::new();
    for (group, own) in (0..groups).flat_map(|g| (0..a).map(move |i| (g, i))) {
        let switch = group * a + own;
        let local = (0..a).map(|i| group * a + i);
        let global = (own * h..(own + 1) * h).map(|k| (group + k + 1) % groups * a + (groups - (k + 1) - 1) / h);
        text += &switch.to_string();
        text.extend(local.chain(global).filter(|to| *to > switch).map(|to| format!(" {to}")));
        text.push('\n');
    }
    adjacency(&text, hosts_per_switch)
}

/// Specification 9.1: (4, 8, 4) has 33 groups, 264 switches, 1056 hosts, 924 local and 528 global cables, diameter 3.
#[test]
fn a_dragonfly_as_a_list() {
    let dragonfly = dragonfly(4, 8, 4);
    assert_eq!((dragonfly.switches(), dragonfly.hosts, dragonfly.links.len()), (264, 1056, 2 * (1056 + 924 + 528)));
    assert_eq!(dragonfly.summary(4160, 64).diameter_switch_hops, 3);
}

/// 4,020 switches with 40,200 hosts (specification 9.3). The limit is on the time of an optimised build.
#[test]
fn forty_thousand_endpoints() {
    let dragonfly = dragonfly(10, 20, 10);
    assert_eq!((dragonfly.switches(), dragonfly.hosts), (4020, 40_200));
    let start = Instant::now();
    let routes = Routes::shortest(&dragonfly, &[]);
    let took = start.elapsed();
    let most = if cfg!(debug_assertions) { 60 } else { 10 };
    assert!(took < Duration::from_secs(most), "took {took:?}");
    assert_eq!((routes.unreachable(), routes.columns(), routes.farthest()), (0, 4020, 3));
    // Neighbours in a group: the one local link; over all ports each next hop is one hop nearer.
    for (from, to) in [(0u32, 1u32), (0, 19), (4000, 4019), (0, 2000), (17, 3999)] {
        let switch = |number: u32| NodeId(dragonfly.hosts + number);
        let here = dragonfly.switch_distance(switch(from), switch(to));
        let next = routes.towards(from, to).links;
        assert!(!next.is_empty());
        assert!(next.iter().all(|l| dragonfly.switch_distance(dragonfly.link(*l).to, switch(to)) + 1 == here));
    }
}

/// A chain of 3,000 switches: one path, 2,999 hops, and no search with a recursion of that depth.
#[test]
fn a_long_chain() {
    let text: String = (0..2999).map(|s| format!("{s} {}\n", s + 1)).collect();
    let chain = adjacency(&text, 1);
    let routes = Routes::shortest(&chain, &[]);
    assert_eq!(chain.shortest_paths(&routes, chain.edge_switch(0), chain.edge_switch(2999)), 1);
    assert_eq!(chain.base_path(0, 2999).len(), 2999 + 2);
    let cut = chain.link_named("switch1499->switch1500").unwrap()[0];
    let mut dead = vec![false; chain.links.len()];
    dead[cut.0 as usize] = true;
    // One direction alone fails: 1,500 switches cannot reach the 1,500 behind it, which still reach them.
    let routes = Routes::shortest(&chain, &dead);
    assert_eq!(routes.unreachable(), 1500 * 1500);
    assert_eq!(chain.shortest_paths(&routes, chain.edge_switch(0), chain.edge_switch(2999)), 0);
    assert_eq!(chain.shortest_paths(&routes, chain.edge_switch(2999), chain.edge_switch(0)), 1);
}

/// Each diamond in a row doubles the number of paths: 2^70 exceeds 64 bits.
#[test]
fn path_counts_do_not_wrap() {
    let text: String =
        (0..70).map(|d| format!("{0} {1} {2}\n{1} {3}\n{2} {3}\n", 3 * d, 3 * d + 1, 3 * d + 2, 3 * d + 3)).collect();
    let row = adjacency(&text, 1);
    let routes = Routes::shortest(&row, &[]);
    let paths = |to: u32| row.shortest_paths(&routes, row.edge_switch(0), row.edge_switch(to));
    assert_eq!((paths(3), paths(3 * 40), paths(3 * 70)), (2, 1 << 40, u64::MAX));
    assert_eq!(row.summary(100, 10).paths.iter().map(|p| p.paths).max(), Some(u64::MAX));
}

fn views_agree(topology: &Topology, routes: &Routes) {
    let hosts = topology.hosts;
    let columns: Vec<u32> = (0..topology.switches()).filter(|s| routes.column(*s).is_some()).collect();
    assert_eq!(columns, edges(topology).iter().map(|e| e.0 - hosts).collect::<Vec<_>>());
    assert_eq!(edges(topology), topology.edge_switches());
    for switch in switches(topology) {
        let number = switch.0 - hosts;
        let mut numbers = std::collections::BTreeSet::new();
        let mut widest = 0;
        for edge in columns.iter().filter(|edge| **edge != number) {
            let entry = routes.entry(number, *edge);
            let group = routes.groups()[entry as usize];
            let range = group.first as usize..group.first as usize + group.len as usize;
            let hops = routes.towards(number, *edge);
            assert_eq!(&routes.group_links()[range.clone()], hops.links);
            assert_eq!(&routes.group_positions()[range], hops.positions);
            assert_eq!(u32::from(group.local), hops.group);
            for (link, position) in hops.links.iter().zip(hops.positions) {
                assert_eq!(topology.uplink_position(*link).unwrap_or(0), *position);
            }
            numbers.insert(hops.group);
            widest = widest.max(hops.links.len() as u32);
        }
        assert!(numbers.iter().copied().eq(0..routes.groups_at(switch)));
        assert_eq!(routes.widest(switch), widest);
    }
    for host in 0..hosts {
        let edge = topology.edge_switch(host);
        let own = routes.next_hops(topology, edge, host);
        let down = topology.link(routes.host_down(host));
        assert_eq!((own.links, own.positions, own.group), (&[routes.host_down(host)][..], &[0][..], u32::MAX));
        assert_eq!((down.from, down.to), (edge, NodeId(host)));
        for switch in switches(topology).filter(|s| *s != edge).take(5) {
            assert_eq!(routes.next_hops(topology, switch, host), routes.towards(switch.0 - hosts, edge.0 - hosts));
        }
    }
}

/// 512 leaves in pods of 16, which is a block: 1,280 switches have an entry for each of 32 blocks, and the 512 aggregation
/// switches 16 entries more for their own pod, 4 B each.
#[test]
fn leaves_of_a_pod_share_an_entry() {
    let tree = fat_tree(3, 32);
    let routes = Routes::shortest(&tree, &[]);
    assert_eq!((routes.table_bytes(), routes.farthest()), (4 * (1280 * 32 + 512 * 16), 4));
    views_agree(&tree, &routes);
    // One cable less divides the pod of leaf 0 at its aggregation switch, and the blocks of those that lead there.
    let mut dead = vec![false; tree.links.len()];
    dead[tree.link_named("agg0->leaf0").unwrap()[0].0 as usize] = true;
    let cut = Routes::shortest(&tree, &dead);
    assert!(cut.table_bytes() > routes.table_bytes());
    views_agree(&tree, &cut);
    let core = tree.node_named("core0").unwrap().0 - tree.hosts;
    assert_eq!(cut.towards(core, 0).links.len(), 1, "over agg0 and another leaf");
    assert_eq!(cut.farthest(), 4, "around agg0");
}

/// More than 64 uplinks and more than 64 leaves: sets and searches of several words.
#[test]
fn wide_switches() {
    let wide = leaf_spine(130, 70, 1, 2);
    let routes = Routes::shortest(&wide, &[]);
    views_agree(&wide, &routes);
    let leaf = NodeId(wide.hosts + 129);
    assert_eq!((routes.widest(leaf), routes.groups_at(leaf)), (140, 1));
    let positions: Vec<u16> = (0..140).collect();
    assert_eq!(routes.towards(129, 0).positions, positions);
    assert_eq!(wide.shortest_paths(&routes, leaf, NodeId(wide.hosts)), 70 * 2 * 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn raw_views(which in 0..4u8, dead_share in 0..60u32, seed in any::<u64>()) {
        let topology = match which {
            0 => leaf_spine(5, 3, 2, 2),
            1 => fat_tree(3, 4),
            2 => fat_tree(2, 8),
            _ => dragonfly(2, 4, 2),
        };
        let mut stream = anabranch_random::Stream::keyed(seed, 0, "test");
        let dead: Vec<bool> = (0..topology.links.len()).map(|_| stream.below(100) < u64::from(dead_share)).collect();
        views_agree(&topology, &Routes::shortest(&topology, &dead));
    }

    /// Ports at uneven rates carry the remainder: a train is never sooner than its ideal, and later by less than two
    /// picoseconds per link.
    #[test]
    fn trains_at_uneven_rates(
        rates in prop::collection::vec(1_000_000_000u64..800_000_000_000, 4),
        full in 0..200u64,
        full_bytes in 64..10_000u64,
        last_bytes in 1..10_000u64,
    ) {
        let mut fabric = leaf_spine(2, 1, 1, 1);
        let path = fabric.base_path(0, 1);
        for (link, rate) in path.iter().zip(&rates) {
            fabric.links[link.0 as usize].rate = Rate(*rate);
        }
        let last_bytes = last_bytes.min(full_bytes);
        let mut here = vec![Time::ZERO; full as usize + 1];
        for link in &path {
            let link = fabric.link(*link);
            let (mut port, mut free) = (Serialiser::new(link.rate), Time::ZERO);
            for (number, arrived) in here.iter_mut().enumerate() {
                let bytes = if number as u64 == full { last_bytes } else { full_bytes };
                free = free.max(*arrived) + port.serialise(bytes);
                *arrived = free + link.delay;
            }
        }
        let (ideal, found) = (fabric.train_arrival(&path, full, full_bytes, last_bytes), *here.last().unwrap());
        prop_assert!(ideal <= found && found <= ideal + Time::from_ps(2 * 4), "{ideal:?} {found:?}");
    }
}

#[test]
fn positions_are_those_of_uplinks() {
    let fabric = leaf_spine(2, 2, 3, 2);
    let position = |name: &str| fabric.uplink_position(fabric.link_named(name).unwrap()[0]);
    let found = ["leaf1->spine0", "leaf1->spine0#1", "leaf1->spine1", "leaf1->spine1#1"].map(position);
    assert_eq!(found, [Some(0), Some(1), Some(2), Some(3)]);
    assert_eq!((position("spine0->leaf1"), position("host3->leaf1"), position("leaf1->host3")), (None, None, None));
}

#[test]
fn hosts_keep_the_numbers_of_their_file() {
    // Switches 0 and 3; hosts 1, 2 and 4.
    let text = "5 2 4\n0 3\n1 0 1Gbps 1us 0\n2 3 1Gbps 1us 0\n4 3 1Gbps 1us 0\n0 3 1Gbps 1us 0\n";
    let fabric = file(FileFormat::Conweave, text).unwrap();
    assert_eq!(fabric.host_ids, [1, 2, 4]);
    assert_eq!([0, 1, 2, 3, 4, 5].map(|id| fabric.host_with_id(id)), [None, Some(0), Some(1), None, Some(2), None]);
    let built = fat_tree(2, 4);
    assert_eq!((built.host_with_id(7), built.host_with_id(8)), (Some(7), None));
}

#[test]
fn rates_of_host_links() {
    let slow = Some(Rate::gbps(100));
    let tree =
        build(TopologyParameters::FatTree(FatTreeParameters { host_link_rate: slow, ..Default::default() })).unwrap();
    // 8 hosts at 100 Gb/s below 8 uplinks at 400 Gb/s.
    assert_eq!((tree.nic_rate(), tree.oversubscription()), (Rate::gbps(100), 0.25));
    let none = FatTreeParameters { host_link_rate: Some(Rate(0)), ..Default::default() };
    assert_eq!(build(TopologyParameters::FatTree(none)).unwrap_err().key.as_deref(), Some("host_link_rate"));
    let mut tree = fat_tree(3, 4);
    let class = LinkOverride { class: Some("tier1-2".into()), rate: slow, ..Default::default() };
    // (k/2)^2 cores with k cables of two directions.
    assert_eq!(tree.apply(&class).unwrap(), 4 * 4 * 2);
}

/// 30,000 leaves would need a table of 30,001 * 30,000 entries.
#[test]
fn tables_beyond_memory_are_refused() {
    let huge = LeafSpineParameters { leaves: 30_000, spines: 1, hosts_per_leaf: 1, ..Default::default() };
    let error = build(TopologyParameters::LeafSpine(huge)).unwrap_err();
    assert!(error.message.contains("30001 switches") && error.message.contains("900030000 entries"), "{error}");
}

#[test]
fn htsim_keys_that_contradict_or_belong_elsewhere() {
    let text = |tier0: &str| {
        format!(
            "Nodes 32\nTiers 2\nPodsize 32\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\n\
             Downlink_Latency_ns 1000\n{tier0}\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 1000\n"
        )
    };
    let read = |tier0: &str| file(FileFormat::HtsimTopo, &text(tier0));
    // 8 ports down over 2 up.
    assert_eq!(read("Oversubscribed 4\nBundle 1").unwrap().oversubscription(), 4.0);
    for (tier0, said) in [
        ("Oversubscribed 1", "oversubscribed is 1, but there are 8 ports down and 2 up"),
        ("Bundle 2", "a host has one link"),
        ("Queue_Down 1001", "line 9: `Queue_Down` does not describe the graph"),
    ] {
        let error = read(tier0).unwrap_err();
        assert!(error.message.contains(said), "{error}");
    }
}

/// A tree whose bundles are at the top: 12 pods of 6 leaves and 6 aggregation switches, each with 3 cables to 2 cores.
#[test]
fn htsim_bundles_at_the_top() {
    let tier = |number: u64, down: u64, up: &str, rest: &str| {
        format!("Tier {number}\nDownlink_speed_Gbps 100\nRadix_Down {down}\n{up}Downlink_Latency_ns 1000\n{rest}")
    };
    let text = [
        "Nodes 432\nTiers 3\nPodsize 36\n",
        &tier(0, 6, "Radix_Up 6\n", ""),
        &tier(1, 6, "Radix_Up 6\n", ""),
        &tier(2, 36, "", "Bundle 3\n"),
    ];
    let tree = file(FileFormat::HtsimTopo, &text.concat()).unwrap();
    let of = |tier: u8| switches(&tree).filter(|s| tree.tier(*s) == Some(tier)).count();
    assert_eq!((tree.hosts, of(0), of(1), of(2)), (432, 72, 72, 12));
    assert_eq!(tree.uplinks, [6, 6]);
    let routes = Routes::shortest(&tree, &[]);
    // 6 aggregation switches, 2 cores each, 3 cables up and 3 down.
    assert_eq!(tree.shortest_paths(&routes, tree.edge_switch(0), tree.edge_switch(431)), 6 * 2 * 3 * 3);
}

#[test]
fn keys_of_other_faults_are_refused() {
    let tree = fat_tree(2, 4);
    let base = |kind| FaultParameters { kind, count: 1, ..Default::default() };
    for (fault, key) in [
        (FaultParameters { rate: Some(Rate::gbps(1)), ..base(FaultKind::LinkDown) }, "rate"),
        (FaultParameters { factor: 0.5, ..base(FaultKind::PacketLoss) }, "factor"),
        (FaultParameters { loss: 0.1, ..base(FaultKind::LinkUp) }, "loss"),
        (FaultParameters { loss: 0.1, rate: Some(Rate::gbps(1)), ..base(FaultKind::LinkDegrade) }, "loss"),
        (FaultParameters { loss: 1e-12, ..base(FaultKind::PacketLoss) }, "loss"),
    ] {
        assert_eq!(fault.resolve(&tree, 0, 1).unwrap_err().key.as_deref(), Some(key));
    }
}

#[test]
fn errors_of_keys_name_them() {
    let list = FileParameters {
        path: "g".into(),
        format: anabranch_settings::Auto::Value(FileFormat::Adjacency),
        link_rate: Rate(0),
        ..Default::default()
    };
    let error = TopologyParameters::File(list).build(&|_| Ok("0 1\n".into())).unwrap_err();
    assert_eq!(error.key.as_deref(), Some("link_rate"));
}
