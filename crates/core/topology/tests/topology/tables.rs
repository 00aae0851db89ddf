//! Tables at relevant sizes and their raw views.

use crate::common::{adjacency, fat_tree, file, leaf_spine, switches};
use anabranch_topology::{NodeId, Routes};
use anabranch_units::{Rate, Serialiser, Time};
use proptest::prelude::*;

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

/// 512 leaves in pods of 16, which is a block: 1,280 switches have an entry for each of 32 blocks, and the 512 aggregation
/// switches 16 entries more for their own pod, 4 B each.
#[test]
fn leaves_of_a_pod_share_an_entry() {
    let tree = fat_tree(3, 32);
    let routes = Routes::shortest(&tree, &[]);
    assert_eq!((routes.table_bytes(), routes.farthest()), (4 * (1280 * 32 + 512 * 16), 4));
    // One cable less divides the pod of leaf 0 at its aggregation switch, and the blocks of those that lead there.
    let mut dead = vec![false; tree.links.len()];
    dead[tree.link_named("agg0->leaf0").unwrap()[0].0 as usize] = true;
    let cut = Routes::shortest(&tree, &dead);
    assert!(cut.table_bytes() > routes.table_bytes());
    let core = tree.node_named("core0").unwrap().0 - tree.hosts;
    assert_eq!(cut.towards(core, 0).links.len(), 1, "over agg0 and another leaf");
    assert_eq!(cut.farthest(), 4, "around agg0");
}

/// More than 64 uplinks and more than 64 leaves: sets and searches of several words.
#[test]
fn wide_switches() {
    let wide = leaf_spine(130, 70, 1, 2);
    let routes = Routes::shortest(&wide, &[]);
    let leaf = NodeId(wide.hosts + 129);
    assert_eq!((routes.widest(leaf), routes.groups_at(leaf)), (140, 1));
    let positions: Vec<u16> = (0..140).collect();
    assert_eq!(routes.towards(129, 0).positions, positions);
    assert_eq!(wide.shortest_paths(&routes, leaf, NodeId(wide.hosts)), 70 * 2 * 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

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
fn htsim_keys_that_contradict_or_belong_elsewhere() {
    let text = |tier0: &str| {
        format!(
            "Nodes 32\nTiers 2\nPodsize 32\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\n\
             Downlink_Latency_ns 1000\n{tier0}\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 1000\n"
        )
    };
    let read = |tier0: &str| file("htsim-topo", &text(tier0));
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
    let tree = file("htsim-topo", &text.concat()).unwrap();
    let of = |tier: u8| switches(&tree).filter(|s| tree.tier(*s) == Some(tier)).count();
    assert_eq!((tree.hosts, of(0), of(1), of(2)), (432, 72, 72, 12));
    assert_eq!(tree.uplinks, [6, 6]);
    let routes = Routes::shortest(&tree, &[]);
    // 6 aggregation switches, 2 cores each, 3 cables up and 3 down.
    assert_eq!(tree.shortest_paths(&routes, tree.edge_switch(0), tree.edge_switch(431)), 6 * 2 * 3 * 3);
}
