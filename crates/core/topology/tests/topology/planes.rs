//! Planes against the fabric of one plane whose links have their part of the rate.

use crate::common::{edges, make, switches};
use anabranch_topology::{LinkId, NodeId, Routes, Topology};
use anabranch_units::Rate;
use proptest::prelude::*;

/// Draws a tree and its number of planes; returns it, and one plane of it alone.
fn trees() -> impl Strategy<Value = (Topology, Topology, u32)> {
    let kinds = prop::sample::select(vec![
        ("leaf-spine", "leaves=4 spines=3 hosts_per_leaf=2 links_per_spine=2"),
        ("leaf-spine", "leaves=1 spines=2 hosts_per_leaf=3"),
        ("fat-tree", "tiers=3 radix=4"),
        ("clos", "pods=2 leaves_per_pod=2 hosts_per_leaf=2 spines_per_pod=2 cores=4"),
        ("rail-optimised", "servers=4 rails=2 servers_per_pod=2 spines=2"),
        ("rail-only", "servers=4 rails=2 servers_per_pod=2 spines=2"),
    ]);
    (kinds, 1..17u32).prop_map(|((kind, keys), planes)| {
        let of = |planes: u32, rate: u64| make(kind, &format!("{keys} planes={planes} link_rate={rate}Gbps")).unwrap();
        (of(planes, u64::from(planes) * 25), of(1, 25), planes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_plane_is_the_fabric_with_its_part_of_the_rate((all, one, planes) in trees(), seed in any::<u64>()) {
        let (links, per_plane) = (one.links.len(), one.switches());
        prop_assert_eq!((all.planes, all.hosts, all.plane_switches()), (planes, one.hosts, per_plane));
        prop_assert_eq!(all.links.len(), links * planes as usize);
        // Links of plane p are those of the one plane, with its switches.
        let shifted = |node: NodeId, plane: u32| if node.0 < one.hosts { node } else { NodeId(node.0 + plane * per_plane) };
        let dead: Vec<bool> = (0..all.links.len() as u64).map(|link| anabranch_random::key(seed, link, "dead").is_multiple_of(5)).collect();
        let routes = Routes::shortest(&all, &dead);
        let mut unreachable = 0;
        for plane in 0..planes {
            let of_plane = |link: LinkId| LinkId(link.0 + plane * links as u32);
            for link in one.link_ids() {
                let (ours, alone) = (all.link(of_plane(link)), one.link(link));
                prop_assert_eq!((ours.from, ours.to), (shifted(alone.from, plane), shifted(alone.to, plane)));
                prop_assert_eq!((ours.rate, ours.delay, ours.class), (alone.rate, alone.delay, alone.class));
                prop_assert_eq!(all.plane_of(of_plane(link)), plane);
            }
            for node in switches(&one) {
                let name = &one.node(node).name;
                let expected = if planes > 1 { format!("p{plane}.{name}") } else { name.clone() };
                prop_assert_eq!(&all.node(shifted(node, plane)).name, &expected);
            }
            for host in 0..one.hosts {
                prop_assert_eq!(all.host_uplink_in(host, plane), of_plane(one.host_uplink(host)));
                prop_assert_eq!(all.edge_switch_in(host, plane), shifted(one.edge_switch(host), plane));
            }
            // Next hops stay in the plane, though leaves of all planes share a column.
            let alone = Routes::shortest(&one, &dead[plane as usize * links..(plane as usize + 1) * links]);
            unreachable += alone.unreachable();
            for from in switches(&one) {
                for to in edges(&one).into_iter().filter(|to| *to != from) {
                    let [from, to] = [from, to].map(|node| node.0 - one.hosts);
                    let expected: Vec<LinkId> = alone.towards(from, to).links.iter().map(|link| of_plane(*link)).collect();
                    let own = routes.towards(from + plane * per_plane, to);
                    prop_assert_eq!(own.links, &expected[..]);
                    prop_assert_eq!(own.positions, alone.towards(from, to).positions);
                }
            }
        }
        prop_assert_eq!(routes.unreachable(), unreachable);
        // Tables grow with the planes, not with their square.
        prop_assert_eq!(all.routes().table_bytes(), one.routes().table_bytes() * planes as usize);
        prop_assert_eq!(all.max_base_rtt(4160, 64), one.max_base_rtt(4160, 64));
        prop_assert_eq!(all.nic_rate(), Rate(one.nic_rate().0 * u64::from(planes)));
        // As many shortest paths in every plane.
        let count = |fabric: &Topology| fabric.paths(&fabric.routes(), 0, fabric.hosts - 1, usize::MAX).len();
        prop_assert_eq!(count(&all), count(&one) * planes as usize);
    }
}

#[test]
fn slow_ports_count_for_the_longest_round_trip() {
    let keys = "leaves=2 spines=1 hosts_per_leaf=1 planes=2 link_rate=200Gbps link_delay=1us";
    let mut fabric = make("leaf-spine", keys).unwrap();
    let port = fabric.host_uplink_in(1, 1);
    fabric.links[port.0 as usize].delay = anabranch_units::Time::from_us(5);
    // 8 links of 1 us, and 4 us more on one; wire times as before.
    let even = make("leaf-spine", keys).unwrap().max_base_rtt(4160, 64);
    assert_eq!(fabric.max_base_rtt(4160, 64), even + anabranch_units::Time::from_us(4));
}

#[test]
fn planes_select_links() {
    let fabric = make("leaf-spine", "leaves=2 spines=2 hosts_per_leaf=2 planes=4").unwrap();
    let count = |what: &str| fabric.links_like(what).unwrap().len();
    // Four cables between switches of a plane, and four to hosts; the directions of a cable are two links.
    assert_eq!((count("p1.*"), count("host*-p1.*"), count("*p1.*"), count("host3->p1.leaf1")), (8, 8, 16, 1));
    let message = fabric.links_like("host3->p4.leaf1").unwrap_err().message;
    assert!(message.contains("p0.leaf0 to p3.spine0"), "{message}");
}

#[test]
fn impossible_planes_are_refused() {
    let message = |keys: &str| make("leaf-spine", keys).unwrap_err();
    for planes in [0, 17] {
        let error = message(&format!("planes={planes}"));
        assert_eq!(error.key.as_deref(), Some("planes"));
        assert_eq!(error.message, format!("`planes` is {planes}; a number from 1 to 16 is needed"));
    }
    for (keys, found) in [
        ("planes=3 link_rate=100Gbps", "`planes` is 3, and `link_rate` 100Gbps"),
        ("planes=4 link_rate=400Gbps host_link_rate=2Mbps", "`planes` is 4, and `host_link_rate` 2Mbps"),
    ] {
        assert!(message(keys).message.starts_with(found), "{}", message(keys).message);
    }
}
